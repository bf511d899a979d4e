"""The parts that everything in a memory works with, and the two things that all of it makes: stored records, events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from meve.clock import Clock
from meve.errors import ModelError, foreign
from meve.memory.chain import Action, Chain, Event
from meve.memory.drafts import Classifier
from meve.memory.policy import Policy
from meve.memory.recall import shown
from meve.memory.records import MemoryRecord, StoredRecord, checked_text
from meve.memory.reflection import UsageJudge
from meve.memory.stores.ports import MemoryStore
from meve.memory.tagging import Tagger
from meve.memory.values import Contradiction
from meve.ports import Embedder, TokenCounter, Verifier
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
        with foreign(ModelError, f"embedding a memory with {self.embedder.name!r}"):
            vectors = self.embedder.embed_passages([record.text])
        vector = checked_vectors(vectors, (1, self.embedder.dimension), f"embedder {self.embedder.name!r}")[0]
        tokens = self.tokens.count(shown(record.text, record.source, record.created_at))
        return StoredRecord(record=record, vector=vector, tokens=tokens)

    def event(
        self,
        user: str,
        record: MemoryRecord,
        action: Action,
        reason: str,
        now: datetime,
        **detail: Any,  # noqa: ANN401
    ) -> Event:
        """What happens to a record, for the log: its class, a keyed hash of its text, and what else there is to tell.

        Raises:
            PassageError: a reason that is no text, or blank.
        """
        told = {"class": record.policy_class, **self.recognised("content", record.text), **detail}
        because = checked_text(reason, "reason")  # anything else would be read back as something else
        return Event(at=now, user=user, record=record.id, action=action, reason=because, detail=told)

    def recognised(self, name: str, text: str) -> dict[str, str]:
        """A text's keyed hash for the log, under that name; nothing without a key, since a bare hash can be guessed."""
        return {name: self.chain.content(text)} if self.chain.keyed else {}
