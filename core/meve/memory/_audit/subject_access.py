"""Subject access: explains which memories exist on a topic and why, and exports all data of a user."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from meve.memory._audit.chain import AuditEvent
from meve.memory._recall.scoring import decay_reflection
from meve.memory._recall.searcher import Recall
from meve.memory._runtime import MemoryRuntime
from meve.memory.records import SHARED, MemoryRecord, SharedScore, StoredRecord, UserId, without_copies
from meve.memory.stores.protocol import EventQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A memory, and why it is kept."""

    record: MemoryRecord
    score: float | None
    """Score of the record for the query, as in a search; None if there was no query."""
    reflection: float
    """Reflection score now, from 0 to 100."""
    why: str
    """When and why it was added, and how long it stays."""
    events: tuple[AuditEvent, ...]
    """All entries of the audit log on it, oldest first."""
    archived: bool = False
    """Whether it is archived: searches leave it out."""
    replacement: MemoryRecord | None = None
    """The record that replaced it; None if nothing did, or if that record is gone."""


def explain_recall(
    runtime: MemoryRuntime, user: str, recall: Recall, archive: Recall | None = None
) -> list[Explanation]:
    """Return explanations of recalled memories, and of those recalled from the archive, best first."""
    shared_scores = runtime.store.shared_scores(user)
    scored = {hit.id: (hit, score) for hit, score in [*_scored_records(archive), *_scored_records(recall)]}
    best_first = sorted(scored.values(), key=lambda each: -each[1])
    return [explain_record(runtime, user, hit, score, shared_scores) for hit, score in best_first]


def explain_record(
    runtime: MemoryRuntime,
    user: str,
    hit: MemoryRecord,
    score: float | None,
    shared_scores: Mapping[str, SharedScore],
) -> Explanation:
    """Return the explanation of one memory of a user, or of a shared one."""
    key = user if hit.user_id is not None else SHARED
    stored = runtime.store.find(key, hit.id)
    record = hit if stored is None else stored.record  # has the time of the last recall
    keys = dict.fromkeys((key, user))  # events of a shared record are logged for it and for this user
    events = [event for k in keys for event in runtime.store.events(EventQuery(user=k, record=hit.id))]
    events.sort(key=lambda event: event.seq)
    added = next((event for event in events if event.action in ("add", "restore")), None)
    until = "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    since = record.created_at if added is None else added.at
    because = f"added {since:%Y-%m-%d %H:%M:%S} UTC ({added.reason if added else 'no entry'})"
    because += "" if record.created_at == since else f", told {record.created_at:%Y-%m-%d %H:%M:%S} UTC"
    rule = f"{record.policy_class}, from {record.source}; stays {until}"
    rule += "; archived" if hit.archived else ""
    rule += f"; {_describe_end(record)}" if record.is_closed else ""
    hold = f"; on hold: {record.hold}" if record.hold else ""
    shared = shared_scores.get(record.id) if record.user_id is None else None
    newer = None if record.superseded_by is None else runtime.store.find(key, record.superseded_by)
    return Explanation(
        record=record,
        score=score,
        reflection=decay_reflection(record, runtime.policy, runtime.clock.now(), shared),
        why=f"{because}; {rule}{hold}",
        events=tuple(events),
        archived=hit.archived,
        replacement=None if newer is None or newer.record.expired(runtime.clock.now()) else newer.record,
    )


def _describe_end(record: MemoryRecord) -> str:
    if record.superseded_by is None:
        return "replaced by a record that is gone"
    why = f" ({record.flagged})" if record.flagged else ""
    return f"replaced by {record.superseded_by}{why}"


def _scored_records(recall: Recall | None) -> list[tuple[MemoryRecord, float]]:
    if recall is None:
        return []
    return [(r, float(p.score or 0.0)) for r, p in zip(recall.records, recall.passages, strict=True)]


def export_user(runtime: MemoryRuntime, user: str, user_id: UserId) -> dict[str, Any]:
    """Return all data of a user, JSON-ready: what holds, what was replaced, the archive, scores and audit entries."""
    every = runtime.store.all_records(user)
    now = runtime.clock.now()
    expired = [stored.record for stored in every if stored.record.expired(now)]
    every = [stored for stored in every if not stored.record.expired(now)]
    every.sort(key=_by_time)
    records = [without_copies(stored.record, expired) if expired else stored.record for stored in every]
    places = {stored.record.id: {"place": stored.row} for stored in every if stored.record.kind == "message"}
    return {
        "user_id": user_id,
        "exported_at": now.isoformat(),
        "records": [r.to_dict() | places.get(r.id, {}) for r in records if not r.archived and not r.is_closed],
        "history": [r.to_dict() | places.get(r.id, {}) for r in records if not r.archived and r.is_closed],
        "archived": [r.to_dict() | places.get(r.id, {}) for r in records if r.archived],
        "shared_scores": {
            record_id: {
                "reflection": s.reflection,
                "uses": s.uses,
                "used_at": s.used_at and s.used_at.isoformat(),
                "outcomes": asdict(s.outcomes),
            }
            for record_id, s in sorted(runtime.store.shared_scores(user).items())
        },
        "audit": [_own_entry(event) for event in runtime.store.events(EventQuery(user=user))],
    }


def _by_time(stored: StoredRecord) -> tuple[datetime, int, str]:
    """Return a key that orders records of one moment alike in each copy of a memory, and messages by their place."""
    record = stored.record
    return record.created_at, stored.row if record.kind == "message" else 0, record.id


def _own_entry(event: AuditEvent) -> dict[str, Any]:
    """Return an entry without its place in the log of all users, and without its digest, which covers their entries."""
    return {name: value for name, value in event.to_dict().items() if name not in {"seq", "digest"}}
