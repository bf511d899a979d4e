"""MeVeDialogueBlock, and chat messages as a dialogue."""

import pytest
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory import Memory

from llama_index_meve import MeVeDialogueBlock, dialogue_from_messages
from meve.errors import ValidationError
from meve.testing.fakes import CountingEmbedder, WordCounter, WordEmbedder
from tests.llama_index_integration.chat_helpers import model, system, user


def make_block(**options):
    return MeVeDialogueBlock(**{"embedder": WordEmbedder(), "tokens": WordCounter(), **options})


def test_messages_become_turns_without_system_messages():
    turns = dialogue_from_messages([system("Be kind."), user("I live in Oslo."), model("Noted.")]).turns
    assert [(t.speaker, t.text) for t in turns] == [("user", "I live in Oslo."), ("assistant", "Noted.")]
    with pytest.raises(ValidationError, match="must be LlamaIndex ChatMessage objects"):
        dialogue_from_messages(["hi"])


def test_every_role_maps_to_a_speaker():
    messages = [
        ChatMessage("Be kind.", role="developer"), ChatMessage("a", role="model"), ChatMessage("b", role="chatbot"),
        ChatMessage("20 mm", role="tool"),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": []}),
        ChatMessage(role="user", blocks=[TextBlock(text="c"), TextBlock(text="d")]),
    ]  # fmt: skip
    assert [(t.speaker, t.text) for t in dialogue_from_messages(messages).turns] == [
        ("assistant", "a"), ("assistant", "b"), ("tool", "20 mm"), ("assistant", ""), ("user", "c\nd"),
    ]  # fmt: skip


async def test_block_returns_relevant_turns_in_order():
    block = make_block()
    await block.aput([user("the zoo opened in 2001"), model("cats"), user("zebra 1999")])
    question = [user("cats"), model("?"), user("the zebra zoo")]
    assert await block.aget(question) == "user: the zoo opened in 2001\nuser: zebra 1999"
    assert await block.aget([]) == await block.aget(None) == ""


async def test_putting_messages_embeds_nothing():
    embedder = CountingEmbedder(WordEmbedder())
    block = make_block(embedder=embedder)
    await block.aput([user("zebra 1999")])
    assert embedder.calls.passages == []


async def test_sessions_are_isolated():
    block = make_block()
    await block.aput([user("zebra 1999")], session_id="one")
    question = [user("the zebra")]
    assert await block.aget(question, session_id="one") == "user: zebra 1999"
    assert await block.aget(question, session_id="two") == await block.aget(question) == ""


async def test_least_recently_used_session_is_dropped():
    block, question = make_block(max_turns=4), [user("the zebra")]
    for session in ("one", "two"):
        await block.aput([user("zebra 1999"), user("ok")], session_id=session)
    assert await block.aget(question, session_id="one")
    await block.aput([user("zebra 2001")], session_id="three")
    assert [bool(await block.aget(question, session_id=i)) for i in ("one", "two", "three")] == [True, False, True]
    for n in range(50):
        await block.aget(question, session_id=f"{n}")
    assert len(block._sessions) == 2
    block.forget("one")
    assert await block.aget(question, session_id="one") == ""


async def test_block_keeps_its_limit_and_truncates_whole_turns():
    block = make_block(max_tokens=7)
    await block.aput([user("zebra 1999"), user("zebra zoo\nin 2001 too")])
    text = await block.aget([user("the zebra " * 40)])
    assert 0 < WordCounter().count(text) <= 7
    whole = "user: zebra 1999\nuser: zebra zoo\n  in 2001 too"
    assert await block.atruncate(whole, 1) == "user: zebra zoo\n  in 2001 too"
    assert await block.atruncate("user: zebra zoo\n  in 2001 too\nuser: zebra 1999", 1) == "user: zebra 1999"
    assert await block.atruncate(whole, 100) is None


async def test_memory_returns_flushed_turns_in_the_system_message():
    memory = Memory.from_defaults(
        session_id="s", token_limit=40, chat_history_token_ratio=0.5, token_flush_size=5, memory_blocks=[make_block()],
        tokenizer_fn=str.split,
    )  # fmt: skip
    await memory.aput(user("zebra 1999"))
    for n in range(12):
        await memory.aput(user(f"how {n}"))
        await memory.aput(model("yes yes yes"))
    await memory.aput(user("the zebra"))
    messages = await memory.aget()
    assert "zebra 1999" in str(messages[0].content)
    assert messages[0].role == "system"
    await memory.sql_store._async_engine.dispose()


def test_negative_window_is_rejected():
    with pytest.raises(ValueError, match="window must be a whole number of at least 0, got -1"):
        make_block(window=-1)


@pytest.mark.parametrize(
    ("options", "messages"), [({"maxtokens": 3}, "maxtokens"), ({"threshold": 7}, "between 0 and 1, got 7")]
)
def test_unknown_or_invalid_option_is_rejected(options, messages):
    with pytest.raises(ValueError, match=messages):
        make_block(**options)
