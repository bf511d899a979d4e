"""The master key, which locks the root secret of a key file."""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from meve.errors import ConfigurationError, KeyFileError, wrap_errors

MasterKey: TypeAlias = bytes | Path | Callable[[], bytes]
"""A master key of 16 bytes or more, the file that holds it, or a function that returns it."""
NONCE = 12
"""The length of a nonce of AES-GCM."""


def check_master_key(master: object) -> None:
    """Check the type of a master key, and its length if it is given as bytes.

    Raises:
        ConfigurationError: it is none.
    """
    if master is None or isinstance(master, Path) or (callable(master) and not isinstance(master, type)):
        return
    if not isinstance(master, bytes):
        raise ConfigurationError(
            f"master_key must be bytes, the Path of a file, or a function that returns bytes, got {type(master)!r:.80}"
        )
    _check_length(master)


def _check_length(master: object) -> bytes:
    if not isinstance(master, bytes) or len(master) < 16:
        raise ConfigurationError("master_key must be at least 16 bytes: give 32 random bytes")
    return master


def _master_cipher(master: MasterKey) -> AESGCM:
    if isinstance(master, Path):
        try:
            secret = master.read_bytes()
        except OSError as cause:
            raise KeyFileError(f"the master key can't be read: {cause}") from cause
    elif callable(master):
        with wrap_errors(KeyFileError, "getting the master key"):
            secret = master()
    else:
        secret = master
    return AESGCM(blake2b(_check_length(secret), digest_size=32, person=b"meve master").digest())


def wrap(root: bytes, file_id: bytes, master: MasterKey) -> bytes:
    """Encrypt a root secret of 32 bytes."""
    nonce = os.urandom(NONCE)
    return nonce + _master_cipher(master).encrypt(nonce, root, file_id)


def unwrap(sealed: bytes, file_id: bytes, master: MasterKey | None, where: object) -> bytes:
    """Return the root secret of the key file whose name `where` gives.

    Raises:
        KeyFileError: it was encrypted with another master key.
    """
    assert master is not None
    try:
        return _master_cipher(master).decrypt(sealed[:NONCE], sealed[NONCE:], file_id)
    except InvalidTag:
        raise KeyFileError(f"{where} is locked with another master key: give the one that it was locked with") from None
