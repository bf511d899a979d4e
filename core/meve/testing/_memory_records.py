"""Records of two users, and changes of them, for the contract of memory stores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from meve.memory._audit.chain import EventDraft
from meve.memory.records import MemoryRecord, StoredRecord, user_key, user_of
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import RecordQuery

ALICE, BOB = user_key("alice"), user_key(7)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


def stored(record_id: str, user: str = ALICE, **values: Any) -> StoredRecord:  # noqa: ANN401
    """Return a record with a vector of four numbers, and two passages."""
    record = MemoryRecord(**{
        "id": record_id, "user_id": user_of(user), "text": f"text of {record_id}", "source": "doc",
        "policy_class": "factual", "created_at": NOW, "expires_at": None, **values,
    })  # fmt: skip
    vector = np.array([1, 0.5, -2, 0], dtype=np.float32)
    passages = np.array([[1, 0, 0, 0], [0, 0.6, 0.8, 0]], dtype=np.float16)
    return StoredRecord(
        record=record, vector=vector, tokens=5, model="one 4", passages=passages, outline=f"outline of {record_id}"
    )


def message(record_id: str, user: str = ALICE, **values: Any) -> StoredRecord:  # noqa: ANN401
    """Return a message of session `s`."""
    defaults: dict[str, Any] = {"kind": "message", "text": "", "source": "message", "session_id": "s"}
    return stored(record_id, user, **{**defaults, "metadata": {"n": 1}, **values})


def event(record_id: str, user: str = ALICE, at: datetime = NOW, **values: Any) -> EventDraft:  # noqa: ANN401
    """Return an event for the audit log."""
    return EventDraft(at=at, user=user, record=record_id, **{"action": "add", "reason": "a test", **values})


def insert(store: RecordStore, *records: StoredRecord, user: str = ALICE) -> None:
    """Insert records and log it, in one transaction."""
    with store.writing() as transaction:
        for each in records:
            transaction.insert(user, each)
            transaction.log(event(each.record.id, user))


def archive(store: RecordStore, record_id: str, user: str = ALICE) -> None:
    """Archive a record."""
    with store.writing() as transaction:
        before = transaction.find(user, record_id)
        assert before is not None
        transaction.replace(user, replace(before, record=replace(before.record, archived=True)))


def erase(store: RecordStore, *record_ids: str, user: str = ALICE) -> None:
    """Erase records."""
    with store.writing() as transaction:
        for each in record_ids:
            transaction.erase(user, stored(each, user).record)


def query_messages(user: str = ALICE, **conditions: Any) -> RecordQuery:  # noqa: ANN401
    """Return a query for messages of session `s` that haven't expired."""
    return RecordQuery(user=user, kind="message", session_id="s", alive_at=NOW, **conditions)


def ids_of(records: list[StoredRecord]) -> list[str]:
    """Return the ids of records."""
    return [each.record.id for each in records]
