"""Results of the memory experiments: figures with intervals, and curves, as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from meve.errors import EvaluationError
from meve.evaluation.statistics import (
    Interval,
    mean_interval,
    paired_difference,
    percentile_interval,
    share_interval,
)

FORMAT = 1


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

    experiment: ClassVar[str] = "memory"
    """The experiment's name in `results.json`."""
    settings: Mapping[str, Any]
    """What decides the results: seed, sizes, embedder, tokenizer, versions and so on."""
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...] = ()

    @classmethod
    def from_tallies(cls, settings: Mapping[str, Any], tallies: Sequence["Tally"]) -> Self:
        """Return the results of these tallies."""
        return cls(
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

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"experiment": self.experiment, "format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the results that `to_dict` wrote.

        Raises:
            EvaluationError: another experiment's results, or of another format.
        """
        if (data.get("experiment"), data.get("format")) != (cls.experiment, FORMAT):
            raise EvaluationError(
                f"not results of the experiment {cls.experiment!r} in format {FORMAT}: run the experiment again"
            )
        return cls(
            settings=data["settings"],
            figures=tuple(Figure(**{**f, "interval": Interval(**f["interval"])}) for f in data["figures"]),
            curves=tuple(Curve(**{**c, "x": tuple(c["x"]), "y": tuple(c["y"])}) for c in data["curves"]),
        )

    def save(self, file: Path) -> None:
        """Write JSON."""
        file.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return the results that `save` wrote.

        Raises:
            EvaluationError: the file is absent, damaged, or holds something else.
        """
        try:
            return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as cause:
            raise EvaluationError(f"{file} holds no results: {cause}") from cause


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
    _shares: dict[tuple[str, str], bool] = field(default_factory=dict)
    _times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)

    def add(self, system: str, measure: str, value: bool | float) -> None:
        """Add one case's value; bools become shares, numbers means."""
        key = (system, measure)
        self._values.setdefault(key, []).append(float(value))
        self._shares[key] = self._shares.get(key, True) and isinstance(value, bool)

    def add_time(self, system: str, measure: str, ms: float) -> None:
        """Add one case's milliseconds, which become the figures `<measure>, p50` and `<measure>, p95`."""
        self._times.setdefault((system, measure), []).append(ms)

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
        figures = [
            Figure(
                experiment=self.experiment, system=system, measure=measure, share=self._shares[system, measure],
                interval=self._interval(values, self._shares[system, measure]), moved=self._differs(measure, values),
            )
            for (system, measure), values in self._values.items()
        ]  # fmt: skip
        for (system, measure), times in self._times.items():
            for percent in (50, 95):
                figures.append(
                    Figure(
                        experiment=self.experiment, system=system, measure=f"{measure}, p{percent}", share=False,
                        interval=percentile_interval(times, percent, seed=self.seed),
                    )
                )  # fmt: skip
        return figures

    def _interval(self, values: list[float], share: bool) -> Interval:
        return share_interval(int(sum(values)), len(values)) if share else mean_interval(values, seed=self.seed)

    def _differs(self, measure: str, values: list[float]) -> bool:
        base = self._values.get((self.against, measure))
        if base is None:
            return False
        return paired_difference(base, values, seed=self.seed).excludes_zero
