"""Filters of a search by metadata, agent, run and time; the embedder of a new and of an existing memory."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import ConfigurationError, IndexMismatchError, ValidationError
from meve.memory import GovernedMemory, Turn, TurnRules, record_turns
from tests.memories import KEY, FixedExtractor, open_memory

QUESTION = "What does the cat eat?"
LASTING = {"user_id": "alice", "ttl": timedelta(days=5_000)}


def find(memory, question=QUESTION, **options):
    return {r.id for r in memory.search(question, user_id="alice", **options).records}


@pytest.fixture
def cats(memory, clock):
    """One memory a day, from 1 May 2026 on."""
    for id, text, scopes in (
        ("plain", "The cat eats fish.", {}),
        ("oak", "Cats may eat no onions.", {"metadata": {"project": "oak", "n": 1}}),
        ("elm", "Our cat sleeps on the stove.", {"metadata": {"project": "elm"}, "agent_id": "vet"}),
        ("run", "Dry food is in the cellar.", {"agent_id": "vet", "run_id": "r1"}),
    ):
        memory.add(text, id=id, **LASTING, **scopes)
        clock.advance(timedelta(days=1))
    return memory


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"where": {"project": "oak"}}, {"oak"}),
        ({"where": {"project": ["oak", "elm"]}}, {"oak", "elm"}),
        ({"where": {"project": "oak", "n": 2}}, set()),
        ({"where": lambda metadata: "project" not in metadata}, {"plain", "run"}),
        ({"where": {}}, {"plain", "oak", "elm", "run"}),
        ({"agent_id": "vet"}, {"elm", "run"}),
        ({"agent_id": "vet", "where": {"project": "elm"}}, {"elm"}),
        ({"agent_id": "vet", "where": lambda metadata: "project" not in metadata}, {"run"}),
        ({"agent_id": "vet", "run_id": "r1"}, {"run"}),
        ({"since": datetime(2026, 5, 3, 12, tzinfo=UTC)}, {"elm", "run"}),
        ({"until": datetime(2026, 5, 2, 12, tzinfo=UTC)}, {"plain"}),
        ({"since": datetime(2026, 5, 2, tzinfo=UTC), "until": datetime(2026, 5, 3, tzinfo=UTC)}, {"oak"}),
        ({"within": timedelta(days=2), "until": datetime(2026, 5, 4, tzinfo=UTC)}, {"elm"}),
    ],
)
def test_search_returns_only_memories_that_meet_each_condition(cats, options, ids):
    assert find(cats, **options) == ids
    assert find(cats, **options) == ids  # from the cache


def test_filter_function_is_asked_each_time(cats):
    admitted = {"oak"}
    assert find(cats, where=lambda metadata: metadata.get("project") in admitted) == {"oak"}
    admitted.add("elm")
    assert find(cats, where=lambda metadata: metadata.get("project") in admitted) == {"oak", "elm"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"where": "oak"}, ConfigurationError, "filter must map names"),
        ({"where": {"project": object()}}, ConfigurationError, "filter must map names"),
        ({"where": lambda metadata: metadata["missing"]}, ConfigurationError, "calling the filter"),
        ({"agent_id": " "}, ValidationError, "agent_id must not be blank"),
        ({"agent_id": "vet", "where": {"agent_id": "x"}}, ValidationError, "give agent_id once"),
        ({"since": datetime(2026, 5, 1)}, ValidationError, "since must have a time zone"),
        ({"until": "2026-05-01"}, ValidationError, "until must be a datetime"),
        (
            {"since": datetime(2026, 5, 2, tzinfo=UTC), "until": datetime(2026, 5, 2, tzinfo=UTC)},
            ValidationError,
            "since must be before until",
        ),
        (
            {"since": datetime(2026, 5, 2, tzinfo=UTC), "within": timedelta(days=1)},
            ValidationError,
            "only one of since and within",
        ),
    ],
)
def test_invalid_condition_raises(cats, options, error, message):
    with pytest.raises(error, match=message):
        cats.search(QUESTION, user_id="alice", **options)


def test_agent_given_twice_on_adding_raises(memory):
    with pytest.raises(ValidationError, match="give agent_id once"):
        memory.add("A text.", user_id="alice", agent_id="vet", metadata={"agent_id": "nurse"})
    assert memory.list(user_id="alice") == []


def test_list_shows_messages_only_on_request(memory):
    memory.messages.add("s1", [{"role": "user", "text": "Hello!"}], user_id="alice")
    memory.add("The cat eats fish.", id="fish", session_id="s1", **LASTING)
    assert [r.id for r in memory.list(user_id="alice")] == ["fish"]
    assert [r.id for r in memory.list(user_id="alice", session_id="s1")] == ["fish"]
    assert {r.kind for r in memory.list(user_id="alice", include_messages=True)} == {"fact", "message"}


def test_new_memory_embeds_with_minilm_and_a_file_keeps_its_embedder(file):
    with GovernedMemory.open(file, audit_key=KEY, embedder="static") as memory:
        memory.add("The cat eats fish.", id="fish", **LASTING)
    with GovernedMemory.open(file, audit_key=KEY) as memory:
        assert memory._runtime.embedder.name == "meve-static-1"
        assert find(memory) == {"fish"}
    with pytest.raises(IndexMismatchError, match="meve-static-1"):
        GovernedMemory.open(file, audit_key=KEY, embedder="minilm")
    with GovernedMemory.open(file.with_name("new.db"), audit_key=KEY) as memory:
        assert memory._runtime.embedder.name == "meve-minilm-1"


def test_query_longer_than_the_embedders_window_finds_memories(memory):
    memory.add("The cat eats fish.", id="fish", **LASTING)
    memory.items.put(("pets",), "cat", {"food": "fish"}, user_id="alice")
    question = "I sat by the river all day and thought of nothing much at all. " * 60 + QUESTION
    assert find(memory, question) >= {"fish"}
    assert memory.items.search(("pets",), user_id="alice", query=question)


def test_embedder_of_another_name_is_still_refused(file):
    open_memory(file).close()
    with pytest.raises(IndexMismatchError, match="open it with that embedder"):
        GovernedMemory.open(file, audit_key=KEY)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"agent_id": "vet"}, {"one", "two"}),
        ({"agent_id": "vet", "run_id": "r1"}, {"two"}),
        ({"tags": ["Food", "toys"]}, {"two"}),
        ({"tags": []}, set()),
        ({"agent_id": "cook"}, set()),
        ({}, {"one", "two", "three"}),
    ],
)
def test_list_filters_by_agent_run_and_tags(memory, options, expected):
    memory.add("Our cat sleeps.", user_id="carol", id="one", agent_id="vet")
    memory.add("Dry food is here.", user_id="carol", id="two", agent_id="vet", run_id="r1", tags=["food"])
    memory.add("The dog barks.", user_id="carol", id="three")
    assert {r.id for r in memory.list(user_id="carol", **options)} == expected


def test_required_tags_filter_a_search_and_others_only_prefer(memory):
    memory.add("Dry food is in the blue box.", user_id="carol", id="tagged", tags=["food"])
    memory.add("Where the keys are: in the drawer.", user_id="carol", id="other")
    wanted = {"query": "Where are the keys?", "user_id": "carol", "tags": ["Food"]}
    assert memory.search(**wanted).records[0].id == "other"
    assert [r.id for r in memory.search(**wanted, require_tags=True).records] == ["tagged"]
    with pytest.raises(ValidationError, match="require_tags needs tags, got none"):
        memory.search("Where are the keys?", user_id="carol", require_tags=True)


def test_a_scope_filters_the_prompt_and_recorded_turns_have_it(memory):
    turn = Turn(id="1", speaker="user", text="My cat eats dry food.")
    record_turns(memory, [turn], user_id="carol", session_id="s", rules=TurnRules(agent_id="vet", run_id="r1"))
    memory.add("My cat eats wet food.", user_id="carol", agent_id="cook")
    text = memory.prompt("What does my cat eat?", user_id="carol", agent_id="vet").text
    assert "dry food" in text
    assert "wet food" not in text
    assert memory.list(user_id="carol", run_id="r1")[0].metadata == {"agent_id": "vet", "run_id": "r1"}


def test_a_turn_is_compared_with_memories_of_its_agent_and_run_only(memory, clock):
    sees = FixedExtractor()

    def say(text, n, rules=None):
        clock.advance(timedelta(minutes=1))
        turn = Turn(id=f"{n}", speaker="user", text=text)
        return record_turns(memory, [turn], user_id="carol", session_id="s", rules=rules)

    every = (None, TurnRules(agent_id="vet"), TurnRules(agent_id="cook"), TurnRules(agent_id="vet", run_id="r1"))
    added = [say("I live in Lyon.", f"first {n}", rules).added[0].id for n, rules in enumerate(every)]
    for n, rules in enumerate(every):
        assert say("I live in Lyon.", f"again {n}", rules).confirmed == (added[n],)
    say("Do I live in Lyon?", "asked", TurnRules(agent_id="cook", extractor=sees))
    assert [record.id for record in sees.seen[0].near] == [added[2]]


def test_a_wish_of_another_agent_lets_no_end_of_a_wish_stand(memory, clock):
    memory.add("Always answer in German.", user_id="carol", agent_id="cook")
    turn = Turn(id="1", speaker="user", text="English is fine again.")
    [record] = record_turns(memory, [turn], user_id="carol", rules=TurnRules(agent_id="vet")).added
    assert record.policy_class == "factual"


def test_an_invalid_scope_of_turns_is_refused():
    with pytest.raises(ValidationError, match="agent_id must not be blank"):
        TurnRules(agent_id=" ")


def test_class_filter_sees_each_change(memory):
    def found(**options):
        return {record.id for record in memory.search("Where is my garden?", user_id="alice", **options).records}

    memory.add("My garden is in Lyon.", user_id="alice", id="town")
    assert found() == found(include_private=True) == {"town"}
    memory.add("My garden has a hidden gate.", user_id="alice", id="gate", policy_class="private")
    assert found() == {"town"}
    assert found(include_private=True) == {"town", "gate"}
    memory.delete("town", user_id="alice")
    assert found() == set()
    assert found(include_private=True) == {"gate"}
