"""The file of bearer tokens: the hash of each, whose it is, and whether it may only read."""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from meve._fork_safety import ForkSafeLock
from meve._json_limits import parse_json
from meve._private_files import is_private, replace_private
from meve.errors import ConfigurationError, DuplicateIdError, UnknownIdError
from meve.memory.records import NAME_LENGTH, UserId, check_text, user_key
from meve.service._web.bearer_tokens import hash_token, make_token

_LOG = logging.getLogger("meve.serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a bearer token permits."""

    name: str
    """Names the token in lists; not secret."""
    user: UserId
    read_only: bool
    hash: str
    created: float
    """Seconds since 1970 in UTC."""
    may_inspect: bool = False
    """Whether it permits the inspector to show and change all of the user's memory."""


class TokenFile:
    """Reads and changes a file of tokens, which only its owner may read. Safe to share between threads and processes.

    A change counts from the next request on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = ForkSafeLock()
        self._read: tuple[object, dict[str, Grant]] | None = None

    def grant(
        self, user: UserId, *, read_only: bool = False, may_inspect: bool = False, name: str | None = None
    ) -> str:
        """Create a token, and return it; only its hash is stored. The file is created if it is missing.

        Raises:
            DuplicateIdError: the name is taken.
            ValidationError: an invalid user or name.
            ConfigurationError: the file can't be used.
        """
        user_key(user)
        token = make_token("mvs")
        hashed = hash_token(token)
        name = f"{user}-{hashed[:6]}" if name is None else check_text(name, "name", NAME_LENGTH)
        grant = Grant(
            name=name, user=user, read_only=read_only, may_inspect=may_inspect, hash=hashed, created=time.time()
        )
        with self._changing():
            grants = self.grants() if self.path.exists() else []
            if any(each.name == name for each in grants):
                raise DuplicateIdError(f"there is a token {name!r:.80} already: choose another name")
            self._write([*grants, grant])
        return token

    def revoke(self, name: str) -> None:
        """Remove a token; requests with it are refused from now on.

        Raises:
            UnknownIdError: no token has this name.
            ConfigurationError: the file can't be used.
        """
        with self._changing():
            grants = self.grants()
            if name not in (each.name for each in grants):
                raise UnknownIdError(f"there is no token {name!r:.80}: `meve serve tokens` lists them")
            self._write([each for each in grants if each.name != name])

    def grants(self) -> list[Grant]:
        """Return what each token permits, by age.

        Raises:
            ConfigurationError: there is no file, it has another format, or others than its owner may read it.
        """
        return list(self._load().values())

    def authenticate(self, token: str) -> Grant | None:
        """Return what a token permits; None if it is unknown. If the file can't be used, no token is known."""
        try:
            return self._load().get(hash_token(token))
        except ConfigurationError as error:
            _LOG.error("every token is refused: %s", error)
            return None

    def _load(self) -> dict[str, Grant]:
        try:
            with self._lock, self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                version = status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode
                if self._read is None or self._read[0] != version:
                    if not is_private(file.fileno()):
                        raise ConfigurationError(f"{self.path} may be read by others: chmod 600 {self.path}")
                    self._read = version, _parse(file.read(), self.path)
                return self._read[1]
        except FileNotFoundError:
            raise ConfigurationError(
                f"there is no token file {self.path}: `meve serve grant --tokens {self.path} --user NAME` makes one"
            ) from None
        except OSError as cause:
            raise ConfigurationError(f"the token file {self.path} can't be read: {type(cause).__name__}") from cause

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if not self.path.absolute().parent.is_dir():
            raise ConfigurationError(f"there is no folder {self.path.absolute().parent} for the token file")
        try:
            with FileLock(self.path.with_name(f"{self.path.name}.lock"), timeout=10):
                yield
        except OSError as cause:
            raise ConfigurationError(f"the token file {self.path} can't be written: {cause}") from cause

    def _write(self, grants: list[Grant]) -> None:
        replace_private(self.path, json.dumps({"tokens": [asdict(each) for each in grants]}, indent=1) + "\n")


def _parse(content: bytes, path: Path) -> dict[str, Grant]:
    try:
        grants = [Grant(**row) for row in parse_json(content)["tokens"]]
        for each in grants:
            user_key(each.user)
            if {type(each.read_only), type(each.may_inspect)} != {bool} or {type(each.name), type(each.hash)} != {str}:
                raise ValueError("another type")
    except (ValueError, TypeError, KeyError):
        raise ConfigurationError(f"{path} is no token file: `meve serve grant` makes one") from None
    return {each.hash: each for each in grants}
