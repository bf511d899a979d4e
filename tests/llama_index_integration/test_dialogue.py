"""Chat messages as a dialogue, and as a memory block."""

import pytest
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory import Memory

from llama_index_meve import MeVeDialogueBlock, dialogue_from_messages
from meve.errors import ValidationError
from meve.testing.fakes import CountedEmbedder, WordCounter, WordEmbedder


def said(role, text, session=None):
    return ChatMessage(role=role, content=text, additional_kwargs={"session_id": session} if session else {})


def made(**options):
    return MeVeDialogueBlock(**{"embedder": WordEmbedder(), "tokens": WordCounter(), **options})


def test_messages_are_turns_with_their_roles():
    """No system messages."""
    turns = dialogue_from_messages(
        [said("system", "Be kind."), said("user", "I live in Oslo."), said("assistant", "Noted.")]
    ).turns
    assert [(t.speaker, t.text) for t in turns] == [("user", "I live in Oslo."), ("assistant", "Noted.")]
    with pytest.raises(ValidationError, match="chat messages"):
        dialogue_from_messages(["hi"])


def test_every_role_has_its_speaker():
    """Instructions are no turns, whatever the provider calls them; a message without text says nothing."""
    told = [
        said("developer", "Be kind."), said("model", "a"), said("chatbot", "b"), said("tool", "20 mm"),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": []}),
        ChatMessage(role="user", blocks=[TextBlock(text="c"), TextBlock(text="d")]),
    ]  # fmt: skip
    assert [(t.speaker, t.text) for t in dialogue_from_messages(told).turns] == [
        ("assistant", "a"), ("assistant", "b"), ("tool", "20 mm"), ("assistant", ""), ("user", "c\nd"),
    ]  # fmt: skip


async def test_it_brings_back_what_the_last_question_needs():
    """In the order in which it was said, without the question."""
    block = made()
    await block.aput([said("user", "the zoo opened in 2001"), said("assistant", "cats"), said("user", "zebra 1999")])
    asked = [said("user", "cats"), said("assistant", "?"), said("user", "the zebra zoo")]
    assert await block.aget(asked) == "user: the zoo opened in 2001\nuser: zebra 1999"
    assert await block.aget([]) == await block.aget(None) == ""


async def test_nothing_is_computed_before_a_question():
    """Putting is free."""
    embedder = CountedEmbedder(WordEmbedder())
    block = made(embedder=embedder)
    await block.aput([said("user", "zebra 1999")])
    assert embedder.calls.passages == []


async def test_sessions_stay_apart():
    """What one said, no other is told."""
    block = made()
    await block.aput([said("user", "zebra 1999")], session_id="one")
    asked = [said("user", "the zebra")]
    assert await block.aget(asked, session_id="one") == "user: zebra 1999"
    assert await block.aget(asked, session_id="two") == await block.aget(asked) == ""


async def test_sessions_are_kept_under_one_bound():
    """The one that was told or asked longest ago goes; a question alone makes none."""
    block, asked = made(max_turns=4), [said("user", "the zebra")]
    for session in ("one", "two"):
        await block.aput([said("user", "zebra 1999"), said("user", "ok")], session_id=session)
    assert await block.aget(asked, session_id="one")
    await block.aput([said("user", "zebra 2001")], session_id="three")
    assert [bool(await block.aget(asked, session_id=i)) for i in ("one", "two", "three")] == [True, False, True]
    for n in range(50):
        await block.aget(asked, session_id=f"{n}")
    assert len(block._sessions) == 2
    block.forget("one")
    assert await block.aget(asked, session_id="one") == ""


async def test_its_limit_is_of_what_it_brings():
    """Whatever the question's length; and it is cut down on request, by whole turns."""
    block = made(max_tokens=7)
    await block.aput([said("user", "zebra 1999"), said("user", "zebra zoo\nin 2001 too")])
    text = await block.aget([said("user", "the zebra " * 40)])
    assert 0 < WordCounter().count(text) <= 7
    whole = "user: zebra 1999\nuser: zebra zoo\n  in 2001 too"
    assert await block.atruncate(whole, 1) == "user: zebra zoo\n  in 2001 too"
    assert await block.atruncate("user: zebra zoo\n  in 2001 too\nuser: zebra 1999", 1) == "user: zebra 1999"
    assert await block.atruncate(whole, 100) is None


async def test_it_works_in_a_memory():
    """What falls out of the short term comes back in the system message."""
    memory = Memory.from_defaults(
        session_id="s", token_limit=40, chat_history_token_ratio=0.5, token_flush_size=5, memory_blocks=[made()],
        tokenizer_fn=str.split,
    )  # fmt: skip
    await memory.aput(said("user", "zebra 1999"))
    for n in range(12):
        await memory.aput(said("user", f"how {n}"))
        await memory.aput(said("assistant", "yes yes yes"))
    await memory.aput(said("user", "the zebra"))
    found = await memory.aget()
    assert "zebra 1999" in str(found[0].content)
    assert found[0].role == "system"
    await memory.sql_store._async_engine.dispose()


def test_settings_out_of_range_are_refused():
    """When it is made."""
    with pytest.raises(ValueError, match="window is -1"):
        made(window=-1)


@pytest.mark.parametrize(("options", "told"), [({"maxtokens": 3}, "maxtokens"), ({"threshold": 7}, "from 0 to 1")])
def test_options_that_can_not_be_are_refused(options, told):
    """A misspelt one is never passed over."""
    with pytest.raises(ValueError, match=told):
        made(**options)
