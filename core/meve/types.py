"""The values that travel through the phases: passages in, candidates between, a context out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
"""float32; shape (d,) for one vector, (n, d) for n of them, (n,) for scores."""

RowArray: TypeAlias = npt.NDArray[np.int64]
"""int64, shape (n,): row keys, the numbers under which an index knows its passages."""

Similarity: TypeAlias = Literal["cosine", "dot"]

LexicalKind: TypeAlias = Literal["bm25", "rank_bm25"]

Origin: TypeAlias = str
"""Which source brought a candidate: `dense`, `fallback`, or the name of a source of your own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    r"""A piece of text that may enter a prompt.

    >>> Passage(id="moon", title="The Moon", text="It orbits the Earth.").content
    'The Moon\nIt orbits the Earth.'
    """

    id: str
    """Unique in its corpus; breaks ties between equal scores."""
    text: str
    title: str = ""
    """Stands above the text wherever the passage is embedded, verified, counted or shown."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON-plain values; read-only by agreement."""

    @property
    def content(self) -> str:
        """Title and text, as models see them."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def prompt_text(self) -> str:
        """As it stands in a context, and as its tokens are counted: its content, unless a subclass knows better."""
        return self.content

    def with_text(self, text: str) -> "Passage":
        """The same passage with other text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question on its way through the phases."""

    text: str
    vector: FloatArray | None = None
    """Its embedding, shape (d,), made once; None where no part needs one."""
    where: Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None = None
    """Metadata that a passage must have: value, or list of accepted values, by key; or a function that says so."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A passage under consideration, with what is known of it so far. Phases make new ones, and change none."""

    passage: Passage
    origin: Origin
    scores: Mapping[str, float] = field(default_factory=dict)
    """Every score it got, by who gave it: `dense`, `lexical`, `verifier`, …"""
    score: float | None = None
    """The one that orders it: the verifier's, in [0, 1], where it was verified."""
    verified: bool = False
    """Whether its score reached the threshold."""
    vector: FloatArray | None = None
    """The stored embedding, shape (d,)."""
    tokens: int | None = None
    """The stored token count of its content."""
    sentences: tuple[int, ...] | None = None
    """Which of the passage's sentences are left, counted from 0; None for all."""
    place: int = 0
    """Where it stood among given passages: breaks ties between equal scores, before the id does."""

    @property
    def id(self) -> str:
        """The passage's id."""
        return self.passage.id

    def with_score(self, by: str, value: float, *, verified: bool = False) -> "Candidate":
        """The same candidate with one score more, which from now on orders it."""
        return Candidate(
            passage=self.passage,
            origin=self.origin,
            scores={**self.scores, by: value},
            score=value,
            verified=verified,
            vector=self.vector,
            tokens=self.tokens,
            sentences=self.sentences,
            place=self.place,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A candidate that a phase let go, and why."""

    candidate: Candidate
    reason: str
    """`shown_already`, `below_threshold`, `unlikely`, `duplicate_of:<id>`, `below_floor`, `redundant_with:<id>`,
    `over_budget`, `over_limit`, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a phase kept, in order, and what it dropped."""

    kept: Sequence[Candidate]
    dropped: Sequence[Dropped] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPassage:
    """A passage that stands in the context."""

    passage: Passage
    score: float | None
    """The verifier's probability, in [0, 1]; the similarity where nothing verified it."""
    verified: bool
    origin: Origin
    tokens: int
    """Its content alone, without separators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Something that a text names: a person, a date, a quantity, a concept."""

    kind: str
    """`name`, `date`, `quantity`, `concept`, or what a detector of one's own calls it."""
    text: str
    """As it stands there."""
    start: int
    """Where it begins, in characters from 0; it ends at `start + len(text)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """A query, a passage, and whether the one answers the other: what calibrations are fitted on."""

    query: str
    passage: str
    relevant: bool


def sort_best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Verified before not verified, then by falling score, place and id, so that two runs agree."""
    return sorted(
        candidates,
        key=lambda c: (not c.verified, -(c.score if c.score is not None else float("-inf")), c.place, c.id),
    )
