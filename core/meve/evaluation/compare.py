"""What has moved since another run, beyond what chance explains?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Cell, Results
from meve.evaluation.statistics import paired_difference

Verdict = Literal["better", "worse", "moved", "gone", "failing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One measure of one system on one set that isn't where it was."""

    set: str
    system: str
    measure: str
    old: float
    new: float | None
    verdict: Verdict
    """`moved` for a measure of which neither more nor less is better; `gone` where the new run lacks it."""
    low: float = 0.0
    high: float = 0.0
    """The interval of new - old."""

    @property
    def a_drop(self) -> bool:
        """Whether a gate should fail on it."""
        return self.verdict in ("worse", "gone", "failing")


def moves(old: Results, new: Results, *, seed: int = 0, timings: bool = False) -> list[Move]:
    """Every cell whose change lies beyond its interval, drops first.

    Over the same questions: the paired difference's interval excludes zero. Over others, and for what only many
    questions together have: the two intervals don't overlap, which sees less. Milliseconds depend on the machine, and
    only count if asked for; tokens of two tokenizers aren't compared. A system or set that the new run lacks is one
    move.

    Raises:
        EvaluationError: results of another experiment, or of other passages and questions under the same name.
    """
    if old.experiment != new.experiment:
        raise EvaluationError(f"results of {old.experiment!r} can't be compared with those of {new.experiment!r}")
    for name in old.sets.keys() & new.sets.keys():
        if old.sets[name].get("fingerprint") != new.sets[name].get("fingerprint"):
            raise EvaluationError(f"the set {name!r} isn't the same in both: its passages, questions or labels differ")
    there = {(c.set, c.system, c.measure): c for c in new.cells}
    measured = {(c.set, c.system) for c in new.cells}
    found = [
        Move(set=name, system=system, measure="all of them", old=0.0, new=None, verdict="gone")
        for name, system in dict.fromkeys((c.set, c.system) for c in old.cells)
        if (name, system) not in measured
    ]
    other_tokens = old.settings.get("tokens") != new.settings.get("tokens")
    for cell in old.cells:
        skipped = (not timings and cell.measure.endswith(" ms")) or (other_tokens and cell.measure == "tokens")
        if skipped or (cell.set, cell.system) not in measured:
            continue
        move = _move(cell, there.get((cell.set, cell.system, cell.measure)), seed)
        if move is not None:
            found.append(move)
    found += _failing(old, new)
    return sorted(found, key=lambda m: (not m.a_drop, m.set, m.system, m.measure))


def changed(old: Results, new: Results) -> list[str]:
    """The settings in which two runs differ, by name, versions and sets apart."""
    known = old.settings.keys() & new.settings.keys() - {"versions", "sets", "threads", "cores"}
    return sorted(name for name in known if old.settings[name] != new.settings[name])


def _move(old: Cell, new: Cell | None, seed: int) -> Move | None:
    made = partial(Move, set=old.set, system=old.system, measure=old.measure, old=old.interval.value)
    if new is None:
        return made(new=None, verdict="gone")
    if old.values and old.values.keys() == new.values.keys():
        ids = sorted(old.values)
        change = paired_difference([old.values[i] for i in ids], [new.values[i] for i in ids], seed=seed)
        low, high, moved = change.low, change.high, change.excludes_zero
    else:
        low, high = new.interval.low - old.interval.high, new.interval.high - old.interval.low
        moved = low > 0 or high < 0
    if not moved:
        return None
    up = new.interval.value > old.interval.value
    better = MEASURES[old.measure].better if old.measure in MEASURES else "neither"
    verdict: Verdict = "moved" if better == "neither" else "better" if (better == "higher") == up else "worse"
    return made(new=new.interval.value, verdict=verdict, low=low, high=high)


def _failing(old: Results, new: Results) -> Sequence[Move]:
    before = {(f.set, f.system, f.question) for f in old.failures}
    fresh = [f for f in new.failures if (f.set, f.system, f.question) not in before]
    return [
        Move(
            set=f.set, system=f.system, measure=f"raised for question {f.question}", old=0.0, new=1.0, verdict="failing"
        )
        for f in fresh
    ]
