"""Random entries of a memory in a file, and what stands in its files."""

import random
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace

from meve._postgres import is_postgres_url
from tests.postgres import copy_memory


def key_file(file):
    return file.keys if is_postgres_url(file) else file.with_name(f"{file.name}.keys")


def words_in_files(folder, words):
    """Return the words that stand in any file of a folder."""
    texts = [path.read_bytes().lower() for path in folder.rglob("*") if path.is_file()]
    return {word for word in words if any(word.encode() in text for text in texts)}


def copy_to(file, folder):
    """Copy a memory's files, by another process: in this one, closing them would release SQLite's locks."""
    folder.mkdir(exist_ok=True)
    if is_postgres_url(file):
        return copy_memory(file, folder)
    subprocess.run(["cp", *file.parent.glob(f"{file.name}*"), folder], check=True)
    return folder / file.name


def sentinels(n):
    """Return words that stand in the text, tag, session, metadata, name and value of entry `n`, and nowhere else."""
    return [f"{part}qzx{n}zyxomma" for part in ("text", "tag", "session", "meta", "name", "value", "said")]


class Workload:
    """Adds entries of all kinds, and erases them in all ways; keeps what must be gone and what must still be there."""

    def __init__(self, memory, seed=0):
        self.memory, self.random = memory, random.Random(seed)
        self.live, self.gone = {}, set()
        self.count = 0

    def add(self):
        n, self.count = self.count, self.count + 1
        text, tag, session, meta, name, value, said = words = sentinels(n)
        user = f"user{n % 5}qzx"
        kind = self.random.choice(["fact", "long", "item", "message", "archived"])
        memory = self.memory
        if kind == "item":
            memory.items.put((name, "x"), name, {"value": value}, user_id=user)
            words = [name, value]
        elif kind == "message":
            memory.messages.add(session, [{"role": "user", "text": said}], user_id=user, ids=[f"m{n}"])
            words = [session, said]
        else:
            body = f"{text} likes tea. " * (60 if kind == "long" else 1)
            memory.add(
                body, user_id=user, id=f"f{n}", tags=[tag], session_id=session, metadata={"note": meta}, source="doc",
                policy_class="canonical",
            )  # fmt: skip
            words = [text, tag, session, meta]
            if kind == "archived":
                self._change(f"s:{user}", f"f{n}", archived=True)
        self.live[n] = (kind, user, words)

    def _change(self, user, record_id, **changes):
        with self.memory._runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            record = replace(stored.record, **changes)
            transaction.replace(user, replace(stored, record=record))
            now = self.memory.clock.now()
            transaction.log(self.memory._runtime.event(user, record, "archive", "a test", now))

    def erase(self):
        n = self.random.choice(list(self.live))
        kind, user, words = self.live.pop(n)
        memory, (_, _, session, _, name, _, _) = self.memory, sentinels(n)
        if kind == "item":
            if self.random.random() < 0.5:
                assert memory.items.delete((name, "x"), name, user_id=user)
            else:
                assert memory.items.delete_namespace((name,), user_id=user).erased
        elif kind == "message":
            memory.messages.pop(session, user_id=user)
        elif self.random.random() < 0.3:
            memory.update(f"f{n}", user_id=user, text="Another text.", tags=[], metadata={})
            words = [word for word in words if word != session]
        elif self.random.random() < 0.3:
            assert memory.forget_session(session, user_id=user).erased
        else:
            assert memory.delete(f"f{n}", user_id=user).erased
        self.gone.update(words)


def rows_of(file):
    """Return all values of all rows of a database, as text."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
