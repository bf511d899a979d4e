"""Define the values that pass through the phases: passages, queries, candidates and selections."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from meve._frozen import make_frozen
from meve._quoting import mark_forgeries

FloatArray: TypeAlias = npt.NDArray[np.float32]
"""float32; shape (d,) for one vector, (n, d) for n of them, (n,) for scores."""

RowArray: TypeAlias = npt.NDArray[np.int64]
"""int64, shape (n,): the row keys under which an index knows its passages."""

TextSpans: TypeAlias = Sequence[tuple[int, int]]
"""Parts of a text: the start and end of each, in characters."""

Similarity: TypeAlias = Literal["cosine", "dot"]

LexicalKind: TypeAlias = Literal["bm25", "rank_bm25"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and their total."""

StageProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the stage, the number of its steps done and their total."""

Origin: TypeAlias = str
"""The source of a candidate: `dense`, `lexical`, `fallback`, `fill`, or the name of a source of your own."""


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
    """Precedes the text wherever the passage is embedded, verified, counted or packed."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON-plain values; must not be changed."""

    @property
    def content(self) -> str:
        """Title and text, as models see them."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def prompt_text(self) -> str:
        """The text that is packed and counted: the content, unless a subclass overrides it."""
        return self.content

    @property
    def heading(self) -> str:
        """The line above this and other passages of the same heading where they are packed; empty for none."""
        return ""

    def lead_after(self, before: "Passage | None") -> str:  # noqa: ARG002
        """Return what stands before the text where passages aren't numbered, given the passage above; empty for none.

        It takes the place of the heading.
        """
        return ""

    def packed_text(self, *, numbered: bool) -> str:
        """Return the text as it is packed: lines are marked that imitate a prompt, or a number if those are shown."""
        return mark_forgeries(self.prompt_text, numbers=numbered)

    def with_text(self, text: str) -> "Passage":
        """Return a copy with other text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question with its embedding and filter."""

    text: str
    vector: FloatArray | None = None
    """The embedding, shape (d,); None if nothing needs it."""
    where: Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None = None
    """Required metadata: a value or a list of accepted values by name; or a predicate over the metadata."""


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots, so that `make_frozen` can make it
class Candidate:
    """A passage under consideration, with its scores. Phases make new candidates and change none."""

    passage: Passage
    origin: Origin
    scores: Mapping[str, float] = field(default_factory=dict)
    """All scores by their giver: `dense`, `lexical`, `verifier`, …"""
    score: float | None = None
    """The score that decides its rank; the verifier's, in [0, 1], after phase 2."""
    verified: bool = False
    """Whether the score reached the threshold."""
    vector: FloatArray | None = None
    """The stored embedding, shape (d,)."""
    tokens: int | None = None
    """The stored token count of the passage."""
    sentences: tuple[int, ...] | None = None
    """The indices of the remaining sentences, from 0; None for all."""
    place: int = 0
    """The position among given passages; breaks ties between equal scores before the id does."""
    source_rank: int = 0
    """The best position among the results of the sources that found it, from 0; always 0 if there is one source."""
    keyword_share: float | None = None
    """The keyword score divided by the best of this search, in [0, 1]; 0 without a word of the query, None if it is
    unknown."""
    read_with: tuple[str, ...] = ()
    """The ids of the passages that a verifier has read beside the question for this candidate (further hops)."""

    @property
    def id(self) -> str:
        """The passage's id."""
        return self.passage.id

    def with_score(self, by: str, value: float, *, verified: bool = False) -> "Candidate":
        """Return a copy with one more score, which decides its rank from now on."""
        fields = vars(self).copy()
        fields["scores"], fields["score"], fields["verified"] = {**self.scores, by: value}, value, verified
        return make_frozen(Candidate, fields)


class Dropped(NamedTuple):
    """A candidate that a phase dropped, and why."""

    candidate: Candidate
    reason: str
    """`shown_already`, `below_threshold`, `unlikely`, `duplicate_of:<id>`, `budget_full`, `deadline`, `below_floor`,
    `redundant_with:<id>`, `over_budget`, `over_limit`, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The candidates that a phase kept, in order, and those that it dropped."""

    kept: Sequence[Candidate]
    dropped: Sequence[Dropped] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPassage:
    """A passage in the context."""

    passage: Passage
    score: float | None
    """The verifier's probability, in [0, 1]; the similarity in modes without verification; None if it wasn't scored."""
    verified: bool
    origin: Origin
    tokens: int
    """The tokens of the passage alone, without separators."""
    logit: float | None = None
    """The verifier's raw score, where the verdict weighs other evidence too; None elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, date, quantity or concept that a text names."""

    kind: str
    """`name`, `date`, `quantity`, `concept`, or a kind of your own detector."""
    text: str
    """The words as they stand in the text."""
    start: int
    """The offset in characters from 0; the end is `start + len(text)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """A query, a passage, and whether the passage answers the query; calibrations are fitted on such pairs."""

    query: str
    passage: str
    relevant: bool


def sort_best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return verified candidates first, then by falling score, then by place and id; the order is deterministic."""
    return sorted(candidates, key=best_first)


def best_first(candidate: Candidate) -> tuple[bool, float, int, str]:
    """Return the key by which `sort_best_first` sorts."""
    score = float("-inf") if candidate.score is None else candidate.score
    return not candidate.verified, -score, candidate.place, candidate.passage.id
