"""The types of an evaluation: questions with gold labels over passages, systems, and their outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self, TypeAlias

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
    """What a system returns for one question."""

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

    @property
    def candidates(self) -> int:
        """The number of passages that each search may return."""
        return self.config.candidates

    @property
    def threshold(self) -> float:
        """The least probability of a verified passage."""
        return self.config.threshold

    @property
    def min_verified(self) -> int:
        """The number of verified passages below which the fallback runs."""
        return self.config.min_verified

    @property
    def redundancy(self) -> float:
        """The cosine above which a passage is redundant."""
        return self.config.redundancy

    @property
    def max_tokens(self) -> int:
        """The token budget, counted by `tokens`."""
        return self.config.max_tokens

    @property
    def separator(self) -> str:
        """The text between two passages."""
        return self.config.separator


System: TypeAlias = Callable[[str], SystemOutput]
"""A function from a question's text to what the system would put into the prompt."""

Peer: TypeAlias = Callable[[Sequence[Passage], SharedComponents], Callable[[str], Sequence[Passage]]]
"""A foreign retriever: from passages and components to a function that returns a prompt's passages, best first. It must
keep to `SharedComponents.max_tokens`; its passages are joined by `SharedComponents.separator` and counted."""

EMPTY_OUTPUT = SystemOutput(passages=(), ranked=(), text="", tokens=0)
"""The output that counts for a system that raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one system did with one question; measures are computed from it, and a run keeps it on disk."""

    question_id: str
    output: SystemOutput
    ms: float
    """Milliseconds that the system took, the query's embedding included."""
    error: str = ""
    """What the system raised, if it did; `output` is then empty."""

    @property
    def ids(self) -> list[str]:
        """The ids of the passages in the prompt, in its order."""
        return [p.id for p in self.output.passages]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"question_id": self.question_id, "ms": self.ms, "error": self.error, "output": asdict(self.output)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the outcome that `to_dict` wrote."""
        output = dict(data["output"])
        output["passages"] = tuple(Evidence(**p) for p in output["passages"])
        output["ranked"] = tuple(output["ranked"])
        return cls(question_id=data["question_id"], ms=data["ms"], error=data["error"], output=SystemOutput(**output))
