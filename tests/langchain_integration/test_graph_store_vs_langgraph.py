"""Defects that users report of LangGraph's own stores, each shown there and absent from MeVeStore."""

import asyncio
import time
from datetime import timedelta

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="needs langgraph-checkpoint-sqlite, of the dev extra")

from langgraph.store.base import BaseStore, InvalidNamespaceError, PutOp
from langgraph.store.base.batch import AsyncBatchedBaseStore

from langchain_meve import MeVeStore
from meve.memory import GovernedMemory
from meve.testing.fakes import FakeClock, OverlapVerifier, WordCounter, WordEmbedder
from tests.langchain_integration import langgraph_stores

ALICE, BOB = ("memories", "alice"), ("memories", "bob")
SECOND = 1 / 60


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def ours(tmp_path, clock):
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "clock": clock}
    with GovernedMemory.open(tmp_path / "memory.db", **parts) as memory:
        yield MeVeStore(memory)


@pytest.fixture
def theirs():
    return langgraph_stores.in_memory()


def test_ttl_in_batch_is_applied(ours, theirs, clock):
    """InMemoryStore refuses a TTL in `put` and ignores it in `batch`."""
    with pytest.raises(NotImplementedError):
        theirs.put(ALICE, "k", {"n": 1}, ttl=SECOND)
    op = PutOp(ALICE, "k", {"n": 1}, None, SECOND)
    theirs.batch([op])
    ours.batch([op])
    time.sleep(1.1)
    clock.advance(timedelta(seconds=1.1))
    assert theirs.get(ALICE, "k") is not None
    assert ours.get(ALICE, "k") is None


@pytest.mark.parametrize("omit", [True, False])
def test_expired_item_is_not_returned_before_sweep(ours, clock, tmp_path, omit):
    """SqliteStore returns it, even with `omit_expired` (langgraph#8902)."""
    with langgraph_stores.sqlite(tmp_path / "store.db", ttl={"omit_expired": omit}) as theirs:
        for store in (theirs, ours):
            store.put(ALICE, "k", {"text": "zebra"}, ttl=SECOND)
        time.sleep(2.1)
        clock.advance(timedelta(seconds=2.1))
        assert theirs.get(ALICE, "k") is not None
        assert len(theirs.search(ALICE)) == len(theirs.list_namespaces()) == 1
        assert ours.get(ALICE, "k") is None
        assert ours.search(ALICE) == ours.list_namespaces(prefix=ALICE) == []


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
    governed = MeVeStore(ours.memory, policy_class="ephemeral")
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


@pytest.mark.parametrize("user", ["bob@example.com", 1, "a.b", "o\x00x"])
def test_email_and_int_labels_are_accepted(ours, theirs, user):
    """LangGraph refuses them (langgraph#7427)."""
    with pytest.raises(InvalidNamespaceError):
        theirs.put(("memories", "x", user), "k", {"n": 1})
    ours.put(("memories", "x", user), "k", {"n": 1})
    assert ours.list_namespaces(prefix=("memories", "x")) == [("memories", "x", user)]


def test_prefix_without_user_is_refused(ours, theirs):
    """LangGraph's stores return all users' items."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        store.put(BOB, "k", {"n": 2})
    assert len(theirs.search(("memories",))) == len(theirs.search(())) == 2
    for prefix in (("memories",), ()):
        with pytest.raises(InvalidNamespaceError, match="to name its user"):
            ours.search(prefix)


def test_returned_values_are_copies(ours, theirs):
    """InMemoryStore returns the stored object."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"list": [1]})
        store.get(ALICE, "k").value["list"].append(2)
        store.search(ALICE)[0].value["list"].append(3)
    assert theirs.get(ALICE, "k").value == {"list": [1, 2, 3]}
    assert ours.get(ALICE, "k").value == ours.search(ALICE)[0].value == {"list": [1]}


def test_update_keeps_created_at(ours, theirs, clock):
    """LangGraph's stores reset it."""
    before = []
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        before.append(store.get(ALICE, "k").created_at)
    time.sleep(0.01)
    clock.advance(timedelta(seconds=1))
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 2})
    assert theirs.get(ALICE, "k").created_at > before[0]
    assert ours.get(ALICE, "k").created_at == before[1] < ours.get(ALICE, "k").updated_at


def test_emptied_namespace_is_not_listed(ours, theirs):
    """InMemoryStore lists it."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        store.delete(ALICE, "k")
    assert theirs.list_namespaces() == [ALICE]
    assert ours.list_namespaces(prefix=ALICE) == []


@pytest.mark.parametrize(("condition", "keys"), [({"$in": ["2026-01-01"]}, ["a"]), ({"$gt": "2026-01-31"}, ["b"])])
def test_in_and_string_comparison_operators_work(ours, theirs, condition, keys):
    """InMemoryStore raises ValueError for both."""
    for store in (theirs, ours):
        store.put(ALICE, "a", {"day": "2026-01-01"})
        store.put(ALICE, "b", {"day": "2026-02-01"})
    with pytest.raises(ValueError, match=r"\$in|float"):
        theirs.search(ALICE, filter={"day": condition})
    assert [item.key for item in ours.search(ALICE, filter={"day": condition})] == keys


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
    import threading

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
