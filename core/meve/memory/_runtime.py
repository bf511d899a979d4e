"""The components of a memory, and what its parts create with them: stored records, query vectors, audit events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from meve._vectors import validate_vectors
from meve.clock import Clock, SystemClock
from meve.components.embedders import ACCURATE, SHIPPED, resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.errors import ModelError, QueryError, wrap_errors
from meve.memory._audit.chain import Action, AuditChain, EventDraft
from meve.memory._classify.tags import PolicyTagger, Tagger
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.updates import RuleUpdateJudge, UpdateJudge
from meve.memory._feedback.usage_judge import RuleUsageJudge, UsageJudge
from meve.memory._maintenance.summaries import ExtractiveSummariser, Summariser
from meve.memory._recall.scoring import format_memory
from meve.memory._write.record_factory import Classifier, SourceClassifier
from meve.memory.policy import Policy
from meve.memory.records import NAME_LENGTH, MemoryRecord, StoredRecord, check_keywords, check_text
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import MemoryStore
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import FloatArray


class MemoryOptions(TypedDict, total=False):
    """The options of `GovernedMemory.open`. None gives the default."""

    policy: Policy | None
    """The policy that governs the memory."""
    embedder: Embedder | str | None
    """As for a `Retriever`; by default the one that the memory was made with, `minilm` for a new memory."""
    verifier: Verifier | str | None
    """As for a `Retriever`; used by searches with `verify`."""
    tokens: TokenCounter | str | None
    """Counts budgets, as for a `Retriever`."""
    clock: Clock | None
    """The source of the time."""
    audit_key: bytes | None
    """Signs the audit log: 16 bytes or more, kept elsewhere. Without a key, only accidental changes are detected."""
    contradiction: Contradiction | None
    """Decides whether two statements contradict each other; rules by default, see `NliContradiction` for a model."""
    updates: UpdateJudge | None
    """Judges in maintenance whether a newer memory says the same as an older one or replaces it; rules by default, see
    `LlmUpdateJudge` for a language model. Searches judge by rules."""
    usage: UsageJudge | None
    """Judges which recalled memories an answer used; rules by default."""
    classifier: Classifier | None
    """Chooses the class of a record that is added without one."""
    tagger: Tagger | None
    """Chooses the tags of a record that is added without any; by default those of the policy."""
    summariser: Summariser | None
    """Writes one text for related memories, or for older turns; extracts sentences by default."""
    verify_threshold: float
    """Minimum probability of the verifier for a memory to be returned, in [0, 1]; 0.5 by default."""
    reset_clock: bool
    """Whether to forget the latest time that the file has seen, because the machine's clock was wrongly ahead. No other
    process may have the file open. False by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRuntime:
    """The components of a memory."""

    store: RecordStore
    policy: Policy
    embedder: Embedder
    verifier: Verifier
    verify_threshold: float
    """Minimum probability of the verifier for a memory to be returned, in [0, 1]."""
    tokens: TokenCounter
    clock: Clock
    chain: AuditChain
    contradiction: Contradiction
    updates: UpdateJudge
    usage: UsageJudge
    classifier: Classifier
    tagger: Tagger
    summariser: Summariser

    @classmethod
    def open(cls, backend: MemoryStore, **options: Unpack[MemoryOptions]) -> Self:
        """Resolve the components, and open the records of a back end. See `GovernedMemory.open`."""
        check_keywords(options, MemoryOptions, "open")
        policy = options.get("policy") or Policy()
        contradiction = options.get("contradiction") or RuleContradiction()
        chain = AuditChain(options.get("audit_key"), pseudonyms=policy.audit.pseudonyms)
        store = RecordStore.open(backend, chain)
        made_with = store.embedder_name()
        default = made_with if made_with in SHIPPED else ACCURATE
        embedder = resolve_embedder(options.get("embedder"), default=default)
        store.claim_embedder(embedder.name, embedder.dimension)
        return cls(
            store=store,
            policy=policy,
            embedder=embedder,
            verifier=resolve_verifier(options.get("verifier"), embedder),
            verify_threshold=options.get("verify_threshold", 0.5),
            tokens=resolve_tokens(options.get("tokens")),
            clock=store.keep_time(options.get("clock") or SystemClock(), reset=options.get("reset_clock", False)),
            chain=chain,
            contradiction=contradiction,
            updates=options.get("updates") or RuleUpdateJudge(contradiction),
            usage=options.get("usage") or RuleUsageJudge(embedder=embedder, contradiction=contradiction),
            classifier=options.get("classifier") or SourceClassifier(policy.user_class),
            tagger=options.get("tagger") or PolicyTagger(policy.tagging, embedder),
            summariser=options.get("summariser") or ExtractiveSummariser(embedder.embed_passages),
        )

    def stored(self, record: MemoryRecord) -> StoredRecord:
        """Return a record with its vector and tokens."""
        return self.stored_all([record])[0]

    def stored_all(self, records: Sequence[MemoryRecord]) -> list[StoredRecord]:
        """Return records with their vectors and tokens; without text, a zero vector and no tokens.

        Raises:
            ModelError: the embedder failed.
        """
        with_text = [r for r in records if r.text]
        d = self.embedder.dimension
        vectors = np.zeros((len(records), d), dtype=np.float32)
        if with_text:
            with wrap_errors(ModelError, f"embedding a memory with {self.embedder.name!r}"):
                embedded = self.embedder.embed_passages([r.text for r in with_text])
            vectors[[bool(r.text) for r in records]] = validate_vectors(
                embedded, (len(with_text), d), f"embedder {self.embedder.name!r}"
            )
        tokens = iter(self.tokens.count_many([format_memory(r.text, r.source, r.created_at) for r in with_text]))
        return [
            StoredRecord(record=record, vector=vector, tokens=next(tokens) if record.text else 0)
            for record, vector in zip(records, vectors, strict=True)
        ]

    def embed_query(self, query: str) -> FloatArray:
        """Return a query's vector, shape (d,); a query may be longer than the model's window."""
        with wrap_errors(ModelError, f"embedding the query with {self.embedder.name!r}"):
            try:
                vector = self.embedder.embed_query(query)
            except QueryError:  # longer than the model's window: a chat message is embedded as a text is, in pieces
                vector = self.embedder.embed_passages([query])[0]
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
        """Return an event for the audit log, with the record's class and, if there is a key, its text's keyed hash."""
        all_details = {"class": record.policy_class, **self.content_hash("content", record.text), **detail}
        because = check_text(reason, "reason", 10 * NAME_LENGTH)  # other values would be stored as other texts
        return EventDraft(at=now, user=user, record=record.id, action=action, reason=because, detail=all_details)

    def plain_event(self, user: str, record_id: str, action: Action, reason: str, now: datetime) -> EventDraft:
        """Return an event for the audit log about a record that can't be read."""
        because = check_text(reason, "reason", 10 * NAME_LENGTH)
        return EventDraft(at=now, user=user, record=record_id, action=action, reason=because, detail={})

    def content_hash(self, name: str, text: str) -> dict[str, str]:
        """Return `{name: keyed hash}`; empty without a key, since a short text can be guessed from its unkeyed hash."""
        return {name: self.chain.hash_content(text)} if self.chain.keyed else {}
