"""Test files that are read into a collection on a server: each passage once, whatever happens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meve import Passage, Retriever
from meve.ingest import Chunking, folder, ingest
from tests.fake_components import make_components

CHILD = Path(__file__).with_name("ingesting_child.py")


@pytest.fixture(params=["postgresql", "qdrant"])
def over(request, tmp_path):
    """Return the URL of an empty server, and a function that opens its collection; all are closed afterwards."""
    url = f"qdrant://{tmp_path}/qdrant"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    else:
        pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    opened = []

    def open_it():
        opened.append(Retriever.over(url, collection="docs", **make_components()))
        return opened[-1]

    yield url, open_it
    for each in opened:
        each.close()


@pytest.fixture
def files(tmp_path):
    """Return a folder of 40 files with up to three passages each."""
    made = tmp_path / "files"
    made.mkdir()
    for n in range(40):
        sections = [f"# Part {part} of {n}\n\nHoney number {n} of part {part}.\n" for part in range(n % 3 + 1)]
        (made / f"{n}.md").write_text("\n".join(sections))
    (made / "rows.jsonl").write_text('{"id": "moon", "text": "The Moon.", "source": "elsewhere", "file_path": "x"}\n')
    return made


def stored(retriever):
    """Return all passages in order, without the marks of the run."""
    return sorted(
        (p.id, p.title, p.text, sorted((k, str(v)) for k, v in p.metadata.items() if not k.startswith("meve.")))
        for p in retriever.passages()
    )


def test_run_that_was_killed_goes_on_and_leaves_each_passage_once(over, files):
    url, open_it = over
    expected = Retriever.empty(**make_components())
    ingest(files, expected)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(CHILD), str(files), url]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    for _ in range(3):
        assert child.stdout.readline() == "step\n"
    child.kill()
    child.wait()
    child.stdout.close()
    retriever = open_it()
    before = len(retriever)
    assert 20 <= before < len(expected)
    report = ingest(files, retriever)
    assert report.unchanged >= 8, "what was finished isn't read again"
    assert report.passages_added < len(expected)
    assert stored(retriever) == stored(expected)
    again = ingest(files, retriever)
    assert (again.read, again.unchanged, again.changed) == ((), 41, False)


def test_changes_of_files_are_followed_and_other_passages_stay(over, files, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "BATCH", 10)
    _, open_it = over
    retriever = open_it()
    retriever.add([Passage(id="mine", text="Not from a file.")])
    other = tmp_path / "other"
    other.mkdir()
    (other / "other.md").write_text("Another folder.")
    ingest(other, retriever)
    ingest(files, retriever)
    total = len(retriever)
    (files / "3.md").write_text("Wholly new words.")
    (files / "4.md").unlink()
    report = ingest(files, retriever)
    assert (report.read, report.removed, report.unchanged) == (("3.md",), ("4.md",), 39)
    assert len(retriever) == total - 1
    assert retriever.get("3.md#1").text == "Wholly new words."
    assert {"mine", "other.md#1"} <= {p.id for p in retriever.passages()}
    assert "4.md#1" not in retriever
    reread = ingest(files, retriever, chunking=Chunking(tokens=100))
    assert len(reread.read) == 40
    expected = Retriever.empty(**make_components())
    ingest(files, expected, chunking=Chunking(tokens=100))
    retriever.remove(["mine", "other.md#1"])
    assert stored(retriever) == stored(expected)
