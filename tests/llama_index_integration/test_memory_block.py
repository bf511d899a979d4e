"""MeVeMemoryBlock inside LlamaIndex's own Memory: what it tells, what it takes in and when, and how it is shortened."""

import asyncio
import threading
from datetime import timedelta

import pytest
from llama_index.core.memory import Memory

from llama_index_meve import MeVeChatStore, MeVeMemoryBlock
from meve.errors import ConfigurationError, MemoryLostWarning, ModelError, ValidationError
from meve.memory import GovernedMemory
from meve.memory._integration import HELD
from meve.memory._recall.formatting import CLOSING, HEADER
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration.chats import (
    AGENTS,
    CAT,
    QUESTION,
    Witness,
    ask,
    known,
    model,
    outcomes,
    simple,
    user,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ANSWER = "Your cat is called Tom."


def block(memory, **options):
    return MeVeMemoryBlock(memory=memory, user_id="alice", tokens=WordCounter(), **options)


def stock(memory, *blocks, session="s", **options):
    """The stock memory over our store, whose messages never leave the memory's file."""
    store = MeVeChatStore(memory, user_id="alice")
    return Memory.from_defaults(session_id=session, chat_store=store, memory_blocks=list(blocks), **options)


def sessions(memory):
    """Of each fact that is remembered, the session."""
    return {r.text: r.session_id for r in memory.list(user_id="alice") if r.text}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"memory": None}, "GovernedMemory.open"),
        ({"user_id": None}, "user_id"),
        ({"search": {"limt": 1}}, "limt"),
        ({"max_tokens": 0}, "^max_tokens is 0: it should be greater than or equal to 1$"),
    ],
)
def test_what_can_not_be_is_refused(memory, options, told):
    with pytest.raises((ConfigurationError, ValidationError), match=told):
        MeVeMemoryBlock(**{"memory": memory, "user_id": "alice", **options})
    with pytest.raises(TypeError, match="user_id"):
        MeVeMemoryBlock(memory)


def test_its_user_is_bound_for_good(memory):
    mine = block(memory)
    with pytest.raises(ValueError, match="frozen"):
        mine.user_id = "bob"


async def test_it_tells_what_is_remembered_beyond_what_is_shown(memory):
    mine = block(memory)
    known(memory)
    found = await mine.aget([user(QUESTION)], session_id="s")
    assert CAT in found
    assert found.startswith(HEADER)
    assert await mine.aget([user(CAT), model("Nice."), user(QUESTION)], session_id="s") == ""
    assert await mine.aget([], session_id="s") == await mine.aget(None) == ""
    assert await MeVeMemoryBlock(memory, user_id="bob").aget([user(QUESTION)], session_id="s") == ""


async def test_what_is_over_is_not_told(memory, clock):
    mine = block(memory)
    known(memory)
    clock.advance(timedelta(days=7))
    assert await mine.aget([user(QUESTION)], session_id="s") == ""


async def test_statements_are_remembered_as_soon_as_they_are_seen_once(memory):
    mine = block(memory)
    said = [user(f"Hello. {CAT}"), model("I had a cat, too.")]
    before = [message.model_copy(deep=True) for message in said]
    for _ in range(2):
        await mine.aget(said, session_id="s")
    await block(memory).aget(said, session_id="s")
    assert said == before
    assert sessions(memory) == {CAT: "s"}
    await mine.aput(said, session_id="s")
    assert sessions(memory) == {CAT: "s"}
    assert len(memory.list(user_id="alice")) == 1
    await mine.aput([user("I have a dog.")], from_short_term_memory=True, session_id="t")
    assert sessions(memory) == {CAT: "s", "I have a dog.": "t"}
    await block(memory, remember=None).aget([user("I live in Oslo.")], session_id="s")
    assert "I live in Oslo." not in sessions(memory)


async def test_an_answer_is_judged_once_when_it_is_seen(memory):
    mine = block(memory)
    known(memory)
    said = [user(QUESTION)]
    await mine.aget(said, session_id="s")
    await mine.aget([user("Something else?")], session_id="t")
    said.append(model(ANSWER))
    await mine.aget(said, session_id="s")
    assert outcomes(memory) == ["used"]
    said.append(user("Thanks! And the weather?"))
    await mine.aget(said, session_id="s")
    await mine.aput(said, session_id="s")
    assert outcomes(memory) == ["used"]


async def test_the_same_question_again_is_another_one(memory):
    mine = block(memory)
    known(memory)
    said = [user(QUESTION)]
    await mine.aget(said, session_id="s")
    said += [model(ANSWER), user(QUESTION)]
    assert CAT in await mine.aget(said, session_id="s")
    assert outcomes(memory) == ["used"]
    said += [model("You asked that before.")]
    await mine.aget(said, session_id="s")
    assert outcomes(memory) == ["used", "unused"]


async def test_of_two_questions_at_once_no_answer_is_held_against_the_other_s(memory):
    mine = block(memory)
    known(memory)
    memory.add("My dog is called Rex.", user_id="alice", source="chat_user", policy_class="factual")
    said = []
    for message in (user(QUESTION), user("What is my dog called?"), model(ANSWER), model("Your dog is called Rex.")):
        said.append(message)
        for _ in range(2):  # as agents ask, between their tools
            await mine.aget(said, session_id="s")
    assert outcomes(memory) == []
    said += [user("And my cat?")]
    await mine.aget(said, session_id="s")
    said += [model(ANSWER)]
    await mine.aget(said, session_id="s")
    assert "used" in outcomes(memory)


async def test_questions_of_sessions_that_nobody_goes_on_with_are_let_go(memory):
    mine = block(memory)
    for n in range(HELD + 9):
        await mine.aget([user(QUESTION)], session_id=str(n))
    assert len(mine._told) == HELD


async def test_it_is_shortened_by_leaving_out_the_last_sessions(memory):
    mine = block(memory)
    for n in range(5):
        memory.add(f"My cat number {n} is called Tom{n}.", user_id="alice", source="doc", policy_class="factual")
    whole = await mine.aget([user("What are my cats called?")], session_id="s")
    lines = whole.count("\n[")
    assert lines >= 3
    shorter = await mine.atruncate(whole, 1)
    assert shorter.count("\n[") == lines - 1
    assert whole.startswith(shorter.removesuffix(f"\n{CLOSING}"))
    assert shorter.endswith(CLOSING)
    assert await mine.atruncate(whole, 10_000) is None
    assert await mine.atruncate("", 1) is None


async def test_it_takes_no_more_than_it_may(memory):
    for n in range(20):
        memory.add(f"My cat number {n} is called Tom{n}.", user_id="alice", source="doc", policy_class="factual")
    for most in (10, 60, 80, 120):
        found = await block(memory, max_tokens=most, search={"limit": None}).aget([user("What are my cats called?")])
        assert len(found.split()) <= most
    assert found
    assert (await block(memory, search={"limit": 2}).aget([user("What are my cats called?")])).count("\n[") == 2


async def test_the_stock_memory_shortens_it_and_keeps_the_conversation(memory):
    for n in range(5):
        memory.add(f"My cat number {n} is called Tom{n}.", user_id="alice", source="doc", policy_class="factual")
    theirs = stock(memory, block(memory), token_limit=90, tokenizer_fn=str.split)
    await theirs.aput(user("What are my cats called?"))
    first, asked = await theirs.aget()
    assert (first.role.value, asked.content) == ("system", "What are my cats called?")
    assert 1 <= first.content.count("is called Tom") < 5


@pytest.mark.parametrize("made", AGENTS)
async def test_agents_and_engines_with_the_stock_memory_remember_too(made, memory, clock):
    llm = Witness(says=lambda messages: "I see.")
    await ask(made(llm), stock(memory, block(memory), session="monday"), f"Hello. {CAT}")
    assert sessions(memory) == {CAT: "monday"}
    llm, second = Witness(says=lambda messages: ANSWER), stock(memory, block(memory), session="tuesday")
    await ask(made(llm), second, QUESTION)
    assert CAT in llm.shown()
    await ask(made(Witness(says=lambda messages: "Bye.")), second, "Thanks!")
    assert outcomes(memory)[0] == "used"
    llm = Witness(says=lambda messages: "Tom.")
    await simple(llm, stock(memory, block(memory), session="wednesday")).achat(QUESTION)
    assert CAT in llm.shown()
    clock.advance(timedelta(days=8))
    llm = Witness(says=lambda messages: "Who knows?")
    await ask(made(llm), stock(memory, block(memory), session="later"), QUESTION)
    assert "Tom" not in llm.shown()


async def test_it_works_off_the_event_loop(memory):
    known(memory)
    here, elsewhere, search = threading.get_ident(), set(), memory.search

    def watched(*args, **kwargs):
        elsewhere.add(threading.get_ident())
        return search(*args, **kwargs)

    memory.search = watched
    mine = block(memory)
    await asyncio.gather(*(mine.aget([user(QUESTION)], session_id=str(n)) for n in range(20)))
    assert elsewhere
    assert here not in elsewhere


def test_it_is_written_down_without_its_memory(memory):
    data = block(memory).model_dump()
    assert "memory" not in data
    assert (data["name"], data["user_id"], data["priority"]) == ("meve", "alice", 1)


async def test_where_nothing_can_be_recalled_the_conversation_goes_on(tmp_path):
    class Unplugged(WordEmbedder):
        def embed_query(self, text):
            raise OSError("unplugged")

    with GovernedMemory.open(tmp_path / "m.db", embedder=Unplugged()) as memory:
        known(memory)
        with pytest.warns(MemoryLostWarning, match="recalling from memory failed"):
            assert await block(memory).aget([user(QUESTION)], session_id="s") == ""
        with pytest.raises(ModelError, match="unplugged"):
            await block(memory, on_error="raise").aget([user(QUESTION)], session_id="s")
