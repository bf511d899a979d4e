"""The embedder, entity detector and token counter that dialogues share, loaded on first use."""

from typing import NamedTuple, TypedDict

from meve._fork_safety import ForkSafeLock
from meve.components.embedders import FAST, resolve_embedder
from meve.components.entities import EntityDetectorLike, resolve_entities
from meve.components.tokenizers import resolve_tokens
from meve.pipeline.engine import TokenCounterLike
from meve.ports import Embedder, EntityDetector, TokenCounter


class DialogueOptions(TypedDict, total=False):
    """The keyword arguments that choose a dialogue's components; None or absent means the default."""

    embedder: Embedder | str | None
    """As in `meve.Retriever`; by default the built-in one."""
    entities: EntityDetectorLike | None
    """The entity detector, see `meve.components.entities.resolve_entities`; by default patterns."""
    tokens: TokenCounterLike | None
    """The token counter, as in `meve.Retriever`."""


class LoadedComponents(NamedTuple):
    """Components that are ready for use."""

    embedder: Embedder
    entities: EntityDetector
    tokens: TokenCounter


class DialogueComponents:
    """Loads components by their names, once. Safe to share between threads."""

    def __init__(
        self, embedder: Embedder | str | None, entities: EntityDetectorLike | None, tokens: TokenCounterLike | None
    ) -> None:
        self._names = embedder, entities, tokens
        self._loaded: LoadedComponents | None = None
        self._lock = ForkSafeLock()

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
                    resolve_embedder(embedder, default=FAST), resolve_entities(entities), resolve_tokens(tokens)
                )
            return self._loaded
