"""Shared helpers of memory tests."""

import json
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import numpy as np

from meve._formulas import normalize
from meve.components.embedders import resolve_embedder
from meve.memory import GovernedMemory
from meve.memory.records import user_key
from meve.memory.stores.sqlite._rows import COLUMNS
from meve.testing.fakes import WordCounter, WordEmbedder

KEY = b"a key of the tests, long enough"
LATER_COLUMNS = ("kind", "archived", "valid_from", "valid_to", "restored", "pinned", "model", "passages")
"""The columns that version 3 of the schema lacks."""
LASTING = {"user_id": "alice", "source": "doc", "policy_class": "factual", "ttl": timedelta(days=5_000)}


class FixedExtractor:
    """An extractor that returns given decisions, or raises, and keeps what it saw."""

    def __init__(self, *decisions, error=None):
        self.decisions, self.error, self.seen = decisions, error, []

    def extract(self, context):
        self.seen.append(context)
        if self.error is not None:
            raise self.error
        return self.decisions


class WordClassifier:
    """Calls what holds the word 'diary' private, and all else ephemeral."""

    def __init__(self):
        self.asked = []

    def classify(self, text, source):
        self.asked.append(source)
        return "private" if "diary" in text else "ephemeral"


def open_memory(file, **parts):
    """Open a memory with fast components, unless others are given."""
    return GovernedMemory.open(file, **{"embedder": WordEmbedder(), "tokens": WordCounter(), "audit_key": KEY, **parts})


def run_sql(file, *statements):
    """Run statements on a memory's file and commit them."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


class HookedEmbedder:
    """The static embedder, which calls a function before it embeds a query."""

    def __init__(self, before_query):
        self.inner = resolve_embedder("static")
        self.name, self.dimension, self.similarity = "hooked", self.inner.dimension, self.inner.similarity
        self.before_query = before_query

    def embed_query(self, text):
        self.before_query()
        return self.inner.embed_query(text)

    def embed_passages(self, texts):
        return self.inner.embed_passages(texts)


def add_with_score(memory, score, *, flagged="", **record):
    """Add a record with this reflection score and flag, of alice unless another user is given."""
    added = memory.add(**{"user_id": "alice", **record})
    user = user_key(added.user_id)
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find(user, added.id)
        scored = replace(stored.record, reflection=score, flagged=flagged)
        transaction.replace(user, replace(stored, record=scored))
    return added


def add_old_and_new(memory, old, new, **record):
    """Add a record `old` of alice, and an hour later a record `new`."""
    memory.add(old, id="old", **{**LASTING, **record})
    memory.clock.inner.advance(timedelta(hours=1))
    memory.add(new, id="new", **{**LASTING, **record})


def add_fading_records(memory, count=5, **record):
    """Add at most five related records of low score, `t0`, `t1` and so on, and wait until they can be summarised."""
    for n, what in enumerate(("sun", "water", "warmth", "compost", "shelter")[:count]):
        text = f"Tomatoes want {what} in the garden."
        add_with_score(memory, 25, text=text, id=f"t{n}", **{**LASTING, **record})
    memory.clock.inner.advance(timedelta(days=8))


def archive(memory, user, record_id):
    """Archive a record of a user's key, as maintenance does."""
    with memory._runtime.store.writing() as transaction:
        stored = transaction.find(user, record_id)
        transaction.replace(user, replace(stored, record=replace(stored.record, archived=True)))


def as_version_3(body):
    """Return an archived record as version 3 of the schema packed it, without the columns that came later."""
    data = zlib.decompress(body)
    end = 4 + int.from_bytes(data[:4], "big")
    named = dict(zip(COLUMNS, json.loads(data[4:end]), strict=False))
    values = json.dumps([value for name, value in named.items() if name not in (*LATER_COLUMNS, "vector")]).encode()
    vector = data[end : end + named["vector"]]  # without the passages; the values hold its length
    return zlib.compress(len(values).to_bytes(4, "big") + values + vector)


class LastLetters:
    """Counts words by their last letter, as `WordEmbedder` does by their first; of another dimension."""

    name, dimension, similarity = "words-by-last-letter", 30, "cosine"

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().replace(".", "").replace("?", "").split():
                vector[(ord(word[-1]) - ord("a")) % 30] += 1
        return normalize(vectors)
