"""Twelve defects of LlamaIndex's own memory, each shown with the stock class and absent from ours."""

import asyncio
import json

import pytest
from llama_index.core.base.llms.types import ChatMessage, CitableBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.memory import BaseMemoryBlock, ChatMemoryBuffer, Memory, StaticMemoryBlock, VectorMemoryBlock
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from pydantic import PrivateAttr

from llama_index_meve import MeVeEmbedding, MeVeMemory, MeVeMemoryBlock
from llama_index_meve._message_counter import MESSAGE_OVERHEAD, MessageCounter
from meve.components.tokenizers.function import FunctionTokens
from meve.errors import MemoryLostWarning, ModelError
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration.chat_helpers import (
    CAT,
    QUESTION,
    Unplugged,
    fact_texts,
    model,
    remember_cat,
    system,
    user,
)
from tests.llama_index_integration.vector_stores import TextStore


def words(text):
    return text.split()


def chat(memory, session="s", **options):
    return MeVeMemory(memory, user_id="alice", session_id=session, tokens=WordCounter(), **options)


def shown_text(messages):
    return "\n".join(str(message.content) for message in messages)


@pytest.fixture
async def stock():
    """Create stock memories, and close their databases."""
    memories = []

    def make(**options):
        memory = Memory.from_defaults(tokenizer_fn=words, **options)
        memories.append(memory)
        return memory

    yield make
    for memory in memories:
        if isinstance(memory.sql_store, SQLAlchemyChatStore) and memory.sql_store._async_engine is not None:
            await memory.sql_store._async_engine.dispose()


def vector_block():
    return VectorMemoryBlock(vector_store=TextStore(), embed_model=MeVeEmbedding(WordEmbedder()))


class RecordingBlock(BaseMemoryBlock[str]):
    """Records the messages it gets, and may fail to take them."""

    name: str = "notes"
    fails: bool = False
    questions: list = []  # noqa: RUF012 - pydantic's
    taken: list = []  # noqa: RUF012 - pydantic's

    async def _aget(self, messages=None, **kwargs):
        self.questions.append([message.content for message in messages or []])
        return ""

    async def _aput(self, messages):
        if self.fails:
            raise OSError("unplugged")
        self.taken.extend(message.content for message in messages)


async def test_a_highest_priority_content_is_kept(stock, memory):
    """Stock: the block with the highest priority is dropped first."""
    first = StaticMemoryBlock(name="first", static_content="one " * 30, priority=1)
    second = StaticMemoryBlock(name="second", static_content="two " * 30, priority=2)
    theirs = stock(token_limit=40, memory_blocks=[first, second])
    await theirs.aput(user("Hello there."))
    assert "two" in shown_text(await theirs.aget())
    assert "one" not in shown_text(await theirs.aget())

    remember_cat(memory)
    ours = chat(memory, token_limit=120)
    ours.put_messages([system("Be brief."), user("An old question? " * 30), model("Old."), user(QUESTION)])
    shown = shown_text(await ours.aget())
    assert all(text in shown for text in ("Be brief.", QUESTION, CAT))
    assert "An old question?" not in shown


async def test_b_block_never_answers_with_another_users_content(stock, memory):
    """Stock: a block shared by two sessions stays with the first session."""
    block = vector_block()
    await block.aput([user("The note of alice is ALICE-SECRET.")], session_id="alice")
    await block.aput([user("The note of bob is BOB-NOTE.")], session_id="bob")
    questions = [user("What is the note?")]
    await block.aget(questions, session_id="alice")
    theirs = await block.aget(questions, session_id="bob")
    assert ("ALICE-SECRET" in theirs, "BOB-NOTE" in theirs) == (True, False)

    blocks = {owner: MeVeMemoryBlock(memory, user_id=owner) for owner in ("alice", "bob")}
    await blocks["alice"].aput([user("My note is ALICE-SECRET.")], session_id="1")
    await blocks["bob"].aput([user("My note is BOB-NOTE.")], session_id="2")
    for session in ("1", "2", "3"):
        for owner, mine, others in (("alice", "ALICE-SECRET", "BOB-NOTE"), ("bob", "BOB-NOTE", "ALICE-SECRET")):
            recalled = await blocks[owner].aget(questions, session_id=session)
            assert (mine in recalled, others in recalled) == (True, False)


class SharedObjectStore(SQLAlchemyChatStore):
    """Returns the stored objects instead of copies."""

    _held: list = PrivateAttr(default_factory=list)

    async def get_messages(self, *args, **kwargs):
        return list(self._held)

    async def add_message(self, key, message, status=None):
        self._held.append(message)


async def test_c_reading_does_not_change_stored_messages(stock, memory):
    """Stock: each read writes the block's text into the stored system message."""
    block = StaticMemoryBlock(name="b", static_content="injected", priority=0)
    theirs = stock(chat_store=SharedObjectStore("held"), memory_blocks=[block])
    brief = system("Be brief.")
    await theirs.aput(brief)
    for _ in range(3):
        await theirs.aget()
    assert shown_text([brief]).count("injected") == 3

    remember_cat(memory)
    ours, brief = chat(memory), system("Be brief.")
    await ours.aput(brief)
    for _ in range(3):
        shown = await ours.aget(QUESTION)
        assert shown_text(shown).count(CAT) == 1
        shown[0].blocks.append(TextBlock(text="scribbled"))
    assert shown_text(await ours.aget_all()) == shown_text([brief]) == "Be brief."


async def test_d_memory_can_be_serialized(stock, memory):
    theirs = stock()
    with pytest.raises(TypeError, match="not JSON serializable"):
        theirs.to_json()
    with pytest.raises(ValueError, match="validation error"):
        Memory.from_dict(theirs.to_dict())

    ours = chat(memory, token_limit=77)
    await ours.aput(user(CAT))
    written = ours.to_json()
    assert "Tom" not in written
    recalled = MeVeMemory.from_dict(json.loads(written))
    assert recalled.memory is memory
    assert (recalled.token_limit, shown_text(recalled.get_all())) == (77, CAT)


async def test_e_reset_erases_the_session(stock, memory):
    """Stock: the vector block still returns it."""
    block = vector_block()
    theirs = stock(memory_blocks=[block], session_id="s")
    await block.aput([user("My secret is ABRACADABRA.")], session_id="s")
    await theirs.areset()
    assert "ABRACADABRA" in shown_text(await theirs.aget("What is my secret?"))

    ours, other = chat(memory), chat(memory, "other")
    await ours.aput(user("My secret is ABRACADABRA."))
    await other.aput(user("My other secret is SESAME."))
    await ours.areset()
    for session in (ours, chat(memory, "later")):
        shown = shown_text(await session.aget("What is my secret?"))
        assert ("ABRACADABRA" in shown, "SESAME" in shown) == (False, True)


async def test_f_every_kind_of_block_is_counted(stock):
    theirs, ours = stock(), MessageCounter(WordCounter())
    for block, least in [
        (ToolCallBlock(tool_name="search", tool_kwargs={"query": "one two three"}), 4),
        (ThinkingBlock(content="one two three"), 3),
        (CitableBlock(title="title", source="source", content=[TextBlock(text="one two three")]), 5),
    ]:
        message = ChatMessage(role="assistant", blocks=[block])
        assert theirs._estimate_token_count(message) == 0
        assert ours.count_message(message) >= MESSAGE_OVERHEAD + least


async def test_g_token_limit_is_never_exceeded(stock, memory):
    block = StaticMemoryBlock(name="b", static_content="word " * 200, priority=0)
    theirs, long = stock(token_limit=50, memory_blocks=[block]), user("long " * 300)
    await theirs.aput(long)
    assert sum(map(theirs._estimate_token_count, await theirs.aget())) > 500

    remember_cat(memory)
    ours = chat(memory, token_limit=50)
    await ours.aput(long)
    shown = await ours.aget(QUESTION)
    assert shown
    assert 0 < sum(map(MessageCounter(WordCounter()).count_message, shown)) <= 50


async def test_h_instructions_are_kept(stock, memory):
    brief = system("Be brief.")
    turns = [ChatMessage("word " * 10, role=("user", "assistant")[n % 2]) for n in range(40)]
    theirs, ours = stock(token_limit=100, token_flush_size=20), chat(memory, token_limit=100)
    for message in (brief, *turns):
        await theirs.aput(message)
    await ours.aput_messages([brief, *turns])
    assert "Be brief." not in shown_text(await theirs.aget())
    shown = await ours.aget()
    assert (shown[0].role.value, shown[0].content, shown[1].role.value) == ("system", "Be brief.", "user")


async def test_i_failed_message_is_stored_and_remembered_later(stock, tmp_path):
    """Stock: messages are archived before the block gets them; if it fails, it never sees them again."""
    notes = RecordingBlock(fails=True, taken=[])
    theirs = stock(token_limit=20, token_flush_size=5, memory_blocks=[notes], chat_history_token_ratio=0.5)
    await theirs.aput(user(CAT))
    with pytest.raises(OSError, match="unplugged"):
        await theirs.aput(user("word " * 9))
    notes.fails = False
    for _ in range(3):
        await theirs.aput(user("word " * 9))
    assert notes.taken
    assert CAT not in notes.taken
    assert CAT not in shown_text(await theirs.aget())

    for on_error, expectation in (("warn", pytest.warns(MemoryLostWarning)), ("raise", pytest.raises(ModelError))):
        embedder = Unplugged()
        with GovernedMemory.open(tmp_path / f"{on_error}.db", embedder=embedder) as memory:
            ours = chat(memory, on_error=on_error)
            embedder.unplugged = True
            with expectation:
                await ours.aput(user(CAT))
            embedder.unplugged = False
            await ours.aput(model("Nice."))
            assert shown_text(await ours.aget_all()) == f"{CAT}\nNice."
            assert fact_texts(memory) == [CAT]


async def test_j_concurrent_puts_lose_nothing(stock, memory):
    sentences = {f"Message number {n}." for n in range(50)}
    theirs, ours = stock(token_limit=30_000), chat(memory)
    await theirs.aput(user("Hello."))
    await asyncio.gather(*(theirs.aput(user(text)) for text in sentences), return_exceptions=True)
    assert len(await theirs.aget_all()) < 50
    await asyncio.gather(*(ours.aput(user(text)) for text in sentences))
    assert {message.content for message in await ours.aget_all()} == sentences
    assert {r.text for r in memory.list(user_id="alice") if r.source == "chat_user"} == sentences


async def test_k_chat_message_is_accepted_as_question(stock, memory):
    notes = RecordingBlock(questions=[])
    theirs, question = stock(memory_blocks=[notes]), QUESTION
    for questions in (question, user(question)):
        await theirs.aget(input=questions)
    assert notes.questions == [[question], []]

    remember_cat(memory)
    for questions in (question, user(question)):
        assert CAT in shown_text(await chat(memory).aget(input=questions))


def test_l_read_cost_grows_with_the_window_not_the_history(memory):
    """Stock: the whole history is counted again for each message that does not fit."""
    counted = []

    def count(text):
        counted.append(len(text))
        return words(text)

    turns = [ChatMessage(f"message {n} of many", role=("user", "assistant")[n % 2]) for n in range(400)]
    theirs = ChatMemoryBuffer.from_defaults(token_limit=200, tokenizer_fn=count)
    theirs.put_messages(turns)
    theirs.get()
    stock_cost, history_length = sum(counted), sum(len(str(m.content)) for m in turns)
    assert stock_cost > 100 * history_length

    ours = MeVeMemory(
        memory, user_id="alice", session_id="s", token_limit=200, tokens=FunctionTokens(lambda text: len(count(text)))
    )
    ours.put_messages(turns)
    counted.clear()
    ours.get()
    assert sum(counted) < history_length
    counted.clear()
    ours.get()
    assert sum(counted) == 0
