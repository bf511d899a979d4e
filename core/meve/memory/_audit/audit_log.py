"""Reads and verifies the audit log: which memories were added, used, changed and removed, when and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from meve.clock import Clock
from meve.errors import ValidationError
from meve.memory._audit.chain import Action, AuditEvent, AuditHead, AuditVerification
from meve.memory._timestamps import ago, check_moment, to_micros
from meve.memory.records import UserId, check_choice, check_text, user_key
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import EventQuery


@dataclass(frozen=True, slots=True)
class AuditLog:
    """An append-only log. Each entry is written in the transaction of its change and holds ids, but no content."""

    store: RecordStore
    clock: Clock

    def events(
        self,
        *,
        user_id: UserId | None = None,
        record_id: str | None = None,
        action: Action | Sequence[Action] | None = None,
        since: timedelta | datetime | None = None,
        until: datetime | None = None,
    ) -> list[AuditEvent]:
        """Return the entries that match, oldest first.

        Args:
            user_id: owner of the records; None for all users.
            record_id: a record.
            action: one or several of `add`, `retrieve`, `use`, `update`, `expire`, `prune`, `merge`, `delete`, `hold`,
                `release`, `archive`, `restore` and `supersede`.
            since: a moment, or a time before now; inclusive.
            until: a moment; exclusive.

        Raises:
            ValidationError: an invalid user, id or action, or a moment without a time zone.
        """
        actions = [action] if isinstance(action, str) or not isinstance(action, Sequence | None) else list(action or ())
        return list(
            self.store.events(
                EventQuery(
                    user=None if user_id is None else user_key(user_id),
                    record=None if record_id is None else check_text(record_id, "record_id"),
                    actions=[check_choice(each, "action", Action) for each in actions],
                    since=self._to_micros(since),
                    until=None if until is None else to_micros(check_moment(until, "until")),
                )
            )
        )

    def head(self) -> AuditHead:
        """Return the head of the log. Keep it elsewhere, and pass it to `verify` to detect that the end was removed."""
        return self.store.head()

    def verify(self, head: AuditHead | None = None) -> AuditVerification:
        """Check that every entry is in its place and unchanged.

        Without an audit key this shows accidents only: whoever can write the file can recompute the chain.

        Args:
            head: what `head()` returned earlier.

        Raises:
            ValidationError: not a head.
        """
        if head is not None and not isinstance(head, AuditHead):
            raise ValidationError(f"head must be what head() returned, got {head!r:.60}")
        return self.store.verify(head)

    def _to_micros(self, since: timedelta | datetime | None) -> int | None:
        if isinstance(since, timedelta):
            moment = ago(self.clock.now(), since, "since")
        else:
            moment = None if since is None else check_moment(since, "since")
        return None if moment is None else to_micros(moment)
