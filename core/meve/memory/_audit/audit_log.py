"""The audit log as its readers see it: what is remembered and why, what went and why, what an answer used and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from meve.clock import Clock
from meve.errors import ValidationError
from meve.memory._audit.chain import Action, AuditEvent, Head, Verification
from meve.memory._timestamps import ago, checked_moment, to_micros
from meve.memory.records import UserId, checked_choice, checked_text, user_key
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import EventQuery


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Append-only; an entry is written in the same transaction as what it tells of. Holds ids, and no content."""

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
        """Entries that match, oldest first.

        Args:
            user_id: whose; None for everybody's.
            record_id: of which record.
            action: one of `meve.memory._audit.chain.Action`, or several.
            since: a moment, or how long ago.
            until: before then.

        Raises:
            ValidationError: a user, an id or an action that can't be, or a moment without a time zone.
        """
        asked = [action] if isinstance(action, str) or not isinstance(action, Sequence | None) else list(action or ())
        actions = [checked_choice(each, "action", Action) for each in asked]
        return list(
            self.store.events(
                EventQuery(
                    user=None if user_id is None else user_key(user_id),
                    record=None if record_id is None else checked_text(record_id, "record_id"),
                    actions=actions,
                    since=self._micros(since),
                    until=None if until is None else to_micros(checked_moment(until, "until")),
                )
            )
        )

    def head(self) -> Head:
        """The newest entry: keep it elsewhere, and `verify` against it later, to see that nothing was cut off."""
        return self.store.head()

    def verify(self, head: Head | None = None) -> Verification:
        """Whether every entry is there, in its place, as it was written; if not, from which on.

        Without a key this shows accidents only: who can write the file can write the chain anew.

        Args:
            head: what `head()` told earlier.

        Raises:
            ValidationError: no head.
        """
        if head is not None and not isinstance(head, Head):
            raise ValidationError(f"{head!r:.60} is no head: give what head() told")
        return self.store.verify(head)

    def _micros(self, since: timedelta | datetime | None) -> int | None:
        if isinstance(since, timedelta):
            moment = ago(self.clock.now(), since, "since")
        else:
            moment = None if since is None else checked_moment(since, "since")
        return None if moment is None else to_micros(moment)
