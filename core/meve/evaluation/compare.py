"""What has moved since another run, beyond what chance explains?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Cell, Results, cell_difference
from meve.evaluation.statistics import FEWEST, Interval

EVERY = "all of them"
"""In the place of a measure, where a system or a set is gone."""

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

    Over the same questions: the paired difference's interval excludes zero. Over others: the two intervals don't
    overlap, which sees less. Milliseconds depend on the machine, and only count if asked for; tokens of two tokenizers
    aren't compared. A system or set that the new run lacks is one move.

    Raises:
        EvaluationError: results of another experiment, or of other passages and questions under the same name.
    """
    comparable(old, new.experiment, {name: about["fingerprint"] for name, about in new.sets.items()})
    there = {(c.set, c.system, c.measure): c for c in new.cells}
    measured = {(c.set, c.system) for c in new.cells}
    found = [
        Move(set=name, system=system, measure=EVERY, old=0.0, new=None, verdict="gone")
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


def comparable(old: Results, experiment: str, fingerprints: Mapping[str, str]) -> None:
    """See that a run, made or still to be made, can be compared with earlier results.

    Args:
        old: the earlier results.
        experiment: the run's.
        fingerprints: of its sets, by name.

    Raises:
        EvaluationError: another experiment, or other passages, questions or labels under the same name.
    """
    if old.experiment != experiment:
        raise EvaluationError(f"results of {old.experiment!r} can't be compared with those of {experiment!r}")
    if not old.sets.keys() & fingerprints.keys():
        one, other = ", ".join(old.sets), ", ".join(fingerprints)
        raise EvaluationError(f"nothing to compare: the one has {one}, the other {other}, and no set is in both")
    for name in sorted(old.sets.keys() & fingerprints.keys()):
        if old.sets[name].get("fingerprint") != fingerprints[name]:
            raise EvaluationError(f"the set {name!r} isn't the same in both: its passages, questions or labels differ")


def changed(old: Results, new: Results) -> list[str]:
    """The settings in which two runs differ, by name, versions and sets apart."""
    known = old.settings.keys() & new.settings.keys() - {"versions", "sets", "threads", "cores"}
    return sorted(name for name in known if old.settings[name] != new.settings[name])


def _move(old: Cell, new: Cell | None, seed: int) -> Move | None:
    made = partial(Move, set=old.set, system=old.system, measure=old.measure, old=old.interval.value)
    if new is None:
        return made(new=None, verdict="gone")
    change = _paired(old, new, seed)
    if change is not None:
        low, high, moved = change.low, change.high, change.excludes_zero
    else:
        low, high = new.interval.low - old.interval.high, new.interval.high - old.interval.low
        moved = min(old.interval.n, new.interval.n) >= FEWEST and (low > 0 or high < 0)
    if not moved:
        return None
    up = new.interval.value > old.interval.value
    better = MEASURES[old.measure].better if old.measure in MEASURES else "neither"
    verdict: Verdict = "moved" if better == "neither" else "better" if (better == "higher") == up else "worse"
    return made(new=new.interval.value, verdict=verdict, low=low, high=high)


def _paired(old: Cell, new: Cell, seed: int) -> Interval | None:
    """The difference over the same questions; None where they aren't the same."""
    same = (old.values.keys(), old.parts.keys()) == (new.values.keys(), new.parts.keys())
    return cell_difference(old, new, sorted(old.values or old.parts), seed=seed) if same else None


def _failing(old: Results, new: Results) -> Sequence[Move]:
    before = {(f.set, f.system, f.question) for f in old.failures}
    fresh = [f for f in new.failures if (f.set, f.system, f.question) not in before]
    return [
        Move(
            set=f.set, system=f.system, measure=f"raised for question {f.question}", old=0.0, new=1.0, verdict="failing"
        )
        for f in fresh
    ]
