"""The gate: on texts of the project's own, with the bundled model, nothing may get worse than it was.

The same texts, questions and weights give the same figures, so no interval is needed: half a question's worth is a
drop. But the verifier's 8-bit products are rounded otherwise by processors with instructions for them (VNNI), so there
is a baseline for either kind. After a change for the better, or one that is meant, on both:
`MEVE_NEW_BASELINE=1 pytest tests/evaluation/test_gate.py`.
"""

import json
import os
from pathlib import Path

import pytest

from meve.evaluation import statistics
from meve.evaluation.datasets import own
from meve.evaluation.experiments.quality import Quality, measured
from meve.evaluation.measures import MEASURES

pytestmark = pytest.mark.slow

BASELINE = Path(__file__).with_name("own_baseline.json")
CPU = Path("/proc/cpuinfo")
KIND = "vnni" if CPU.is_file() and "vnni" in CPU.read_text() else "other"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(statistics, "RESAMPLES", 20)  # only means are looked at
        return measured([own()], Quality(data=folder, to=folder / "run", cache=folder, questions=None, curves=False))


def means(results):
    made = {}
    for cell in results.cells:
        if not cell.measure.endswith(" ms"):  # which depends on the machine
            made.setdefault(cell.system, {})[cell.measure] = round(cell.interval.value, 6)
    return made


def drops(old, new, questions):
    """Every measure of every system that is worse by half a question or more, or gone."""
    worse = []
    for system, measures in old.items():
        for name, before in measures.items():
            now = new.get(system, {}).get(name)
            sign = {"higher": 1, "lower": -1, "neither": 0}[MEASURES[name].better]
            allowed = 0.5 / questions * (max(abs(before), 1.0) if name == "tokens" else 1.0)
            if now is None or sign * (before - now) >= allowed:
                worse.append((system, name, before, now))
    return worse


def test_nothing_is_worse_than_it_was(found):
    new = means(found)
    old = json.loads(BASELINE.read_text())
    if os.environ.get("MEVE_NEW_BASELINE"):
        old = {"fingerprint": found.sets["own"]["fingerprint"], "means": {**old["means"], KIND: new}}
        BASELINE.write_text(json.dumps(old, indent=1) + "\n")
    assert old["fingerprint"] == found.sets["own"]["fingerprint"], "the texts changed: make a new baseline, and say why"
    assert not found.failures
    assert drops(old["means"][KIND], new, found.sets["own"]["questions"]) == []


def test_the_gate_sees_a_drop_of_one_question():
    old = {"full": {"supporting recall": 0.5, "tokens": 100.0, "passages": 3.0}}
    assert drops(old, {"full": {"supporting recall": 0.5 - 1 / 63, "tokens": 100.0, "passages": 9.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.5, "tokens": 102.0, "passages": 3.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.5, "tokens": 100.0}}, 63)
    assert drops(old, {"full": {"supporting recall": 0.6, "tokens": 90.0, "passages": 1.0}}, 63) == []


def test_the_five_phases_are_worth_it_on_these_texts(found):
    """What the whole is for: fewer tokens and more precision than plain similarity, and word of what isn't there."""
    assert found.value("own", "full", "tokens").value < found.value("own", "dense", "tokens").value
    assert (
        found.value("own", "full", "supporting precision").value
        > found.value("own", "dense", "supporting precision").value
    )
    assert found.value("own", "full", "abstention recall").value > 0
