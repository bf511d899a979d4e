"""Test verified retrieval from an external store: filters, removals and a stale keyword index."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError, QueryError, RetrievalError, StaleWarning
from meve.pipeline.engine import Engine
from meve.retrieval._keyword_index import KeywordIndex
from meve.retrieval.external_store import StoreRetriever
from meve.testing.external_store_contract import AttachedStore, StoreContract
from meve.testing.fakes import CountingEmbedder, WordEmbedder
from tests.fake_components import make_components


class FakeStore:
    """A store in a dict; its vectors are the number of shared initials."""

    name = "the shelf"

    def canonical_id(self, passage_id):
        return passage_id

    def __init__(self, passages=(), *, counts=True):
        self.passages_by_id = {p.id: p for p in passages}
        self.counts = counts

    def nearest(self, query, k, where):
        initials = {word[0] for word in query.lower().split()}
        scored = [
            (p, float(len(initials & {word[0] for word in p.content.lower().split()})))
            for p in self._stored(self.passages_by_id, where)
        ]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0].id))[:k]

    def fetch(self, ids, where):
        return self._stored(ids, where)

    def _stored(self, ids, where):
        stored = [self.passages_by_id[i] for i in ids if i in self.passages_by_id]
        return [p for p in stored if where is None or where(p.metadata)]

    def list_passages(self):
        return self.passages_by_id.values()

    def size(self):
        return len(self.passages_by_id) if self.counts else None


class TestFakeStore(StoreContract):
    @pytest.fixture
    def attach(self):
        def attached():
            shelf = FakeStore()
            return AttachedStore(
                store=shelf,
                put=lambda passages: shelf.passages_by_id.update({p.id: p for p in passages}),
                drop=lambda ids: [shelf.passages_by_id.pop(i) for i in ids],
                english=lambda metadata: metadata["lang"] == "en",
            )

        return attached


def passage(name, text, **metadata):
    return Passage(id=name, text=text, metadata=metadata)


TEXTS = [
    passage("sky", "The sky is blue.", lang="en"),
    passage("sea", "The sea is blue too.", lang="en"),
    passage("zebra", "Zebra facts for you.", lang="de"),
]


def make_retriever(store, *, read=True, **components):
    return StoreRetriever.from_store(store, words=read, **make_components(**components))


def test_from_store_indexes_listed_or_given_passages():
    for options, known in (({}, TEXTS), ({"passages": TEXTS[2:]}, TEXTS[2:]), ({"words": False}, [])):
        retriever = StoreRetriever.from_store(FakeStore(TEXTS, counts=False), **options, **make_components())
        if known:
            context = retriever.retrieve("zebra sky sea", sources="lexical", threshold=0.0, fallback_floor=0.0)
            assert candidates(context) == {each.id for each in known}
        else:
            with pytest.raises(ConfigurationError, match="needs a keyword index"):
                retriever.retrieve("zebra", sources="lexical")


def candidates(context):
    return {c.id for c in context.trace.candidates}


def test_candidates_come_from_store_and_keyword_index():
    context = make_retriever(FakeStore(TEXTS)).retrieve("blue zebra", candidates=1, fallback_k=0)
    origins = {c.id: c.origin for c in context.trace.candidates}
    assert origins == {"sea": "dense", "zebra": "lexical"}
    assert all("verifier" in c.scores for c in context.trace.candidates)


def test_filtered_passage_comes_from_no_source():
    context = make_retriever(FakeStore(TEXTS)).retrieve(
        "zebra facts", where=lambda m: m["lang"] == "en", fallback_floor=0.0
    )
    assert candidates(context) == {"sky", "sea"}


def test_keyword_search_grows_past_filtered_hits():
    others = [passage(f"o{n:02}", "zebra zebra zebra", lang="de") for n in range(30)]
    store = FakeStore([*others, passage("mine", "a zebra among many other animals", lang="en")])
    context = make_retriever(store).retrieve(
        "zebra", where=lambda m: m["lang"] == "en", candidates=2, sources="lexical"
    )
    assert candidates(context) == {"mine"}


def test_passage_deleted_from_the_store_is_never_returned_and_index_is_stale():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    del store.passages_by_id["zebra"]
    with pytest.warns(StaleWarning, match=r"the shelf.*refresh\(\)"):
        context = retriever.retrieve("zebra facts", fallback_floor=0.0)
    assert "zebra" not in candidates(context)
    assert retriever.refresh() == 2
    assert not retriever.is_stale


@pytest.mark.parametrize("counts", [True, False])
def test_passage_added_by_others_is_found_by_vectors_and_index_is_stale(counts):
    store = FakeStore(TEXTS, counts=counts)
    retriever = make_retriever(store)
    assert not retriever.is_stale
    store.passages_by_id["ztest"] = passage("ztest", "Zanzibar zoos", lang="en")
    with pytest.warns(StaleWarning) if counts else nullcontext():
        context = retriever.retrieve("zanzibar zoos")
    assert "ztest" in candidates(context)
    assert (context.trace.phases[0].settings.get("words") == "stale") is counts
    assert retriever.is_stale
    retriever.refresh()
    assert not retriever.is_stale
    assert "ztest" in candidates(retriever.retrieve("zanzibar", sources="lexical"))


def test_replaced_passage_is_returned_with_its_new_content():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    store.passages_by_id["zebra"] = passage("zebra", "Zebra facts, new edition.", lang="en")
    context = retriever.retrieve("zebra facts", sources="lexical")
    assert context.passages[0].passage.text == "Zebra facts, new edition."


def test_stale_warning_comes_once_until_refresh():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    for n in range(2):
        store.passages_by_id[f"new{n}"] = passage(f"new{n}", "something new")
        with pytest.warns(StaleWarning, match=f"the {3 + n} in the keyword index") as caught:
            settings = [retriever.retrieve("blue").trace.phases[0].settings["words"] for _ in range(3)]
        assert (len(caught), settings) == (1, ["stale"] * 3)
        retriever.refresh()
        assert "words" not in retriever.retrieve("blue").trace.phases[0].settings


def test_replaced_text_makes_the_index_stale_once_found():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    store.passages_by_id["zebra"] = passage("zebra", "Zoos have zebra facts.", lang="de")
    assert not retriever.is_stale
    retriever.retrieve("zebra facts zoos")
    assert retriever.is_stale


def test_changes_during_a_refresh_are_kept():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    whole = store.list_passages

    def list_passages():
        listed = list(whole())
        del store.passages_by_id["sky"]
        retriever.unindex(["sky"])
        store.passages_by_id["yak"] = passage("yak", "yaks yawn")
        retriever.index([store.passages_by_id["yak"]])
        return listed

    store.list_passages = list_passages
    assert retriever.refresh() == 3
    assert not retriever.is_stale
    assert "yak" in candidates(retriever.retrieve("yawn", sources="lexical"))


def test_queries_use_the_old_index_during_a_refresh():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)
    begun, go_on = threading.Event(), threading.Event()
    whole = store.list_passages

    def list_passages():
        begun.set()
        assert go_on.wait(30)
        return whole()

    store.list_passages = list_passages
    reading = threading.Thread(target=retriever.refresh)
    reading.start()
    assert begun.wait(30)
    assert "zebra" in candidates(retriever.retrieve("zebra", sources="lexical"))
    go_on.set()
    reading.join()


def test_passage_without_text_is_known_and_never_returned():
    store = FakeStore([*TEXTS, passage("blank", "  ")])
    retriever = make_retriever(store)
    assert not retriever.is_stale
    assert "blank" not in candidates(retriever.retrieve("blue", threshold=0.0, fallback_floor=0.0))


def test_index_and_unindex_keep_the_index_fresh():
    store = FakeStore()
    retriever = make_retriever(store)
    store.passages_by_id = {p.id: p for p in TEXTS}
    retriever.index(TEXTS)
    assert not retriever.is_stale
    assert "zebra" in candidates(retriever.retrieve("zebra", sources="lexical"))
    del store.passages_by_id["zebra"]
    retriever.unindex(["zebra", "never there"])
    assert not retriever.is_stale
    assert candidates(retriever.retrieve("zebra", sources="lexical")) == set()


def test_without_a_keyword_index_only_vectors_are_searched():
    retriever = make_retriever(FakeStore(TEXTS), read=False)
    context = retriever.retrieve("quite something else", candidates=1)
    assert context.trace.phases[0].settings["sources"] == ["dense"]
    assert context.trace.phases[2].settings["source"] == "dense"
    assert not retriever.is_stale
    with pytest.raises(ConfigurationError, match=r"needs a keyword index of the shelf: call refresh"):
        retriever.retrieve("zebra", sources="lexical")


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("nearest", "searching the shelf"),
        ("list_passages", "reading all of the shelf"),
        ("fetch", "reading from the shelf"),
        ("size", "counting what the shelf holds"),
    ],
)
def test_failing_store_is_named_in_the_error(method, action, monkeypatch):
    def fail(*arguments):
        raise OSError("gone")

    monkeypatch.setattr(FakeStore, method, fail)
    with pytest.raises(RetrievalError, match=f"{action} failed: OSError: gone"):
        make_retriever(FakeStore(TEXTS)).retrieve("blue")


def test_known_passages_are_embedded_once():
    store = FakeStore(TEXTS)
    counted = CountingEmbedder(WordEmbedder())
    retriever = make_retriever(store, embedder=counted)
    for question in ("blue sky", "zebra facts", "blue sky"):
        retriever.retrieve(question, mode="no_verification")
    assert sorted(counted.calls.passages) == sorted(p.content for p in TEXTS)
    store.passages_by_id["zebra"] = passage("zebra", "Zoos have zebras.")
    retriever.retrieve("zebra facts", mode="no_verification")
    assert counted.calls.passages[3:] == ["Zoos have zebras."]


@pytest.mark.parametrize("hops", [1, 2])
def test_only_accepted_passages_are_embedded(hops):
    counted = CountingEmbedder(WordEmbedder())
    retriever = make_retriever(FakeStore(TEXTS), embedder=counted)
    context = retriever.retrieve("the sky is blue", hops=hops, fallback_k=0)
    assert candidates(context) == {"sky", "sea", "zebra"}
    assert sorted(counted.calls.passages) == ["The sea is blue too.", "The sky is blue."]
    every = CountingEmbedder(WordEmbedder())
    Engine(**make_components(embedder=every)).select("the sky is blue", TEXTS, exact=False)
    assert len(every.calls.passages) == 3


def test_rank_bm25_over_a_store_raises_error():
    with pytest.raises(ConfigurationError, match="rank_bm25"):
        make_retriever(FakeStore(TEXTS)).retrieve("blue", lexical="rank_bm25")


def test_concurrent_changes_and_queries_stay_consistent():
    store = FakeStore(TEXTS)
    retriever = make_retriever(store)

    def work(n):
        mine = passage(f"t{n:02}", f"thread number {n}")
        with retriever.updating():
            store.passages_by_id[mine.id] = mine
            retriever.index([mine])
        retriever.retrieve(f"thread {n}", sources="lexical")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(work, range(20)))
    context = retriever.retrieve("thread number", sources="lexical", candidates=50)
    assert candidates(context) == {f"t{n:02}" for n in range(20)}


class TestSelect:
    engine = Engine(**make_components())

    def test_select_verifies_orders_and_packs(self):
        context = self.engine.select("blue sky", TEXTS, threshold=0.5)
        assert [p.passage.id for p in context.passages if p.verified] == ["sky", "sea"]
        assert [phase.name for phase in context.trace.phases] == [
            "retrieve", "verify", "fallback", "prioritize", "budget"
        ]  # fmt: skip
        assert context.trace.phases[0].returned == 3

    def test_select_considers_more_passages_than_the_candidate_limit(self):
        many = [passage(f"p{n:03}", "grass") for n in range(60)] + [passage("last", "blue sky")]
        assert self.engine.select("blue sky", many).passages[0].passage.id == "last"

    def test_select_keeps_the_first_of_equal_ids(self):
        twice = [passage("a", "blue sky"), passage("a", "grass")]
        assert self.engine.select("blue sky", twice).text == "blue sky"

    def test_select_keeps_the_given_order_of_equal_scores(self):
        given = [passage(name, "blue sky") for name in "dacbe"]
        context = self.engine.select("blue sky", given, limit=3, redundancy=1.0)
        assert [p.passage.id for p in context.passages] == ["d", "a", "c"]

    def test_select_of_nothing_is_empty(self):
        context = self.engine.select("blue sky", [])
        assert (context.text, context.sufficient) == ("", False)

    def test_select_with_invalid_input_raises_error(self):
        with pytest.raises(QueryError):
            self.engine.select(" ", TEXTS)
        with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
            self.engine.select("blue", TEXTS, thresold=0.5)


def test_verdicts_from_keywords_are_those_of_an_index():
    texts = ["Tomatoes need water in the morning.", "The tower is 330 metres tall."]
    own = Retriever.from_texts([*texts, *(f"Bread number {n} needs water." for n in range(6))], embedder="minilm")
    other = StoreRetriever.from_store(FakeStore(own.passages()), embedder="minilm")
    question = "When do tomatoes need water?"
    for sources in ("lexical", "hybrid"):
        verdicts, others = (
            {c.id: c.scores["verifier"] for c in each.retrieve(question, sources=sources, exact=True).trace.candidates}
            for each in (own, other)
        )
        assert others == pytest.approx(verdicts), sources


def test_index_scores_known_passages_and_leaves_out_others():
    index = KeywordIndex()
    index.add([*TEXTS, passage("gone", "The sky is grey.")])
    index.remove(["gone"])
    scores = index.score_ids("sky", ["sky", "zebra", "gone", "unheard"])
    assert scores == {"sky": index.search("sky", 1)[0][1], "zebra": 0.0}
    assert scores["sky"] > 0


def test_passage_unknown_to_a_stale_index_is_read_whatever_the_prior_expects():
    """Its keyword score is unknown, which is no sign against it."""
    store = FakeStore([Passage(id=str(n), text=f"Bread number {n} needs water.") for n in range(12)])
    retriever = StoreRetriever.from_store(store, embedder="minilm")
    store.passages_by_id = {"new": passage("new", "Tomatoes want water in the morning."), **store.passages_by_id}
    with pytest.warns(StaleWarning):
        trace = retriever.retrieve("When do tomatoes need water?").trace
    (new,) = [c for c in trace.candidates if c.id == "new"]
    assert ("logit" in new.scores, "keywords" in new.scores, new.verified) == (True, False, True)


def test_evidence_over_a_store_is_minilm_s_by_default():
    trace = StoreRetriever.from_store(FakeStore(TEXTS)).retrieve("blue sky").trace
    assert (trace.embedder, trace.phases[1].settings["evidence"]) == ("meve-minilm-1", "meve-evidence-1")


def test_only_usable_vectors_of_a_store_are_used():
    class Reading(FakeStore):
        def read_vectors(self, ids, embedder):
            assert embedder == WordEmbedder().name
            good = WordEmbedder().embed_passages(["The sky is blue."])[0]
            return {i: good if i == "sky" else [float("nan")] * len(good) for i in ids if i != "zebra"} | {"sea": [1.0]}

    embedder = CountingEmbedder(WordEmbedder())
    retriever = make_retriever(Reading(TEXTS), embedder=embedder)
    retriever.retrieve("blue zebra")
    assert sorted(embedder.calls.passages) == ["The sea is blue too.", "Zebra facts for you."]


def test_prior_gets_the_vectors_of_a_store_s_passages_by_default():
    seen = []

    class Watcher:
        name, least = "watcher", 0.5

        def chances(self, query, candidates):
            seen.extend(c.vector is not None for c in candidates)
            return np.ones(len(candidates))

    retriever = make_retriever(FakeStore(TEXTS))
    retriever.engine = replace(retriever.engine, prior=Watcher())
    retriever.retrieve("blue zebra")
    assert seen
    assert all(seen)


def test_misspelt_words_are_corrected_by_the_keyword_index_without_a_filter():
    retriever = make_retriever(FakeStore(TEXTS))
    assert retriever.retrieve("zebbra facts").corrections == {"zebbra": "zebra"}
    filtered = retriever.retrieve("zebbra facts", where=lambda metadata: metadata["lang"] == "en")
    assert filtered.corrections == {}
    assert make_retriever(FakeStore(TEXTS), read=False).retrieve("zebbra facts").corrections == {}
