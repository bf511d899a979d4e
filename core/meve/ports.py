"""The shapes of the parts. Nobody inherits from these; whatever has the methods fits.

Each has a contract suite in `meve.testing` that runs on every implementation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from meve.types import Candidate, ContextPassage, Entity, FloatArray, Query, RowArray, Similarity


class Embedder(Protocol):
    """Turns text into vectors. Queries and passages may be encoded differently."""

    @property
    def name(self) -> str:
        """What the model is called; an index remembers it."""
        ...

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        ...

    @property
    def similarity(self) -> Similarity:
        """How its vectors are compared. Vectors of a `cosine` embedder have length 1."""
        ...

    def embed_query(self, text: str) -> FloatArray:
        """One query, as a vector of shape (d,).

        Raises:
            QueryError: the query is longer than the model's window; it is never cut.
        """
        ...

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Passages, as an array of shape (n, d), in the order given. No text is cut unsaid."""
        ...


class Calibration(Protocol):
    """Maps a model's raw scores onto probabilities, monotonically."""

    def apply(self, raw: FloatArray) -> FloatArray:
        """Raw scores of shape (n,) as probabilities in [0, 1] of the same shape."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready; `meve.calibration.maps.calibration_from_dict` reads it back."""
        ...


class Verifier(Protocol):
    """Judges whether a passage answers a query."""

    @property
    def name(self) -> str:
        """What the model is called; the trace and the index name it."""
        ...

    @property
    def calibration(self) -> Calibration:
        """How its raw scores become probabilities."""
        ...

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """The model's own scores, shape (n,), on its own scale, in the order given."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Calibrated probabilities in [0, 1], shape (n,), in the order given.

        Raises:
            QueryError: the query leaves no room for a passage in the model's window.
        """
        ...

    def with_calibration(self, calibration: Calibration) -> Self:
        """The same model under another calibration."""
        ...


@runtime_checkable
class VectorVerifier(Protocol):
    """A verifier that judges by embeddings, and so can use those that an index holds already."""

    @property
    def embedder(self) -> Embedder:
        """The embedder whose vectors it judges."""
        ...

    def score_vectors(self, query: FloatArray, passages: FloatArray) -> FloatArray:
        """Calibrated probabilities, shape (n,), from a query vector (d,) and passage vectors (n, d)."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as the reading model would.

    One that has an attribute `adds_up`, and it is true, says that a text's tokens are those of the pieces between its
    white space together: packing then adds up, and counts the whole once, at the end.
    """

    @property
    def name(self) -> str:
        """What the tokenizer is called; context, trace and index name it."""
        ...

    def count(self, text: str) -> int:
        """The number of tokens of a text, without special tokens."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The same for many texts, in the order given."""
        ...


class DenseIndex(Protocol):
    """Vectors under row keys, searched by inner product. What it is told is true of the very next search."""

    @property
    def kind(self) -> str:
        """A short name, such as `flat`, `hnsw` or `ivf`."""
        ...

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        ...

    def __len__(self) -> int:
        """How many vectors it holds."""
        ...

    def add(self, rows: RowArray, vectors: FloatArray) -> None:
        """Take in vectors (n, d) under new row keys (n,).

        Raises:
            VectorError: wrong dimension, NaN or infinity; nothing is taken in.
            DuplicateIdError: a row key that is taken or given twice; nothing is taken in.
        """
        ...

    def remove(self, rows: RowArray) -> None:
        """Forget these rows.

        Raises:
            UnknownIdError: a row that isn't there; nothing is forgotten.
        """
        ...

    def search(self, vector: FloatArray, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """The at most k rows of the largest inner product, best first, equal ones by row; among `allowed` if given."""
        ...

    def vectors(self, rows: RowArray) -> FloatArray:
        """The stored vectors, shape (n, d), in the order given.

        Raises:
            UnknownIdError: a row that isn't there.
        """
        ...

    def save(self, path: Path) -> None:
        """Write everything to one new file."""
        ...

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read back what `save` wrote."""
        ...


class LexicalIndex(Protocol):
    """Texts under row keys, searched by their words. What it is told is true of the very next search."""

    @property
    def kind(self) -> str:
        """A short name, such as `bm25` or `rank_bm25`."""
        ...

    def __len__(self) -> int:
        """How many texts it holds."""
        ...

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Take in texts under new row keys.

        Raises:
            DuplicateIdError: a row key that is taken or given twice; nothing is taken in.
        """
        ...

    def remove(self, rows: RowArray) -> None:
        """Forget these rows.

        Raises:
            UnknownIdError: a row that isn't there; nothing is forgotten.
        """
        ...

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """The at most k rows that share a word with `text`, best first, equal ones by row; among `allowed` if given."""
        ...

    def save(self, path: Path) -> None:
        """Write everything to one new file."""
        ...

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read back what `save` wrote."""
        ...


class Source(Protocol):
    """Something that candidates come from: an index, a framework's store, a window of a dialogue."""

    @property
    def name(self) -> str:
        """Names the score that it gives, and the origin of its candidates."""
        ...

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        """At most k candidates, best first, equal ones by id, with `scores[name]` set."""
        ...


class Scorer(Protocol):
    """Gives candidates the score that orders them.

    One that says of itself `reads_vectors = False` is given candidates without vectors, where their source has none.
    """

    @property
    def name(self) -> str:
        """Names the score, for the trace."""
        ...

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """One score each, shape (n,), in the order given."""
        ...


class Prior(Protocol):
    """Says, before anything is verified and without a model, which candidates stand no chance."""

    @property
    def name(self) -> str:
        """Names it, for the trace."""
        ...

    @property
    def least(self) -> float:
        """The chance in [0, 1] below which a candidate need not be scored."""
        ...

    def chances(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """The probability that each would be verified, shape (n,), in the order given."""
        ...


class Estimator(Protocol):
    """Says whether a context can carry an answer."""

    @property
    def name(self) -> str:
        """Names it, for the trace."""
        ...

    @property
    def threshold(self) -> float:
        """From which estimate on a context is called sufficient, in [0, 1]."""
        ...

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:
        """The probability in [0, 1] that these passages carry an answer to the query."""
        ...


class EntityDetector(Protocol):
    """Finds in texts what makes them worth keeping: names, dates, quantities, concepts."""

    @property
    def name(self) -> str:
        """Names it, for the trace."""
        ...

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The entities of each text, in the order given; those of one text by where they begin."""
        ...


Metadata = Mapping[str, Any]
