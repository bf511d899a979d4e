"""What a run found: every measure of every system on every set, with intervals; JSON-ready, and read back."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from meve.errors import EvaluationError
from meve.evaluation.measures import MEASURES, AnyMeasure, Judged, Measure, Part, SetMeasure
from meve.evaluation.statistics import Interval, interval, mean_interval, paired_difference, paired_statistic

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
    """Of each question, by id; empty for what only many questions together have."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What each question adds to that, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure of a system less that of another, over the same questions."""

    set: str
    system: str
    against: str
    measure: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A question for which a system raised; it counts as nothing handed over."""

    set: str
    system: str
    question: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One system at one threshold and budget: a point of a curve."""

    set: str
    system: str
    threshold: float | None
    max_tokens: int
    recall: float
    """Mean supporting recall."""
    complete: float
    """Share of the questions with all gold."""
    tokens: float
    """Mean tokens handed over."""
    n: int
    raised: int = 0
    """For how many of them the system raised; those count as nothing handed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All of a run."""

    experiment: str
    settings: Mapping[str, Any]
    sets: Mapping[str, Mapping[str, Any]]
    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...] = ()
    failures: tuple[Failure, ...] = ()
    curve: tuple[Point, ...] = ()
    oddities: tuple[str, ...] = ()
    """What a reader must know of a system: budgets overrun, unknown passages, copies."""

    def value(self, set_name: str, system: str, measure: str) -> Interval | None:
        """One measure of one system on one set, if it was computed."""
        for cell in self.cells:
            if (cell.set, cell.system, cell.measure) == (set_name, system, measure):
                return cell.interval
        return None

    def systems(self, set_name: str) -> list[str]:
        """Who was measured on a set, in the order of the run."""
        return list(dict.fromkeys(c.system for c in self.cells if c.set == set_name))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"format": FORMAT, **asdict(self)}

    def save(self, file: Path) -> None:
        """Write it as JSON, a line for each cell, difference and point."""
        lines = []
        for key, value in self.to_dict().items():
            rows = ",\n".join(map(_json, value)) if isinstance(value, tuple) else None
            lines.append(f"{_json(key)}: " + (_json(value) if rows is None else f"[\n{rows}\n]"))
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            EvaluationError: no such file, or one that holds something else.
        """
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except OSError as cause:
            raise EvaluationError(f"{file} can't be read as results: {cause.strerror}") from cause
        except ValueError as cause:
            raise EvaluationError(f"{file} can't be read as results: {cause}") from cause
        if isinstance(data, dict) and data.get("experiment") == "speed":
            raise EvaluationError(f"{file} holds milliseconds, which are a machine's: they aren't compared")
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
                curve=tuple(Point(**p) for p in data["curve"]),
                oddities=tuple(data["oddities"]),
            )
        except (KeyError, TypeError, AttributeError) as cause:
            raise EvaluationError(f"{file} is damaged: {cause}") from cause


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _cell(data: Mapping[str, Any]) -> Cell:
    parts = {question: tuple(part) for question, part in data["parts"].items()}
    return Cell(**{**data, "interval": Interval(**data["interval"]), "parts": parts})


def cells(
    set_name: str, system: str, judged: Sequence[Judged], *, seed: int, measures: Sequence[AnyMeasure] | None = None
) -> list[Cell]:
    """Every measure that applies, over the same questions."""
    made = []
    for measure in MEASURES.values() if measures is None else measures:
        if isinstance(measure, Measure):
            values = measure.values(judged)
            known = {q.id: v for (q, _), v in zip(judged, values, strict=True) if v is not None}
            parts: dict[str, Part] = {}
            found = mean_interval(list(known.values()), seed=seed) if known else None
        else:
            known, parts = {}, {q.id: measure.part(q, outcome) for q, outcome in judged}
            found = total_interval(measure, list(parts.values()), seed=seed)
        if found is not None:
            made.append(
                Cell(set=set_name, system=system, measure=measure.name, interval=found, values=known, parts=parts)
            )
    return made


def total_interval(measure: SetMeasure, parts: Sequence[Part], *, seed: int) -> Interval | None:
    """Of a number that only many questions together have, from what each adds; None where it isn't known.

    Its `n` counts the questions that have a say in it.
    """
    if not parts:
        return None
    found = interval(len(parts), lambda at: measure.total([parts[i] for i in at.tolist()]), seed=seed)
    return None if found is None else replace(found, n=measure.count(parts))


def total_difference(measure: SetMeasure, old: Sequence[Part], new: Sequence[Part], *, seed: int) -> Interval | None:
    """The difference new - old of such a number, over the same questions in the same order."""
    found = paired_statistic(
        len(old),
        lambda at: measure.total([old[i] for i in at.tolist()]),
        lambda at: measure.total([new[i] for i in at.tolist()]),
        seed=seed,
    )
    return None if found is None else replace(found, n=min(measure.count(old), measure.count(new)))


def differences(set_name: str, judged: Mapping[str, Sequence[Judged]], against: str, *, seed: int) -> list[Difference]:
    """Of every system to one of them, over the questions that both were asked.

    Args:
        set_name: the set's.
        judged: for each system, its questions and outcomes.
        against: the system that the others are compared with.
        seed: of the draws.
    """
    base = {q.id: (q, outcome) for q, outcome in judged.get(against, ())}
    made = []
    for system, mine in judged.items():
        shared = [(q, outcome) for q, outcome in mine if q.id in base]
        if system == against or not shared:
            continue
        others = [base[q.id] for q, _ in shared]
        for measure in MEASURES.values():
            found = _difference(measure, others, shared, seed)
            if found is not None:
                made.append(
                    Difference(set=set_name, system=system, against=against, measure=measure.name, interval=found)
                )
    return made


def _difference(measure: AnyMeasure, old: Sequence[Judged], new: Sequence[Judged], seed: int) -> Interval | None:
    if isinstance(measure, SetMeasure):
        before, now = ([measure.part(q, outcome) for q, outcome in judged] for judged in (old, new))
        return total_difference(measure, before, now, seed=seed)
    both = [
        (b, n) for b, n in zip(measure.values(old), measure.values(new), strict=True) if b is not None and n is not None
    ]
    return paired_difference([b for b, _ in both], [n for _, n in both], seed=seed) if both else None


def cell_difference(old: Cell, new: Cell, ids: Sequence[str], *, seed: int) -> Interval | None:
    """The difference new - old of one measure over some questions, of those that both cells know; None without any."""
    measure = MEASURES.get(old.measure)
    if isinstance(measure, SetMeasure):
        shared = [i for i in ids if i in old.parts and i in new.parts]
        before, now = ([cell.parts[i] for i in shared] for cell in (old, new))
        return total_difference(measure, before, now, seed=seed) if shared else None
    shared = [i for i in ids if i in old.values and i in new.values]
    before_, now_ = ([cell.values[i] for i in shared] for cell in (old, new))
    return paired_difference(before_, now_, seed=seed) if shared else None


ASIDE = ("cli/", "demo.py", "testing/", "training/", "ingest/", "evaluation/report/")
"""What of the package has no part in what comes out of an experiment."""


def code() -> str:
    """A hash of the package's own code, but for what only shows, reads files or trains."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if not name.startswith(ASIDE):
            digest.update(f"{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Of Python, the machine, and the code and packages that decide what comes out."""
    from meve._version import __version__

    found = {
        "meve": f"{__version__} (code {code()})",
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    for package in _VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
