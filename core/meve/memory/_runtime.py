"""The parts that everything in a memory works with, and the two things that all of it makes: stored records, events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from meve._vectors import validate_vectors
from meve.clock import Clock, SystemClock
from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.errors import ModelError, wrap_errors
from meve.memory._audit.chain import Action, AuditChain, EventDraft
from meve.memory._classify.tags import PolicyTagger, Tagger
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._feedback.usage_judge import RuleUsageJudge, UsageJudge
from meve.memory._recall.scoring import format_memory
from meve.memory._write.record_factory import Classifier, SourceClassifier
from meve.memory.policy import Policy
from meve.memory.records import MemoryRecord, StoredRecord, checked_text
from meve.memory.stores.protocol import MemoryStore
from meve.memory.stores.sqlite.store import SqliteStore
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import FloatArray


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
    chain: AuditChain
    contradiction: Contradiction
    usage: UsageJudge
    classifier: Classifier
    tagger: Tagger

    @classmethod
    def open(
        cls,
        file: str | Path,
        *,
        policy: Policy | None,
        embedder: Embedder | str | None,
        verifier: Verifier | str | None,
        tokens: TokenCounter | str | None,
        clock: Clock | None,
        audit_key: bytes | None,
        contradiction: Contradiction | None,
        usage: UsageJudge | None,
        classifier: Classifier | None,
        tagger: Tagger | None,
        verify_threshold: float,
    ) -> Self:
        """Over a file; what isn't given is that which ships. See `GovernedMemory.open`.

        Raises:
            StorageError: the file can't be opened, is damaged, or of a newer version.
            AuditError: its log hangs on another key.
            ConfigurationError: a part that can't be, or another embedder than the file was made with.
        """
        found = resolve_embedder(embedder)
        rules = policy or Policy()
        judge = contradiction or RuleContradiction()
        chain = AuditChain(audit_key)
        store = SqliteStore.open(file, chain)
        try:
            store.claim_embedder(found.name, found.dimension)
            return cls(
                store=store,
                policy=rules,
                embedder=found,
                verifier=resolve_verifier(verifier, found),
                verify_threshold=verify_threshold,
                tokens=resolve_tokens(tokens),
                clock=clock or SystemClock(),
                chain=chain,
                contradiction=judge,
                usage=usage or RuleUsageJudge(embedder=found, contradiction=judge),
                classifier=classifier or SourceClassifier(),
                tagger=tagger or PolicyTagger(rules.tagging, found),
            )
        except BaseException:
            store.close()
            raise

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
            with wrap_errors(ModelError, f"embedding a memory with {self.embedder.name!r}"):
                vectors = self.embedder.embed_passages([r.text for r in spoken])
            made[[bool(r.text) for r in records]] = validate_vectors(
                vectors, (len(spoken), d), f"embedder {self.embedder.name!r}"
            )
        tokens = iter(self.tokens.count_many([format_memory(r.text, r.source, r.created_at) for r in spoken]))
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
        with wrap_errors(ModelError, f"embedding the query with {self.embedder.name!r}"):
            vector = self.embedder.embed_query(query)
        return validate_vectors(vector, (self.embedder.dimension,), f"embedder {self.embedder.name!r}")

    def event(
        self,
        user: str,
        record: MemoryRecord,
        action: Action,
        reason: str,
        now: datetime,
        **detail: Any,  # noqa: ANN401
    ) -> EventDraft:
        """What happens to a record, for the log: its class, a keyed hash of its text, and what else there is to tell.

        Raises:
            PassageError: a reason that is no text, or blank.
        """
        told = {"class": record.policy_class, **self.recognised("content", record.text), **detail}
        because = checked_text(reason, "reason")  # anything else would be read back as something else
        return EventDraft(at=now, user=user, record=record.id, action=action, reason=because, detail=told)

    def recognised(self, name: str, text: str) -> dict[str, str]:
        """A text's keyed hash for the log, under that name; nothing without a key, since a bare hash can be guessed."""
        return {name: self.chain.hash_content(text)} if self.chain.keyed else {}
