"""Results of the memory experiments: figures with intervals, and curves, as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Self, TypeVar

from meve.errors import EvaluationError
from meve.evaluation.results import load_results
from meve.evaluation.statistics import Interval, mean_interval, paired_difference, percentile_interval, share_interval

FORMAT = 1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measure of one system in one experiment."""

    experiment: str
    system: str
    measure: str
    interval: Interval
    share: bool
    """Whether the value is a share of cases with Wilson's interval; otherwise its interval is a bootstrap's."""
    moved: bool = False
    """Whether the value differs from the base system's, by the paired difference over the same cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One measure of one system over rounds, turns or a setting."""

    experiment: str
    system: str
    measure: str
    along: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """Means over the cases, one for each `x`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResults:
    """The results of a run."""

    experiment: str = "memory"
    settings: Mapping[str, Any]
    """The settings that decide the results: seed, sizes, embedder, tokenizer, versions and so on."""
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...] = ()

    @classmethod
    def from_tallies(cls, experiment: str, settings: Mapping[str, Any], tallies: Sequence["Tally"]) -> Self:
        """Return the results of these tallies."""
        return cls(
            experiment=experiment,
            settings=settings,
            figures=tuple(figure for tally in tallies for figure in tally.figures()),
            curves=tuple(curve for tally in tallies for curve in tally.curves),
        )

    @property
    def experiments(self) -> list[str]:
        """The experiments that were run, in their order."""
        return list(dict.fromkeys(f.experiment for f in self.figures))

    def of(self, experiment: str) -> list[Figure]:
        """Return one experiment's figures."""
        return [f for f in self.figures if f.experiment == experiment]

    def value(self, experiment: str, system: str, measure: str) -> Interval:
        """Return one figure's value with its interval.

        Raises:
            EvaluationError: no such figure; the message lists those of the experiment.
        """
        figures = self.of(experiment)
        for figure in figures:
            if (figure.system, figure.measure) == (system, measure):
                return figure.interval
        known = "; ".join(f"{f.system}, {f.measure}" for f in figures) or ", ".join(self.experiments)
        raise EvaluationError(f"no figure for {experiment!r}, {system!r}, {measure!r}; there are {known}")

    def save(self, file: Path) -> None:
        """Write JSON."""
        data = asdict(self)
        data = {"experiment": data.pop("experiment"), "format": FORMAT, **data}
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return the results that `save` wrote.

        Raises:
            EvaluationError: the file is absent, damaged, or holds something else.
        """
        return load_results(cls, file, FORMAT)


@dataclass(slots=True)
class Tally:
    """A collector of each case's values, by system and measure.

    Args:
        experiment: the experiment's name.
        seed: seed of the intervals.
        against: a system with the same cases in the same order, with which the others are compared in pairs.
    """

    experiment: str
    seed: int
    against: str = ""
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)

    def add(self, system: str, measure: str, value: bool | float) -> None:
        """Add one case's value; bools become shares, numbers means."""
        self._values.setdefault((system, measure), []).append(value)

    def add_time(self, system: str, measure: str, ms: float) -> None:
        """Add one case's milliseconds, which become the figures `<measure>, p50` and `<measure>, p95`."""
        self._times.setdefault((system, measure), []).append(ms)

    def time(self, system: str, measure: str, call: Callable[[], _T]) -> _T:
        """Return what a call returns, and add its milliseconds as a case."""
        start = perf_counter()
        result = call()
        self.add_time(system, measure, 1_000 * (perf_counter() - start))
        return result

    def mean(self, system: str, measure: str) -> float:
        """Return the mean of the values so far."""
        values = self._values[system, measure]
        return sum(values) / len(values)

    def add_curve(self, system: str, measure: str, along: str, points: Mapping[float, float]) -> None:
        """Add a curve, with y by x."""
        self.curves.append(
            Curve(
                experiment=self.experiment, system=system, measure=measure, along=along, x=tuple(points),
                y=tuple(round(y, 4) for y in points.values()),
            )
        )  # fmt: skip

    def figures(self) -> list[Figure]:
        """Return all figures, in the order in which they were begun; times come last."""
        figures = []
        for (system, measure), values in self._values.items():
            share = all(isinstance(value, bool) for value in values)
            interval = share_interval(int(sum(values)), len(values)) if share else mean_interval(values, seed=self.seed)
            figures.append(
                Figure(
                    experiment=self.experiment, system=system, measure=measure, share=share, interval=interval,
                    moved=self._differs(measure, values),
                )
            )  # fmt: skip
        for (system, measure), times in self._times.items():
            for percent in (50, 95):
                figures.append(
                    Figure(
                        experiment=self.experiment, system=system, measure=f"{measure}, p{percent}", share=False,
                        interval=percentile_interval(times, percent, seed=self.seed),
                    )
                )  # fmt: skip
        return figures

    def _differs(self, measure: str, values: list[float]) -> bool:
        base = self._values.get((self.against, measure))
        return base is not None and paired_difference(base, values, seed=self.seed).excludes_zero
