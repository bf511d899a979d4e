"""What tests of memories share."""

from dataclasses import replace

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
