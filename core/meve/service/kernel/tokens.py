"""The token of a slice: a header and a signature over everything that the slice says."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quote
from typing import Any

from meve.conversation.slices import ClosedBranch, SlicePolicy
from meve.errors import AdmissibilityError, ValidationError
from meve.service.kernel.records import describe_policy, encode_text, write_canonical
from meve.signing_keys import SIGNATURE_BYTES, SigningKey, VerifyingKey, decode, encode

MAX_TOKEN = 1024
"""The most characters of a token."""
CLOCK_SECONDS = 5
"""By how much the clocks of a kernel and a verifier may differ when a token is issued."""

NONCE = re.compile(r"[A-Za-z0-9_-]{0,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST_SECONDS = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a token itself says; all else is recomputed by whoever verifies it."""

    key: str
    """The id of the key."""
    version: str
    """The version of the graph."""
    issued: int
    """Seconds since 1970 in UTC."""
    expires: int
    """The first second in which the token is invalid."""
    nonce: str = ""
    """The random text of the request, which is signed so that no earlier answer can pass for this one."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON data."""
        return {"kid": self.key, "ver": self.version, "iat": self.issued, "exp": self.expires, "non": self.nonce}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a signature covers, apart from the header."""

    tenant: str
    conversation: str
    anchor: str
    policy: SlicePolicy
    turns: str
    """The turns, as `write_turns` returns them."""
    closed: str
    """The closed branches, as `write_closed` returns them."""

    def to_bytes(self, header: Header, algorithm: str) -> bytes:
        """Return what is signed.

        Raises:
            ValidationError: text that isn't valid UTF-8.
        """
        rest = write_canonical({
            "conversation": self.conversation,
            "format": "meve-slice-1",
            "header": {**header.to_data(), "alg": algorithm},
            "policy": describe_policy(self.policy),
            "tenant": self.tenant,
        }).decode()  # fmt: skip
        return encode_text(
            f'{{"anchor":{quote(self.anchor)},"closed":{self.closed},{rest[1:-1]},"turns":{self.turns}}}'
        )


def write_turns(turns: Sequence[tuple[str, str, float]]) -> str:
    """Return id, digest and priority of turns, in any order, as the JSON that is signed and sent: three columns.

    Priorities are texts, since languages print numbers differently. `json.dumps` would take much longer.

    >>> write_turns([("b", "00", 0.5), ("a", "11", 1)])
    '{"digest":["11","00"],"id":["a","b"],"priority":["1.0","0.5"]}'
    """
    ids, digests, shares = zip(*sorted(turns), strict=True) if turns else ((), (), ())
    return _write_columns({"id": map(quote, ids), "digest": map(quote, digests), "priority": _write_shares(shares)})


def write_closed(closed: Sequence[ClosedBranch]) -> str:
    """Return closed branches as the JSON that is signed and sent: one column for each field."""
    texts = ClosedBranch._fields[:4]
    *named, shares, turns = zip(*closed, strict=True) if closed else ((),) * 6
    columns = {name: map(quote, column) for name, column in zip(texts, named, strict=True)}
    return _write_columns({**columns, "priority": _write_shares(shares), "turns": map(repr, turns)})


def _write_columns(columns: Mapping[str, Iterable[str]]) -> str:
    written = [f'"{name}":[{",".join(columns[name])}]' for name in sorted(columns)]
    return f"{{{','.join(written)}}}"


def _write_shares(shares: Sequence[float]) -> Iterable[str]:
    written = {share: f'"{float(share) + 0.0!r}"' for share in set(shares)}  # few different ones; -0.0 and 0 are 0.0
    return map(written.__getitem__, shares)


def check_nonce(nonce: object) -> str:
    """Return a nonce.

    Raises:
        ValidationError: anything else than up to 64 letters, digits, underscores and hyphens.
    """
    if not isinstance(nonce, str) or not NONCE.fullmatch(nonce):
        raise ValidationError(f"nonce must have at most 64 letters, digits, underscores and hyphens, got {nonce!r:.80}")
    return nonce


def sign_statement(statement: Statement, header: Header, key: SigningKey) -> str:
    """Return the token of a statement; the header names the key."""
    signature = key.sign(statement.to_bytes(header, key.algorithm))
    return f"meve1.{encode(write_canonical(header.to_data()))}.{encode(signature)}"


def parse_token(token: object) -> tuple[Header, bytes]:
    """Return a token's header and signature; each token has one spelling.

    Raises:
        AdmissibilityError: another format.
    """
    try:
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            raise ValueError("no text, or too long")
        name, header, signature = token.split(".")
        if name != "meve1":
            raise ValueError("another kind of token")
        return _parse_header(decode(header)), decode(signature)
    except (ValueError, RecursionError) as cause:
        raise AdmissibilityError(f"the slice's token is malformed: {cause}") from None


def _parse_header(written: bytes) -> Header:
    data = json.loads(written.decode())
    if (
        not isinstance(data, dict)
        or set(data) != {"kid", "ver", "iat", "exp", "non"}
        or written != write_canonical(data)
    ):
        raise ValueError("its header must hold kid, ver, iat, exp and non, in canonical JSON")
    times = (data["iat"], data["exp"])
    if not all(type(each) is int and 0 <= each < _MOST_SECONDS for each in times):
        raise ValueError("iat and exp must be seconds")
    if not isinstance(data["kid"], str) or not isinstance(data["ver"], str) or not _HASH.fullmatch(data["ver"]):
        raise ValueError("kid and ver must be text")
    nonce = check_nonce(data["non"])
    return Header(key=data["kid"], version=data["ver"], issued=data["iat"], expires=data["exp"], nonce=nonce)


def verify_statement(
    token: object, statement: Statement, keys: Mapping[str, VerifyingKey], now: float, nonce: str = ""
) -> Header:
    """Check that a token signs this statement with this nonce and is valid now, and return its header.

    The key's own algorithm counts, whatever a token says.

    Raises:
        AdmissibilityError: a malformed, forged or expired token, one of an unknown key, or one of another statement.
    """
    header, signature = parse_token(token)
    key = keys.get(header.key)
    if key is None:
        raise AdmissibilityError(
            f"the slice is signed with the key {header.key!r:.80}, which isn't among {', '.join(keys)}: give the "
            "kernel's public keys anew if it has a new one"
        )
    message = statement.to_bytes(header, key.algorithm)
    if len(signature) != SIGNATURE_BYTES[key.algorithm] or not key.verify(message, signature):
        raise AdmissibilityError(
            "the slice's signature is wrong: it is forged, altered, or of another tenant, conversation, anchor, "
            "policy or graph"
        )
    if header.nonce != nonce:
        raise AdmissibilityError("the slice answers another request: it is an earlier answer, replayed")
    if header.issued > now + CLOCK_SECONDS:
        raise AdmissibilityError(f"the slice is from the future ({header.issued - now:.0f} s): set the clocks")
    if header.expires <= now:
        raise AdmissibilityError(f"the slice expired {now - header.expires:.0f} s ago: ask again, or set the clocks")
    return header
