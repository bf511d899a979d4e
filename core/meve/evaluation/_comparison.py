"""Comparison of two runs: what has changed beyond chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Cell, Results, compare_cells
from meve.evaluation.statistics import MIN_QUESTIONS

ALL_MEASURES = "all of them"
"""The measure name of a change where a system or a set is gone."""

ChangeKind = Literal["better", "worse", "moved", "gone", "failing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A change of one measure of one system on one set."""

    set: str
    system: str
    measure: str
    old: float
    new: float | None
    kind: ChangeKind
    """`moved` for a measure of which neither more nor less is better; `gone` where the new run lacks it."""
    low: float = 0.0
    high: float = 0.0
    """The interval of new - old."""

    @property
    def is_drop(self) -> bool:
        """Whether a quality gate should fail on the change."""
        return self.kind in ("worse", "gone", "failing")


def find_changes(old: Results, new: Results) -> list[MeasureChange]:
    """Return every change that is larger than its interval, drops first.

    Over the same questions, the interval of the paired difference must exclude zero. Over different questions, the two
    intervals must not overlap, which is less sensitive. A system or set that the new run lacks is one change.
    Milliseconds depend on the machine and aren't compared.

    Raises:
        EvaluationError: the results are of different experiments, or of different data under the same name.
    """
    check_comparable(old, new.experiment, {name: about["fingerprint"] for name, about in new.sets.items()})
    new_cells = {(c.set, c.system, c.measure): c for c in new.cells}
    measured = {(c.set, c.system) for c in new.cells}
    changes = [
        MeasureChange(set=name, system=system, measure=ALL_MEASURES, old=0.0, new=None, kind="gone")
        for name, system in dict.fromkeys((c.set, c.system) for c in old.cells)
        if (name, system) not in measured
    ]
    other_tokens = old.settings.get("tokens") != new.settings.get("tokens")
    for cell in old.cells:
        skipped = cell.measure.endswith(" ms") or (other_tokens and cell.measure == "tokens")
        if skipped or (cell.set, cell.system) not in measured:
            continue
        change = _cell_change(cell, new_cells.get((cell.set, cell.system, cell.measure)))
        if change is not None:
            changes.append(change)
    known = {(f.set, f.system, f.question) for f in old.failures}
    changes += [
        MeasureChange(
            set=f.set, system=f.system, measure=f"raised for question {f.question}", old=0.0, new=1.0, kind="failing"
        )
        for f in new.failures
        if (f.set, f.system, f.question) not in known
    ]
    return sorted(changes, key=lambda c: (not c.is_drop, c.set, c.system, c.measure))


def check_comparable(old: Results, experiment: str, fingerprints: Mapping[str, str]) -> None:
    """Check that a run, finished or not, can be compared with earlier results.

    Args:
        old: the earlier results.
        experiment: the run's experiment.
        fingerprints: the fingerprints of the run's sets, by name.

    Raises:
        EvaluationError: another experiment, or other passages, questions or labels under the same name.
    """
    if old.experiment != experiment:
        raise EvaluationError(f"results of {old.experiment!r} can't be compared with those of {experiment!r}")
    shared = sorted(old.sets.keys() & fingerprints.keys())
    if not shared:
        one, other = ", ".join(old.sets), ", ".join(fingerprints)
        raise EvaluationError(f"nothing to compare: the old results have {one}, the new ones {other}, none in both")
    for name in shared:
        if old.sets[name].get("fingerprint") != fingerprints[name]:
            raise EvaluationError(f"the set {name!r} isn't the same in both: its passages, questions or labels differ")


def changed_settings(old: Results, new: Results) -> list[str]:
    """Return the names of the settings in which two runs differ, apart from versions and sets."""
    known = old.settings.keys() & new.settings.keys() - {"versions", "sets", "threads", "cores"}
    return sorted(name for name in known if old.settings[name] != new.settings[name])


def _cell_change(old: Cell, new: Cell | None) -> MeasureChange | None:
    change = partial(MeasureChange, set=old.set, system=old.system, measure=old.measure, old=old.interval.value)
    if new is None:
        return change(new=None, kind="gone")
    same = (old.values.keys(), old.parts.keys()) == (new.values.keys(), new.parts.keys())
    paired = compare_cells(old, new, sorted(old.values or old.parts), seed=0) if same else None
    if paired is not None:
        low, high, is_change = paired.low, paired.high, paired.excludes_zero
    else:
        low, high = new.interval.low - old.interval.high, new.interval.high - old.interval.low
        is_change = min(old.interval.n, new.interval.n) >= MIN_QUESTIONS and (low > 0 or high < 0)
    if not is_change:
        return None
    up = new.interval.value > old.interval.value
    better = MEASURES[old.measure].better if old.measure in MEASURES else "neither"
    kind: ChangeKind = "moved" if better == "neither" else "better" if (better == "higher") == up else "worse"
    return change(new=new.interval.value, kind=kind, low=low, high=high)
