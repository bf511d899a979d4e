"""Results of a run: every measure of every system on every set, with intervals, as JSON."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self, TypeVar

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES, Contribution, JudgedQuestion, Measure, SetMeasure
from meve.evaluation.statistics import Interval, bootstrap_interval, mean_interval, paired_difference, paired_interval
from meve.evaluation.types import parse_dataclass

FORMAT = 2
_T = TypeVar("_T")
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
    """The contribution of each question to a `SetMeasure`, by id."""


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

    def save(self, file: Path) -> None:
        """Write JSON, with a line for each cell, difference and point."""
        lines = []
        for key, value in {"format": FORMAT, **asdict(self)}.items():
            rows = ",\n".join(map(_json, value)) if isinstance(value, tuple) else None
            lines.append(f"{_json(key)}: " + (_json(value) if rows is None else f"[\n{rows}\n]"))
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return the results that `save` wrote.

        Raises:
            EvaluationError: the file is absent, damaged, or holds something else.
        """
        return load_results(cls, file, FORMAT)


def load_results(kind: type[_T], file: Path, format_number: int) -> _T:
    """Return results of a type from a JSON file.

    Raises:
        EvaluationError: the file is absent, damaged, or holds something else.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        raise EvaluationError(f"{file} can't be read as results: {reason}") from cause
    if isinstance(data, dict) and data.get("experiment") == "speed":
        raise EvaluationError(f"{file} holds milliseconds, which depend on the machine: they can't be compared")
    if not isinstance(data, dict) or data.get("format") != format_number:
        raise EvaluationError(
            f"{file} holds no results of this version (format {format_number}): run the experiment again"
        )
    try:
        return parse_dataclass(kind, data)
    except ValueError as cause:
        raise EvaluationError(f"{file} is damaged: {cause}") from cause


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def compute_cells(set_name: str, system: str, judged: Sequence[JudgedQuestion], *, seed: int) -> list[Cell]:
    """Return the cells of every measure that applies, over the same questions; None for all measures."""
    cells = []
    for measure in MEASURES.values():
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


def compute_differences(cells: Sequence[Cell], against: str, *, seed: int) -> list[Difference]:
    """Return every system's differences to one of them, over the questions that both were asked.

    Args:
        cells: the cells of one set.
        against: the system that the others are compared with.
        seed: seed of the bootstrap.
    """
    base = {cell.measure: cell for cell in cells if cell.system == against}
    differences = []
    for cell in cells:
        if cell.system != against and cell.measure in base:
            interval = compare_cells(base[cell.measure], cell, list(cell.values or cell.parts), seed=seed)
            if interval is not None:
                differences.append(
                    Difference(
                        set=cell.set, system=cell.system, against=against, measure=cell.measure, interval=interval
                    )
                )
    return differences


def compare_cells(old: Cell, new: Cell, ids: Sequence[str], *, seed: int) -> Interval | None:
    """Return the difference new - old of one measure, over those of the questions that both cells have."""
    measure = MEASURES.get(old.measure)
    if isinstance(measure, SetMeasure):
        shared = [i for i in ids if i in old.parts and i in new.parts]
        parts = ([cell.parts[i] for i in shared] for cell in (old, new))
        return set_measure_difference(measure, *parts, seed=seed) if shared else None
    shared = [i for i in ids if i in old.values and i in new.values]
    values = ([cell.values[i] for i in shared] for cell in (old, new))
    return paired_difference(*values, seed=seed) if shared else None


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
