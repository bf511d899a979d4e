"""The parts that everything in a memory works with, and the two things that all of it makes: stored records, events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from meve.clock import Clock
from meve.errors import ModelError, foreign
from meve.memory.chain import Action, Chain, Event
from meve.memory.drafts import Classifier
from meve.memory.policy import Policy
from meve.memory.recall import shown
from meve.memory.records import MemoryRecord, StoredRecord
from meve.memory.reflection import UsageJudge
from meve.memory.stores.ports import MemoryStore
from meve.memory.tagging import Tagger
from meve.memory.values import Contradiction
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import FloatArray
from meve.vectors import checked_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What a memory is made of."""

    store: MemoryStore
    policy: Policy
    embedder: Embedder
    verifier: Verifier
    verify_threshold: float
    """The probability from which on the verifier lets a memory through, in [0, 1]."""
    tokens: TokenCounter
    clock: Clock
    chain: Chain
    contradiction: Contradiction
    usage: UsageJudge
    classifier: Classifier
    tagger: Tagger

    def stored(self, record: MemoryRecord) -> StoredRecord:
        """A record with its vector and its tokens.

        Raises:
            ModelError: the embedder failed.
        """
        return self.stored_all([record])[0]

    def stored_all(self, records: Sequence[MemoryRecord]) -> list[StoredRecord]:
        """Records with their vectors and tokens; one without text has a zero vector, and no tokens.

        Raises:
            ModelError: the embedder failed.
        """
        spoken = [r for r in records if r.text]
        d = self.embedder.dimension
        made = np.zeros((len(records), d), dtype=np.float32)
        if spoken:
            with foreign(ModelError, f"embedding a memory with {self.embedder.name!r}"):
                vectors = self.embedder.embed_passages([r.text for r in spoken])
            made[[bool(r.text) for r in records]] = checked_vectors(
                vectors, (len(spoken), d), f"embedder {self.embedder.name!r}"
            )
        tokens = iter(self.tokens.count_many([shown(r.text, r.source, r.created_at) for r in spoken]))
        return [
            StoredRecord(record=record, vector=vector, tokens=next(tokens) if record.text else 0)
            for record, vector in zip(records, made, strict=True)
        ]

    def asked(self, query: str) -> FloatArray:
        """A question's vector, shape (d,).

        Raises:
            QueryError: it is longer than the model's window.
            ModelError: the embedder failed.
        """
        with foreign(ModelError, f"embedding the query with {self.embedder.name!r}"):
            vector = self.embedder.embed_query(query)
        return checked_vectors(vector, (self.embedder.dimension,), f"embedder {self.embedder.name!r}")

    def event(
        self,
        user: str,
        record: MemoryRecord,
        action: Action,
        reason: str,
        now: datetime,
        **detail: Any,  # noqa: ANN401
    ) -> Event:
        """What happens to a record, for the log: its class, a hash of its text, and what else there is to tell."""
        told = {"class": record.policy_class, "content": self.chain.content(record.text), **detail}
        return Event(at=now, user=user, record=record.id, action=action, reason=reason, detail=told)
