"""Names in the log: keyed hashes in place of users and ids, and back as long as the store can tell them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

from meve.memory._audit.chain import AuditChain, AuditEvent, AuditRow, EventDraft
from meve.memory.records import user_of
from meve.memory.stores.protocol import EventQuery, Snapshot

_BY, _WAS = ("evidence", "by"), ("was", "superseded_by")
"""Where a detail names another record of the user; the reason may name it, too."""


def hide_names(event: EventDraft, chain: AuditChain) -> EventDraft:
    """Return an event as the log holds it."""
    if not chain.hides_names:
        return event
    detail, reason = dict(event.detail), event.reason
    for outer, inner in (_BY, _WAS):
        named = detail.get(outer)
        other = named.get(inner) if isinstance(named, Mapping) else None
        if isinstance(named, Mapping) and isinstance(other, str):
            hashed = chain.record_name(event.user, other)
            detail[outer] = {**named, inner: hashed}
            reason = re.sub(rf"(?<!\w){re.escape(other)}(?!\w)", hashed, reason)
    record = chain.record_name(event.user, event.record)
    return replace(event, user=chain.pseudonym(event.user), record=record, detail=detail, reason=reason)


def find_entries(snapshot: Snapshot, chain: AuditChain, query: EventQuery) -> Iterable[AuditRow]:
    """Return the matching entries, oldest first, whether they hold names or keyed hashes."""
    users = {query.user, None if query.user is None else chain.pseudonym(query.user)}
    records = {query.record}
    if query.record is not None and query.user is not None:
        records.add(chain.record_name(query.user, query.record))
    elif query.record is not None:
        records.update(chain.record_name(user, query.record) for user, name in snapshot.names(None) if not name)
    queries = [replace(query, user=user, record=record) for user, record in product(users, records)]
    if len(queries) == 1:
        return snapshot.entries(query)
    return sorted((row for each in queries for row in snapshot.entries(each)), key=lambda row: row.seq)


@dataclass(frozen=True, slots=True)
class LogNames:
    """Users and ids by their keyed hashes."""

    users: Mapping[str, str]
    records: Mapping[str, str]
    shows_users: bool

    @classmethod
    def of(cls, snapshot: Snapshot, chain: AuditChain, query: EventQuery, ids: Iterable[str] = ()) -> Self:
        """Return the names that the store can tell, and those that are given, as ids or by the query."""
        pairs = list(snapshot.names(query.user))
        if query.user is not None:
            pairs += [(query.user, each) for each in (*ids, query.record) if each]
        return cls(
            users={chain.pseudonym(user): user for user, name in pairs if not name},
            records={chain.record_name(user, name): name for user, name in pairs if name},
            shows_users=not chain.pseudonyms,
        )

    def shown(self, event: AuditEvent, row: AuditRow) -> AuditEvent:
        """Return an event with the names that are known."""
        user = self.users.get(row.user)
        detail, reason = dict(event.detail), event.reason
        for outer, inner in (_BY, _WAS):
            named: Any = detail.get(outer)
            hashed = named.get(inner) if isinstance(named, Mapping) else None
            if isinstance(hashed, str) and hashed in self.records:
                detail[outer] = {**named, inner: self.records[hashed]}
                reason = reason.replace(hashed, self.records[hashed])
        return replace(
            event,
            user_id=user_of(user) if user is not None and self.shows_users else event.user_id,
            record_id=self.record(row.record),
            detail=detail,
            reason=reason,
        )

    def record(self, name: str) -> str:
        """Return the id of a record by its name in the log; the name itself if nobody knows the id any more."""
        return self.records.get(name, name)
