import shutil

import pytest

from meve.retriever import Retriever


def test_a_folder_is_indexed_and_what_was_skipped_is_told_with_its_reason(indexed):
    """Exit status 0, since something stands in the index; everything that is said goes to stderr."""
    folder, result = indexed
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert "broken.txt" in result.stderr
    assert "not UTF-8: byte 0xe9 at offset 3" in result.stderr
    assert "files: 3 read, 0 unchanged, 0 gone, 1 skipped" in result.stderr
    assert "passages: 4 added, 0 removed, 4 in all" in result.stderr
    assert len(Retriever.load(folder)) == 4


def test_a_second_run_reads_only_what_changed(meve, docs, index, tmp_path):
    """The settings of the first run stand."""
    folder = shutil.copytree(index, tmp_path / "index")
    changed = shutil.copytree(docs, tmp_path / "docs")
    result = meve("index", changed, "--to", folder)
    assert result.exit_code == 1
    assert "this index was made from" in result.stderr
    assert meve("index", docs, "--to", folder).stderr.count("0 read, 3 unchanged") == 1
    result = meve("index", docs, "--to", folder, "--chunk-tokens", 64)
    assert "every file was read again" in result.stderr
    assert "3 read, 0 unchanged" in result.stderr
    assert "0 read, 3 unchanged" in meve("index", docs, "--to", folder).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "there is nothing at"),
        (["empty"], "there are no files in"),
        (["docs", "--chunk-tokens", "3"], "chunk_tokens is 3"),
        (["docs", "--max-bytes", "0"], "max_bytes is 0"),
        (["docs", "--dense", "magic"], "magic"),
    ],
)
def test_what_cannot_be_done_is_an_error_in_one_line_and_leaves_no_index(meve, tmp_path, arguments, message):
    """Exit status 1, no traceback."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("words")
    result = meve("index", tmp_path / arguments[0], *arguments[1:], "--to", tmp_path / "index")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "index").exists()


def test_a_folder_with_other_files_is_refused_before_any_work(meve, docs, tmp_path):
    """Nothing in it is touched."""
    (tmp_path / "mine.txt").write_text("mine")
    result = meve("index", docs, "--to", tmp_path)
    assert (result.exit_code, [p.name for p in tmp_path.iterdir()]) == (1, ["mine.txt"])
    assert "holds other files ('mine.txt', …)" in result.stderr
    assert "a file: give a folder" in meve("index", docs, "--to", tmp_path / "mine.txt").stderr


def test_another_kind_of_vector_index_is_refused_for_an_index_that_exists(meve, docs, index):
    """It can't be changed afterwards."""
    result = meve("index", docs, "--to", index, "--dense", "hnsw")
    assert result.exit_code == 1
    assert "--dense is 'hnsw', but the index at" in result.stderr
