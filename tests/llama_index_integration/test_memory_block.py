"""MeVeMemoryBlock inside LlamaIndex's own Memory."""

import asyncio
import threading
from datetime import timedelta

import pytest
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from llama_index_meve import MeVeChatStore, MeVeMemoryBlock
from llama_index_meve._seen_messages import SeenMessages
from meve.errors import ConfigurationError, MemoryLostWarning, ModelError, ValidationError
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import HEADER
from meve.memory._wrapper_support import MAX_PENDING_RECALLS
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chat_helpers import (
    AGENT_FACTORIES,
    CAT,
    QUESTION,
    ScriptedLLM,
    Unplugged,
    model,
    outcomes,
    remember_cat,
    run_agent,
    simple_engine,
    user,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ANSWER = "Your cat is called Tom."


def make_block(memory, **options):
    return MeVeMemoryBlock(memory=memory, user_id="alice", tokens=WordCounter(), **options)


def stock_memory(memory, *blocks, session="s", **options):
    """Return LlamaIndex's Memory over our chat store, in the memory's file."""
    store = MeVeChatStore(memory, user_id="alice")
    return Memory.from_defaults(session_id=session, chat_store=store, memory_blocks=list(blocks), **options)


def remember_cats(memory, number):
    for n in range(number):
        memory.add(f"My cat number {n} is called Tom{n}.", user_id="alice", source="doc", policy_class="factual")


def fact_sessions(memory):
    return {r.text: r.session_id for r in memory.list(user_id="alice") if r.text}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": {"limt": 1}}, "limt"),
        ({"max_tokens": 0}, "^max_tokens must be greater than or equal to 1, got 0$"),
    ],
)
def test_invalid_option_is_rejected(memory, options, message):
    with pytest.raises((ConfigurationError, ValidationError), match=message):
        MeVeMemoryBlock(memory, user_id="alice", **options)


def test_user_cannot_be_changed(memory):
    block = make_block(memory)
    with pytest.raises(ValueError, match="frozen"):
        block.user_id = "bob"


async def test_block_recalls_only_what_is_not_visible(memory):
    block = make_block(memory)
    remember_cat(memory)
    text = await block.aget([user(QUESTION)], session_id="s")
    assert CAT in text
    assert text.startswith(HEADER)
    assert await block.aget([user(CAT), model("Nice."), user(QUESTION)], session_id="s") == ""
    assert await block.aget([], session_id="s") == await block.aget(None) == ""
    assert await MeVeMemoryBlock(memory, user_id="bob").aget([user(QUESTION)], session_id="s") == ""


async def test_expired_fact_is_not_recalled(memory, clock):
    block = make_block(memory)
    remember_cat(memory)
    clock.advance(timedelta(days=7))
    assert await block.aget([user(QUESTION)], session_id="s") == ""


async def test_statements_are_remembered_once_when_seen(memory):
    block = make_block(memory)
    messages = [user(f"Hello. {CAT}"), model("I had a cat, too.")]
    before = [message.model_copy(deep=True) for message in messages]
    for _ in range(2):
        await block.aget(messages, session_id="s")
    await make_block(memory).aget(messages, session_id="s")
    assert messages == before
    assert fact_sessions(memory) == {CAT: "s"}
    await block.aput(messages, session_id="s")
    assert fact_sessions(memory) == {CAT: "s"}
    assert len(memory.list(user_id="alice")) == 1
    await block.aput([user("I have a dog.")], from_short_term_memory=True, session_id="t")
    assert fact_sessions(memory) == {CAT: "s", "I have a dog.": "t"}
    await make_block(memory, remember=None).aget([user("I live in Oslo.")], session_id="s")
    assert "I live in Oslo." not in fact_sessions(memory)


@pytest.mark.parametrize("flushed", [False, True])
async def test_statement_that_the_user_makes_again_is_remembered_again(memory, clock, flushed):
    said = ["Always answer in German.", "You don't have to answer in German any more.", "Always answer in German."]
    limits = {"token_limit": 100, "chat_history_token_ratio": 0.7, "token_flush_size": 20} if flushed else {}
    chat = stock_memory(memory, make_block(memory), **limits)
    for text in said:
        clock.advance(timedelta(hours=1))
        await chat.aput(user(text))
        for _ in range(2):
            await chat.aget(input=text)  # as agents do: the question is in the history, too
        await chat.aput(model(" ".join(["I will keep that in mind."] * (5 if flushed else 1))))
    assert (len(await chat.aget_all(MessageStatus.ACTIVE)) < 2 * len(said)) == flushed
    assert [record.text for record in memory.list(user_id="alice", include_superseded=True)] == said


async def test_seen_messages_of_another_part_of_the_conversation_are_not_new(memory):
    seen = SeenMessages()

    def name_new(*digests, session="s"):
        new = seen.find_new(session, digests)
        seen.note(session, digests, new)
        return [each.name for each in new]

    assert name_new("a", "b", "b", "a") == ["a", "b", "a-2"]
    assert name_new("b", "a", "c") == ["c"]
    assert name_new("b", "a") == name_new("b") == []  # flushed from short-term memory
    assert name_new("a", "c", "b") == ["b-2"]
    assert name_new("b", "c", "a") == ["c-2", "a-3"]
    assert name_new("c", "b") == []  # not what follows: nothing is taken for new that may be old
    assert name_new("a", session="t") == ["a"]


async def test_answer_is_judged_once_when_seen(memory):
    block = make_block(memory)
    remember_cat(memory)
    messages = [user(QUESTION)]
    await block.aget(messages, session_id="s")
    await block.aget([user("Something else?")], session_id="t")
    messages.append(model(ANSWER))
    await block.aget(messages, session_id="s")
    assert outcomes(memory) == ["used"]
    messages.append(user("Thanks! And the weather?"))
    await block.aget(messages, session_id="s")
    await block.aput(messages, session_id="s")
    assert outcomes(memory) == ["used"]


async def test_repeated_question_is_judged_separately(memory):
    block = make_block(memory)
    remember_cat(memory)
    messages = [user(QUESTION)]
    await block.aget(messages, session_id="s")
    messages += [model(ANSWER), user(QUESTION)]
    assert CAT in await block.aget(messages, session_id="s")
    assert outcomes(memory) == ["used"]
    messages += [model("You asked that before.")]
    await block.aget(messages, session_id="s")
    assert outcomes(memory) == ["used", "unmentioned"]


async def test_two_open_questions_judge_no_answer(memory):
    block = make_block(memory)
    remember_cat(memory)
    memory.add("My dog is called Rex.", user_id="alice", source="chat_user", policy_class="factual")
    messages = []
    for message in (user(QUESTION), user("What is my dog called?"), model(ANSWER), model("Your dog is called Rex.")):
        messages.append(message)
        for _ in range(2):  # agents read again between tool calls
            await block.aget(messages, session_id="s")
    assert outcomes(memory) == []
    messages += [user("And my cat?")]
    await block.aget(messages, session_id="s")
    messages += [model(ANSWER)]
    await block.aget(messages, session_id="s")
    assert "used" in outcomes(memory)


async def test_abandoned_questions_are_dropped(memory):
    block = make_block(memory)
    for n in range(MAX_PENDING_RECALLS + 9):
        await block.aget([user(QUESTION)], session_id=str(n))
    assert len(block._pending) == MAX_PENDING_RECALLS


async def test_truncation_drops_the_last_facts(memory):
    block = make_block(memory)
    remember_cats(memory, 5)
    whole = await block.aget([user("What are my cats called?")], session_id="s")
    lines = whole.count("\n[")
    assert lines >= 3
    shorter = await block.atruncate(whole, 1)
    assert shorter.count("\n[") == lines - 1
    kept, _, closing = shorter.rpartition("\n")
    assert whole.startswith(kept)
    assert closing == whole.rpartition("\n")[2]
    assert await block.atruncate(whole, 10_000) is None
    assert await block.atruncate("", 1) is None


async def test_block_keeps_its_token_limit(memory):
    remember_cats(memory, 20)
    for limit in (10, 60, 80, 120):
        text = await make_block(memory, max_tokens=limit, search={"limit": None}).aget(
            [user("What are my cats called?")]
        )
        assert len(text.split()) <= limit
    assert text
    assert (await make_block(memory, search={"limit": 2}).aget([user("What are my cats called?")])).count("\n[") == 2


async def test_llamaindex_memory_truncates_the_block_and_keeps_the_conversation(memory):
    remember_cats(memory, 5)
    memory_with_block = stock_memory(memory, make_block(memory), token_limit=70, tokenizer_fn=str.split)
    await memory_with_block.aput(user("What are my cats called?"))
    first, question = await memory_with_block.aget()
    assert (first.role.value, question.content) == ("system", "What are my cats called?")
    assert 1 <= first.content.count("is called Tom") < 5


@pytest.mark.parametrize("make_agent", AGENT_FACTORIES)
async def test_agents_and_engines_with_llamaindex_memory_remember(make_agent, memory, clock):
    llm = ScriptedLLM(reply=lambda messages: "I see.")
    await run_agent(make_agent(llm), stock_memory(memory, make_block(memory), session="monday"), f"Hello. {CAT}")
    assert fact_sessions(memory) == {CAT: "monday"}
    llm = ScriptedLLM(reply=lambda messages: ANSWER)
    second = stock_memory(memory, make_block(memory), session="tuesday")
    await run_agent(make_agent(llm), second, QUESTION)
    assert CAT in llm.prompt_text()
    await run_agent(make_agent(ScriptedLLM(reply=lambda messages: "Bye.")), second, "Thanks!")
    assert outcomes(memory)[0] == "used"
    llm = ScriptedLLM(reply=lambda messages: "Tom.")
    await simple_engine(llm, stock_memory(memory, make_block(memory), session="wednesday")).achat(QUESTION)
    assert CAT in llm.prompt_text()
    clock.advance(timedelta(days=8))
    llm = ScriptedLLM(reply=lambda messages: "Who knows?")
    await run_agent(make_agent(llm), stock_memory(memory, make_block(memory), session="later"), QUESTION)
    assert "Tom" not in llm.prompt_text()


async def test_searches_run_off_the_event_loop(memory):
    remember_cat(memory)
    here, elsewhere, search = threading.get_ident(), set(), memory.search

    def watched(*args, **kwargs):
        elsewhere.add(threading.get_ident())
        return search(*args, **kwargs)

    memory.search = watched
    block = make_block(memory)
    await asyncio.gather(*(block.aget([user(QUESTION)], session_id=str(n)) for n in range(20)))
    assert elsewhere
    assert here not in elsewhere


def test_serialized_block_omits_the_memory(memory):
    data = make_block(memory).model_dump()
    assert "memory" not in data
    assert (data["name"], data["user_id"], data["priority"]) == ("meve", "alice", 1)


async def test_failing_recall_warns_or_raises(file):
    embedder = Unplugged()
    with GovernedMemory.open(file, embedder=embedder) as memory:
        remember_cat(memory)
        embedder.unplugged = True
        with pytest.warns(MemoryLostWarning, match="recalling from memory failed"):
            assert await make_block(memory).aget([user(QUESTION)], session_id="s") == ""
        with pytest.raises(ModelError, match="unplugged"):
            await make_block(memory, on_error="raise").aget([user(QUESTION)], session_id="s")
