"""Test saving and loading an index."""

import json
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from meve import LabelledPair, MeveError, Passage, Retriever, RetrieverConfig
from meve.calibration.probability_maps import PlattCalibration
from meve.components.lexical.bm25 import Bm25Index
from meve.errors import (
    ConfigurationError,
    IndexBusyError,
    IndexCorruptError,
    IndexMismatchError,
    IndexNotFoundError,
    ModelError,
    PassageError,
    StorageError,
    ValidationError,
)
from meve.retrieval._snapshot import MANIFEST, read_manifest
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.tiny_models import save_tiny_model
from tests.fake_components import make_components
from tests.retrieval import saving_child
from tests.warm_process import warm_process


def make_retriever(**more):
    return Retriever.from_texts(
        ["The sky is blue.", "Grass is green.", "Deep water looks blue as well."],
        ids=["sky", "grass", "sea"],
        titles=["", "On grass", ""],
        metadatas=[{"n": 1}, {"ü": "ß\u2028"}, {}],
        **make_components(**more),
    )


@pytest.mark.parametrize("dense", ["flat", "hnsw", "ivf", "rabitq"])
@pytest.mark.parametrize("lexical", ["bm25", "rank_bm25"])
def test_loaded_index_equals_the_saved_one(tmp_path, dense, lexical):
    if lexical == "rank_bm25":
        pytest.importorskip("rank_bm25")
    retriever = make_retriever(dense=dense, lexical=lexical, config=RetrieverConfig(threshold=0.4, fallback_floor=0.0))
    retriever.engine = replace(retriever.engine, verifier=OverlapVerifier(PlattCalibration(slope=5.0, intercept=-2.0)))
    retriever.save(tmp_path / "index", extra={"sources": {"a.md": [1, "ü"]}})
    again = Retriever.load(tmp_path / "index", **make_components(verifier=retriever.verifier))
    assert again.passages() == retriever.passages()
    assert again.info() == retriever.info()
    assert again.extra == {"sources": {"a.md": [1, "ü"]}}
    for query in ("blue sky", "green cheese", "water"):
        one, two = retriever.retrieve(query), again.retrieve(query)
        assert (one.text, one.passages) == (two.text, two.passages)
        assert one.trace.candidates == two.trace.candidates


def test_index_saved_by_an_earlier_version_opens(tmp_path):
    shutil.unpack_archive(Path(__file__).parents[1] / "files" / "before_kind.zip", tmp_path)
    retriever = Retriever.load(tmp_path / "index")
    assert len(retriever) == 4
    assert retriever.retrieve("Which colour is the sky?", limit=1).passages[0].passage.text == "The sky is blue."


def test_loaded_index_can_be_changed_and_saved_without_reusing_rows(tmp_path):
    retriever = make_retriever()
    retriever.remove(["sea"])
    retriever.save(tmp_path / "index", extra={"kept": True})
    again = Retriever.load(tmp_path / "index", **make_components())
    assert again.add(["Yellow zebra."]) == ["p0000003"]
    again.save(tmp_path / "index")
    third = Retriever.load(tmp_path / "index", **make_components())
    assert third.retrieve("yellow zebra").sufficient
    assert "sea" not in third
    assert third.extra == {"kept": True}
    generations = [p for p in (tmp_path / "index").iterdir() if p.is_dir()]
    assert [p.name for p in generations] == [read_manifest(tmp_path / "index")["generation"]]


def test_removed_text_is_in_no_saved_file(tmp_path):
    retriever = make_retriever()
    retriever.add([Passage(id="secret", text="xyzzyplugh is the password")])
    retriever.save(tmp_path / "index")
    assert _contains_bytes(tmp_path / "index", b"xyzzyplugh")
    retriever.remove(["secret"])
    retriever.save(tmp_path / "index")
    assert not _contains_bytes(tmp_path / "index", b"xyzzyplugh")


def _contains_bytes(folder: Path, searched: bytes) -> bool:
    return any(searched in p.read_bytes() for p in folder.rglob("*") if p.is_file())


def load_generation(folder) -> int:
    """Return the generation of the index after checking that all parts share it."""
    retriever = Retriever.load(folder, **make_components())
    generations = {p.metadata["generation"] for p in retriever.passages()}
    assert len(generations) == 1
    generation = generations.pop()
    assert len(retriever) == 20 + generation % 7
    assert retriever.extra == {"generation": generation}
    context = retriever.retrieve(f"generation{generation}", limit=1)
    assert context.passages[0].passage.metadata["generation"] == generation
    return generation


@pytest.mark.slow
def test_process_killed_at_any_step_of_a_save_leaves_a_whole_index(tmp_path):
    base = tmp_path / "base"
    saving_child.save(base, 1)
    assert load_generation(base) == 1
    outcomes = []
    for step in range(1, 200):
        folder = tmp_path / f"step{step}"
        shutil.copytree(base, folder)
        with warm_process(saving_child.save_until, step, folder, 2) as (child, _):
            child.join()
        outcomes.append(load_generation(folder))
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
        Retriever.load(folder, **make_components()).save(folder)
        assert len([p for p in folder.iterdir() if p.is_dir()]) == 1, "the next save clears away what was left"
    else:
        raise AssertionError("the save never came to an end")
    assert len(outcomes) > 15
    assert outcomes == sorted(outcomes), "once the new one is there it stays"
    assert {1, 2} == set(outcomes)


def test_process_killed_at_random_moments_leaves_a_whole_index(tmp_path):
    folder = tmp_path / "index"
    rng = random.Random(7)
    start = 1
    for _ in range(12):
        with warm_process(saving_child.save_forever, folder, start) as (child, output):
            generations = [int(output.readline())]
            time.sleep(rng.uniform(0.0, 0.15))
            os.kill(child.pid, signal.SIGKILL)
            generations += [int(line) for line in output if line.endswith("\n")]
        generation = load_generation(folder)
        assert generation >= generations[-1], "an acknowledged save was lost"
        start = generation + 1
    assert start > 12


def test_load_during_a_save_reads_one_whole_generation(tmp_path):
    folder = tmp_path / "index"
    with warm_process(saving_child.save_forever, folder, 1) as (_, output):
        output.readline()
        seen = [load_generation(folder) for _ in range(40)]
    assert seen == sorted(seen)
    assert len(set(seen)) > 1


def test_second_writer_of_an_index_gets_an_error(tmp_path):
    make_retriever().save(tmp_path / "index")
    one, two = (Retriever.load(tmp_path / "index", **make_components()) for _ in range(2))
    two.add([Passage(id="two", text="second thoughts")])
    two.save(tmp_path / "index")
    one.add([Passage(id="one", text="first thoughts")])
    with pytest.raises(IndexBusyError, match="load it again"):
        one.save(tmp_path / "index")
    assert "two" in Retriever.load(tmp_path / "index", **make_components())
    one.save(tmp_path / "elsewhere")
    two.add([Passage(id="three", text="third thoughts")])
    two.save(tmp_path / "index")
    assert "three" in Retriever.load(tmp_path / "index", **make_components())


def test_given_verifier_keeps_its_own_calibration(tmp_path):
    retriever = make_retriever()
    retriever.save(tmp_path / "index")
    own = PlattCalibration(slope=9.0, intercept=-1.0)
    again = Retriever.load(tmp_path / "index", **make_components(verifier=OverlapVerifier(own)))
    assert again.verifier.calibration == own


def test_given_verifier_that_was_never_fitted_takes_the_calibration_of_the_index(tmp_path):
    """Else the threshold that was fitted with it would be compared with another scale."""
    retriever = make_retriever()
    texts = [passage.text for passage in retriever.passages()[:2]]
    pairs = [LabelledPair(query=texts[0], passage=text, relevant=text == texts[0]) for text in texts for _ in range(20)]
    report = retriever.calibrate(pairs)
    retriever.save(tmp_path / "index")
    again = Retriever.load(tmp_path / "index", **make_components(verifier=OverlapVerifier()))
    assert (again.verifier.calibration, again.config.threshold) == (report.calibration, report.threshold)
    own = PlattCalibration(slope=9.0, pairs=40)
    kept = Retriever.load(tmp_path / "index", **make_components(verifier=OverlapVerifier(own)))
    assert kept.verifier.calibration == own


def test_loaded_index_embeds_with_the_prompts_that_it_was_made_with(tmp_path):
    pytest.importorskip("sentence_transformers")
    from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

    folder = save_tiny_model(tmp_path / "model", kind="encoder")
    embedder = SentenceTransformerEmbedder.from_name(str(folder), query_prompt="what ", passage_prompt="")
    make_retriever(embedder=embedder).save(tmp_path / "index")
    parts = make_components()
    del parts["embedder"]
    again = Retriever.load(tmp_path / "index", **parts).embedder
    assert again.prompts == embedder.prompts == {"query_prompt": "what ", "passage_prompt": ""}
    assert again.embed_query("moon").tolist() == embedder.embed_query("moon").tolist()


@pytest.mark.parametrize("length", [16, None])
def test_loaded_index_keeps_the_length_that_its_cross_encoder_was_given(tmp_path, length):
    """Without one, a model that is trained anew with another window can be loaded."""
    pytest.importorskip("sentence_transformers")
    from meve.components.verifiers.cross_encoder import CrossEncoderVerifier

    given = CrossEncoderVerifier.from_name(str(save_tiny_model(tmp_path / "model")), max_length=length)
    parts = make_components(verifier=given)
    Retriever.from_texts(["The sky is blue."], **parts).save(tmp_path / "index")
    assert json.loads((tmp_path / "index" / MANIFEST).read_text())["verifier"]["max_length"] == length
    del parts["verifier"]
    assert Retriever.load(tmp_path / "index", **parts).verifier.window == given.window


@pytest.mark.parametrize("prompts", [[], {"query_prompt": 1}, {"device": "cuda"}])
def test_prompts_of_an_index_are_texts(tmp_path, prompts):
    make_retriever().save(tmp_path / "index")
    manifest = json.loads((tmp_path / "index" / MANIFEST).read_text())
    manifest["embedder"]["prompts"] = prompts
    (tmp_path / "index" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(IndexCorruptError, match="prompts of an index must be texts"):
        Retriever.load(tmp_path / "index", **make_components())


def test_custom_index_is_loaded_by_the_given_reader(tmp_path):
    def split_letters(text):
        return list(text.lower())

    make_retriever(lexical=Bm25Index(analyzer=split_letters)).save(tmp_path / "index")
    with pytest.raises(ConfigurationError, match="pass it again"):
        Retriever.load(tmp_path / "index", **make_components())
    read = partial(Bm25Index.load, analyzer=split_letters)
    assert len(Retriever.load(tmp_path / "index", lexical=read, **make_components())) == 3


@pytest.mark.parametrize("target", ["dense", "lexical"])
@pytest.mark.parametrize("method", ["add", "remove"])
def test_interrupted_change_is_whole_or_undone(tmp_path, target, method):
    for when in ("before", "after"):
        retriever = make_retriever()
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
        has_sun = "sun" in retriever
        assert len(retriever) == 3 + has_sun
        assert retriever.get("sky").text == ("Clouds everywhere." if has_sun else "The sky is blue.")
        folder = tmp_path / f"{target}-{method}-{when}"
        retriever.save(folder)
        for each in (retriever, Retriever.load(folder, **make_components())):
            context = each.retrieve("clouds everywhere zebra suns blue", threshold=0.2, fallback_floor=0.0)
            texts = {p.passage.text for p in context.passages}
            assert ("Clouds everywhere." in texts, "Yellow zebra suns." in texts) == (has_sun, has_sun)
            assert ("The sky is blue." in texts) is not has_sun
            each.update(add=[Passage(id="more", text="kite kangaroo")])
            assert each.retrieve("kite kangaroo").passages[0].passage.id == "more"


SUN = Passage(id="sun", text="Yellow zebra suns.")


class TestBadIndexes:
    @pytest.fixture
    def index(self, tmp_path):
        make_retriever().save(tmp_path / "index")
        return tmp_path / "index"

    def files(self, index):
        return sorted((index / read_manifest(index)["generation"]).iterdir())

    def alter_manifest(self, index, change):
        manifest = json.loads((index / MANIFEST).read_text())
        (index / MANIFEST).write_text(json.dumps({**manifest, **change}))

    def test_missing_index_names_the_command_that_makes_one(self, tmp_path):
        with pytest.raises(IndexNotFoundError, match="meve index"):
            Retriever.load(tmp_path, **make_components())
        with pytest.raises(IndexNotFoundError):
            Retriever.load(tmp_path / "nowhere", **make_components())

    @pytest.mark.parametrize("number", range(4))
    def test_missing_truncated_or_altered_file_is_named(self, index, number):
        victim = self.files(index)[number]
        content = victim.read_bytes()
        for damaged in (content[:-1], bytes([content[0] ^ 1]) + content[1:], None):
            if damaged is None:
                victim.unlink()
            else:
                victim.write_bytes(damaged)
            with pytest.raises(IndexCorruptError, match=victim.name):
                Retriever.load(index, **make_components())

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "generation": 3}', "\x00"]
    )
    def test_unreadable_manifest_raises_corrupt_error(self, index, content):
        (index / MANIFEST).write_text(content)
        with pytest.raises(IndexCorruptError):
            Retriever.load(index, **make_components())

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
            {"verifier": {"name": "word-overlap", "calibration": {"method": "platt"}, "max_length": "16"}},
        ],
    )
    def test_altered_manifest_raises_storage_error(self, index, change):
        self.alter_manifest(index, change)
        with pytest.raises(MeveError):
            Retriever.load(index, **make_components())

    def test_file_without_a_checksum_is_not_read(self, index):
        checksums = read_manifest(index)["files"]
        for name in checksums:
            self.alter_manifest(index, {"files": {n: f for n, f in checksums.items() if n != name}})
            with pytest.raises(IndexCorruptError):
                Retriever.load(index, **make_components())

    def test_other_format_raises_mismatch_error(self, index):
        self.alter_manifest(index, {"format": 99})
        with pytest.raises(IndexMismatchError, match="99"):
            Retriever.load(index, **make_components())

    def test_other_embedder_raises_mismatch_error(self, index):
        class Other(WordEmbedder):
            name = "other"

        class Retrained(WordEmbedder):
            def embed_passages(self, texts):
                return super().embed_passages(texts)[:, ::-1].copy()

        with pytest.raises(IndexMismatchError, match="'words-by-initial' of 27"):
            Retriever.load(index, **make_components(embedder=Other()))
        with pytest.raises(IndexMismatchError, match="has other weights"):
            Retriever.load(index, **make_components(embedder=Retrained()))

    def test_other_tokenizer_raises_mismatch_error(self, index):
        class Other(WordCounter):
            name = "other"

        with pytest.raises(IndexMismatchError, match="'words'"):
            Retriever.load(index, **make_components(tokens=Other()))

    def test_custom_components_must_be_given_on_load(self, index):
        with pytest.raises((ModelError, ConfigurationError)):
            Retriever.load(index)

    def test_folder_with_other_files_is_not_overwritten(self, tmp_path):
        (tmp_path / "thesis.txt").write_text("years of work")
        (tmp_path / "g-strings").mkdir()
        with pytest.raises(StorageError, match="other files"):
            make_retriever().save(tmp_path)
        (tmp_path / MANIFEST).write_text('{"mine": 1}')
        with pytest.raises(StorageError, match="other files"):
            make_retriever().save(tmp_path)
        assert (tmp_path / MANIFEST).read_text() == '{"mine": 1}'
        assert (tmp_path / "thesis.txt").read_text() == "years of work"
        assert (tmp_path / "g-strings").is_dir()
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["g-strings", MANIFEST, "thesis.txt"])

    def test_damaged_index_can_be_overwritten(self, index):
        (index / MANIFEST).write_text("{")
        make_retriever().save(index)
        assert len(Retriever.load(index, **make_components())) == 3

    def test_file_at_the_path_raises_storage_error(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(StorageError):
            make_retriever().save(tmp_path / "file")

    def test_invalid_extra_data_keeps_the_old_index(self, index):
        retriever = Retriever.load(index, **make_components())
        retriever.remove(["sky"])
        with pytest.raises(ValidationError):
            retriever.save(index, extra={"x": object()})
        assert "sky" in Retriever.load(index, **make_components())

    def test_deepest_metadata_and_extra_that_are_accepted_can_be_loaded(self, tmp_path):
        retriever, nested = make_retriever(), []
        for _ in range(61):
            nested = [nested]
        retriever.add([Passage(id="deep", text="deep", metadata={"x": nested})])
        with pytest.raises(PassageError, match="'deeper' must be nested at most 63 levels deep; nothing was changed"):
            retriever.add([Passage(id="deeper", text="deeper", metadata={"x": [nested]})])
        retriever.save(tmp_path / "index", extra={"x": [nested]})
        with pytest.raises(ValidationError, match="extra must be JSON data: nested more than 64 levels deep"):
            retriever.save(tmp_path / "index", extra={"x": [[nested]]})
        loaded = Retriever.load(tmp_path / "index", **make_components())
        assert loaded.get("deep").metadata == {"x": nested}
        assert loaded.extra == {"x": [nested]}
