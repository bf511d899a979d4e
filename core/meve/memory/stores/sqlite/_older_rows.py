"""Archived records of older versions of the schema."""

import zlib

from meve.memory.records import kind_of
from meve.memory.stores._sql.rows import VALUES, pack_values, unpack_values

_COLUMNS_5 = tuple(name for name in VALUES if name not in {"model", "outcomes", "outline", "passages"})
_COLUMNS_4 = tuple(name for name in _COLUMNS_5 if name not in {"valid_from", "valid_to", "restored", "pinned"})
_COLUMNS_3 = tuple(name for name in _COLUMNS_4 if name not in {"kind", "archived"})
"""The columns of versions 5, 4 and 3 of the schema."""


def repack_version_3(body: bytes) -> bytes:
    """Return an archived record of version 3 of the schema as one of version 4."""
    values, halves = unpack_values(body)
    named = dict(zip(_COLUMNS_3, values, strict=False))  # without the vector
    named |= {"kind": kind_of(named["source"]), "archived": 1}
    return pack_values([named[name] for name in _COLUMNS_4[:-1]], halves)


def repack_version_4(body: bytes) -> bytes:
    """Return an archived record of version 4 of the schema as one of version 5."""
    values, halves = unpack_values(body)
    named = dict(zip(_COLUMNS_4, values, strict=False))  # without the vector
    closed = None if named["superseded"] is None else named["created"]
    named |= {"valid_from": None, "valid_to": closed, "restored": None, "pinned": 0}
    return pack_values([named[name] for name in _COLUMNS_5[:-1]], halves)


def repack_version_5(body: bytes, model: str) -> bytes:
    """Return an archived record of version 5 of the schema as one of version 6; `model` made its vector.

    A damaged one stays as it is, so that the file can be opened.
    """
    try:
        values, halves = unpack_values(body)
    except (ValueError, TypeError, zlib.error):
        return body
    return pack_values([*values, model, len(halves)], halves)


def superseded_by(body: bytes) -> str | None:
    """Return which record replaced an archived one of version 4 of the schema."""
    superseded: str | None = unpack_values(body)[0][_COLUMNS_4.index("superseded")]
    return superseded
