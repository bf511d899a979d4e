"""What LangGraph's own stores get wrong, as their users report it: each test shows it there, and that ours doesn't."""

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


def test_a_ttl_in_a_batch(ours, theirs, clock):
    """InMemoryStore refuses a TTL by `put`, and takes and forgets it by `batch`."""
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
def test_what_has_expired_before_a_sweep(ours, clock, tmp_path, omit):
    """SqliteStore returns it, with `omit_expired` too (langgraph#8902)."""
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
def test_lives_that_are_no_minutes(ours, clock, tmp_path, moment):
    """SqliteStore takes no moment, and no timedelta (langgraph#5536)."""
    end = clock.now() + timedelta(seconds=90) if moment else timedelta(seconds=90)
    with langgraph_stores.sqlite(tmp_path / "store.db", ttl={"omit_expired": True}) as theirs, pytest.raises(TypeError):
        theirs.put(ALICE, "k", {"n": 1}, ttl=end)
    ours.put(ALICE, "k", {"n": 1}, ttl=end)
    clock.advance(timedelta(seconds=89))
    assert ours.search(ALICE, refresh_ttl=False) != []
    clock.advance(timedelta(seconds=1))
    assert ours.search(ALICE) == []


def test_accounts_and_classes(ours, theirs, clock, tmp_path):
    """No stock store tells what became of an item, or lets a policy say how long it lives."""
    with langgraph_stores.sqlite(tmp_path / "store.db") as sqlite:
        for stock in (theirs, sqlite):
            assert not [name for name in dir(stock) if "audit" in name or "policy" in name or "history" in name]
    governed = MeVeStore(ours.memory, policy_class="ephemeral")
    governed.put(ALICE, "k", {"n": 1})
    clock.advance(timedelta(hours=6))
    assert ours.get(ALICE, "k") is None
    ours.memory.maintain()
    assert [e.action for e in ours.memory.audit.events(user_id="alice")] == ["add", "expire"]


class TheirBatched(AsyncBatchedBaseStore):
    """LangGraph's own batching, over its own store in memory."""

    def __init__(self, inner: BaseStore, seen: list):
        super().__init__()
        self._inner, self._seen = inner, seen

    supports_ttl = True

    async def abatch(self, ops):
        self._seen += ops
        return await self._inner.abatch([op._replace(ttl=None) if isinstance(op, PutOp) else op for op in ops])


async def test_rules_in_a_batch_of_tasks(ours, theirs, clock):
    """AsyncBatchedBaseStore hands `abatch` whatever it is given (langgraph#8832)."""
    seen = []
    batched = TheirBatched(theirs, seen)
    await batched.abatch([PutOp((), "k", {"n": 1})])
    assert theirs._data[()]["k"].value == {"n": 1}
    batched._task.cancel()
    with pytest.raises(InvalidNamespaceError):
        await ours.abatch([PutOp((), "k", {"n": 1})])
    await asyncio.gather(*(ours.aput(ALICE, f"k{n}", {"n": n}, ttl=1) for n in range(5)))
    clock.advance(timedelta(minutes=1))
    assert await ours.asearch(ALICE) == []


@pytest.mark.parametrize("user", ["bob@example.com", 1, "a.b", "o\x00x"])
def test_ids_of_users_as_labels(ours, theirs, user):
    """Mail addresses and numbers are refused (langgraph#7427)."""
    with pytest.raises(InvalidNamespaceError):
        theirs.put(("memories", "x", user), "k", {"n": 1})
    ours.put(("memories", "x", user), "k", {"n": 1})
    assert ours.list_namespaces(prefix=("memories", "x")) == [("memories", "x", user)]


def test_a_prefix_without_an_owner(ours, theirs):
    """It finds everybody's items."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        store.put(BOB, "k", {"n": 2})
    assert len(theirs.search(("memories",))) == len(theirs.search(())) == 2
    for prefix in (("memories",), ()):
        with pytest.raises(InvalidNamespaceError, match="to name its user"):
            ours.search(prefix)


def test_values_that_are_shared(ours, theirs):
    """What is returned is what is stored."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"list": [1]})
        store.get(ALICE, "k").value["list"].append(2)
        store.search(ALICE)[0].value["list"].append(3)
    assert theirs.get(ALICE, "k").value == {"list": [1, 2, 3]}
    assert ours.get(ALICE, "k").value == ours.search(ALICE)[0].value == {"list": [1]}


def test_creation_and_updates(ours, theirs, clock):
    """Each update is a creation."""
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


def test_emptied_namespaces(ours, theirs):
    """They stay listed."""
    for store in (theirs, ours):
        store.put(ALICE, "k", {"n": 1})
        store.delete(ALICE, "k")
    assert theirs.list_namespaces() == [ALICE]
    assert ours.list_namespaces(prefix=ALICE) == []


@pytest.mark.parametrize(("asked", "found"), [({"$in": ["2026-01-01"]}, ["a"]), ({"$gt": "2026-01-31"}, ["b"])])
def test_operators(ours, theirs, asked, found):
    """`$in`, and `$gt` of a text, raise ValueError."""
    for store in (theirs, ours):
        store.put(ALICE, "a", {"day": "2026-01-01"})
        store.put(ALICE, "b", {"day": "2026-02-01"})
    with pytest.raises(ValueError, match=r"\$in|float"):
        theirs.search(ALICE, filter={"day": asked})
    assert [item.key for item in ours.search(ALICE, filter={"day": asked})] == found


def test_forgetting_a_namespace(ours, theirs):
    """There is no call for it (langgraph#3917); ours tells what it would do, and leaves others alone (mem0#3746)."""
    assert not [name for name in dir(theirs) if "delete_namespace" in name]
    for user in ("alice", "bob"):
        for n in range(3):
            ours.put(("memories", user, f"s{n}"), "k", {"n": n})
    assert len(ours.delete_namespace(ALICE, dry_run=True).erased) == len(ours.search(ALICE)) == 3
    assert len(ours.delete_namespace(ALICE).erased) == 3
    assert (len(ours.search(ALICE)), len(ours.search(BOB))) == (0, 3)
    assert len(ours.memory.forget_user(user_id="bob").erased) == 3


async def test_where_a_search_runs(ours, theirs, monkeypatch):
    """InMemoryStore compares vectors on the event loop's own thread, which stands still meanwhile."""
    import threading

    from langgraph.store import memory as stock

    from meve.memory._recall.user_index import Shelf

    seen = {}
    for name, owner, part in (("theirs", stock, "_cosine_similarity"), ("ours", Shelf, "alike")):
        real = getattr(owner, part)
        spy = lambda *a, real=real, name=name: seen.setdefault(name, threading.get_ident()) and real(*a)  # noqa: E731
        monkeypatch.setattr(owner, part, spy)
    for store in (theirs, ours):
        await store.aput(ALICE, "k", {"text": "zebra"})
        await store.asearch(ALICE, query="zebra")
    assert seen["theirs"] == threading.get_ident() != seen["ours"]
