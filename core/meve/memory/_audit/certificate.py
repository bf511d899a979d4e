"""Erasure certificates: which records of a user were erased, when, and where the log says so. They hold no text."""

import hmac
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from meve.errors import ValidationError
from meve.memory._audit.chain import (
    PSEUDONYM,
    Action,
    AuditChain,
    AuditRow,
    AuditVerification,
)
from meve.memory._timestamps import check_moment, from_micros
from meve.memory.records import UserId, user_key

_ALWAYS_ERASE = ("delete", "expire")
"""Actions that are erasures in logs of older versions, too, whose entries don't say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureEntry:
    """The erasure of one record, as the audit log says."""

    place: str
    """A keyed hash that names the entry in the log; it tells nothing of other entries, nor how many there are."""
    at: datetime
    record_id: str
    """Its id; the keyed hash that the log holds, if nobody knows the id any more."""
    kind: str
    """`fact`, `item`, `message` or `summary`; empty in the log of an older version."""
    action: Action
    """`delete`, `expire` or `prune`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCertificate:
    """The erasures of a user's records. `AuditLog.certificate` issues it; `AuditLog.check_certificate` checks it."""

    user_id: UserId
    """The user; a pseudonym if the policy lets the log hold pseudonyms."""
    issued_at: datetime
    entries: tuple[ErasureEntry, ...]
    """The erasures, oldest first."""
    head: str
    """The place of the newest entry of the log when the certificate was issued; empty for an empty log."""
    signature: str = ""
    """The HMAC-SHA-256 of all other values, in hexadecimal; empty without a key."""

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of erased records of each kind."""
        return dict(sorted(Counter(entry.kind for entry in self.entries).items()))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data that `from_dict` reads."""
        data = asdict(self)
        entries = [{**asdict(entry), "at": entry.at.isoformat()} for entry in self.entries]
        return {**data, "issued_at": self.issued_at.isoformat(), "entries": entries, "counts": self.counts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned; `counts` follow from the entries.

        Raises:
            ValidationError: it isn't a certificate.
        """
        try:
            return cls(
                user_id=data["user_id"],
                issued_at=_moment(data["issued_at"]),
                entries=tuple(ErasureEntry(**{**entry, "at": _moment(entry["at"])}) for entry in data["entries"]),
                head=str(data["head"]),
                signature=data["signature"],
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise ValidationError(f"data must be what ErasureCertificate.to_dict returned: {cause}") from cause

    def signed(self, chain: AuditChain) -> Self:
        """Return it with the signature of a chain's key; without a key, unsigned."""
        return replace(self, signature=_sign(self, chain))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateCheck:
    """The result of checking a certificate against the log."""

    ok: bool
    signed: bool
    """True if there was a key to check the signature with."""
    problems: tuple[str, ...] = ()


def choose_signer(key: bytes | None, chain: AuditChain) -> AuditChain:
    """Return the chain that signs certificates: with a key of its own, or else that of the log.

    Raises:
        ValidationError: the key is too short.
    """
    if key is None:
        return chain
    if not isinstance(key, bytes) or len(key) < 16:
        raise ValidationError("key must be at least 16 bytes: give 32 random bytes")
    return AuditChain(key)


@dataclass(slots=True)
class ErasureFinder:
    """Finds erasures, and the newest entry, while the log is verified."""

    chain: AuditChain
    is_wanted: Callable[[AuditRow], bool]
    until: str | None = None
    """The place of the last entry to look at; None for all."""
    entries: list[ErasureEntry] = field(default_factory=list)
    is_done: bool = False
    """Whether that entry was met."""
    _newest: AuditRow | None = None

    @property
    def head(self) -> str:
        """Return the place of the newest entry; empty if there is none."""
        return "" if self._newest is None else self._place(self._newest)

    def follow(self, rows: Iterable[AuditRow]) -> Iterator[AuditRow]:
        """Yield each entry, and note it once the reader has verified it and asks for the next."""
        for row in rows:
            yield row
            self._newest = row
            if self.is_done or self.until == "":
                continue
            self._note(row)
            self.is_done = self.until is not None and self.until == self._place(row)

    def _note(self, row: AuditRow) -> None:
        if not self.is_wanted(row):
            return
        kind = json.loads(row.detail).get("erased")
        if kind is not None or row.action in _ALWAYS_ERASE:
            at = from_micros(row.at)
            self.entries.append(
                ErasureEntry(place=self._place(row), at=at, record_id=row.record, kind=kind or "", action=row.action)
            )

    def _place(self, row: AuditRow) -> str:
        return self.chain.place(row.seq, row.digest.hex())


def wants_entries_of(certificate: ErasureCertificate, chain: AuditChain) -> Callable[[AuditRow], bool]:
    """Return whether an entry of the log stands in a certificate, and is of its user."""
    users = {chain.pseudonym(user_key(certificate.user_id)), certificate.user_id}
    places = {entry.place for entry in certificate.entries}
    return lambda row: chain.pseudonym(row.user) in users and chain.place(row.seq, row.digest.hex()) in places


def describe_planted(
    planted: Iterable[str], entries: Sequence[ErasureEntry], chain: AuditChain, user: str
) -> list[str]:
    """Return a problem for each record that was put back behind the log.

    Args:
        planted: the ids of the user's records that the log doesn't know.
        entries: the erasures.
        chain: of the log. With a key, it knows every record; if not, only erased ids are compared.
        user: the user's key.
    """
    erased = {chain.record_name(user, entry.record_id) for entry in entries}
    return [
        f"record {each!r:.80} is stored, and the log doesn't show that it was added"
        for each in sorted(planted)
        if chain.keyed or chain.record_name(user, each) in erased
    ]


def user_of_certificate(certificate: ErasureCertificate) -> str:
    """Return the key of the user of a certificate, or the pseudonym."""
    name = str(certificate.user_id)
    return name if name.startswith(PSEUDONYM) else user_key(certificate.user_id)


def check(
    certificate: ErasureCertificate,
    signing: AuditChain,
    chain: AuditChain,
    found: ErasureFinder,
    log: AuditVerification,
    planted: Sequence[str] = (),
) -> CertificateCheck:
    """Check the signature of a certificate, and its entries.

    Args:
        certificate: the certificate.
        signing: has the key.
        chain: of the log.
        found: what the log holds at the places of the certificate.
        log: the verification of the log.
        planted: problems with records that were put back behind the log.
    """
    problems = [*planted] if log.ok else [log.problem]
    if signing.keyed and not hmac.compare_digest(certificate.signature.encode(), _sign(certificate, signing).encode()):
        problems.append("the signature isn't that of this certificate and this key")
    if certificate.signature and not signing.keyed:
        problems.append("the certificate is signed: give its key")
    if log.ok and certificate.head and not found.is_done:
        problems.append("the log lacks the entry that was its newest when the certificate was issued")
    user = user_of_certificate(certificate)

    def as_logged(entry: ErasureEntry) -> ErasureEntry:
        return replace(entry, record_id=chain.record_name(user, entry.record_id))

    by_place = {entry.place: as_logged(entry) for entry in found.entries}
    missing = [each.record_id for each in certificate.entries if by_place.get(each.place) != as_logged(each)]
    problems += [f"the log doesn't hold this erasure of {each!r:.80}" for each in missing]
    return CertificateCheck(ok=not problems, signed=signing.keyed, problems=tuple(problems))


def _sign(certificate: ErasureCertificate, chain: AuditChain) -> str:
    body = {**certificate.to_dict(), "signature": ""}
    return chain.mac("certificate", json.dumps(body, sort_keys=True)) if chain.keyed else ""


def _moment(text: Any) -> datetime:  # noqa: ANN401
    return check_moment(datetime.fromisoformat(text), "a time of the certificate")
