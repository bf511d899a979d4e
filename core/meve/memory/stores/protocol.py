"""The protocol of a memory back end: implement `MemoryStore`, and run `meve.testing.memory_store_contract` on it.

A back end implements only these primitives; `_record_store` adds duplicate checks, the audit chain and listeners.
Every read of records names a user; only counts and the audit log can cover all users.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from meve.memory._audit.chain import AuditRow as AuditRow
from meve.memory.records import RecordKind, SharedScore, StoredRecord

Field: TypeAlias = Literal[
    "row", "id", "session_id", "metadata", "archived", "created_at", "expires_at", "touched_at", "hold"
]
"""A value of a record that can be read without the rest of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordQuery:
    """The records to read. A record must meet every condition; None sets no condition."""

    user: str | None
    """The user's key; None for all users."""
    archived: bool | None = False
    """Whether to return archived records or the others; None for both."""
    ids: Sequence[str] | None = None
    derived_from: Sequence[str] | None = None
    """Ids; a record must be derived from at least one of them."""
    superseded_by: Sequence[str] | None = None
    """Ids; one of these records must have replaced it."""
    kind: RecordKind | None = None
    session_id: str | None = None
    alive_at: datetime | None = None
    """Return only records that haven't expired at this moment."""
    changed_since: int | None = None
    """A version of the user's; return only active records that changed after it."""
    after: int | None = None
    """Return only rows above this one. This and the fields below page through messages."""
    before: int | None = None
    """Return only rows below this one."""
    limit: int | None = None
    """The maximum number of records."""
    offset: int = 0
    """The number of records to skip."""
    newest_first: bool = False
    """Whether limit and offset count from the highest row down, which is then the order, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """The entries of the audit log to read. An entry must meet every condition; None sets no condition."""

    user: str | None = None
    """The user's key."""
    record: str | None = None
    """The record's id."""
    actions: Sequence[str] = ()
    """Any of these; empty for all."""
    since: int | None = None
    """Microseconds since 1970, inclusive."""
    until: int | None = None
    """Microseconds since 1970, exclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedHead:
    """The end of the audit log as the store keeps it: the newest entry's place, its digest, and the seal over both."""

    seq: int
    digest: bytes
    seal: bytes


class Snapshot(Protocol):
    """Reads of one consistent state of the store."""

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        """Return the matching records, by row.

        Archived records may come after the others, with their vector in half precision and new rows. Archived messages,
        however, keep their rows and their order. The time to read a page of one session's messages depends on the page
        and the offset, not on the session, unless `archived` is None.
        """
        ...

    def count(self, query: RecordQuery) -> int:
        """Return the number of matching records, whatever the limit and the offset."""
        ...

    def version(self, user: str) -> int:
        """Return a number that rises with each change of the user's records or shared scores; 0 for an unknown user."""
        ...

    def removed_rows(self, user: str, since: int) -> list[int] | None:
        """Return the rows that were removed or archived after a version.

        None, only allowed after more than 1,000 such rows, makes readers read all records again.
        """
        ...

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        """Return fields of the matching records: each combination once, by row if `row` is one of the fields."""
        ...

    def users(self) -> list[str]:
        """Return the keys of all users that have a record, archived or not, sorted."""
        ...

    def shared_scores(self, user: str) -> dict[str, SharedScore]:
        """Return a user's scores of shared records, by record id."""
        ...

    def names(self, user: str | None) -> Iterator[tuple[str, str]]:
        """Return users and ids of records that the log names by keyed hashes, as far as they are known.

        Each is a pair of a user's key and the id of one of the user's records; empty for the user alone. None asks for
        all users. A store without a `names_key` returns nothing.
        """
        ...

    def entries(self, query: EventQuery) -> Iterator[AuditRow]:
        """Return the matching entries of the audit log, oldest first; undecodable bytes as surrogate escapes."""
        ...

    def head(self) -> SealedHead | None:
        """Return the end of the audit log; None if it was never written, or is missing."""
        ...

    def setting(self, name: str) -> str | None:
        """Return the value of a setting; None if it isn't set."""
        ...


class Transaction(Snapshot, Protocol):
    """Changes that take effect together or not at all. One transaction runs at a time; its reads see its writes."""

    def put(self, user: str, stored: StoredRecord) -> None:
        """Write a record, in place of the one with its id.

        A new record gets a row above all rows ever given, even those of removed records. Overwriting an active record
        or a message keeps its row.
        """
        ...

    def remove(self, user: str, record_id: str) -> bool:
        """Remove a record. Return whether it existed.

        With the user `""`, the record is a shared one: remove all users' scores of it, too.
        """
        ...

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        """Set `touched_at` of active records, unless it is later; the user's version stays."""
        ...

    def put_shared_score(self, user: str, record_id: str, score: SharedScore | None) -> None:
        """Write a user's score of a shared record; None removes it."""
        ...

    def has_damaged_key(self, user: str) -> bool:
        """Return whether something is stored of a user whose key can't be read. A store without keys returns False."""
        ...

    def forget_user(self, user: str) -> None:
        """Forget the name of a user when the transaction ends, if nothing of the user is stored then."""
        ...

    def append(self, entries: Iterable[AuditRow], head: SealedHead) -> None:
        """Add entries at the end of the audit log, and replace its head."""
        ...

    def put_setting(self, name: str, value: str) -> None:
        """Write a setting."""
        ...


class MemoryStore(Protocol):
    """A back end of a memory. Safe to share between threads."""

    @property
    def name(self) -> str:
        """The name of the store in error messages, such as its file."""
        ...

    @property
    def names_key(self) -> bytes | None:
        """A secret by which the log names users and records; None if it names them as they are."""
        ...

    def reading(self) -> AbstractContextManager[Snapshot]:
        """Read one consistent state.

        Raises:
            StorageError: the store is closed, or can't be read.
        """
        ...

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Write: commit when the block ends, roll back when it raises.

        Args:
            durable: whether the commit must survive a power cut; it survives a killed process in any case.

        Raises:
            StoreBusyError: another writer held the store for too long.
            StorageError: the store is closed, or can't be written.
        """
        ...

    def size(self) -> int:
        """Return the size of the store in bytes."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
