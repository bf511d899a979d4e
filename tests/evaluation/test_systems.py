"""Systems: what each hands over, checked on texts that one can work out."""

from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, RetrieverConfig
from meve.errors import EvaluationError
from meve.evaluation import Parts
from meve.evaluation._embedding_cache import CachedEmbedder
from meve.evaluation.systems import SYSTEMS, Workbench, hybrid, keyword_search, phases, systems_for
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

TEXTS = {
    "a": "alpha beta gamma",
    "b": "alpha beta delta epsilon",
    "c": "alpha zeta eta theta",
    "d": "kappa lambda",
}


@pytest.fixture
def bench():
    config = RetrieverConfig(candidates=3, max_tokens=8, threshold=0.5, redundancy=1.0)
    parts = Parts(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(), config=config)
    return Workbench([Passage(id=i, text=text) for i, text in TEXTS.items()], parts)


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_system_exceeds_the_budget_and_all_count_what_they_hand_over(bench, name):
    made = SYSTEMS[name](bench)("alpha beta")
    assert made.tokens == len(made.text.split()) <= 8
    assert {p.id for p in made.passages} <= set(made.ranked)
    assert made.text == "\n\n".join(p.text for p in made.passages)


def test_keyword_search_ranks_beyond_the_budget(bench):
    made = keyword_search(bench)("alpha beta")
    assert made.ranked == ("a", "b", "c")
    assert [p.id for p in made.passages] == ["a", "b"]
    assert made.sufficient is None


def test_hybrid_fuses_by_reciprocal_ranks(bench):
    """kappa is first for both; what only one of them ranks comes after."""
    made = hybrid(bench)("kappa lambda")
    assert made.ranked[0] == "d"
    assert len(made.ranked) == 3


def test_full_says_what_it_verified_and_what_it_turned_down(bench):
    made = phases()(bench)("alpha zeta")
    assert made.sufficient
    assert made.judged["c"] == 1.0
    assert next(p.id for p in made.passages if p.verified) == "c"
    assert set(made.judged) >= {p.id for p in made.passages}


def test_the_ranking_of_full_is_that_before_the_budget(bench):
    wide = phases()(bench.with_config(replace(bench.parts.config, max_tokens=512)))("alpha beta")
    narrow = phases()(bench.with_config(replace(bench.parts.config, max_tokens=4)))("alpha beta")
    assert wide.ranked == narrow.ranked
    assert [p.id for p in wide.passages] == list(wide.ranked)
    assert len(narrow.passages) < len(wide.passages)


def test_modes_that_verify_nothing_claim_nothing(bench):
    made = phases(mode="standard_rag")(bench)("alpha")
    assert made.sufficient is None
    assert made.judged == {}
    assert phases(mode="no_rag")(bench)("alpha").passages == ()


def test_another_budget_needs_no_new_index(bench):
    first = bench.retriever
    assert bench.with_config(replace(bench.parts.config, max_tokens=4)).retriever is first


class Counting(WordEmbedder):
    def __init__(self):
        self.passages = []

    def embed_query(self, text):
        return WordEmbedder().embed_query(text)

    def embed_passages(self, texts):
        self.passages += texts
        return super().embed_passages(texts)


def test_the_cache_embeds_a_passage_once_and_forever(tmp_path):
    inner = Counting()
    one = CachedEmbedder(inner, tmp_path / "new" / "v.sqlite")
    first = one.embed_passages(["alpha", "beta", "alpha"])
    again = CachedEmbedder(inner, tmp_path / "new" / "v.sqlite").embed_passages(["beta", "gamma", "alpha"])
    assert inner.passages == ["alpha", "beta", "alpha", "gamma"]
    np.testing.assert_array_equal(first, WordEmbedder().embed_passages(["alpha", "beta", "alpha"]))
    np.testing.assert_array_equal(again, WordEmbedder().embed_passages(["beta", "gamma", "alpha"]))
    assert (one.name, one.dimension, one.similarity) == (inner.name, inner.dimension, inner.similarity)


def test_the_cache_keeps_models_apart(tmp_path):
    class Other(Counting):
        name = "another"

    one, other = Counting(), Other()
    for inner in (one, other):
        CachedEmbedder(inner, tmp_path / "v.sqlite").embed_passages(["alpha"])
    assert one.passages == other.passages == ["alpha"]


def test_the_cache_refuses_other_weights_of_the_same_name(tmp_path):
    class Retrained(WordEmbedder):
        def embed_query(self, text):
            return -super().embed_query(text)

    CachedEmbedder(WordEmbedder(), tmp_path / "v.sqlite")
    with pytest.raises(EvaluationError, match="other weights"):
        CachedEmbedder(Retrained(), tmp_path / "v.sqlite")


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="file"):
        CachedEmbedder(WordEmbedder(), tmp_path / "file" / "v.sqlite")


def test_a_file_that_is_no_cache_is_refused_and_kept(tmp_path):
    file = tmp_path / "v.sqlite"
    file.write_text("not a database, but long enough to be looked at as one " * 20)
    before = file.read_bytes()
    with pytest.raises(EvaluationError, match="no file of embeddings"):
        CachedEmbedder(WordEmbedder(), file)
    assert file.read_bytes() == before


def test_a_second_hop_is_measured_where_questions_need_several_passages():
    assert "second_hop" in systems_for("hotpotqa")
    assert set(SYSTEMS) - set(systems_for("nq_open")) == {"second_hop"}
