"""Test the whole retriever, on components with predictable scores."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import numpy as np
import pytest

from meve import LabelledPair, MeveError, Passage, Retriever, RetrieverConfig
from meve._formulas import normalize
from meve.calibration.probability_maps import IsotonicCalibration, summarize_calibration
from meve.components.dense.flat import FlatIndex
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index
from meve.components.verifiers.cosine import CosineVerifier, load_shipped_calibration
from meve.errors import (
    ConfigurationError,
    DuplicateIdError,
    EmptyCorpusError,
    ModelError,
    PassageError,
    QueryError,
    UnknownIdError,
    ValidationError,
    VectorError,
)
from meve.pipeline._preparation import count_tokens, embed_texts
from meve.testing.fakes import IDENTITY, CountingEmbedder, CountingTokens, OverlapVerifier, WordCounter, WordEmbedder
from tests.fake_components import make_components

SKY, GRASS, SEA = "The sky is blue.", "Grass is green.", "Deep water looks blue as well."


@pytest.fixture
def retriever():
    return Retriever.from_texts([SKY, GRASS, SEA], ids=["sky", "grass", "sea"], **make_components())


def passage_ids(context):
    return [p.passage.id for p in context.passages]


def fates(context):
    return {c.id: (c.fate, c.phase, c.reason) for c in context.trace.candidates}


class TestModes:
    def test_full_verifies_falls_back_and_drops_below_the_floor(self, retriever):
        context = retriever.retrieve("blue sky")
        assert passage_ids(context) == ["sky", "sea"]
        assert [(p.score, p.verified) for p in context.passages] == [(1.0, True), (0.5, True)]
        assert context.text == f"{SKY}\n\n{SEA}"
        assert context.tokens == 10
        assert context.sufficient
        assert fates(context)["grass"] == ("dropped", "verify", "below_threshold")

    def test_fallback_alone_is_unverified_and_not_sufficient(self, retriever):
        context = retriever.retrieve("blue cheese recipe", fill=False)
        assert passage_ids(context) == ["sea", "sky"]
        assert {p.origin for p in context.passages} == {"fallback"}
        assert not any(p.verified for p in context.passages)
        assert not context.sufficient

    def test_no_fallback_mode_without_verified_candidates_is_empty(self, retriever):
        context = retriever.retrieve("blue cheese recipe", mode="no_fallback")
        assert (context.text, context.tokens, passage_ids(context)) == ("", 0, [])

    def test_no_verification_mode_orders_all_by_similarity(self, retriever):
        context = retriever.retrieve("blue sky", mode="no_verification")
        assert passage_ids(context)[0] == "sky"
        assert len(context.passages) == 3
        assert not context.sufficient
        assert context.trace.verifier == ""

    def test_standard_rag_mode_keeps_the_nearest_with_duplicates(self, retriever):
        retriever.add([Passage(id="copy", text=SKY)])
        context = retriever.retrieve("blue sky", mode="standard_rag")
        assert passage_ids(context)[:2] == ["copy", "sky"]
        full = retriever.retrieve("blue sky")
        assert "sky" not in passage_ids(full)
        assert fates(full)["sky"] == ("dropped", "prioritize", "redundant_with:copy")

    def test_no_rag_mode_is_empty_and_calls_no_model(self):
        embedder = CountingEmbedder(WordEmbedder())
        retriever = Retriever.from_texts([SKY], **make_components(embedder=embedder))
        context = retriever.retrieve("blue sky", mode="no_rag")
        assert (context.text, context.tokens, context.passages) == ("", 0, ())
        assert embedder.calls.queries == []

    @pytest.mark.parametrize("mode", ["full", "no_verification", "no_fallback", "standard_rag", "no_rag"])
    def test_every_mode_traces_five_phases_as_json(self, retriever, mode):
        context = retriever.retrieve("blue sky", mode=mode)
        trace = json.loads(json.dumps(context.to_dict()))["trace"]
        assert [p["name"] for p in trace["phases"]] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
        assert trace["mode"] == mode
        kept = [c for c in trace["candidates"] if c["fate"] == "kept"]
        assert [c["rank"] for c in kept] == list(range(1, len(kept) + 1))
        assert [c["id"] for c in kept] == passage_ids(context)
        assert all(c["reason"] for c in trace["candidates"])

    def test_paper_config_has_the_published_values(self):
        paper = RetrieverConfig.paper()
        assert (paper.candidates, paper.threshold, paper.min_verified) == (20, 0.5, 3)
        assert (paper.redundancy, paper.max_tokens, paper.fallback_floor, paper.limit) == (0.85, 512, 0.0, None)
        assert (paper.tokens, paper.lexical, paper.mode) == ("gpt2", "rank_bm25", "full")

    def test_paper_config_builds_rank_bm25_and_keeps_it_up_to_date(self, retriever):
        pytest.importorskip("rank_bm25")
        paper = RetrieverConfig.paper()
        retriever.add([Passage(id="cheese", text="a cheese board with some bread and wine")])
        context = retriever.retrieve("blue cheese recipe tonight please", config=paper, tokens=None)
        assert "cheese" in passage_ids(context)
        retriever.remove(["cheese"])
        assert "cheese" not in passage_ids(retriever.retrieve("blue cheese recipe", config=paper, tokens=None))

    def test_context_as_dict_is_complete_and_independent(self, retriever):
        trace = retriever.retrieve("blue sky").trace
        data = trace.to_dict()
        assert data == asdict(trace)
        data["candidates"][0]["scores"]["verifier"] = 7
        data["phases"][0]["settings"]["sources"].append("mine")
        data["sufficiency"]["estimate"] = 7
        assert data != trace.to_dict() == asdict(trace)


class TestBudgetAndLimits:
    def test_budget_is_never_exceeded_and_traces_skipped_passages(self, retriever):
        context = retriever.retrieve("blue sky water", max_tokens=5)
        assert context.tokens <= 5
        assert passage_ids(context) == ["sky"]
        assert fates(context)["sea"] == ("dropped", "budget", "over_budget")

    def test_limit_caps_the_passages(self, retriever):
        assert passage_ids(retriever.retrieve("blue sky", limit=1)) == ["sky"]

    def test_tokenizer_can_be_overridden_per_call(self, retriever):
        context = retriever.retrieve("blue sky", tokens="words")
        assert context.trace.tokens == "words"

    def test_threshold_can_be_overridden_per_call(self, retriever):
        assert [p.verified for p in retriever.retrieve("blue sky", threshold=0.6).passages] == [True, False]
        with pytest.raises(TypeError):
            retriever.retrieve("blue sky", 0.6)


class TestTies:
    def test_equal_scores_are_ordered_by_id_also_at_the_limit(self):
        ids = [f"{n:02d}" for n in range(40)]
        texts = ["same old words"] * 40
        orders = [ids, ids[::-1], ids[1::2] + ids[::2]]
        seen = set()
        for order in orders:
            retriever = Retriever.from_texts(texts, ids=order, **make_components())
            context = retriever.retrieve("same words", candidates=5, redundancy=1.0, fallback_k=2)
            seen.add(tuple(passage_ids(context)))
        assert seen == {("00", "01", "02", "03", "04")}

    def test_fallback_ties_are_broken_by_id(self):
        order = [f"{n:02d}" for n in range(30)][::-1]
        retriever = Retriever.from_texts(["alpha beta gamma"] * 30, ids=order, **make_components())
        context = retriever.retrieve(
            "alpha x y z", candidates=1, threshold=0.9, fallback_k=3, redundancy=1.0, min_verified=9
        )
        assert passage_ids(context) == ["00", "01", "02"]

    @pytest.mark.parametrize("n", [3, 5, 7, 9, 13, 21, 39])
    def test_equal_texts_get_equal_scores_from_the_default_verifier(self, n):
        class Long(WordEmbedder):
            dimension = 384

            def embed_passages(self, texts):
                seed = np.random.default_rng(0).standard_normal((27, 384))
                return normalize(np.stack([row @ seed for row in WordEmbedder().embed_passages(texts)]))

        ids = [f"{i:02d}" for i in np.random.default_rng(n).permutation(n)]
        embedder = Long()
        verifier = CosineVerifier(embedder, load_shipped_calibration())
        texts = ["alpha beta gamma delta"] * n
        retriever = Retriever.from_texts(texts, ids=ids, **make_components(embedder=embedder, verifier=verifier))
        for mode in ("full", "no_verification"):
            context = retriever.retrieve("alpha beta zeta", candidates=n, redundancy=1.0, threshold=0.0, mode=mode)
            assert passage_ids(context) == sorted(ids)


class TestWork:
    def test_texts_are_embedded_in_batches_by_length(self):
        texts = [f"{'long ' * (n % 50)}text number {n}" for n in range(200)]
        embedder = CountingEmbedder(WordEmbedder())
        vectors = embed_texts(texts, embedder)
        assert (vectors == WordEmbedder().embed_passages(texts)).all()
        lengths = [len(text) for text in embedder.calls.passages]
        assert lengths == sorted(lengths, reverse=True)

    def test_long_embedding_names_its_time_and_the_fast_embedder(self, caplog, monkeypatch):
        class Minilm(WordEmbedder):
            name = "meve-minilm-1"

        texts = [f"text number {n}" for n in range(2_000)]
        embed_texts(texts, Minilm())
        assert not caplog.records
        monkeypatch.setattr("meve.pipeline._preparation.LONG", 0.0)
        embed_texts(texts, WordEmbedder())
        assert not caplog.records, "another embedder may be the only one for these texts"
        embed_texts(texts, Minilm())
        (record,) = caplog.records
        assert re.search(r"embedding 2,000 passages .* minutes more; embedder 'static' takes sec", record.message)

    def test_tokens_are_counted_in_parts(self):
        """A tokenizer that is given a million texts at once takes 20 GB."""
        given = []

        class Counter(WordCounter):
            def count_many(self, texts):
                given.append(len(texts))
                return super().count_many(texts)

        texts = ["word " * (n % 7) for n in range(2_500)]
        assert count_tokens(texts, Counter()) == [n % 7 for n in range(2_500)]
        assert max(given) <= 1_024

    def test_query_is_embedded_once_and_no_passage_is_scored_twice(self):
        embedder, tokens = CountingEmbedder(WordEmbedder()), CountingTokens(WordCounter())
        texts = [SKY, GRASS, SEA, SKY]
        retriever = Retriever.from_texts(texts, **make_components(embedder=embedder, tokens=tokens))
        assert sorted(embedder.calls.passages) == sorted(texts)
        assert tokens.calls.passages == texts
        for _ in range(3):
            tokens.calls.passages.clear()
            embedder.calls.queries.clear()
            context = retriever.retrieve("blue cheese sky recipe")
            assert embedder.calls.queries == ["blue cheese sky recipe"]
            assert set(tokens.calls.passages) == {"\n\n", context.text}
            assert len(tokens.calls.passages) == 2
        assert sorted(embedder.calls.passages) == sorted(texts)

    def test_cosine_verifier_uses_stored_vectors(self):
        embedder = CountingEmbedder(WordEmbedder())
        verifier = CosineVerifier(embedder, IDENTITY)
        retriever = Retriever.from_texts([SKY, SEA], **make_components(embedder=embedder, verifier=verifier))
        retriever.retrieve("blue sky")
        assert embedder.calls.queries == ["blue sky"]
        assert sorted(embedder.calls.passages) == sorted([SKY, SEA])

    def test_load_embeds_one_passage_and_counts_none(self, tmp_path):
        Retriever.from_texts([SKY, GRASS, SEA], **make_components()).save(tmp_path / "index")
        embedder, tokens = CountingEmbedder(WordEmbedder()), CountingTokens(WordCounter())
        Retriever.load(tmp_path / "index", **make_components(embedder=embedder, tokens=tokens))
        assert embedder.calls.passages == [SKY]
        assert tokens.calls.passages == []


class TestSources:
    TEXTS = ("blue sky blue sky", "blue sea blue sky", "zebra facts", "blue sky birds", "trees and blue sky")

    def retrieve_from(self, sources, **overrides):
        retriever = Retriever.from_texts(self.TEXTS, **make_components())
        context = retriever.retrieve(
            "blue sky zebra", sources=sources, candidates=1, mode="no_fallback", threshold=0.3, **overrides
        )
        return context.trace

    def make_with_languages(self):
        metadatas = [{"lang": "de" if "zebra" in text else "en"} for text in self.TEXTS]
        return Retriever.from_texts(self.TEXTS, metadatas=metadatas, **make_components())

    def test_hybrid_combines_the_candidates_of_both_sources(self):
        brought = {s: {c.id for c in self.retrieve_from(s).candidates} for s in ("dense", "lexical", "hybrid")}
        assert brought == {"dense": {"p0000000"}, "lexical": {"p0000002"}, "hybrid": {"p0000000", "p0000002"}}

    def test_given_query_vector_is_not_embedded_again(self):
        embedder = CountingEmbedder(WordEmbedder())
        retriever = Retriever.from_texts(self.TEXTS, **make_components(embedder=embedder))
        vector = WordEmbedder().embed_query("zebra facts")
        context = retriever.retrieve("blue sky", vector=vector, sources="dense", candidates=1, fallback_k=0)
        assert {c.id: c.scores["verifier"] for c in context.trace.candidates} == {"p0000002": 0.0}
        assert embedder.calls.queries == []
        with pytest.raises(VectorError, match="vectors of the question must have shape"):
            retriever.retrieve("blue sky", vector=vector[:3])

    def test_keyword_candidates_are_verified_and_traced(self):
        trace = self.retrieve_from("hybrid")
        assert trace.phases[0].settings["sources"] == ["dense", "lexical"]
        assert {(c.id, c.origin, c.verified) for c in trace.candidates} == {
            ("p0000000", "dense", True),
            ("p0000002", "lexical", True),
        }

    def test_filter_applies_to_both_sources(self):
        retriever = self.make_with_languages()
        context = retriever.retrieve("blue sky zebra", sources="hybrid", where={"lang": "en"}, fallback_floor=0.0)
        assert "p0000002" not in {c.id for c in context.trace.candidates}

    def test_fallback_after_keyword_search_reconsiders_rejected_candidates(self):
        retriever = Retriever.from_texts(self.TEXTS, **make_components())
        options = {"candidates": 1, "threshold": 1.0, "fallback_floor": 0.0, "fallback_k": 1, "fill": False}
        both = retriever.retrieve("blue sky zebra", sources="hybrid", **options)
        assert both.trace.phases[2].settings["source"] == "rejected"
        assert {c.id for c in both.trace.candidates} == {"p0000000", "p0000002"}
        best = max(both.trace.candidates, key=lambda c: c.scores["verifier"])
        assert [p.passage.id for p in both.passages] == [best.id]
        one = retriever.retrieve("blue sky zebra", sources="dense", **options)
        assert one.trace.phases[2].settings["source"] == "lexical"

    def test_filter_may_be_a_function_that_is_called_each_time(self):
        langs = {"de"}
        retriever = self.make_with_languages()
        options = {"where": lambda metadata: metadata["lang"] in langs, "fallback_floor": 0.0}
        assert {c.id for c in retriever.retrieve("blue sky zebra", **options).trace.candidates} == {"p0000002"}
        langs.add("en")
        assert len(retriever.retrieve("blue sky zebra", **options).trace.candidates) == 5
        with pytest.raises(ConfigurationError, match="KeyError: 'nothing'"):
            retriever.retrieve("blue sky", where=lambda metadata: metadata["nothing"])

    def test_unknown_source_raises_error_with_choices(self):
        with pytest.raises(ConfigurationError, match="sources must be one of dense, lexical, hybrid, got 'web'"):
            RetrieverConfig(sources="web")


class TestChanges:
    def test_added_passage_is_found_by_the_next_query(self, retriever):
        assert retriever.add([Passage(id="sun", text="Yellow zebra suns.")]) == ["sun"]
        assert passage_ids(retriever.retrieve("zebra suns")) == ["sun"]
        context = retriever.retrieve("zebra suns", mode="full", candidates=1, threshold=1.0, min_verified=5)
        assert "sun" in passage_ids(context)

    def test_removed_passage_is_gone_from_every_phase(self, retriever):
        retriever.remove(["sky"])
        for mode in ("full", "no_verification", "standard_rag", "no_fallback"):
            context = retriever.retrieve("blue sky", mode=mode, fallback_floor=0.0)
            assert "sky" not in [c.id for c in context.trace.candidates]
        assert "sky" not in retriever
        with pytest.raises(UnknownIdError, match="'sky'"):
            retriever.get("sky")

    def test_passage_can_be_replaced_in_one_update(self, retriever):
        retriever.update(add=[Passage(id="sky", text="Clouds everywhere.")], remove=["sky"])
        assert retriever.get("sky").text == "Clouds everywhere."
        assert len(retriever) == 3
        assert passage_ids(retriever.retrieve("clouds everywhere")) == ["sky"]

    def test_generated_ids_are_never_reused(self):
        retriever = Retriever.from_texts([SKY, GRASS], **make_components())
        retriever.remove(["p0000001"])
        assert retriever.add([SEA]) == ["p0000002"]

    def test_empty_retriever_can_be_added_to(self):
        retriever = Retriever.empty(**make_components())
        with pytest.raises(EmptyCorpusError, match="add passages"):
            retriever.retrieve("blue sky")
        retriever.add([SKY])
        assert retriever.retrieve("blue sky").sufficient

    def test_auto_index_kind_depends_on_the_first_passages(self, monkeypatch):
        monkeypatch.setattr("meve.components.dense.FLAT_UP_TO", 2)
        retriever = Retriever.empty(**make_components())
        retriever.add([SKY, GRASS, SEA])
        assert retriever.info()["dense"] == "hnsw"
        assert Retriever.from_texts([SKY, GRASS], **make_components()).info()["dense"] == "flat"

    def test_given_index_must_be_empty(self):
        full = FlatIndex(27)
        full.add(np.array([0]), np.ones((1, 27), dtype=np.float32))
        with pytest.raises(ConfigurationError, match="empty one"):
            Retriever.empty(**make_components(dense=full))

    def test_given_components_are_used_whatever_the_config_names(self):
        pytest.importorskip("rank_bm25")
        dense, lexical, given = FlatIndex(27), RankBm25Index(), make_components()
        config = RetrieverConfig(tokens="gpt2", lexical="bm25")
        retriever = Retriever.from_texts([SKY], dense=dense, lexical=lexical, config=config, **given)
        assert retriever._corpus.dense is dense
        assert retriever._corpus.primary_lexical is lexical
        assert (retriever.embedder, retriever.verifier, retriever.tokens) == tuple(given.values())
        context = retriever.retrieve("blue cheese recipe")
        assert context.trace.tokens == "words"
        assert retriever.info()["lexical"] == ["rank_bm25"]
        assert Retriever.empty(lexical=Bm25Index(k1=9), **make_components())._corpus.primary_lexical._k1 == 9

    def test_concurrent_adds_get_distinct_ids(self):
        retriever = Retriever.from_texts(["one"], ids=["p0000001"], **make_components())
        with ThreadPoolExecutor(8) as pool:
            ids = [
                i for added in pool.map(lambda n: retriever.add([f"text {n}", f"more {n}"]), range(40)) for i in added
            ]
        assert len(set(ids)) == 80
        assert len(retriever) == 81

    def test_calibration_and_threshold_change_together(self):
        retriever = Retriever.from_texts([SKY, GRASS], **make_components())
        pairs = [
            LabelledPair(query="blue sky", passage=text, relevant=text == SKY)
            for text in [SKY, GRASS]
            for _ in range(30)
        ]
        seen = []
        stop = threading.Event()

        def read():
            while not stop.is_set():
                trace = retriever.retrieve("blue sky").trace
                verdict = next(c.scores["verifier"] for c in trace.candidates if c.id == "p0000000")
                seen.append((trace.phases[1].settings["threshold"], round(verdict, 6)))

        thread = threading.Thread(target=read)
        thread.start()
        report = retriever.calibrate(pairs)
        time.sleep(0.05)
        stop.set()
        thread.join()
        after = round(float(report.calibration.apply(np.array([1.0], dtype=np.float32))[0]), 6)
        assert set(seen) <= {(0.5, 1.0), (report.threshold, after)}
        assert (report.threshold, after) in seen

    def test_trace_names_verifier_and_calibration(self):
        retriever = Retriever.from_texts([SKY, GRASS], **make_components())
        settings = retriever.retrieve("blue sky").trace.phases[1].settings
        assert settings["verifier"] == "word-overlap"
        assert settings["calibration"] == summarize_calibration(OverlapVerifier().calibration.to_dict())
        points = {"raw": (0.0, 1.0), "probability": (0.1, 0.9)}
        fitted = IsotonicCalibration(**points, fitted_on="mine", pairs=7, error=0.01)
        retriever.engine = replace(retriever.engine, verifier=OverlapVerifier(fitted))
        trace = retriever.retrieve("blue sky").trace
        expected = {"method": "isotonic", "fitted_on": "mine", "pairs": 7, "error": 0.01}
        assert trace.phases[1].settings["calibration"] == expected
        assert json.loads(json.dumps(trace.to_dict()))["phases"][1]["settings"]["calibration"] == expected

    def test_progress_is_reported_per_batch(self):
        reports = []
        Retriever.from_texts(
            ["a text"] * 300, **make_components(), progress=lambda done, total: reports.append((done, total))
        )
        assert reports == [(64, 300), (128, 300), (192, 300), (256, 300), (300, 300)]


class TestFilters:
    @pytest.fixture
    def filtered(self):
        return Retriever.from_texts(
            [SKY, GRASS, SEA],
            ids=["sky", "grass", "sea"],
            metadatas=[{"lang": "en", "year": 2020}, {"lang": "de"}, {"lang": "fr", "tags": ["water", "blue"]}],
            **make_components(),
        )

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ({"lang": "en"}, {"sky"}),
            ({"lang": ["en", "de"]}, {"sky", "grass"}),
            ({"tags": "blue"}, {"sea"}),
            ({"lang": "en", "year": 2021}, set()),
            ({"nothing": 1}, set()),
        ],
    )
    def test_filter_applies_to_every_phase(self, filtered, where, expected):
        for mode in ("full", "standard_rag", "no_verification"):
            context = filtered.retrieve("blue grass sky water", where=where, mode=mode, fallback_floor=0.0)
            assert {c.id for c in context.trace.candidates} <= expected
            if mode != "full":
                assert set(passage_ids(context)) == expected

    def test_filter_matches_passages_added_later(self, filtered):
        filtered.retrieve("blue sky", where={"lang": "en"})
        filtered.add([Passage(id="new", text=SKY + " Indeed.", metadata={"lang": "en"})])
        context = filtered.retrieve("blue sky indeed", where={"lang": "en"}, redundancy=1.0)
        assert set(passage_ids(context)) == {"new", "sky"}

    def test_filter_distinguishes_value_types(self):
        values = [1, True, "1", 1.0, None, "null"]
        retriever = Retriever.from_texts(
            ["blue sky"] * 6, ids=list("abcdef"), metadatas=[{"v": v} for v in values], **make_components()
        )

        def filter_by(value):
            return set(passage_ids(retriever.retrieve("blue sky", where={"v": value}, redundancy=1.0)))

        assert [filter_by(v) for v in (1, True, "1", None, "null")] == [{"a", "d"}, {"b"}, {"c"}, {"e"}, {"f"}]

    @pytest.mark.parametrize(
        "where",
        [{"lang": {"a": 1}}, "lang", {"lang": object()}, ["lang"], [], "", 0, {1: "en"}, np.array(["en"]), {"a": b"x"}],
    )
    def test_invalid_filter_raises_error(self, filtered, where):
        with pytest.raises(ConfigurationError, match="filter"):
            filtered.retrieve("blue sky", where=where)
        with pytest.raises(ConfigurationError, match="filter"):
            filtered.retrieve("blue sky", where=where, mode="no_rag")


class TestBadInput:
    @pytest.mark.parametrize("query", ["", "   ", "\n\t", None, 7, b"blue", ["blue"]])
    def test_blank_or_non_text_query_raises_error(self, retriever, query):
        with pytest.raises(QueryError):
            retriever.retrieve(query)

    @pytest.mark.parametrize(
        "options",
        [
            {"candidates": 0},
            {"candidates": 2.5},
            {"candidates": True},
            {"limit": 0},
            {"threshold": 1.1},
            {"threshold": float("nan")},
            {"threshold": "0.5"},
            {"min_verified": -1},
            {"fallback_k": -1},
            {"fallback_floor": -0.1},
            {"redundancy": 2},
            {"max_tokens": 0},
            {"mode": "fuller"},
            {"separator": 3},
            {"citations": "yes"},
            {"tokens": 4},
            {"lexical": "bm42"},
            {"hops": 0},
            {"hops": True},
            {"evidence": 0},
            {"evidence_words": 0},
            {"follow_k": 0},
            {"deadline": 0},
            {"deadline": -1.0},
            {"deadline": float("nan")},
            {"deadline": float("inf")},
            {"deadline": True},
            {"deadline": "1"},
        ],
    )
    def test_value_out_of_range_is_named_in_the_error(self, retriever, options):
        name = next(iter(options))
        with pytest.raises(ConfigurationError, match=name):
            retriever.retrieve("blue sky", **options)
        with pytest.raises(ConfigurationError, match=name):
            RetrieverConfig(**options)

    def test_unknown_option_raises_error_with_suggestion(self, retriever):
        with pytest.raises(ConfigurationError, match=r"'thresold' of Retriever\.retrieve: did you mean 'threshold'"):
            retriever.retrieve("blue sky", thresold=0.3)
        with pytest.raises(ConfigurationError, match="known: query, config, where, vector, observer, candidates"):
            retriever.retrieve("blue sky", zzz=1)

    def test_constructor_without_its_parts_names_the_ways_to_make_one(self):
        with pytest.raises(ConfigurationError, match=r"made by Retriever\.from_texts\(texts\).*got Retriever\(\["):
            Retriever(["a text"])

    def test_no_passages_raise_error_that_names_empty(self):
        with pytest.raises(EmptyCorpusError, match=r"Retriever\.empty"):
            Retriever.from_texts([], **make_components())

    def test_duplicate_id_changes_nothing(self, retriever):
        with pytest.raises(DuplicateIdError, match="'x'"):
            retriever.add([Passage(id="x", text="one"), Passage(id="x", text="two")])
        with pytest.raises(DuplicateIdError, match="'sky'"):
            retriever.add([Passage(id="y", text="one"), Passage(id="sky", text="two")])
        assert len(retriever) == 3
        assert "y" not in retriever

    def test_removing_an_unknown_id_changes_nothing(self, retriever):
        with pytest.raises(UnknownIdError, match="'nope'"):
            retriever.remove(["sky", "nope"])
        assert "sky" in retriever

    @pytest.mark.parametrize(
        "passage",
        [
            Passage(id="a", text=""),
            Passage(id="a", text="  \n"),
            Passage(id="", text="text"),
            Passage(id="a", text="text", metadata={"x": float("nan")}),
            Passage(id="a", text="text", metadata={"x": object()}),
            Passage(id="a", text="lone surrogate \ud800"),
            Passage(id="a", text="text", metadata={1: "x"}),
            Passage(id="a", text="text", metadata=None),
            "",
            Passage(id=3, text="text"),
            Passage(id="a", text=None),
        ],
    )
    def test_invalid_passage_raises_error_and_adds_nothing(self, retriever, passage):
        with pytest.raises(PassageError):
            retriever.add([Passage(id="fine", text="fine"), passage])
        assert len(retriever) == 3

    def test_lists_of_different_lengths_raise_error(self):
        with pytest.raises(ValidationError, match="ids must have as many items as texts, got 1 ids for 2 texts"):
            Retriever.from_texts([SKY, SEA], ids=["one"], **make_components())
        for texts in (SKY, None, 5):
            with pytest.raises(ValidationError, match="texts must be a list of texts"):
                Retriever.from_texts(texts, **make_components())
        with pytest.raises(ValidationError, match="passages must be a list of passages, got NoneType"):
            Retriever.from_passages(None, **make_components())
        with pytest.raises(ValidationError, match="item 0 of metadatas must be a dictionary or None, got 'x'"):
            Retriever.from_texts([SKY], metadatas=["x"], **make_components())

    def test_device_is_an_option_of_the_verifier(self):
        with pytest.raises(ConfigurationError, match=r"give verifier=load_verifier\(device=…\)"):
            Retriever.from_texts([SKY], device="cuda")
        assert len(Retriever.from_texts([SKY, SEA], metadatas=[None, {"n": 1}], **make_components())) == 2

    @pytest.mark.parametrize(
        "call",
        [
            lambda r: r.add("hello"),
            lambda r: r.add(Passage(id="x", text="x")),
            lambda r: r.remove(None),
            lambda r: r.remove([["x"]]),
            lambda r: r.update(add=5),
            lambda r: r.retrieve("x", config={"limit": 1}),
            lambda r: r.save("x", extra="abc"),
            lambda r: r.save("a\0b"),
            lambda r: r.calibrate(None),
            lambda r: r.calibrate([("q", "p", True)]),
            lambda r: r.retrieve("lone \ud800"),
            lambda r: Retriever.from_texts([SKY], config={}, **make_components()),
        ],
    )
    def test_wrong_type_raises_meve_error_and_changes_nothing(self, retriever, call, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(MeveError):
            call(retriever)
        assert len(retriever) == 3
        assert list(tmp_path.iterdir()) == []

    def test_config_accepts_numpy_numbers(self, retriever):
        context = retriever.retrieve("blue sky", limit=np.int64(1), threshold=np.float32(0.25))
        assert json.dumps(context.to_dict())

    @pytest.mark.parametrize("bad", [np.full((1, 27), np.nan), np.ones((1, 5)), np.ones((2, 27)), np.ones(27)])
    def test_invalid_embedder_output_changes_nothing(self, retriever, monkeypatch, bad):
        monkeypatch.setattr(WordEmbedder, "embed_passages", lambda *_: bad.astype(np.float32))
        with pytest.raises((VectorError, ModelError)):
            retriever.add([Passage(id="new", text="new text")])
        assert "new" not in retriever
        assert len(retriever) == 3
        monkeypatch.undo()
        assert retriever.retrieve("blue sky").sufficient

    def test_invalid_query_vector_raises_error(self, retriever, monkeypatch):
        monkeypatch.setattr(WordEmbedder, "embed_query", lambda *_: np.full(27, np.nan, dtype=np.float32))
        with pytest.raises((VectorError, ModelError)):
            retriever.retrieve("blue sky")

    @pytest.mark.parametrize(
        ("score", "says"),
        [
            (lambda *_: 1 / 0, "word-overlap.*division by zero"),
            (lambda *_: None, "must return one number for each of 3 passages"),
            (lambda *given: np.full(len(given[-1]), 8.6), "calibration"),
        ],
    )
    def test_failing_or_uncalibrated_verifier_raises_error(self, retriever, monkeypatch, score, says):
        monkeypatch.setattr(OverlapVerifier, "score", score)
        with pytest.raises(ModelError, match=says):
            retriever.retrieve("blue sky")

    def test_ratings_of_sentences_may_be_lists_and_none_is_refused(self, retriever, monkeypatch):
        monkeypatch.setattr(OverlapVerifier, "scores_sentences", True, raising=False)
        for rate in (lambda spans: [[0.5] * len(own) for own in spans], lambda spans: None):
            monkeypatch.setattr(
                OverlapVerifier, "score_sentences", lambda *given, rate=rate: rate(given[-1]), raising=False
            )
            retriever.add([Passage(id="two", text="The blue sky is far. The blue sea is near.")])
            if rate([[]]) is not None:
                assert retriever.retrieve("blue sky", packing="sentences").text
            else:
                with pytest.raises(ModelError, match="scoring sentences with 'word-overlap'"):
                    retriever.retrieve("blue sky", packing="sentences")
            retriever.remove(["two"])

    def test_counts_beyond_the_corpus_return_what_there_is(self, retriever):
        asked = [dict(candidates=n, fallback_k=n, hops=2, follow_k=n) for n in (2**70, 100)]
        more, some = (retriever.retrieve("blue sky", **options) for options in asked)
        assert more.text == some.text

    def test_changing_the_corpus_during_a_retrieval_raises_error(self, retriever):
        class Meddling(OverlapVerifier):
            def score(self, query, passages):
                retriever.remove(["sky"])
                return super().score(query, passages)

        retriever.engine = replace(retriever.engine, verifier=Meddling())
        with pytest.raises(Exception, match="inside a retrieval"):
            retriever.retrieve("blue sky")
