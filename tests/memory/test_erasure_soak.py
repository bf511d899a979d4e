"""Erasures of all kinds of records in mixed workloads, with readers, kills and restarts.

`MEVE_ERASURES=50000` makes so many, `MEVE_SEED` chooses others, and `MEVE_FROM` begins at a part.
"""

import os

import pytest

from meve._postgres import is_postgres_url
from tests.memory.erasures import Copy, Process, Workload, readable_files
from tests.memory.sealed_files import key_file
from tests.postgres import MemoryUrl, own_schema, own_server

ERASURES, SEED, FROM = (int(os.environ.get(f"MEVE_{name}", "0")) for name in ("ERASURES", "SEED", "FROM"))
PART = 2_500
DIMENSIONS = (16, 384, 1_024, 3_072)


@pytest.fixture
def place(request, tmp_path):
    """Return where to keep a memory, and the folders in which nothing readable may stand.

    The files of a PostgreSQL server hold deleted rows, its log of changes, and its messages.
    """
    folder = tmp_path / "memory"
    folder.mkdir()
    if request.config.getoption("--memory") == "sqlite":
        yield folder / "memory.db", [folder]
        return
    with own_server(tmp_path) as server, own_schema(server.url, "soak") as url:
        yield MemoryUrl(url, folder / "memory.keys"), [folder, server.folder]


@pytest.mark.timeout(120 + 4 * min(ERASURES, PART))
@pytest.mark.parametrize("part", range(FROM, max(1, ERASURES // PART)))
def test_what_is_erased_stands_in_no_file_and_opens_with_no_key(part, place, tmp_path):
    file, folders = place
    keys = key_file(file)
    count, batch = (PART, 250) if ERASURES else (120, 60)
    size = {"dimension": DIMENSIONS[part % len(DIMENSIONS)]}
    checked = 0
    with Workload(file, seed=SEED * 1_000 + part, kills=0.004 if ERASURES else 0.01, **size) as work:
        while work.erased < count:
            copy = Copy(file, tmp_path / "before")
            before = copy.read(key_file(copy.file), work.is_locked)
            target = work.erased + batch
            with Process(file, size["dimension"], work.is_locked, reads=True):
                while work.erased < target:
                    work.step()
                work.check()
                write_out(file)
                assert readable_files(*folders) == []
                checked += check_copy(copy, before, keys, work)
    assert checked > count / 4


def write_out(file):
    """Let a server write its pages to its files."""
    if is_postgres_url(file):
        import psycopg

        with psycopg.connect(file, autocommit=True) as connection:
            connection.execute("CHECKPOINT")


def check_copy(copy, before, keys, work):
    """Check that what was erased since a copy was made opens with no key of today. Return how much that is."""
    stored, after, data = work.stored(), copy.read(keys, work.is_locked), keys.read_bytes()
    erased = {place: secret for place, (words, secret) in before.items() if not words <= stored}
    kept = {place for place, (words, _) in before.items() if words <= stored}
    assert after.keys() == kept, {place: before.get(place) for place in after.keys() ^ kept}
    assert not [place for place, secret in erased.items() if secret in data]
    if work.random.random() < 0.1:
        assert copy.read(keys, work.is_locked, marks=False).keys() == kept
    return len(erased)
