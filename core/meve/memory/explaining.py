"""Subject access: what is remembered about something and why, and all that there is of a user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from meve.memory.chain import AuditEvent
from meve.memory.kit import Kit
from meve.memory.recall import decayed
from meve.memory.records import SHARED, MemoryRecord, UserId


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


def explained(kit: Kit, user: str, found: Sequence[tuple[MemoryRecord, float]]) -> list[Explained]:
    """Records with their account."""
    made = []
    opinions = kit.store.opinions(user)
    for hit, score in found:
        key = user if hit.user_id is not None else SHARED
        now_stored = kit.store.find(key, hit.id)
        record = hit if now_stored is None else now_stored.record  # with its last recall
        keys = dict.fromkeys((key, user))  # of a shared one: what became of it, and what this user made of it
        events = tuple(sorted((e for k in keys for e in kit.store.events(user=k, record=hit.id)), key=lambda e: e.seq))
        added = next((event for event in events if event.action in ("add", "restore")), None)
        until = "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        because = f"added {record.created_at:%Y-%m-%d %H:%M:%S} UTC ({added.reason if added else 'no entry'})"
        rule = f"{record.policy_class}, from {record.source}; stays {until}"
        held = f"; on hold: {record.hold}" if record.hold else ""
        opinion = opinions.get(record.id) if record.user_id is None else None
        reflection = decayed(record, kit.policy, kit.clock.now(), opinion)
        made.append(
            Explained(record=record, score=score, reflection=reflection, why=f"{because}; {rule}{held}", events=events)
        )
    return made


def exported(kit: Kit, user: str, user_id: UserId) -> dict[str, Any]:
    """All that there is of a user, JSON-ready: records, archived ones, opinions of shared ones, entries of the log.

    What is expired or erased isn't among them.
    """
    now = kit.clock.now()
    live = [stored.record for _, stored in kit.store.changes(user, 0).records]
    archived = [stored.record for stored in kit.store.archived(user)]
    return {
        "user_id": user_id,
        "exported_at": now.isoformat(),
        "records": [r.to_dict() for r in sorted(live, key=lambda r: r.id) if not r.expired(now)],
        "archived": [r.to_dict() for r in archived if not r.expired(now)],
        "opinions": {
            record_id: {"reflection": o.reflection, "uses": o.uses, "used_at": o.used_at and o.used_at.isoformat()}
            for record_id, o in sorted(kit.store.opinions(user).items())
        },
        "audit": [event.to_dict() for event in kit.store.events(user=user)],
    }
