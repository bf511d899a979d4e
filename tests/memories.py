"""What tests of memories share."""

import json
import zlib
from dataclasses import replace

from meve.memory.stores.sqlite._rows import COLUMNS

KEY = b"a key of the tests, long enough"


def reflected(memory, score, **record):
    """A record of alice's with a score of its own."""
    made = memory.add(**{"user_id": "alice", **record})
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find("s:alice", made.id)
        transaction.replace("s:alice", replace(stored, record=replace(stored.record, reflection=score)))
    return made


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
