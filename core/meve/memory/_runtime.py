"""The components of a memory, and what its parts create with them: stored records, query vectors, audit events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from meve._vectors import validate_vectors
from meve.clock import Clock, SystemClock
from meve.components.embedders import ACCURATE, SHIPPED, resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.errors import ConfigurationError, ModelError, QueryError, wrap_errors
from meve.memory._async_runner import AsyncRunner
from meve.memory._audit.chain import Action, AuditChain, EventDraft
from meve.memory._audit.checkpoints import Checkpoints
from meve.memory._classify.tags import PolicyTagger, Tagger
from meve.memory._contradiction.outline import outline_of
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.trained import TrainedUpdateJudge
from meve.memory._contradiction.updates import UpdateJudge
from meve.memory._embedders import MemoryEmbedders, model_of
from meve.memory._feedback.usage_judge import RuleUsageJudge, UsageJudge
from meve.memory._maintenance.summaries import ExtractiveSummariser, Summariser
from meve.memory._passages import pack_passages, split_record, texts_of
from meve.memory._recall.memory_passage import format_memory
from meve.memory._write.personal_data import PersonalDataDetector
from meve.memory._write.record_factory import Classifier, SourceClassifier
from meve.memory._write.secrets import PatternSecretDetector, SecretDetector, WriteGate
from meve.memory.policy import Policy
from meve.memory.records import (
    REASON_LENGTH,
    HalfArray,
    MemoryRecord,
    StoredRecord,
    check_flag,
    check_text,
)
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import MemoryStore
from meve.pipeline.config import check_option_names
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import FloatArray

VERIFY_THRESHOLD = 0.25
"""The default of `verify_threshold`."""


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
    reembed: bool
    """Whether to accept a memory that another embedder was made with. Until `GovernedMemory.reembed`, its memories are
    found by words alone. False by default."""
    clock: Clock | None
    """The source of the time."""
    audit_key: bytes | None
    """Signs the audit log: 16 bytes or more, kept elsewhere. Without a key, only accidental changes are detected."""
    checkpoints: Checkpoints | None
    """The file or function to which each maintenance writes a signed checkpoint of the audit log; None for none."""
    contradiction: Contradiction | None
    """Decides whether two statements contradict each other; rules by default, see `NliContradiction` for a model."""
    updates: UpdateJudge | None
    """Judges in maintenance whether a newer memory says the same as an older one or replaces it; by default
    `TrainedUpdateJudge`. See `LlmUpdateJudge` for a language model. Searches judge by rules, and ask only the model
    that ships whether it agrees."""
    usage: UsageJudge | None
    """Judges which recalled memories an answer used; rules by default."""
    classifier: Classifier | None
    """Chooses the class of a record that is added without one. It is also asked about turns, items, messages and texts
    of a named class: what it calls private, or of another class recalled only on request, is stored as that."""
    secrets: SecretDetector | None
    """Finds secrets in all that is stored; see `Policy.secrets`. By patterns by default."""
    tagger: Tagger | None
    """Chooses the tags of a record that is added without any; by default those of the policy."""
    summariser: Summariser | None
    """Writes one text for related memories, or for older turns; extracts sentences by default."""
    verify_threshold: float
    """Minimum probability of the verifier for a memory to be returned with `verify=True`, in [0, 1]; 0.25 by default,
    since turns of conversations seldom answer as plainly as passages (docs/results/memory.md, Verified turns)."""
    reset_clock: bool
    """Whether to forget the latest time that the file has seen, because the machine's clock was wrongly ahead. No other
    process may have the file open. False by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRuntime:
    """The components of a memory."""

    store: RecordStore
    policy: Policy
    embedder: MemoryEmbedders
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
    gate: WriteGate
    tagger: Tagger
    summariser: Summariser
    checkpoints: Checkpoints | None = None
    runner: AsyncRunner = field(default_factory=AsyncRunner)
    """Runs the calls of async callers."""

    @classmethod
    def open(cls, backend: MemoryStore, **options: Unpack[MemoryOptions]) -> Self:
        """Resolve the components, and open the records of a back end. See `GovernedMemory.open`."""
        check_option_names(options, MemoryOptions.__annotations__, "open")
        _check_components(options)
        policy, reset_clock = (
            options.get("policy") or Policy(),
            check_flag(options.get("reset_clock", False), "reset_clock"),
        )
        personal = policy.personal_data
        personal_data = None if personal.action == "keep" else PersonalDataDetector(personal)
        contradiction = options.get("contradiction") or RuleContradiction()
        chain = AuditChain(options.get("audit_key"), pseudonyms=policy.audit.pseudonyms, names_key=backend.names_key)
        made_with = RecordStore(backend, chain).embedders.name()
        default = made_with if made_with in SHIPPED else ACCURATE
        embedder = MemoryEmbedders(resolve_embedder(options.get("embedder"), default=default))
        verifier, tokens = resolve_verifier(options.get("verifier"), embedder), resolve_tokens(options.get("tokens"))
        store = RecordStore.open(backend, chain)  # settles the key and the embedder of a new file, so it comes last
        store.embedders.claim(embedder.model, reembed=check_flag(options.get("reembed", False), "reembed"))
        return cls(
            store=store,
            policy=policy,
            embedder=embedder,
            verifier=verifier,
            verify_threshold=options.get("verify_threshold", VERIFY_THRESHOLD),
            tokens=tokens,
            clock=store.keep_time(options.get("clock") or SystemClock(), reset=reset_clock),
            chain=chain,
            contradiction=contradiction,
            updates=options.get("updates") or TrainedUpdateJudge(contradiction),
            usage=options.get("usage") or RuleUsageJudge(embedder=embedder, contradiction=contradiction),
            classifier=options.get("classifier") or SourceClassifier(policy.user_class),
            gate=WriteGate(
                policy, options.get("secrets") or PatternSecretDetector(), options.get("classifier"), personal_data
            ),
            tagger=options.get("tagger") or PolicyTagger(policy.tagging, embedder),
            summariser=options.get("summariser") or ExtractiveSummariser(embedder.embed_passages),
            checkpoints=options.get("checkpoints"),
            runner=AsyncRunner(getattr(backend, "readers", 0)),
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
        embedder = self.embedder.current
        vectors = np.zeros((len(records), embedder.dimension), dtype=np.float32)
        if with_text:
            vectors[[bool(r.text) for r in records]] = self.embed_texts([texts_of(r)[0] for r in with_text], embedder)
        tokens = iter(self.tokens.count_many([format_memory(r.text, r.source, r.created_at) for r in with_text]))
        return [
            StoredRecord(
                record=record,
                vector=vector,
                tokens=next(tokens) if record.text else 0,
                model=model_of(embedder),
                passages=self.embed_parts(record, embedder),
                outline=outline_of(record),
            )
            for record, vector in zip(records, vectors, strict=True)
        ]

    def embed_parts(self, record: MemoryRecord, embedder: Embedder) -> HalfArray:
        """Return the vectors of a record's other texts and passages, shape (m, d); none for messages and short texts.

        Raises:
            ModelError: the embedder failed.
        """
        parts = split_record(record)
        return pack_passages(self.embed_texts(parts, embedder) if parts else (), embedder.dimension)

    def embed_texts(self, texts: Sequence[str], embedder: Embedder) -> FloatArray:
        """Return the vectors of one or more texts, shape (n, d)."""
        with wrap_errors(ModelError, f"embedding a memory with {embedder.name!r}"):
            embedded = embedder.embed_passages(texts)
        return validate_vectors(embedded, (len(texts), embedder.dimension), f"embedder {embedder.name!r}")

    def embed_query(self, query: str, model: str) -> FloatArray:
        """Return a query's vector by a known embedder, shape (d,); a query may be longer than the model's window."""
        embedder = self.embedder.of(model)
        with wrap_errors(ModelError, f"embedding the query with {embedder.name!r}"):
            try:
                vector = embedder.embed_query(query)
            except QueryError:  # longer than the model's window: a chat message is embedded as a text is, in pieces
                vector = embedder.embed_passages([query])[0]
        return validate_vectors(vector, (embedder.dimension,), f"embedder {embedder.name!r}")

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
        all_details = {"class": record.policy_class, **self.content_hash("content", record.text, user), **detail}
        because = check_text(reason, "reason", REASON_LENGTH)  # other values would be stored as other texts
        return EventDraft(at=now, user=user, record=record.id, action=action, reason=because, detail=all_details)

    def plain_event(self, user: str, record_id: str, action: Action, reason: str, now: datetime) -> EventDraft:
        """Return an event for the audit log about a record that can't be read."""
        because = check_text(reason, "reason", REASON_LENGTH)
        return EventDraft(at=now, user=user, record=record_id, action=action, reason=because, detail={})

    def content_hash(self, name: str, text: str, user: str) -> dict[str, str]:
        """Return `{name: keyed hash}` of a user's text.

        Empty without a key, since a short text can be guessed from its unkeyed hash.
        """
        return {name: self.chain.hash_content(text, user)} if self.chain.keyed else {}


_PROTOCOLS: Mapping[str, type] = {
    "clock": Clock, "contradiction": Contradiction, "updates": UpdateJudge, "usage": UsageJudge,
    "classifier": Classifier, "tagger": Tagger, "summariser": Summariser,
    "secrets": SecretDetector,
}  # fmt: skip
"""By option, the methods that a component needs. Embedder, verifier and tokens are checked where they are resolved."""


def _check_components(options: MemoryOptions) -> None:
    """Raise ConfigurationError for a component of a wrong type."""
    values: Mapping[str, Any] = {**options}
    policy, threshold = values.get("policy"), values.get("verify_threshold", VERIFY_THRESHOLD)
    if policy is not None and not isinstance(policy, Policy):
        raise ConfigurationError(f"policy must be a Policy, got {policy!r:.80}: Policy.from_dict makes one")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise ConfigurationError(f"verify_threshold must be a number between 0 and 1, got {threshold!r:.80}")
    checkpoints = values.get("checkpoints")
    if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
        raise ConfigurationError(f"checkpoints must be Checkpoints, got {type(checkpoints).__name__}")
    for name, protocol in _PROTOCOLS.items():
        component = values.get(name)
        methods = [method for method in vars(protocol) if not method.startswith("_")]
        if component is None or (
            not isinstance(component, type) and all(callable(getattr(component, method, None)) for method in methods)
        ):
            continue
        raise ConfigurationError(
            f"{name} must be an object with {' and '.join(f'{method}()' for method in methods)} "
            f"({protocol.__name__}), got {component!r:.80}"
        )
