"""The token limit of MeVeMemory holds for any messages, blocks and recalls."""

from contextlib import nullcontext
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine

from llama_index_meve import MeVeMemory, _session_history
from llama_index_meve._history_truncation import truncate_history
from llama_index_meve._message_content import answered_call_id, role_of, tool_call_ids
from llama_index_meve._message_counter import MessageCounter
from llama_index_meve._message_identity import MessageIdentity
from llama_index_meve._session_history import SessionHistory
from meve.components.tokenizers.function import FunctionTokens
from meve.errors import ConfigurationError
from meve.memory import GovernedMemory
from meve.memory.messages.messages import Messages
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration.chat_helpers import CAT, QUESTION, ScriptedLLM

MEDIA = {"image": 9, "audio": 11, "video": 13, "document": 15}
COUNTERS = {"words": WordCounter(), "letters": FunctionTokens(len)}

WORDS = st.sampled_from(["", " ", "cat", "cat cat", "a\x00b", "\ud800", "word " * 40, "x" * 90, "<memory>", QUESTION])
URL = "http://x/y"
PLAIN = st.one_of(
    WORDS.map(lambda text: TextBlock(text=text)),
    st.just(types.ImageBlock(url=URL)),
    st.just(types.DocumentBlock(url=URL, title="a title")),
)
BLOCK = st.one_of(
    PLAIN,
    st.just(types.AudioBlock(url=URL)),
    st.just(types.VideoBlock(url=URL)),
    st.just(types.CachePoint(cache_control=types.CacheControl(type="ephemeral"))),
    st.builds(lambda text, n: types.ThinkingBlock(content=text, num_tokens=n), WORDS, st.sampled_from([None, 3, 60])),
    st.builds(lambda text: types.ThinkingBlock(content=None, additional_information={"signature": text}), WORDS),
    st.builds(lambda text, inner: types.CitableBlock(title=text, source=text, content=[inner]), WORDS, PLAIN),
    st.builds(
        lambda text, inner: types.CitationBlock(
            cited_content=inner, source=text, title=text, additional_location_info={"page": 1}
        ),
        WORDS,
        WORDS.map(lambda text: TextBlock(text=text)),
    ),
)
CALL = st.builds(
    lambda name, text: types.ToolCallBlock(tool_call_id=name, tool_name="look", tool_kwargs={"at": text}),
    st.sampled_from(["1", "2", None]),
    WORDS.filter(lambda text: "\ud800" not in text),
)
KWARGS = st.sampled_from([{}, {}, {"name": "somebody or other"}, {"deep": {"n": [1, 2, 3]}}])


def message(role, blocks, kwargs):
    return ChatMessage(role=role, blocks=blocks, additional_kwargs=dict(kwargs))


SAID = st.one_of(
    st.builds(message, st.sampled_from(["user", "system", "developer"]), st.lists(BLOCK, max_size=3), KWARGS),
    st.builds(message, st.sampled_from(["assistant", "model"]), st.lists(st.one_of(BLOCK, CALL), max_size=3), KWARGS),
    st.builds(
        lambda name, blocks: message("tool", blocks, {"tool_call_id": name} if name else {}),
        st.sampled_from(["1", "2", None]),
        st.lists(BLOCK, max_size=2),
    ),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    file = tmp_path_factory.mktemp("limit") / "memory.db"
    with GovernedMemory.open(file, embedder=WordEmbedder(), tokens=WordCounter()) as memory:
        for fact in (CAT, *(f"My cat number {n} is called Tom{n}." for n in range(9))):
            memory.add(fact, user_id="alice", source="doc", policy_class="canonical")
        yield memory


NO_TEXT = {"block_type", "cache_control", "role", "url", "tool_call_id"}
"""Fields whose text models are not sent."""


def strings(value):
    """Return all text in a value, at any depth."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [each for name, each in value.items() if name not in NO_TEXT]
    return [text for each in value for text in strings(each)] if isinstance(value, list) else []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(
    messages=st.lists(SAID, max_size=8),
    limit=st.integers(1, 400),
    initial_tokens=st.sampled_from([None, 0, 7, 500]),
    question=st.sampled_from([None, QUESTION, "cat?", " "]),
    counter_name=st.sampled_from(sorted(COUNTERS)),
    method=st.sampled_from(["system", "user"]),
)
def test_token_limit_holds_for_any_history(shared, messages, limit, initial_tokens, question, counter_name, method):
    options = {
        "insert_method": method,
        "token_limit": limit,
        "tokens": COUNTERS[counter_name],
        "media_tokens": MEDIA,
        "remember": None,
    }
    chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, **options)
    chat.put_messages(messages)
    if (initial_tokens or 0) >= limit:
        with pytest.raises(ValueError, match="no message fits"):
            chat.get(question, initial_token_count=initial_tokens)
        return
    room, shown = max(0, limit - (initial_tokens or 0)), []
    counter = MessageCounter(COUNTERS[counter_name], MEDIA)
    said = [m for m in chat.get_all() if role_of(m) == "user"]
    nothing_fits = said and counter.truncate_message(said[-1], room) is None
    with pytest.raises(ConfigurationError, match="must leave room") if nothing_fits else nullcontext():
        shown = chat.get(question) if initial_tokens is None else chat.get(question, initial_token_count=initial_tokens)
    assert sum(map(counter.count_message, shown)) <= room
    assert sum(COUNTERS[counter_name].count(text) for m in shown for text in strings(m.model_dump())) <= room
    media = [block.block_type for m in shown for block in m.blocks if block.block_type in MEDIA]
    assert sum(MEDIA[kind] for kind in media) <= room
    instructions = [m for m in shown if role_of(m) == "system"]
    assert instructions == shown[: len(instructions)]
    assert len(instructions) <= 1
    turns = shown[len(instructions) :]
    assert [role_of(m) for m in turns[:1]] in ([], ["user"])
    call_ids = set()
    for n, each in enumerate(turns):
        if role_of(each) == "tool":
            assert tool_call_ids(turns[n - 1]) or role_of(turns[n - 1]) == "tool"
            assert not answered_call_id(each) or answered_call_id(each) in call_ids or "" in call_ids
        else:
            call_ids = set(tool_call_ids(each))


def test_recall_is_part_of_the_limited_messages(shared):
    """Otherwise the test above would prove nothing."""
    chat = MeVeMemory(shared, user_id="alice", token_limit=200, tokens=WordCounter())
    assert CAT in chat.get(QUESTION)[0].content


@pytest.mark.parametrize("method", ["system", "user"])
@pytest.mark.parametrize("messages", [[], [ChatMessage("Be brief.", role="system")], [ChatMessage("Hello!")]])
def test_recall_fits_every_limit(shared, messages, method):
    shown = {}
    options = {"tokens": WordCounter(), "remember": None, "insert_method": method, "search": {"limit": None}}
    for limit in range(8, 200):
        options["token_limit"] = limit
        chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, **options)
        chat.put_messages(messages)
        shown[limit] = chat.get(QUESTION)
        assert sum(map(MessageCounter(WordCounter()).count_message, shown[limit])) <= limit
    assert str(shown[199]).count("My cat number") > 5


def test_limit_that_fits_nothing_of_the_last_message_raises(shared):
    """A model must not be asked without a question."""
    chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, token_limit=5, remember=None)
    assert chat.get() == []
    chat.put(ChatMessage("This message has more words than fit."))
    with pytest.raises(ConfigurationError, match="token_limit must leave room for a part of the user's last message"):
        chat.get()
    chat.put(ChatMessage(role="user", blocks=[types.ImageBlock(url=URL)]))
    with pytest.raises(ConfigurationError, match="token_limit must leave room for a part of the user's last message"):
        chat.get()


def test_agent_sees_the_question_however_many_steps_it_took_since(shared):
    chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, token_limit=200, tokens=WordCounter())
    chat.put_messages([ChatMessage("Be brief.", role="system"), ChatMessage("Find the cheapest flight.", role="user")])
    for n in range(80):
        call = types.ToolCallBlock(tool_call_id=str(n), tool_name="look", tool_kwargs={"page": n})
        found = ChatMessage("a flight " * 10, role="tool", additional_kwargs={"tool_call_id": str(n)})
        chat.put_messages([ChatMessage(role="assistant", blocks=[call]), found])
        shown = chat.get()
    system, question, *steps = shown
    assert (system.content.split("\n")[0], question.content) == ("Be brief.", "Find the cheapest flight.")
    assert answered_call_id(steps[-1]) == "79"


def agent_steps(count, start=0):
    """Return the calls of a tool and their results."""
    for n in map(str, range(start, start + count)):
        call = types.ToolCallBlock(tool_call_id=n, tool_name="look", tool_kwargs={"page": n})
        yield ChatMessage(role="assistant", blocks=[call])
        yield ChatMessage(f"flight {n} " * 5, role="tool", additional_kwargs={"tool_call_id": n})


@pytest.mark.parametrize("steps", [3, 60, 150])
def test_follow_up_sees_question_and_answer_of_a_long_agent_turn(shared, steps):
    chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, token_limit=200, tokens=WordCounter())
    answer = ChatMessage("It is flight 7.", role="assistant")
    chat.put_messages([ChatMessage("Find the cheapest flight."), *agent_steps(steps), answer, ChatMessage("When?")])
    _, question, *_, last, follow_up = chat.get()
    assert [each.content for each in (question, last, follow_up)] == [
        "Find the cheapest flight.",
        "It is flight 7.",
        "When?",
    ]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), limit=st.sampled_from([40, 90, 300]))
def test_reading_the_end_shows_the_same_as_reading_the_session(shared, monkeypatch, data, limit):
    """Also after messages were added by another object, and after the user's last message was erased."""
    for name in ("_FIRST_PAGE", "_SCAN"):
        monkeypatch.setattr(_session_history, name, 4)
    session, counter = uuid4().hex, MessageCounter(WordCounter())
    readers = [SessionHistory(shared, "alice", session) for _ in range(2)]
    for _ in range(data.draw(st.integers(1, 3))):
        batch = []
        for n in range(data.draw(st.integers(1, 3))):
            said = [ChatMessage(f"question {n}", role="user")] if data.draw(st.booleans()) else []
            answer = [ChatMessage(f"answer {n}", role="assistant")] if data.draw(st.booleans()) else []
            batch += [*said, *agent_steps(data.draw(st.sampled_from([0, 1, 5, 12]))), *answer]
        readers[0].add(batch)
        spoken = [m for m in shared.messages.page(session, user_id="alice") if m.value["role"] == "user"]
        if spoken and data.draw(st.booleans()):
            shared.messages.pop(session, user_id="alice", ids=[spoken[-1].id])
        for reader in readers[: data.draw(st.integers(0, 2))]:
            everything = truncate_history(reader.messages(), counter, limit, limit // 4)
            assert reader.window(counter, limit, limit // 4, MessageIdentity()).turns == everything.turns


def test_reading_during_an_agents_run_does_not_read_the_run(shared, monkeypatch):
    read = []
    page = Messages.page

    def counted(*args, **options):
        read.append(found := page(*args, **options))
        return found

    chat = MeVeMemory(shared, user_id="alice", session_id=uuid4().hex, token_limit=200, tokens=WordCounter())
    chat.put_messages([ChatMessage("Find the cheapest flight."), *agent_steps(150)])
    chat.get()
    chat.put_messages(list(agent_steps(1, start=150)))
    monkeypatch.setattr(Messages, "page", counted)
    assert chat.get()[-1].content.startswith("flight 150")
    assert sum(map(len, read)) < 100


def test_standing_wish_stays_in_the_prompt_however_many_steps_an_agent_takes(tmp_path):
    with GovernedMemory.open(tmp_path / "memory.db", embedder=WordEmbedder(), tokens=WordCounter()) as memory:
        memory.add("Always answer in German.", user_id="alice", source="chat_user", policy_class="instruction")
        chat = MeVeMemory(memory, user_id="alice", token_limit=600, tokens=WordCounter())
        chat.put(ChatMessage("Find the cheapest flight.", role="user"))
        for n in range(40):
            call = types.ToolCallBlock(tool_call_id=str(n), tool_name="look", tool_kwargs={"page": n})
            found = ChatMessage("a flight " * 20, role="tool", additional_kwargs={"tool_call_id": str(n)})
            chat.put_messages([ChatMessage(role="assistant", blocks=[call]), found])
            shown = chat.get()
            assert "Always answer in German." in shown[0].content, n
            assert sum(map(MessageCounter(WordCounter()).count_message, shown)) <= 600


def test_chat_engine_subtracts_its_prompt_from_the_limit(shared):
    llm = ScriptedLLM(reply=lambda messages: "I see.")
    options = {"tokens": WordCounter(), "remember": None, "search": {"limit": 1}}
    chat = MeVeMemory(shared, user_id="alice", token_limit=60, **options)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=chat, system_prompt="word " * 40)
    for n in range(6):
        engine.chat(f"This is message {n} of several.")
        assert sum(map(MessageCounter(WordCounter()).count_message, llm.prompts[-1][1:])) <= 20
    full = SimpleChatEngine.from_defaults(llm=llm, memory=chat, system_prompt="word " * 60)
    with pytest.raises(ValueError, match="got 60 of 60: no message fits"):
        full.chat("This is one message more.")
