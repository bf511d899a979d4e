"""Shared helpers of memory tests."""

import json
import re
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from meve._formulas import normalize
from meve._postgres import is_postgres_url
from meve.components.embedders import resolve_embedder
from meve.errors import StorageError
from meve.memory import GovernedMemory, MemoryPlace
from meve.memory.records import user_key
from meve.memory.stores._sql.record_query import _active, _archived, _Hashed
from meve.memory.stores._sql.rows import COLUMNS, VALUES, pack, seal_row, shared_score_row
from meve.memory.stores.postgresql.store import PostgresStore
from meve.memory.stores.protocol import RecordQuery
from meve.memory.stores.sqlite._schema import MIGRATIONS
from meve.memory.stores.sqlite.store import SqliteStore
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.postgres import KeysUrl, MemoryUrl

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
    keys = {"key_file": file.keys} if is_postgres_url(file) else {}
    usual = {"embedder": WordEmbedder(), "tokens": WordCounter(), "audit_key": KEY}
    return GovernedMemory.open(file, **{**keys, **usual, **parts})


def run_sql(file, *statements):
    """Run statements on a memory's file and commit them; `{alice/tea}` stands for the hash of alice's id `tea`."""
    names = {found for statement in statements for found in re.findall(r"{(\w*/[^}]*)}", statement)}
    hashes = hash_ids(file, names) if names else {}
    for name, hashed in hashes.items():
        statements = [statement.replace(f"{{{name}}}", f"'{hashed}'") for statement in statements]
    run = _run_on_postgres if is_postgres_url(file) else _run_on_sqlite
    run(file, statements)


def _run_on_sqlite(file, statements):
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _run_on_postgres(file, statements):
    if any("AS TEXT" in statement or "PRAGMA" in statement for statement in statements):
        pytest.skip("PostgreSQL stores no text that isn't UTF-8, and has no pragmas")
    with closing(open_store(file)) as store:
        try:
            with store._database.writing() as connection:
                for statement in statements:
                    statement = statement.replace("AS BLOB", "AS BYTEA")
                    statement = re.sub(r"zeroblob\((\d+)\)", r"decode(repeat('00', \1), 'hex')", statement)
                    statement = re.sub(r"\bx'(\w*)'", r"decode('\1', 'hex')", statement)
                    connection.execute(f"{statement} -- :tenant")
        except StorageError as error:
            if "expression is of type" in str(error):
                pytest.skip("PostgreSQL stores no value of another type")
            raise


def read_sql(file, statement):
    """Return the rows of a statement."""
    if is_postgres_url(file):
        with closing(open_store(file)) as store, store._database.reading() as connection:
            return connection.execute(f"{statement} -- :tenant").fetchall()
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchall()


def as_argument(file):
    """Return a place as an argument of a process, which `as_place` turns back."""
    return f"{file}|{file.keys}" if is_postgres_url(file) else str(file)


def as_place(argument):
    """Return the place that `as_argument` was given."""
    if not is_postgres_url(argument):
        return Path(argument)
    url, keys = argument.split("|")
    return MemoryUrl(url, KeysUrl(keys) if is_postgres_url(keys) else keys)


def place_of(file):
    """Return a file, or a URL that knows its key file, as the place of a memory."""
    return MemoryPlace(file=file, key_file=file.keys) if is_postgres_url(file) else MemoryPlace(file=file)


def open_store(file):
    """Open the store of a memory in a file, or at a URL that knows its key file."""
    return PostgresStore.open(file, key_file=file.keys) if is_postgres_url(file) else SqliteStore.open(file)


def hash_ids(file, names):
    """Return by `user/id` the hash under which a record is stored; by `user/`, that of the user."""
    store = open_store(file)
    with store.reading() as snapshot:
        hashes = {}
        for name in names:
            user, _, record_id = name.partition("/")
            owner = snapshot._vault.owner(f"s:{user}" if user else "")
            hashes[name] = owner.id_hash(record_id) if record_id else owner.hashed
    store.close()
    return hashes


def change_sealed(file, user, record_id, **changes):
    """Change values of a record, by the names of the columns, as somebody could who has the key file."""
    store = open_store(file)
    with store.writing() as transaction:
        vault = transaction._vault
        query = RecordQuery(user=f"s:{user}" if user else "", ids=[record_id], archived=None)
        ((_, row, values),) = _active(vault, _Hashed.of(vault, query))
        owner = vault.owner(query.user)
        named = dict(zip(VALUES, values, strict=True)) | changes
        (slot,) = vault.connection.execute(
            "SELECT slot FROM memories WHERE tenant = :tenant AND row = ?", (row,)
        ).fetchone()
        columns = seal_row(owner, slot, vault.slots.key(slot), list(named.values()))
        assignments = ", ".join(f"{name} = ?" for name in COLUMNS)
        vault.connection.execute(
            f"UPDATE memories SET {assignments} WHERE tenant = :tenant AND row = ?", [*columns, row]
        )
    store.close()


def read_stored(file, user, record_id):
    """Return a record as it is stored."""
    store = open_store(file)
    with store.reading() as snapshot:
        (found,) = snapshot.records(RecordQuery(user=f"s:{user}", ids=[record_id], archived=None))
    store.close()
    return found


def plant(file, user, stored, **changes):
    """Put a record into a file behind the log, as somebody could who has the key file."""
    store = open_store(file)
    with store.writing() as transaction:
        transaction.put(f"s:{user}", replace(stored, record=replace(stored.record, **changes)))
    store.close()


def as_plain(file):
    """Turn a file into one of version 6 of the schema, in which everything was plain, and remove its keys."""
    plain = file.with_name("plain.db")
    store = SqliteStore.open(file)
    with store.reading() as snapshot, closing(sqlite3.connect(plain)) as connection:
        for function in ("repack_version_3", "repack_version_4", "superseded_by"):
            connection.create_function(function, 1, lambda body: body)
        connection.create_function("repack_version_5", 2, lambda body, model: body)
        for migration in MIGRATIONS[:6]:
            connection.executescript(migration)
        vault = snapshot._vault
        read = vault.connection.execute
        for table in ("meta", "gone", "audit", "audit_head"):
            for row in read(f"SELECT * FROM {table}"):
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute(
            "DELETE FROM meta WHERE name IN ('key_file', 'key_changes', 'keys_seen', 'slots', 'log_names')"
        )
        for user in read("SELECT no, version, complete_from FROM users").fetchall():
            if vault.owner_of(user[0]) is not None:  # nothing is known of a forgotten one
                _copy_plain(connection, snapshot, *user)
        last = read("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone()
        if last:
            connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'memories'", last)
        connection.execute("PRAGMA user_version = 6")
        connection.commit()
    store.close()
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    plain.rename(file)


def _copy_plain(connection, snapshot, no, version, complete_from):
    """Copy all that is stored of a user to the tables of version 6."""
    vault = snapshot._vault
    key = vault.owner_of(no).user
    connection.execute("INSERT INTO users VALUES (?, ?, ?, ?)", (no, key, version, complete_from))
    found = _Hashed.of(vault, RecordQuery(user=key, archived=None))
    changed = dict(vault.connection.execute("SELECT row, changed FROM memories").fetchall())
    for _, row, values in _active(vault, found):
        plain = {name: value for name, value in zip(VALUES, values, strict=True) if name not in ("outcomes", "outline")}
        connection.execute(
            f"INSERT INTO memories (row, user, changed, {', '.join(plain)}) VALUES (?, ?, ?{', ?' * len(plain)})",
            [row, no, changed[row], *plain.values()],
        )
    for (_, row, values), expires in _archived(vault, found):
        named = dict(zip(VALUES, values, strict=True))
        connection.execute(
            "INSERT INTO archive (rowid, user, id, expires, hold, body, derived, superseded) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (row, no, named["id"], expires, int(bool(named["hold"])), pack(values), named["derived"],
             named["superseded"]),
        )  # fmt: skip
    for record_id, score in snapshot.shared_scores(key).items():
        connection.execute(
            "INSERT INTO opinions VALUES (?, ?, ?, ?, ?, ?)", (no, record_id, *shared_score_row(score)[:4])
        )


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
    named = dict(zip(VALUES, json.loads(data[4:end]), strict=False))
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


class Interrupted(WordEmbedder):
    """Calls a function once before it embeds a text, as if another thread were faster."""

    meanwhile = None

    def embed_query(self, query):
        self._call()
        return super().embed_query(query)

    def embed_passages(self, texts):
        self._call()
        return super().embed_passages(texts)

    def _call(self):
        call, self.meanwhile = self.meanwhile, None
        if call is not None:
            call()
