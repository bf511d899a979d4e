"""MeVeStore beyond the contract of LangGraph stores: TTL, holds, erasure, filters, audit log, concurrency."""

import asyncio
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from itertools import product

import pytest

pytest.importorskip("langgraph")

from langgraph.store.base import GetOp, PutOp, SearchOp

from langchain_meve import MeVeStore
from langchain_meve.graph_store._write_batcher import WriteBatcher
from meve.errors import ConfigurationError, HoldError, ValidationError
from meve.memory.items.item import item_id
from tests.memories import as_argument
from tests.warm_process import execute, warm_process

ALICE, BOB = ("memories", "alice"), ("memories", "bob")
WORD = "zyxomma"


@pytest.fixture
def memory(word_memory):
    return word_memory


@pytest.fixture
def store(memory):
    return MeVeStore(memory, namespaces="memories/{user_id}/*")


class TestLabels:
    @pytest.mark.parametrize("label", ["", "a.b", "a\x00b", "\ud800", "*", 'a"b', 2**80, -1])
    def test_any_label_and_key_are_returned_unchanged(self, memory, label):
        store = MeVeStore(memory, user_id="alice")
        key = str(label)
        store.put(("x", label), key, {"key": key})
        (item,) = store.search(("x", label))
        assert (item.namespace, item.key, item.value) == (("x", label), key, {"key": key})
        assert store.list_namespaces() == [("x", label)]
        store.delete(("x", label), key)
        assert store.get(("x", label), key) is None

    def test_long_namespaces_and_keys_stay_distinct(self, memory):
        store = MeVeStore(memory, user_id="alice")
        for end in ("a", "b"):
            store.put(("x" * 5_000, end), "k" * 5_000 + end, {"end": end})
        assert store.get(("x" * 5_000, "a"), "k" * 5_000 + "a").value == {"end": "a"}
        assert store.list_namespaces(suffix=("b",)) == [("x" * 5_000, "b")]


class TestTtl:
    @pytest.mark.parametrize("ttl", [1.5, timedelta(seconds=90), datetime(2026, 5, 1, 12, 1, 30, tzinfo=UTC)])
    def test_ttl_is_minutes_timedelta_or_datetime(self, store, clock, ttl):
        """Exact to the second on every read, without maintenance."""
        store.put(ALICE, "k", {"text": "zebra"}, ttl=ttl)
        clock.advance(timedelta(seconds=89))
        assert store.get(ALICE, "k", refresh_ttl=False) is not None
        clock.advance(timedelta(seconds=1))
        assert store.get(ALICE, "k") is None
        assert store.search(ALICE) == store.search(ALICE, query="zebra") == store.list_namespaces(prefix=ALICE) == []

    @pytest.mark.parametrize("ttl", [0, -1, True, float("nan"), float("inf"), "1", timedelta(0), datetime(2027, 1, 1)])
    def test_invalid_ttl_is_refused_and_nothing_stored(self, store, ttl):
        with pytest.raises(ValidationError):
            store.put(ALICE, "k", {"n": 1}, ttl=ttl)
        with pytest.raises(ValidationError):
            store.batch([PutOp(ALICE, "k", {"n": 1}, None, ttl)])
        assert store.get(ALICE, "k") is None

    @pytest.mark.parametrize("ttl", [10**400, 1e300, timedelta.max])
    def test_ttl_beyond_calendar_never_expires(self, store, clock, ttl):
        store.put(ALICE, "k", {"n": 1}, ttl=ttl)
        clock.advance(timedelta(days=100_000))
        assert store.get(ALICE, "k").value == {"n": 1}
        with pytest.raises(ValidationError, match="ttl"):
            store.put(ALICE, "k", {"n": 1}, ttl=-(10**400))

    def test_refresh_beyond_calendar_keeps_expiry(self, store, clock):
        end = datetime(9999, 12, 31, tzinfo=UTC)
        store.put(ALICE, "k", {"n": 1}, ttl=end - clock.now())
        clock.advance(timedelta(days=30))
        assert store.get(ALICE, "k") is not None
        assert len(store.search(ALICE)) == 1

    def test_datetime_beyond_utc_is_refused(self, store):
        with pytest.raises(ValidationError, match="within the years"):
            store.put(ALICE, "k", {"n": 1}, ttl=datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))))

    def test_reading_keeps_datetime_expiry(self, store, clock):
        store.put(ALICE, "k", {"n": 1}, ttl=clock.now() + timedelta(minutes=2))
        clock.advance(timedelta(minutes=1))
        store.get(ALICE, "k", refresh_ttl=True)
        clock.advance(timedelta(minutes=1))
        assert store.get(ALICE, "k") is None

    def test_ttl_config_sets_default_and_refresh(self, memory, clock):
        store = MeVeStore(memory, namespaces="memories/{user_id}/*", ttl={"default_ttl": 2, "refresh_on_read": False})
        store.put(ALICE, "short", {"n": 1})
        store.put(ALICE, "long", {"n": 1}, ttl=None)
        clock.advance(timedelta(minutes=1))
        assert store.get(ALICE, "short") is not None
        clock.advance(timedelta(minutes=1))
        assert [item.key for item in store.search(ALICE)] == ["long"]

    @pytest.mark.parametrize(
        "ttl", [{"omit_expired": False}, {"sweep_interval_minutes": 1}, {"default_ttl": -1}, {"refresh_on_read": 1}]
    )
    def test_invalid_ttl_config_is_refused(self, memory, ttl):
        with pytest.raises((ConfigurationError, ValidationError)):
            MeVeStore(memory, namespaces="memories/{user_id}/*", ttl=ttl)

    def test_policy_class_sets_expiry(self, memory, clock):
        store = MeVeStore(memory, namespaces="memories/{user_id}/*", policy_class="ephemeral")
        store.put(ALICE, "k", {"n": 1})
        clock.advance(timedelta(hours=6))
        assert store.get(ALICE, "k") is None

    @pytest.mark.parametrize("policy_class", ["canonical", "factual"])
    def test_maintenance_only_erases_expired_items(self, memory, clock, policy_class):
        store = MeVeStore(memory, namespaces="memories/{user_id}/*", policy_class=policy_class)
        for n in range(6):
            store.put(ALICE, f"k{n}", {"text": "Alice drinks green tea."}, ttl=timedelta(days=1_000))
        store.put(ALICE, "over", {"text": "zebra"}, ttl=1)
        clock.advance(timedelta(days=200))
        counts = memory.maintain().counts()
        assert counts.pop("expired") == 1
        assert set(counts.values()) == {0}
        assert len(store.search(ALICE, query="green tea")) == 6

    def test_search_refreshes_only_returned_page(self, store, clock):
        for n in range(4):
            store.put(ALICE, f"k{n}", {"n": n}, ttl=2)
        clock.advance(timedelta(minutes=1))
        read = {item.key for item in store.search(ALICE, limit=2)}
        clock.advance(timedelta(minutes=1))
        assert {item.key for item in store.search(ALICE)} == read


class TestErasure:
    def files_with_word(self, file):
        return [each.name for each in file.parent.iterdir() if WORD.encode() in each.read_bytes().lower()]

    @pytest.mark.parametrize("way", ["delete", "replace", "namespace", "user"])
    def test_erased_item_leaves_no_byte_on_disk(self, store, memory, file, way):
        store.put(ALICE, "k", {"text": f"{WORD} flies", "deep": [{"x": WORD}]})
        store.search(ALICE, query=WORD)
        if way == "delete":
            store.delete(ALICE, "k")
        elif way == "replace":
            store.put(ALICE, "k", {"text": "Another text."})
        elif way == "namespace":
            store.delete_namespace(ALICE)
        else:
            memory.forget_user(user_id="alice")
        assert self.files_with_word(file) == []
        assert memory.search(WORD, user_id="alice").text.lower().count(WORD) == 0

    def test_delete_namespace_erases_items_below(self, store, memory):
        """The result names them, a dry run erases nothing, and other users and namespaces stay."""
        for namespace in (ALICE, (*ALICE, "a"), (*ALICE, "a", "b"), (*ALICE, "ab"), (*BOB, "a")):
            store.put(namespace, "k", {"n": 1})
        dry_run = store.delete_namespace((*ALICE, "a"), dry_run=True)
        assert len(store.search(ALICE)) == 4
        deletion = store.delete_namespace((*ALICE, "a"))
        assert dry_run.erased == deletion.erased
        assert len(deletion.erased) == 2
        assert store.list_namespaces(prefix=ALICE) == [ALICE, (*ALICE, "ab")]
        assert store.get((*BOB, "a"), "k") is not None
        deleted = {e.seq for e in memory.audit.events(user_id="alice", action="delete")}
        named = [memory.audit.events(user_id="alice", record_id=each, action="delete") for each in deletion.erased]
        assert {event.seq for events in named for event in events} == deleted  # the log hides the keys of erased items

    def test_held_item_cannot_be_changed_or_erased(self, store, memory):
        """The whole batch is rolled back."""
        store.put(ALICE, "k", {"n": 1})
        memory.hold(item_id(ALICE, "k"), user_id="alice", why="a lawsuit")
        for ops in ([PutOp(ALICE, "k", {"n": 2})], [PutOp(ALICE, "k", None)]):
            with pytest.raises(HoldError, match="lawsuit"):
                store.batch([PutOp(ALICE, "other", {"n": 1}), *ops])
        assert store.delete_namespace(ALICE).held == {item_id(ALICE, "k"): "a lawsuit"}
        assert [item.key for item in store.search(ALICE)] == ["k"]

    def test_audit_log_records_every_operation_without_content(self, store, memory):
        store.put(ALICE, "k", {"text": WORD})
        store.put(ALICE, "k", {"text": f"{WORD} again"})
        store.search(ALICE, query=WORD)
        store.delete(ALICE, "k")
        events = memory.audit.events(user_id="alice")
        assert [event.action for event in events] == ["add", "update", "retrieve", "delete"]
        assert WORD not in str([event.to_dict() for event in events])
        assert memory.audit.verify().ok


class TestSearch:
    @pytest.mark.parametrize(
        ("filter", "keys"),
        [
            ({"n": {"$in": [1, 3]}}, ["a"]),
            ({"n": {"$nin": [1, 3]}}, ["b", "c", "d"]),
            ({"n": {"$in": []}}, []),
            ({"n": True}, ["c"]),
            ({"n": 1}, ["a"]),
            ({"n": None}, ["d"]),
            ({"n": {"$ne": None}}, ["a", "b", "c"]),
            ({"n": {"$eq": 2.0}}, ["b"]),
            ({"tags": ["x", {"y": 1}]}, ["a"]),
            ({"tags": ["x"]}, []),
        ],
    )
    def test_filter_operators_compare_json_values(self, store, filter, keys):
        values = {"a": {"n": 1, "tags": ["x", {"y": 1, "z": 2}]}, "b": {"n": 2}, "c": {"n": True}, "d": {"m": 1}}
        store.batch([PutOp(ALICE, key, value) for key, value in values.items()])
        assert sorted(item.key for item in store.search(ALICE, filter=filter)) == keys

    @pytest.mark.parametrize("filter", [{"n": {"$in": 3}}, {"n": {"$near": 1}}, {"n": {"m": {"$near": 1}}}, "n", ["n"]])
    def test_invalid_filter_is_refused(self, store, filter):
        with pytest.raises(ValidationError, match="filter"):
            store.search(ALICE, filter=filter)

    def test_search_without_query_returns_newest_first(self, store, clock):
        for key in ("a", "b", "c", "a"):
            store.put(ALICE, key, {"n": 1})
            clock.advance(timedelta(seconds=1))
        assert [item.key for item in store.search(ALICE)] == ["a", "c", "b"]

    def test_indexed_items_are_found_by_memory_search(self, store, memory):
        store.put(ALICE, "k", {"content": {"text": "Alice drinks green tea."}})
        store.put(ALICE, "x", {"text": "Alice drinks black coffee."}, index=False)
        assert [r.text for r in memory.search("green tea", user_id="alice").records] == ["Alice drinks green tea."]
        assert memory.search("green tea", user_id="bob").records == ()

    def test_memories_are_not_returned_as_items(self, store, memory):
        memory.add("Alice drinks green tea.", user_id="alice", id=item_id(ALICE, "k"))
        assert store.get(ALICE, "k") is None
        assert store.search(ALICE) == store.list_namespaces(prefix=ALICE) == []
        with pytest.raises(ValidationError, match="no item"):
            store.put(ALICE, "k", {"n": 1})

    def test_indexed_paths_are_set_by_store_or_put(self, memory):
        store = MeVeStore(memory, namespaces="memories/{user_id}/*", fields=["text"])
        store.put(ALICE, "a", {"text": "zebra", "more": "quick queen"})
        store.put(ALICE, "b", {"text": "apple", "more": "quick queen"}, index=["more"])
        assert store.search(ALICE, query="zebra")[0].key == "a"
        assert store.search(ALICE, query="quick queen")[0].key == "b"
        with pytest.raises(ValidationError, match="JSON paths"):
            store.put(ALICE, "c", {"n": 1}, index="more")

    def test_value_that_json_cannot_hold_is_refused(self, store):
        for value in ({"at": datetime.now(UTC)}, {"n": float("nan")}, {1: 2}, "text"):
            with pytest.raises(ValidationError):
                store.put(ALICE, "k", value)

    @pytest.mark.parametrize("query", [5, b"zebra", ["zebra"], "\ud800"])
    def test_invalid_query_is_refused(self, store, query):
        store.put(ALICE, "k", {"text": "zebra"})
        with pytest.raises(ValidationError, match="query"):
            store.search(ALICE, query=query)

    @pytest.mark.parametrize("query", [None, "zebra"])
    def test_any_page_size_is_accepted(self, store, query):
        store.put(ALICE, "k", {"text": "zebra"})
        assert [item.key for item in store.search(ALICE, query=query, limit=10**30)] == ["k"]
        assert store.search(ALICE, query=query, offset=10**30) == []
        for name, wrong in product(("limit", "offset"), (None, -1, 1.5, "1", True)):
            with pytest.raises(ValidationError, match="whole number"):
                store.search(ALICE, query=query, **{name: wrong})
            with pytest.raises(ValidationError, match="whole number"):
                store.list_namespaces(prefix=ALICE, **{name: wrong})

    def test_any_text_is_searchable_and_returned_unchanged(self, store):
        """NUL, lone surrogates, and more text than a memory may hold."""
        for value in ({"t": "a\x00b"}, {"t": "\ud800"}, {"t": "zebra " * 50_000}, {"t": " "}, {}):
            store.put(ALICE, "k", value)
            assert store.get(ALICE, "k").value == store.search(ALICE, query="zebra")[0].value == value


class TestConcurrency:
    async def test_concurrent_writes_of_a_loop_share_transactions(self, store, memory):
        """Invalid writes fail alone."""
        transactions = []
        write = memory._runtime.store.writing
        memory._runtime.store.writing = lambda **how: transactions.append(how) or write(**how)
        bad = [{"n": object()} if n % 10 == 0 else {"n": n} for n in range(50)]
        results = await asyncio.gather(
            *(store.aput(ALICE, f"k{n}", value) for n, value in enumerate(bad)), return_exceptions=True
        )
        assert [n for n, result in enumerate(results) if result is not None] == [0, 10, 20, 30, 40]
        assert all(isinstance(results[n], ValidationError) for n in (0, 10, 20, 30, 40))
        assert len(await store.asearch(ALICE, limit=100)) == 45
        transactions.clear()
        await asyncio.gather(*(store.aput(ALICE, f"x{n}", {"n": n}) for n in range(50)))
        assert len(transactions) <= 3

    async def test_failure_to_start_thread_is_raised_to_every_caller(self, monkeypatch, memory):
        written = []
        batcher = WriteBatcher(memory.run_async, lambda jobs: written.extend(jobs) or [None] * len(jobs))

        def no_thread(*_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_thread)
            errors = await asyncio.gather(*(batcher.submit(n) for n in range(3)), return_exceptions=True)
        assert [str(each) for each in errors] == ["can't start new thread"] * 3
        await batcher.submit(4)
        assert written == [4]

    def test_two_event_loops_share_a_store(self, store):
        for n in range(2):
            asyncio.run(store.aput(ALICE, f"k{n}", {"n": n}))
        assert len(store.search(ALICE)) == 2

    async def test_async_calls_run_off_event_loop_thread(self, store, memory):
        threads = set()
        find, version, write = memory._runtime.store.find, memory._runtime.store.version, memory._runtime.store.writing
        spy = lambda real: lambda *a, **k: threads.add(threading.get_ident()) or real(*a, **k)  # noqa: E731
        memory._runtime.store.find, memory._runtime.store.version = spy(find), spy(version)
        memory._runtime.store.writing = spy(write)
        await store.aput(ALICE, "k", {"text": "zebra"}, ttl=1)
        await store.aget(ALICE, "k")
        await store.asearch(ALICE, query="zebra")
        await store.alist_namespaces(prefix=ALICE)
        await store.abatch([GetOp(ALICE, "k"), SearchOp(ALICE), PutOp(ALICE, "k", None)])
        await store.adelete(ALICE, "k")
        await store.adelete_namespace(ALICE)
        assert threads
        assert threading.get_ident() not in threads

    def test_four_processes_writing_one_file_lose_nothing(self, file, memory, store):
        store.put(ALICE, "first", {"n": 0})
        code = (
            "import sys\n"
            "from langchain_meve import MeVeStore\n"
            "from meve.testing.fakes import OverlapVerifier\n"
            "from tests.memories import as_place, open_memory\n"
            "with open_memory(as_place(sys.argv[1]), verifier=OverlapVerifier(), audit_key=None) as memory:\n"
            "    store = MeVeStore(memory, namespaces='memories/{user_id}/*')\n"
            "    for n in range(12):\n"
            "        store.put(('memories', 'alice'), f'{sys.argv[2]} {n}', {'n': n})\n"
            "    assert len(store.search(('memories', 'alice'), limit=100)) >= 13\n"
        )
        with ExitStack() as stack:
            running = [stack.enter_context(warm_process(execute, code, as_argument(file), n)) for n in range(4)]
            assert [output.read() for _, output in running] == [""] * 4
        assert len(store.search(ALICE, limit=100)) == 49
        assert memory.audit.verify().ok
