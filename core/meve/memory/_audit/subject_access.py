"""Subject access: what is remembered about something and why, and all that there is of a user."""

from dataclasses import dataclass
from typing import Any

from meve.memory._audit.chain import AuditEvent
from meve.memory._recall.scoring import decayed
from meve.memory._recall.searcher import Recall
from meve.memory._runtime import Kit
from meve.memory.records import SHARED, MemoryRecord, UserId
from meve.memory.stores.protocol import EventQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One memory, and why it is there."""

    record: MemoryRecord
    score: float
    """How well it answers what was asked, as a search ranks it."""
    reflection: float
    """Its reflection score by now, from 0 to 100."""
    why: str
    """Why it was added, when, and how long it stays."""
    events: tuple[AuditEvent, ...]
    """All that the log holds of it, oldest first."""
    archived: bool = False
    """Whether it lies in the archive, where no search finds it."""


def explained(kit: Kit, user: str, recall: Recall, archive: Recall | None = None) -> list[Explained]:
    """What was found, and what was found in the archive, with its account; best first."""
    made = []
    opinions = kit.store.opinions(user)
    found = [*_scored(recall), *_scored(archive)]
    for hit, score in sorted(found, key=lambda each: -each[1]):
        key = user if hit.user_id is not None else SHARED
        now_stored = kit.store.find(key, hit.id)
        record = hit if now_stored is None else now_stored.record  # with its last recall
        keys = dict.fromkeys((key, user))  # of a shared one: what became of it, and what this user made of it
        events = tuple(sorted((e for k in keys for e in kit.store.events(EventQuery(user=k, record=hit.id))), key=lambda e: e.seq))
        added = next((event for event in events if event.action in ("add", "restore")), None)
        until = "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        because = f"added {record.created_at:%Y-%m-%d %H:%M:%S} UTC ({added.reason if added else 'no entry'})"
        rule = f"{record.policy_class}, from {record.source}; stays {until}"
        rule += "; archived" if hit.archived else ""
        held = f"; on hold: {record.hold}" if record.hold else ""
        opinion = opinions.get(record.id) if record.user_id is None else None
        reflection = decayed(record, kit.policy, kit.clock.now(), opinion)
        why = f"{because}; {rule}{held}"
        made.append(
            Explained(record=record, score=score, reflection=reflection, why=why, events=events, archived=hit.archived)
        )
    return made


def _scored(recall: Recall | None) -> list[tuple[MemoryRecord, float]]:
    """The memories of a recall, each with its score."""
    if recall is None:
        return []
    return [(r, float(p.score or 0.0)) for r, p in zip(recall.records, recall.passages, strict=True)]


def exported(kit: Kit, user: str, user_id: UserId) -> dict[str, Any]:
    """All that there is of a user, JSON-ready: records, archived ones, opinions of shared ones, entries of the log.

    What is expired or erased isn't among them.
    """
    now = kit.clock.now()
    records = [stored.record for stored in kit.store.all_records(user) if not stored.record.expired(now)]
    return {
        "user_id": user_id,
        "exported_at": now.isoformat(),
        "records": [r.to_dict() for r in records if not r.archived],
        "archived": [r.to_dict() for r in records if r.archived],
        "opinions": {
            record_id: {"reflection": o.reflection, "uses": o.uses, "used_at": o.used_at and o.used_at.isoformat()}
            for record_id, o in sorted(kit.store.opinions(user).items())
        },
        "audit": [event.to_dict() for event in kit.store.events(EventQuery(user=user))],
    }
