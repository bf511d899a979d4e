"""Connections to an SQLite file: a pool of them, their settings, and SQLite's errors as MeVe's."""

import os
import random
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from meve._fork_safety import GATE, ForkSafeLock, check_process
from meve._private_files import create_private
from meve.errors import StorageError, StoreBusyError, StoreCorruptError

WAIT_SECONDS = 60.0
"""The longest wait of a writer for other writers."""
NO_TRUST = ("PRAGMA trusted_schema = OFF",)  # a schema from elsewhere may call no functions with side effects
SETTINGS = (
    *NO_TRUST,
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # an acknowledged write survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",  # no content in temporary files
    "PRAGMA cache_size = -16000",
)


_INHERITED: list[sqlite3.Connection] = []
"""A forked process's copies of its parent's connections. It must neither use nor close them: closing unlocks files."""


class Connections:
    """Lends connections: one that writes, to one thread at a time, and any number that read.

    A forked process opens connections of its own.

    Args:
        file: the file.
        settings: the statements that set up each connection.
        wait_seconds: the longest wait of a writer for other processes; `WAIT_SECONDS` by default.
    """

    def __init__(self, file: Path, settings: Sequence[str] = SETTINGS, *, wait_seconds: float | None = None) -> None:
        self.file, self.settings, self.wait_seconds = file, settings, wait_seconds or WAIT_SECONDS
        self._idle: list[sqlite3.Connection] = []
        self._guard, self._writers = ForkSafeLock(), ForkSafeLock()
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._durable = True
        _OPEN.add(self)

    @contextmanager
    def first(self, settings: Sequence[str] | None = None) -> Iterator[sqlite3.Connection]:
        """Lend a connection in autocommit mode, for the schema; without settings it changes nothing by itself."""
        with GATE.passing():
            connection = self.opened(settings)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees one state of the file from its first statement on."""
        with GATE.passing(), self._map_errors("read"):
            connection, process = self._borrow(), os.getpid()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if process == os.getpid():
                    connection.rollback()
                    self._return(connection)
                else:
                    _INHERITED.append(connection)
            check_process(process)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction: commit when the block ends, roll back when it raises."""
        with self._lend_writer() as connection:
            if durable != self._durable:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            process = os.getpid()
            _execute_when_free(connection, "BEGIN IMMEDIATE", self.wait_seconds)
            try:
                yield connection
                check_process(process)
            except BaseException:
                if process == os.getpid():
                    connection.rollback()
                raise
            try:
                _execute_when_free(connection, "COMMIT", self.wait_seconds)
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    @contextmanager
    def _lend_writer(self) -> Iterator[sqlite3.Connection]:
        with GATE.passing(), self._map_errors("written"), self._writers:
            self._check_open()
            if self._writer is None:
                self._writer = self.opened()
                self._writer.execute("PRAGMA busy_timeout = 0")  # `_execute_when_free` waits instead
            yield self._writer

    def opened(self, settings: Sequence[str] | None = None) -> sqlite3.Connection:
        """Return a new connection, in autocommit mode; a new file is private from the first moment."""
        create_private(self.file)
        connection = sqlite3.connect(
            self.file, timeout=self.wait_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            for setting in self.settings if settings is None else settings:
                _execute_when_free(connection, setting, WAIT_SECONDS)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close idle connections now, and the others when they come back. Writers that wait are refused."""
        self._closed = True  # before the wait for the writer at work
        with GATE.passing(), self._writers, self._guard:
            for connection in self._take_all():
                connection.close()

    def forked(self) -> None:
        """Start without connections: they belong to threads of the parent process."""
        _INHERITED.extend(self._take_all())
        self._durable = True

    def _take_all(self) -> list[sqlite3.Connection]:
        connections = [*self._idle, *([self._writer] if self._writer else [])]
        self._idle, self._writer = [], None
        return connections

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.file} is closed: open it again")

    def _borrow(self) -> sqlite3.Connection:
        with self._guard:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        return self.opened()

    def _return(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _map_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as cause:
            raise map_error(cause, self.file, doing, self.wait_seconds) from cause
        except UnicodeDecodeError as cause:  # SQLite's message holds what is left of the tables' names
            raise StoreCorruptError(f"{self.file} is damaged: restore it from a copy") from cause
        except OverflowError as cause:
            if "SQLite" not in str(cause):
                raise
            raise StoreCorruptError(f"{self.file} holds a number that is too large: restore it from a copy") from cause


def _execute_when_free(connection: sqlite3.Connection, statement: str, wait_seconds: float) -> None:
    """Execute a statement, and try again every few milliseconds while others lock the file.

    SQLite's own waiting tries ever more rarely, so a writer that has waited long would be overtaken by all later ones.
    """
    end = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(random.uniform(0.001, 0.005))
        else:
            return


_OPEN: "weakref.WeakSet[Connections]" = weakref.WeakSet()


def _in_child() -> None:
    for connections in list(_OPEN):
        connections.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def map_error(cause: sqlite3.DatabaseError, file: Path, doing: str, wait_seconds: float | None = None) -> StorageError:
    """Return SQLite's error as one of MeVe's that names the file and the next step."""
    code = getattr(cause, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(
            f"{file} has been locked by other writers for over {wait_seconds or WAIT_SECONDS:.0f} s: try again"
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(f"{file} is damaged, or a file of another kind ({cause}): restore it from a copy")
    if primary == sqlite3.SQLITE_FULL:
        return StorageError(f"{file} can't be {doing}: the disk is full ({cause}); nothing was changed")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(f"{file} can't be {doing}: {cause}; check the permissions of the file and its folder")
    return StorageError(f"{file} can't be {doing}: {type(cause).__name__}: {cause}")
