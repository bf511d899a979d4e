"""The memory-recall, memory-speed and dialogue-speed experiments, on small data."""

import gzip
import json
import sys
from types import ModuleType

import pytest

from meve.errors import ConfigurationError, DatasetError, EvaluationError
from meve.evaluation.experiments.memory import memory_speed as speed
from meve.evaluation.experiments.memory import recall
from meve.evaluation.experiments.memory.distinct_turns import read_distinct_turns
from meve.evaluation.experiments.memory.talks import KINDS, read_own
from meve.evaluation.experiments.small_context.dialogue_speed import DialogueSpeedOptions, run_dialogue_speed
from meve.evaluation.report.memory_report import write
from meve.memory._passages import PASSAGE
from tests.evaluation.dataset_files import write_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]

_ASKED = [{"role": "user", "content": "Where is Oslo?"}, {"role": "assistant", "content": "In Norway."}]
OTHER_CHATS = {
    "longmemeval/conversations.jsonl.gz": {"sessions": [{"turns": _ASKED}, {"turns": _ASKED}]},
    "memorybank/users.jsonl": {"days": [{"turns": [{"user": "I paint.", "assistant": "Nice!"}]}]},
    "oasst/trees.jsonl": {"messages": [{"role": "prompter", "text": "Why?"}]},
    "mtrag_un/tasks.jsonl.gz": {"history": [{"role": "user", "text": "How?"}, {"role": "agent", "text": "So."}]},
    "irc/messages.jsonl.gz": {"speaker": "ann", "text": "It boots.", "system": False},
}
"""By file, one row of each set of distinct turns besides LoCoMo."""


def write_questions(data):
    write_rows(data / "locomo" / "questions.jsonl", [{"question": f"Did we see {n} zebras?"} for n in range(40)])


def write_other_chats(data):
    for file, row in OTHER_CHATS.items():
        write_rows(data / file, [row, row])


def test_recall_is_the_share_of_evidence(data, monkeypatch):
    for name, row in (("conversations", {"conversation_id": "d"}), ("questions", {"conversation_id": "d", "id": "d"})):
        file = data / "locomo" / f"{name}.jsonl"
        first = json.loads(file.read_text().splitlines()[0])
        file.write_text(file.read_text() + json.dumps({**first, **row}) + "\n")
    module = ModuleType("my_memory")
    module.store = lambda turns: lambda user, question: ["D1:7"]
    monkeypatch.setitem(sys.modules, "my_memory", module)
    options = recall.RecallOptions(data=data, held_out=True, peers=("my_memory:store",))
    results = recall.run_memory_recall(options)
    assert results.value(recall.NAME, "my_memory:store", recall.RECALL).value == pytest.approx(3 / 4)
    assert results.value(recall.NAME, "my_memory:store", "ms, p50").n == 4
    systems = {figure.system for figure in results.figures}
    assert {"bm25", "vectors", recall.MEMORY, "memory, weights of other conversations"} <= systems


def test_invalid_recall_options_are_rejected(data, tmp_path):
    with pytest.raises(EvaluationError, match="at least two conversations"):
        recall.run_memory_recall(recall.RecallOptions(data=data, held_out=True))
    with pytest.raises(ConfigurationError, match="--peer"):
        recall.run_memory_recall(recall.RecallOptions(data=data, peers=("nothing",)))
    with pytest.raises(DatasetError, match="locomo"):
        recall.run_memory_recall(recall.RecallOptions(data=tmp_path / "nowhere"))


def test_kinds_are_measured_apart(data):
    results = recall.run_memory_recall(recall.RecallOptions(data=data, kinds=("locomo", "own"), embedder="static"))
    assert results.value(recall.NAME, recall.MEMORY, recall.RECALL).n == 3
    own = f"{recall.NAME} (own)"
    halves = [results.value(own, recall.MEMORY, f"{recall.RECALL}, {half}").n for half in recall.HALVES]
    assert (halves, results.value(own, recall.MEMORY, recall.RECALL).n) == ([32, 30], 62)
    with pytest.raises(ConfigurationError, match="unknown kind 'poems': choose from 'locomo'"):
        recall.run_memory_recall(recall.RecallOptions(data=data, kinds=("poems",)))


def test_own_conversations_are_whole_and_long():
    talk = read_own()
    assert all(question.evidence <= {turn.id for turn in talk.turns[question.user]} for question in talk.questions)
    assert len(talk.questions) >= 40
    texts = {turn.id: turn.text for turns in talk.turns.values() for turn in turns}
    long = [question for question in talk.questions if any(len(texts[id]) > PASSAGE for id in question.evidence)]
    assert len(long) > 0.9 * len(talk.questions)


def test_foreign_sets_are_read(tmp_path):
    folder = tmp_path / "longmemeval"
    folder.mkdir()
    write_rows(
        folder / "questions.jsonl",
        [{"user_id": str(n), "question": f"Who is {n}?", "evidence_turn_ids": [f"e{n}"]} for n in range(5)],
    )
    date = "2023/05/20 (Sat) 11:17"
    write_rows(
        folder / "evidence_turns.jsonl",
        [{"id": f"e{n}", "user_id": str(n), "session_date": date, "content": f"I met {n % 4}."} for n in range(5)],
    )
    sessions = [
        {"session_id": f"s{n}", "date": date, "turns": [{"content": "Hi."}, {"content": "One.\n\nTwo. " + "x" * 1_000}]}
        for n in range(4)
    ]
    with gzip.open(folder / "conversations.jsonl.gz", "wt") as file:
        file.write(json.dumps({"sessions": [*sessions, {**sessions[0], "session_id": "answer_1"}]}) + "\n")
    told, long = KINDS["longmemeval"](tmp_path), KINDS["longmemeval-long"](tmp_path)
    assert [len(turns) for turns in told.turns.values()] == [3, 3, 3, 3]
    assert told.questions[4].evidence == {"e0"}  # the same statement of the same user
    (mixed,) = (turn for turn in long.turns["told-0"] if turn.id == "e0")
    assert mixed.text.startswith("I met 0.\n\nOne.")
    assert [len(turns) for turns in long.turns.values()] == [2, 2, 2, 2]

    (tmp_path / "mtrag_un").mkdir()
    tasks = [
        {"domain": "law", "question": f"Which {n}?", "history": [{"text": "Hello?"}],
         "gold_passages": [{"id": f"p{n}-{m}", "text": f"Page {n} {m}"} for m in range(2)]}
        for n in range(4)
    ]  # fmt: skip
    with gzip.open(tmp_path / "mtrag_un" / "tasks.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(task) + "\n" for task in tasks))
    single, joined = KINDS["mtrag"](tmp_path), KINDS["mtrag-long"](tmp_path)
    assert [len(turns) for turns in single.turns.values()] == [6, 6]
    assert [len(turns) for turns in joined.turns.values()] == [4, 4]
    for talk in (single, joined):
        texts = {user: {turn.id: turn.text for turn in turns} for user, turns in talk.turns.items()}
        for n, question in enumerate(talk.questions):
            found = " ".join(texts[question.user][id] for id in question.evidence)
            assert all(f"Page {n} {m}" in found for m in range(2))


def test_speed_measures_both_files(data, tmp_path):
    write_questions(data)
    counts = speed.MemorySpeedSizes(
        per_large_user=20, per_small_user=5, large_users=2, small_users=2, calls=3, openings=1
    )
    write_other_chats(data)
    results = speed.run_memory_speed(speed.MemorySpeedOptions(data=data, large=True, counts=counts))
    for file in (speed.SMALL_FILE, speed.DISTINCT_FILE, speed.LARGE_FILE):
        assert results.value(speed.NAME, file, "recall, ms, p50").n == 3
        assert results.value(speed.NAME, file, "add, durable, ms, p95").value > 0
    report = write(results, tmp_path / "out", "meve bench memory-speed").read_text("utf-8")
    assert "| recall, models, ms, p50 |" in report
    assert type(results).load(tmp_path / "out" / "results.json") == results


def test_speed_without_the_sets_of_distinct_turns_says_so(data):
    write_questions(data)
    counts = speed.MemorySpeedSizes(per_large_user=20, calls=1, openings=1)
    with pytest.warns(UserWarning, match="not measured, since longmemeval/conversations.jsonl.gz, .* is missing"):
        results = speed.run_memory_speed(speed.MemorySpeedOptions(data=data, counts=counts))
    assert {figure.system for figure in results.figures} == {speed.SMALL_FILE}
    assert "is missing" in str(results.settings["files"])


def test_distinct_turns_hold_none_twice(data):
    write_other_chats(data)
    turns = list(read_distinct_turns(data))
    assert turns[-8:] == [
        "user: Where is Oslo?", "assistant: In Norway.", "user: I paint.", "assistant: Nice!", "prompter: Why?",
        "user: How?", "agent: So.", "ann: It boots.",
    ]  # fmt: skip
    assert len({*turns}) == len(turns)


def test_dialogue_speed_measures_first_and_later_questions(data):
    results = run_dialogue_speed(DialogueSpeedOptions(data=data, turns=500))
    assert results.value("dialogue speed", "500 turns", "first question, ms, p50").n == 1
    assert results.value("dialogue speed", "500 turns", "later question, ms, p50").n == 35
    with pytest.raises(EvaluationError, match="turns must be at least 1, got 0"):
        run_dialogue_speed(DialogueSpeedOptions(data=data, turns=0))
