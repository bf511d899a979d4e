"""MeVeMemory over its life: new histories, resets, serialization, processes, threads and failing components."""

import asyncio
import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
import weakref
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock

import meve
from llama_index_meve import MeVeChatStore, MeVeMemory
from llama_index_meve._instrumentation import MeVeTraceEvent
from llama_index_meve._serialization import register_memory
from meve.errors import (
    ConfigurationError,
    MemoryLostWarning,
    ModelError,
    PassageError,
    PolicyError,
    StorageError,
    ValidationError,
)
from meve.memory import GovernedMemory, Policy
from meve.memory.messages.messages import Messages
from meve.memory.turns import TurnRules
from tests.llama_index_integration.chat_helpers import (
    CAT,
    QUESTION,
    Unplugged,
    fact_texts,
    facts,
    model,
    remember_cat,
    run_in_threads,
    system,
    texts,
    user,
)
from tests.llama_index_integration.conftest import Listener, listening
from tests.memories import FixedExtractor

LONG = [user("A?") if n % 2 == 0 else model(f"Answer {n}.") for n in range(400)]


def test_history_that_is_set_again_is_remembered_once(memory, chat):
    history = [user(CAT), model("Nice."), user("I have a dog.")]
    chat.set(history)
    assert len(facts(memory)) == 2
    ids = {r.id for r in memory.list(user_id="alice", include_messages=True)}
    chat.set(history)
    assert {r.id for r in memory.list(user_id="alice", include_messages=True)} == ids
    for shorter in (history[1:], [*history, user("I live in Oslo.")], history[:1]):
        chat.set(shorter)
        assert texts(chat.get_all()) == texts(shorter)
    assert sorted(fact_texts(memory)) == ["I have a dog.", "I live in Oslo.", CAT]


def test_message_that_was_put_is_not_remembered_again_when_set(memory, chat):
    chat.put_messages([user(CAT), model("Nice.")])
    for history in ([user(CAT), model("Nice."), user("And?")], [model("Hello!"), user(CAT)]):
        chat.set(history)
        assert fact_texts(memory) == [CAT]
    chat.set([user(CAT), user(CAT)])
    assert fact_texts(memory) == [CAT]


def test_expired_fact_is_remembered_when_said_again(memory, chat, clock):
    chat.put(user(CAT))
    clock.advance(timedelta(days=8))
    chat.put(user(CAT))
    assert set(facts(memory)) == {CAT}


def test_reset_erases_only_the_session_and_its_facts(memory, chat):
    remember_cat(memory)
    chat.put_messages([user("I have a dog."), model("Nice.")])
    MeVeMemory(memory, user_id="alice", session_id="s2").put(user("I live in Oslo."))
    MeVeMemory(memory, user_id="bob", session_id="s1").put(user("I live in Rome."))
    chat.reset()
    assert chat.get_all() == []
    assert set(facts(memory)) == {CAT, "I live in Oslo."}
    assert set(facts(memory, "bob")) == {"I live in Rome."}


def test_messages_round_trip_and_are_visible_to_the_chat_store(memory, chat):
    messages = [
        ChatMessage(role="user", blocks=[TextBlock(text="Look!"), ImageBlock(image=b"\x89PNG\r\n", url=None)]),
        ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name="t", tool_kwargs={"a": [1, None]})]
        ),
        ChatMessage("seen", role="tool", additional_kwargs={"tool_call_id": "1", "name": "t"}),
        model("Fine."),
    ]
    before = [message.model_copy(deep=True) for message in messages]
    chat.put_messages(messages)
    assert messages == before
    assert chat.get_all() == messages
    assert chat.get() == messages
    assert asyncio.run(MeVeChatStore(memory, user_id="alice").get_messages("s1")) == messages
    with pytest.raises(PassageError):
        chat.put_messages([user("one"), ChatMessage("two", additional_kwargs={"odd": object()})])
    assert len(chat.get_all()) == 4


def test_long_conversation_is_read_from_its_end(memory, chat, monkeypatch):
    chat.put_messages([system("Be brief."), *LONG])
    read = []
    page = Messages.page

    def recording_page(self, *args, **kwargs):
        messages = page(self, *args, **kwargs)
        read.extend(messages)
        return messages

    monkeypatch.setattr(Messages, "page", recording_page)
    short = MeVeMemory(memory, user_id="alice", session_id="s1", token_limit=300)
    shown = short.get()
    assert (shown[0].content, shown[-1].content) == ("Be brief.", "Answer 399.")
    assert len(read) < 100
    read.clear()
    assert len(chat.get()) == 401
    assert len(read) == 401


def test_instructions_after_a_greeting_are_kept(memory):
    short = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=300)
    short.put_messages([user("Hello!"), system("Be kind."), *LONG])
    assert [m.content for m in short.get()][:2] == ["Be kind.", "A?"]


def test_copies_and_pickles_share_the_session(chat, memory):
    chat.put(user(CAT))
    assert copy.deepcopy(chat).memory is memory
    for again in (pickle.loads(pickle.dumps(chat)), chat.model_copy()):
        assert (again.memory is memory, texts(again.get_all())) == (True, [CAT])


def test_copy_with_an_update_is_validated_and_independent(memory, chat):
    chat.put(user(CAT))
    for deep in (False, True):
        other = chat.model_copy(update={"session_id": "s2"}, deep=deep)
        assert (chat.session_id, texts(chat.get_all()), other.get_all()) == ("s1", [CAT], [])
        assert other.get(QUESTION)
        assert chat.recall is None
        with pytest.raises(ValidationError, match="user_id"):
            chat.model_copy(update={"user_id": " "}, deep=deep)
    assert chat.model_copy(update={"token_limit": 9})._counter.count_text("one") == chat._counter.count_text("one")


def test_deserialized_memory_counts_with_the_same_tokenizer(memory):
    file = Path(meve.__file__).with_name("components") / "verifiers" / "meve-verifier-1" / "tokenizer.json"
    text = "Unbelievably long-winded words, tokenized otherwise: 1234567890."
    usual = MeVeMemory(memory, user_id="alice", session_id="s")
    named = MeVeMemory(memory, user_id="alice", session_id="s", tokens=str(file))
    assert named._counter.count_text(text) != usual._counter.count_text(text)
    for chat in (usual, named):
        assert MeVeMemory.from_json(chat.to_json())._counter.count_text(text) == chat._counter.count_text(text)


def test_unreadable_message_of_another_version_raises_storage_error(memory, chat):
    memory.messages.add("s1", [{"role": "user", "content": "An old one."}], user_id="alice")
    assert texts(chat.get()) == ["An old one."]
    memory.messages.add("s1", [{"role": "user", "blocks": [{"block_type": "hologram"}]}], user_id="alice")
    with pytest.raises(StorageError, match=r"(?s)another version of LlamaIndex.*hologram"):
        chat.get()


def test_deserialization_reuses_the_open_memory_or_opens_the_file(file, clock):
    rules = TurnRules(sources={"user": "chat_user", "tool": "api_result"}, max_facts=3, agent_id="a", run_id="r")
    policy = Policy.from_dict({"chat_ttl": "90m", "user_ttl": "90m"})
    with GovernedMemory.open(file, policy=policy) as memory:
        options = {"search": {"limit": 2}, "remember": rules, "token_limit": 900, "on_error": "raise"}
        chat = MeVeMemory(memory, user_id=7, session_id="s", **options)
        chat.put(user(CAT))
        data = chat.to_dict()
        assert MeVeMemory.from_dict(data).memory is memory
    again = MeVeMemory.from_dict(data)
    try:
        assert again.memory is not memory
        assert again.memory.policy == policy
        assert (again.user_id, again.session_id) == (7, "s")
        assert {name: getattr(again, name) for name in options} == options
        assert texts(again.get_all()) == [CAT]
    finally:
        again.memory.close()
    with GovernedMemory.open(file) as other:
        third = MeVeMemory.from_dict(data).memory
        assert third is not other
        third.close()
        register_memory(other)
        assert MeVeMemory.from_dict(data).memory is other


def test_unserializable_options_and_invalid_data_are_rejected(memory):
    for options, message in (
        ({"remember": TurnRules(extractor=FixedExtractor())}, "its extractor isn't"),
        ({"search": {"within": timedelta(days=1)}}, "search must be JSON-serializable"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            MeVeMemory(memory, user_id="alice", **options).to_dict()
    with pytest.raises(ConfigurationError, match="the data must name a file"):
        MeVeMemory.from_dict({"user_id": "alice"})
    with pytest.raises(ConfigurationError, match="the data holds unknown names odd"):
        MeVeMemory.from_dict({**MeVeMemory(memory, user_id="alice").to_dict(), "odd": 1})
    with pytest.raises(PolicyError):
        MeVeMemory.from_dict({"file": "m.db", "policy": {"odd": 1}, "user_id": "alice"})


def test_string_refers_to_the_same_session(chat, memory):
    chat.put(user(CAT))
    again = MeVeMemory.from_string(chat.to_string())
    assert (again.memory is memory, texts(again.get_all())) == (True, [CAT])
    assert CAT not in chat.to_string()
    with pytest.raises(ConfigurationError, match=r"what to_string\(\) returned, got 'no JSON'"):
        MeVeMemory.from_string("no JSON")


def test_session_continues_in_another_process(file):
    code = (
        "import json, sys\n"
        "from llama_index.core.base.llms.types import ChatMessage\n"
        "from llama_index_meve import MeVeMemory\n"
        "chat = MeVeMemory.from_dict(json.loads(sys.stdin.read()))\n"
        "assert [m.content for m in chat.get_all()] == ['My cat is called Tom.']\n"
        "chat.put(ChatMessage('Nice.', role='assistant'))\n"
        "chat.memory.close()\n"
    )
    with GovernedMemory.open(file) as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s1")
        chat.put(user(CAT))
        process = subprocess.run(
            [sys.executable, "-c", code], input=chat.to_json(), text=True, capture_output=True, check=False
        )
        assert process.returncode == 0, process.stderr
        assert texts(chat.get_all()) == [CAT, "Nice."]


async def test_async_calls_do_not_block_the_event_loop(memory, chat, monkeypatch):
    methods = ("add", "page", "sync")
    threads, rounds = {name: set() for name in methods}, 0

    def slow_and_recording(name, method):
        def call(*args, **kwargs):
            threads[name].add(threading.get_ident())
            time.sleep(0.005)
            return method(*args, **kwargs)

        return call

    async def going_round():
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    for name in methods:
        monkeypatch.setattr(Messages, name, slow_and_recording(name, getattr(Messages, name)))
    beside = asyncio.create_task(going_round())
    await asyncio.gather(*(chat.aput(user(f"Message {n}.")) for n in range(50)))
    beside.cancel()
    assert rounds > 50
    for call in (chat.aget, chat.aget_all, chat.areset):
        await call()
    await chat.aset([user(CAT)])
    await chat.aput_messages([model("Nice.")])
    assert texts(await chat.aget_all()) == [CAT, "Nice."]
    assert all(threads.values()), "each was called"
    assert threading.get_ident() not in set().union(*threads.values())


def test_threads_share_a_session_and_lose_nothing(memory, chat):
    def talk(n):
        for i in range(5):
            chat.get(QUESTION)
            chat.put_messages([user(f"Thing {n} {i} is mine."), model("Fine.")])

    run_in_threads(*(partial(talk, n) for n in range(6)))
    assert len(chat.get_all()) == 60
    assert len(facts(memory)) == 30
    shown = texts(chat.get_all())
    assert all(answer == "Fine." for answer in shown[1::2])


def test_recall_emits_a_trace_event_without_text(memory, chat):
    remember_cat(memory)
    with listening(Listener(received=[])) as listener:
        chat.get(QUESTION)
    [event] = [e for e in listener.received if isinstance(e, MeVeTraceEvent)]
    assert "Tom" not in str(event)
    assert event.trace["candidates"][0]["id"] == "cat"


@pytest.fixture
def failing(file):
    embedder = Unplugged()
    with GovernedMemory.open(file, embedder=embedder) as memory:
        yield memory, embedder


def test_failing_recall_warns_and_returns_the_messages(failing):
    memory, embedder = failing
    chat = MeVeMemory(memory, user_id="alice", session_id="s")
    chat.put(user("Hello!"))
    embedder.unplugged = True
    with pytest.warns(MemoryLostWarning, match="recalling from memory failed"):
        assert texts(chat.get(QUESTION)) == ["Hello!"]
    strict = MeVeMemory(memory, user_id="alice", session_id="s", on_error="raise")
    with pytest.raises(ModelError):
        strict.get(QUESTION)


def test_message_that_always_fails_does_not_block_others(failing):
    memory, _ = failing
    chat = MeVeMemory(memory, user_id="alice", session_id="s")
    with pytest.warns(MemoryLostWarning, match="remembering what was said failed"):
        chat.put_messages([user("My car always fails."), user(CAT)])
    assert set(facts(memory)) == {CAT}
    for _ in range(2):
        with pytest.warns(MemoryLostWarning):
            chat.put(model("Nice."))
    chat.put(model("Nice."))
    assert len(chat.get_all()) == 5


def test_storage_failure_always_raises(memory, chat):
    memory.close()
    with pytest.raises(StorageError):
        chat.put(user(CAT))
    with pytest.raises(StorageError):
        chat.get_all()


def test_last_user_message_is_one_object_until_the_user_speaks_again(memory, chat, clock):
    """Agents write state into it. It is never stored, and is released when the message is erased or expires."""
    chat.put(user(QUESTION))
    (first,) = chat.get()
    first.blocks[0].text = f"STATE {QUESTION}"
    chat.put(model("I see."))
    assert texts(chat.get()) == [f"STATE {QUESTION}", "I see."]
    assert texts(chat.get_all()) == [QUESTION, "I see."]
    chat.put(user(QUESTION))
    assert texts(chat.get()) == [QUESTION, "I see.", QUESTION]
    for end in (lambda: memory.forget_user(user_id="alice"), lambda: clock.advance(timedelta(days=7))):
        chat.put(user(QUESTION))
        handed = weakref.ref(chat.get()[-1])
        assert handed() is not None
        end()
        assert chat.get() == []
        gc.collect()
        assert handed() is None
