"""Reads and verifies the audit log: which memories were added, used, changed and removed, when and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from meve.clock import Clock
from meve.errors import AuditError, ValidationError
from meve.memory._audit.certificate import (
    CertificateCheck,
    ErasureCertificate,
    ErasureFinder,
    check,
    choose_signer,
    describe_planted,
    user_of_certificate,
    wants_entries_of,
)
from meve.memory._audit.chain import Action, AuditEvent, AuditHead, AuditVerification
from meve.memory._audit.checkpoints import PublicKeys, read_checkpoints
from meve.memory._timestamps import ago, check_moment, to_micros
from meve.memory.records import UserId, check_choice, check_ids, check_text, user_key
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
                `release`, `archive`, `restore`, `supersede` and `reembed`.
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

    def verify(
        self,
        head: AuditHead | None = None,
        *,
        checkpoints: str | Path | None = None,
        public_key: PublicKeys | None = None,
    ) -> AuditVerification:
        """Check that every entry is in its place and unchanged, and every record as the newest entry on it says.

        Without an audit key this shows accidents only: whoever can write the file can recompute the chain. Records are
        compared only with a key. It reads the log and all records once.

        Args:
            head: what `head()` returned earlier.
            checkpoints: the file to which maintenance wrote signed checkpoints; the log must go through each of them.
            public_key: one or several keys that verify their signatures.

        Raises:
            ValidationError: not a head, or only one of `checkpoints` and `public_key`.
            AuditError: the file can't be read, or holds anything but checkpoints of these keys, in their order.
            ConfigurationError: an invalid key.
        """
        if head is not None and not isinstance(head, AuditHead):
            raise ValidationError(f"head must be what head() returned, got {head!r:.60}")
        if (checkpoints is None) != (public_key is None):
            raise ValidationError("checkpoints and public_key must be given together")
        if checkpoints is None or public_key is None:
            return self.store.verify(head)
        return self.store.verify(head, read_checkpoints(checkpoints, public_key))

    def certificate(
        self,
        *,
        user_id: UserId,
        record_ids: Iterable[str] | None = None,
        since: timedelta | datetime | None = None,
        until: datetime | None = None,
        key: bytes | None = None,
    ) -> ErasureCertificate:
        """Certify which records of a user were erased: ids, kinds and times, but no text, and nothing of other users.

        Args:
            user_id: the owner.
            record_ids: certify only the erasures of these; None for all.
            since: a moment, or a time before now; inclusive.
            until: a moment; exclusive.
            key: signs the certificate, 16 bytes or more; None for the audit key, if there is one.

        Raises:
            ValidationError: an argument is invalid, or the log doesn't show the erasure of one of `record_ids`.
            AuditError: the log isn't intact, or an erased record was put back behind it.
        """
        user, chain = user_key(user_id), self.store.chain
        signing = choose_signer(key, chain)
        ids = None if record_ids is None else set(check_ids(record_ids, "record_ids"))
        begin, end = self._to_micros(since), None if until is None else to_micros(check_moment(until, "until"))
        users = (user, chain.pseudonym(user))
        wanted = None if ids is None else ids | {chain.record_name(user, each) for each in ids}
        finder = ErasureFinder(
            chain,
            lambda row: (
                row.user in users
                and (wanted is None or row.record in wanted)
                and (begin is None or row.at >= begin)
                and (end is None or row.at < end)
            ),
        )
        result, planted = self.store.verify_erasures(finder.follow, [user])
        if not result.ok:
            raise AuditError(f"nothing can be certified: {result.problem}")
        if problems := describe_planted(planted, finder.entries, chain, user):
            raise AuditError(f"nothing can be certified: {'; '.join(problems)}")
        entries = self.store.with_ids(finder.entries, user, ids or ())
        for each in sorted((ids or set()) - {entry.record_id for entry in entries}):
            raise ValidationError(f"record_ids names {each!r:.80}, whose erasure the log doesn't show: delete it first")
        return ErasureCertificate(
            user_id=users[1] if chain.pseudonyms else user_id,
            issued_at=self.clock.now(),
            entries=tuple(entries),
            head=finder.head,
        ).signed(signing)

    def check_certificate(self, certificate: ErasureCertificate, *, key: bytes | None = None) -> CertificateCheck:
        """Check the signature, and that the log still contains all that a certificate says.

        The check also fails if an erased record was put back behind the log. With an audit key, it fails for any record
        of the user that was added behind the log, also under another id.

        Args:
            certificate: what `certificate` returned, or `ErasureCertificate.from_dict` read.
            key: the key that signed it; None for the audit key, if there is one.

        Raises:
            ValidationError: an argument is invalid.
        """
        if not isinstance(certificate, ErasureCertificate):
            raise ValidationError(f"certificate must be what certificate() returned, got {certificate!r:.60}")
        signing = choose_signer(key, self.store.chain)
        wanted = wants_entries_of(certificate, self.store.chain)
        finder = ErasureFinder(self.store.chain, wanted, until=certificate.head)
        user, chain = user_of_certificate(certificate), self.store.chain
        users = {user_key(certificate.user_id), user}
        log, planted = self.store.verify_erasures(finder.follow, users)
        problems = describe_planted(planted, certificate.entries, chain, user)
        return check(certificate, signing, chain, finder, log, problems)

    def _to_micros(self, since: timedelta | datetime | None) -> int | None:
        if isinstance(since, timedelta):
            moment = ago(self.clock.now(), since, "since")
        else:
            moment = None if since is None else check_moment(since, "since")
        return None if moment is None else to_micros(moment)
