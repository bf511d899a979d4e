"""What a corpus and its server exchange: records, hits, and the server's methods."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self

from meve.components.embedders import are_prompts
from meve.errors import IndexCorruptError
from meve.filters import Filter
from meve.types import FloatArray, Passage

Words = Counter[str]
"""How often each word occurs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The models whose vectors and token counts a collection holds, and what found its words."""

    embedder: str
    dimension: int
    similarity: str
    tokens: str
    analyzer: str = "search_words"
    """The name of the analyzer in `meve.components.lexical.analyzers` that finds its words."""
    prompts: dict[str, str] = field(default_factory=dict)
    """The prompts that the embedder was given."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"format": 2, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], name: str) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            IndexCorruptError: other data.
        """
        if data.get("format") == 1:  # made before analyzers had a name there
            data = {**data, "format": 2, "analyzer": "content_words"}
        kinds = {"format": int, "embedder": str, "dimension": int, "similarity": str, "tokens": str, "analyzer": str}
        prompts = data.get("prompts", {})
        is_known = all(type(data.get(key)) is kind for key, kind in kinds.items()) and are_prompts(prompts)
        if not is_known or data["format"] != 2:
            raise IndexCorruptError(f"{name} isn't described as this version of meve does: {data!r:.200}")
        return cls(**{key: data[key] for key in kinds if key != "format"}, prompts=prompts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """A passage to store."""

    passage: Passage
    tokens: int
    vector: FloatArray
    """The embedding, shape (d,)."""
    words: Words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hit:
    """A stored passage that a search found."""

    passage: Passage
    tokens: int
    vector: FloatArray
    score: float


class PassageServer(Protocol):
    """A collection of passages on a server. Threads may share one."""

    @property
    def name(self) -> str:
        """The collection's name in messages."""

    @property
    def kind(self) -> str:
        """What searches it: `qdrant` or `postgresql`."""

    def about(self) -> About | None:
        """Return the models of the collection; None if it doesn't exist."""

    def create(self, about: About) -> About:
        """Create the collection unless another process has, and return the models that it holds."""

    def __len__(self) -> int:
        """Return the number of passages."""

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are taken."""

    def write(self, add: Sequence[Record], remove: Sequence[str]) -> None:
        """Remove and add records, visible to the next search.

        Raises:
            ValidationError: taken, repeated or unknown ids, or a passage that the server can't hold; nothing was
                changed.
        """

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        """Return those of these passages that are stored, in any order, each with the score 0."""

    def sample(self) -> Hit | None:
        """Return any one of the passages; None if there is none."""

    def passages(self, where: Filter | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits, and perhaps others; None for all."""

    def nearest(self, vector: FloatArray, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages by falling inner product: all that match the filter, and perhaps others."""

    def by_words(self, words: Words, limit: int, where: Filter | None) -> list[Hit]:
        """Return at most `limit` passages with one of the words, by falling BM25 score; `where` as for `nearest`."""

    def score_words(self, words: Words, ids: Sequence[str]) -> dict[str, float]:
        """Return the BM25 scores of those of these passages that have one of the words, by id."""

    def metadata_names(self) -> frozenset[str]:
        """Return the names in the metadata of all passages; names of removed passages may be among them."""

    def close(self) -> None:
        """Close the connections."""
