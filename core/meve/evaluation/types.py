"""What an evaluation is made of: questions with gold labels over passages, and what a system hands over for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from meve.pipeline.config import RetrieverConfig
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSentence:
    """A sentence that a right answer rests on."""

    passage_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and what is known of its right answer."""

    id: str
    text: str
    gold: Mapping[str, int] = field(default_factory=dict)
    """Relevance, at least 1, of the passages that a right answer rests on, by id; empty where none does."""
    sentences: tuple[GoldSentence, ...] = ()
    answers: tuple[str, ...] = ()
    """Every accepted answer."""
    misleading: tuple[str, ...] = ()
    """Wrong answers that some passages give."""
    answerable: bool = True
    """Whether the passages to choose from hold all that a right answer needs."""
    pool: tuple[str, ...] | None = None
    """The ids to choose from; None for the whole set."""
    kind: str = ""
    """The set's own word for it: bridge, comparison, single, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """Questions over passages."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @property
    def closed(self) -> bool:
        """Whether each question has a pool of its own."""
        return any(q.pool is not None for q in self.questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A passage as it stands in a prompt."""

    id: str
    text: str
    """As handed over, title included; a system may have cut it."""
    score: float | None = None
    """The probability that it answers, in [0, 1], from systems that claim one."""
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What a system hands over for one question."""

    passages: tuple[Evidence, ...]
    """What stands in the prompt, in that order."""
    ranked: tuple[str, ...]
    """Ids of all that it would hand over if there were room, best first; those in the prompt among them."""
    text: str
    """The prompt's context."""
    tokens: int
    """Of `text`, by the evaluation's tokenizer."""
    sufficient: bool | None = None
    """Whether it says that this can carry an answer; None if it doesn't say."""
    judged: Mapping[str, float] = field(default_factory=dict)
    """Every probability that it gave, also to passages it turned down, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What every system of a comparison shares, so that they differ in nothing else."""

    embedder: Embedder
    verifier: Verifier
    tokens: TokenCounter
    verifier_model: str | None = None
    """Name or folder of the verifier's weights, for a peer that loads them into a runtime of its own; None for a
    verifier without weights."""
    config: RetrieverConfig = field(default_factory=RetrieverConfig)
    """How many candidates a search brings, which probability verifies, how many tokens there are, and so on."""

    @property
    def candidates(self) -> int:
        """How many passages each search may bring."""
        return self.config.candidates

    @property
    def threshold(self) -> float:
        """The least probability of a passage that counts as verified."""
        return self.config.threshold

    @property
    def min_verified(self) -> int:
        """With fewer verified passages, the fallback runs."""
        return self.config.min_verified

    @property
    def redundancy(self) -> float:
        """The cosine above which a passage says nothing new."""
        return self.config.redundancy

    @property
    def max_tokens(self) -> int:
        """The budget, in tokens of `tokens`."""
        return self.config.max_tokens

    @property
    def separator(self) -> str:
        """What stands between two passages."""
        return self.config.separator


System: TypeAlias = Callable[[str], Handed]
"""Answers a question's text with what it would put into the prompt."""

Peer: TypeAlias = Callable[[Sequence[Passage], Parts], Callable[[str], Sequence[Passage]]]
"""Somebody else's retriever: made over passages, and asked for those to put into the prompt, best first. It keeps to
`Parts.max_tokens` itself; what it returns is joined by `Parts.separator` and counted."""
