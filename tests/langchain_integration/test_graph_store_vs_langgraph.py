"""Defects of LangGraph's own stores beyond the rules of the contract, each absent from MeVeStore."""

import asyncio
import threading
from datetime import timedelta

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from langgraph.store.base import BaseStore, InvalidNamespaceError, PutOp
from langgraph.store.base.batch import AsyncBatchedBaseStore

from langchain_meve import MeVeStore
from tests.langchain_integration import langgraph_stores

ALICE, BOB = ("memories", "alice"), ("memories", "bob")


@pytest.fixture
def ours(word_memory):
    return MeVeStore(word_memory, namespaces="memories/{user_id}/*")


@pytest.fixture
def theirs():
    return langgraph_stores.in_memory()


@pytest.mark.parametrize("moment", [True, False])
def test_ttl_may_be_timedelta_or_datetime(ours, clock, tmp_path, moment):
    """SqliteStore takes neither (langgraph#5536)."""
    end = clock.now() + timedelta(seconds=90) if moment else timedelta(seconds=90)
    with langgraph_stores.sqlite(tmp_path / "store.db", ttl={"omit_expired": True}) as theirs, pytest.raises(TypeError):
        theirs.put(ALICE, "k", {"n": 1}, ttl=end)
    ours.put(ALICE, "k", {"n": 1}, ttl=end)
    clock.advance(timedelta(seconds=89))
    assert ours.search(ALICE, refresh_ttl=False) != []
    clock.advance(timedelta(seconds=1))
    assert ours.search(ALICE) == []


def test_store_has_audit_log_and_policy_classes(ours, theirs, clock, tmp_path):
    """LangGraph's stores have neither."""
    with langgraph_stores.sqlite(tmp_path / "store.db") as sqlite:
        for stock in (theirs, sqlite):
            assert not [name for name in dir(stock) if "audit" in name or "policy" in name or "history" in name]
    governed = MeVeStore(ours.memory, namespaces="memories/{user_id}/*", policy_class="ephemeral")
    governed.put(ALICE, "k", {"n": 1})
    clock.advance(timedelta(hours=6))
    assert ours.get(ALICE, "k") is None
    ours.memory.maintain()
    assert [e.action for e in ours.memory.audit.events(user_id="alice")] == ["add", "expire"]


class LangGraphBatchedStore(AsyncBatchedBaseStore):
    """LangGraph's own batching over its in-memory store."""

    def __init__(self, inner: BaseStore, operations: list):
        super().__init__()
        self._inner, self._operations = inner, operations

    supports_ttl = True

    async def abatch(self, ops):
        self._operations += ops
        return await self._inner.abatch([op._replace(ttl=None) if isinstance(op, PutOp) else op for op in ops])


async def test_batched_operations_are_validated(ours, theirs, clock):
    """AsyncBatchedBaseStore passes anything to `abatch` (langgraph#8832)."""
    operations = []
    batched = LangGraphBatchedStore(theirs, operations)
    await batched.abatch([PutOp((), "k", {"n": 1})])
    assert theirs._data[()]["k"].value == {"n": 1}
    batched._task.cancel()
    with pytest.raises(InvalidNamespaceError):
        await ours.abatch([PutOp((), "k", {"n": 1})])
    await asyncio.gather(*(ours.aput(ALICE, f"k{n}", {"n": n}, ttl=1) for n in range(5)))
    clock.advance(timedelta(minutes=1))
    assert await ours.asearch(ALICE) == []


def test_prefix_without_user_is_refused(ours, theirs):
    """LangGraph's stores return all users' items."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        store.put(BOB, "k", {"n": 2})
    assert len(theirs.search(("memories",))) == len(theirs.search(())) == 2
    for prefix in (("memories",), ()):
        with pytest.raises(InvalidNamespaceError, match="names no owner"):
            ours.search(prefix)


def test_delete_namespace_erases_only_that_namespace(ours, theirs):
    """LangGraph has no such call (langgraph#3917); see also mem0#3746."""
    assert not [name for name in dir(theirs) if "delete_namespace" in name]
    for user in ("alice", "bob"):
        for n in range(3):
            ours.put(("memories", user, f"s{n}"), "k", {"n": n})
    assert len(ours.delete_namespace(ALICE, dry_run=True).erased) == len(ours.search(ALICE)) == 3
    assert len(ours.delete_namespace(ALICE).erased) == 3
    assert (len(ours.search(ALICE)), len(ours.search(BOB))) == (0, 3)
    assert len(ours.memory.forget_user(user_id="bob").erased) == 3


async def test_search_runs_off_event_loop(ours, theirs, monkeypatch):
    """InMemoryStore compares vectors on the event loop's thread."""
    from langgraph.store import memory as stock

    from meve.memory._recall.user_index import UserIndex

    threads = {}
    for name, owner, part in (("theirs", stock, "_cosine_similarity"), ("ours", UserIndex, "find_relevant")):
        real = getattr(owner, part)
        spy = lambda *a, real=real, name=name: threads.setdefault(name, threading.get_ident()) and real(*a)  # noqa: E731
        monkeypatch.setattr(owner, part, spy)
    for store in (theirs, ours):
        await store.aput(ALICE, "k", {"text": "zebra"})
        await store.asearch(ALICE, query="zebra")
    assert threads["theirs"] == threading.get_ident() != threads["ours"]
