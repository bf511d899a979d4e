"""The retriever as a whole, on parts that one can compute in one's head."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import numpy as np
import pytest

from meve import LabelledPair, MeveError, Passage, Retriever, RetrieverConfig
from meve._formulas import normalize
from meve.calibration.maps import IsotonicCalibration, account
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
from meve.pipeline._preparation import embed_texts
from meve.testing.fakes import CountedEmbedder, CountedTokens, OverlapVerifier, WordCounter, WordEmbedder

SKY, GRASS, SEA = "The sky is blue.", "Grass is green.", "Deep water looks blue as well."


def parts(**changed):
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), **changed}


@pytest.fixture
def retriever():
    return Retriever.from_texts([SKY, GRASS, SEA], ids=["sky", "grass", "sea"], **parts())


def shown(context):
    return [p.passage.id for p in context.passages]


def fates(context):
    return {c.id: (c.fate, c.phase, c.reason) for c in context.trace.candidates}


class TestModes:
    def test_full_verifies_then_falls_back_and_drops_below_the_floor(self, retriever):
        """Sky holds both words, sea one of two, grass none: 1, 0.5 and 0."""
        context = retriever.retrieve("blue sky")
        assert shown(context) == ["sky", "sea"]
        assert [(p.score, p.verified) for p in context.passages] == [(1.0, True), (0.5, True)]
        assert context.text == f"{SKY}\n\n{SEA}"
        assert context.tokens == 10
        assert context.sufficient
        assert fates(context)["grass"] == ("dropped", "verify", "below_threshold")

    def test_fallback_finds_are_unverified_and_do_not_make_it_sufficient(self, retriever):
        """One word of three is 0.33: above the floor, below τ."""
        context = retriever.retrieve("blue cheese recipe")
        assert shown(context) == ["sea", "sky"]
        assert {p.origin for p in context.passages} == {"fallback"}
        assert not any(p.verified for p in context.passages)
        assert not context.sufficient

    def test_no_fallback_leaves_it_empty(self, retriever):
        """Without phase 3, what isn't verified stays out."""
        context = retriever.retrieve("blue cheese recipe", mode="no_fallback")
        assert (context.text, context.tokens, shown(context)) == ("", 0, [])

    def test_no_verification_passes_everything_on(self, retriever):
        """Nothing is verified, so nothing is sufficient; order is by similarity."""
        context = retriever.retrieve("blue sky", mode="no_verification")
        assert shown(context)[0] == "sky"
        assert len(context.passages) == 3
        assert not context.sufficient
        assert context.trace.verifier == ""

    def test_standard_rag_takes_the_nearest_in_order(self, retriever):
        """Phase 1 straight to phase 5: near copies stay in."""
        retriever.add([Passage(id="copy", text=SKY)])
        context = retriever.retrieve("blue sky", mode="standard_rag")
        assert shown(context)[:2] == ["copy", "sky"]
        full = retriever.retrieve("blue sky")
        assert "sky" not in shown(full)
        assert fates(full)["sky"] == ("dropped", "prioritize", "redundant_with:copy")

    def test_no_rag_is_empty_and_asks_no_model(self):
        """Nothing is embedded, nothing searched."""
        embedder = CountedEmbedder(WordEmbedder())
        retriever = Retriever.from_texts([SKY], **parts(embedder=embedder))
        context = retriever.retrieve("blue sky", mode="no_rag")
        assert (context.text, context.tokens, context.passages) == ("", 0, ())
        assert embedder.calls.queries == []

    @pytest.mark.parametrize("mode", ["full", "no_verification", "no_fallback", "standard_rag", "no_rag"])
    def test_every_mode_traces_five_phases_and_saves_as_json(self, retriever, mode):
        """The trace is data; one phase a row, run or skipped with a reason."""
        context = retriever.retrieve("blue sky", mode=mode)
        trace = json.loads(json.dumps(context.to_dict()))["trace"]
        assert [p["name"] for p in trace["phases"]] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
        assert trace["mode"] == mode
        kept = [c for c in trace["candidates"] if c["fate"] == "kept"]
        assert [c["rank"] for c in kept] == list(range(1, len(kept) + 1))
        assert [c["id"] for c in kept] == shown(context)
        assert all(c["reason"] for c in trace["candidates"])

    def test_paper_setting_is_as_published(self):
        """Whatever the defaults become."""
        paper = RetrieverConfig.paper()
        assert (paper.candidates, paper.threshold, paper.min_verified) == (20, 0.5, 3)
        assert (paper.redundancy, paper.max_tokens, paper.fallback_floor, paper.limit) == (0.85, 512, 0.0, None)
        assert (paper.tokens, paper.lexical, paper.mode) == ("gpt2", "rank_bm25", "full")

    def test_paper_setting_runs_on_any_retriever_and_lets_the_fallback_in(self, retriever):
        """The reference keyword index is made when first asked for, and kept in step after that."""
        pytest.importorskip("rank_bm25")
        paper = RetrieverConfig.paper()
        retriever.add([Passage(id="cheese", text="a cheese board with some bread and wine")])
        context = retriever.retrieve("blue cheese recipe tonight please", config=paper, tokens=None)
        assert "cheese" in shown(context)
        retriever.remove(["cheese"])
        assert "cheese" not in shown(retriever.retrieve("blue cheese recipe", config=paper, tokens=None))

    def test_the_account_as_data_is_all_of_it_and_shares_nothing_with_the_trace(self, retriever):
        """Every field of every candidate; what is done to the one doesn't reach the other."""
        trace = retriever.retrieve("blue sky").trace
        data = trace.to_dict()
        assert data == asdict(trace)
        data["candidates"][0]["scores"]["verifier"] = 7
        data["phases"][0]["settings"]["sources"].append("mine")
        data["sufficiency"]["estimate"] = 7
        assert data != trace.to_dict() == asdict(trace)


class TestBudgetAndLimits:
    def test_budget_is_never_exceeded(self, retriever):
        """A passage that doesn't fit is skipped, the next one tried, and the trace says so."""
        context = retriever.retrieve("blue sky water", max_tokens=5)
        assert context.tokens <= 5
        assert shown(context) == ["sky"]
        assert fates(context)["sea"] == ("dropped", "budget", "over_budget")

    def test_limit_caps_the_passages(self, retriever):
        """No more than that many."""
        assert shown(retriever.retrieve("blue sky", limit=1)) == ["sky"]

    def test_another_tokenizer_for_one_call(self, retriever):
        """Its name stands in the trace, and the budget holds in its tokens."""
        context = retriever.retrieve("blue sky", tokens="words")
        assert context.trace.tokens == "words"

    def test_threshold_can_be_overridden_by_name_only(self, retriever):
        """Above one half, the sea isn't verified."""
        assert [p.verified for p in retriever.retrieve("blue sky", threshold=0.6).passages] == [True, False]
        with pytest.raises(TypeError):
            retriever.retrieve("blue sky", 0.6)


class TestTies:
    def test_equal_scores_are_ordered_by_id_also_at_the_cut(self):
        """Forty copies of three words: whatever order they came in, the same context."""
        ids = [f"{n:02d}" for n in range(40)]
        texts = ["same old words"] * 40
        orders = [ids, ids[::-1], ids[1::2] + ids[::2]]
        seen = set()
        for order in orders:
            retriever = Retriever.from_texts(texts, ids=order, **parts())
            context = retriever.retrieve("same words", candidates=5, redundancy=1.0, fallback_k=2)
            seen.add(tuple(shown(context)))
        assert seen == {("00", "01", "02", "03", "04")}

    def test_ties_of_the_fallback_are_cut_by_id_too(self):
        """The keyword index has ties as well."""
        order = [f"{n:02d}" for n in range(30)][::-1]
        retriever = Retriever.from_texts(["alpha beta gamma"] * 30, ids=order, **parts())
        context = retriever.retrieve(
            "alpha x y z", candidates=1, threshold=0.9, fallback_k=3, redundancy=1.0, min_verified=9
        )
        assert shown(context) == ["00", "01", "02"]

    @pytest.mark.parametrize("n", [3, 5, 7, 9, 13, 21, 39])
    def test_equal_texts_tie_under_the_default_verifier_too(self, n):
        """Cosines are taken row by row: where a text stands in a batch doesn't change its score."""
        from meve.components.verifiers.cosine import CosineVerifier, shipped_calibration

        class Long(WordEmbedder):
            dimension = 384

            def embed_passages(self, texts):
                seed = np.random.default_rng(0).standard_normal((27, 384))
                return normalize(np.stack([row @ seed for row in WordEmbedder().embed_passages(texts)]))

        ids = [f"{i:02d}" for i in np.random.default_rng(n).permutation(n)]
        embedder = Long()
        verifier = CosineVerifier(embedder, shipped_calibration())
        texts = ["alpha beta gamma delta"] * n
        retriever = Retriever.from_texts(texts, ids=ids, **parts(embedder=embedder, verifier=verifier))
        for mode in ("full", "no_verification"):
            context = retriever.retrieve("alpha beta zeta", candidates=n, redundancy=1.0, threshold=0.0, mode=mode)
            assert shown(context) == sorted(ids)


class TestWork:
    def test_texts_of_like_length_are_embedded_together_and_each_keeps_its_vector(self):
        """A batch is padded to its longest text; 200 texts are three batches and a rest."""
        texts = [f"{'long ' * (n % 50)}text number {n}" for n in range(200)]
        embedder = CountedEmbedder(WordEmbedder())
        vectors = embed_texts(texts, embedder)
        assert (vectors == WordEmbedder().embed_passages(texts)).all()
        lengths = [len(text) for text in embedder.calls.passages]
        assert lengths == sorted(lengths, reverse=True)

    def test_one_query_embedding_and_no_passage_twice(self):
        """Whatever the phases need, the models are asked once for each text."""
        embedder, tokens = CountedEmbedder(WordEmbedder()), CountedTokens(WordCounter())
        texts = [SKY, GRASS, SEA, SKY]
        retriever = Retriever.from_texts(texts, **parts(embedder=embedder, tokens=tokens))
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

    def test_a_verifier_by_embeddings_uses_the_stored_ones(self):
        """The cosine verifier embeds neither query nor passages again."""
        from meve.components.verifiers.cosine import CosineVerifier
        from meve.testing.fakes import IDENTITY

        embedder = CountedEmbedder(WordEmbedder())
        verifier = CosineVerifier(embedder, IDENTITY)
        retriever = Retriever.from_texts([SKY, SEA], **parts(embedder=embedder, verifier=verifier))
        retriever.retrieve("blue sky")
        assert embedder.calls.queries == ["blue sky"]
        assert sorted(embedder.calls.passages) == sorted([SKY, SEA])

    def test_loading_counts_and_embeds_nothing_but_a_probe(self, tmp_path):
        """Stored vectors and counts come back from disk."""
        Retriever.from_texts([SKY, GRASS, SEA], **parts()).save(tmp_path / "index")
        embedder, tokens = CountedEmbedder(WordEmbedder()), CountedTokens(WordCounter())
        Retriever.load(tmp_path / "index", **parts(embedder=embedder, tokens=tokens))
        assert embedder.calls.passages == [SKY]
        assert tokens.calls.passages == []


class TestSources:
    """`Zebra suns` stand nowhere near the question's vector, which has one word of theirs and many of the others."""

    TEXTS = ("blue sky blue sky", "blue sea blue sky", "zebra facts", "blue sky birds", "trees and blue sky")

    def found(self, sources, **overrides):
        retriever = Retriever.from_texts(self.TEXTS, **parts())
        context = retriever.retrieve(
            "blue sky zebra", sources=sources, candidates=1, mode="no_fallback", threshold=0.3, **overrides
        )
        return context.trace

    def test_each_source_brings_its_own_and_both_together_bring_both(self):
        """By vectors the first, by words the rare one; asked for both, as many from each."""
        brought = {s: {c.id for c in self.found(s).candidates} for s in ("dense", "lexical", "hybrid")}
        assert brought == {"dense": {"p0000000"}, "lexical": {"p0000002"}, "hybrid": {"p0000000", "p0000002"}}

    def test_a_question_may_bring_its_vector(self):
        """Then it isn't embedded: candidates come by that vector, verdicts by the words."""
        embedder = CountedEmbedder(WordEmbedder())
        retriever = Retriever.from_texts(self.TEXTS, **parts(embedder=embedder))
        vector = WordEmbedder().embed_query("zebra facts")
        context = retriever.retrieve("blue sky", vector=vector, sources="dense", candidates=1, fallback_k=0)
        assert {c.id: c.scores["verifier"] for c in context.trace.candidates} == {"p0000002": 0.0}
        assert embedder.calls.queries == []
        with pytest.raises(VectorError, match="vectors of the question must have shape"):
            retriever.retrieve("blue sky", vector=vector[:3])

    def test_what_only_words_find_is_verified_like_the_rest(self):
        """It isn't a fallback's find; the trace names the sources, and what brought each."""
        trace = self.found("hybrid")
        assert trace.phases[0].settings["sources"] == ["dense", "lexical"]
        assert {(c.id, c.origin, c.verified) for c in trace.candidates} == {
            ("p0000000", "dense", True),
            ("p0000002", "lexical", True),
        }

    def test_a_filter_holds_for_both(self):
        """What the filter excludes comes from neither."""
        retriever = Retriever.from_texts(
            self.TEXTS, metadatas=[{"lang": "de" if "zebra" in text else "en"} for text in self.TEXTS], **parts()
        )
        context = retriever.retrieve("blue sky zebra", sources="hybrid", where={"lang": "en"}, fallback_floor=0.0)
        assert "p0000002" not in {c.id for c in context.trace.candidates}

    def test_where_words_were_asked_already_the_fallback_asks_nothing(self):
        """It brings back the best of what was turned down, and the trace says from where."""
        retriever = Retriever.from_texts(self.TEXTS, **parts())
        asked = {"candidates": 1, "threshold": 1.0, "fallback_floor": 0.0, "fallback_k": 1}
        both = retriever.retrieve("blue sky zebra", sources="hybrid", **asked)
        assert both.trace.phases[2].settings["source"] == "rejected"
        assert {c.id for c in both.trace.candidates} == {"p0000000", "p0000002"}
        best = max(both.trace.candidates, key=lambda c: c.scores["verifier"])
        assert [p.passage.id for p in both.passages] == [best.id]
        one = retriever.retrieve("blue sky zebra", sources="dense", **asked)
        assert one.trace.phases[2].settings["source"] == "lexical"

    def test_a_function_of_the_metadata_is_a_filter_too(self):
        """Asked anew each time, in every phase; one that raises is named."""
        langs = {"de"}
        retriever = Retriever.from_texts(
            self.TEXTS, metadatas=[{"lang": "de" if "zebra" in text else "en"} for text in self.TEXTS], **parts()
        )
        asked = {"where": lambda metadata: metadata["lang"] in langs, "fallback_floor": 0.0}
        assert {c.id for c in retriever.retrieve("blue sky zebra", **asked).trace.candidates} == {"p0000002"}
        langs.add("en")
        assert len(retriever.retrieve("blue sky zebra", **asked).trace.candidates) == 5
        with pytest.raises(ConfigurationError, match="KeyError: 'nothing'"):
            retriever.retrieve("blue sky", where=lambda metadata: metadata["nothing"])

    def test_one_that_is_none_is_refused(self):
        """With the choices."""
        with pytest.raises(ConfigurationError, match="sources must be one of dense, lexical, hybrid, got 'web'"):
            RetrieverConfig(sources="web")


class TestChanges:
    def test_what_is_added_is_found_by_the_very_next_query(self, retriever):
        """In the dense index and in the keyword index."""
        assert retriever.add([Passage(id="sun", text="Yellow zebra suns.")]) == ["sun"]
        assert shown(retriever.retrieve("zebra suns")) == ["sun"]
        found = retriever.retrieve("zebra suns", mode="full", candidates=1, threshold=1.0, min_verified=5)
        assert "sun" in shown(found)

    def test_what_is_removed_is_gone_from_every_phase(self, retriever):
        """Neither nearest vectors nor words bring it back."""
        retriever.remove(["sky"])
        for mode in ("full", "no_verification", "standard_rag", "no_fallback"):
            context = retriever.retrieve("blue sky", mode=mode, fallback_floor=0.0)
            assert "sky" not in [c.id for c in context.trace.candidates]
        assert "sky" not in retriever
        with pytest.raises(UnknownIdError, match="'sky'"):
            retriever.get("sky")

    def test_replacing_is_one_step(self, retriever):
        """An id that is removed may be added again, with another text."""
        retriever.update(add=[Passage(id="sky", text="Clouds everywhere.")], remove=["sky"])
        assert retriever.get("sky").text == "Clouds everywhere."
        assert len(retriever) == 3
        assert shown(retriever.retrieve("clouds everywhere")) == ["sky"]

    def test_texts_get_ids_that_are_never_used_again(self):
        """Not even after a removal."""
        retriever = Retriever.from_texts([SKY, GRASS], **parts())
        retriever.remove(["p0000001"])
        assert retriever.add([SEA]) == ["p0000002"]

    def test_empty_then_added_to(self):
        """An empty retriever is a beginning."""
        retriever = Retriever.empty(**parts())
        with pytest.raises(EmptyCorpusError, match="add passages"):
            retriever.retrieve("blue sky")
        retriever.add([SKY])
        assert retriever.retrieve("blue sky").sufficient

    def test_auto_chooses_the_dense_index_by_how_many_come_first(self, monkeypatch):
        """Also for a retriever that begins empty, as one does that files are read into."""
        monkeypatch.setattr("meve.components.dense.FLAT_UP_TO", 2)
        retriever = Retriever.empty(**parts())
        retriever.add([SKY, GRASS, SEA])
        assert retriever.info()["dense"] == "hnsw"
        assert Retriever.from_texts([SKY, GRASS], **parts()).info()["dense"] == "flat"

    def test_an_index_of_ones_own_must_be_empty(self):
        """Vectors of somebody else's passages would be found, and be nobody's."""
        from meve.components.dense.flat import FlatIndex

        full = FlatIndex(27)
        full.add(np.array([0]), np.ones((1, 27), dtype=np.float32))
        with pytest.raises(ConfigurationError, match="empty one"):
            Retriever.empty(**parts(dense=full))

    def test_parts_that_are_given_are_the_ones_in_use(self):
        """Also empty ones, which are false in a condition, and whatever the configuration names."""
        pytest.importorskip("rank_bm25")
        from meve.components.dense.flat import FlatIndex
        from meve.components.lexical.bm25 import Bm25Index
        from meve.components.lexical.rank_bm25 import RankBm25Index

        dense, lexical, given = FlatIndex(27), RankBm25Index(), parts()
        config = RetrieverConfig(tokens="gpt2", lexical="bm25")
        retriever = Retriever.from_texts([SKY], dense=dense, lexical=lexical, config=config, **given)
        assert retriever._corpus.dense is dense
        assert retriever._corpus.primary_lexical is lexical
        assert (retriever.embedder, retriever.verifier, retriever.tokens) == tuple(given.values())
        context = retriever.retrieve("blue cheese recipe")
        assert context.trace.tokens == "words"
        assert retriever.info()["lexical"] == ["rank_bm25"]
        assert Retriever.empty(lexical=Bm25Index(k1=9), **parts())._corpus.primary_lexical._k1 == 9

    def test_threads_that_add_texts_at_once_all_succeed(self):
        """Each text gets an id of its own, also one that isn't taken by a name of the user's."""
        retriever = Retriever.from_texts(["one"], ids=["p0000001"], **parts())
        with ThreadPoolExecutor(8) as pool:
            ids = [
                i for added in pool.map(lambda n: retriever.add([f"text {n}", f"more {n}"]), range(40)) for i in added
            ]
        assert len(set(ids)) == 80
        assert len(retriever) == 81

    def test_a_calibration_and_its_threshold_come_into_force_together(self):
        """A retrieval that waits for a calibration uses both of it, or neither."""
        retriever = Retriever.from_texts([SKY, GRASS], **parts())
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

    def test_the_trace_names_the_verifier_and_its_calibration(self):
        """One that was fitted anew is told from the one before; an isotonic one's points are left out."""
        retriever = Retriever.from_texts([SKY, GRASS], **parts())
        told = retriever.retrieve("blue sky").trace.phases[1].settings
        assert told["verifier"] == "word-overlap"
        assert told["calibration"] == account(OverlapVerifier().calibration.to_dict())
        points = {"raw": (0.0, 1.0), "probability": (0.1, 0.9)}
        fitted = IsotonicCalibration(**points, fitted_on="mine", pairs=7, error=0.01)
        retriever.engine = replace(retriever.engine, verifier=OverlapVerifier(fitted))
        trace = retriever.retrieve("blue sky").trace
        expected = {"method": "isotonic", "fitted_on": "mine", "pairs": 7, "error": 0.01}
        assert trace.phases[1].settings["calibration"] == expected
        assert json.loads(json.dumps(trace.to_dict()))["phases"][1]["settings"]["calibration"] == expected

    def test_progress_is_told(self):
        """Done and total, in passages, to the end."""
        told = []
        Retriever.from_texts(["a text"] * 300, **parts(), progress=lambda done, total: told.append((done, total)))
        assert told == [(64, 300), (128, 300), (192, 300), (256, 300), (300, 300)]


class TestFilters:
    @pytest.fixture
    def filtered(self):
        return Retriever.from_texts(
            [SKY, GRASS, SEA],
            ids=["sky", "grass", "sea"],
            metadatas=[{"lang": "en", "year": 2020}, {"lang": "de"}, {"lang": "fr", "tags": ["water", "blue"]}],
            **parts(),
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
    def test_only_what_matches_can_come_back_from_any_phase(self, filtered, where, expected):
        """A filter holds for vectors and for words."""
        for mode in ("full", "standard_rag", "no_verification"):
            context = filtered.retrieve("blue grass sky water", where=where, mode=mode, fallback_floor=0.0)
            assert {c.id for c in context.trace.candidates} <= expected
            if mode != "full":
                assert set(shown(context)) == expected

    def test_a_filter_sees_what_was_added_since(self, filtered):
        """Nothing remembered outlives a change."""
        filtered.retrieve("blue sky", where={"lang": "en"})
        filtered.add([Passage(id="new", text=SKY + " Indeed.", metadata={"lang": "en"})])
        context = filtered.retrieve("blue sky indeed", where={"lang": "en"}, redundancy=1.0)
        assert set(shown(context)) == {"new", "sky"}

    def test_kinds_of_values_are_told_apart(self):
        """1 is no True, and "1" is neither; 1 and 1.0 are one."""
        values = [1, True, "1", 1.0, None, "null"]
        retriever = Retriever.from_texts(
            ["blue sky"] * 6, ids=list("abcdef"), metadatas=[{"v": v} for v in values], **parts()
        )

        def found(value):
            return set(shown(retriever.retrieve("blue sky", where={"v": value}, redundancy=1.0)))

        assert [found(v) for v in (1, True, "1", None, "null")] == [{"a", "d"}, {"b"}, {"c"}, {"e"}, {"f"}]

    @pytest.mark.parametrize(
        "where",
        [{"lang": {"a": 1}}, "lang", {"lang": object()}, ["lang"], [], "", 0, {1: "en"}, np.array(["en"]), {"a": b"x"}],
    )
    def test_a_filter_of_another_shape_is_refused(self, filtered, where):
        """Never ignored: an ignored filter would leak."""
        with pytest.raises(ConfigurationError, match="filter"):
            filtered.retrieve("blue sky", where=where)
        with pytest.raises(ConfigurationError, match="filter"):
            filtered.retrieve("blue sky", where=where, mode="no_rag")


class TestBadInput:
    @pytest.mark.parametrize("query", ["", "   ", "\n\t", None, 7, b"blue", ["blue"]])
    def test_a_query_must_be_text_with_something_in_it(self, retriever, query):
        """Blank or not text."""
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
        ],
    )
    def test_values_out_of_range_are_named(self, retriever, options):
        """The message says which, and what would do."""
        name = next(iter(options))
        with pytest.raises(ConfigurationError, match=name):
            retriever.retrieve("blue sky", **options)
        with pytest.raises(ConfigurationError, match=name):
            RetrieverConfig(**options)

    def test_unknown_options_are_refused_with_a_guess(self, retriever):
        """Never ignored."""
        with pytest.raises(ConfigurationError, match="'thresold': did you mean 'threshold'"):
            retriever.retrieve("blue sky", thresold=0.3)
        with pytest.raises(ConfigurationError, match="known: candidates"):
            retriever.retrieve("blue sky", zzz=1)

    def test_no_passages(self):
        """There is another way to begin empty."""
        with pytest.raises(EmptyCorpusError, match=r"Retriever\.empty"):
            Retriever.from_texts([], **parts())

    def test_duplicate_ids_change_nothing(self, retriever):
        """Given twice, or taken."""
        with pytest.raises(DuplicateIdError, match="'x'"):
            retriever.add([Passage(id="x", text="one"), Passage(id="x", text="two")])
        with pytest.raises(DuplicateIdError, match="'sky'"):
            retriever.add([Passage(id="y", text="one"), Passage(id="sky", text="two")])
        assert len(retriever) == 3
        assert "y" not in retriever

    def test_removing_what_is_not_there_changes_nothing(self, retriever):
        """The known one stays too."""
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
    def test_passages_that_could_not_be_saved_or_found_are_refused(self, retriever, passage):
        """Nothing is taken in."""
        with pytest.raises(PassageError):
            retriever.add([Passage(id="fine", text="fine"), passage])
        assert len(retriever) == 3

    def test_lists_of_other_lengths(self):
        """As many ids as texts."""
        with pytest.raises(ValidationError, match="ids must have as many items as texts, got 1 ids for 2 texts"):
            Retriever.from_texts([SKY, SEA], ids=["one"], **parts())
        with pytest.raises(ValidationError, match="list of texts"):
            Retriever.from_texts(SKY, **parts())
        assert len(Retriever.from_texts([SKY, SEA], metadatas=[None, {"n": 1}], **parts())) == 2

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
            lambda r: Retriever.from_texts([SKY], config={}, **parts()),
        ],
    )
    def test_the_wrong_type_is_named_and_changes_nothing(self, retriever, call, tmp_path, monkeypatch):
        """Everything that goes wrong is a MeveError."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(MeveError):
            call(retriever)
        assert len(retriever) == 3
        assert list(tmp_path.iterdir()) == []

    def test_numbers_of_numpy_are_numbers(self, retriever):
        """As they come out of a sweep."""
        context = retriever.retrieve("blue sky", limit=np.int64(1), threshold=np.float32(0.25))
        assert json.dumps(context.to_dict())

    @pytest.mark.parametrize("bad", [np.full((1, 27), np.nan), np.ones((1, 5)), np.ones((2, 27)), np.ones(27)])
    def test_an_embedder_that_returns_nonsense_changes_nothing(self, retriever, bad):
        """NaN, another dimension, another number of vectors."""

        class Broken(WordEmbedder):
            def embed_passages(self, texts):
                return bad.astype(np.float32)

        retriever.engine = replace(retriever.engine, embedder=Broken())
        with pytest.raises((VectorError, ModelError)):
            retriever.add([Passage(id="new", text="new text")])
        assert "new" not in retriever
        assert len(retriever) == 3
        retriever.engine = replace(retriever.engine, embedder=WordEmbedder())
        assert retriever.retrieve("blue sky").sufficient

    def test_a_query_vector_that_is_nonsense_is_an_error(self, retriever):
        """A dead model must not look like no result."""

        class Broken(WordEmbedder):
            def embed_query(self, text):
                return np.full(27, np.nan, dtype=np.float32)

        retriever.engine = replace(retriever.engine, embedder=Broken())
        with pytest.raises((VectorError, ModelError)):
            retriever.retrieve("blue sky")

    def test_a_verifier_that_fails_or_leaves_its_scale_is_an_error(self, retriever):
        """Never an empty context, never a wrong threshold."""

        class Raising(OverlapVerifier):
            def score(self, query, passages):
                raise RuntimeError("out of memory")

        class Silent(OverlapVerifier):
            def score(self, query, passages):
                return None

        class Logits(OverlapVerifier):
            def score(self, query, passages):
                return np.full(len(passages), 8.6, dtype=np.float32)

        retriever.engine = replace(retriever.engine, verifier=Raising())
        with pytest.raises(ModelError, match=r"word-overlap.*out of memory"):
            retriever.retrieve("blue sky")
        retriever.engine = replace(retriever.engine, verifier=Silent())
        with pytest.raises(ModelError):
            retriever.retrieve("blue sky")
        retriever.engine = replace(retriever.engine, verifier=Logits())
        with pytest.raises(ModelError, match="calibration"):
            retriever.retrieve("blue sky")

    def test_changing_the_corpus_from_inside_a_retrieval_is_refused(self, retriever):
        """Rather than wait for itself for ever."""

        class Meddling(OverlapVerifier):
            def score(self, query, passages):
                retriever.remove(["sky"])
                return super().score(query, passages)

        retriever.engine = replace(retriever.engine, verifier=Meddling())
        with pytest.raises(Exception, match="inside a retrieval"):
            retriever.retrieve("blue sky")
