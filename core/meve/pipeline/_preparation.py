"""Before passages enter a corpus: texts become passages, and each is embedded and counted, once."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from meve._vectors import validate_vectors
from meve.components.tokenizers import resolve_tokens
from meve.errors import ModelError, PassageError, ValidationError, wrap_errors
from meve.ports import Embedder, TokenCounter
from meve.types import FloatArray, Passage

BATCH = 64
"""Passages that are embedded between two reports of progress."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many passages are done, and how many there are."""


def check_passages(passages: Sequence[Passage]) -> None:
    """Refuse passages that couldn't be found or saved.

    Raises:
        PassageError: no `Passage`, blank text or id, or metadata that JSON can't hold.
    """
    for n, passage in enumerate(passages):
        _check_passage(n, passage)


def _check_passage(n: int, passage: object) -> None:
    if not isinstance(passage, Passage):
        raise PassageError(f"item {n} is {type(passage).__name__}, not a Passage: use Passage(id=…, text=…)")
    if not isinstance(passage.id, str) or not passage.id:
        raise PassageError(f"item {n} has the id {passage.id!r}: give a text that isn't empty; nothing was changed")
    if not isinstance(passage.text, str) or not passage.text.strip():
        raise PassageError(f"passage {passage.id!r} has no text: leave it out; nothing was changed")
    if not isinstance(passage.title, str):
        raise PassageError(f"passage {passage.id!r} has the title {passage.title!r}: give text; nothing was changed")
    if not isinstance(passage.metadata, Mapping) or not all(isinstance(name, str) for name in passage.metadata):
        raise PassageError(
            f"passage {passage.id!r} has the metadata {passage.metadata!r:.80}: give a mapping from names to values; "
            "nothing was changed"
        )
    try:
        f"{passage.id}{passage.content}".encode()
        if passage.metadata:
            json.dumps(dict(passage.metadata), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as cause:
        raise PassageError(
            f"passage {passage.id!r} can't be saved as JSON in UTF-8: {cause}; nothing was changed"
        ) from cause


def embed_texts(texts: Sequence[str], embedder: Embedder, progress: Progress | None = None) -> FloatArray:
    """The vectors of n texts, shape (n, d), in the order given. Texts of like length are read together.

    Raises:
        ModelError: the embedder failed.
        VectorError: it returned something else than n finite vectors of its dimension.
    """
    made = np.empty((len(texts), embedder.dimension), dtype=np.float32)
    order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
    for start in range(0, len(texts), BATCH):
        chosen = order[start : start + BATCH]
        batch = [texts[n] for n in chosen]
        with wrap_errors(ModelError, f"embedding {len(batch)} passages with {embedder.name!r}"):
            vectors = embedder.embed_passages(batch)
        shape = (len(batch), embedder.dimension)
        made[chosen] = validate_vectors(vectors, shape, f"embedder {embedder.name!r}")
        if progress:
            progress(start + len(batch), len(texts))
    return made


def count_tokens(texts: Sequence[str], tokens: TokenCounter) -> list[int]:
    """The token counts of n texts.

    Raises:
        ModelError: the tokenizer failed, or returned another number of counts.
    """
    with wrap_errors(ModelError, f"counting tokens with {tokens.name!r}"):
        counts = list(tokens.count_many(texts))
    if len(counts) != len(texts):
        raise ModelError(f"tokenizer {tokens.name!r} returned {len(counts)} counts for {len(texts)} texts")
    return counts


class TokenCounters:
    """The tokenizers in use: the corpus's own, whose counts are stored, and those named for single calls."""

    def __init__(self, own: TokenCounter) -> None:
        self._own = own
        self._others: dict[str, TokenCounter] = {}
        self._lock = threading.Lock()

    def named(self, name: str | None) -> TokenCounter:
        """The tokenizer of that name; the corpus's own for None.

        Raises:
            TokenizerUnavailableError: it can't be had here.
        """
        if name is None or name == self._own.name:
            return self._own
        with self._lock:
            if name not in self._others:
                self._others[name] = _Remembering(resolve_tokens(name))
            return self._others[name]


class _Remembering:
    """A tokenizer that remembers its last counts: for one that the corpus keeps no counts of."""

    def __init__(self, inner: TokenCounter) -> None:
        self.name = inner.name
        self.count = lru_cache(maxsize=16_384)(inner.count)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


def make_passages(
    texts: Iterable[str],
    *,
    ids: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    metadatas: Sequence[Mapping[str, Any] | None] | None = None,
) -> list[Passage]:
    """Texts as passages.

    Raises:
        ValidationError: lists of different lengths, or one text where a list was meant.
    """
    if isinstance(texts, str):
        raise ValidationError(f"texts is one text ({texts!r:.40}): give a list of texts")
    listed = list(texts)
    for name, others in (("ids", ids), ("titles", titles), ("metadatas", metadatas)):
        if others is not None and len(others) != len(listed):
            raise ValidationError(f"{len(listed)} texts and {len(others)} {name}: give as many of the one as the other")
    return [
        Passage(
            id=ids[n] if ids else default_id(n),
            text=text,
            title=titles[n] if titles else "",
            metadata=dict((metadatas[n] or {}) if metadatas else {}),
        )
        for n, text in enumerate(listed)
    ]


def default_id(n: int) -> str:
    """Return the id of passage number `n`, for passages given without ids."""
    return f"p{n:07d}"
