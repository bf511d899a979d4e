"""Shared helpers of memory tests."""

import json
import zlib
from dataclasses import replace

from meve.memory.stores.sqlite._rows import COLUMNS

KEY = b"a key of the tests, long enough"


def add_with_score(memory, score, *, flagged="", **record):
    """Add a record of alice with this reflection score and flag."""
    added = memory.add(**{"user_id": "alice", **record})
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find("s:alice", added.id)
        scored = replace(stored.record, reflection=score, flagged=flagged)
        transaction.replace("s:alice", replace(stored, record=scored))
    return added


def archive(memory, user, record_id):
    """Archive a record of a user's key, as maintenance does."""
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find(user, record_id)
        transaction.replace(user, replace(stored, record=replace(stored.record, archived=True)))


def as_version_3(body):
    """Return an archived record as version 3 of the schema packed it: without kind and archived."""
    data = zlib.decompress(body)
    end = 4 + int.from_bytes(data[:4], "big")
    named = dict(zip(COLUMNS, json.loads(data[4:end]), strict=False))
    values = json.dumps([value for name, value in named.items() if name not in ("kind", "archived")]).encode()
    return zlib.compress(len(values).to_bytes(4, "big") + values + data[end:])
