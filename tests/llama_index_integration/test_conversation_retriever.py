"""Test the retriever and the memory block over conversations as graphs."""

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.schema import QueryBundle

from llama_index_meve import MeVeConversationBlock, MeVeConversationRetriever
from meve.conversation import SlicePolicy
from meve.errors import ConfigurationError, UnknownIdError, ValidationError
from tests.conversation.talks import make_conversation
from tests.fake_components import make_components

ALL = {"threshold": 0.0, "redundancy": 1.0}


def ids(nodes):
    return {node.node.node_id for node in nodes}


def test_retriever_stays_on_the_line_of_its_anchor():
    retriever = MeVeConversationRetriever(make_conversation(), anchor="8", policy=SlicePolicy(), **ALL)
    nodes = retriever.retrieve("Why is login failing?")
    assert ids(nodes) == {"1", "7", "8"}
    assert all(0 <= node.score <= 1 and "meve_verified" in node.node.metadata for node in nodes)


async def test_async_retriever_gives_the_same_and_takes_top_k():
    retriever = MeVeConversationRetriever(make_conversation(), top_k=1, **ALL)
    assert ids(await retriever.aretrieve(QueryBundle("login"))) == ids(retriever.retrieve("login"))
    assert len(retriever.retrieve("login")) == 1


def test_blank_question_and_empty_conversation_give_no_nodes():
    assert MeVeConversationRetriever(make_conversation()).retrieve(" ") == []
    assert MeVeConversationRetriever(make_conversation([])).retrieve("login") == []


def test_bad_arguments_of_the_retriever_are_refused():
    with pytest.raises(ConfigurationError, match=r"must be a meve\.conversation\.Conversation"):
        MeVeConversationRetriever("conversation")
    with pytest.raises(ConfigurationError, match="unknown option 'topk'"):
        MeVeConversationRetriever(make_conversation(), topk=1)
    with pytest.raises(UnknownIdError):
        MeVeConversationRetriever(make_conversation(), anchor="x").retrieve("login")


def make_block(**options):
    parts = make_components()
    return MeVeConversationBlock(embedder=parts["embedder"], tokens=parts["tokens"], **options)


def message(text, role="user", **extra):
    return ChatMessage(role=role, content=text, additional_kwargs=extra)


async def test_block_closes_an_abandoned_branch():
    block = make_block()
    await block.aput(
        [message("login fails", id="a"), message("login cookie", id="b"), message("login token", parent="a")]
    )
    text = await block.aget([message("login")])
    assert "login fails" in text
    assert "login token" in text
    assert "login cookie" not in text


async def test_block_weighs_phases_as_its_policy_says():
    block = make_block(policy=SlicePolicy(phases={"draft": 0.0}))
    await block.aput([message("login draft", phase="draft"), message("login cookie", phase="final")])
    assert await block.aget([message("login")]) == "From user: login cookie"


@pytest.mark.parametrize("parent", ["a", ["a", "b"]])
async def test_branch_that_is_still_in_short_term_memory_closes_the_other_one(parent):
    block = make_block()
    await block.aput([message("login fails", id="a"), message("login cookie", id="b")])
    fork = [message("login token", id="c", parent=parent), message("why login", "assistant"), message("login")]
    assert await block.aget(fork) == "From user: login fails"
    assert "login cookie" in await block.aget([*fork, message("login", id="d", parent="b")])
    assert "login cookie" not in await block.aget([*fork, message("login", parent="b"), message("login", parent="c")])
    assert await block.aget([message("login", parent=None)]) == ""


async def test_message_whose_parent_is_unknown_begins_a_line_and_loses_none_of_its_batch(caplog):
    block = make_block()
    assert await block.aget([message("login", parent="x")]) == ""
    await block.aput([message("login fails", id="a"), message("login token", parent="x"), message("login key")])
    assert "names the parent 'x', which the block doesn't hold" in caplog.text
    assert await block.aget([message("login")]) == "From user: login key\nFrom user: login token"
    assert await block.aget([message("login", parent="x")]) == ""


async def test_repeated_id_loses_no_message_and_an_equal_repeat_is_kept_once(caplog):
    block = make_block()
    await block.aput([message("login fails", id="a"), message("login fails", id="a"), message("login key", id=7)])
    await block.aput([message("login key", id="7"), message("login cookie")])
    assert not caplog.records
    await block.aput([message("login token", id="a"), message("login end", parent="a")])
    assert "two messages have the id 'a'" in caplog.text
    turns = block.conversation().graph.turns
    assert [turn.text for turn in turns] == ["login fails", "login key", "login cookie", "login token", "login end"]
    assert [turn.parents for turn in turns] == [(), ("a",), ("7",), (turns[2].id,), ("a",)]


async def test_repeated_id_takes_no_name_that_is_taken():
    block = make_block()
    await block.aput([message("one", id="a"), message("two", id="a~2"), message("three", id="a"), message("x", id="")])
    await block.aput([message("four", id="turn-5"), message("five")])
    assert len({turn.id for turn in block.conversation().graph.turns}) == 6


async def test_block_keeps_sessions_apart_and_forgets_them():
    block = make_block()
    await block.aput([message("login secret", session_id="1"), message("login other", session_id="2")])
    assert await block.aget([message("login")], session_id="1") == "From user: login secret"
    assert await block.aget([message("login")]) == ""
    block.forget("1")
    assert await block.aget([message("login")], session_id="1") == ""


async def test_block_drops_the_session_used_least_recently():
    block = make_block(max_sessions=1)
    await block.aput([message("login one", session_id="1"), message("login two", session_id="2")])
    assert len(block.conversation("1")) == 0
    assert len(block.conversation("2")) == 1


async def test_block_leaves_out_system_messages_and_refuses_others():
    block = make_block()
    await block.aput([message("be nice", role="system")])
    assert len(block.conversation()) == 0
    with pytest.raises(ValidationError, match="ChatMessage"):
        await block._aput(["text"])


async def test_block_works_in_a_memory():
    block = make_block()
    memory = Memory.from_defaults(
        session_id="s", token_limit=40, chat_history_token_ratio=0.5, token_flush_size=10, memory_blocks=[block],
        tokenizer_fn=str.split,
    )  # fmt: skip
    for n in range(6):
        await memory.aput(message(f"login attempt number {n} failed with a long and wordy explanation"))
    messages = await memory.aget("login")
    await memory.sql_store._async_engine.dispose()
    assert any("login attempt number 0" in str(m.content) for m in messages)
