"""Signed checkpoints: heads of the audit log that are written elsewhere, and that the log must still go through.

Whoever has the audit key can write another log. He can't sign its checkpoints, since their key is another one.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from meve._fork_safety import ForkSafeLock
from meve._json_limits import parse_json
from meve._private_files import create_private
from meve.errors import AuditError, ConfigurationError
from meve.memory._audit.chain import AuditHead, AuditRow, AuditVerification
from meve.signing_keys import SigningKey, VerifyingKey, decode, encode, index_keys

PublicKeys: TypeAlias = VerifyingKey | Iterable[VerifyingKey]
_FIELDS = {"position": int, "digest": str, "at": str, "key": str, "signature": str}
_WAIT_SECONDS = 60.0
"""The longest wait for other processes that write to the same file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Where `maintain` writes a signed checkpoint of the audit log, and the key that signs it.

    Raises:
        ConfigurationError: neither a path nor a function, or no Ed25519 key.
    """

    to: Path | str | Callable[[str], object]
    """A file, to which a line is appended and synced; or a function that gets the line and keeps it elsewhere."""
    key: SigningKey
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.to, str | Path) and not callable(self.to):
            raise ConfigurationError(f"to must be the path of a file, or a function of a line, got {self.to!r:.80}")
        if not isinstance(self.key, SigningKey) or self.key.algorithm != "ed25519":
            raise ConfigurationError(
                "key must be a SigningKey of ed25519, since whoever verifies mustn't be able to sign"
            )
        if not callable(self.to):
            object.__setattr__(self, "to", Path(self.to).absolute())

    def write(self, head: Callable[[], AuditHead], now: Callable[[], datetime]) -> None:
        """Sign the head of the log, and write it.

        Args:
            head: returns the head; called while no other process writes to the file, so that lines stand in order.
            now: returns the time.

        Raises:
            AuditError: the checkpoint can't be written.
        """
        try:
            with self._lock, self._file_lock():
                line = _sign(head(), now(), self.key)
                if callable(self.to):
                    self.to(line)
                else:
                    _append(Path(self.to), line)
        except Exception as cause:
            raise AuditError(
                f"maintenance is done, but its checkpoint of the audit log wasn't written: {type(cause).__name__}: "
                f"{cause}; maintain again when this is mended"
            ) from cause

    def _file_lock(self) -> AbstractContextManager[object]:
        if callable(self.to):
            return nullcontext()
        Path(self.to).parent.stat()  # FileLock would make a missing folder, such as that of an unmounted disk
        return FileLock(f"{self.to}.lock", _WAIT_SECONDS)


@dataclass(frozen=True, slots=True)
class SignedHeads:
    """The heads of verified checkpoints, compared with a log while it is verified."""

    digests: Mapping[int, str] = field(default_factory=dict)
    """By position in the log, the digest of its entry."""
    count: int = 0
    """Number of checkpoints."""
    _found: dict[int, str] = field(default_factory=dict)

    def follow(self, rows: Iterable[AuditRow]) -> Iterator[AuditRow]:
        """Yield each entry, and note its digest if a checkpoint covers it."""
        for row in rows:
            if row.seq in self.digests:
                self._found[row.seq] = row.digest.hex()
            yield row

    def compare(self, result: AuditVerification) -> AuditVerification:
        """Return the verification of the log that was followed; not ok if a checkpoint contradicts it."""
        if not result.ok:
            return result
        for seq, digest in sorted(self.digests.items()):
            if self._found.get(seq) != digest:
                count, is_short = min(seq - 1, result.events), seq > result.events
                problem = (
                    f"the log has {result.events} entries, and a signed checkpoint covers {seq}: the end is missing"
                    if is_short
                    else f"entry {seq} differs from a signed checkpoint: the log was rewritten"
                )
                return replace(result, ok=False, events=count, broken_at=count + 1, problem=problem)
        return replace(result, checkpoints=self.count)


def read_checkpoints(file: str | Path, keys: PublicKeys) -> SignedHeads:
    """Return the heads of all checkpoints in a file.

    Args:
        file: one checkpoint a line; a line that was never completed is skipped.
        keys: one of them must have signed each checkpoint.

    Raises:
        AuditError: the file can't be read, is empty, or holds anything but checkpoints of these keys in their order.
        ConfigurationError: the keys are invalid.
    """
    by_id = index_keys([keys] if isinstance(keys, VerifyingKey) else keys)
    if any(key.algorithm != "ed25519" for key in by_id.values()):
        raise ConfigurationError("public_key must be of ed25519, since whoever verifies mustn't be able to sign")
    digests: dict[int, str] = {}
    count = last = 0
    for number, line in _complete_lines(Path(file)):
        where = f"line {number} of {file}"
        head = _check(line, by_id, where)
        if head.seq < last:
            raise AuditError(f"{where} isn't in its place: it covers {head.seq} entries, and a line before it {last}")
        if digests.setdefault(head.seq, head.digest) != head.digest:
            raise AuditError(f"{where} contradicts the line before it: both cover {head.seq} entries")
        count, last = count + 1, head.seq
    if not count:
        raise AuditError(f"{file} holds no checkpoint: name the file to which maintenance wrote them")
    digests.pop(0, None)  # an empty log
    return SignedHeads(digests, count)


def _sign(head: AuditHead, at: datetime, key: SigningKey) -> str:
    data = {"position": head.seq, "digest": head.digest, "at": at.isoformat(), "key": key.id}
    return json.dumps({**data, "signature": encode(key.sign(_message(data)))})


def _message(data: Mapping[str, object]) -> bytes:
    """Return what the signature covers; it begins unlike anything else that such a key signs."""
    return ("meve-checkpoint-1\n" + json.dumps([data[name] for name in _FIELDS if name != "signature"])).encode()


def _check(line: str, keys: Mapping[str, VerifyingKey], where: str) -> AuditHead:
    """Return the head of a checkpoint, if one of the keys signed it."""
    try:
        data = parse_json(line)
        if set(data) != set(_FIELDS) or not all(type(data[name]) is kind for name, kind in _FIELDS.items()):
            raise ValueError("other fields")
        signature = decode(data["signature"])
    except (TypeError, ValueError) as cause:
        raise AuditError(f"{where} is no checkpoint") from cause
    key = keys.get(data["key"])
    if key is None:
        raise AuditError(f"{where} names the key {data['key']!r:.80}, and you gave {', '.join(keys)}")
    if not key.verify(_message(data), signature):
        raise AuditError(f"{where} isn't signed with the key {key.id}: it was forged or altered")
    return AuditHead(seq=data["position"], digest=data["digest"])


def _complete_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as cause:
        raise AuditError(f"the checkpoints {file} can't be read: {type(cause).__name__}: {cause}") from cause
    return ((number, line) for number, line in enumerate(lines, start=1) if line.endswith("}"))


def _append(file: Path, line: str) -> None:
    """Append a line and sync it. What a stopped process left without an end becomes a line of its own."""
    create_private(file)
    with file.open("ab+") as stream:
        if end := stream.seek(0, os.SEEK_END):
            stream.seek(end - 1)
            line = line if stream.read(1) == b"\n" else f"\n{line}"
        stream.write(f"{line}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())
