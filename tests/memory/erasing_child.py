"""Changes a memory as its parent says, one JSON line at a time, and answers each; or reads it until it is killed."""

import json
import random
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from meve._postgres import is_postgres_url
from meve.memory import GovernedMemory, Policy
from meve.memory._contradiction.updates import DIFFERENT
from meve.memory.records import user_key
from meve.testing.fakes import FakeClock, WordCounter
from tests.memories import KEY, as_place

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
MASTER = b"a master key, long enough for it"
POLICY = Policy.from_dict({"merging": {"nominate": 1.0, "similarity": 1.0, "related": 1.0}})
MARK = np.array([0.03125, -0.046875, 0.0625, -0.078125], dtype=np.float32)
"""The beginning of every vector: exact in half precision, too, so that a search finds each in a file."""
MARKS = tuple(MARK.astype(kind).tobytes() for kind in ("<f4", "<f2"))


class MarkedEmbedder:
    """Gives each text a vector of its own that begins with `MARK`."""

    similarity = "cosine"

    def __init__(self, dimension):
        self.name, self.dimension = "marked", dimension

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            rest = np.random.default_rng(list(text[:200].encode())).normal(size=self.dimension - len(MARK))
            vector[: len(MARK)] = MARK
            vector[len(MARK) :] = rest * np.sqrt((1 - MARK @ MARK) / (rest @ rest))
        return vectors


class Apart:
    """Judges no statement to be an update."""

    def judge(self, older, newer):
        return DIFFERENT


class Worker:
    """Makes the changes; each method returns what its parent must know."""

    def __init__(self, memory):
        self.memory = memory

    def add(self, n, user, *, text, tag, session, meta, **options):
        ttl = timedelta(hours=1) if options.pop("is_short", False) else timedelta(days=900)
        self.memory.add(
            text, user_id=user, id=f"f{n}", tags=[tag], session_id=session, metadata={"note": meta}, source="doc",
            policy_class="factual", ttl=ttl, **options,
        )  # fmt: skip

    def archive(self, n, user):
        with self.memory._runtime.store.writing() as transaction:
            stored = transaction.find(user_key(user), f"f{n}")
            record = replace(stored.record, archived=True)
            transaction.replace(user_key(user), replace(stored, record=record))
            event = self.memory._runtime.event(user_key(user), record, "archive", "a test", self.memory.clock.now())
            transaction.log(event)

    def supersede(self, n, user, *, text, before):
        self.memory.supersede(f"f{before}", text, user_id=user, id=f"f{n}", source="doc")

    def update(self, n, user, *, text, tag, meta, **_):
        self.memory.update(f"f{n}", user_id=user, text=text, tags=[tag], metadata={"note": meta})

    def put(self, n, user, *, name, value, size):
        self.memory.items.put((name, "x"), name, {"value": value, "more": list(range(size))}, user_id=user)

    def say(self, n, user, *, session, said, archived):
        self.memory.messages.add(session, [{"role": "user", "text": said}], user_id=user, archived=archived)

    def share(self, n, user, *, text):
        self.memory.add_shared(text, id=f"f{n}", source="doc", policy_class="canonical")

    def delete(self, n, user, *, every):
        return list(self.memory.delete(f"f{n}", user_id=user, include_superseded=every).erased)

    def delete_shared(self, n, user):
        return list(self.memory.delete_shared(f"f{n}").erased)

    def drop(self, n, user, *, name):
        assert self.memory.items.delete((name, "x"), name, user_id=user)

    def drop_namespace(self, n, user, *, name):
        assert self.memory.items.delete_namespace((name,), user_id=user).erased

    def pop(self, n, user, *, session):
        assert self.memory.messages.pop(session, user_id=user, archived=None)[1].erased

    def rewrite(self, n, user, *, session, said):
        self.memory.messages.replace(session, [{"role": "user", "text": said}], user_id=user)

    def forget_session(self, n, user, *, session):
        return list(self.memory.forget_session(session, user_id=user).erased)

    def forget_user(self, n, user):
        assert self.memory.forget_user(user_id=user).erased

    def expire(self, n, user):
        later = self.memory.clock.now() + timedelta(hours=1)
        self.memory.clock.inner.now = lambda: later
        return [each for ids in self.memory.maintain().expired.values() for each in ids]

    def stored(self, n, user):
        """Return all that is stored, as one text, and check the log."""
        with self.memory._runtime.store.backend.reading() as snapshot:
            users = snapshot.users()
            names = [key for key, name in snapshot.names(None) if not name]
        records = [[repr(s.record) for s in self.memory._runtime.store.all_records(key)] for key in users]
        assert self.memory.audit.verify().problem == ""
        return repr((names, records))


def read_on(memory):
    """Read random users, and keep states of the file open for a while."""
    rng = random.Random()
    while True:
        with memory._runtime.store.backend.reading() as snapshot:
            users = snapshot.users()
            time.sleep(rng.random() * 0.05)
            for user in users[:2]:
                snapshot.version(user)
        for user in rng.sample(users, min(2, len(users))):
            memory._runtime.store.all_records(user)
        time.sleep(0.02)


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(file, dimension, is_locked, reads):
    clock = FakeClock(BEGIN)  # the file remembers the latest time
    place = as_place(file)
    keys = {"key_file": place.keys} if is_postgres_url(place) else {}
    memory = GovernedMemory.open(
        place, **keys, embedder=MarkedEmbedder(int(dimension)), tokens=WordCounter(), audit_key=KEY, policy=POLICY,
        clock=clock, updates=Apart(), master_key=MASTER if int(is_locked) else None,
    )  # fmt: skip
    if int(reads):
        read_on(memory)
    worker = Worker(memory)
    answer("ready")
    for line in sys.stdin:
        name, n, user, options = json.loads(line)
        answer(getattr(worker, name)(n, user, **options))
    memory.close()


if __name__ == "__main__":
    main(*sys.argv[1:5])
