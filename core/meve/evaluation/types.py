"""The types of an evaluation: questions with gold labels over passages, systems, and their outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, TypeVar

import pydantic

from meve.pipeline.config import RetrieverConfig
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSentence:
    """A sentence that a right answer needs."""

    passage_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its gold labels."""

    id: str
    text: str
    gold: Mapping[str, int] = field(default_factory=dict)
    """The relevance, at least 1, of the passages that a right answer needs, by id; empty if there are none."""
    sentences: tuple[GoldSentence, ...] = ()
    answers: tuple[str, ...] = ()
    """Every accepted answer."""
    misleading: tuple[str, ...] = ()
    """Wrong answers that some passages contain."""
    answerable: bool = True
    """Whether the passages to choose from contain all that a right answer needs."""
    pool: tuple[str, ...] | None = None
    """The ids of the passages to choose from; None for the whole set."""
    kind: str = ""
    """The set's own category: bridge, comparison, single, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """Questions over passages."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @property
    def has_pools(self) -> bool:
        """Whether questions have passages of their own to choose from."""
        return any(q.pool is not None for q in self.questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A passage as it appears in a prompt."""

    id: str
    text: str
    """The text in the prompt, title included; a system may have cut it."""
    score: float | None = None
    """The probability that the passage answers, in [0, 1]; None from systems without one."""
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemOutput:
    """The output of a system for one question."""

    passages: tuple[Evidence, ...]
    """The passages in the prompt, in its order."""
    ranked: tuple[str, ...]
    """The ids of all passages that the system would return without a budget, best first."""
    text: str
    """The prompt's context."""
    tokens: int
    """The tokens of `text`, by the evaluation's tokenizer."""
    sufficient: bool | None = None
    """Whether the system calls the context sufficient for an answer; None from systems that don't say."""
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """The probability of each passage that got one, by id, rejected passages included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedComponents:
    """The models and settings that all systems of a comparison share."""

    embedder: Embedder
    verifier: Verifier
    tokens: TokenCounter
    verifier_model: str | None = None
    """The name or folder of the verifier's weights, for peers that load them into another runtime; None for a verifier
    without weights."""
    config: RetrieverConfig = field(default_factory=RetrieverConfig)
    """The retrieval settings."""


System: TypeAlias = Callable[[str], SystemOutput]
"""A function from a question's text to the system's output."""

Peer: TypeAlias = Callable[[Sequence[Passage], SharedComponents], Callable[[str], Sequence[Passage]]]
"""A foreign retriever: from passages and components to a function that returns a prompt's passages, best first. It must
keep to `config.max_tokens`; its passages are joined by `config.separator` and counted."""

EMPTY_OUTPUT = SystemOutput(passages=(), ranked=(), text="", tokens=0)
"""The output that counts for a system that raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcome:
    """The outcome of one system on one question; measures are computed from it, and a run stores it on disk."""

    question_id: str
    ms: float
    """Milliseconds that the system took, the query's embedding included."""
    error: str = ""
    """The error that the system raised, if any; `output` is then empty."""
    output: SystemOutput

    @property
    def ids(self) -> list[str]:
        """The ids of the passages in the prompt, in its order."""
        return [p.id for p in self.output.passages]


_T = TypeVar("_T")


def parse_dataclass(kind: type[_T], data: object) -> _T:
    """Return a dataclass from what `asdict` and JSON made of it.

    Raises:
        ValueError: a field is missing or of the wrong type.
    """
    try:
        parsed: _T = _adapter(kind).validate_python(data)  # type: ignore[arg-type] # classes are hashable
    except pydantic.ValidationError as cause:
        first = cause.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from cause
    return parsed


@cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:  # noqa: ANN401 - any dataclass
    return pydantic.TypeAdapter(kind)


def normalize_space(text: str) -> str:
    """Return the text with single spaces for white space."""
    return " ".join(text.split())
