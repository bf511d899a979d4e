"""Results of a run: every measure of every system on every set, with intervals, as JSON."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES, AnyMeasure, Contribution, JudgedQuestion, Measure, SetMeasure
from meve.evaluation.statistics import (
    Interval,
    bootstrap_interval,
    mean_interval,
    paired_difference,
    paired_interval,
)

FORMAT = 2
_VERSIONS = (
    "numpy",
    "faiss-cpu",
    "torch",
    "sentence-transformers",
    "transformers",
    "tokenizers",
    "model2vec",
    "onnxruntime",
    "tiktoken",
    "rank-bm25",
    "nltk",
    "ir-measures",
    "langchain-core",
    "langchain-classic",
    "langchain-community",
    "bm25s",
    "llama-index-core",
    "llama-index-retrievers-bm25",
    "llama-index-vector-stores-faiss",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One measure of one system on one set."""

    set: str
    system: str
    measure: str
    interval: Interval
    values: Mapping[str, float] = field(default_factory=dict)
    """The value of each question, by id; empty for a `SetMeasure`."""
    parts: Mapping[str, Contribution] = field(default_factory=dict)
    """What each question contributes to a `SetMeasure`, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure of a system minus that of another, over the same questions."""

    set: str
    system: str
    against: str
    measure: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A question for which a system raised; it counts as an empty prompt."""

    set: str
    system: str
    question: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One system at one threshold and budget."""

    set: str
    system: str
    threshold: float | None
    max_tokens: int
    recall: float
    """Mean supporting recall."""
    complete: float
    """Share of the questions with all gold."""
    tokens: float
    """Mean tokens in the prompt."""
    n: int
    raised: int = 0
    """The number of questions for which the system raised; they count as empty prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of a run."""

    experiment: str
    settings: Mapping[str, Any]
    sets: Mapping[str, Mapping[str, Any]]
    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...] = ()
    failures: tuple[Failure, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    oddities: tuple[str, ...] = ()
    """Anomalies of a system: budgets overrun, unknown passages, duplicates."""

    def value(self, set_name: str, system: str, measure: str) -> Interval | None:
        """Return one measure of one system on one set; None if it wasn't computed."""
        for cell in self.cells:
            if (cell.set, cell.system, cell.measure) == (set_name, system, measure):
                return cell.interval
        return None

    def systems(self, set_name: str) -> list[str]:
        """Return the systems that were measured on a set, in the order of the run."""
        return list(dict.fromkeys(c.system for c in self.cells if c.set == set_name))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"format": FORMAT, **asdict(self)}

    def save(self, file: Path) -> None:
        """Write JSON, with a line for each cell, difference and point."""
        lines = []
        for key, value in self.to_dict().items():
            rows = ",\n".join(map(_json, value)) if isinstance(value, tuple) else None
            lines.append(f"{_json(key)}: " + (_json(value) if rows is None else f"[\n{rows}\n]"))
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return the results that `save` wrote.

        Raises:
            EvaluationError: the file is absent, damaged, or holds something else.
        """
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except OSError as cause:
            raise EvaluationError(f"{file} can't be read as results: {cause.strerror}") from cause
        except ValueError as cause:
            raise EvaluationError(f"{file} can't be read as results: {cause}") from cause
        if isinstance(data, dict) and data.get("experiment") == "speed":
            raise EvaluationError(f"{file} holds milliseconds, which depend on the machine: they can't be compared")
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise EvaluationError(
                f"{file} holds no results of this version (format {FORMAT}): run the experiment again"
            )
        try:
            return cls(
                experiment=data["experiment"],
                settings=data["settings"],
                sets=data["sets"],
                cells=tuple(_cell(c) for c in data["cells"]),
                differences=tuple(
                    Difference(**{**d, "interval": Interval(**d["interval"])}) for d in data["differences"]
                ),
                failures=tuple(Failure(**f) for f in data["failures"]),
                curve=tuple(CurvePoint(**p) for p in data["curve"]),
                oddities=tuple(data["oddities"]),
            )
        except (KeyError, TypeError, AttributeError) as cause:
            raise EvaluationError(f"{file} is damaged: {cause}") from cause


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _cell(data: Mapping[str, Any]) -> Cell:
    parts = {question: tuple(part) for question, part in data["parts"].items()}
    return Cell(**{**data, "interval": Interval(**data["interval"]), "parts": parts})


def compute_cells(
    set_name: str,
    system: str,
    judged: Sequence[JudgedQuestion],
    *,
    seed: int,
    measures: Sequence[AnyMeasure] | None = None,
) -> list[Cell]:
    """Return the cells of every measure that applies, over the same questions; None for all measures."""
    cells = []
    for measure in MEASURES.values() if measures is None else measures:
        if isinstance(measure, Measure):
            all_values = measure.values(judged)
            values = {q.id: v for (q, _), v in zip(judged, all_values, strict=True) if v is not None}
            parts: dict[str, Contribution] = {}
            interval = mean_interval(list(values.values()), seed=seed) if values else None
        else:
            values, parts = {}, {q.id: measure.contribution(q, outcome) for q, outcome in judged}
            interval = set_measure_interval(measure, list(parts.values()), seed=seed)
        if interval is not None:
            cells.append(
                Cell(set=set_name, system=system, measure=measure.name, interval=interval, values=values, parts=parts)
            )
    return cells


def set_measure_interval(measure: SetMeasure, contributions: Sequence[Contribution], *, seed: int) -> Interval | None:
    """Return a set measure with its interval; None where it doesn't apply. Its `n` is that of `SetMeasure.count`."""
    if not contributions:
        return None
    interval = bootstrap_interval(
        len(contributions), lambda drawn: measure.total([contributions[i] for i in drawn.tolist()]), seed=seed
    )
    return None if interval is None else replace(interval, n=measure.count(contributions))


def set_measure_difference(
    measure: SetMeasure, old: Sequence[Contribution], new: Sequence[Contribution], *, seed: int
) -> Interval | None:
    """Return the difference new - old of a set measure, over the same questions in the same order."""
    interval = paired_interval(
        len(old),
        lambda drawn: measure.total([old[i] for i in drawn.tolist()]),
        lambda drawn: measure.total([new[i] for i in drawn.tolist()]),
        seed=seed,
    )
    return None if interval is None else replace(interval, n=min(measure.count(old), measure.count(new)))


def compute_differences(
    set_name: str, judged: Mapping[str, Sequence[JudgedQuestion]], against: str, *, seed: int
) -> list[Difference]:
    """Return every system's differences to one of them, over the questions that both were asked.

    Args:
        set_name: the set.
        judged: for each system, its questions and outcomes.
        against: the system that the others are compared with.
        seed: seed of the bootstrap.
    """
    base = {q.id: (q, outcome) for q, outcome in judged.get(against, ())}
    differences = []
    for system, answers in judged.items():
        shared = [(q, outcome) for q, outcome in answers if q.id in base]
        if system == against or not shared:
            continue
        base_answers = [base[q.id] for q, _ in shared]
        for measure in MEASURES.values():
            interval = _measure_difference(measure, base_answers, shared, seed)
            if interval is not None:
                differences.append(
                    Difference(set=set_name, system=system, against=against, measure=measure.name, interval=interval)
                )
    return differences


def _measure_difference(
    measure: AnyMeasure, old: Sequence[JudgedQuestion], new: Sequence[JudgedQuestion], seed: int
) -> Interval | None:
    if isinstance(measure, SetMeasure):
        before, now = ([measure.contribution(q, outcome) for q, outcome in judged] for judged in (old, new))
        return set_measure_difference(measure, before, now, seed=seed)
    pairs = [
        (b, n) for b, n in zip(measure.values(old), measure.values(new), strict=True) if b is not None and n is not None
    ]
    return paired_difference([b for b, _ in pairs], [n for _, n in pairs], seed=seed) if pairs else None


def compare_cells(old: Cell, new: Cell, ids: Sequence[str], *, seed: int) -> Interval | None:
    """Return the difference new - old of one measure, over those of the questions that both cells have."""
    measure = MEASURES.get(old.measure)
    if isinstance(measure, SetMeasure):
        shared = [i for i in ids if i in old.parts and i in new.parts]
        before, now = ([cell.parts[i] for i in shared] for cell in (old, new))
        return set_measure_difference(measure, before, now, seed=seed) if shared else None
    shared = [i for i in ids if i in old.values and i in new.values]
    before_, now_ = ([cell.values[i] for i in shared] for cell in (old, new))
    return paired_difference(before_, now_, seed=seed) if shared else None


_WITHOUT_EFFECT = ("cli/", "testing/", "training/", "ingest/", "evaluation/report/")
"""Parts of the package that can't change an experiment's results."""


def _hash_code() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if not name.startswith(_WITHOUT_EFFECT):
            digest.update(f"{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def collect_versions() -> dict[str, str]:
    """Return the versions of Python, the machine, and the code and packages that decide the results."""
    from meve._version import __version__

    versions = {
        "meve": f"{__version__} (code {_hash_code()})",
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    for package in _VERSIONS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
