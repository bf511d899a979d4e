"""Random changes of a memory in a process that is killed now and then, and what may be read of it afterwards."""

import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field

from meve._postgres import is_postgres_url
from meve.memory.stores._sql.key_file import DataKey, KeyFile
from meve.memory.stores._sql.key_place import FilePlace
from meve.memory.stores._sql.rows import FOUND_BY, unpack_values
from meve.memory.stores.postgresql._database import _translate
from tests.memories import as_argument
from tests.memory.erasing_child import MARKS, MASTER
from tests.memory.sealed_files import copy_to

SENTINEL = re.compile(r"qzxom(\d+)zy", re.IGNORECASE)
_PLACES = {
    "users": ("name", ()),
    "memories": ("sealed", FOUND_BY),
    "archive": ("body", ("id", "superseded", "derived", "hold")),
    "opinions": ("name", ("id",)),
    "log_names": ("name", ("id",)),
}
"""By table: the column that is sealed, and the columns that it is bound to."""


def word(n):
    return f"Qzxom{n}zyRunnings"


def sentinels_in(text):
    return {int(n) for n in SENTINEL.findall(text)}


@dataclass
class Entry:
    """A record, and the numbers of the sentinels in it, by part."""

    kind: str
    user: int
    words: dict = field(default_factory=dict)
    is_short: bool = False
    is_closed: bool = False


class Process:
    """The process that changes or reads the memory."""

    def __init__(self, file, dimension, is_locked, *, reads=False):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        arguments = [as_argument(file), str(dimension), str(int(is_locked)), str(int(reads))]
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.memory.erasing_child", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        if not reads:
            self.answer()  # it is ready

    def send(self, *request):
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            raise AssertionError(f"the process ended:\n{self.complaints()}")
        return json.loads(line)

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def kill(self):
        self.child.kill()
        self.child.communicate()
        complaints = self.complaints()
        self.errors.close()
        assert complaints == ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Workload:
    """Adds records of all kinds, erases them in all ways, and knows which sentinels are stored.

    Args:
        file: the memory's.
        seed: chooses the changes.
        dimension: of the vectors.
        kills: the chance that the process is killed during a change.
    """

    def __init__(self, file, *, seed, dimension=16, kills=0.0):
        self.file, self.random, self.dimension, self.kills = file, random.Random(seed), dimension, kills
        self.is_locked = bool(seed % 2)
        self.entries: dict[int, Entry] = {}
        self.users: set[int] = set()
        self.written: set[int] = set()
        """The users of whom something was stored since they were forgotten."""
        self.previous: dict | None = None
        """The sentinels of the record that is being changed, before the change."""
        self.count = self.erased = self.killed = 0
        self.process = Process(file, dimension, self.is_locked)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()

    def stored(self):
        """Return the numbers of the sentinels that must be stored."""
        return self.written | {n for entry in self.entries.values() for n in entry.words.values()}

    def step(self):
        """Make a change."""
        if len(self.entries) < 100 or (len(self.entries) < 400 and self.random.random() < 0.5):
            self._add()
        else:
            self._erase()

    def check(self):
        """Check that exactly what must be stored is stored, and that the log is intact."""
        found = self._found()
        assert found == self.stored(), (found - self.stored(), self.stored() - found)

    def _found(self):
        self.process.send("stored", 0, "", {})
        return sentinels_in(self.process.answer())

    def _new(self):
        self.count += 1
        return self.count

    def _text(self, n, length=1):
        return f"{word(n)} likes running. " * length

    def _add(self):
        while len(self.users) < 6:
            self.users.add(self._new())
        kinds = ["fact", "fact", "long", "archived", "derived", "superseding", "short", "item", "message", "shared"]
        kind, user = self.random.choice(kinds), self.random.choice(sorted(self.users))
        n = self._new()
        entry = Entry(kind, user, is_short=kind == "short")
        if kind == "item":
            entry.words = {"name": self._new(), "value": self._new()}
            name, value = word(entry.words["name"]), word(entry.words["value"])
            self._do("put", n, entry, name=name, value=value, size=self.random.choice([0, 2_000]))
        elif kind == "message":
            entry.words = {"session": self._new(), "said": self._new()}
            session, said = word(entry.words["session"]), word(entry.words["said"])
            self._do("say", n, entry, session=session, said=said, archived=self.random.random() < 0.3)
        elif kind == "shared":
            entry.user, entry.words = 0, {"text": self._new()}
            self._do("share", n, entry, text=self._text(entry.words["text"]))
        else:
            self._add_fact(n, entry)

    def _add_fact(self, n, entry):
        of_user = [m for m, e in self.entries.items() if e.user == entry.user and e.kind == "fact" and not e.is_closed]
        before = self.random.choice(of_user) if of_user else None
        entry.words = {part: self._new() for part in ("text", "tag", "session", "meta")}
        options = {part: word(entry.words[part]) for part in ("tag", "session", "meta")}
        if entry.kind == "superseding" and before is not None:
            entry.words = {**self.entries[before].words, "text": entry.words["text"]}
            self.entries[before].is_closed = True
            self._do("supersede", n, entry, text=self._text(entry.words["text"]), before=before)
            return
        if entry.kind == "derived" and before is not None:
            options["derived_from"] = [f"f{before}"]
        if entry.is_short:
            options["is_short"] = True
        length = 60 if entry.kind == "long" else 1
        self._do("add", n, entry, text=self._text(entry.words["text"], length), **options)
        if entry.kind == "archived" and n in self.entries:
            self._do("archive", n, entry)

    def _erase(self):
        n = self.random.choice(sorted(self.entries))
        entry, chance = self.entries[n], self.random.random()
        if chance < 0.015 and entry.user:
            self._do("expire" if chance < 0.01 else "forget_user", n, entry)
        elif entry.kind == "shared":
            self._do("delete_shared", n, entry)
        elif entry.kind == "item":
            self._erase_item(n, entry, chance)
        elif chance < 0.2:
            self._do("forget_session", n, entry, session=word(entry.words["session"]))
        elif entry.kind == "message" and chance < 0.6:
            self._change("rewrite", n, entry, "said")
        elif entry.kind == "message":
            self._do("pop", n, entry, session=word(entry.words["session"]))
        elif chance < 0.5 and not entry.is_closed:
            self._change("update", n, entry, "text", "tag", "meta")
        else:
            self._do("delete", n, entry, every=chance < 0.75)

    def _erase_item(self, n, entry, chance):
        if chance < 0.3:
            self._change("put", n, entry, "value", size=0)
        else:
            self._do("drop" if chance < 0.6 else "drop_namespace", n, entry, name=word(entry.words["name"]))

    def _change(self, name, n, entry, part, /, *more, **options):
        """Give parts of a record new sentinels."""
        self.previous = entry.words
        entry.words = entry.words | {each: self._new() for each in (part, *more)}
        self._do(name, n, entry, **{each: word(entry.words[each]) for each in entry.words} | options)

    def _do(self, name, n, entry, /, **options):
        """Let the process make a change; kill it sometimes while it does."""
        if name != "expire":  # the record may be gone, if this is tried again after a kill
            self.entries.setdefault(n, entry)
        self.process.send(name, n, word(entry.user) if entry.user else "", options)
        if self.random.random() < self.kills:
            time.sleep(self.random.random() * 0.02)
            self._restart(n)
            if name == "expire":
                self._do(name, n, entry)
        else:
            reported = self.process.answer()
            if name in ("put", "add", "say", "supersede"):
                self.written.add(entry.user)
            self._forget(self._gone(name, n, reported))
            if name == "forget_user":
                self.users.discard(entry.user)
                self.written.discard(entry.user)
        self.erased += self.previous is not None
        self.previous = None

    def _gone(self, name, n, reported):
        """Return the records that a change erased."""
        if name in ("drop", "drop_namespace", "pop"):
            return {n}
        if name == "forget_user":
            return {m for m, entry in self.entries.items() if entry.user == self.entries[n].user}
        if name == "forget_session" and self.entries[n].kind == "message":
            return {n}
        return {int(each[1:]) for each in reported or () if re.fullmatch(r"f\d+", each)}

    def _forget(self, numbers):
        for n in numbers & self.entries.keys():
            del self.entries[n]
            self.erased += 1

    def _restart(self, n):
        """Kill the process, start another, and see which of the two states the change of record `n` left."""
        self.process.kill()
        self.killed += 1
        self.process = Process(self.file, self.dimension, self.is_locked)
        found = self._found()
        if self.previous is not None and found.issuperset(self.previous.values()):
            self.entries[n].words, self.previous = self.previous, None
        self._forget({m for m, entry in self.entries.items() if not found.issuperset(entry.words.values())})
        self.written = (self.written | {entry.user for entry in self.entries.values()}) & found
        self.users &= self.written
        assert found == self.stored(), (found - self.stored(), self.stored() - found)


class Copy:
    """A copy of a memory's files.

    Args:
        file: the memory's; no process may be changing it.
        folder: where to put it.
    """

    def __init__(self, file, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.file = copy_to(file, folder)

    def read(self, keys, is_locked, *, marks=True):
        """Return by place what is sealed there, its sentinels, and the secret that opens it, if one of a key file does.

        Args:
            keys: the key file.
            is_locked: whether it is locked.
            marks: whether to try only the key that the beginning of the sealed content names.
        """
        found = {}
        ((file_id,),) = _rows_of(self.file, "SELECT value FROM meta WHERE name = 'key_file'")
        opened = KeyFile.open(FilePlace(keys), file_id, MASTER if is_locked else None)
        data = keys.read_bytes()
        slots = {data[at : at + 8]: data[at : at + 32] for at in range(4096, len(data), 32)}
        owners = dict(_rows_of(self.file, "SELECT no, key FROM users"))
        for table, (sealed_in, columns) in _PLACES.items():
            names = ", ".join(("no" if table == "users" else "user", sealed_in, *columns))
            rows = _rows_of(self.file, f"SELECT {names} FROM {table} WHERE {sealed_in} IS NOT NULL")
            for owner, sealed, *bound_to in rows:
                place = "\0".join([table, owners[owner], *map(str, bound_to)])
                candidates = [slots.get(sealed[:8])] if marks else list(slots.values())
                for slot in candidates:
                    text = None if slot is None else _unseal(slot, opened, sealed, place)
                    if text is not None:
                        of_owner = found.get(f"users\0{owners[owner]}", (set(),))[0]  # the id of a fact has none
                        found[place] = sentinels_in(text) or of_owner, slot[8:]
        return found


def _rows_of(file, statement):
    """Return the rows of a statement on a memory's tables, without opening the memory."""
    if not is_postgres_url(file):
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute(statement).fetchall()
    import psycopg

    with psycopg.connect(file) as connection:
        return connection.execute(_translate(1, f"{statement} -- :tenant")).fetchall()


def _unseal(slot, opened, sealed, place):
    try:
        content = DataKey(sealed[:8] + slot[8:], opened._root).unseal(sealed, place)
    except ValueError:
        return None
    return str(unpack_values(content)) if place.startswith("archive\0") else content.decode("latin-1")


def readable_files(*folders):
    """Return the files of folders that hold a word, a name or a vector of a workload."""
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and _is_readable(path)]


def _is_readable(path):
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # a server removes files at any time
        return False
    return b"qzxom" in data.lower() or any(each in data for each in MARKS)
