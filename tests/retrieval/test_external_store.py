"""Verified retrieval from a store that others keep: its filters, its removals, and words that lag behind."""

import threading
from contextlib import nullcontext

import pytest

from meve import Passage
from meve.errors import ConfigurationError, QueryError, RetrievalError, StaleWarning
from meve.pipeline.engine import Engine
from meve.retrieval.external_store import StoreRetriever
from meve.testing.fakes import CountedEmbedder, OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.store_contract import Attached, StoreContract


class Shelf:
    """A store in a dict; its vectors are the number of shared initials."""

    name = "the shelf"

    def canonical_id(self, passage_id):
        return passage_id

    def __init__(self, passages=(), *, counts=True):
        self.held = {p.id: p for p in passages}
        self.counts = counts
        self.asked = []

    def _admits(self, passage, where):
        return where is None or where(passage.metadata)

    def nearest(self, query, k, where):
        self.asked.append((query, k))
        initials = {word[0] for word in query.lower().split()}
        scored = [
            (p, float(len(initials & {word[0] for word in p.content.lower().split()})))
            for p in self.held.values()
            if self._admits(p, where)
        ]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0].id))[:k]

    def fetch(self, ids, where):
        return [self.held[i] for i in ids if i in self.held and self._admits(self.held[i], where)]

    def list_passages(self):
        return self.held.values()

    def size(self):
        return len(self.held) if self.counts else None


class TestShelf(StoreContract):
    """The tests below rest on it."""

    @pytest.fixture
    def attach(self):
        def attached():
            shelf = Shelf()
            return Attached(
                store=shelf,
                put=lambda passages: shelf.held.update({p.id: p for p in passages}),
                drop=lambda ids: [shelf.held.pop(i) for i in ids],
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


def over(store, *, read=True):
    engine = Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    made = StoreRetriever(store, engine)
    if read:
        made.refresh()
    return made


def test_it_is_made_of_a_store_and_the_names_of_parts():
    """Its words are read there, or given, or left unread."""
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    for options, known in (({}, TEXTS), ({"passages": TEXTS[2:]}, TEXTS[2:]), ({"words": False}, [])):
        made = StoreRetriever.from_store(Shelf(TEXTS, counts=False), **options, **parts)
        if known:
            context = made.retrieve("zebra sky sea", sources="lexical", threshold=0.0, fallback_floor=0.0)
            assert candidates(context) == {each.id for each in known}
        else:
            with pytest.raises(ConfigurationError, match="needs a keyword index"):
                made.retrieve("zebra", sources="lexical")


def candidates(context):
    return {c.id for c in context.trace.candidates}


def test_candidates_come_from_the_store_and_from_its_words():
    """The store brings what is near, the words the rare one; both are judged."""
    context = over(Shelf(TEXTS)).retrieve("blue zebra", candidates=1, fallback_k=0)
    origins = {c.id: c.origin for c in context.trace.candidates}
    assert origins == {"sea": "dense", "zebra": "lexical"}
    assert all("verifier" in c.scores for c in context.trace.candidates)


def test_what_the_filter_excludes_comes_from_neither():
    """Also where the words would bring it first, and with every floor lifted."""
    context = over(Shelf(TEXTS)).retrieve("zebra facts", where=lambda m: m["lang"] == "en", fallback_floor=0.0)
    assert candidates(context) == {"sky", "sea"}


def test_a_filter_leaves_as_many_as_were_asked_for():
    """The words reach on past those that it excludes."""
    others = [passage(f"o{n:02}", "zebra zebra zebra", lang="de") for n in range(30)]
    store = Shelf([*others, passage("mine", "a zebra among many other animals", lang="en")])
    context = over(store).retrieve("zebra", where=lambda m: m["lang"] == "en", candidates=2, sources="lexical")
    assert candidates(context) == {"mine"}


def test_what_the_store_let_go_is_gone_from_every_phase():
    """Although its words are still indexed; and that they are is told."""
    store = Shelf(TEXTS)
    retriever = over(store)
    del store.held["zebra"]
    with pytest.warns(StaleWarning, match=r"the shelf.*refresh\(\)"):
        context = retriever.retrieve("zebra facts", fallback_floor=0.0)
    assert "zebra" not in candidates(context)
    assert retriever.refresh() == 2
    assert not retriever.is_stale


@pytest.mark.parametrize("counts", [True, False])
def test_what_others_added_is_found_by_vectors_and_its_words_are_missed(counts):
    """A store that can't count gives itself away by what it finds."""
    store = Shelf(TEXTS, counts=counts)
    retriever = over(store)
    assert not retriever.is_stale
    store.held["ztest"] = passage("ztest", "Zanzibar zoos", lang="en")
    with pytest.warns(StaleWarning) if counts else nullcontext():
        context = retriever.retrieve("zanzibar zoos")
    assert "ztest" in candidates(context)
    assert (context.trace.phases[0].settings.get("words") == "stale") is counts
    assert retriever.is_stale
    retriever.refresh()
    assert not retriever.is_stale
    assert "ztest" in candidates(retriever.retrieve("zanzibar", sources="lexical"))


def test_what_is_replaced_is_shown_as_it_is_now():
    """The store's own text and metadata, not those that were indexed."""
    store = Shelf(TEXTS)
    retriever = over(store)
    store.held["zebra"] = passage("zebra", "Zebra facts, new edition.", lang="en")
    context = retriever.retrieve("zebra facts", sources="lexical")
    assert context.passages[0].passage.text == "Zebra facts, new edition."


def test_it_is_said_once_until_the_words_have_caught_up():
    """The trace says it every time."""
    store = Shelf(TEXTS)
    retriever = over(store)
    for n in range(2):
        store.held[f"new{n}"] = passage(f"new{n}", "something new")
        with pytest.warns(StaleWarning, match=f"the {3 + n} whose words") as caught:
            told = [retriever.retrieve("blue").trace.phases[0].settings["words"] for _ in range(3)]
        assert (len(caught), told) == (1, ["stale"] * 3)
        retriever.refresh()
        assert "words" not in retriever.retrieve("blue").trace.phases[0].settings


def test_a_text_that_was_replaced_shows_when_it_is_found():
    """Its old words are indexed still."""
    store = Shelf(TEXTS)
    retriever = over(store)
    store.held["zebra"] = passage("zebra", "Zoos have zebra facts.", lang="de")
    assert not retriever.is_stale
    retriever.retrieve("zebra facts zoos")
    assert retriever.is_stale


def test_what_changes_during_a_refresh_is_not_lost():
    """Also a change that the reading of the store came too early for."""
    store = Shelf(TEXTS)
    retriever = over(store)
    whole = store.list_passages

    def list_passages():
        listed = list(whole())
        del store.held["sky"]
        retriever.unindex(["sky"])
        store.held["yak"] = passage("yak", "yaks yawn")
        retriever.index([store.held["yak"]])
        return listed

    store.list_passages = list_passages
    assert retriever.refresh() == 3
    assert not retriever.is_stale
    assert "yak" in candidates(retriever.retrieve("yawn", sources="lexical"))


def test_queries_go_on_while_the_store_is_read_anew():
    """Over what was indexed before, without a warning."""
    store = Shelf(TEXTS)
    retriever = over(store)
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


def test_a_passage_without_text_is_counted_and_never_returned():
    store = Shelf([*TEXTS, passage("blank", "  ")])
    retriever = over(store)
    assert not retriever.is_stale
    assert "blank" not in candidates(retriever.retrieve("blue", threshold=0.0, fallback_floor=0.0))


def test_changes_that_are_told_keep_both_sides_in_step():
    """`index` and `forget`, for whoever writes to both."""
    store = Shelf()
    retriever = over(store)
    store.held = {p.id: p for p in TEXTS}
    retriever.index(TEXTS)
    assert not retriever.is_stale
    assert "zebra" in candidates(retriever.retrieve("zebra", sources="lexical"))
    del store.held["zebra"]
    retriever.unindex(["zebra", "never there"])
    assert not retriever.is_stale
    assert candidates(retriever.retrieve("zebra", sources="lexical")) == set()


def test_a_store_whose_words_are_not_indexed_is_asked_by_vectors_alone():
    """The trace says that there is no fallback; to ask words alone is an error."""
    retriever = over(Shelf(TEXTS), read=False)
    context = retriever.retrieve("quite something else", candidates=1)
    assert {c.origin for c in context.trace.candidates} == {"dense"}
    assert context.trace.phases[2].skipped == "no fallback source"
    assert not retriever.is_stale
    with pytest.raises(ConfigurationError, match=r"needs a keyword index of the shelf: call refresh"):
        retriever.retrieve("zebra", sources="lexical")


def test_a_store_that_fails_is_named():
    """Its own error is the cause."""

    class Broken(Shelf):
        def nearest(self, query, k, where):
            raise OSError("gone")

        def list_passages(self):
            raise OSError("gone too")

    class Forgetful(Shelf):
        def fetch(self, ids, where):
            raise OSError("gone by id")

    class Uncountable(Shelf):
        def size(self):
            raise OSError("gone to count")

    with pytest.raises(RetrievalError, match=r"searching the shelf failed: OSError: gone"):
        over(Broken(TEXTS), read=False).retrieve("blue")
    with pytest.raises(RetrievalError, match=r"reading all of the shelf failed: OSError: gone too"):
        over(Broken(TEXTS))
    with pytest.raises(RetrievalError, match=r"reading from the shelf failed: OSError: gone by id"):
        over(Forgetful(TEXTS)).retrieve("blue")
    with pytest.raises(RetrievalError, match=r"counting what the shelf holds failed: OSError: gone to count"):
        over(Uncountable(TEXTS)).retrieve("blue")


def test_what_was_found_before_is_not_embedded_again():
    """However many questions bring it; what the store replaced is."""
    store = Shelf(TEXTS)
    counted = CountedEmbedder(WordEmbedder())
    retriever = StoreRetriever(store, Engine(embedder=counted, verifier=OverlapVerifier(), tokens=WordCounter()))
    retriever.refresh()
    for question in ("blue sky", "zebra facts", "blue sky"):
        retriever.retrieve(question, mode="no_verification")
    assert sorted(counted.calls.passages) == sorted(p.content for p in TEXTS)
    store.held["zebra"] = passage("zebra", "Zoos have zebras.")
    retriever.retrieve("zebra facts", mode="no_verification")
    assert counted.calls.passages[3:] == ["Zoos have zebras."]


@pytest.mark.parametrize("hops", [1, 2])
def test_only_what_may_stand_in_the_context_is_embedded(hops):
    """Vectors tell which of those repeat another; a verifier that reads texts needs none for the rest."""
    counted = CountedEmbedder(WordEmbedder())
    engine = Engine(embedder=counted, verifier=OverlapVerifier(), tokens=WordCounter())
    retriever = StoreRetriever(Shelf(TEXTS), engine)
    retriever.refresh()
    context = retriever.retrieve("the sky is blue", hops=hops, fallback_k=0)
    assert candidates(context) == {"sky", "sea", "zebra"}
    assert sorted(counted.calls.passages) == ["The sea is blue too.", "The sky is blue."]
    every = CountedEmbedder(WordEmbedder())
    loose = Engine(embedder=every, verifier=OverlapVerifier(), tokens=WordCounter())
    loose.select("the sky is blue", TEXTS, exact=False)
    assert len(every.calls.passages) == 3


def test_the_paper_s_keyword_search_is_refused():
    with pytest.raises(ConfigurationError, match="rank_bm25"):
        over(Shelf(TEXTS)).retrieve("blue", lexical="rank_bm25")


def test_twenty_threads_change_and_ask():
    """No row is lost, none comes twice."""
    store = Shelf(TEXTS)
    retriever = over(store)

    def work(n):
        mine = passage(f"t{n:02}", f"thread number {n}")
        with retriever.updating():
            store.held[mine.id] = mine
            retriever.index([mine])
        retriever.retrieve(f"thread {n}", sources="lexical")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = retriever.retrieve("thread number", sources="lexical", candidates=50)
    assert candidates(found) == {f"t{n:02}" for n in range(20)}


class TestSelect:
    """Phases 2 to 5 over passages that somebody else found."""

    def engine(self):
        return Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())

    def test_it_verifies_orders_and_packs(self):
        context = self.engine().select("blue sky", TEXTS, threshold=0.5)
        assert [p.passage.id for p in context.passages if p.verified] == ["sky"]
        assert [phase.name for phase in context.trace.phases] == [
            "retrieve", "verify", "fallback", "prioritize", "budget"
        ]  # fmt: skip
        assert context.trace.phases[0].returned == 3

    def test_all_are_considered_however_many_candidates_a_source_may_bring(self):
        many = [passage(f"p{n:03}", "grass") for n in range(60)] + [passage("last", "blue sky")]
        assert self.engine().select("blue sky", many).passages[0].passage.id == "last"

    def test_of_the_same_id_the_first_counts(self):
        twice = [passage("a", "blue sky"), passage("a", "grass")]
        assert self.engine().select("blue sky", twice).text == "blue sky"

    def test_equal_scores_keep_the_order_in_which_they_were_given(self):
        """Also at the cut; their ids say nothing."""
        given = [passage(name, "blue sky") for name in "dacbe"]
        context = self.engine().select("blue sky", given, limit=3, redundancy=1.0)
        assert [p.passage.id for p in context.passages] == ["d", "a", "c"]

    def test_nothing_given_nothing_verified(self):
        context = self.engine().select("blue sky", [])
        assert (context.text, context.sufficient) == ("", False)

    def test_bad_input_is_refused(self):
        with pytest.raises(QueryError):
            self.engine().select(" ", TEXTS)
        with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
            self.engine().select("blue", TEXTS, thresold=0.5)
