"""Saving and loading: the old index or the new one, whatever happens."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from meve import MeveError, Passage, Retriever, RetrieverConfig
from meve.calibration.maps import PlattCalibration
from meve.errors import (
    ConfigurationError,
    IndexBusyError,
    IndexCorruptError,
    IndexMismatchError,
    IndexNotFoundError,
    ModelError,
    StorageError,
    ValidationError,
)
from meve.retrieval._snapshot import MANIFEST, read_manifest
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

CHILD = Path(__file__).with_name("saving_child.py")


def parts(**changed):
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), **changed}


def small(**more):
    return Retriever.from_texts(
        ["The sky is blue.", "Grass is green.", "Deep water looks blue as well."],
        ids=["sky", "grass", "sea"],
        titles=["", "On grass", ""],
        metadatas=[{"n": 1}, {"ü": "ß\u2028"}, {}],
        **parts(**more),
    )


@pytest.mark.parametrize("dense", ["flat", "hnsw", "ivf"])
@pytest.mark.parametrize("lexical", ["bm25", "rank_bm25"])
def test_what_is_saved_comes_back(tmp_path, dense, lexical):
    """Passages, vectors, words, configuration, calibration and extra data; answers are the same."""
    if lexical == "rank_bm25":
        pytest.importorskip("rank_bm25")
    retriever = small(dense=dense, lexical=lexical, config=RetrieverConfig(threshold=0.4, fallback_floor=0.0))
    retriever.engine = replace(retriever.engine, verifier=OverlapVerifier(PlattCalibration(slope=5.0, intercept=-2.0)))
    retriever.save(tmp_path / "index", extra={"sources": {"a.md": [1, "ü"]}})
    again = Retriever.load(tmp_path / "index", **parts(verifier=retriever.verifier))
    assert again.passages() == retriever.passages()
    assert again.info() == retriever.info()
    assert again.extra == {"sources": {"a.md": [1, "ü"]}}
    for query in ("blue sky", "green cheese", "water"):
        one, two = retriever.retrieve(query), again.retrieve(query)
        assert (one.text, one.passages) == (two.text, two.passages)
        assert one.trace.candidates == two.trace.candidates


def test_what_is_loaded_can_be_changed_and_saved_again(tmp_path):
    """And rows are never used twice, also over a save."""
    retriever = small()
    retriever.remove(["sea"])
    retriever.save(tmp_path / "index", extra={"kept": True})
    again = Retriever.load(tmp_path / "index", **parts())
    assert again.add(["Yellow zebra."]) == ["p0000003"]
    again.save(tmp_path / "index")
    third = Retriever.load(tmp_path / "index", **parts())
    assert third.retrieve("yellow zebra").sufficient
    assert "sea" not in third
    assert third.extra == {"kept": True}
    generations = [p for p in (tmp_path / "index").iterdir() if p.is_dir()]
    assert [p.name for p in generations] == [read_manifest(tmp_path / "index")["generation"]]


def test_a_removed_text_is_in_no_file_of_the_next_save(tmp_path):
    """Neither its words nor the passage."""
    retriever = small()
    retriever.add([Passage(id="secret", text="xyzzyplugh is the password")])
    retriever.save(tmp_path / "index")
    assert _bytes_hold(tmp_path / "index", b"xyzzyplugh")
    retriever.remove(["secret"])
    retriever.save(tmp_path / "index")
    assert not _bytes_hold(tmp_path / "index", b"xyzzyplugh")


def _bytes_hold(folder: Path, sought: bytes) -> bool:
    return any(sought in p.read_bytes() for p in folder.rglob("*") if p.is_file())


@contextmanager
def saving(folder, *arguments):
    """The child, at work; dead when this ends."""
    command = [sys.executable, str(CHILD), str(folder), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def whole(folder) -> int:
    """Load the index, check that all of it is of one generation, and say of which."""
    retriever = Retriever.load(folder, **parts())
    generations = {p.metadata["generation"] for p in retriever.passages()}
    assert len(generations) == 1
    generation = generations.pop()
    assert len(retriever) == 20 + generation % 7
    assert retriever.extra == {"generation": generation}
    found = retriever.retrieve(f"generation{generation}", limit=1)
    assert found.passages[0].passage.metadata["generation"] == generation
    return generation


@pytest.mark.slow
def test_killed_at_any_step_of_a_save_leaves_the_old_or_the_new(tmp_path):
    """The child kills itself with SIGKILL before its nth call that touches the disk, for every n there is."""
    base = tmp_path / "base"
    with saving(base, "once", 1) as child:
        assert child.wait() == 0
    assert whole(base) == 1
    outcomes = []
    for step in range(1, 200):
        folder = tmp_path / f"step{step}"
        shutil.copytree(base, folder)
        with saving(folder, "step", 2, step) as child:
            child.wait()
        outcomes.append(whole(folder))
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL
        Retriever.load(folder, **parts()).save(folder)
        assert len([p for p in folder.iterdir() if p.is_dir()]) == 1, "the next save clears away what was left"
    else:
        raise AssertionError("the save never came to an end")
    assert len(outcomes) > 15
    assert outcomes == sorted(outcomes), "once the new one is there it stays"
    assert {1, 2} == set(outcomes)


def test_killed_from_outside_at_random_moments_leaves_a_whole_index(tmp_path):
    """A child that saves without end is killed twelve times: what it left loads, and nothing that it said is lost."""
    folder = tmp_path / "index"
    rng = random.Random(7)
    start = 1
    for _ in range(12):
        with saving(folder, "forever", start) as child:
            said = [int(child.stdout.readline())]
            time.sleep(rng.uniform(0.0, 0.15))
            os.kill(child.pid, signal.SIGKILL)
            said += [int(line) for line in child.stdout if line.endswith("\n")]
        generation = whole(folder)
        assert generation >= said[-1], "an acknowledged save was lost"
        start = generation + 1
    assert start > 12


def test_loading_while_another_process_saves_gets_one_whole_generation(tmp_path):
    """Readers never meet a half."""
    folder = tmp_path / "index"
    with saving(folder, "forever", 1) as child:
        child.stdout.readline()
        seen = [whole(folder) for _ in range(40)]
    assert seen == sorted(seen)
    assert len(set(seen)) > 1


def test_of_two_who_change_the_same_index_the_second_is_told(tmp_path):
    """Nobody's change is lost unsaid."""
    small().save(tmp_path / "index")
    one, two = (Retriever.load(tmp_path / "index", **parts()) for _ in range(2))
    two.add([Passage(id="two", text="second thoughts")])
    two.save(tmp_path / "index")
    one.add([Passage(id="one", text="first thoughts")])
    with pytest.raises(IndexBusyError, match="load it again"):
        one.save(tmp_path / "index")
    assert "two" in Retriever.load(tmp_path / "index", **parts())
    one.save(tmp_path / "elsewhere")
    two.add([Passage(id="three", text="third thoughts")])
    two.save(tmp_path / "index")
    assert "three" in Retriever.load(tmp_path / "index", **parts())


def test_a_part_that_is_given_keeps_its_own_calibration(tmp_path):
    """The saved one is for the verifier that is found by name."""
    retriever = small()
    retriever.save(tmp_path / "index")
    own = PlattCalibration(slope=9.0, intercept=-1.0)
    again = Retriever.load(tmp_path / "index", **parts(verifier=OverlapVerifier(own)))
    assert again.verifier.calibration == own


def test_an_index_of_ones_own_is_read_by_what_one_gives(tmp_path):
    """And without it the error says what is missing, not that the index is damaged."""
    from functools import partial

    from meve.components.lexical.bm25 import Bm25Index

    def letters(text):
        return list(text.lower())

    small(lexical=Bm25Index(analyzer=letters)).save(tmp_path / "index")
    with pytest.raises(ConfigurationError, match="give it again"):
        Retriever.load(tmp_path / "index", **parts())
    read = partial(Bm25Index.load, analyzer=letters)
    assert len(Retriever.load(tmp_path / "index", lexical=read, **parts())) == 3


@pytest.mark.parametrize("target", ["dense", "lexical"])
@pytest.mark.parametrize("method", ["add", "remove"])
def test_an_interrupted_change_is_whole_or_did_not_happen(tmp_path, target, method):
    """Ctrl-C before or after either index was told: the corpus is the old or the new one, and can be saved."""
    for when in ("before", "after"):
        retriever = small()
        corpus = retriever._corpus
        index = corpus.dense if target == "dense" else corpus.primary_lexical
        real = getattr(index, method)

        def interrupted(*arguments, real=real, when=when):
            if when == "after":
                real(*arguments)
            raise KeyboardInterrupt

        setattr(index, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            retriever.update(add=[Passage(id="sky", text="Clouds everywhere."), SUN], remove=["sky"])
        delattr(index, method)
        done = "sun" in retriever
        assert len(retriever) == 3 + done
        assert retriever.get("sky").text == ("Clouds everywhere." if done else "The sky is blue.")
        folder = tmp_path / f"{target}-{method}-{when}"
        retriever.save(folder)
        for each in (retriever, Retriever.load(folder, **parts())):
            context = each.retrieve("clouds everywhere zebra suns blue", threshold=0.2, fallback_floor=0.0)
            found = {p.passage.text for p in context.passages}
            assert ("Clouds everywhere." in found, "Yellow zebra suns." in found) == (done, done)
            assert ("The sky is blue." in found) is not done
            each.update(add=[Passage(id="more", text="kite kangaroo")])
            assert each.retrieve("kite kangaroo").passages[0].passage.id == "more"


SUN = Passage(id="sun", text="Yellow zebra suns.")


class TestBadIndexes:
    @pytest.fixture
    def index(self, tmp_path):
        small().save(tmp_path / "index")
        return tmp_path / "index"

    def files(self, index):
        return sorted((index / read_manifest(index)["generation"]).iterdir())

    def test_no_index_there(self, tmp_path):
        """The message says how to make one."""
        with pytest.raises(IndexNotFoundError, match="meve index"):
            Retriever.load(tmp_path, **parts())
        with pytest.raises(IndexNotFoundError):
            Retriever.load(tmp_path / "nowhere", **parts())

    @pytest.mark.parametrize("number", range(4))
    def test_a_missing_a_cut_or_an_altered_file_is_named(self, index, number):
        """Half deleted, cut short, or with one bit turned: never read as if nothing were."""
        victim = self.files(index)[number]
        content = victim.read_bytes()
        victim.write_bytes(content[:-1])
        with pytest.raises(IndexCorruptError, match=victim.name):
            Retriever.load(index, **parts())
        victim.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(IndexCorruptError, match=victim.name):
            Retriever.load(index, **parts())
        victim.unlink()
        with pytest.raises(IndexCorruptError, match=victim.name):
            Retriever.load(index, **parts())

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "generation": 3}', "\x00"]
    )
    def test_a_manifest_that_cannot_be_read(self, index, content):
        """Damaged, not absent."""
        (index / MANIFEST).write_text(content)
        with pytest.raises(IndexCorruptError):
            Retriever.load(index, **parts())

    @pytest.mark.parametrize(
        "change",
        [
            {"files": {}},
            {"files": {"passages.jsonl": None}},
            {"files": {"passages.jsonl": {}}},
            {"files": []},
            {"files": {"../x": {"bytes": 1, "sha256": "x"}}},
            {"generation": "a\0b"},
            {"generation": "../elsewhere"},
            {"dense": {"kind": "nope"}},
            {"embedder": None},
            {"config": {"limit": 0}},
            {"next_row": "x"},
            {"verifier": {"name": "word-overlap", "calibration": {"method": "?"}}},
        ],
    )
    def test_a_manifest_that_was_tampered_with(self, index, change):
        """Whatever stands in it, what comes out is one of our errors, and no file is read unchecked."""
        manifest = json.loads((index / MANIFEST).read_text())
        (index / MANIFEST).write_text(json.dumps({**manifest, **change}))
        with pytest.raises(MeveError):
            Retriever.load(index, **parts())

    def test_each_file_must_be_named_with_its_checksum(self, index):
        """One that the manifest doesn't vouch for isn't read."""
        manifest = json.loads((index / MANIFEST).read_text())
        for name in manifest["files"]:
            files = {n: f for n, f in manifest["files"].items() if n != name}
            (index / MANIFEST).write_text(json.dumps({**manifest, "files": files}))
            with pytest.raises(IndexCorruptError):
                Retriever.load(index, **parts())

    def test_an_index_of_another_format(self, index):
        """Written by a later version."""
        manifest = json.loads((index / MANIFEST).read_text())
        (index / MANIFEST).write_text(json.dumps({**manifest, "format": 99}))
        with pytest.raises(IndexMismatchError, match="99"):
            Retriever.load(index, **parts())

    def test_an_index_of_another_model(self, index):
        """By name, and by what it makes."""

        class Other(WordEmbedder):
            name = "other"

        class Retrained(WordEmbedder):
            def embed_passages(self, texts):
                return super().embed_passages(texts)[:, ::-1].copy()

        with pytest.raises(IndexMismatchError, match="'words-by-initial' of 27"):
            Retriever.load(index, **parts(embedder=Other()))
        with pytest.raises(IndexMismatchError, match="has other weights"):
            Retriever.load(index, **parts(embedder=Retrained()))

    def test_an_index_of_another_tokenizer(self, index):
        """Stored counts of one are no counts of another."""

        class Other(WordCounter):
            name = "other"

        with pytest.raises(IndexMismatchError, match="'words'"):
            Retriever.load(index, **parts(tokens=Other()))

    def test_parts_of_ones_own_must_be_given_again(self, index):
        """Names of fakes lead to no model, and the error says so."""
        with pytest.raises((ModelError, ConfigurationError)):
            Retriever.load(index)

    def test_a_folder_with_other_things_in_it_is_left_alone(self, tmp_path):
        """Nothing of the user's is ever overwritten or deleted."""
        (tmp_path / "thesis.txt").write_text("years of work")
        (tmp_path / "g-strings").mkdir()
        with pytest.raises(StorageError, match="other files"):
            small().save(tmp_path)
        (tmp_path / MANIFEST).write_text('{"mine": 1}')
        with pytest.raises(StorageError, match="other files"):
            small().save(tmp_path)
        assert (tmp_path / MANIFEST).read_text() == '{"mine": 1}'
        assert (tmp_path / "thesis.txt").read_text() == "years of work"
        assert (tmp_path / "g-strings").is_dir()

    def test_a_damaged_index_can_be_made_anew_in_its_place(self, index):
        """What remains of it is ours."""
        (index / MANIFEST).write_text("{")
        small().save(index)
        assert len(Retriever.load(index, **parts())) == 3

    def test_a_file_in_the_way(self, tmp_path):
        """A path that can't be a folder."""
        (tmp_path / "file").write_text("x")
        with pytest.raises(StorageError):
            small().save(tmp_path / "file")

    def test_extra_data_that_is_not_json_loses_nothing(self, index):
        """The old index is still there."""
        retriever = Retriever.load(index, **parts())
        retriever.remove(["sky"])
        with pytest.raises(ValidationError):
            retriever.save(index, extra={"x": object()})
        assert "sky" in Retriever.load(index, **parts())
