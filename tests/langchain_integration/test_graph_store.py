"""MeVeStore beyond the rules of every store: owners, lives, holds, erasure, operators, the log, many at once."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

pytest.importorskip("langgraph")

from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from langchain_meve import MeVeStore
from langchain_meve.graph_store._tenancy import NamespaceError
from langchain_meve.graph_store._write_batcher import WriteBatcher
from meve.errors import ConfigurationError, HoldError, MeveError, ValidationError
from meve.memory import GovernedMemory
from meve.memory.items.item import item_id
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

ALICE, BOB = ("memories", "alice"), ("memories", "bob")
WORD = "zyxomma"


@pytest.fixture
def memory(file, clock):
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "clock": clock}
    with GovernedMemory.open(file, **parts) as opened:
        yield opened


@pytest.fixture
def store(memory):
    return MeVeStore(memory)


class TestOwners:
    """Whose a namespace is, and that nobody reads another's."""

    @pytest.mark.parametrize(
        ("namespace", "owner"),
        [
            (("memories", "alice"), "alice"),
            (("memories", "alice", "facts"), "alice"),
            (("alice", "memories"), "alice"),
            (("alice", "memories", "facts"), "alice"),
            (("memories", 7), 7),
            (("memories", "bob@example.com"), "bob@example.com"),
        ],
    )
    def test_the_usual_shapes_name_the_user(self, store, memory, namespace, owner):
        """As in LangGraph's guides and langmem: beside the label `memories`."""
        store.put(namespace, "k", {"n": 1})
        assert [record.id for record in memory.list(user_id=owner)] == [item_id(namespace, "k")]

    @pytest.mark.parametrize("namespace", [("users",), ("facts", "alice"), ("memories",), ("memories", ""), ("a", "b")])
    def test_a_namespace_that_names_nobody_is_refused(self, store, memory, namespace):
        """And nothing is written: no label is taken for an owner by its place alone."""
        for done in (
            lambda: store.put(namespace, "k", {"n": 1}),
            lambda: store.get(namespace, "k"),
            lambda: store.delete(namespace, "k"),
        ):
            with pytest.raises(NamespaceError, match="to name its user"):
                done()
        assert memory.stats().records == 0

    @pytest.mark.parametrize("prefix", [(), ("memories",), ("facts", "alice")])
    def test_a_prefix_that_names_nobody_is_refused(self, store, prefix):
        """By a search, a listing and a deletion; a wild card names nobody."""
        store.put(ALICE, "k", {"n": 1})
        for done in (
            lambda: store.search(prefix),
            lambda: store.search(prefix, query="what?"),
            lambda: store.list_namespaces(prefix=prefix),
            lambda: store.list_namespaces(prefix=(*prefix, "*")),
            lambda: store.delete_namespace(prefix),
            lambda: store.batch([ListNamespacesOp((MatchCondition("suffix", ("alice",)),))]),
        ):
            with pytest.raises(NamespaceError, match=r"namespace_patterns=|user_id="):
                done()

    def test_its_error_is_langgraphs_too(self, store):
        """Whoever catches LangGraph's catches ours."""
        with pytest.raises(InvalidNamespaceError):
            store.put((), "k", {"n": 1})
        assert issubclass(NamespaceError, MeveError)

    @pytest.mark.parametrize("owner", ["alice", 1])
    def test_nobody_reads_anothers(self, store, owner):
        """Not by key, prefix, question, filter, page or listing; 1 and "1" are two."""
        store.put(("memories", owner), "k", {"text": "zebra", "n": 1})
        for other in ("bob", "Alice", "alic", "1", 2):
            place = ("memories", other)
            assert store.get(place, "k") is None
            assert (
                store.search(place) == store.search(place, query="zebra") == store.search(place, filter={"n": 1}) == []
            )
            assert store.search(place, offset=0, limit=1_000) == store.list_namespaces(prefix=place) == []
            store.delete(place, "k")
            store.delete_namespace(place)
        assert store.get(("memories", owner), "k").value == {"text": "zebra", "n": 1}

    def test_shapes_are_declared(self, memory):
        """A namespace of another shape is noticed at the first write, and not read as somebody else's."""
        store = MeVeStore(memory, namespace_patterns=("app", "*", "{user_id}"))
        store.put(("app", "v1", "alice", "facts"), "k", {"n": 1})
        assert [r.user_id for r in memory.list(user_id="alice")] == ["alice"]
        assert [item.key for item in store.search(("app", "v1", "alice"))] == ["k"]
        for namespace in (ALICE, ("alice", "memories"), ("app", "v1")):
            with pytest.raises(NamespaceError):
                store.put(namespace, "k", {"n": 1})

    @pytest.mark.parametrize(
        "shapes", ["{user_id}", (), ("memories",), ("{user_id}", "{user_id}"), [("memories",)], None]
    )
    def test_a_shape_must_name_the_owner(self, memory, shapes):
        with pytest.raises((ConfigurationError, ValidationError), match=r"user_id|namespace"):
            MeVeStore(memory, namespace_patterns=shapes)

    def test_a_store_of_one_owner_takes_any_namespace(self, memory):
        """All of it is that owner's, and no other store of theirs sees less."""
        mine = MeVeStore(memory, user_id="alice")
        mine.put(("users",), "k", {"n": 1})
        MeVeStore(memory).put(ALICE, "k", {"n": 2})
        MeVeStore(memory).put(BOB, "k", {"n": 3})
        assert mine.list_namespaces() == [("memories", "alice"), ("users",)]
        assert sorted(item.value["n"] for item in mine.search(())) == [1, 2]
        assert mine.get(BOB, "k") is None

    @pytest.mark.parametrize("label", ["", "a.b", "a\x00b", "\ud800", "*", 'a"b', 2**80, -1])
    def test_any_label_and_key_come_back(self, memory, label):
        """Text of any kind, and ints; by every way of reading."""
        store = MeVeStore(memory, user_id="alice")
        key = str(label)
        store.put(("x", label), key, {"said": key})
        (found,) = store.search(("x", label))
        assert (found.namespace, found.key, found.value) == (("x", label), key, {"said": key})
        assert store.list_namespaces() == [("x", label)]
        store.delete(("x", label), key)
        assert store.get(("x", label), key) is None

    def test_long_names_are_told_apart(self, memory):
        """An id has an end; namespaces and keys needn't."""
        store = MeVeStore(memory, user_id="alice")
        for end in ("a", "b"):
            store.put(("x" * 5_000, end), "k" * 5_000 + end, {"end": end})
        assert store.get(("x" * 5_000, "a"), "k" * 5_000 + "a").value == {"end": "a"}
        assert store.list_namespaces(suffix=("b",)) == [("x" * 5_000, "b")]


class TestLives:
    """How long items live, and that LangGraph's minutes, lengths and moments all hold."""

    @pytest.mark.parametrize("ttl", [1.5, timedelta(seconds=90), datetime(2026, 5, 1, 12, 1, 30, tzinfo=UTC)])
    def test_a_life_is_minutes_a_length_or_a_moment(self, store, clock, ttl):
        """To the second, on every path, without a round of maintenance."""
        store.put(ALICE, "k", {"text": "zebra"}, ttl=ttl)
        clock.advance(timedelta(seconds=89))
        assert store.get(ALICE, "k", refresh_ttl=False) is not None
        clock.advance(timedelta(seconds=1))
        assert store.get(ALICE, "k") is None
        assert store.search(ALICE) == store.search(ALICE, query="zebra") == store.list_namespaces(prefix=ALICE) == []

    @pytest.mark.parametrize("ttl", [0, -1, True, float("nan"), float("inf"), "1", timedelta(0), datetime(2027, 1, 1)])
    def test_a_life_that_cannot_be_is_refused(self, store, ttl):
        """By `put` and by `batch`; nothing is stored."""
        with pytest.raises(ValidationError):
            store.put(ALICE, "k", {"n": 1}, ttl=ttl)
        with pytest.raises(ValidationError):
            store.batch([PutOp(ALICE, "k", {"n": 1}, None, ttl)])
        assert store.get(ALICE, "k") is None

    @pytest.mark.parametrize("ttl", [10**400, 1e300, timedelta.max])
    def test_a_life_beyond_any_calendar_is_for_ever(self, store, clock, ttl):
        store.put(ALICE, "k", {"n": 1}, ttl=ttl)
        clock.advance(timedelta(days=100_000))
        assert store.get(ALICE, "k").value == {"n": 1}
        with pytest.raises(ValidationError, match="ttl"):
            store.put(ALICE, "k", {"n": 1}, ttl=-(10**400))

    def test_a_life_that_reading_would_move_beyond_any_calendar_ends_as_before(self, store, clock):
        end = datetime(9999, 12, 31, tzinfo=UTC)
        store.put(ALICE, "k", {"n": 1}, ttl=end - clock.now())
        clock.advance(timedelta(days=30))
        assert store.get(ALICE, "k") is not None
        assert len(store.search(ALICE)) == 1

    def test_a_moment_that_utc_has_not_is_refused(self, store):
        with pytest.raises(ValidationError, match="beyond any calendar"):
            store.put(ALICE, "k", {"n": 1}, ttl=datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))))

    def test_a_moment_is_not_moved_by_reading(self, store, clock):
        store.put(ALICE, "k", {"n": 1}, ttl=clock.now() + timedelta(minutes=2))
        clock.advance(timedelta(minutes=1))
        store.get(ALICE, "k", refresh_ttl=True)
        clock.advance(timedelta(minutes=1))
        assert store.get(ALICE, "k") is None

    def test_settings_are_langgraphs(self, memory, clock):
        """A default life, and whether reading refreshes it."""
        store = MeVeStore(memory, ttl={"default_ttl": 2, "refresh_on_read": False})
        store.put(ALICE, "short", {"n": 1})
        store.put(ALICE, "long", {"n": 1}, ttl=None)
        clock.advance(timedelta(minutes=1))
        assert store.get(ALICE, "short") is not None
        clock.advance(timedelta(minutes=1))
        assert [item.key for item in store.search(ALICE)] == ["long"]

    @pytest.mark.parametrize(
        "ttl", [{"omit_expired": False}, {"sweep_interval_minutes": 1}, {"default_ttl": -1}, {"refresh_on_read": 1}]
    )
    def test_a_setting_that_cannot_be_is_refused(self, memory, ttl):
        with pytest.raises((ConfigurationError, ValidationError)):
            MeVeStore(memory, ttl=ttl)

    def test_a_class_gives_a_life(self, memory, clock):
        """An item of a class lives as the policy says, and no longer for being put without a TTL."""
        store = MeVeStore(memory, policy_class="ephemeral")
        store.put(ALICE, "k", {"n": 1})
        clock.advance(timedelta(hours=6))
        assert store.get(ALICE, "k") is None

    @pytest.mark.parametrize("policy_class", ["canonical", "factual"])
    def test_upkeep_leaves_items_alone(self, memory, clock, policy_class):
        """It erases what is over, and neither merges nor archives, sums up or marks the rest."""
        store = MeVeStore(memory, policy_class=policy_class)
        for n in range(6):
            store.put(ALICE, f"k{n}", {"text": "Alice drinks green tea."}, ttl=timedelta(days=1_000))
        store.put(ALICE, "over", {"text": "zebra"}, ttl=1)
        clock.advance(timedelta(days=200))
        done = memory.maintain().counts()
        assert done.pop("expired") == 1
        assert set(done.values()) == {0}
        assert len(store.search(ALICE, query="green tea")) == 6

    def test_a_search_finds_what_was_refreshed(self, store, clock):
        """The page that is returned lives on, and nothing else."""
        for n in range(4):
            store.put(ALICE, f"k{n}", {"n": n}, ttl=2)
        clock.advance(timedelta(minutes=1))
        read = {item.key for item in store.search(ALICE, limit=2)}
        clock.advance(timedelta(minutes=1))
        assert {item.key for item in store.search(ALICE)} == read


class TestErasure:
    """What is gone is gone, and what is on hold stays."""

    def left(self, file):
        return [each.name for each in file.parent.iterdir() if WORD.encode() in each.read_bytes().lower()]

    @pytest.mark.parametrize("way", ["delete", "replace", "namespace", "user"])
    def test_no_byte_is_left_in_any_file(self, store, memory, file, way):
        store.put(ALICE, "k", {"text": f"{WORD} flies", "deep": [{"x": WORD}]})
        store.search(ALICE, query=WORD)
        assert self.left(file)
        if way == "delete":
            store.delete(ALICE, "k")
        elif way == "replace":
            store.put(ALICE, "k", {"text": "Another text."})
        elif way == "namespace":
            store.delete_namespace(ALICE)
        else:
            memory.forget_user(user_id="alice")
        assert self.left(file) == []
        assert memory.search(WORD, user_id="alice").text.lower().count(WORD) == 0

    def test_a_namespace_is_deleted_with_what_lies_below(self, store, memory):
        """It says how many, does nothing on trial, keeps to the user and the border, and is in the log."""
        for namespace in (ALICE, (*ALICE, "a"), (*ALICE, "a", "b"), (*ALICE, "ab"), (*BOB, "a")):
            store.put(namespace, "k", {"n": 1})
        tried = store.delete_namespace((*ALICE, "a"), dry_run=True)
        assert len(store.search(ALICE)) == 4
        done = store.delete_namespace((*ALICE, "a"))
        assert tried.erased == done.erased
        assert len(done.erased) == 2
        assert store.list_namespaces(prefix=ALICE) == [ALICE, (*ALICE, "ab")]
        assert store.get((*BOB, "a"), "k") is not None
        assert {e.record_id for e in memory.audit.events(user_id="alice", action="delete")} == set(done.erased)

    def test_what_is_on_hold_stays(self, store, memory):
        """Neither a value, nor a deletion, nor that of its namespace gets past it; a batch is undone as a whole."""
        store.put(ALICE, "k", {"n": 1})
        memory.hold(item_id(ALICE, "k"), user_id="alice", why="a lawsuit")
        for ops in ([PutOp(ALICE, "k", {"n": 2})], [PutOp(ALICE, "k", None)]):
            with pytest.raises(HoldError, match="lawsuit"):
                store.batch([PutOp(ALICE, "other", {"n": 1}), *ops])
        assert store.delete_namespace(ALICE).held == {item_id(ALICE, "k"): "a lawsuit"}
        assert [item.key for item in store.search(ALICE)] == ["k"]

    def test_the_log_tells_of_everything_and_holds_no_content(self, store, memory):
        """Put, replaced, found by a question, deleted."""
        store.put(ALICE, "k", {"text": WORD})
        store.put(ALICE, "k", {"text": f"{WORD} again"})
        store.search(ALICE, query=WORD)
        store.delete(ALICE, "k")
        events = memory.audit.events(user_id="alice")
        assert [event.action for event in events] == ["add", "update", "retrieve", "delete"]
        assert WORD not in str([event.to_dict() for event in events])
        assert memory.audit.verify().ok


class TestSearch:
    """Operators beyond LangGraph's, the memory's own ranking, and items among its memories."""

    @pytest.mark.parametrize(
        ("filter", "found"),
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
    def test_filters_go_by_the_value(self, store, filter, found):
        values = {"a": {"n": 1, "tags": ["x", {"y": 1, "z": 2}]}, "b": {"n": 2}, "c": {"n": True}, "d": {"m": 1}}
        store.batch([PutOp(ALICE, key, value) for key, value in values.items()])
        assert sorted(item.key for item in store.search(ALICE, filter=filter)) == found

    @pytest.mark.parametrize("filter", [{"n": {"$in": 3}}, {"n": {"$near": 1}}, {"n": {"m": {"$near": 1}}}, "n", ["n"]])
    def test_a_filter_that_cannot_be_is_refused(self, store, filter):
        with pytest.raises(ValidationError, match="filter"):
            store.search(ALICE, filter=filter)

    @pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (1, -1), (1.5, 0), ("1", 0), (True, 0)])
    def test_pages_that_cannot_be_are_refused(self, store, limit, offset):
        with pytest.raises(ValidationError, match="whole number"):
            store.search(ALICE, limit=limit, offset=offset)

    def test_what_was_put_last_comes_first(self, store, clock):
        for key in ("a", "b", "c", "a"):
            store.put(ALICE, key, {"n": 1})
            clock.advance(timedelta(seconds=1))
        assert [item.key for item in store.search(ALICE)] == ["a", "c", "b"]

    def test_items_are_recalled_as_memories(self, store, memory):
        """What an agent put in a store its memory knows too, if it is searchable; and only its owner's."""
        store.put(ALICE, "k", {"content": {"text": "Alice drinks green tea."}})
        store.put(ALICE, "x", {"text": "Alice drinks black coffee."}, index=False)
        assert [r.text for r in memory.search("green tea", user_id="alice").records] == ["Alice drinks green tea."]
        assert memory.search("green tea", user_id="bob").records == ()

    def test_memories_are_no_items(self, store, memory):
        """What was added to the memory lies under no key, and its id can't be taken by one."""
        memory.add("Alice drinks green tea.", user_id="alice", id=item_id(ALICE, "k"))
        assert store.get(ALICE, "k") is None
        assert store.search(ALICE) == store.list_namespaces(prefix=ALICE) == []
        with pytest.raises(ValidationError, match="no item"):
            store.put(ALICE, "k", {"n": 1})

    def test_the_store_says_what_is_searched(self, memory):
        """By default all of a value, or the paths that the store was opened with, or those of one `put`."""
        store = MeVeStore(memory, fields=["text"])
        store.put(ALICE, "a", {"text": "zebra", "more": "quick queen"})
        store.put(ALICE, "b", {"text": "apple", "more": "quick queen"}, index=["more"])
        assert store.search(ALICE, query="zebra")[0].key == "a"
        assert store.search(ALICE, query="quick queen")[0].key == "b"
        with pytest.raises(ValidationError, match="JSON paths"):
            store.put(ALICE, "c", {"n": 1}, index="more")

    def test_a_value_that_json_cannot_hold_is_refused(self, store):
        for value in ({"at": datetime.now(UTC)}, {"n": float("nan")}, {1: 2}, "text", None):
            with pytest.raises(ValidationError):
                store.put(ALICE, "k", value)

    @pytest.mark.parametrize("query", [5, b"zebra", ["zebra"], "\ud800"])
    def test_a_question_that_is_no_text_is_refused(self, store, query):
        store.put(ALICE, "k", {"text": "zebra"})
        with pytest.raises(ValidationError, match="query"):
            store.search(ALICE, query=query)

    @pytest.mark.parametrize("query", [None, "zebra"])
    def test_a_page_may_be_of_any_size(self, store, query):
        store.put(ALICE, "k", {"text": "zebra"})
        assert [item.key for item in store.search(ALICE, query=query, limit=10**30)] == ["k"]
        assert store.search(ALICE, query=query, offset=10**30) == []
        for wrong in ({"limit": None}, {"offset": None}, {"limit": -1}, {"limit": 1.5}, {"offset": True}):
            with pytest.raises(ValidationError, match="whole number"):
                store.search(ALICE, query=query, **wrong)
            with pytest.raises(ValidationError, match="whole number"):
                store.list_namespaces(prefix=ALICE, **wrong)

    def test_texts_of_any_kind_are_searchable(self, store):
        """NUL, halves of characters, and more than a memory's text may hold: the value stays as it is."""
        for value in ({"t": "a\x00b"}, {"t": "\ud800"}, {"t": "zebra " * 50_000}, {"t": " "}, {}):
            store.put(ALICE, "k", value)
            assert store.get(ALICE, "k").value == store.search(ALICE, query="zebra")[0].value == value


class TestTogether:
    """Many at once, on one file."""

    async def test_tasks_of_a_loop_are_written_together(self, store, memory):
        """Fifty writes take a few transactions, and one that can't be harms no other."""
        taken = []
        write = memory._kit.store.writing
        memory._kit.store.writing = lambda **how: taken.append(how) or write(**how)
        bad = [{"n": object()} if n % 10 == 0 else {"n": n} for n in range(50)]
        done = await asyncio.gather(
            *(store.aput(ALICE, f"k{n}", value) for n, value in enumerate(bad)), return_exceptions=True
        )
        assert [n for n, result in enumerate(done) if result is not None] == [0, 10, 20, 30, 40]
        assert all(isinstance(done[n], ValidationError) for n in (0, 10, 20, 30, 40))
        assert len(await store.asearch(ALICE, limit=100)) == 45
        taken.clear()
        await asyncio.gather(*(store.aput(ALICE, f"x{n}", {"n": n}) for n in range(50)))
        assert len(taken) <= 3

    async def test_what_keeps_all_from_being_written_is_told_to_each(self, monkeypatch):
        """And is no cancellation; what is sent later is done."""
        written = []
        batcher = WriteBatcher(lambda jobs: written.extend(jobs) or [None] * len(jobs))

        async def no_thread(*_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "to_thread", no_thread)
            told = await asyncio.gather(*(batcher.submit(n) for n in range(3)), return_exceptions=True)
        assert [str(each) for each in told] == ["can't start new thread"] * 3
        await batcher.submit(4)
        assert written == [4]

    def test_two_loops_share_a_store(self, store):
        for n in range(2):
            asyncio.run(store.aput(ALICE, f"k{n}", {"n": n}))
        assert len(store.search(ALICE)) == 2

    async def test_the_loop_runs_on_meanwhile(self, store, memory):
        """No call works on the loop's own thread."""
        import threading

        seen = set()
        find, version, write = memory._kit.store.find, memory._kit.store.version, memory._kit.store.writing
        spy = lambda real: lambda *a, **k: seen.add(threading.get_ident()) or real(*a, **k)  # noqa: E731
        memory._kit.store.find, memory._kit.store.version = spy(find), spy(version)
        memory._kit.store.writing = spy(write)
        await store.aput(ALICE, "k", {"text": "zebra"}, ttl=1)
        await store.aget(ALICE, "k")
        await store.asearch(ALICE, query="zebra")
        await store.alist_namespaces(prefix=ALICE)
        await store.abatch([GetOp(ALICE, "k"), SearchOp(ALICE), PutOp(ALICE, "k", None)])
        await store.adelete(ALICE, "k")
        await store.adelete_namespace(ALICE)
        assert seen
        assert threading.get_ident() not in seen

    def test_four_processes_lose_nothing(self, file, memory, store):
        """On one file; each sees what the others wrote."""
        store.put(ALICE, "first", {"n": 0})
        code = (
            "import sys\n"
            "from langchain_meve import MeVeStore\n"
            "from meve.memory import GovernedMemory\n"
            "from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder\n"
            "parts = {'embedder': WordEmbedder(), 'verifier': OverlapVerifier(), 'tokens': WordCounter()}\n"
            "with GovernedMemory.open(sys.argv[1], **parts) as memory:\n"
            "    store = MeVeStore(memory)\n"
            "    for n in range(12):\n"
            "        store.put(('memories', 'alice'), f'{sys.argv[2]} {n}', {'n': n})\n"
            "    assert len(store.search(('memories', 'alice'), limit=100)) >= 13\n"
        )
        running = [subprocess.Popen([sys.executable, "-c", code, str(file), str(n)]) for n in range(4)]
        assert [each.wait() for each in running] == [0] * 4
        assert len(store.search(ALICE, limit=100)) == 49
        assert memory.audit.verify().ok
