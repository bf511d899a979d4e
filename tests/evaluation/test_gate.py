"""The gate: on the project's own set with the bundled model, no measure may drop below the baseline.

The same texts, questions and weights give the same figures, so that a drop of half a question fails. Processors with
VNNI instructions round the verifier's 8-bit products differently, so there is a baseline for each kind; where one is
missing, that of the other kind counts, with two questions allowed. To accept new figures, run on both:
`MEVE_NEW_BASELINE=1 pytest tests/evaluation/test_gate.py`.
"""

import json
import os
from pathlib import Path

import pytest

from meve.evaluation import statistics
from meve.evaluation.datasets import read_own
from meve.evaluation.experiments.quality import QualityOptions, run_quality_on
from meve.evaluation.measures import MEASURES

pytestmark = pytest.mark.slow

BASELINE = Path(__file__).with_name("own_baseline.json")
CPU = Path("/proc/cpuinfo")
KIND = "vnni" if CPU.is_file() and "vnni" in CPU.read_text() else "other"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(statistics, "RESAMPLES", 20)  # only means are looked at
        return run_quality_on(
            [read_own()], QualityOptions(data=folder, to=folder / "run", cache=folder, questions=None, curves=False)
        )


def means(results):
    means_by_system = {}
    for cell in results.cells:
        if not cell.measure.endswith(" ms"):  # which depends on the machine
            means_by_system.setdefault(cell.system, {})[cell.measure] = round(cell.interval.value, 6)
    return means_by_system


def drops(old, new, questions, least=0.5):
    """Return every measure of every system that is missing, or worse by `least` questions or more."""
    worse = []
    for system, measures in old.items():
        for name, before in measures.items():
            now = new.get(system, {}).get(name)
            sign = {"higher": 1, "lower": -1, "neither": 0}[MEASURES[name].better]
            allowed = least / questions * (max(abs(before), 1.0) if name == "tokens" else 1.0)
            if now is None or sign * (before - now) >= allowed:
                worse.append((system, name, before, now))
    return worse


def test_no_measure_is_worse_than_the_baseline(results):
    new = means(results)
    old = json.loads(BASELINE.read_text())
    if os.environ.get("MEVE_NEW_BASELINE"):
        old = {"fingerprint": results.sets["own"]["fingerprint"], "means": {**old["means"], KIND: new}}
        BASELINE.write_text(json.dumps(old, indent=1) + "\n")
    assert old["fingerprint"] == results.sets["own"]["fingerprint"], "the texts have changed: create a new baseline"
    assert not results.failures
    questions, measured = results.sets["own"]["questions"], old["means"]
    if KIND in measured:
        assert drops(measured[KIND], new, questions) == []
    else:
        assert drops(next(iter(measured.values())), new, questions, least=2) == []


def test_drop_of_one_question_is_detected():
    old = {"full": {"supporting recall": 0.5, "tokens": 100.0, "passages": 3.0}}
    assert drops(old, {"full": {"supporting recall": 0.5 - 1 / 63, "tokens": 100.0, "passages": 9.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.5, "tokens": 102.0, "passages": 3.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.5, "tokens": 100.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.6, "tokens": 90.0, "passages": 1.0}}, 63) == []


def test_full_beats_dense_on_tokens_and_precision(results):
    assert results.value("own", "full", "tokens").value < results.value("own", "dense", "tokens").value
    assert (
        results.value("own", "full", "supporting precision").value
        > results.value("own", "dense", "supporting precision").value
    )
    assert results.value("own", "full", "abstention recall").value > 0
