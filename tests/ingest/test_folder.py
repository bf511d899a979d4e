import json
import os
import random
from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import ConfigurationError, IngestError
from meve.ingest import Chunking, folder, ingest
from meve.ingest.report import KEY
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import CountedEmbedder, FakeClock, OverlapVerifier, WordCounter, WordEmbedder

LATER = FakeClock(datetime.now(UTC) + timedelta(hours=1))
"""A time at which every file of the test is old."""


@pytest.fixture
def docs(tmp_path):
    """One file of every kind, and some that are passed over."""
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
    return CountedEmbedder(WordEmbedder())


@pytest.fixture
def retriever(embedder):
    return Retriever.empty(embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())


def again(retriever, folder, embedder):
    """As a second run of the command: saved, loaded, and the counts of the first run forgotten."""
    retriever.save(folder)
    embedder.calls.passages.clear()
    return Retriever.load(folder, embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())


def ids(retriever):
    return sorted(p.id for p in retriever.passages())


ALL = ["a.txt#1", "b.md#1", "c/d.rst#1", "c/page.html#1", "e.py#1", "f.jsonl#1", "g"]


def test_every_kind_of_file_is_read_and_hidden_ones_are_passed_over(docs, retriever):
    """Titles are headings, or names."""
    report = ingest(docs, retriever)
    assert report.read == ("a.txt", "b.md", "c/d.rst", "c/page.html", "e.py", "f.jsonl")
    assert (report.passages_added, report.skipped, report.warnings) == (7, (), ())
    assert ids(retriever) == ALL
    titles = {i: retriever.get(i).title for i in ALL}
    assert list(titles.values()) == ["a.txt", "Guide", "Dates", "Cherries", "e.py", "", ""]
    assert retriever.get("c/d.rst#1").text == "Words about dates."
    assert retriever.retrieve("cherries", where={"kind": "html"}).passages[0].passage.id == "c/page.html#1"


def test_a_single_file_will_do(docs, retriever):
    """Its source is its name."""
    assert ingest(docs / "b.md", retriever).read == ("b.md",)
    assert ids(retriever) == ["b.md#1"]


def test_a_second_run_reads_only_what_changed(docs, retriever, embedder, tmp_path, monkeypatch):
    """Not a file is opened, not a passage embedded, that didn't change."""
    ingest(docs, retriever, clock=LATER)
    retriever = again(retriever, tmp_path / "index", embedder)
    embedder.calls.passages.clear()
    (docs / "b.md").write_text("# Guide\n\nWords about blueberries.")
    opened = []
    read_text = folder.read_text
    monkeypatch.setattr(folder, "read_text", lambda path, **k: opened.append(path.name) or read_text(path, **k))
    report = ingest(docs, retriever, clock=LATER)
    assert (opened, report.read, report.unchanged) == (["b.md"], ("b.md",), 5)
    assert (report.passages_added, report.passages_removed) == (1, 1)
    assert embedder.calls.passages == ["Guide\nWords about blueberries."]
    assert retriever.get("b.md#1").text == "Words about blueberries."
    assert ids(retriever) == ALL


def test_a_touched_file_is_hashed_and_not_embedded(docs, retriever, embedder):
    """What counts is what stands in it."""
    ingest(docs, retriever, clock=LATER)
    embedder.calls.passages.clear()
    os.utime(docs / "a.txt", (1, 1))
    report = ingest(docs, retriever, clock=LATER)
    assert (report.read, report.unchanged, embedder.calls.passages) == ((), 6, [])


def test_a_change_within_the_clocks_grain_is_seen(docs, retriever):
    """A file that was fresh when it was read is compared by its hash, since its time may not tell."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    stamp = int(now.timestamp() * 1e9)
    os.utime(docs / "a.txt", ns=(stamp, stamp))
    ingest(docs, retriever, clock=FakeClock(now))
    (docs / "a.txt").write_text("Plain words about oranges"[:24] + ".")
    os.utime(docs / "a.txt", ns=(stamp, stamp))
    report = ingest(docs, retriever, clock=FakeClock(now))
    assert report.read == ("a.txt",)


def test_passages_of_a_vanished_file_go(docs, retriever, embedder):
    """And those of no other."""
    ingest(docs, retriever, clock=LATER)
    embedder.calls.passages.clear()
    (docs / "c" / "d.rst").unlink()
    report = ingest(docs, retriever, clock=LATER)
    assert (report.removed, report.passages_removed, embedder.calls.passages) == (("c/d.rst",), 1, [])
    assert ids(retriever) == [i for i in ALL if i != "c/d.rst#1"]


def test_a_moved_file_is_found_under_its_new_name(docs, retriever):
    """Its passages have new ids."""
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").rename(docs / "c" / "z.txt")
    report = ingest(docs, retriever, clock=LATER)
    assert (report.removed, report.read) == (("a.txt",), ("c/z.txt",))
    assert ids(retriever) == sorted([*ALL[1:], "c/z.txt#1"])


def test_files_that_cannot_be_read_lose_nothing_of_the_others(docs, retriever):
    """Each is named with its reason."""
    (docs / "binary.txt").write_bytes(b"a\0b")
    (docs / "latin.txt").write_bytes(b"caf\xe9")
    (docs / "empty.txt").write_text(" \n")
    (docs / "dashes.md").write_text("---\n\n***\n")
    (docs / "huge.txt").write_text("word " * 1000)
    (docs / "link.txt").symlink_to("nowhere.txt")
    (docs / "linked").symlink_to(docs / "c")
    (docs / "bad.jsonl").write_text("{\n")
    os.mkfifo(docs / "pipe")
    report = ingest(docs, retriever, max_bytes=1000)
    assert {s.path: s.reason.split(":")[0].split(";")[0] for s in report.skipped} == {
        "binary.txt": "binary",
        "latin.txt": "not UTF-8",
        "empty.txt": "empty",
        "dashes.md": "holds no letter and no digit",
        "huge.txt": "too large",
        "link.txt": "a broken link, to nowhere.txt",
        "linked": "a link to a folder",
        "bad.jsonl": "no line of it is a passage",
        "pipe": "not a regular file (a pipe, a socket or a device)",
    }
    assert ids(retriever) == ALL


def test_a_name_that_is_not_utf8_is_refused(docs, retriever):
    """It could be neither an id nor saved."""
    with open(os.fsencode(docs) + b"/caf\xe9.txt", "w") as out:
        out.write("words")
    (skipped,) = ingest(docs, retriever).skipped
    assert (skipped.path, skipped.reason) == ("caf\\udce9.txt", "its name is not UTF-8; rename it")


def test_what_was_read_of_a_file_stays_when_it_can_no_longer_be_read(docs, retriever):
    """And the report says so; when it can be read again, it is."""
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_bytes(b"caf\xe9")
    report = ingest(docs, retriever, clock=LATER)
    assert [(s.path, s.kept) for s in report.skipped] == [("a.txt", 1)]
    assert retriever.get("a.txt#1").text == "Plain words about apples."
    (docs / "a.txt").write_text("Plain words about apricots.")
    assert ingest(docs, retriever, clock=LATER).read == ("a.txt",)
    assert retriever.get("a.txt#1").text == "Plain words about apricots."


def test_an_emptied_file_loses_its_passages(docs, retriever):
    """It was read: nothing stands in it any more."""
    ingest(docs, retriever, clock=LATER)
    (docs / "a.txt").write_text("")
    report = ingest(docs, retriever, clock=LATER)
    assert [(s.path, s.reason, s.kept) for s in report.skipped] == [("a.txt", "empty", 0)]
    assert ids(retriever) == ALL[1:]


def test_a_folder_that_cannot_be_listed_keeps_its_passages(docs, retriever, monkeypatch):
    """Files that can't be seen aren't gone. Root may list everything, so the system's answer is played."""
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


def test_bad_lines_are_named_and_the_good_ones_are_read(docs, retriever):
    """At most twenty a file, then their number."""
    (docs / "f.jsonl").write_text('{"text": "good"}\n' + "bad\n" * 25)
    report = ingest(docs, retriever)
    assert report.warnings[0].startswith("f.jsonl: line 2: not JSON")
    assert (len(report.warnings), report.warnings[-1]) == (21, "f.jsonl: 5 more lines were left out")
    assert retriever.get("f.jsonl#1").text == "good"


def test_an_id_that_another_file_has_is_left_out_and_said_so(docs, retriever):
    """Whichever was there first stays; when it goes, the other takes its place."""
    ingest(docs, retriever, clock=LATER)
    (docs / "a.jsonl").write_text('{"id": "g", "text": "Another."}\n{"id": "h", "text": "Own."}\n')
    report = ingest(docs, retriever, clock=LATER)
    assert report.warnings[0].startswith("a.jsonl: 1 passages were left out, since their ids are taken, 'g' for one")
    assert retriever.get("g").text == "Words about grapes."
    assert retriever.get("h").text == "Own."
    (docs / "f.jsonl").unlink()
    assert ingest(docs, retriever, clock=LATER).warnings == ()
    assert retriever.get("g").text == "Another."


def test_ids_made_of_a_files_path_go_before_those_that_rows_bring(docs, retriever):
    """Whichever file is read first; and a row that is masked is said so."""
    (docs / "a.jsonl").write_text('{"id": "b.md#1", "text": "Another."}\n{"id": "h", "text": "Own."}\n')
    report = ingest(docs, retriever, clock=LATER)
    assert retriever.get("b.md#1").text == "Words about bananas."
    assert retriever.get("h").text == "Own."
    assert report.warnings[0].startswith("a.jsonl: 1 passages were left out, since their ids are taken, 'b.md#1'")
    (docs / "b.md").unlink()
    assert ingest(docs, retriever, clock=LATER).warnings == ()
    assert retriever.get("b.md#1").text == "Another."


def test_a_row_of_an_earlier_run_makes_way_for_a_file_whose_id_it_has(docs, retriever):
    """It is said so in that run and in the next."""
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


def test_another_index_in_the_folder_is_passed_over(docs, retriever, embedder):
    """Its files are copies of texts; a file that is merely called like a manifest changes nothing."""
    ingest(docs, retriever)
    retriever.save(docs / "index")
    (docs / "c" / "meve.json").write_text('{"text": "no manifest"}')
    other = Retriever.empty(embedder=embedder, verifier=OverlapVerifier(), tokens=WordCounter())
    report = ingest(docs, other)
    assert ids(other) == sorted([*ALL, "c/meve.json#1"])
    assert report.skipped == ()
    with pytest.raises(IngestError, match="is an index that meve made: name the folder of the texts"):
        ingest(docs / "index", other)


def test_the_record_leaves_the_users_own_keys_alone(docs, retriever):
    """Whatever stands in them."""
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
def test_a_record_of_another_shape_is_refused(docs, retriever, record):
    """With its key and the next step; nothing is changed."""
    retriever.extra[KEY] = record
    with pytest.raises(IngestError, match=r"under 'meve.ingest' than the record .* index into a new folder"):
        ingest(docs, retriever)
    assert len(retriever) == 0


def test_an_index_without_its_record_is_not_brought_up_to_date(docs, retriever):
    """What changed can't be told; nothing is changed."""
    ingest(docs, retriever, clock=LATER)
    del retriever.extra[KEY]
    (docs / "b.md").write_text("# Guide\n\nWords about blueberries.")
    with pytest.raises(IngestError, match=r"no record of what was read.*index into a new folder"):
        ingest(docs, retriever, clock=LATER)
    assert ids(retriever) == ALL
    assert retriever.get("b.md#1").text == "Words about bananas."


def test_passages_that_came_by_code_are_left_alone(docs, retriever):
    """They belong to no file; one that was removed by code doesn't stop the next run."""
    retriever.add(["By hand."])
    ingest(docs, retriever, clock=LATER)
    retriever.remove(["b.md#1"])
    (docs / "b.md").unlink()
    ingest(docs, retriever, clock=LATER)
    assert retriever.get("p0000000").text == "By hand."


def test_other_settings_make_everything_be_read_again_and_say_so(docs, retriever, embedder):
    """Without settings, those of the last run stand."""
    ingest(docs, retriever, chunking=Chunking(tokens=64), clock=LATER)
    assert ingest(docs, retriever, clock=LATER).unchanged == 6
    embedder.calls.passages.clear()
    report = ingest(docs, retriever, chunking=Chunking(tokens=32), clock=LATER)
    assert (len(report.read), report.unchanged, len(embedder.calls.passages)) == (6, 0, 7)
    assert report.warnings == ("passages are cut in another way than in the last run: every file was read again",)
    assert ids(retriever) == ALL


def test_a_grammar_that_is_not_installed_is_named_and_used_once_it_is(docs, retriever, monkeypatch):
    """The file is read again then, although it didn't change."""
    with monkeypatch.context() as patch:
        for module in ("chunking", "passages", "folder"):
            patch.setattr(f"meve.ingest.{module}.grammar", lambda _: None)
        report = ingest(docs, retriever, clock=LATER)
        assert report.warnings == ("1 python file was split as plain text: for its grammar, pip install 'meve[code]'",)
        assert ingest(docs, retriever, clock=LATER).read == ()
    assert ingest(docs, retriever, clock=LATER).read == ("e.py",)


def test_another_folder_is_refused(docs, retriever, tmp_path):
    """With the next step; nothing is changed."""
    ingest(docs, retriever)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.txt").write_text("x")
    with pytest.raises(ConfigurationError, match=r"this index was made from .*docs, not from .*other: name that one"):
        ingest(tmp_path / "other", retriever)
    assert ids(retriever) == ALL


def test_the_index_itself_is_not_indexed(docs, retriever, embedder):
    """It may stand in the folder that it is made from."""
    ingest(docs, retriever, exclude=[docs / "index"], clock=LATER)
    retriever = again(retriever, docs / "index", embedder)
    report = ingest(docs, retriever, exclude=[docs / "index"], clock=LATER)
    assert (report.read, report.unchanged) == ((), 6)


def test_nothing_to_read_is_an_error(docs, retriever, tmp_path):
    """The message says what was looked at, and why it was refused."""
    with pytest.raises(IngestError, match=r"there is nothing at .*/missing"):
        ingest(tmp_path / "missing", retriever)
    (tmp_path / "empty").mkdir()
    with pytest.raises(IngestError, match=r"there are no files in .*/empty"):
        ingest(tmp_path / "empty", retriever)
    (tmp_path / "empty" / "x.txt").write_bytes(b"\0")
    with pytest.raises(IngestError, match=r"nothing in .*/empty can be read: x.txt: binary: a NUL byte at offset 0"):
        ingest(tmp_path / "empty", retriever)
    assert len(retriever) == 0


def test_a_folder_whose_files_are_all_gone_changes_nothing(docs, retriever):
    """It may be a disk that isn't mounted."""
    ingest(docs, retriever)
    docs.rename(docs.with_name("away"))
    docs.mkdir()
    with pytest.raises(IngestError, match=r"every file of the last run is gone"):
        ingest(docs, retriever)
    assert ids(retriever) == ALL


def test_a_failing_embedder_changes_nothing(docs, retriever, embedder, monkeypatch):
    """Neither the passages nor the record: the next run tries again."""
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


def test_progress_is_told_for_both_stages(docs, retriever):
    """Files, then passages."""
    told = []
    ingest(docs, retriever, progress=lambda *args: told.append(args))
    assert told == [*(("reading", n, 6) for n in range(1, 7)), ("embedding", 0, 7), ("embedding", 7, 7)]


def test_max_bytes_out_of_range_is_refused(docs, retriever):
    """The message names it."""
    with pytest.raises(ConfigurationError, match=r"max_bytes is 0"):
        ingest(docs, retriever, max_bytes=0)


@pytest.mark.parametrize("seed", range(5))
def test_any_story_of_changes_ends_where_a_fresh_index_would(tmp_path, embedder, seed):
    """Write, change, delete, move, at random; after each run the index holds what a first run would make."""
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
