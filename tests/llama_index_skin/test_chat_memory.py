"""MeVeMemory by itself: whose it is, what it recalls and when, what answers make of it, and what a reset takes."""

import asyncio
import copy
import pickle
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory.types import BaseMemory

from llama_index_meve import MeVeChatStore, MeVeMemory
from llama_index_meve.references import at_hand
from meve.errors import (
    ConfigurationError,
    HoldError,
    MemoryLostWarning,
    ModelError,
    PassageError,
    PolicyError,
    StorageError,
    ValidationError,
)
from meve.memory import GovernedMemory, Policy
from meve.memory.telling import HEADER, OPENING
from meve.memory.turns import TurnRules
from meve.testing.fakes import WordEmbedder

CAT, QUESTION = "My cat is called Tom.", "What is my cat called?"


def user(text):
    return ChatMessage(text)


def model(text):
    return ChatMessage(text, role="assistant")


def texts(messages):
    return [message.content for message in messages]


def facts(memory, user="alice"):
    return {r.text: r.reflection for r in memory.list(user_id=user) if r.text}


def known(memory, *, ttl=None):
    """A memory that knows the cat, from elsewhere."""
    return memory.add(CAT, user_id="alice", source="chat_user", policy_class="factual", id="cat", ttl=ttl)


@pytest.fixture
def chat(memory):
    return MeVeMemory(memory=memory, user_id="alice", session_id="s1")


def judged(memory):
    return [e.detail["outcome"] for e in memory.audit.events(user_id="alice") if "outcome" in e.detail]


def test_it_is_a_memory_that_is_never_false(chat):
    """Agents put another in place of one that is false."""
    assert isinstance(chat, BaseMemory)
    assert chat.get_all() == []
    assert bool(chat)
    assert not hasattr(chat, "__len__")


@pytest.mark.parametrize("nobody", [None, "", " ", True, 1.5, ["alice"]])
def test_without_a_user_it_is_refused(memory, nobody):
    with pytest.raises(ValidationError, match="user_id"):
        MeVeMemory(memory, user_id=nobody)
    with pytest.raises(TypeError, match="user_id"):
        MeVeMemory(memory)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"memory": "m.db"}, "GovernedMemory.open"),
        ({"session_id": " "}, "session_id"),
        ({"search": {"limt": 3}}, "limt"),
        ({"search": {"user_id": "bob"}}, "the conversation tells it"),
        ({"search": {"without": []}}, "the conversation tells it"),
        ({"search": {"classes": ["secret"]}}, "choose one of"),
        ({"remember": "all"}, "TurnRules"),
        ({"on_error": "hide"}, "choose one of warn, raise"),
        ({"token_limit": 0}, "greater than or equal to 1"),
        ({"media_tokens": {"image": -1}}, "greater than or equal to 0"),
    ],
)
def test_what_can_not_be_is_refused(memory, options, told):
    with pytest.raises((ConfigurationError, ValidationError, ValueError), match=told):
        MeVeMemory(**{"memory": memory, "user_id": "alice", **options})


def test_from_defaults_needs_a_user_and_takes_a_history(memory):
    with pytest.raises(ConfigurationError, match="memory=MeVeMemory"):
        MeVeMemory.from_defaults(chat_history=[])
    made = MeVeMemory.from_defaults(memory=memory, user_id="alice", chat_history=[user(CAT)], llm=None, token_limit=99)
    assert (made.token_limit, texts(made.get_all())) == (99, [CAT])
    again = MeVeMemory.from_defaults(memory=memory, user_id="alice", session_id=made.session_id)
    assert texts(again.get_all()) == [CAT]
    assert MeVeMemory.from_defaults(memory=memory, user_id="alice").session_id != made.session_id


def test_users_and_sessions_are_apart(memory, chat):
    chat.put(user(CAT))
    for owner, session in (("bob", "s1"), ("alice", "s2"), (1, "s1"), ("1", "s1")):
        other = MeVeMemory(memory, user_id=owner, session_id=session)
        assert other.get_all() == []
        assert (CAT in str(other.get(QUESTION))) is (owner == "alice")
        other.put(user(f"I am {owner!r}."))
    assert texts(chat.get_all()) == [CAT]


def test_facts_stand_in_the_system_message_as_data_and_instructions_before_them(memory, chat):
    known(memory)
    assert chat.get(QUESTION)[0].content.startswith(f"{HEADER}\n{OPENING}\n[1] {CAT}")
    chat.put(ChatMessage("Be brief.", role="system"))
    [first] = chat.get(QUESTION)
    assert first.role.value == "system"
    assert [block.text.partition("\n")[0] for block in first.blocks] == ["Be brief.", HEADER]


def test_the_question_is_the_input_or_else_what_the_user_said_last(memory, chat):
    known(memory)
    chat.put_messages([user(QUESTION), model("I don't know.")])
    assert CAT in str(chat.get()[0])
    assert CAT in str(chat.get(ChatMessage(QUESTION))[0])
    assert chat.get("How tall is the Eiffel tower?")[0].content == QUESTION
    assert texts(chat.get("  ")) == [QUESTION, "I don't know."]
    assert chat.get(some_option=1, initial_token_count=10)


def test_no_words_no_question(memory, chat):
    known(memory)
    chat.put(ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png")]))
    assert [m.role.value for m in chat.get()] == ["user"]
    assert memory.audit.events(action="retrieve") == []


def test_a_question_of_any_length_and_kind_is_asked(memory, chat):
    known(memory)
    for asked in ("The weather was fine that day. " * 4_000 + QUESTION, f"\x00 \ud800 {QUESTION}"):
        assert CAT in str(chat.get(asked)[0].content)


def test_what_the_window_shows_is_not_recalled(memory, chat):
    chat.put_messages([user(f"Hi! {CAT}"), model("Nice.")])
    assert texts(chat.get(QUESTION)) == [f"Hi! {CAT}", "Nice."]
    small = MeVeMemory(memory, user_id="alice", session_id="s1", token_limit=150)
    small.put_messages([user("word " * 100), model("Yes."), user(QUESTION)])
    shown = small.get()
    assert CAT in shown[0].content
    assert texts(shown[1:]) == [QUESTION]


def test_what_is_over_is_neither_shown_nor_recalled(memory, chat, clock):
    known(memory, ttl=timedelta(hours=1))
    chat.put(user("I have a dog."))
    assert CAT in str(chat.get(QUESTION))
    clock.advance(timedelta(hours=1))
    assert texts(chat.get(QUESTION)) == ["I have a dog."]
    clock.advance(timedelta(days=7))
    assert chat.get(QUESTION) == chat.get_all() == []


def test_the_policy_says_how_long_a_conversation_lives(tmp_path, clock):
    policy = Policy.from_dict({"chat_ttl": "2h"})
    with GovernedMemory.open(tmp_path / "m.db", clock=clock, policy=policy) as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s")
        chat.put(user(CAT))
        clock.advance(timedelta(hours=2))
        assert chat.get_all() == memory.list(user_id="alice") == []


@pytest.mark.parametrize(
    ("answer", "moved"), [("Your cat is called Tom.", 10), ("Cats are nice.", -5), ("Your cat is called Max.", -30)]
)
def test_an_answer_is_held_against_what_was_recalled_for_it_once(memory, chat, answer, moved):
    before = known(memory).reflection
    chat.get(QUESTION)
    chat.put_messages([user(QUESTION), model(answer)])
    assert facts(memory)[CAT] == max(0, before + moved)
    chat.put(model(answer))
    chat.get()
    chat.put(user("Thanks!"))
    chat.put(model(answer))
    assert len(judged(memory)) == 1


@pytest.mark.parametrize(
    "between",
    [
        [
            ChatMessage(
                role="assistant", blocks=[TextBlock(text="I ask Tom."), ToolCallBlock(tool_call_id="1", tool_name="t")]
            )
        ],
        [ChatMessage("Tom", role="tool", additional_kwargs={"tool_call_id": "1"})],
        [ChatMessage("Empty Response", role="assistant")],
        [ChatMessage(" ", role="assistant")],
        [user("And what about my dog?"), model("Your cat is called Tom.")],
    ],
)
def test_only_the_answer_to_that_question_counts(memory, chat, between):
    known(memory)
    chat.get(QUESTION)
    chat.put(user(QUESTION))
    chat.put_messages(between)
    assert judged(memory) == []


def test_what_did_not_fit_is_not_judged(memory):
    known(memory)
    tight = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=20)
    assert tight.get(QUESTION) == []
    tight.put_messages([user(QUESTION), model("No idea.")])
    assert judged(memory) == []


def test_after_an_answer_the_same_is_told_again_and_nothing_is_recalled(memory, chat):
    known(memory)
    chat.put(user(QUESTION))
    told = chat.get()[0].content
    chat.put(model("Your cat is called Tom."))
    recalls = memory.audit.events(action="retrieve")
    assert chat.get()[0].content == told
    assert memory.audit.events(action="retrieve") == recalls
    memory.delete("cat", user_id="alice")
    assert texts(chat.get()) == [QUESTION, "Your cat is called Tom."]


def test_the_last_recall_can_be_looked_at(memory, chat):
    known(memory)
    assert chat.recall is None
    chat.get(QUESTION)
    assert [record.id for record in chat.recall.records] == ["cat"]
    assert chat.recall.trace.candidates[0].fate == "kept"


def test_statements_are_remembered_and_questions_are_not(memory, chat):
    chat.put(user(f"Hello! {CAT} {QUESTION}"))
    chat.put(model("The cat of a friend of mine is called Felix."))
    assert set(facts(memory)) == {CAT}


def test_which_turns_are_remembered_can_be_chosen(memory):
    both = TurnRules(sources={"user": "chat_user", "assistant": "chat_assistant"})
    for rules, expected in ((None, set()), (both, {CAT, "I like cats."})):
        chat = MeVeMemory(memory, user_id="alice", session_id="s", remember=rules)
        chat.put_messages([user(CAT), model("I like cats.")])
        assert set(facts(memory)) == expected


def test_a_history_that_is_set_again_is_not_remembered_again(memory, chat):
    history = [user(CAT), model("Nice."), user("I have a dog.")]
    chat.set(history)
    assert len(facts(memory)) == 2
    ids = {r.id for r in memory.list(user_id="alice")}
    chat.set(history)
    assert {r.id for r in memory.list(user_id="alice")} == ids
    for shorter in (history[1:], [*history, user("I live in Oslo.")], history[:1]):
        chat.set(shorter)
        assert texts(chat.get_all()) == texts(shorter)
    assert sorted(r.text for r in memory.list(user_id="alice") if r.text) == [
        "I have a dog.", "I live in Oslo.", CAT,
    ]  # fmt: skip


def test_what_was_put_is_not_remembered_again_when_it_is_set(memory, chat):
    chat.put_messages([user(CAT), model("Nice.")])
    for history in ([user(CAT), model("Nice."), user("And?")], [model("Hello!"), user(CAT)]):
        chat.set(history)
        assert [r.text for r in memory.list(user_id="alice") if r.text] == [CAT]
    chat.set([user(CAT), user(CAT)])
    assert [r.text for r in memory.list(user_id="alice") if r.text] == [CAT, CAT]


def test_what_was_said_again_is_remembered_again(memory, chat, clock):
    chat.put(user(CAT))
    clock.advance(timedelta(days=8))
    chat.put(user(CAT))
    assert set(facts(memory)) == {CAT}


def test_a_reset_takes_what_the_session_left_behind_and_nothing_else(memory, chat):
    known(memory)
    chat.put_messages([user("I have a dog."), model("Nice.")])
    MeVeMemory(memory, user_id="alice", session_id="s2").put(user("I live in Oslo."))
    MeVeMemory(memory, user_id="bob", session_id="s1").put(user("I live in Rome."))
    chat.reset()
    assert chat.get_all() == []
    assert set(facts(memory)) == {CAT, "I live in Oslo."}
    assert set(facts(memory, "bob")) == {"I live in Rome."}


def test_what_is_on_hold_stays_through_a_reset(memory, chat):
    chat.put(user("I have a dog."))
    [said] = [r for r in memory.list(user_id="alice") if r.source == "message"]
    memory.hold(said.id, user_id="alice")
    with pytest.raises(HoldError):
        chat.reset()
    assert texts(chat.get_all()) == ["I have a dog."]
    assert set(facts(memory)) == {"I have a dog."}
    memory.release(said.id, user_id="alice")
    chat.reset()
    assert memory.list(user_id="alice") == []


def test_messages_come_back_as_they_were_and_are_the_stores_too(memory, chat):
    said = [
        ChatMessage(role="user", blocks=[TextBlock(text="Look!"), ImageBlock(image=b"\x89PNG\r\n", url=None)]),
        ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name="t", tool_kwargs={"a": [1, None]})]
        ),
        ChatMessage("seen", role="tool", additional_kwargs={"tool_call_id": "1", "name": "t"}),
        model("Fine."),
    ]
    before = [message.model_copy(deep=True) for message in said]
    chat.put_messages(said)
    assert said == before
    assert chat.get_all() == said
    assert chat.get() == said
    assert asyncio.run(MeVeChatStore(memory, user_id="alice").get_messages("s1")) == said
    with pytest.raises(PassageError):
        chat.put_messages([user("one"), ChatMessage("two", additional_kwargs={"odd": object()})])
    assert len(chat.get_all()) == 4


def test_long_conversations_are_read_from_their_end(memory, chat):
    turns = [user("A?") if n % 2 == 0 else model(f"Answer {n}.") for n in range(400)]
    chat.put_messages([ChatMessage("Be brief.", role="system"), *turns])
    read = []
    page = memory.messages.page

    class Watched(type(memory.messages)):
        def page(self, *args, **kwargs):
            found = page(*args, **kwargs)
            read.extend(found)
            return found

    memory.messages = Watched(*(getattr(memory.messages, name) for name in ("_kit", "_searcher", "_reflector")))
    short = MeVeMemory(memory, user_id="alice", session_id="s1", token_limit=300)
    shown = short.get()
    assert (shown[0].content, shown[-1].content) == ("Be brief.", "Answer 399.")
    assert len(read) < 100
    read.clear()
    assert len(chat.get()) == 401
    assert len(read) == 401


def test_copies_and_pickles_are_of_the_same_session(chat, memory):
    chat.put(user(CAT))
    assert copy.deepcopy(chat).memory is memory
    for again in (pickle.loads(pickle.dumps(chat)), chat.model_copy()):
        assert (again.memory is memory, texts(again.get_all())) == (True, [CAT])


def test_a_reference_names_file_and_session_and_opens_them_anew_where_nobody_has(tmp_path, clock):
    rules = TurnRules(sources={"user": "chat_user", "tool": "api_result"}, most=3)
    policy = Policy.from_dict({"chat_ttl": "90m"})
    with GovernedMemory.open(tmp_path / "m.db", policy=policy) as memory:
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
    with GovernedMemory.open(tmp_path / "m.db") as other:
        assert MeVeMemory.from_dict(data).memory is not other
        at_hand(other)
        assert MeVeMemory.from_dict(data).memory is other


def test_what_can_not_be_written_down_says_so(memory):
    for options, told in (
        ({"remember": TurnRules(facts=lambda text: [])}, "function of its own"),
        ({"search": {"within": timedelta(days=1)}}, "can't be written down"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            MeVeMemory(memory, user_id="alice", **options).to_dict()
    with pytest.raises(ConfigurationError, match="no file is named"):
        MeVeMemory.from_dict({"user_id": "alice"})
    with pytest.raises(PolicyError):
        MeVeMemory.from_dict({"file": "m.db", "policy": {"odd": 1}, "user_id": "alice"})


def test_a_session_goes_on_in_another_process(tmp_path):
    code = (
        "import json, sys\n"
        "from llama_index.core.base.llms.types import ChatMessage\n"
        "from llama_index_meve import MeVeMemory\n"
        "chat = MeVeMemory.from_dict(json.loads(sys.stdin.read()))\n"
        "assert [m.content for m in chat.get_all()] == ['My cat is called Tom.']\n"
        "chat.put(ChatMessage('Nice.', role='assistant'))\n"
        "chat.memory.close()\n"
    )
    with GovernedMemory.open(tmp_path / "m.db") as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s1")
        chat.put(user(CAT))
        done = subprocess.run(
            [sys.executable, "-c", code], input=chat.to_json(), text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert texts(chat.get_all()) == [CAT, "Nice."]


async def test_the_event_loop_goes_on_while_memory_works(memory):
    """Fifty at once, and while they are at work the loop comes by again and again."""
    chat = MeVeMemory(memory, user_id="alice", session_id="s")
    here, elsewhere = threading.get_ident(), set()
    add, page, reads = memory.messages.add, memory.messages.page, set()

    class Watched(type(memory.messages)):
        def add(self, *args, **kwargs):
            elsewhere.add(threading.get_ident())
            time.sleep(0.005)
            return add(*args, **kwargs)

        def page(self, *args, **kwargs):
            reads.add(threading.get_ident())
            return page(*args, **kwargs)

    memory.messages = Watched(*(getattr(memory.messages, name) for name in ("_kit", "_searcher", "_reflector")))
    rounds = 0

    async def going_round():
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    beside = asyncio.create_task(going_round())
    await asyncio.gather(*(chat.aput(user(f"Message {n}.")) for n in range(50)))
    beside.cancel()
    assert rounds > 50
    assert elsewhere
    assert here not in elsewhere
    for call in (chat.aget, chat.aget_all, chat.areset):
        await call()
    await chat.aset([user(CAT)])
    await chat.aput_messages([model("Nice.")])
    assert texts(await chat.aget_all()) == [CAT, "Nice."]
    assert reads
    assert here not in reads


def test_threads_share_a_session_and_lose_nothing(memory, chat):
    def talk(n):
        for i in range(5):
            chat.get(QUESTION)
            chat.put_messages([user(f"Thing {n} {i} is mine."), model("Fine.")])

    threads = [threading.Thread(target=talk, args=[n]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(chat.get_all()) == 60
    assert len(facts(memory)) == 30
    shown = texts(chat.get_all())
    assert all(answer == "Fine." for answer in shown[1::2])


def test_what_was_recalled_is_told_to_who_listens(memory, chat):
    from llama_index_meve.events import MeVeTraceEvent
    from tests.llama_index_skin.conftest import Listener, listening

    known(memory)
    with listening(Listener(heard=[])) as listener:
        chat.get(QUESTION)
    [event] = [e for e in listener.heard if isinstance(e, MeVeTraceEvent)]
    assert "Tom" not in str(event)
    assert event.trace["candidates"][0]["id"] == "cat"


class Unplugged(WordEmbedder):
    """An embedder that fails while it is unplugged."""

    unplugged = False

    def embed_query(self, text):
        if self.unplugged:
            raise OSError("unplugged")
        return super().embed_query(text)

    def embed_passages(self, texts):
        if self.unplugged or any("always fails" in text for text in texts):
            raise OSError("unplugged")
        return super().embed_passages(texts)


@pytest.fixture
def failing(tmp_path):
    embedder = Unplugged()
    with GovernedMemory.open(tmp_path / "failing.db", embedder=embedder) as memory:
        yield memory, embedder


def test_a_conversation_goes_on_where_nothing_can_be_recalled(failing):
    memory, embedder = failing
    chat = MeVeMemory(memory, user_id="alice", session_id="s")
    chat.put(user("Hello!"))
    embedder.unplugged = True
    with pytest.warns(MemoryLostWarning, match="recalling from memory failed"):
        assert texts(chat.get(QUESTION)) == ["Hello!"]
    strict = MeVeMemory(memory, user_id="alice", session_id="s", on_error="raise")
    with pytest.raises(ModelError):
        strict.get(QUESTION)


def test_what_can_never_be_remembered_keeps_nothing_else_from_it(failing):
    memory, _ = failing
    chat = MeVeMemory(memory, user_id="alice", session_id="s")
    with pytest.warns(MemoryLostWarning, match="remembering what was said failed"):
        chat.put_messages([user("This always fails."), user(CAT)])
    assert set(facts(memory)) == {CAT}
    for _ in range(2):
        with pytest.warns(MemoryLostWarning):
            chat.put(model("Nice."))
    chat.put(model("Nice."))
    assert len(chat.get_all()) == 5


def test_what_can_not_be_kept_raises_whatever_was_chosen(memory, chat):
    memory.close()
    with pytest.raises(StorageError):
        chat.put(user(CAT))
    with pytest.raises(StorageError):
        chat.get_all()
