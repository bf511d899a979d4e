"""Compares the records of a store with their keyed hashes in the audit log.

Each change of a record puts the hash of its new state into the log (detail `state`), and each erasure the kind of the
record that is gone (detail `erased`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, astuple, dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import StoreCorruptError
from meve.memory._audit.chain import AuditChain, AuditRow, AuditVerification, RecordDifference, user_in_event
from meve.memory.records import MemoryRecord, StoredRecord, UserId
from meve.memory.stores.protocol import RecordQuery, Snapshot

GROUPS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "expiry": ("expires_at",),
    "hold": ("hold",),
    "class": ("kind", "source", "policy_class"),
    "metadata": ("metadata", "tags", "session_id"),
    "history": (
        "created_at", "valid_from", "valid_to", "superseded_by", "restored_at", "derived_from", "archived",
    ),
    "score": ("reflection", "used_at", "uses", "outcomes", "flagged"),
    "other": (),
}  # fmt: skip
"""The parts of a record that are told apart, in the order of their hashes, and the fields of each part."""
_UNCOVERED = ("id", "user_id", "touched_at")
"""Fields without a part: the id and the owner are in the hash of the whole, and a recall changes `touched_at` alone."""
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
_FIELDS = [
    (f.name, f.default, _GROUP_OF.get(f.name, "other")) for f in fields(MemoryRecord) if f.name not in _UNCOVERED
]
_WHOLE, _PART = 32, 4
"""Hexadecimal digits of the hash of the whole state, which decides, and of those of the parts, which only locate."""
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def hash_state(chain: AuditChain, user: str, record: MemoryRecord) -> str:
    """Return the keyed hash of a record's state: of the whole, and of each of `GROUPS`.

    Fields with their default are left out, so that a field added later doesn't change the hashes of older records.
    """
    parts: dict[str, list[Any]] = {group: [] for group in GROUPS}
    for name, default, group in _FIELDS:
        value = getattr(record, name)
        if value != default and not (default is MISSING and value in ({}, None)):
            parts[group].append([name, _plain(value)])
    texts = [_encode(part) for part in parts.values()]
    owner = chain.pseudonym(user)
    whole = chain.mac("state", _encode([owner, record.id, *texts]))
    return whole[:_WHOLE] + "".join(
        chain.mac(f"state {group}", _encode([owner, record.id, text]))[:_PART]
        for group, text in zip(GROUPS, texts, strict=True)
    )


def is_same_state(logged: str, found: str) -> bool:
    """Return whether two results of `hash_state` are of one state. Only the hash of the whole decides.

    Earlier versions hashed the parts without the owner, so in their entries the parts differ.
    """
    return logged[:_WHOLE] == found[:_WHOLE]


def _user_of(user: str) -> UserId | None:
    try:
        return user_in_event(user)
    except ValueError:  # a damaged key
        return user


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int | float):
        return float(value)  # 1 and 1.0 are stored alike
    if isinstance(value, OutcomeStatistics):
        return [float(each) for each in astuple(value)]
    return dict(value) if isinstance(value, Mapping) else value


def _differing_groups(logged: str, found: str) -> tuple[str, ...]:
    """Return the parts of two states that differ; empty if the states are equal."""
    if is_same_state(logged, found):
        return ()
    starts = range(_WHOLE, _WHOLE + _PART * len(GROUPS), _PART)
    differing = [g for g, n in zip(GROUPS, starts, strict=True) if logged[n : n + _PART] != found[n : n + _PART]]
    if len(differing) == len(GROUPS):  # parts of an earlier version, which were hashed without the owner
        return ("other",)
    return tuple(differing or ["other"])


@dataclass(slots=True)
class LoggedStates:
    """The newest state of each record, by the log."""

    chain: AuditChain
    states: dict[tuple[str, str], str] = field(default_factory=dict)
    """By the user's pseudonym and the name of the record in the log, the hash; empty if the log holds none."""
    _ids: dict[str, str] = field(default_factory=dict)
    """By the name of a record in the log, its id as far as it is known."""
    _pseudonyms: dict[str, str] = field(default_factory=dict)
    """By the user's key or pseudonym, the pseudonym."""
    _users: dict[str, str] = field(default_factory=dict)
    """By pseudonym, the user's key as far as it is known."""

    def follow(self, rows: Iterable[AuditRow]) -> Iterator[AuditRow]:
        """Yield each entry, and note its state once the reader has verified it and asks for the next."""
        for row in rows:
            yield row
            if row.action in ("add", "delete", "expire") or '"state":' in row.detail or '"erased":' in row.detail:
                self._note(row)

    def compare(self, snapshot: Snapshot, result: AuditVerification) -> AuditVerification:
        """Return a verification of the log with the comparison of all records, whoever owns them. Uses up the states.

        The time is linear; beside the states, it holds the records of one user at a time.
        """
        count = uncovered = 0
        differences: list[RecordDifference] = []
        planted: list[tuple[str, str, MemoryRecord]] = []
        for user, name in snapshot.names(None):
            self._pseudonym(user)
            self._ids |= {self.chain.record_name(user, name): name} if name else {}
        for user in snapshot.users():
            seen: set[str] = set()
            for record_id, stored in self._read_user(snapshot, user):
                record = None if stored is None else stored.record
                logged = None if record_id in seen else self.states.pop(self._key(user, record_id), None)
                seen.add(record_id)
                groups: tuple[str, ...] = ()
                if stored is None or record is None:
                    groups = ("unreadable",)
                elif logged is None:
                    planted.append((user, record_id, record))
                    continue
                elif logged or stored.altered:
                    groups = self._compare_one(logged, user, record) if logged else ()
                    own = {_GROUP_OF.get(name, "other") for name in stored.altered}
                    groups = (*groups, *(each for each in GROUPS if each in own - {*groups}))
                else:
                    uncovered += 1
                    continue
                count += not groups
                differences += [self._difference(user, record_id, groups)] if groups else []
        differences += self._find_moved(planted)
        differences += [self._difference(*key, ("missing",)) for key, logged in self.states.items() if logged]
        differences.sort(key=lambda each: (str(each.user_id), str(each.record_id)))
        compared = replace(result, records=count, not_covered=uncovered, differences=tuple(differences))
        if not differences:
            return compared
        return replace(compared, ok=False, problem=f"records that differ from the log: {len(differences)}")

    def find_planted(self, snapshot: Snapshot, users: Iterable[str]) -> set[str]:
        """Return the ids of the stored records of these users' keys or pseudonyms that the log doesn't know."""
        owners = set(map(self._pseudonym, users))
        return {
            record_id
            for key in snapshot.users()
            if self._pseudonym(key) in owners
            for record_id, _ in self._read_user(snapshot, key)
            if self._key(key, record_id) not in self.states
        }

    def _note(self, row: AuditRow) -> None:
        detail = json.loads(row.detail)
        key = self._key(row.user, row.record)
        if "state" in detail:
            self.states[key] = detail["state"]
        elif "erased" in detail or row.action in ("delete", "expire"):
            self.states.pop(key, None)
        elif row.action == "add":
            self.states[key] = ""

    def _find_moved(self, planted: Iterable[tuple[str, str, MemoryRecord]]) -> Iterator[RecordDifference]:
        """Return the records that the log doesn't know, as moved ones if another user's equal record is missing."""
        missing: dict[str, list[str]] = {}
        for owner, name in self.states:
            missing.setdefault(self._ids.get(name, name), []).append(owner)
        for user, record_id, record in planted:
            for owner in missing.get(record_id, ()):
                logged = self.states.get(self._key(owner, record_id))
                if logged and not self._compare_one(logged, owner, record):
                    del self.states[self._key(owner, record_id)]
                    yield self._difference(owner, record_id, ("owner",))
                    break
            else:
                yield self._difference(user, record_id, ("planted",))

    def _compare_one(self, logged: str, user: str, record: MemoryRecord) -> tuple[str, ...]:
        try:
            return _differing_groups(logged, hash_state(self.chain, user, record))
        except (TypeError, ValueError, OverflowError):  # of a damaged file: a field is of another type
            return ("unreadable",)

    def _difference(self, user: str, record_id: str, groups: tuple[str, ...]) -> RecordDifference:
        record_id = self._ids.get(record_id, record_id)
        return RecordDifference(record_id=record_id, user_id=_user_of(self._users.get(user, user)), differs=groups)

    def _key(self, user: str, record_id: str) -> tuple[str, str]:
        return self._pseudonym(user), self.chain.record_name(user, record_id)

    def _pseudonym(self, user: str) -> str:
        if user not in self._pseudonyms:
            self._pseudonyms[user] = self.chain.pseudonym(user)
            if self._pseudonyms[user] != user:
                self._users[self._pseudonyms[user]] = user
        return self._pseudonyms[user]

    def _read_user(self, snapshot: Snapshot, user: str) -> Iterator[tuple[str, StoredRecord | None]]:
        """Return all records of a user by id; None for one that can't be read."""
        query = RecordQuery(user=user, archived=None)
        try:
            records = snapshot.records(query)
        except StoreCorruptError:
            yield from self._read_one_by_one(snapshot, user)
        else:
            yield from ((stored.record.id, stored) for stored in records)

    def _read_one_by_one(self, snapshot: Snapshot, user: str) -> Iterator[tuple[str, StoredRecord | None]]:
        ids = {self._ids.get(name, name) for owner, name in self.states if owner == self._pseudonym(user)}
        ids |= {record_id for (record_id,) in snapshot.select(RecordQuery(user=user, archived=None), "id")}
        is_named = False
        for record_id in sorted(each for each in ids if isinstance(each, str)):
            try:
                records = snapshot.records(RecordQuery(user=user, archived=None, ids=[record_id]))
            except StoreCorruptError:
                is_named = True
                yield record_id, None
            else:
                yield from ((record_id, stored) for stored in records)
        if not is_named:
            yield "", None
