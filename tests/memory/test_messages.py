"""Messages: order, paging, expiry, erasure and concurrency."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest

from meve._postgres import is_postgres_url
from meve.errors import HoldError, PassageError, StoreCorruptError, UnknownIdError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.memory.records import user_key
from meve.memory.stores._sql.record_query import _Hashed
from meve.memory.stores.protocol import EventQuery, RecordQuery
from tests.memories import change_sealed, open_memory
from tests.memory.messages_child import add_pairs
from tests.memory.test_erasure import files_containing
from tests.warm_process import warm_process

WEEK = timedelta(days=7)
SECRET = "zyxomma petiolatum"


def add_messages(memory, *texts, user="alice", session="s", **options):
    return memory.messages.add(session, [{"text": text} for text in texts], user_id=user, **options)


def message_texts(memory, user="alice", session="s", **query):
    return [m.value["text"] for m in memory.messages.page(session, user_id=user, **query)]


def test_page_returns_messages_in_order_within_bounds(memory):
    add_messages(memory, *"abc")
    add_messages(memory, "x", session="other")
    add_messages(memory, *"de")
    places = [m.place for m in memory.messages.page("s", user_id="alice")]
    assert places == sorted(places)
    assert message_texts(memory) == list("abcde")
    assert message_texts(memory, limit=2) == list("ab")
    assert message_texts(memory, limit=2, newest=True) == list("de")
    assert message_texts(memory, limit=2, offset=1, newest=True) == list("cd")
    assert message_texts(memory, limit=2, offset=None) == list("ab")
    assert message_texts(memory, after=places[2]) == list("de")
    assert message_texts(memory, after=places[0], limit=1) == ["b"]
    assert message_texts(memory, before=places[2], newest=True, limit=1) == ["b"]
    assert message_texts(memory, limit=0) == []


def test_one_id_for_two_messages_is_an_error_and_for_the_same_one_is_none(memory):
    with pytest.raises(ValidationError, match="ids must name each message once, got 'q'"):
        add_messages(memory, "a", "b", ids=["q", "q"])
    assert message_texts(memory) == []
    assert add_messages(memory, "a", "a", "c", ids=["q", "q", None])[:2] == ["q", "q"]
    assert message_texts(memory) == ["a", "c"]


def test_places_are_stable_and_never_reused(memory):
    add_messages(memory, *"abc")
    before = {m.id: m.place for m in memory.messages.page("s", user_id="alice")}
    memory.messages.pop("s", user_id="alice", limit=1, archive=True)
    assert {m.id: m.place for m in memory.messages.page("s", user_id="alice", archived=None)} == before
    memory.messages.pop("s", user_id="alice", limit=9, archived=None)
    add_messages(memory, "d")
    (left,) = memory.messages.page("s", user_id="alice")
    assert left.place > max(before.values())


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"limit": 3, "newest_first": True},
        {"after": 5, "limit": 3},
        {"archived": True, "before": 5, "newest_first": True},
    ],
)
def test_page_query_uses_the_index_without_sorting(memory, file, clock, conditions):
    if is_postgres_url(file):
        pytest.skip("about SQLite's plans")
    add_messages(memory, *"abc")
    query = RecordQuery(
        user=user_key("alice"), kind="message", session_id="s", alive_at=clock.now(), **conditions
    )  # fmt: skip
    with memory._runtime.store.backend.reading() as snapshot:
        sql, values = _Hashed.of(snapshot._vault, query).select("row, slot, sealed, id, session")
        plan = [row[3] for row in snapshot._vault.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert any("USING INDEX memories_message" in step for step in plan)
    assert not any("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize("value", ["[1", "[1]", "7", ""])
def test_damaged_message_raises(memory, file, value):
    add_messages(memory, *"abc")
    damaged = memory.messages.page("s", user_id="alice")[1]
    change_sealed(file, "alice", damaged.id, metadata=value)
    assert message_texts(memory, limit=1) == ["a"]
    with pytest.raises(StoreCorruptError, match="restore its file from a copy"):
        message_texts(memory)


def test_users_see_only_their_own_messages(memory):
    for user in ("alice", "1", 1):
        add_messages(memory, f"of {user!r}", user=user)
    (other,) = memory.messages.page("s", user_id="1")
    for user in ("alice", "1", 1):
        assert message_texts(memory, user=user) == [f"of {user!r}"]
    with pytest.raises(UnknownIdError):
        memory.messages.pop("s", ids=[other.id], user_id="alice")
    memory.messages.pop("s", user_id="alice")
    assert message_texts(memory, user="1") == ["of '1'"]
    assert memory.messages.sessions(user_id="alice") == []
    assert memory.messages.sessions(user_id=1) == ["s"]
    with pytest.raises(ValidationError):
        memory.messages.page("s", user_id="")


@pytest.mark.parametrize("ttl", [None, timedelta(hours=2)])
def test_expired_message_is_in_no_read(memory, clock, ttl):
    add_messages(memory, "a", ttl=ttl)
    lifetime = ttl or WEEK
    clock.advance(lifetime - timedelta(seconds=1))
    add_messages(memory, "b", ttl=ttl)
    assert message_texts(memory) == ["a", "b"]
    clock.advance(timedelta(seconds=1))
    assert message_texts(memory) == message_texts(memory, limit=1) == ["b"]
    assert memory.messages.count("s", user_id="alice") == 1
    clock.advance(lifetime)
    assert memory.messages.sessions(user_id="alice") == []
    assert memory.messages.pop("s", user_id="alice", archive=True)[0] == []
    assert memory.export(user_id="alice")["records"] == []
    assert len(memory.maintain().expired["alice"]) == 2


def test_chat_ttl_of_the_policy_applies_to_messages(file, clock):
    policy = Policy.from_dict({"chat_ttl": "1h"})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        add_messages(memory, "a")
        clock.advance(timedelta(hours=1))
        assert message_texts(memory) == []


@pytest.mark.parametrize("way", ["delete", "pop", "replace", "forget_user", "by its id", "expire"])
def test_erased_message_leaves_no_byte_in_any_file(memory, file, clock, way):
    add_messages(memory, "a")
    (message_id,) = memory.messages.add("s", [{"text": SECRET, "who": SECRET}], user_id="alice")
    memory.search("anything", user_id="alice")
    if way == "delete":
        _, result = memory.messages.pop("s", ids=[message_id], user_id="alice")
        assert result.erased == (message_id,)
    elif way == "pop":
        memory.messages.pop("s", user_id="alice", limit=1, newest=True)
    elif way == "replace":
        memory.messages.replace("s", [{"text": "a"}], user_id="alice")
    elif way == "forget_user":
        memory.forget_user(user_id="alice")
    elif way == "by its id":
        memory.delete(message_id, user_id="alice")
    else:
        clock.advance(WEEK)
        memory.maintain()
    assert files_containing(file, SECRET.encode()) == []
    assert message_texts(memory) == ([] if way in ("forget_user", "expire") else ["a"])


def test_log_records_messages_without_their_text(memory):
    (message_id,) = memory.messages.add("s", [{"text": SECRET}], user_id="alice", reason="said")
    memory.messages.pop("s", user_id="alice", archive=True, reason="long ago")
    memory.messages.pop("s", ids=[message_id], user_id="alice", reason="asked for")
    events = list(memory._runtime.store.events(EventQuery(user=user_key("alice"), record=message_id)))
    assert [(e.action, e.reason) for e in events] == [("add", "said"), ("update", "long ago"), ("delete", "asked for")]
    assert len({e.detail["content"] for e in events[:2]}) == 1
    assert SECRET not in json.dumps([e.to_dict() for e in events])
    assert memory.audit.verify().ok


def test_log_hashes_differ_between_different_messages(memory):
    ids = add_messages(memory, "a", "b", "a")
    hashes = [next(iter(memory._runtime.store.events(EventQuery(record=i)))).detail["content"] for i in ids]
    assert hashes[0] == hashes[2] != hashes[1]


def test_erasure_with_a_held_message_raises_and_changes_nothing(memory):
    ids = add_messages(memory, *"abc")
    memory.hold(ids[1], user_id="alice", why="a court")
    calls = [
        lambda: memory.messages.pop("s", ids=ids, user_id="alice"),
        lambda: memory.messages.pop("s", user_id="alice"),
        lambda: memory.messages.pop("s", user_id="alice", archive=True),
        lambda: memory.messages.replace("s", [{"text": "x"}], user_id="alice"),
    ]
    for call in calls:
        with pytest.raises(HoldError, match="a court"):
            call()
        assert message_texts(memory) == list("abc")
    assert memory.forget_user(user_id="alice").held == {ids[1]: "a court"}
    assert message_texts(memory) == ["b"]


def test_deleting_a_message_erases_records_derived_from_it(memory):
    ids = add_messages(memory, "I like tea.", "I like bread.")
    tea = memory.add("Alice likes tea.", user_id="alice", derived_from=[ids[0]])
    memory.add("Alice likes bread.", user_id="alice", derived_from=[ids[1]])
    assert len(memory.search("likes tea bread", user_id="alice").records) == 2
    _, result = memory.messages.pop("s", ids=[ids[0]], user_id="alice")
    assert set(result.erased) == {ids[0], tea.id}
    assert user_key("alice") not in memory._searcher.indexes._indexes
    assert [r.text for r in memory.search("likes tea bread", user_id="alice").records] == ["Alice likes bread."]


def test_search_returns_no_messages(memory):
    memory.add("Alice likes tea.", user_id="alice", source="doc")
    add_messages(memory, "Alice likes tea.", "What does Alice like?")
    for options in ({}, {"session_id": "s"}, {"sources": ["message"]}, {"include_private": True}):
        records = memory.search("What does Alice like?", user_id="alice", **options).records
        assert all(r.source == "doc" for r in records)
    assert [e.record.source for e in memory.explain("Alice likes tea", user_id="alice")] == ["doc"]
    assert [r.source for r in memory.search("What does Alice like?", user_id="alice").records] == ["doc"]


def test_maintenance_ignores_messages_and_the_cap_does_not_count_them(file, clock):
    policy = Policy.from_dict({"limits": {"per_user": 2}, "chat_ttl": None, "classes": {"factual": {"ttl": None}}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for n in range(2):
            memory.add(f"Fact {n}.", user_id="alice", source="doc", policy_class="canonical")
        add_messages(memory, *["the same"] * 10)
        clock.advance(timedelta(days=400))
        report = memory.maintain()
        assert not any(report.counts().values()), report.counts()
        assert message_texts(memory) == ["the same"] * 10


def test_add_and_update_reject_messages(memory):
    (message_id,) = add_messages(memory, "a")
    with pytest.raises(ValidationError, match=r"memory\.messages"):
        memory.add("b", user_id="alice", source="message")
    for change in ({"text": "b"}, {"metadata": {}}, {"tags": ["archived"]}):
        with pytest.raises(ValidationError, match="can't be edited in place"):
            memory.update(message_id, user_id="alice", **change)
    assert message_texts(memory) == ["a"]
    assert memory.get(message_id, user_id="alice").metadata == {"text": "a"}
    assert [r["id"] for r in memory.export(user_id="alice")["records"]] == [message_id]


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (["text"], {}),
        ([{"n": float("nan")}], {}),
        ([{"it": object()}], {}),
        ([{}], {"ttl": timedelta(0)}),
        ([{}], {"user_id": None}),
    ],
)
def test_invalid_message_raises_and_stores_nothing(memory, values, options):
    with pytest.raises(ValidationError):
        memory.messages.add("s", [{"text": "a"}, *values], **{"user_id": "alice", **options})
    with pytest.raises(PassageError, match="session_id"):
        memory.messages.add(" ", [{"text": "a"}], user_id="alice")
    assert memory.list(user_id="alice", include_messages=True) == []


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"offset": -1}, {"limit": True}, {"limit": 1.5}])
def test_invalid_limit_or_offset_raises(memory, wrong):
    add_messages(memory, *"abc")
    for call in (memory.messages.page, memory.messages.pop):
        with pytest.raises(ValidationError, match="whole number"):
            call("s", user_id="alice", **wrong)
    assert message_texts(memory) == list("abc")


def test_message_id_of_another_session_raises(memory):
    (other,) = add_messages(memory, "x", session="other")
    (mine,) = add_messages(memory, "a")
    for archive in (False, True):
        with pytest.raises(UnknownIdError, match=other):
            memory.messages.pop("s", ids=[mine, other], archive=archive, user_id="alice")
    memory.messages.pop("s", ids=[mine], archive=True, user_id="alice")
    assert message_texts(memory) == []
    assert message_texts(memory, archived=True) == ["a"]
    assert memory.messages.pop("s", user_id="alice", ids=[])[0] == []


def test_concurrent_adds_and_pops_lose_and_repeat_nothing(memory):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: add_messages(memory, f"{n} call", f"{n} result"), range(50)))
        texts = message_texts(memory)
        assert len(texts) == 100
        assert [text.replace("call", "result") for text in texts[::2]] == texts[1::2]
        popped = list(pool.map(lambda _: memory.messages.pop("s", user_id="alice", limit=1)[0], range(100)))
    assert [len(each) for each in popped] == [1] * 100
    assert sorted(each[0].value["text"] for each in popped) == sorted(texts)


def test_concurrent_processes_lose_nothing_and_keep_order(tmp_path):
    file, processes, count = tmp_path / "memory.db", 3, 20
    with ExitStack() as stack:
        running = [stack.enter_context(warm_process(add_pairs, file, str(n), count)) for n in range(processes)]
        assert [output.read() for _, output in running] == [""] * processes
    with open_memory(file) as memory:
        values = [m.value for m in memory.messages.page("s", user_id="alice")]
        assert [v["call"] for v in values[::2]] == [v["result"] for v in values[1::2]]
        for n in range(processes):
            assert [v["call"][1] for v in values[::2] if v["call"][0] == str(n)] == list(range(count))
        assert memory.audit.verify().ok


def test_messages_between_turns_change_no_score(memory):
    """A turn takes relevance from its neighbouring turns; messages aren't neighbours."""
    for user in ("alice", "bob"):
        memory.add("Which pots are for the balcony?", user_id=user, session_id="s")
        if user == "bob":
            add_messages(memory, "a", user="bob")
        memory.add("The blue ones.", user_id=user, session_id="s")
    explanations = [memory.explain("pots for the balcony", user_id=user) for user in ("alice", "bob")]
    assert [e.score for e in explanations[0]] == [e.score for e in explanations[1]]
    assert len(explanations[0]) == 2
