"""Test outcome statistics of memories: what records them, what keeps them, and the ranking that counts them."""

import json
import sqlite3
from contextlib import closing

import pytest

from meve.errors import EmptyCorpusError, HoldError, UnknownIdError, ValidationError
from meve.memory import Policy
from meve.memory.stores._sql import rows
from tests.memories import KEY, archive, as_plain, open_memory

USER = {"user_id": "alice"}
BY_OUTCOME = Policy.from_dict({"ranking": {"outcome": 0.5}})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "memory.db"


def fill(memory):
    memory.add("The lamp in the hall is green.", id="a", **USER)
    memory.add("The lamp in the attic is green.", id="b", **USER)


def of(memory, record_id="a"):
    found = memory.get(record_id, **USER).outcomes
    return found.count, found.mean


def test_outcomes_are_kept_over_reopening_and_in_the_archive(file, clock):
    with open_memory(file, clock=clock) as memory:
        fill(memory)
        memory.record_outcome("a", 1.0, **USER)
        statistics = memory.record_outcome("a", 0.0, **USER)
        assert (statistics.count, statistics.mean, statistics.variance) == (2, 0.5, 0.25)
        assert memory.get("a", **USER).version == 3
        archive(memory, "s:alice", "a")
    with open_memory(file, clock=clock) as memory:
        assert of(memory) == (2, 0.5)
        assert memory.restore("a", **USER).outcomes == statistics


def test_reflection_records_what_an_answer_used_or_contradicted(file):
    with open_memory(file) as memory:
        fill(memory)
        recall = memory.search("Which colour has the lamp in the hall?", **USER)
        memory.reflect(recall, answer="The lamp in the hall is green.")
        assert of(memory, "a") == (1, 1.0)
        memory.reflect(recall, answer="The lamp in the hall isn't green.")
        assert of(memory, "a") == (2, 0.5)
        assert memory.audit.verify().ok


def test_ranking_counts_outcomes_only_if_the_policy_says_so(file):
    question = "Which colour has the lamp?"
    for policy, first in ((Policy(), "a"), (BY_OUTCOME, "b")):
        with open_memory(file.with_name(first), policy=policy) as memory:
            fill(memory)
            before = [r.id for r in memory.search(question, **USER).records]
            for _ in range(3):
                memory.record_outcome("a", 0.0, **USER)
                memory.record_outcome("b", 1.0, **USER)
            after = [r.id for r in memory.search(question, **USER).records]
            assert before == ["a", "b"]
            assert after[0] == first


def test_shared_memory_has_outcomes_of_each_user(file):
    with open_memory(file, policy=BY_OUTCOME) as memory:
        memory.add_shared("The office opens at nine.", id="office")
        memory.record_outcome("office", 1.0, **USER)
        scores = [
            memory.search("When does the office open?", user_id=user).passages[0].score for user in ("alice", "bob")
        ]
        assert scores[0] == pytest.approx(scores[1] + 0.5 * (2 * 2 / 3 - 1), abs=1e-5)
        assert memory.export(**USER)["shared_scores"]["office"]["outcomes"]["count"] == 1
        assert memory.export(user_id="bob")["shared_scores"] == {}
        memory.forget_user(**USER)
        assert memory.export(**USER)["shared_scores"] == {}


def test_merged_duplicates_join_their_outcomes(file, clock):
    with open_memory(file, clock=clock) as memory:
        for name, outcomes in (("a", (1.0, 1.0)), ("b", (0.0,))):
            memory.add("Tomatoes need sun.", id=name, user_id="alice", source="doc")
            for outcome in outcomes:
                memory.record_outcome(name, outcome, **USER)
        (kept,) = (r for r in memory.list(**USER) if memory.maintain(**USER) and not memory.get(r.id, **USER).is_closed)
        outcomes = memory.get(kept.id, **USER).outcomes
        assert (outcomes.count, outcomes.mean) == (3, pytest.approx(2 / 3))
        assert outcomes.variance == pytest.approx(2 / 9)


def test_export_and_import_carry_outcomes(file):
    with open_memory(file) as memory, open_memory(file.with_name("other.db")) as other:
        fill(memory)
        memory.record_outcome("a", 0.25, **USER)
        data = json.loads(json.dumps(memory.export(**USER)))
        assert other.import_(data).added == ["a", "b"]
        assert (of(other, "a"), of(other, "b")) == ((1, 0.25), (0, 0.0))


@pytest.mark.parametrize("outcomes", [{"count": -1, "mean": 0, "squares": 0}, {"count": 1, "mean": 2, "squares": 0}, 3])
def test_import_rejects_bad_outcomes(file, outcomes):
    with open_memory(file) as memory:
        fill(memory)
        data = memory.export(**USER)
        memory.forget_user(**USER)
        data["records"][0]["outcomes"] = outcomes
        report = memory.import_(data, restore_erased=True)
        assert [number for number, _ in report.rejected] == [1]
        assert report.added == ["b"]


def test_altered_outcomes_are_found_by_the_log(file):
    from tests.memories import change_sealed

    with open_memory(file) as memory:
        fill(memory)
        memory.record_outcome("a", 1.0, **USER)
    change_sealed(file, "alice", "a", outcomes=[9, 1.0, 0.0])
    with open_memory(file) as memory:
        (difference,) = memory.audit.verify().differences
        assert (difference.record_id, difference.differs) == ("a", ("score",))


def test_bad_outcome_or_record_changes_nothing(file):
    with open_memory(file) as memory:
        fill(memory)
        memory.hold("b", **USER)
        with pytest.raises(ValidationError, match="outcome must be a number between 0 and 1, got 2"):
            memory.record_outcome("a", 2, **USER)
        with pytest.raises(UnknownIdError):
            memory.record_outcome("a", 1, user_id="bob")
        with pytest.raises(HoldError):
            memory.record_outcome("b", 1, **USER)
        assert (of(memory, "a"), of(memory, "b")) == ((0, 0.0), (0, 0.0))


def test_file_without_outcomes_is_opened_and_gets_them(file, clock, monkeypatch):
    """A file of version 7 of the schema, whose sealed rows and archive lack them; and one of version 6."""
    with monkeypatch.context() as older:
        seal = rows._encode
        older.setattr(rows, "_encode", lambda values: seal([*values[:-3], values[-1]]))
        with open_memory(file, clock=clock) as memory:
            fill(memory)
            archive(memory, "s:alice", "b")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE opinions DROP COLUMN outcomes")
        connection.execute("PRAGMA user_version = 7")
    with open_memory(file, clock=clock) as memory:
        assert (of(memory, "a"), of(memory, "b")) == ((0, 0.0), (0, 0.0))
        assert memory.get("b", **USER).text == "The lamp in the attic is green."
        memory.record_outcome("a", 1.0, **USER)
        assert {each.record_id for each in memory.audit.verify().differences} == {"b"}  # archived behind the log
    as_plain(file)
    with open_memory(file, clock=clock, audit_key=KEY) as memory:
        assert of(memory, "a") == (0, 0.0)
        memory.record_outcome("a", 1.0, **USER)
        assert of(memory, "a") == (1, 1.0)


def test_conservation_weighs_records_by_their_salience(file):
    with open_memory(file) as memory:
        with pytest.raises(EmptyCorpusError):
            memory.measure_conservation(**USER)
        fill(memory)
        even = memory.measure_conservation(**USER)
        assert even.magnitude == pytest.approx(1, abs=1e-5)
        assert 0 <= even.energy <= 0.5
        assert even.information == pytest.approx(0.6931, abs=1e-4)
        for _ in range(5):
            memory.record_outcome("a", 1.0, **USER)
        assert memory.measure_conservation(**USER).information < even.information
