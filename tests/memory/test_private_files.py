"""Files that memory makes are readable by their owner only, whatever the umask."""

import os
import stat
import sys
from pathlib import Path

import pytest

from meve._private_files import write_private
from tests.memories import open_memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_database_log_and_index_have_mode_600(file, umask):
    with open_memory(file) as memory:
        memory.add("My PIN is 4711.", user_id="alice")
        modes = {path.name: mode_of(path) for path in file.parent.iterdir()}
    assert modes == dict.fromkeys(["memory.db", "memory.db.keys", "memory.db-wal", "memory.db-shm"], "0o600")


def test_database_behind_a_dangling_link_has_mode_600(file, umask):
    file.symlink_to(file.parent / "elsewhere.db")
    open_memory(file).close()
    assert mode_of(file) == "0o600"


def test_file_of_others_keeps_its_mode_on_open(file):
    open_memory(file).close()
    file.chmod(0o640)
    open_memory(file).close()
    assert mode_of(file) == "0o640"


def test_written_file_has_mode_600_even_if_it_existed(tmp_path, umask):
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    old.touch()
    old.chmod(0o644)
    for path in (new, old):
        write_private(path, "text ä")
        assert (mode_of(path), path.read_bytes()) == ("0o600", "text ä".encode())


def test_text_goes_to_what_is_no_file():
    write_private(Path(os.devnull), "text")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
