"""Names in the log: keyed hashes in place of users and ids, and back as long as the store can tell them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from meve.memory._audit.chain import PSEUDONYM, RECORD, AuditChain, AuditEvent, AuditRow, EventDraft
from meve.memory.records import user_of
from meve.memory.stores.protocol import EventQuery, Snapshot

_BY, _WAS = ("evidence", "by"), ("was", "superseded_by")
"""Where a detail names another record of the user; the reason may name it, too."""


def hide_names(events: Sequence[EventDraft], chain: AuditChain) -> Iterator[EventDraft]:
    """Yield events as the log holds them."""
    if not chain.hides_names:
        yield from events
        return
    users = {user: chain.pseudonym(user) for user in {event.user for event in events}}
    for event in events:
        yield _hide_names(event, users[event.user], chain)


def _hide_names(event: EventDraft, user: str, chain: AuditChain) -> EventDraft:
    detail, reason = event.detail, event.reason
    for outer, inner in (_BY, _WAS):
        named = detail.get(outer)
        if named and isinstance(named, Mapping) and isinstance(other := named.get(inner), str):
            hashed = chain.record_name(user, other)
            detail = {**detail, outer: {**named, inner: hashed}}
            reason = re.sub(rf"(?<!\w){re.escape(other)}(?!\w)", hashed, reason)
    name = chain.record_name(user, event.record)
    return EventDraft(event.at, user, name, event.action, reason, detail)


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


class LogNames:
    """Users and ids by their keyed hashes: those that are given, and those that the store can tell.

    Args:
        snapshot: the store; it is asked when a hash is met that isn't that of a given name.
        chain: of the log.
        query: names a user and a record, or neither.
        ids: ids of the user's records.
    """

    def __init__(self, snapshot: Snapshot, chain: AuditChain, query: EventQuery, ids: Iterable[str] = ()) -> None:
        self._snapshot, self._chain, self._user = snapshot, chain, query.user
        given = [] if query.user is None else [(query.user, each) for each in ("", *ids, query.record or "")]
        self._known = self._hashed(given)
        self._has_asked = False

    def shown(self, event: AuditEvent, row: AuditRow) -> AuditEvent:
        """Return an event with the names that are known."""
        detail, reason = dict(event.detail), event.reason
        for outer, inner in (_BY, _WAS):
            named: Any = detail.get(outer)
            hashed = named.get(inner) if isinstance(named, Mapping) else None
            if isinstance(hashed, str):
                detail[outer] = {**named, inner: self.of(hashed)}
                reason = reason.replace(hashed, self.of(hashed))
        user = row.user if self._chain.pseudonyms else self.of(row.user)
        shown_user = event.user_id if user == row.user else user_of(user)
        return replace(event, user_id=shown_user, record_id=self.of(row.record), detail=detail, reason=reason)

    def of(self, name: str) -> str:
        """Return the user or the id of a name in the log; the name itself if nobody knows it any more."""
        if name not in self._known and name.startswith((PSEUDONYM, RECORD)) and not self._has_asked:
            self._has_asked = True
            self._known |= self._hashed(self._snapshot.names(self._user))
        return self._known.get(name, name)

    def _hashed(self, names: Iterable[tuple[str, str]]) -> dict[str, str]:
        chain = self._chain
        return {chain.record_name(user, name) if name else chain.pseudonym(user): name or user for user, name in names}
