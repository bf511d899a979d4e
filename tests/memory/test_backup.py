"""Backups made with the databases' own tools, and what opens after a restore with older and newer keys."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from urllib.parse import urlsplit, urlunsplit

import pytest

from meve.errors import KeyFileError
from tests.memories import open_memory
from tests.memory.sealed_files import key_file
from tests.postgres import MemoryUrl, find_programs


class SqliteBackups:
    """Backups by SQLite's online backup, in folders."""

    def __init__(self, tmp_path):
        self.folder = tmp_path / "backups"
        self.folder.mkdir()
        self.place = tmp_path / "memory.db"

    def save_database(self, name):
        with closing(sqlite3.connect(self.place)) as source, closing(sqlite3.connect(self.folder / name)) as target:
            source.backup(target)

    def save_keys(self, name):
        shutil.copy(key_file(self.place), self.folder / f"{name}.keys")

    def restore(self, database, keys):
        """Restore a backup of the database and one of the keys beside it; return the place."""
        folder = self.folder / f"{database} with {keys}"
        folder.mkdir()
        shutil.copy(self.folder / database, folder / "memory.db")
        shutil.copy(self.folder / f"{keys}.keys", folder / "memory.db.keys")
        return folder / "memory.db"


class PostgresBackups(SqliteBackups):
    """Backups by pg_dump and pg_restore; each restore makes another database."""

    def __init__(self, tmp_path, url):
        super().__init__(tmp_path)
        self.place = MemoryUrl(url, tmp_path / "memory.keys")
        self.made = []

    def run(self, program, *arguments):
        if "MEVE_POSTGRES_URL" not in os.environ:
            program = find_programs() / program
        elif shutil.which(program) is None:
            pytest.skip(f"NOT TESTED: {program} isn't installed")
        subprocess.run([program, *arguments], check=True, capture_output=True, text=True)

    def save_database(self, name):
        import psycopg

        with psycopg.connect(self.place) as connection:  # other tests' schemas, which come and go, aren't dumped
            ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
        options = "--format=custom", f"--schema={schema}", f"--file={self.folder / name}"
        self.run("pg_dump", *options, f"--dbname={self.place}")

    def restore(self, database, keys):
        import psycopg

        name = f"restored_{len(self.made)}_{os.getpid()}"
        with psycopg.connect(self.place, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        self.made.append(name)
        url = urlunsplit(urlsplit(self.place)._replace(path=f"/{name}"))
        self.run("pg_restore", "--exit-on-error", f"--dbname={url}", self.folder / database)
        shutil.copy(self.folder / f"{keys}.keys", self.folder / f"{name}.keys")
        return MemoryUrl(url, self.folder / f"{name}.keys")

    def close(self):
        import psycopg

        with psycopg.connect(self.place, autocommit=True) as connection:
            for name in self.made:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def backups(request, tmp_path):
    """Yield three backups of database and keys: `first`, `second` and `last`, each after an erasure and an addition."""
    if request.param == "sqlite":
        made = SqliteBackups(tmp_path)
    else:
        made = PostgresBackups(tmp_path, request.getfixturevalue("postgres_url"))
    with open_memory(made.place) as memory:
        for name in ("kept", "gone early", "gone late"):
            memory.add(f"I like {name}.", user_id="alice", id=name, source="doc")
        save(made, "first")
        memory.delete("gone early", user_id="alice")
        memory.add("I like later.", user_id="alice", id="later", source="doc")
        save(made, "second")
        memory.delete("gone late", user_id="alice")
        memory.add("I like last.", user_id="alice", id="last", source="doc")
        save(made, "last")
    yield made
    if request.param == "postgresql":
        made.close()


def save(backups, name):
    """Save the database, and then the keys."""
    backups.save_database(name)
    backups.save_keys(name)


def ids(memory):
    return {record.id for record in memory.list(user_id="alice")}


def test_backup_with_its_own_keys_opens_and_verifies(backups):
    with open_memory(backups.restore("second", "second")) as restored:
        assert ids(restored) == {"kept", "gone late", "later"}
        assert restored.audit.verify().ok
        assert restored.find_damage() == []
        restored.add("I like more.", user_id="alice")
        restored.forget_user(user_id="alice")
        assert restored.audit.verify().ok


def test_older_database_with_newest_keys_opens_on_request_without_what_was_erased(backups):
    place = backups.restore("first", "last")
    with pytest.raises(KeyFileError, match="is a copy from before an erasure"):
        open_memory(place)
    with open_memory(place, accept_older=True) as restored:
        assert ids(restored) == {"kept"}
        restored.add("I like more.", user_id="alice", id="more")
    with open_memory(place) as restored:
        assert ids(restored) == {"kept", "more"}


def test_newer_database_with_older_keys_is_refused_and_left_as_it_is(backups):
    place = backups.restore("last", "first")
    before = key_file(place).read_bytes()
    for options in ({}, {"accept_older": True}):
        with pytest.raises(KeyFileError, match="is older than the memory, and lacks keys of it"):
            open_memory(place, **options)
    assert key_file(place).read_bytes() == before
    shutil.copy(backups.folder / "last.keys", key_file(place))
    with open_memory(place) as restored:
        assert ids(restored) == {"kept", "later", "last"}
        assert restored.audit.verify().ok


def test_backup_of_both_from_before_an_erasure_holds_what_was_erased(backups):
    """Why copies of keys must be kept apart from the database's backups, and not for long."""
    with open_memory(backups.restore("first", "first")) as restored:
        assert "gone early" in ids(restored)


def test_additions_between_database_and_keys_do_no_harm(backups):
    with open_memory(backups.place) as memory:
        backups.save_database("between")
        memory.add("I like between.", user_id="alice", id="between", source="doc")
        backups.save_keys("between")
    with open_memory(backups.restore("between", "between")) as restored:
        assert ids(restored) == {"kept", "later", "last"}
        restored.add("I like more.", user_id="alice")
        assert len(ids(restored)) == 4


def test_database_without_any_key_file_is_refused(backups):
    place = backups.restore("last", "last")
    key_file(place).unlink()
    with pytest.raises(KeyFileError, match="nothing in the memory can be read without its keys"):
        open_memory(place)


def test_dump_by_a_role_that_sees_no_rows_fails_instead_of_leaving_them_out(postgres_url, tmp_path):
    import psycopg

    backups, role = PostgresBackups(tmp_path, postgres_url), f"plain_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {role}")
    try:
        parts = urlsplit(postgres_url)
        backups.place = MemoryUrl(
            urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.partition('@')[2]}")), tmp_path / "memory.keys"
        )
        with open_memory(backups.place) as memory:
            memory.add("I like tea.", user_id="alice")
        with pytest.raises(subprocess.CalledProcessError) as failed:
            backups.run("pg_dump", f"--schema={schema}", f"--dbname={backups.place}", f"--file={tmp_path / 'x'}")
        assert "row-level security" in failed.value.stderr
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")
