"""The operations of the inspector: try other settings, and look into and change a memory as its user.

They aren't tools of agents: they show private memories, and what they change counts as the user's own word.
"""

import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from meve.errors import StoreBusyError, UnknownIdError
from meve.integrations._tool_texts import admitted_passages
from meve.memory import ErasureReport, GovernedMemory
from meve.memory._agent_tools import MemoryTools
from meve.memory._audit.chain import Action, AuditEvent
from meve.memory._recall.query import make_query
from meve.memory._recall.scoring import decay_reflection
from meve.memory._recall.searcher import Recall
from meve.memory.items.item import named_texts
from meve.memory.records import MemoryRecord, SharedScore, UserId, user_key
from meve.pipeline.context import Context
from meve.retrieval.retriever import Retriever
from meve.service.server import _inspection_models as models
from meve.service.server._models import Model
from meve.service.server.operations import (
    Caller,
    Operation,
    OperationTable,
    quote_documents,
    round_score,
)

REASON = "in the inspector"
"""The reason in the audit log of what the inspector changes."""
_LONGEST = 2_000
"""The most characters of a text, except that of a single memory."""
_ABOUT = 50
"""The most memories on a topic."""
_MOMENTS, _HORIZON = 40, timedelta(days=365)
"""How many points a score's curve has, and how far it looks ahead."""
_ERASURES: tuple[Action, ...] = ("delete", "expire", "prune")
_SETTINGS = ("threshold", "redundancy", "duplicates", "max_tokens", "when_insufficient")
"""The settings that the inspector changes."""

SESSION = {
    "show_session": Operation(models.NothingRequest, models.ShowSessionAnswer, "Tells who asks, and what he may do.")
}
DOCUMENTS = {
    "try_documents": Operation(
        models.TryDocumentsRequest,
        models.TryDocumentsAnswer,
        "Searches the documents with other settings, and tells what became of each candidate, with its text.",
    )
}


def _inspect(request: type[Model], answer: type[Model], description: str, *, writes: bool = False) -> Operation:
    return Operation(request, answer, description, writes=writes, inspects=True)


MEMORY = {
    "find_memories": _inspect(
        models.FindMemoriesRequest,
        models.FindMemoriesAnswer,
        "Tells what a recall would hand out, and all that is remembered on a topic and why. It isn't logged.",
    ),
    "list_memories": _inspect(models.ListMemoriesRequest, models.ListMemoriesAnswer, "Lists the user's memories."),
    "show_memory": _inspect(
        models.MemoryRequest, models.ShowMemoryAnswer, "Shows a memory with its history, scores and log."
    ),
    "restore_memory": _inspect(
        models.MemoryRequest, models.MemoryAnswer, "Takes back a replaced or archived memory.", writes=True
    ),
    "hold_memory": _inspect(
        models.HoldMemoryRequest, models.MemoryAnswer, "Lets nothing change or erase a memory.", writes=True
    ),
    "release_memory": _inspect(models.MemoryRequest, models.MemoryAnswer, "Ends a hold.", writes=True),
    "erase_memory": _inspect(
        models.EraseMemoryRequest, models.ErasureAnswer, "Erases a memory; by default only tells which.", writes=True
    ),
    "erase_all": _inspect(
        models.EraseAllRequest,
        models.ErasureAnswer,
        "Erases all memories of the user; by default only tells which.",
        writes=True,
    ),
    "export_memories": _inspect(models.NothingRequest, models.ExportMemoriesAnswer, "Returns all data of the user."),
    "list_audit": _inspect(
        models.ListAuditRequest, models.ListAuditAnswer, "Lists the user's own entries of the audit log."
    ),
    "verify_audit": _inspect(models.NothingRequest, models.VerifyAuditAnswer, "Checks the audit log."),
}


class Inspection(OperationTable[Model]):
    """Runs the operations of the inspector. Safe to share between threads.

    Args:
        retriever: the documents, which all callers may search.
        memory: the memory of all users; each caller sees his own.
    """

    def __init__(self, *, retriever: Retriever | None = None, memory: GovernedMemory | None = None) -> None:
        self._retriever, self._given_memory = retriever, memory
        self._verifying = threading.Lock()
        self.table = {
            **SESSION,
            **(DOCUMENTS if retriever is not None else {}),
            **(MEMORY if memory is not None else {}),
        }

    @property
    def _memory(self) -> GovernedMemory:
        assert self._given_memory is not None
        return self._given_memory

    def _show_session(self, caller: Caller, request: models.NothingRequest) -> models.ShowSessionAnswer:  # noqa: ARG002
        settings = {} if self._retriever is None else self._retriever.config.to_dict()
        return models.ShowSessionAnswer(
            user="" if caller.user_id is None or self._given_memory is None else str(caller.user_id),
            may_inspect=caller.may_inspect and self._given_memory is not None,
            may_write=not caller.read_only,
            has_documents=self._retriever is not None,
            has_memory=self._given_memory is not None,
            settings={name: settings[name] for name in _SETTINGS if name in settings},
        )

    def _try_documents(self, caller: Caller, request: models.TryDocumentsRequest) -> models.TryDocumentsAnswer:  # noqa: ARG002
        assert self._retriever is not None
        config = self._retriever.config
        overrides: Any = {name: value for name in _SETTINGS if (value := getattr(request, name)) is not None}
        context = self._retriever.retrieve(
            request.query, **{"when_insufficient": admitted_passages(config), **overrides}
        )
        shown = {each.passage.id: each.passage for each in context.passages}
        texts = {}
        for each in context.trace.candidates:
            with suppress(UnknownIdError):  # it was removed meanwhile
                passage = shown.get(each.id) or self._retriever.get(each.id)
                texts[each.id] = models.CandidateText(title=passage.title, text=passage.text)
        return models.TryDocumentsAnswer(
            text=quote_documents(context, config) if context.text else "", **_describe_try(context, texts)
        )

    def _find_memories(self, caller: Caller, request: models.FindMemoriesRequest) -> models.FindMemoriesAnswer:
        memory, user_id = self._memory, caller.for_tools.user_id
        tools = MemoryTools.make(memory, (), None, "chat_user", "factual", recall=self._look)
        text, recall = tools.show_recall(caller.for_tools, request.query)
        explained = memory.explain(
            request.query, user_id=user_id, limit=_ABOUT, include_archived=True, include_superseded=True
        )
        texts = {record.id: record.text for record in [*recall.records, *(each.record for each in explained)]}
        for each in recall.trace.candidates:
            if each.id not in texts:
                texts[each.id] = self._find_text(user_id, each.id)
        titled = {name: models.CandidateText(title="", text=each) for name, each in texts.items()}
        scores = self._shared_scores(user_id)
        about = [
            models.FoundMemory(
                memory=self._describe(each.record, scores), score=round_score(each.score) or 0.0, why=each.why
            )
            for each in explained
        ]
        return models.FindMemoriesAnswer(text=text, about=about, **_describe_try(recall, titled))

    def _look(self, query: str, *, user_id: UserId, without: Collection[str]) -> Recall:
        """Return what a search would hand out, without logging it: a look isn't a use, and changes no score."""
        memory = self._memory
        made = make_query(
            query, user_id, policy=memory.policy, now=memory.clock.now(), cache=memory._sentences, without=without
        )
        return memory._searcher.look(made)

    def _find_text(self, user_id: UserId, record_id: str) -> str:
        try:
            return self._memory.get(record_id, user_id=user_id).text
        except UnknownIdError:  # it has expired or was erased meanwhile
            return ""

    def _list_memories(self, caller: Caller, request: models.ListMemoriesRequest) -> models.ListMemoriesAnswer:
        lists = self._sort(caller, request)
        chosen = lists[request.which]
        shown = chosen[request.skip : request.skip + request.limit]
        scores = self._shared_scores(caller.for_tools.user_id)
        return models.ListMemoriesAnswer(
            memories=[self._describe(record, scores) for record in shown],
            total=len(chosen),
            counts={name: len(records) for name, records in lists.items()},
        )

    def _sort(self, caller: Caller, request: models.ListMemoriesRequest) -> dict[models.Which, list[MemoryRecord]]:
        """Return the user's memories by list."""
        part, soon = request.contains.casefold(), self._memory.clock.now() + timedelta(days=request.days)
        records = self._memory.list(
            user_id=caller.for_tools.user_id, include_archived=True, include_superseded=True,
            include_messages=request.messages,
        )  # fmt: skip
        records = [record for record in records if part in _text_of(record).casefold()]
        records.sort(key=lambda record: record.created_at, reverse=True)
        ending = [(r.expires_at, r) for r in records if r.expires_at is not None and r.expires_at <= soon]
        return {
            "current": [record for record in records if not record.is_closed and not record.archived],
            "replaced": [record for record in records if record.is_closed],
            "archived": [record for record in records if record.archived and not record.is_closed],
            "on_hold": [record for record in records if record.hold],
            "ending": [record for _, record in sorted(ending, key=lambda each: each[0])],
        }

    def _show_memory(self, caller: Caller, request: models.MemoryRequest) -> models.ShowMemoryAnswer:
        memory, user_id = self._memory, caller.for_tools.user_id
        explained = memory.explain_record(request.id, user_id=user_id)
        record, scores = explained.record, self._shared_scores(user_id)
        every = memory.list(user_id=user_id, include_archived=True, include_superseded=True, include_messages=True)
        by_id = {each.id: each for each in every}
        return models.ShowMemoryAnswer(
            memory=self._describe(record, scores, whole=True),
            now=memory.clock.now().isoformat(),
            why=explained.why,
            events=[_describe_event(event) for event in explained.events],
            curve=self._draw_curve(record, scores.get(record.id) if record.user_id is None else None),
            earlier=[self._describe(each, scores) for each in _find_earlier(record, every)],
            later=[self._describe(each, scores) for each in _find_later(record, by_id)],
        )

    def _restore_memory(self, caller: Caller, request: models.MemoryRequest) -> models.MemoryAnswer:
        user_id = caller.for_tools.user_id
        record = self._memory.restore(request.id, user_id=user_id, reason=REASON)
        return models.MemoryAnswer(memory=self._describe(record, {}))

    def _hold_memory(self, caller: Caller, request: models.HoldMemoryRequest) -> models.MemoryAnswer:
        user_id = caller.for_tools.user_id
        self._memory.hold(request.id, user_id=user_id, why=request.why, reason=REASON)
        return self._show_changed(user_id, request.id)

    def _release_memory(self, caller: Caller, request: models.MemoryRequest) -> models.MemoryAnswer:
        user_id = caller.for_tools.user_id
        self._memory.release(request.id, user_id=user_id, reason=REASON)
        return self._show_changed(user_id, request.id)

    def _show_changed(self, user_id: UserId, record_id: str) -> models.MemoryAnswer:
        with suppress(UnknownIdError):  # it expired on hold, so no read returns it
            return models.MemoryAnswer(memory=self._describe(self._memory.get(record_id, user_id=user_id), {}))
        return models.MemoryAnswer(memory=None)

    def _erase_memory(self, caller: Caller, request: models.EraseMemoryRequest) -> models.ErasureAnswer:
        report = self._memory.delete(
            request.id, user_id=caller.for_tools.user_id, include_superseded=request.earlier, reason=REASON,
            dry_run=request.dry_run,
        )  # fmt: skip
        return _describe_erasure(report, dry_run=request.dry_run)

    def _erase_all(self, caller: Caller, request: models.EraseAllRequest) -> models.ErasureAnswer:
        user_id = caller.for_tools.user_id
        report = self._memory.forget_user(user_id=user_id, reason=REASON, dry_run=request.dry_run)
        return _describe_erasure(report, dry_run=request.dry_run)

    def _export_memories(self, caller: Caller, request: models.NothingRequest) -> models.ExportMemoriesAnswer:  # noqa: ARG002
        return models.ExportMemoriesAnswer(data=self._memory.export(user_id=caller.for_tools.user_id))

    def _list_audit(self, caller: Caller, request: models.ListAuditRequest) -> models.ListAuditAnswer:
        events = self._memory.audit.events(
            user_id=caller.for_tools.user_id,
            record_id=request.id or None,
            action=_ERASURES if request.erasures else None,
            since=timedelta(days=request.days),
        )
        events.reverse()
        shown = events[request.skip : request.skip + request.limit]
        return models.ListAuditAnswer(entries=[_describe_event(event) for event in shown], total=len(events))

    def _verify_audit(self, caller: Caller, request: models.NothingRequest) -> models.VerifyAuditAnswer:  # noqa: ARG002
        if not self._verifying.acquire(blocking=False):
            raise StoreBusyError("the log is being checked: try again")
        try:
            result = self._memory.audit.verify()
        finally:
            self._verifying.release()
        user_id = caller.for_tools.user_id
        own = {user_id, self._memory.audit.store.chain.pseudonym(user_key(user_id))}
        intact = result.ok or bool(result.differences)
        return models.VerifyAuditAnswer(
            intact=intact,
            keyed=result.keyed,
            compared=intact and result.keyed,
            differs={each.record_id: list(each.differs) for each in result.differences if each.user_id in own},
        )

    def _shared_scores(self, user_id: UserId) -> Mapping[str, SharedScore]:
        return self._memory._runtime.store.shared_scores(user_key(user_id))

    def _describe(
        self, record: MemoryRecord, scores: Mapping[str, SharedScore], *, whole: bool = False
    ) -> models.Memory:
        text = _text_of(record)
        shared = scores.get(record.id) if record.user_id is None else None
        reflection = decay_reflection(record, self._memory.policy, self._memory.clock.now(), shared)
        newer = ""
        if record.superseded_by is not None and record.user_id is not None:
            newer = self._find_text(record.user_id, record.superseded_by)
        return models.Memory(
            id=record.id, text=text if whole else _shorten(text), kind=record.kind, source=record.source,
            policy_class=record.policy_class, shared=record.user_id is None, tags=list(record.tags),
            session_id=record.session_id, created_at=record.created_at.isoformat(),
            valid_from=_format(record.valid_from), valid_to=_format(record.valid_to),
            expires_at=_format(record.expires_at), touched_at=_format(record.touched_at),
            uses=(shared or record).uses, reflection=round(reflection, 2),
            superseded_by=record.superseded_by, replacement=_shorten(newer), restored_at=_format(record.restored_at),
            derived_from=list(record.derived_from), flagged=record.flagged, hold=record.hold, pinned=record.pinned,
            archived=record.archived,
        )  # fmt: skip

    def _draw_curve(self, record: MemoryRecord, shared: SharedScore | None) -> list[models.Moment]:
        """Return the reflection score from the last change to the expiry, or a year ahead, if nobody recalls it."""
        now = self._memory.clock.now()
        begin = max((shared or record).touched_at or record.created_at, record.created_at)
        end = max(begin, min(record.expires_at or now + _HORIZON, now + _HORIZON))
        moments = [begin + (end - begin) * n / _MOMENTS for n in range(_MOMENTS + 1)]
        return [
            models.Moment(at=at.isoformat(), score=round(decay_reflection(record, self._memory.policy, at, shared), 2))
            for at in moments
        ]


def _find_earlier(record: MemoryRecord, every: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    """Return what a memory replaced, in one or several steps, the newest first."""
    closed: dict[str, list[MemoryRecord]] = {}
    for each in every:
        if each.superseded_by is not None:
            closed.setdefault(each.superseded_by, []).append(each)
    found, waiting = {record.id: record}, [record.id]
    while waiting:
        new = {each.id: each for each in closed.get(waiting.pop(), ()) if each.id not in found}
        found |= new
        waiting += new
    del found[record.id]
    return sorted(found.values(), key=lambda each: each.created_at, reverse=True)


def _find_later(record: MemoryRecord, by_id: Mapping[str, MemoryRecord]) -> list[MemoryRecord]:
    """Return what replaced a memory, in one or several steps."""
    found: dict[str, MemoryRecord] = {}
    while (later := by_id.get(record.superseded_by or "")) is not None and later.id not in found:
        record = found[later.id] = later
    return list(found.values())


def _describe_try(context: Context, texts: Mapping[str, models.CandidateText]) -> dict[str, Any]:
    shown = {name: models.CandidateText(title=each.title, text=_shorten(each.text)) for name, each in texts.items()}
    return {
        "sufficient": context.sufficient,
        "tokens": context.tokens,
        "max_tokens": context.max_tokens,
        "trace": context.trace.to_dict(),
        "texts": shown,
    }


def _describe_event(event: AuditEvent) -> models.Entry:
    """Return an entry without its place in the log, which tells of other users' entries."""
    before, after = (event.detail.get(name) for name in ("before", "after"))
    return models.Entry(
        at=event.at.isoformat(), action=event.action, reason=event.reason, id=event.record_id,
        before=float(before) if isinstance(before, int | float) else None,
        after=float(after) if isinstance(after, int | float) else None,
    )  # fmt: skip


def _describe_erasure(report: ErasureReport, *, dry_run: bool) -> models.ErasureAnswer:
    return models.ErasureAnswer(
        dry_run=dry_run, erased=list(report.erased), held=dict(report.held), left_closed=list(report.left_closed)
    )


def _text_of(record: MemoryRecord) -> str:
    """Return the text of a memory; of a message, which has none, the values that its wrapper stored."""
    return record.text if record.kind != "message" else named_texts(record.metadata)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _format(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
