"""What embeds, finds entities and counts: loaded once, when first asked for, however many dialogues share it."""

import threading
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from meve.components.embedders import resolve_embedder
from meve.components.entities import resolve_entities
from meve.components.tokenizers import resolve_tokens
from meve.pipeline.engine import Tokens
from meve.ports import Embedder, EntityDetector, TokenCounter

Entities: TypeAlias = EntityDetector | str | Sequence[EntityDetector | str]
"""A detector, the name of one, or a list of these."""


class Loaded(NamedTuple):
    """Ready parts."""

    embedder: Embedder
    entities: EntityDetector
    tokens: TokenCounter


class Parts:
    """Parts by their names, until they are needed. Threads may share them."""

    def __init__(self, embedder: Embedder | str | None, entities: Entities | None, tokens: Tokens | None) -> None:
        self._given = (embedder, entities, tokens)
        self._loaded: Loaded | None = None
        self._lock = threading.Lock()

    def load(self) -> Loaded:
        """All three.

        Raises:
            ConfigurationError: a part that can't be.
            ModelError: a model that can't be had.
        """
        with self._lock:
            if self._loaded is None:
                embedder, entities, tokens = self._given
                self._loaded = Loaded(resolve_embedder(embedder), resolve_entities(entities), resolve_tokens(tokens))
            return self._loaded
