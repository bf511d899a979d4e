"""Define the interfaces of replaceable components, as Protocols: any object with these methods fits.

`meve.testing` has a contract suite for each, which runs on every implementation.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from meve.types import Candidate, ContextPassage, Entity, FloatArray, Query, RowArray, Similarity, TextSpans


class Embedder(Protocol):
    """A model that turns text into vectors. Queries and passages may be encoded differently."""

    @property
    def name(self) -> str:
        """The name of the model; an index stores it."""

    @property
    def dimension(self) -> int:
        """The length d of each vector."""

    @property
    def similarity(self) -> Similarity:
        """The similarity function of the vectors. Vectors of a `cosine` embedder have length 1."""

    def embed_query(self, text: str) -> FloatArray:
        """Embed one query, as a vector of shape (d,).

        The embedders here read a query that exceeds their window in stretches. Half of the vector of such a query, or
        of one of four lines or more, is that of what it asks for: its last sentences with a question mark, or its
        first and last line.

        Raises:
            QueryError: the query isn't text, or is too long for the embedder; it is never truncated.
            ModelError: the model failed.
        """

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Embed passages, as an array of shape (n, d), in the order given. No text is truncated silently.

        Raises:
            PassageError: an entry isn't text.
            ModelError: the model failed.
        """


class Calibration(Protocol):
    """A monotonic map from raw scores to probabilities."""

    def apply(self, raw: FloatArray) -> FloatArray:
        """Map raw scores of shape (n,) to probabilities in [0, 1] of the same shape."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data; `meve.calibration.probability_maps.calibration_from_dict` reads it."""


class Verifier(Protocol):
    """A model that judges whether a passage answers a query."""

    @property
    def name(self) -> str:
        """The name of the model; trace and index store it."""

    @property
    def calibration(self) -> Calibration:
        """The map from raw scores to probabilities."""

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the model's uncalibrated scores, shape (n,), in the order given.

        Raises:
            QueryError: the query isn't text, or is too long for the verifier; it is never truncated.
            PassageError: a passage isn't text.
            ModelError: the model failed.
        """

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities in [0, 1], shape (n,), in the order given; raises as `raw_scores`."""

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the same model with another calibration."""


@runtime_checkable
class VectorVerifier(Protocol):
    """A verifier that judges by embeddings, so that it can use those stored in an index."""

    @property
    def embedder(self) -> Embedder:
        """The embedder whose vectors it scores."""

    def score_vectors(self, query: FloatArray, passages: FloatArray) -> FloatArray:
        """Return calibrated probabilities, shape (n,), from a query vector (d,) and passage vectors (n, d)."""


@runtime_checkable
class PairVerifier(Protocol):
    """A verifier that reads pairs of several queries in one call, so that they share batches."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return uncalibrated scores of pairs of query and passage, shape (n,), as `Verifier.raw_scores` would.

        Raises:
            QueryError: a query isn't text, or is too long for the verifier.
            PassageError: a passage isn't text.
            ModelError: the model failed.
        """


@runtime_checkable
class SentenceVerifier(Protocol):
    """A verifier that rates the sentences of a passage in the reading that scores the passage."""

    @property
    def scores_sentences(self) -> bool:
        """Whether its model can rate sentences; if not, `score_sentences` raises an error."""

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[FloatArray]:
        """Return for each passage a probability per sentence, given by its start and end in characters.

        Raises:
            QueryError: as `Verifier.raw_scores`.
            ModelError: the model failed.
        """


class TokenCounter(Protocol):
    """Counts tokens as the reading model does.

    A true attribute `adds_up` promises that a text has as many tokens as its pieces between white space together.
    Packing then adds stored counts and counts the whole text only once.
    """

    @property
    def name(self) -> str:
        """The name of the tokenizer; trace and index store it."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the counts of many texts, in the order given."""


class DenseIndex(Protocol):
    """An index of vectors under row keys, searched by inner product. Changes are visible to the next search."""

    @property
    def kind(self) -> str:
        """A short name, such as `flat`, `hnsw` or `ivf`."""

    @property
    def dimension(self) -> int:
        """The length d of each vector."""

    def __len__(self) -> int:
        """Return the number of vectors."""

    def add(self, rows: RowArray, vectors: FloatArray) -> None:
        """Add vectors (n, d) under new row keys (n,).

        Raises:
            VectorError: wrong dimension, NaN or infinity; nothing is added.
            DuplicateIdError: a taken or repeated row key; nothing is added.
        """

    def remove(self, rows: RowArray) -> None:
        """Remove these rows.

        Raises:
            UnknownIdError: an unknown row; nothing is removed.
        """

    def search(self, vector: FloatArray, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """Return the k rows with the largest inner product with `vector`, best first; ties go to the smaller row.

        Args:
            vector: the query, shape (d,).
            k: the maximum number of rows.
            allowed: row keys to choose from, shape (n,); unknown keys are ignored.

        Raises:
            VectorError: wrong dimension, NaN or infinity.
        """

    def vectors(self, rows: RowArray) -> FloatArray:
        """Return the stored vectors, shape (n, d), in the order given.

        Raises:
            UnknownIdError: an unknown row.
        """

    def save(self, path: Path) -> None:
        """Write everything to one new file.

        Raises:
            StorageError: the file can't be written.
        """

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            IndexNotFoundError: the file doesn't exist.
            IndexCorruptError: the file is truncated, altered or not an index file.
            IndexMismatchError: an index of another kind or format.
        """


class LexicalIndex(Protocol):
    """An index of texts under row keys, searched by keywords. Changes are visible to the next search."""

    @property
    def kind(self) -> str:
        """A short name, such as `bm25` or `rank_bm25`."""

    def __len__(self) -> int:
        """Return the number of texts."""

    def add(self, rows: RowArray, texts: Sequence[str]) -> None:
        """Add texts under new row keys (n,).

        Raises:
            DuplicateIdError: a taken or repeated row key; nothing is added.
            PassageError: the numbers of texts and rows differ, or an entry isn't text; nothing is added.
        """

    def remove(self, rows: RowArray) -> None:
        """Remove these rows.

        Raises:
            UnknownIdError: an unknown row; nothing is removed.
        """

    def search(self, text: str, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """Return at most k rows that share a word with `text`, best first; ties go to the smaller row.

        Args:
            text: the query.
            k: the maximum number of rows.
            allowed: row keys to choose from, shape (n,); the statistics remain those of all texts.
        """

    def save(self, path: Path) -> None:
        """Write everything to one new file.

        Raises:
            StorageError: the file can't be written.
        """

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            IndexNotFoundError: the file doesn't exist.
            IndexCorruptError: the file is truncated, altered or not an index file.
            IndexMismatchError: an index of another kind or format.
        """


class Source(Protocol):
    """A source of candidates: an index, a framework's store, a window of a dialogue.

    A source that searches by keywords may have a method `score_ids(query, ids)`. For passages that other sources found
    it returns the scores, at least 0, that its own search would give, by id: 0 without a word of the query. Ids that it
    doesn't know are left out. A method `word_counter(query)` returns a function that tells in how many of the passages
    that it may return a word in lower case stands, for the spelling of questions, or None.
    """

    @property
    def name(self) -> str:
        """The name of its score, and the origin of its candidates."""

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        """Return at most k candidates, best first, ties by id, with `scores[name]` set."""


class Scorer(Protocol):
    """Gives candidates the score that decides their rank.

    With an attribute `reads_vectors = False` it may be given candidates without vectors. A method `judge`, with the
    arguments of `score`, returns the scores and by name the inputs of these scores, for the trace. A true attribute
    `scores_sentences` promises a method `score_sentences` as `VerifierScorer.score_sentences`.
    """

    @property
    def name(self) -> str:
        """The name of the score in the trace."""

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return one score each, shape (n,), in the order given."""


class EvidenceCombiner(Protocol):
    """Judges passages by a verifier's raw scores together with other evidence."""

    @property
    def name(self) -> str:
        """The name in the trace."""

    @property
    def verifier(self) -> str:
        """The name of the verifier whose raw scores it reads."""

    @property
    def embedder(self) -> str | None:
        """The name of the embedder whose cosines it reads; None if it reads none, and so judges for any embedder."""

    @property
    def calibration(self) -> Calibration:
        """The map from `sums` to probabilities."""

    def sums(self, inputs: Mapping[str, FloatArray]) -> FloatArray:
        """Return log-odds before calibration, shape (n,), that grow with each input of shape (n,).

        Args:
            inputs: `logit`, any finite number; `cosine`, in [-1, 1], unless `embedder` is None; `keywords`, in [0, 1],
                NaN where unknown.
        """

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the same model with another calibration."""


class Prior(Protocol):
    """Predicts before verification, without a model, which candidates will fail it."""

    @property
    def name(self) -> str:
        """The name in the trace."""

    @property
    def least(self) -> float:
        """The probability in [0, 1] below which a candidate is dropped unscored."""

    def chances(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return the probability that each would be verified, shape (n,), in the order given; 1 if it can't tell."""


class Estimator(Protocol):
    """Estimates whether a context suffices for an answer."""

    @property
    def name(self) -> str:
        """The name in the trace."""

    @property
    def threshold(self) -> float:
        """The least estimate of a sufficient context, in [0, 1]."""

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:
        """Return the probability in [0, 1] that these passages suffice to answer the query."""


class EntityDetector(Protocol):
    """Finds names, dates, quantities and concepts in texts."""

    @property
    def name(self) -> str:
        """The name in the trace."""

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the entities of each text, in the order given, sorted by their offset."""


class LanguageModel(Protocol):
    """Completes prompts: a function of the prompt that blocks and returns the answer."""

    def __call__(self, prompt: str, /) -> str:
        """Return the model's answer to a prompt, without the prompt."""
