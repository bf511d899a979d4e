"""Prepare passages for a corpus: check, embed and count them."""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from meve._fork_safety import ForkSafeLock
from meve._json_limits import METADATA_NESTING, is_nested_deeper
from meve._vectors import validate_vectors
from meve.components.embedders.onnx import SHIPPED_MINILM
from meve.components.tokenizers import resolve_tokens
from meve.errors import ModelError, PassageError, ValidationError, wrap_errors
from meve.ports import Embedder, TokenCounter
from meve.types import FloatArray, Passage, Progress

BATCH = 64
"""Texts that are embedded between two progress reports."""
COUNTED = 1_024
"""Texts whose tokens are counted at once; a tokenizer may need twenty times the memory of its texts meanwhile."""
TIMED = 4
"""The number of batches after which the time of the others is estimated."""
LONG = 120.0
"""The least estimate, in seconds, that is worth a warning."""

logger = logging.getLogger("meve")


def check_passages(passages: Sequence[Passage]) -> None:
    """Check that passages can be retrieved and saved.

    Raises:
        PassageError: an item that is no `Passage`, a blank text or id, or metadata that isn't JSON data of at most
            63 levels.
    """
    for n, passage in enumerate(passages):
        if not isinstance(passage, Passage):
            raise PassageError(f"item {n} must be a Passage, got {type(passage).__name__}: use Passage(id=…, text=…)")
        if problem := find_problem(n, passage):
            raise PassageError(f"{problem}; nothing was changed")


def find_problem(n: int, passage: Passage) -> str:
    """Return what is wrong with the passage at place `n`; empty if nothing is."""
    if not isinstance(passage.id, str) or not passage.id:
        return f"the id of item {n} must be a non-empty string, got {passage.id!r}"
    if not isinstance(passage.text, str):
        return f"the text of passage {passage.id!r} must be a string, got {passage.text!r:.40}"
    if not passage.text.strip():
        return f"the text of passage {passage.id!r} must not be blank: leave the passage out"
    if not isinstance(passage.title, str):
        return f"the title of passage {passage.id!r} must be a string, got {passage.title!r}"
    if not isinstance(passage.metadata, Mapping) or not all(isinstance(name, str) for name in passage.metadata):
        return f"the metadata of passage {passage.id!r} must map names to values, got {passage.metadata!r:.80}"
    if is_nested_deeper(passage.metadata, METADATA_NESTING):
        return f"the metadata of passage {passage.id!r} must be nested at most {METADATA_NESTING} levels deep"
    try:
        f"{passage.id}{passage.content}".encode()
        if passage.metadata:
            json.dumps(dict(passage.metadata), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as cause:
        return f"passage {passage.id!r} must be valid JSON in UTF-8: {cause}"
    return ""


def embed_texts(texts: Sequence[str], embedder: Embedder, progress: Progress | None = None) -> FloatArray:
    """Embed n texts, as an array of shape (n, d), in the order given. Texts of similar length share a batch.

    If this will take minutes, a warning names how long, and the faster embedder.

    Raises:
        ModelError: the embedder failed.
        VectorError: the embedder didn't return n finite vectors of its dimension.
    """
    embedded = np.empty((len(texts), embedder.dimension), dtype=np.float32)
    order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
    started, todo, done = time.monotonic(), sum(map(len, texts)), 0
    for start in range(0, len(texts), BATCH):
        chosen = order[start : start + BATCH]
        batch = [texts[n] for n in chosen]
        with wrap_errors(ModelError, f"embedding {len(batch)} passages with {embedder.name!r}"):
            vectors = embedder.embed_passages(batch)
        shape = (len(batch), embedder.dimension)
        embedded[chosen] = validate_vectors(vectors, shape, f"embedder {embedder.name!r}")
        done += sum(map(len, batch))
        if start == (TIMED - 1) * BATCH and embedder.name == SHIPPED_MINILM:
            _warn_if_long((time.monotonic() - started) * (todo - done) / max(done, 1), len(texts), embedder)
        if progress:
            progress(start + len(batch), len(texts))
    return embedded


def _warn_if_long(seconds: float, texts: int, embedder: Embedder) -> None:
    if seconds > LONG:
        logger.warning(
            "embedding %s passages with %r takes %.0f minutes more; embedder 'static' takes seconds, but finds less",
            f"{texts:,}", embedder.name, seconds / 60,
        )  # fmt: skip


def count_tokens(texts: Sequence[str], tokens: TokenCounter) -> list[int]:
    """Return the token counts of n texts.

    Raises:
        ModelError: the tokenizer failed, or returned another number of counts.
    """
    counts: list[int] = []
    with wrap_errors(ModelError, f"counting tokens with {tokens.name!r}"):
        for start in range(0, len(texts), COUNTED):
            counts += tokens.count_many(texts[start : start + COUNTED])
    if len(counts) != len(texts):
        raise ModelError(f"tokenizer {tokens.name!r} returned {len(counts)} counts for {len(texts)} texts")
    return counts


class TokenCounters:
    """The tokenizers in use: the engine's own, and those that single calls name."""

    def __init__(self, own: TokenCounter) -> None:
        self._own = own
        self._others: dict[str, TokenCounter] = {}
        self._lock = ForkSafeLock()

    def get(self, name: str | None) -> TokenCounter:
        """Return the tokenizer of that name; the engine's own for None.

        Raises:
            TokenizerUnavailableError: the tokenizer isn't available.
        """
        if name is None or name == self._own.name:
            return self._own
        with self._lock:
            if name not in self._others:
                self._others[name] = _CachedCounter(resolve_tokens(name))
            return self._others[name]


class _CachedCounter:
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
    """Make passages of texts.

    Raises:
        ValidationError: lists of different lengths, a text instead of a list, or metadata that are no dictionary.
    """
    if isinstance(texts, str):
        raise ValidationError(f"texts must be a list of texts, got a single text {texts!r:.40}")
    if not isinstance(texts, Iterable):
        raise ValidationError(f"texts must be a list of texts, got {type(texts).__name__}")
    listed = list(texts)
    for name, others in (("ids", ids), ("titles", titles), ("metadatas", metadatas)):
        if isinstance(others, str):
            raise ValidationError(f"{name} must be a list, got a single text {others!r:.40}")
        if others is not None and len(others) != len(listed):
            raise ValidationError(
                f"{name} must have as many items as texts, got {len(others)} {name} for {len(listed)} texts"
            )
    for n, metadata in enumerate(metadatas or ()):
        if metadata is not None and not isinstance(metadata, Mapping):
            raise ValidationError(f"item {n} of metadatas must be a dictionary or None, got {metadata!r:.40}")
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
