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
from meve.testing.fakes import CountedEmbedder, WordCounter, WordEmbedder

HISTORY = [
    SystemMessage("Be kind."),
    HumanMessage("I live in Oslo."),
    AIMessage([{"type": "text", "text": "Noted."}]),
    HumanMessage("zebra 1999", name="Ana"),
]


def made(**options):
    return MeVeSmallContext(**{"embedder": WordEmbedder(), "tokens": WordCounter(), **options})


def test_messages_are_turns_with_their_speakers():
    """Names before roles; no system messages."""
    turns = dialogue_from_messages(HISTORY, tokens=WordCounter()).turns
    assert [(t.speaker, t.text) for t in turns] == [
        ("user", "I live in Oslo."), ("assistant", "Noted."), ("Ana", "zebra 1999"),
    ]  # fmt: skip
    with pytest.raises(ValidationError, match="messages"):
        dialogue_from_messages(["hi"])


def test_every_kind_of_message_has_its_speaker():
    """Chunks, tools, roles of one's own; instructions are no turns, whole or in chunks."""
    told = dialogue_from_messages(
        [
            HumanMessageChunk("a"), AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
            ToolMessage("20 mm", tool_call_id="1"), ToolMessageChunk("b", tool_call_id="1"), AIMessageChunk("c"),
            FunctionMessage("d", name="rain"), ChatMessage("e", role="moderator"), SystemMessageChunk("Be kind."),
            ChatMessageChunk("f", role="system"),
        ]
    ).turns  # fmt: skip
    assert [(t.speaker, t.text) for t in told] == [
        ("user", "a"), ("assistant", ""), ("tool", "20 mm"), ("tool", "b"), ("assistant", "c"), ("rain", "d"),
        ("moderator", "e"),
    ]  # fmt: skip


def test_histories_that_begin_alike_stay_apart():
    """Somebody else asks between another's history and his question: his context holds what his own history says."""
    small = made(recent=5)
    one = [HumanMessage("hi")]
    other = [HumanMessage("hi"), HumanMessage("my secret is 1999")]

    class Interrupted(dict):
        def __getitem__(self, key):
            assert "secret" in small.invoke({"question": "what?", "history": other})
            return super().__getitem__(key)

    assert small.context(Interrupted(question="what?", history=one)).text == "what?\n\nLast said:\nuser: hi"
    texts = small.batch([{"question": "what?", "history": h} for h in (one, other) * 20])
    assert [("1999" in text) for text in texts] == [False, True] * 20


def test_a_stream_gives_it_whole():
    """And so does a chain; settings of runnables are taken."""
    given = {"question": "the zebra", "history": HISTORY}
    small = made(recent=0).with_config(tags=["small"]).with_retry()
    assert "".join(small.stream(given)) == small.invoke(given)
    assert (small | str.upper).invoke(given) == small.invoke(given).upper()


def test_it_makes_text_for_a_prompt():
    """In a chain too, and its account is at hand."""
    small = made(recent=0, max_tokens=20)
    given = {"question": "the zebra", "history": HISTORY}
    assert small.invoke(given) == "the zebra\n\nSaid before:\nAna: zebra 1999"
    assert small.context(given).trace.priorities[2].turns == (2,)
    assert small.invoke({"question": "the zebra"}) == "the zebra"


async def test_async_and_batches_give_the_same():
    """One code for all."""
    small = made(recent=0)
    given = {"question": "the zebra", "history": HISTORY}
    assert await small.ainvoke(given) == small.invoke(given) == small.batch([given])[0]


def test_a_history_that_goes_on_is_not_read_anew():
    """Each message is embedded once."""
    embedder = CountedEmbedder(WordEmbedder())
    small = made(embedder=embedder)
    small.invoke({"question": "zebra", "history": HISTORY[:3]})
    small.invoke({"question": "zebra", "history": HISTORY})
    assert len(embedder.calls.passages) == 3


@pytest.mark.parametrize(("max_dialogues", "embedded"), [(1, 6), (2, 3)])
def test_so_many_histories_are_remembered(max_dialogues, embedded):
    """One that had to go is read anew."""
    embedder = CountedEmbedder(WordEmbedder())
    small = made(embedder=embedder, max_dialogues=max_dialogues)
    for history in (
        [HumanMessage("a"), HumanMessage("b")],
        [HumanMessage("c")],
        [HumanMessage("a"), HumanMessage("b")],
    ):
        small.invoke({"question": "zebra", "history": history})
    small.invoke({"question": "zebra", "history": [HumanMessage("c")]})
    assert len(embedder.calls.passages) == embedded


def test_keys_can_be_named():
    """As the chain calls them."""
    small = made(question_key="input", history_key="chat", recent=0)
    assert "1999" in small.invoke({"input": "the zebra", "chat": HISTORY})


@pytest.mark.parametrize("wrong", ["zebra", {}, {"history": HISTORY}, {"question": "zebra", "history": ["hi"]}])
def test_other_input_is_refused(wrong):
    """With a word on what would do."""
    with pytest.raises(ValidationError):
        made().invoke(wrong)


def test_options_are_checked_when_it_is_made():
    """Unknown ones, and values out of range; a question that is too long is the caller's to see."""
    with pytest.raises(ConfigurationError, match="unknown option 'windows' of a small context: did you mean 'window'"):
        made(windows=3)
    with pytest.raises(ConfigurationError, match="window"):
        made(window=-3)
    with pytest.raises(QueryError, match="never cut"):
        made(max_tokens=1).invoke({"question": "two words"})
