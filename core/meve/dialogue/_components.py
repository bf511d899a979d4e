"""The embedder, entity detector and token counter that dialogues share, loaded on first use."""

import threading
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from meve.components.embedders import resolve_embedder
from meve.components.entities import resolve_entities
from meve.components.tokenizers import resolve_tokens
from meve.pipeline.engine import TokenCounterLike
from meve.ports import Embedder, EntityDetector, TokenCounter

EntityOptions: TypeAlias = EntityDetector | str | Sequence[EntityDetector | str]
"""A detector, the name of one, or a list of both."""


class LoadedComponents(NamedTuple):
    """Components that are ready for use."""

    embedder: Embedder
    entities: EntityDetector
    tokens: TokenCounter


class DialogueComponents:
    """Loads components by their names, once. Safe to share between threads."""

    def __init__(
        self, embedder: Embedder | str | None, entities: EntityOptions | None, tokens: TokenCounterLike | None
    ) -> None:
        self._names = (embedder, entities, tokens)
        self._loaded: LoadedComponents | None = None
        self._lock = threading.Lock()

    def load(self) -> LoadedComponents:
        """Return all three components, loading them first if necessary.

        Raises:
            ConfigurationError: an unknown or unsuitable component.
            ModelError: a model that can't be loaded.
        """
        with self._lock:
            if self._loaded is None:
                embedder, entities, tokens = self._names
                self._loaded = LoadedComponents(
                    resolve_embedder(embedder), resolve_entities(entities), resolve_tokens(tokens)
                )
            return self._loaded
