"""Systems and the embedding cache, on texts small enough to check by hand."""

from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, RetrieverConfig
from meve.errors import EvaluationError
from meve.evaluation import SharedComponents
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation.systems import (
    SYSTEMS,
    IndexedPassages,
    bm25_system,
    hybrid_system,
    pipeline_system,
    select_systems,
)
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

TEXTS = {
    "a": "alpha beta gamma",
    "b": "alpha beta delta epsilon",
    "c": "alpha zeta eta theta",
    "d": "kappa lambda",
}


@pytest.fixture
def indexed():
    config = RetrieverConfig(candidates=3, max_tokens=8, threshold=0.5, redundancy=1.0)
    parts = SharedComponents(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(), config=config)
    return IndexedPassages([Passage(id=i, text=text) for i, text in TEXTS.items()], parts)


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_stay_within_the_budget(indexed, name):
    output = SYSTEMS[name](indexed)("alpha beta")
    assert output.tokens == len(output.text.split()) <= 8
    assert {p.id for p in output.passages} <= set(output.ranked)
    assert output.text == "\n\n".join(p.text for p in output.passages)


def test_bm25_ranks_beyond_the_budget(indexed):
    output = bm25_system(indexed)("alpha beta")
    assert output.ranked == ("a", "b", "c")
    assert [p.id for p in output.passages] == ["a", "b"]
    assert output.sufficient is None


def test_hybrid_fuses_by_reciprocal_ranks(indexed):
    output = hybrid_system(indexed)("kappa lambda")
    assert output.ranked[0] == "d"
    assert len(output.ranked) == 3


def test_full_reports_probabilities_of_all_passages(indexed):
    output = pipeline_system()(indexed)("alpha zeta")
    assert output.sufficient
    assert output.probabilities["c"] == 1.0
    assert next(p.id for p in output.passages if p.verified) == "c"
    assert set(output.probabilities) >= {p.id for p in output.passages}


def test_ranking_of_full_ignores_the_budget(indexed):
    wide = pipeline_system()(indexed.with_config(replace(indexed.components.config, max_tokens=512)))("alpha beta")
    narrow = pipeline_system()(indexed.with_config(replace(indexed.components.config, max_tokens=4)))("alpha beta")
    assert wide.ranked == narrow.ranked
    assert [p.id for p in wide.passages] == list(wide.ranked)
    assert len(narrow.passages) < len(wide.passages)


def test_a_passage_of_a_second_hop_ranks_by_its_score_with_evidence(indexed):
    """It is the only score of a passage that the question alone didn't find."""
    texts = {"emma": "author born emma xx", "weak": "author born", "jane": "xx author xx emma yy yy yy yy"}
    config = RetrieverConfig(candidates=2, sources="dense", threshold=0.3, min_verified=0, fill=False, evidence=1)
    passages = [Passage(id=i, text=text) for i, text in texts.items()]
    wide = IndexedPassages(passages, replace(indexed.components, config=config))
    output = pipeline_system(hops=2)(wide)("author born emma")
    assert [p.id for p in output.passages] == list(output.ranked) == ["emma", "jane", "weak"]
    assert output.probabilities == {p.id: p.score for p in output.passages}


def test_modes_without_verification_report_no_probabilities(indexed):
    output = pipeline_system(mode="standard_rag")(indexed)("alpha")
    assert output.sufficient is None
    assert output.probabilities == {}
    assert pipeline_system(mode="no_rag")(indexed)("alpha").passages == ()


def test_other_budget_reuses_the_index(indexed):
    first = indexed.retriever
    assert indexed.with_config(replace(indexed.components.config, max_tokens=4)).retriever is first


class Counting(WordEmbedder):
    def __init__(self):
        self.passages = []

    def embed_query(self, text):
        return WordEmbedder().embed_query(text)

    def embed_passages(self, texts):
        self.passages += texts
        return super().embed_passages(texts)


def test_cache_embeds_each_passage_once(tmp_path):
    inner = Counting()
    one = DiskCachedEmbedder(inner, tmp_path / "new" / "v.sqlite")
    first = one.embed_passages(["alpha", "beta", "alpha"])
    again = DiskCachedEmbedder(inner, tmp_path / "new" / "v.sqlite").embed_passages(["beta", "gamma", "alpha"])
    assert inner.passages == ["alpha", "beta", "alpha", "gamma"]
    np.testing.assert_array_equal(first, WordEmbedder().embed_passages(["alpha", "beta", "alpha"]))
    np.testing.assert_array_equal(again, WordEmbedder().embed_passages(["beta", "gamma", "alpha"]))
    assert (one.name, one.dimension, one.similarity) == (inner.name, inner.dimension, inner.similarity)


def test_cache_separates_models(tmp_path):
    class Other(Counting):
        name = "another"

    one, other = Counting(), Other()
    for inner in (one, other):
        DiskCachedEmbedder(inner, tmp_path / "v.sqlite").embed_passages(["alpha"])
    assert one.passages == other.passages == ["alpha"]


def test_cache_rejects_other_weights_of_the_same_name(tmp_path):
    class Retrained(WordEmbedder):
        def embed_query(self, text):
            return -super().embed_query(text)

    DiskCachedEmbedder(WordEmbedder(), tmp_path / "v.sqlite")
    with pytest.raises(EvaluationError, match="other weights"):
        DiskCachedEmbedder(Retrained(), tmp_path / "v.sqlite")


def test_unwritable_cache_is_rejected_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="file"):
        DiskCachedEmbedder(WordEmbedder(), tmp_path / "file" / "v.sqlite")


def test_file_of_another_kind_is_rejected_and_unchanged(tmp_path):
    file = tmp_path / "v.sqlite"
    file.write_text("not a database, but long enough to be looked at as one " * 20)
    before = file.read_bytes()
    with pytest.raises(EvaluationError, match="no file of embeddings"):
        DiskCachedEmbedder(WordEmbedder(), file)
    assert file.read_bytes() == before


def test_second_hop_is_measured_on_multi_passage_sets():
    assert "second_hop" in select_systems("hotpotqa")
    assert set(SYSTEMS) - set(select_systems("nq_open")) == {"second_hop"}
