import logging
import os
import shutil

import pytest

from meve.cli.index import _names_same_models
from meve.retrieval._snapshot import read_manifest
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def test_folder_is_indexed_and_skipped_files_are_listed(indexed):
    folder, result = indexed
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert "broken.txt" in result.stderr
    assert "not UTF-8: byte 0xe9 at offset 3" in result.stderr
    assert "files: 3 read, 0 unchanged, 0 removed, 1 skipped" in result.stderr
    assert "passages: 5 added, 0 removed, 5 in total" in result.stderr
    assert len(Retriever.load(folder)) == 5


@pytest.fixture
def mixed_files(tmp_path):
    """Return a folder with a text, twelve images, two undecodable texts and four empty files."""
    folder = tmp_path / "mixed_files"
    folder.mkdir()
    (folder / "a.md").write_text("Words about bees.")
    for n in range(12):
        (folder / f"figure{n:02}.svg").write_text("<svg><path d='M0 0'/></svg>")
    for n, name in enumerate(("old.txt", "old.md")):
        (folder / name).write_bytes(b" " * n + b"caf\xe9")
    for name in ("LICENSE", "NOTICE", "AUTHORS", "COPYING"):
        (folder / name).touch()
    return folder


def test_skipped_files_of_one_kind_are_grouped(meve, mixed_files, tmp_path):
    message = meve("index", mixed_files, "--to", tmp_path / "index").stderr
    assert [f"figure{n:02}.svg" in message for n in range(12)] == [True] * 3 + [False] * 9
    rows = [" ".join(line.split()) for line in message.splitlines()]
    assert "… 9 more .svg a picture" in rows
    assert "… 1 more empty" in rows
    assert "old.txt not UTF-8: byte 0xe9 at offset 3; save it as UTF-8" in rows
    assert "old.md not UTF-8: byte 0xe9 at offset 4; save it as UTF-8" in rows
    assert rows[0] == "skipped (--verbose names all)"
    assert "files: 1 read, 0 unchanged, 0 removed, 18 skipped" in rows


def test_verbose_names_every_skipped_file(meve, mixed_files, tmp_path):
    message = meve("index", mixed_files, "--to", tmp_path / "index", "--verbose").stderr
    assert all(f"figure{n:02}.svg" in message for n in range(12))
    assert "more" not in message
    assert message.splitlines()[0] == "skipped"


def test_kept_passages_of_unnamed_files_are_counted(meve, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in range(5):
        (folder / f"{n}.txt").write_text(f"Words about the bees of hive {n}.")
    assert meve("index", folder, "--to", tmp_path / "index").exit_code == 0
    for n in range(5):
        (folder / f"{n}.txt").write_bytes(b"caf\xe9")
    rows = [line.split() for line in meve("index", folder, "--to", tmp_path / "index").stderr.splitlines()]
    assert ["…", "2", "more", ".txt", "not", "UTF-8", "2"] in rows


def test_index_follows_its_folder_where_it_was_moved(meve, docs, index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    moved = shutil.copytree(docs, tmp_path / "elsewhere")
    (moved / "new.md").write_text("# Ferries\n\nThe ferry leaves at noon.\n", encoding="utf-8")
    assert "1 read, 3 unchanged, 0 removed" in meve("index", moved, "--to", folder, "--moved").stderr
    assert "0 read, 4 unchanged" in meve("index", moved, "--to", folder).stderr
    assert meve("index", docs, "--to", folder).exit_code == 1
    result = meve("index", moved, "--to", "qdrant://:memory:", "--collection", "docs", "--moved")
    assert result.exit_code == 1
    assert "--moved is for an index in a folder" in result.stderr


def test_index_of_other_files_is_not_taken_for_a_moved_one(meve, docs, index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.md").write_text("# Ferries\n\nThe ferry leaves at noon.\n", encoding="utf-8")
    result = meve("index", other, "--to", folder, "--moved")
    assert result.exit_code == 1
    assert "holds none of the 3 files" in " ".join(result.stderr.split())
    assert "0 read, 3 unchanged, 0 removed" in meve("index", docs, "--to", folder).stderr


def test_second_run_reads_only_changed_files(meve, docs, index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    changed = shutil.copytree(docs, tmp_path / "docs")
    result = meve("index", changed, "--to", folder)
    assert result.exit_code == 1
    assert "this index was made from" in result.stderr
    assert "--moved" in result.stderr
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
        (["docs", "--chunk-tokens", "3"], "tokens must be a whole number of at least 16, got 3"),
        (["docs", "--max-bytes", "0"], "max_bytes must be a whole number of at least 1, got 0"),
        (["docs", "--dense", "magic"], "magic"),
    ],
)
def test_invalid_arguments_are_rejected_without_an_index(meve, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("words")
    result = meve("index", tmp_path / arguments[0], *arguments[1:], "--to", tmp_path / "index")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "index").exists()


def test_folder_with_other_files_is_rejected_unchanged(meve, docs, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    result = meve("index", docs, "--to", tmp_path)
    assert (result.exit_code, [p.name for p in tmp_path.iterdir()]) == (1, ["mine.txt"])
    assert "holds other files ('mine.txt', …)" in result.stderr
    assert "a file: give a folder" in meve("index", docs, "--to", tmp_path / "mine.txt").stderr


def test_other_vector_index_is_rejected_for_existing_index(meve, docs, index):
    result = meve("index", docs, "--to", index, "--dense", "hnsw")
    assert result.exit_code == 1
    assert "--dense is 'hnsw', but the index at" in result.stderr


def test_auto_keeps_the_existing_vector_index(meve, docs, index):
    result = meve("index", docs, "--to", index, "--dense", "auto")
    assert (result.exit_code, "0 read, 3 unchanged" in result.stderr) == (0, True), result.stderr


def test_unchanged_index_is_not_written(meve, tmp_path):
    file, folder = tmp_path / "docs" / "a.txt", tmp_path / "index"
    file.parent.mkdir()
    file.write_text("Words about apples.")
    os.utime(file, (1, 1))

    def run(*options):
        result = meve("index", file.parent, "--to", folder, *options)
        assert result.exit_code == 0, result.stderr
        return read_manifest(folder)["generation"], "nothing changed" in result.stderr

    first, _ = run()
    assert run() == (first, True)
    os.utime(file, (2, 2))
    second, _ = run()
    assert second != first
    assert run() == (second, True)
    file.write_text("Words about pears.")
    third, nothing = run()
    assert (third != second, nothing) == (True, False)


def test_other_verifier_is_saved_without_changed_files(monkeypatch, tmp_path):
    texts = {"embedder": WordEmbedder(), "tokens": WordCounter()}
    retriever = Retriever.from_texts(["Words."], verifier=OverlapVerifier(), **texts)
    assert not _names_same_models(retriever, tmp_path / "index")
    retriever.save(tmp_path / "index")
    assert _names_same_models(retriever, tmp_path / "index")
    monkeypatch.setattr(OverlapVerifier, "name", "another")
    assert not _names_same_models(retriever, tmp_path / "index")


def test_index_in_the_folder_is_not_indexed(meve, docs, tmp_path):
    texts = shutil.copytree(docs, tmp_path / "docs")
    assert meve("index", texts, "--to", texts / "index").exit_code == 0
    result = meve("index", texts, "--to", tmp_path / "other")
    assert "files: 3 read, 0 unchanged, 0 removed, 1 skipped" in result.stderr
    assert "passages: 5 added" in result.stderr


def test_files_that_take_too_long_are_skipped(meve, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("Words about bees.")
    result = meve("index", folder, "--to", tmp_path / "index", "--max-seconds", "0.0000001")
    assert result.exit_code == 1
    assert "a.md: takes too long: more than 1e-07 seconds" in " ".join(result.stderr.split())
    assert meve("index", folder, "--to", tmp_path / "index", "--max-seconds", "0").exit_code != 0


def test_embedding_that_takes_minutes_is_told_with_the_choice(meve, docs, tmp_path, monkeypatch):
    monkeypatch.setattr("meve.pipeline._preparation.TIMED", 1)
    monkeypatch.setattr("meve.pipeline._preparation.LONG", -1.0)
    message = meve("index", docs, "--to", tmp_path / "index").stderr
    assert "warning: embedding 5 passages with 'meve-minilm-1' takes 0 minutes more" in message
    assert "'static'" in message
    assert not logging.getLogger("meve").handlers[1:], "the handler goes with the command"


def test_server_keeps_what_was_indexed_and_what_was_read(meve, docs, tmp_path):
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    to = ["--to", f"qdrant://{tmp_path}/server", "--collection", "texts", "--embedder", "static"]
    first = meve("index", docs, *to)
    assert first.exit_code == 0, first.stderr
    assert "passages: 5 added, 0 removed, 5 in total" in first.stderr
    again = meve("index", docs, *to)
    assert "files: 0 read, 3 unchanged, 0 removed, 1 skipped" in again.stderr
    assert "(nothing changed)" in again.stderr
    retriever = Retriever.over(f"qdrant://{tmp_path}/server", collection="texts")
    assert retriever.retrieve("How do bees tell each other where food is?").passages[0].passage.id == "bees.md#2"
    retriever.close()
    assert "index: collection texts" in again.stderr
    assert "qdrant://" not in again.stderr  # a URL may hold a password
    secret = ["--to", "postgresql://me:secret@localhost/meve", "--collection", "texts"]
    assert "set MEVE_INDEX instead" in " ".join(meve("index", docs, *secret).stderr.replace("│", "").split())
    for options, message in (
        (to[:2], "needs --collection"),
        (["--to", tmp_path / "x", *to[2:4]], "must be left out"),
        ([*to, "--verifier", "cosine"], "--verifier must be left out for a server, which keeps no settings"),
    ):
        assert message in " ".join(meve("index", docs, *options).stderr.split())


def test_zero_tokens_of_a_passage_are_refused_on_ray_too(meve, tmp_path):
    (tmp_path / "a.txt").write_text("Apples are red.")
    options = ["--to", "postgresql://server/plants", "--collection", "c", "--ray", "auto", "--chunk-tokens", "0"]
    result = meve("index", tmp_path, *options)
    assert result.exit_code == 1
    assert "tokens must be a whole number of at least 16, got 0" in " ".join(result.stderr.split())
