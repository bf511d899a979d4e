"""The memory-recall, memory-speed and dialogue-speed experiments, on small data."""

import json
import sys
from types import ModuleType

import pytest

from meve.errors import ConfigurationError, DatasetError, EvaluationError
from meve.evaluation.experiments.memory import memory_speed as speed
from meve.evaluation.experiments.memory import recall
from meve.evaluation.experiments.small_context.dialogue_speed import DialogueSpeedOptions, run_dialogue_speed
from meve.evaluation.report.memory_report import write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]


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


def test_speed_measures_both_files(data, tmp_path):
    questions = [{"question": f"Did we see {n} zebras?"} for n in range(20)]
    (data / "locomo" / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    counts = speed.MemorySpeedSizes(
        per_large_user=20, per_small_user=5, large_users=2, small_users=2, calls=3, openings=1
    )
    results = speed.run_memory_speed(speed.MemorySpeedOptions(data=data, large=True, counts=counts))
    for file in (speed.SMALL_FILE, speed.LARGE_FILE):
        assert results.value(speed.NAME, file, "recall, ms, p50").n == 3
        assert results.value(speed.NAME, file, "add, durable, ms, p95").value > 0
    report = write(results, tmp_path / "out", "meve bench memory-speed").read_text("utf-8")
    assert "| recall, models, ms, p50 |" in report
    assert type(results).load(tmp_path / "out" / "results.json") == results


def test_dialogue_speed_measures_first_and_later_questions(data):
    results = run_dialogue_speed(DialogueSpeedOptions(data=data, turns=500))
    assert results.value("dialogue speed", "500 turns", "first question, ms, p50").n == 1
    assert results.value("dialogue speed", "500 turns", "later question, ms, p50").n == 35
    with pytest.raises(EvaluationError, match="turns must be at least 1, got 0"):
        run_dialogue_speed(DialogueSpeedOptions(data=data, turns=0))
