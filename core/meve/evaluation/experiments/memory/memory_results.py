"""What the experiments on memory found: figures with intervals, and curves; JSON-ready, and read back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from meve.errors import EvaluationError
from meve.evaluation.statistics import Interval, mean_interval, paired_difference, share_interval

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measure of one system in one experiment."""

    experiment: str
    system: str
    measure: str
    interval: Interval
    share: bool
    """Whether it is a share of cases, in [0, 1], and its interval Wilson's; else a mean, its interval a bootstrap's."""
    moved: bool = False
    """Whether it differs from that of the system that the others are held against, the same cases compared in pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One measure of one system along something: rounds, turns."""

    experiment: str
    system: str
    measure: str
    along: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """Means over the cases, as many as `x`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResults:
    """All of a run."""

    experiment: ClassVar[str] = "memory"
    """What `results.json` calls it."""
    settings: Mapping[str, Any]
    """Seed, sizes, embedder, tokenizer, policy, versions."""
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...] = ()

    @property
    def experiments(self) -> list[str]:
        """Which were run, in their order."""
        return list(dict.fromkeys(f.experiment for f in self.figures))

    def of(self, experiment: str) -> list[Figure]:
        """One experiment's figures."""
        return [f for f in self.figures if f.experiment == experiment]

    def value(self, experiment: str, system: str, measure: str) -> Interval:
        """One figure.

        Raises:
            EvaluationError: no such figure; the message names those of the experiment.
        """
        mine = self.of(experiment)
        for figure in mine:
            if (figure.system, figure.measure) == (system, measure):
                return figure.interval
        known = "; ".join(f"{f.system}, {f.measure}" for f in mine) or ", ".join(self.experiments)
        raise EvaluationError(f"no figure {experiment!r}, {system!r}, {measure!r}; there are {known}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"experiment": self.experiment, "format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` and JSON made of one.

        Raises:
            EvaluationError: another experiment's results, or of another format.
        """
        if (data.get("experiment"), data.get("format")) != (cls.experiment, FORMAT):
            raise EvaluationError(
                f"these are no results of the experiment {cls.experiment}, or of another version: run it again"
            )
        return cls(
            settings=data["settings"],
            figures=tuple(Figure(**{**f, "interval": Interval(**f["interval"])}) for f in data["figures"]),
            curves=tuple(Curve(**{**c, "x": tuple(c["x"]), "y": tuple(c["y"])}) for c in data["curves"]),
        )

    def save(self, file: Path) -> None:
        """Write it as JSON."""
        file.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read it back.

        Raises:
            EvaluationError: no such file, or something else in it.
        """
        try:
            return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as cause:
            raise EvaluationError(f"{file} holds no results: {cause}") from cause


@dataclass(slots=True)
class Tally:
    """Gathers what each case gave, by system and measure.

    Args:
        experiment: whose.
        seed: of the intervals.
        against: a system that was given the same cases in the same order, with which the others are compared in pairs.
    """

    experiment: str
    seed: int
    against: str = ""
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _shares: dict[tuple[str, str], bool] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)

    def add(self, system: str, measure: str, value: bool | float) -> None:
        """One case's: whether something was so, or how much there was of it."""
        key = (system, measure)
        self._values.setdefault(key, []).append(float(value))
        self._shares[key] = self._shares.get(key, True) and isinstance(value, bool)

    def mean(self, system: str, measure: str) -> float:
        """The mean so far."""
        values = self._values[system, measure]
        return sum(values) / len(values)

    def draw(self, system: str, measure: str, along: str, points: Mapping[float, float]) -> None:
        """A curve."""
        self.curves.append(
            Curve(
                experiment=self.experiment, system=system, measure=measure, along=along, x=tuple(points),
                y=tuple(round(y, 4) for y in points.values()),
            )
        )  # fmt: skip

    def figures(self) -> list[Figure]:
        """All of them, in the order in which they were begun."""
        return [
            Figure(
                experiment=self.experiment, system=system, measure=measure, share=self._shares[system, measure],
                interval=self._interval(values, self._shares[system, measure]), moved=self._moved(measure, values),
            )
            for (system, measure), values in self._values.items()
        ]  # fmt: skip

    def _interval(self, values: list[float], share: bool) -> Interval:
        return share_interval(int(sum(values)), len(values)) if share else mean_interval(values, seed=self.seed)

    def _moved(self, measure: str, values: list[float]) -> bool:
        known = self._values.get((self.against, measure))
        if known is None:
            return False
        return paired_difference(known, values, seed=self.seed).excludes_zero
