import json
import os
import random
from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import ConfigurationError, IngestError
from meve.ingest import Chunking, folder, ingest
from meve.ingest.report import KEY
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import CountingEmbedder, FakeClock, OverlapVerifier, WordCounter, WordEmbedder

LATER = FakeClock(datetime.now(UTC) + timedelta(hours=1))
"""A time at which every file of the test is old."""


@pytest.fixture
def docs(tmp_path):
    """Return a folder with one file of every kind, and some to skip."""
    root = tmp_path / "docs"
    files = {
        "a.txt": "Plain words about apples.",
        "b.md": "# Guide\n\nWords about bananas.",
        "c/page.html": "<html><title>Page</title><body><h1>Cherries</h1><p>Words about cherries.</p></body></html>",
        "c/d.rst": "Dates\n=====\n\nWords about dates.",
        "e.py": "def elderberry():\n    return 1\n",
        "f.jsonl": '{"text": "Words about figs."}\n{"id": "g", "text": "Words about grapes."}\n',
        ".hidden": "no",
        ".git/config": "no",
        "__pycache__/x.txt": "no",
        "node_modules/x.js": "no",
        ".venv/x.py": "no",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def embedder():
    return CountingEmbedder(WordEmbedder())


@pytest.fixture
def retriever(embedder):
    return Retriever.empty(embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())


def again(retriever, folder, embedder):
    """Save and load the retriever and reset its counts, as a second run of the command."""
    retriever.save(folder)
    embedder.calls.passages.clear()
    return Retriever.load(folder, embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())


def ids(retriever):
    return sorted(p.id for p in retriever.passages())


ALL = ["a.txt#1", "b.md#1", "c/d.rst#1", "c/page.html#1", "e.py#1", "f.jsonl#1", "g"]


def test_every_kind_of_file_is_read_except_hidden(docs, retriever):
    report = ingest(docs, retriever)
    assert report.read == ("a.txt", "b.md", "c/d.rst", "c/page.html", "e.py", "f.jsonl")
    assert (report.passages_added, report.skipped, report.warnings) == (7, (), ())
    assert ids(retriever) == ALL
    titles = {i: retriever.get(i).title for i in ALL}
    assert list(titles.values()) == ["a.txt", "Guide", "Dates", "Cherries", "e.py", "", ""]
    assert retriever.get("c/d.rst#1").text == "Words about dates."
    assert retriever.retrieve("cherries", where={"kind": "html"}).passages[0].passage.id == "c/page.html#1"


def test_single_file_is_ingested(docs, retriever):
    assert ingest(docs / "b.md", retriever).read == ("b.md",)
    assert ids(retriever) == ["b.md#1"]


def test_second_run_reads_only_changed_files(docs, retriever, embedder, tmp_path, monkeypatch):
    ingest(docs, retriever, clock=LATER)
    retriever = again(retriever, tmp_path / "index", embedder)
    embedder.calls.passages.clear()
    (docs / "b.md").write_text("# Guide\n\nWords about blueberries.")
    opened = []
    read_data = folder.read_data
    monkeypatch.setattr(folder, "read_data", lambda path, **k: opened.append(path.name) or read_data(path, **k))
    report = ingest(docs, retriever, clock=LATER)
    assert (opened, report.read, report.unchanged) == (["b.md"], ("b.md",), 5)
    assert (report.passages_added, report.passages_removed) == (1, 1)
    assert embedder.calls.passages == ["Guide\nWords about blueberries."]
    assert retriever.get("b.md#1").text == "Words about blueberries."
    assert ids(retriever) == ALL


def test_touched_file_is_not_embedded_again(docs, retriever, embedder):
    ingest(docs, retriever, clock=LATER)
    embedder.calls.passages.clear()
    os.utime(docs / "a.txt", (1, 1))
    report = ingest(docs, retriever, clock=LATER)
    assert (report.read, report.unchanged, embedder.calls.passages) == ((), 6, [])


def test_change_within_clock_resolution_is_detected(docs, retriever):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    stamp = int(now.timestamp() * 1e9)
    os.utime(docs / "a.txt", ns=(stamp, stamp))
    ingest(docs, retriever, clock=FakeClock(now))
    (docs / "a.txt").write_text("Plain words about oranges"[:24] + ".")
    os.utime(docs / "a.txt", ns=(stamp, stamp))
    report = ingest(docs, retriever, clock=FakeClock(now))
    assert report.read == ("a.txt",)


def test_passages_of_deleted_file_are_removed(docs, retriever, embedder):
    ingest(docs, retriever, clock=LATER)
    embedder.calls.passages.clear()
    (docs / "c" / "d.rst").unlink()
    report = ingest(docs, retriever, clock=LATER)
    assert (report.removed, report.passages_removed, embedder.calls.passages) == (("c/d.rst",), 1, [])
    assert ids(retriever) == [i for i in ALL if i != "c/d.rst#1"]


def test_moved_file_is_found_under_new_name(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").rename(docs / "c" / "z.txt")
    report = ingest(docs, retriever, clock=LATER)
    assert (report.removed, report.read) == (("a.txt",), ("c/z.txt",))
    assert ids(retriever) == sorted([*ALL[1:], "c/z.txt#1"])


def test_unreadable_files_do_not_affect_others(docs, retriever):
    (docs / "binary.txt").write_bytes(b"a\0b")
    (docs / "latin.txt").write_bytes(b"caf\xe9")
    (docs / "empty.txt").write_text(" \n")
    (docs / "dashes.md").write_text("---\n\n***\n")
    (docs / "huge.txt").write_text("word " * 1000)
    (docs / "front.md").write_text("---\nsummary: The code is 4711\n---\n")
    (docs / "link.txt").symlink_to("nowhere.txt")
    (docs / "linked").symlink_to(docs / "c")
    (docs / "bad.jsonl").write_text("{\n")
    os.mkfifo(docs / "pipe")
    for name in ("piped", "endless"):  # where the manifest of an index would stand
        (docs / name).mkdir()
    os.mkfifo(docs / "piped" / "meve.json")
    (docs / "endless" / "meve.json").symlink_to("/dev/zero")
    report = ingest(docs, retriever, max_bytes=1000)
    assert {s.path: s.reason.split(":")[0].split(";")[0] for s in report.skipped} == {
        "binary.txt": "binary",
        "latin.txt": "not UTF-8",
        "empty.txt": "empty",
        "dashes.md": "holds no letter and no digit",
        "front.md": "holds only front matter",
        "huge.txt": "too large",
        "link.txt": "a broken link, to nowhere.txt",
        "linked": "a link to a folder",
        "bad.jsonl": "no line is a valid passage",
        "pipe": "not a regular file",
        "piped/meve.json": "not a regular file",
        "endless/meve.json": "a link that leaves the folder, to /dev/zero",
    }
    assert ids(retriever) == ALL


def test_link_that_leaves_the_folder_is_skipped(docs, retriever, tmp_path):
    (tmp_path / "secret.txt").write_text("Words about secrets.")
    (docs / "inside.txt").symlink_to(docs / "a.txt")
    (docs / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "indirect.txt").symlink_to("outside.txt")
    (docs / "device.txt").symlink_to("/dev/null")
    report = ingest(docs, retriever)
    reasons = {skipped.path: skipped.reason for skipped in report.skipped}
    assert reasons.keys() == {"outside.txt", "indirect.txt", "device.txt"}
    assert all(reason.startswith("a link that leaves the folder, to ") for reason in reasons.values())
    assert ids(retriever) == sorted([*ALL, "inside.txt#1"])


def test_file_that_takes_too_long_is_skipped_and_keeps_its_passages(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_text("Words about pears.")
    report = ingest(docs, retriever, clock=LATER, max_seconds=1e-9)
    assert [(s.path, s.kept) for s in report.skipped] == [("a.txt", 1)]
    assert report.skipped[0].reason.startswith("takes too long: more than 1e-09 seconds")
    assert ids(retriever) == ALL


def test_max_seconds_out_of_range_raises(docs, retriever):
    for wrong in (0, -1, True, "3", float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match="max_seconds must be a number"):
            ingest(docs, retriever, max_seconds=wrong)


def test_file_name_not_in_utf8_is_skipped(docs, retriever):
    with open(os.fsencode(docs) + b"/caf\xe9.txt", "w") as out:
        out.write("words")
    (skipped,) = ingest(docs, retriever).skipped
    assert (skipped.path, skipped.reason) == ("caf\\udce9.txt", "its name is not UTF-8; rename it")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
@pytest.mark.parametrize("name", ["/caf\udce9.txt", "/caf\udce9"])
def test_path_that_is_not_utf8_is_refused_before_anything_is_read(tmp_path, retriever, name):
    path = tmp_path.as_posix() + name
    try:
        os.makedirs(path) if name.endswith("9") else open(path, "w").close()
    except OSError:
        pytest.skip("the file system has no such names")
    with pytest.raises(IngestError, match=r"caf\\udce9\S* is not UTF-8, so an index can't name it: rename it"):
        ingest(path, retriever)


def test_passages_stay_when_file_becomes_unreadable(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_bytes(b"caf\xe9")
    report = ingest(docs, retriever, clock=LATER)
    assert [(s.path, s.kept) for s in report.skipped] == [("a.txt", 1)]
    assert retriever.get("a.txt#1").text == "Plain words about apples."
    (docs / "a.txt").write_text("Plain words about apricots.")
    assert ingest(docs, retriever, clock=LATER).read == ("a.txt",)
    assert retriever.get("a.txt#1").text == "Plain words about apricots."


def test_emptied_file_loses_its_passages(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_text("")
    report = ingest(docs, retriever, clock=LATER)
    assert [(s.path, s.reason, s.kept) for s in report.skipped] == [("a.txt", "empty", 0)]
    assert ids(retriever) == ALL[1:]


def test_unlistable_folder_keeps_its_passages(docs, retriever, monkeypatch):
    """Root may list every folder, so the error is simulated."""
    ingest(docs, retriever, clock=LATER)
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/c"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = ingest(docs, retriever, clock=LATER)
    assert [(s.path, s.kept) for s in report.skipped] == [("c", 2)]
    assert "permission denied" in report.skipped[0].reason
    assert report.removed == ()
    assert ids(retriever) == ALL


def test_invalid_lines_are_reported_and_valid_ones_read(docs, retriever):
    (docs / "f.jsonl").write_text('{"text": "good"}\n' + "bad\n" * 25)
    report = ingest(docs, retriever)
    assert report.warnings[0].startswith("f.jsonl: line 2: not JSON")
    assert (len(report.warnings), report.warnings[-1]) == (21, "f.jsonl: 5 more lines were left out")
    assert retriever.get("f.jsonl#1").text == "good"


def test_duplicate_id_is_left_out_with_warning(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.jsonl").write_text('{"id": "g", "text": "Another."}\n{"id": "h", "text": "Own."}\n')
    report = ingest(docs, retriever, clock=LATER)
    assert report.warnings[0].startswith("a.jsonl: 1 passages were left out, since their ids are taken, 'g' for one")
    assert retriever.get("g").text == "Words about grapes."
    assert retriever.get("h").text == "Own."
    (docs / "f.jsonl").unlink()
    assert ingest(docs, retriever, clock=LATER).warnings == ()
    assert retriever.get("g").text == "Another."


def test_path_ids_take_precedence_over_row_ids(docs, retriever):
    (docs / "a.jsonl").write_text('{"id": "b.md#1", "text": "Another."}\n{"id": "h", "text": "Own."}\n')
    report = ingest(docs, retriever, clock=LATER)
    assert retriever.get("b.md#1").text == "Words about bananas."
    assert retriever.get("h").text == "Own."
    assert report.warnings[0].startswith("a.jsonl: 1 passages were left out, since their ids are taken, 'b.md#1'")
    (docs / "b.md").unlink()
    assert ingest(docs, retriever, clock=LATER).warnings == ()
    assert retriever.get("b.md#1").text == "Another."


def test_earlier_row_yields_its_id_to_a_new_file(docs, retriever):
    (docs / "z.jsonl").write_text('{"id": "new.txt#1", "text": "Another."}\n{"id": "h", "text": "Own."}\n')
    ingest(docs, retriever, clock=LATER)
    (docs / "new.txt").write_text("Words about nuts.")
    report = ingest(docs, retriever, clock=LATER)
    assert retriever.get("new.txt#1").text == "Words about nuts."
    assert report.warnings[0].startswith(
        "z.jsonl: 1 passages were removed, since their ids are those of passages of new"
    )
    assert ingest(docs, retriever, clock=LATER).warnings[0].startswith("z.jsonl: 1 passages were left out")
    assert ids(retriever) == sorted([*ALL, "h", "new.txt#1"])


def test_other_index_in_folder_is_skipped(docs, retriever, embedder):
    ingest(docs, retriever)
    retriever.save(docs / "index")
    (docs / "c" / "meve.json").write_text('{"text": "no manifest"}')
    other = Retriever.empty(embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())
    report = ingest(docs, other)
    assert ids(other) == sorted([*ALL, "c/meve.json#1"])
    assert report.skipped == ()
    with pytest.raises(IngestError, match="is an index of MeVe: give the folder of the texts"):
        ingest(docs / "index", other)


def test_record_keeps_user_keys(docs, retriever):
    mine = {"sources": ["mine"], "ingest": 3}
    retriever.extra.update(mine)
    ingest(docs, retriever, clock=LATER)
    assert ingest(docs, retriever, clock=LATER).unchanged == 6
    assert {key: value for key, value in retriever.extra.items() if key in mine} == mine
    assert set(retriever.extra) == {*mine, KEY}


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "text",
        {},
        {"root": "", "settings": {}, "sources": {}},
        {"root": 1, "settings": {"chunk_tokens": 200, "chunk_overlap": 0}, "sources": {}},
        {"root": "", "settings": {"chunk_tokens": 200, "chunk_overlap": 0}, "sources": []},
        {"root": "", "settings": {"chunk_tokens": 200, "chunk_overlap": 0}, "sources": {"a.txt": {"size": 1}}},
    ],
)
def test_invalid_record_raises(docs, retriever, record):
    retriever.extra[KEY] = record
    with pytest.raises(IngestError, match=r"than an ingest record under 'meve.ingest' .* index into a new folder"):
        ingest(docs, retriever)
    assert len(retriever) == 0


def test_index_without_record_raises(docs, retriever):
    ingest(docs, retriever, clock=LATER)
    del retriever.extra[KEY]
    (docs / "b.md").write_text("# Guide\n\nWords about blueberries.")
    with pytest.raises(IngestError, match=r"no record of the files read.*index into a new folder"):
        ingest(docs, retriever, clock=LATER)
    assert ids(retriever) == ALL
    assert retriever.get("b.md#1").text == "Words about bananas."


def test_passages_added_by_code_are_kept(docs, retriever):
    retriever.add(["By hand."])
    ingest(docs, retriever, clock=LATER)
    retriever.remove(["b.md#1"])
    (docs / "b.md").unlink()
    ingest(docs, retriever, clock=LATER)
    assert retriever.get("p0000000").text == "By hand."


def test_changed_settings_read_everything_again_with_warning(docs, retriever, embedder):
    ingest(docs, retriever, chunking=Chunking(tokens=64), clock=LATER)
    assert ingest(docs, retriever, clock=LATER).unchanged == 6
    embedder.calls.passages.clear()
    report = ingest(docs, retriever, chunking=Chunking(tokens=32), clock=LATER)
    assert (len(report.read), report.unchanged, len(embedder.calls.passages)) == (6, 0, 7)
    assert report.warnings == ("passages are split differently from the last run: every file was read again",)
    assert ids(retriever) == ALL


def test_file_that_cannot_be_read_when_settings_change_is_split_anew_later(docs, retriever):
    (docs / "a.txt").write_text("Apples and pears grow in the garden. " * 30)
    ingest(docs, retriever, clock=LATER)
    kept = [each for each in ids(retriever) if each.startswith("a.txt")]
    report = ingest(docs, retriever, chunking=Chunking(tokens=32), clock=LATER, max_bytes=1_000)
    assert [(each.path, each.kept) for each in report.skipped] == [("a.txt", len(kept))]
    report = ingest(docs, retriever, chunking=Chunking(tokens=32), clock=LATER)
    assert (report.read, report.unchanged) == (("a.txt",), 5)
    assert ingest(docs, retriever, chunking=Chunking(tokens=32), clock=LATER).unchanged == 6


def test_new_splitting_rules_read_everything_again(docs, retriever, embedder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folder, "VERSION", folder.VERSION - 1)
        ingest(docs, retriever, clock=LATER)
    embedder.calls.passages.clear()
    report = ingest(docs, retriever, clock=LATER)
    assert (len(report.read), report.unchanged, len(embedder.calls.passages)) == (6, 0, 7)


def test_missing_grammar_is_reported_and_used_once_installed(docs, retriever, monkeypatch):
    with monkeypatch.context() as patch:
        for module in ("chunking", "_passages", "folder"):
            patch.setattr(f"meve.ingest.{module}.load_grammar", lambda _: None)
        report = ingest(docs, retriever, clock=LATER)
        assert report.warnings == ("1 python file was split as plain text: for its grammar, pip install 'meve[code]'",)
        assert ingest(docs, retriever, clock=LATER).read == ()
    assert ingest(docs, retriever, clock=LATER).read == ("e.py",)


def test_another_folder_raises(docs, retriever, tmp_path):
    ingest(docs, retriever)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.txt").write_text("x")
    with pytest.raises(ConfigurationError, match=r"made from .*docs, not from .*other: .*give --moved"):
        ingest(tmp_path / "other", retriever)
    assert ids(retriever) == ALL


def test_index_folder_is_not_ingested(docs, retriever, embedder):
    ingest(docs, retriever, exclude=[docs / "index"], clock=LATER)
    retriever = again(retriever, docs / "index", embedder)
    report = ingest(docs, retriever, exclude=[docs / "index"], clock=LATER)
    assert (report.read, report.unchanged) == ((), 6)


def test_nothing_to_read_raises(docs, retriever, tmp_path):
    with pytest.raises(IngestError, match=r"there is nothing at .*/missing"):
        ingest(tmp_path / "missing", retriever)
    (tmp_path / "empty").mkdir()
    with pytest.raises(IngestError, match=r"there are no files in .*/empty"):
        ingest(tmp_path / "empty", retriever)
    (tmp_path / "empty" / "x.txt").write_bytes(b"\0")
    with pytest.raises(IngestError, match=r"nothing in .*/empty can be read: x.txt: binary: a NUL byte at offset 0"):
        ingest(tmp_path / "empty", retriever)
    assert len(retriever) == 0


def test_emptied_folder_raises_and_changes_nothing(docs, retriever):
    ingest(docs, retriever)
    docs.rename(docs.with_name("away"))
    docs.mkdir()
    with pytest.raises(IngestError, match=r"every file of the last run is gone"):
        ingest(docs, retriever)
    assert ids(retriever) == ALL


def test_failing_embedder_changes_nothing(docs, retriever, embedder, monkeypatch):
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_text("Changed words.")

    def fail(_):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed_passages", fail)
        with pytest.raises(Exception, match=r"out of memory"):
            ingest(docs, retriever, clock=LATER)
    assert retriever.get("a.txt#1").text == "Plain words about apples."
    assert ingest(docs, retriever, clock=LATER).read == ("a.txt",)


def test_progress_is_reported_for_both_stages(docs, retriever):
    result = []
    ingest(docs, retriever, progress=lambda *args: result.append(args))
    assert result == [*(("reading", n, 6) for n in range(1, 7)), ("embedding", 0, 7), ("embedding", 7, 7)]


def test_max_bytes_out_of_range_raises(docs, retriever):
    with pytest.raises(ConfigurationError, match=r"max_bytes must be a whole number of at least 1, got 0"):
        ingest(docs, retriever, max_bytes=0)


@pytest.mark.parametrize("seed", range(5))
def test_random_changes_match_a_fresh_index(tmp_path, embedder, seed):
    rng = random.Random(seed)
    root = tmp_path / "docs"
    root.mkdir()
    (root / "always.txt").write_text("Always here.")

    def new():
        return Retriever.empty(embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())

    story = new()
    for _ in range(12):
        for _ in range(rng.randint(0, 4)):
            path = root / rng.choice(["a.md", "b.txt", "c.jsonl", "d.py"])
            act = rng.choice(["write", "write", "delete", "break"])
            if act == "delete":
                path.unlink(missing_ok=True)
            elif act == "write":
                words = " ".join(rng.choice(["ant", "bee", "cat"]) for _ in range(rng.randint(1, 40)))
                path.write_text(json.dumps({"text": words}) if path.suffix == ".jsonl" else f"# {words}\n\n{words}\n")
            else:
                path.unlink(missing_ok=True)
                path.write_text("")
        fresh = new()
        ingest(root, story, clock=LATER, chunking=Chunking(tokens=16))
        ingest(root, fresh, clock=LATER, chunking=Chunking(tokens=16))
        assert {p.id: p for p in story.passages()} == {p.id: p for p in fresh.passages()}
