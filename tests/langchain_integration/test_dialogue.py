"""Messages as a dialogue, and small contexts as a runnable."""

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_meve import MeVeSmallContext, dialogue_from_messages
from meve.errors import ConfigurationError, QueryError, ValidationError
from meve.testing.fakes import CountingEmbedder, WordCounter, WordEmbedder

HISTORY = [
    SystemMessage("Be kind."),
    HumanMessage("I live in Oslo."),
    AIMessage([{"type": "text", "text": "Noted."}]),
    HumanMessage("zebra 1999", name="Ana"),
]


def make_small_context(**options):
    return MeVeSmallContext(**{"embedder": WordEmbedder(), "tokens": WordCounter(), **options})


def test_message_speaker_is_name_or_role():
    """System messages are left out."""
    turns = dialogue_from_messages(HISTORY, tokens=WordCounter()).turns
    assert [(t.speaker, t.text) for t in turns] == [
        ("user", "I live in Oslo."), ("assistant", "Noted."), ("Ana", "zebra 1999"),
    ]  # fmt: skip
    with pytest.raises(ValidationError, match="messages"):
        dialogue_from_messages(["hi"])


def test_every_message_type_has_a_speaker():
    turns = dialogue_from_messages(
        [
            HumanMessageChunk("a"), AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
            ToolMessage("20 mm", tool_call_id="1"), ToolMessageChunk("b", tool_call_id="1"), AIMessageChunk("c"),
            FunctionMessage("d", name="rain"), ChatMessage("e", role="moderator"), SystemMessageChunk("Be kind."),
            ChatMessageChunk("f", role="system"),
        ]
    ).turns  # fmt: skip
    assert [(t.speaker, t.text) for t in turns] == [
        ("user", "a"), ("assistant", ""), ("tool", "20 mm"), ("tool", "b"), ("assistant", "c"), ("rain", "d"),
        ("moderator", "e"),
    ]  # fmt: skip


def test_histories_with_equal_beginning_stay_separate():
    """Another history is read between a history and its question."""
    small = make_small_context(recent=5)
    one = [HumanMessage("hi")]
    other = [HumanMessage("hi"), HumanMessage("my secret is 1999")]

    class Interrupted(dict):
        def __getitem__(self, key):
            assert "secret" in small.invoke({"question": "what?", "history": other})
            return super().__getitem__(key)

    assert small.context(Interrupted(question="what?", history=one)).text == "what?\n\nLast said:\nuser: hi"
    texts = small.batch([{"question": "what?", "history": h} for h in (one, other) * 20])
    assert [("1999" in text) for text in texts] == [False, True] * 20


def test_stream_and_chain_return_whole_text():
    chain_input = {"question": "the zebra", "history": HISTORY}
    small = make_small_context(recent=0).with_config(tags=["small"]).with_retry()
    assert "".join(small.stream(chain_input)) == small.invoke(chain_input)
    assert (small | str.upper).invoke(chain_input) == small.invoke(chain_input).upper()


def test_invoke_returns_text_and_context_its_trace():
    small = make_small_context(recent=0, max_tokens=20)
    chain_input = {"question": "the zebra", "history": HISTORY}
    assert small.invoke(chain_input) == "the zebra\n\nSaid before:\nAna: zebra 1999"
    assert small.context(chain_input).trace.priorities[2].turns == (2,)
    assert small.invoke({"question": "the zebra"}) == "the zebra"


async def test_async_and_batch_equal_invoke():
    small = make_small_context(recent=0)
    chain_input = {"question": "the zebra", "history": HISTORY}
    assert await small.ainvoke(chain_input) == small.invoke(chain_input) == small.batch([chain_input])[0]


def test_growing_history_embeds_each_message_once():
    embedder = CountingEmbedder(WordEmbedder())
    small = make_small_context(embedder=embedder)
    small.invoke({"question": "zebra", "history": HISTORY[:3]})
    small.invoke({"question": "zebra", "history": HISTORY})
    assert len(embedder.calls.passages) == 3


@pytest.mark.parametrize(("max_dialogues", "embedded"), [(1, 6), (2, 3)])
def test_dropped_history_is_embedded_again(max_dialogues, embedded):
    embedder = CountingEmbedder(WordEmbedder())
    small = make_small_context(embedder=embedder, max_dialogues=max_dialogues)
    for history in (
        [HumanMessage("a"), HumanMessage("b")],
        [HumanMessage("c")],
        [HumanMessage("a"), HumanMessage("b")],
    ):
        small.invoke({"question": "zebra", "history": history})
    small.invoke({"question": "zebra", "history": [HumanMessage("c")]})
    assert len(embedder.calls.passages) == embedded


def test_input_keys_are_configurable():
    small = make_small_context(question_key="input", history_key="chat", recent=0)
    assert "1999" in small.invoke({"input": "the zebra", "chat": HISTORY})


@pytest.mark.parametrize("wrong", ["zebra", {}, {"history": HISTORY}, {"question": "zebra", "history": ["hi"]}])
def test_invalid_input_is_refused(wrong):
    with pytest.raises(ValidationError):
        make_small_context().invoke(wrong)


def test_invalid_options_are_refused_on_creation():
    with pytest.raises(ConfigurationError, match="unknown option 'windows' of a small context: did you mean 'window'"):
        make_small_context(windows=3)
    with pytest.raises(ConfigurationError, match="window"):
        make_small_context(window=-3)
    with pytest.raises(QueryError, match="never cut"):
        make_small_context(max_tokens=1).invoke({"question": "two words"})
