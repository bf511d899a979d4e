"""What a memory needs of a store. Every row and every question is keyed by user, so that tables can be split by it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from meve.memory._audit.chain import AuditEvent, AuditHead, AuditVerification, EventDraft
from meve.memory.records import Message, Opinion, StoredRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What became of a user's records since a version."""

    version: int
    """The user's, now: rises with every change of the user's records."""
    whole: bool
    """Whether these are all records there are, since what is gone since that version isn't known any more."""
    records: Sequence[tuple[int, StoredRecord]]
    """New and changed ones, by row; a row is never used again."""
    gone: Sequence[int]
    """Rows that aren't there any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is."""

    records: int
    archived: int
    users: int
    """That have a record, archived or not; the shared space is none."""
    events: int
    bytes: int
    """Of the store's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which messages of a session. A place is a number that rises from each message that is added to the next."""

    session: str
    archived: bool | None = False
    """Only those that are put away, or only the others; None for either."""
    after: int | None = None
    """Only those of a place above this one."""
    before: int | None = None
    """Only those of a place below this one."""
    limit: int | None = None
    """How many at most; None for all."""
    offset: int = 0
    """How many are passed over."""
    ids: tuple[str, ...] | None = None
    """Only these; None for any."""
    newest: bool = False
    """Whether limit and offset count from the newest one back."""


class Transaction(Protocol):
    """Changes that become true together with their entries in the log, or not at all. Alone while it lasts."""

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        """One record that isn't archived, by its user's key and its id."""
        ...

    def records(self, user: str) -> list[StoredRecord]:
        """All of a user that aren't archived, by id."""
        ...

    def insert(self, user: str, stored: StoredRecord) -> None:
        """A new record.

        Raises:
            DuplicateIdError: the user has one of that id, archived or not.
        """
        ...

    def replace(self, user: str, stored: StoredRecord) -> None:
        """The record of that id becomes this one."""
        ...

    def erase(self, user: str, record_id: str) -> bool:
        """Nothing is left of the record, archived or not; whether there was one."""
        ...

    def archive(self, user: str, stored: StoredRecord) -> None:
        """The record is compressed, and out of every index."""
        ...

    def archived(self, user: str, record_id: str) -> StoredRecord | None:
        """One archived record."""
        ...

    def all_archived(self, user: str) -> list[StoredRecord]:
        """All archived records of a user, by id."""
        ...

    def holding(self, user: str, *record_ids: str) -> list[StoredRecord]:
        """The records of these ids, and those that were merged or summarised from one; archived or not."""
        ...

    def messages(self, user: str, stretch: Stretch, now: datetime) -> list[tuple[int, StoredRecord]]:
        """Messages that aren't expired, with their places, in the order in which they were added."""
        ...

    def forget_opinions(self, user: str) -> None:
        """Nothing is left of what a user's answers made of shared records."""
        ...

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        """These were recalled then. No change that readers must hear of."""
        ...

    def opinion(self, user: str, record_id: str) -> Opinion | None:
        """What a user's answers made of a shared record."""
        ...

    def rate(self, user: str, record_id: str, opinion: Opinion) -> None:
        """A user's opinion of a shared record becomes this one."""
        ...

    def log(self, *events: EventDraft) -> None:
        """Entries for the log, in this order."""
        ...


class MemoryStore(Protocol):
    """Keeps records and their log. Safe to share between threads."""

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """A transaction: kept when the block ends, undone when it raises.

        Args:
            durable: whether it must survive a power cut; a process that is killed loses nothing either way.

        Raises:
            StoreBusyError: others held the store for too long.
            StorageError: it can't be written.
        """
        ...

    def version(self, user: str) -> int:
        """Rises with every change of the user's records; 0 for one who has none."""
        ...

    def changes(self, user: str, since: int) -> Changes:
        """What became of a user's records since a version."""
        ...

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        """One record, archived or not."""
        ...

    def touched(self, user: str, record_ids: Sequence[str]) -> dict[str, datetime]:
        """When those of a user's records that were recalled were last, by id: `changes` doesn't tell of recalls."""
        ...

    def messages(self, user: str, stretch: Stretch, now: datetime) -> list[Message]:
        """Messages that aren't expired, in the order in which they were added.

        What a page costs grows with what stands on it and is passed over, and not with the session, unless `archived`
        is None.
        """
        ...

    def count_messages(self, user: str, stretch: Stretch, now: datetime) -> int:
        """How many messages that aren't expired a session holds there, whatever the limit and the offset."""
        ...

    def sessions(self, user: str, now: datetime) -> list[str]:
        """A user's sessions that hold a message that isn't expired, sorted."""
        ...

    def opinions(self, user: str) -> dict[str, Opinion]:
        """What a user's answers made of shared records, by id."""
        ...

    def archived(self, user: str) -> list[StoredRecord]:
        """A user's archived records, by id."""
        ...

    def users(self) -> list[str]:
        """The keys of all users that have a record."""
        ...

    def expired(self, now: datetime, most: int) -> list[tuple[str, str]]:
        """At most so many records whose time is over and that no hold keeps, as (user's key, id)."""
        ...

    def events(
        self,
        *,
        user: str | None = None,
        record: str | None = None,
        actions: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditEvent]:
        """The log's entries that match, oldest first."""
        ...

    def head(self) -> AuditHead:
        """The newest entry."""
        ...

    def verify(self, kept: AuditHead | None = None) -> AuditVerification:
        """Hold the log against itself, and against a head that was kept elsewhere."""
        ...

    def scrub(self) -> bool:
        """Make sure that no file holds what was erased; False while others read, or the disk is full."""
        ...

    def claim_embedder(self, name: str, dimension: int) -> None:
        """Note by which model vectors are made, if it isn't noted yet.

        Raises:
            IndexMismatchError: the store's vectors are another model's.
        """
        ...

    def counts(self) -> Counts:
        """How much there is."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...
