"""Keys that sign slices and checkpoints, and keys that verify them; each has an id, by which keys are rotated."""

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from meve._json_limits import parse_json
from meve._private_files import is_private
from meve.errors import ConfigurationError, UnknownIdError

Algorithm: TypeAlias = Literal["ed25519", "hmac-sha256"]
"""`ed25519`: verifiers hold a public key and can't sign. `hmac-sha256`, as published: they hold the secret, and can."""

ENVIRONMENT = "MEVE_KERNEL_KEYS"
"""The environment variable that may hold the signing keys, as the JSON of a key file."""

_Key = TypeVar("_Key", "SigningKey", "VerifyingKey")

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_BYTES = 32
SIGNATURE_BYTES: Mapping[str, int] = {"ed25519": 64, "hmac-sha256": 32}


def encode(data: bytes) -> str:
    """Return bytes as base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Return the bytes of `encode`.

    Raises:
        ValueError: anything that `encode` doesn't return, such as padding, line breaks or other last bits.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text, re.ASCII):
        raise ValueError("not base64 for URLs without padding")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as cause:
        raise ValueError("not base64 for URLs without padding") from cause
    if encode(data) != text:
        raise ValueError("unused bits must be 0")
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyingKey:
    """A key that verifies signatures. Of `hmac-sha256` it is the secret itself.

    Raises:
        ConfigurationError: an invalid id, algorithm or key.
    """

    id: str
    key: bytes = field(repr=False)
    """32 bytes: the public key, or the shared secret."""
    algorithm: Algorithm = "ed25519"
    _public: Ed25519PublicKey | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_key(self.id, self.algorithm, self.key)
        if self.algorithm == "ed25519":
            object.__setattr__(self, "_public", Ed25519PublicKey.from_public_bytes(self.key))

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Return whether this key's owner signed the message."""
        if self._public is None:
            return hmac.compare_digest(hmac.digest(self.key, message, hashlib.sha256), signature)
        try:
            self._public.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs slices and checkpoints.

    Raises:
        ConfigurationError: an invalid id, algorithm or secret.
    """

    id: str
    """1 to 64 letters, digits, dots, underscores and hyphens."""
    secret: bytes = field(repr=False)
    """32 bytes."""
    algorithm: Algorithm = "ed25519"
    _private: Ed25519PrivateKey | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_key(self.id, self.algorithm, self.secret)
        if self.algorithm == "ed25519":
            object.__setattr__(self, "_private", Ed25519PrivateKey.from_private_bytes(self.secret))

    @classmethod
    def generate(cls, id: str, algorithm: Algorithm = "ed25519") -> "SigningKey":
        """Return a new random key."""
        return cls(id=id, secret=secrets.token_bytes(_BYTES), algorithm=algorithm)

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message: 64 bytes, or 32 of `hmac-sha256`."""
        if self._private is None:
            return hmac.digest(self.secret, message, hashlib.sha256)
        return self._private.sign(message)

    @property
    def verifying(self) -> VerifyingKey:
        """The key that verifies what this one signs."""
        key = self.secret if self._private is None else self._private.public_key().public_bytes_raw()
        return VerifyingKey(id=self.id, key=key, algorithm=self.algorithm)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeys:
    """A kernel's keys: one signs, the others wait for their turn or verify what they signed before.

    Raises:
        ConfigurationError: no key, two with one id, or no key with the current id.
    """

    current: str
    """The id of the key that signs."""
    keys: tuple[SigningKey, ...]

    def __post_init__(self) -> None:
        ids = _index(self.keys)
        if self.current not in ids:
            raise ConfigurationError(f"the current key {self.current!r:.80} must be one of {', '.join(ids)}")

    @property
    def signing(self) -> SigningKey:
        """The key that signs."""
        return next(key for key in self.keys if key.id == self.current)

    def add(self, key: SigningKey) -> "SigningKeys":
        """Return the keys with one more, which doesn't sign yet.

        Raises:
            ConfigurationError: a key has this id already.
        """
        return replace(self, keys=(*self.keys, key))

    def use(self, id: str) -> "SigningKeys":
        """Return the keys with another one that signs.

        Raises:
            UnknownIdError: no key has this id.
        """
        self._check_id(id)
        return replace(self, current=id)

    def remove(self, id: str) -> "SigningKeys":
        """Return the keys without one.

        Raises:
            UnknownIdError: no key has this id.
            ConfigurationError: the key signs.
        """
        self._check_id(id)
        if id == self.current:
            raise ConfigurationError(f"key {id!r} signs: let another one sign first")
        return replace(self, keys=tuple(key for key in self.keys if key.id != id))

    def _check_id(self, id: str) -> None:
        if id not in (ids := [key.id for key in self.keys]):
            raise UnknownIdError(f"there is no key {id!r:.80}: the keys are {', '.join(ids)}")

    def to_json(self) -> str:
        """Return the content of a key file, secrets included."""
        rows = [{"id": each.id, "algorithm": each.algorithm, "secret": encode(each.secret)} for each in self.keys]
        return json.dumps({"current": self.current, "keys": rows}, indent=1) + "\n"

    def to_public_json(self, *, shared: bool = False) -> str:
        """Return the content of a file for `read_verifying_keys`; secrets of `hmac-sha256` only if `shared`."""
        public = [key.verifying for key in self.keys if shared or key.algorithm == "ed25519"]
        rows = [{"id": each.id, "algorithm": each.algorithm, "key": encode(each.key)} for each in public]
        return json.dumps({"keys": rows}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> "SigningKeys":
        """Return the keys of `to_json`. No error tells a secret.

        Raises:
            ConfigurationError: another format; names the source.
        """
        data = _parse(text, source)
        keys = tuple(SigningKey(**each) for each in _read_rows(data, "secret", source))
        if not keys or not isinstance(data.get("current"), str):
            raise ConfigurationError(f"{source} holds no current key: make one with `meve kernel new-key`")
        return cls(current=data["current"], keys=keys)

    @classmethod
    def load(cls, path: Path | None = None) -> "SigningKeys":
        """Return the keys of a file, or without one those of the environment variable `MEVE_KERNEL_KEYS`.

        Raises:
            ConfigurationError: no key, another format, or a file that others than its owner may read.
        """
        if path is None:
            if not (text := os.environ.get(ENVIRONMENT, "").strip()):
                raise ConfigurationError(
                    f"the kernel has no signing key: name a key file with --keys, or set {ENVIRONMENT}; "
                    "`meve kernel new-key` makes one"
                )
            return cls.from_json(text, ENVIRONMENT)
        return cls.from_json(_read(path, "`meve kernel new-key` makes one", private=True), str(path))


def read_verifying_keys(path: str | Path) -> tuple[VerifyingKey, ...]:
    """Return the keys of a file that `meve kernel public-keys` wrote.

    Raises:
        ConfigurationError: a file that can't be read, or of another format.
    """
    path = Path(path)
    data = _parse(_read(path, "`meve kernel public-keys` writes one"), str(path))
    return tuple(VerifyingKey(**each) for each in _read_rows(data, "key", str(path)))


def index_keys(keys: Iterable[VerifyingKey]) -> dict[str, VerifyingKey]:
    """Return keys by id.

    Raises:
        ConfigurationError: no key, something else, or two with one id.
    """
    given = list(keys)
    if not given or not all(isinstance(key, VerifyingKey) for key in given):
        raise ConfigurationError("keys must be one or more VerifyingKey: read_verifying_keys reads them from a file")
    return _index(given)


def _index(keys: Iterable[_Key]) -> dict[str, _Key]:
    by_id: dict[str, _Key] = {}
    for key in keys:
        if key.id in by_id:
            raise ConfigurationError(f"keys must have ids of their own: there is a key {key.id!r} already")
        by_id[key.id] = key
    return by_id


def _read(path: Path, remedy: str, *, private: bool = False) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            if private and not is_private(file.fileno()):
                raise ConfigurationError(f"{path} may be read by others than its owner: chmod 600 {path}")
            return file.read()
    except FileNotFoundError as cause:
        raise ConfigurationError(f"there is no key file {path}: {remedy}") from cause
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigurationError(f"the key file {path} can't be read: {type(cause).__name__}") from None


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError:
        data = None  # its message would show what stands there
    if not isinstance(data, dict) or not isinstance(data.get("keys"), list):
        raise ConfigurationError(f"{source} must be a JSON object with `keys`")
    return data


def _read_rows(data: dict[str, Any], part: str, source: str) -> list[dict[str, Any]]:
    rows = []
    for n, row in enumerate(data["keys"]):
        try:
            rows.append({"id": row["id"], "algorithm": row["algorithm"], part: decode(row[part])})
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(f"key {n} of {source} needs id, algorithm and {part}, in base64") from None
    return rows


def _check_key(id: object, algorithm: object, key: object) -> None:
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ConfigurationError(
            f"a key's id must have 1 to 64 letters, digits, dots, underscores or hyphens, got {id!r:.80}"
        )
    if algorithm not in get_args(Algorithm):
        raise ConfigurationError(f"algorithm must be {' or '.join(get_args(Algorithm))}, got {algorithm!r:.80}")
    if not isinstance(key, bytes) or len(key) != _BYTES:
        raise ConfigurationError(f"key {id!r} must have {_BYTES} bytes")
