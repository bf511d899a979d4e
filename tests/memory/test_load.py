"""Recall cache, index limits and reduced work under load."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from meve.errors import ValidationError
from meve.memory import GovernedMemory, Policy
from tests.memories import KEY, HookedEmbedder

QUERY = "What do tomatoes need?"


def retrieve_settings(recall):
    return recall.trace.phases[0].settings


def test_recall_is_cached_until_a_visible_record_changes(memory):
    memory.add("Tomatoes need sun.", user_id="alice", id="t")
    cache = memory._searcher.cache
    first = memory.search(QUERY, user_id="alice")
    again = memory.search(QUERY, user_id="alice")
    assert (cache.hits, cache.misses) == (1, 1)
    assert again.text == first.text
    assert again.id != first.id
    memory.add("Tomatoes need water.", user_id="bob")
    memory.search(QUERY, user_id="alice")
    assert cache.hits == 2
    memory.add("Tomatoes need water.", user_id="alice")
    assert len(memory.search(QUERY, user_id="alice").records) == 2
    memory.add_shared("Tomatoes need warmth.")
    assert len(memory.search(QUERY, user_id="alice").records) == 3


def test_change_by_another_connection_invalidates_the_cache(memory, file, clock):
    memory.add("Tomatoes need sun.", user_id="alice", id="t")
    memory.search(QUERY, user_id="alice")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as other:
        other.update("t", user_id="alice", text="Tomatoes need water.")
    assert "water" in memory.search(QUERY, user_id="alice").text


def test_recall_cache_has_the_policys_size(file):
    with GovernedMemory.open(file, policy=Policy.from_dict({"limits": {"recalls": 2}})) as memory:
        for n in range(5):
            memory.search(f"{QUERY} {n}", user_id="alice")
        assert len(memory._searcher.cache._recalls) == 2


def test_user_indexes_over_the_limit_are_evicted_and_rebuilt(file):
    with GovernedMemory.open(file, policy=Policy.from_dict({"limits": {"vectors": 3, "recalls": 0}})) as memory:
        for user in "abcdef":
            for what in ("sun", "much water"):
                memory.add(f"Tomatoes need {what}.", user_id=user)
        for user in "abcdefabc":
            assert len(memory.search(QUERY, user_id=user).records) == 2
        assert sum(map(len, memory._searcher.indexes._indexes.values())) <= 4


def test_under_load_fewer_candidates_are_ranked_and_traced_as_shed(file, clock):
    barrier = threading.Barrier(3)

    policy = Policy.from_dict({"limits": {"busy": 2, "busy_candidates": 1, "recalls": 0}})
    with GovernedMemory.open(
        file, policy=policy, clock=clock, embedder=HookedEmbedder(lambda: barrier.wait(20))
    ) as memory:
        for n in range(4):
            memory.add(f"Tomatoes need {n} suns.", user_id="alice")
        memory.add("Tomatoes need an eclipse.", user_id="alice", id="over", ttl=timedelta(seconds=1))
        memory.add("Tomatoes need a secret.", user_id="bob", id="bob's")
        clock.advance(timedelta(seconds=1))
        with ThreadPoolExecutor(3) as pool:
            recalls = list(pool.map(lambda _: memory.search(QUERY, user_id="alice"), range(3)))
    assert sorted(retrieve_settings(r)["shed"] for r in recalls) == [False, False, True]
    assert sorted(len(r.records) for r in recalls)[0] == 1
    assert not any(record.id in ("over", "bob's") for r in recalls for record in r.records)


def test_under_load_reflection_is_deferred(file):
    """Deferred reflections run with the next reflection, maintenance or close, except for erased records."""
    policy = Policy.from_dict({"limits": {"busy": 1}})

    def add_and_search(memory, record_id, user="alice"):
        memory.add("Tomatoes need sun.", user_id=user, id=record_id, source="doc")
        return memory.search(QUERY, user_id=user)

    def defer(memory, recall):
        load = memory._searcher.load
        with load.one_more(), load.one_more():
            reflection = memory.reflect(recall, answer="Tomatoes need sun.")
        assert (reflection.deferred, reflection.verdicts) == (True, {})

    with GovernedMemory.open(file, policy=policy) as memory:
        defer(memory, add_and_search(memory, "a"))
        defer(memory, add_and_search(memory, "b", "bob"))
        assert memory.get("a", user_id="alice").reflection == 50
        assert not memory.reflect(memory.search("bread", user_id="carol"), answer="None.").deferred
        assert memory.get("a", user_id="alice").reflection == 60
        assert memory.get("b", user_id="bob").reflection == 60
        recall = memory.search(QUERY, user_id="alice")
        defer(memory, recall)
        memory.maintain()
        assert memory.get("a", user_id="alice").reflection == 70
        defer(memory, recall)
        defer(memory, memory.search(QUERY, user_id="bob"))
        memory.forget_user(user_id="bob")
        with pytest.raises(ValidationError):
            memory.reflect("no recall", answer="None.")
    with GovernedMemory.open(file) as again:
        assert again.get("a", user_id="alice").reflection == 75
        assert [e.action for e in again.audit.events(user_id="bob")] == ["add", "retrieve", "use", "retrieve", "delete"]


def test_erasure_drops_deferred_reflections_without_judging_them(file, monkeypatch):
    with GovernedMemory.open(file, policy=Policy.from_dict({"limits": {"busy": 1}})) as memory:
        memory.add("Tomatoes need sun.", user_id="alice", id="a", source="doc")
        recall, load = memory.search(QUERY, user_id="alice"), memory._searcher.load
        with load.one_more(), load.one_more():
            assert memory.reflect(recall, answer="Tomatoes need sun.").deferred
        with monkeypatch.context() as patched:
            patched.setattr(type(memory._runtime.usage), "judge", lambda *_: 1 / 0)
            assert memory.delete("a", user_id="alice").erased == ("a",)
        assert memory._reflector._pop_deferred() is None


def test_record_rejected_by_the_verifier_is_not_returned_at_threshold_0(file):
    with GovernedMemory.open(
        file, policy=Policy.from_dict({"ranking": {"threshold": 0}}), verify_threshold=1.0
    ) as memory:
        memory.add("Tomatoes need sun.", user_id="alice", tags=["garden"])
        assert len(memory.search(QUERY, user_id="alice").records) == 1
        assert memory.search(QUERY, user_id="alice", verify=True).records == ()
        assert memory.search(QUERY, user_id="alice", verify=True, tags=["other"]).records == ()


def test_open_memory_ranks_like_a_newly_opened_one(memory, file, clock):
    turns = ["Where were you?", "In Lisbon with Rosa.", "How was the food?", "We ate grilled sardines.", "And the sea?"]
    for n, text in enumerate(turns):
        memory.add(text, user_id="alice", id=f"t{n}", session_id="s", policy_class="canonical")
    recall = memory.search("Lisbon with Rosa", user_id="alice", limit=1)
    memory.reflect(recall, answer="You were in Lisbon with Rosa.")
    memory.update("t3", user_id="alice", text="We ate grilled squid.")
    clock.advance(timedelta(hours=1))

    def rank(opened):
        recall = opened.search("What food was eaten in Lisbon?", user_id="alice")
        return [(c.id, c.scores) for c in sorted(recall.trace.candidates, key=lambda c: c.id)]

    warm = rank(memory)
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as cold:
        assert rank(cold) == warm


def test_cached_recall_is_marked_and_recomputed_the_next_day(memory, clock):
    memory.add("Tomatoes need sun.", user_id="alice", source="doc", policy_class="canonical", id="t")
    assert "cached" not in retrieve_settings(memory.search(QUERY, user_id="alice"))
    assert retrieve_settings(memory.search(QUERY, user_id="alice"))["cached"] is True
    clock.advance(timedelta(days=1))
    assert "cached" not in retrieve_settings(memory.search(QUERY, user_id="alice"))


def test_verified_recall_trace_contains_the_calibration(memory):
    memory.add("Tomatoes need six to eight hours of sun.", user_id="alice")
    recall = memory.search("How much sun do tomatoes need?", user_id="alice", verify=True)
    (verify,) = (p for p in recall.trace.phases if p.name == "verify")
    assert verify.settings["verifier"] == "meve-verifier-1"
    assert verify.settings["calibration"]["method"] == "platt"


@pytest.mark.parametrize("tags", [None, ["garden"]])
def test_verified_recall_trace_tells_what_each_verdict_was_based_on(file, tags):
    with GovernedMemory.open(file, embedder="minilm") as memory:
        memory.add("Tomatoes need six to eight hours of sun.", user_id="alice", tags=["garden"], id="sun")
        memory.add("The tomato soup is in the freezer.", user_id="alice", tags=["garden"], id="soup")
        recall = memory.search("How much sun do tomatoes need?", user_id="alice", verify=True, tags=tags)
    (verify,) = (p for p in recall.trace.phases if p.name == "verify")
    assert verify.settings["evidence"]
    assert len(recall.trace.candidates) == 2
    for candidate in recall.trace.candidates:
        assert candidate.scores.keys() >= {"verifier", "logit", "cosine"}
        assert (candidate.scores["verifier"] >= 0.5) == (candidate.reason == "verified") == (candidate.id == "sun")


def test_recall_parses_each_record_once(file, monkeypatch):
    from meve.memory._recall import compared_texts

    parsed = []
    parse = compared_texts.parse_statement
    monkeypatch.setattr(
        compared_texts, "parse_statement", lambda text, *known: parsed.append(text) or parse(text, *known)
    )
    with GovernedMemory.open(file, policy=Policy.from_dict({"ranking": {"conflicts": True}})) as memory:
        for n in range(30):
            memory.add(f"The bus to the old harbour leaves at {n % 24}:{n + 10}.", user_id="alice", source="doc")
        search_all = {"user_id": "alice", "limit": None, "max_tokens": 2_000}
        assert len(memory.search("When does the bus to the old harbour leave?", **search_all).records) == 30
        assert 2 <= len(parsed) <= 30
        memory.search("When does the bus leave?", **search_all)
        assert len(parsed) <= 30


def test_parsed_statements_are_kept_until_their_own_record_changes(memory):
    for name in ("Ann", "Bo", "Cy"):
        memory.add(f"My friend {name} lives in Bergen.", user_id="alice", id=name)
    memory.search("Where does my friend live?", user_id="alice")
    index = memory._searcher.indexes.of("s:alice")
    kept = index.compared.statement("My friend Ann lives in Bergen.")
    memory.update("Bo", user_id="alice", text="My friend Bo moved to Oslo.")
    memory.search("Where do my friends live?", user_id="alice")
    assert index.compared.statement("My friend Ann lives in Bergen.") is kept
    assert "My friend Bo lives in Bergen." not in {**index.compared._statements, **index.compared._older_statements}


def test_parsed_statements_in_use_survive_many_others(memory):
    index = memory._searcher.indexes.of("s:alice")
    first = index.compared.statement("I like tea.")
    for n in range(10_000):
        index.compared.statement(f"Number {n}.")
        if n % 1_000 == 0:
            assert index.compared.statement("I like tea.") is first
    assert len(index.compared._statements) + len(index.compared._older_statements) <= 4_096


def test_search_of_idle_memories_decrypts_none_of_them(memory, clock, monkeypatch):
    for n in range(5):
        memory.add(f"The number {n} tram goes to Oslo.", user_id="alice", id=f"t{n}")
    memory.search("Which tram goes to Oslo?", user_id="alice")
    clock.advance(timedelta(days=60))
    monkeypatch.setattr("meve.memory.stores._sql.record_query.unseal_row", lambda *_: pytest.fail("decrypted"))
    assert len(memory.search("Where does the tram go?", user_id="alice").records) == 5
