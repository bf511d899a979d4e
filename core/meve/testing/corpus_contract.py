"""The contract of a retriever's corpus, wherever it is kept. Inherit `CorpusContract` and override its fixture.

class TestMine(CorpusContract):
    @pytest.fixture
    def make_empty(self):
        return lambda **components: Retriever.over("postgresql://…", collection=new_name(), **components)
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from meve._extras import require_imports
from meve.components.lexical.bm25 import Bm25Index
from meve.errors import ConfigurationError, DuplicateIdError, EmptyCorpusError, PassageError, UnknownIdError
from meve.filters import Filter
from meve.retrieval.retriever import Retriever
from meve.testing import NEEDS, SUITE
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.types import Passage, Query

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st

MakeEmpty: TypeAlias = Callable[..., Retriever]
Make: TypeAlias = Callable[[Sequence[Passage]], Retriever]
SKY, GRASS, SEA = "The sky is blue.", "Grass is green.", "Deep water looks blue as well."
LOW: dict[str, Any] = {"threshold": 0.0, "fallback_floor": 0.0, "redundancy": 1.0, "max_tokens": 100_000}
"""Settings that keep every candidate."""

_TEXTS = ["", "a", "b", "2024-05-01", "2024-05-01T12", "2024-05-02", "20", "é'\\\\\"%", "\U0001f600", "x" * 300]
_VALUES = [*_TEXTS, None, True, False, -1, 0, 1, 1.0, 2, 0.5, 1e300, 2**60, 2**60 + 1, 10**30, 1e30, -1e30]
_PLAIN = st.sampled_from(_VALUES)
_NAME = "b.c['x'] \"%s?é"
_NAMES = st.sampled_from(["a", _NAME])
_METADATA = st.dictionaries(
    _NAMES, st.one_of(_PLAIN, st.lists(_PLAIN, max_size=3), st.just({"a": 1}), st.just([["a"]]))
)
_BOUND_VALUES = [
    *(each for each in _VALUES if isinstance(each, str | int | float) and not isinstance(each, bool)),
    *("2024-05-01\0", "a\0b", "\0", "\ud800", "é\udfff", float("inf"), float("-inf"), 10**300, -(10**400), 10**400),
]
_BOUNDS = st.sampled_from(_BOUND_VALUES)
_OPERANDS = {
    "$eq": _PLAIN, "$ne": _PLAIN, "$in": st.lists(_PLAIN, max_size=3), "$nin": st.lists(_PLAIN, max_size=3),
    **dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), _BOUNDS),
}  # fmt: skip
_OPERATORS = st.lists(st.sampled_from(sorted(_OPERANDS)), max_size=2, unique=True).flatmap(
    lambda named: st.fixed_dictionaries({each: _OPERANDS[each] for each in named})
)
_WHERE = st.dictionaries(
    st.one_of(_NAMES, _NAMES, _NAMES, st.just("missing")),
    st.one_of(_PLAIN, st.lists(_PLAIN, max_size=3), _OPERATORS, _OPERATORS, _OPERATORS),
    min_size=1,
    max_size=2,
)


class CorpusContract:
    """The rules of a `Retriever`'s corpus: changes, filters, ties, and searches by vectors and words."""

    calls_filters = True
    """Whether a filter may be a function."""
    counts_mean_length = True
    """Whether keyword scores are exactly those of `Bm25Index`, with the mean length of the passages that are there."""

    @pytest.fixture
    def make_empty(self) -> MakeEmpty:
        """Return a function that makes an empty retriever with the given components."""
        raise NotImplementedError("override the fixture `make_empty`")

    @pytest.fixture
    def make(self, make_empty: MakeEmpty) -> Make:
        """Return a function that makes a retriever over passages, with predictable components."""

        def make(passages: Sequence[Passage]) -> Retriever:
            made = make_empty(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
            made.update(add=passages)
            return made

        return make

    @pytest.fixture
    def retriever(self, make: Make) -> Retriever:
        """Return a retriever over three passages."""
        return make(
            [
                Passage(id="sky", text=SKY, metadata={"lang": "en", "year": 2020}),
                Passage(id="grass", text=GRASS, metadata={"lang": "de"}),
                Passage(id="sea", text=SEA, metadata={"lang": "fr", "tags": ["water", "blue"]}),
            ]
        )

    def test_empty_corpus_can_be_added_to(self, make: Make) -> None:
        retriever = make([])
        assert (len(retriever), retriever.passages(), "sky" in retriever) == (0, [], False)
        with pytest.raises(EmptyCorpusError, match="add passages"):
            retriever.retrieve("blue sky")
        retriever.add([SKY])
        assert retriever.retrieve("blue sky").sufficient

    def test_each_source_finds_what_the_next_query_asks_for(self, retriever: Retriever) -> None:
        retriever.add([Passage(id="sun", text="Yellow zebra suns.")])
        for sources in ("dense", "lexical", "hybrid"):
            assert _candidates(retriever, "zebra suns", sources=sources)[0] == "sun"

    def test_removed_passage_is_gone_from_every_phase(self, retriever: Retriever) -> None:
        retriever.remove(["sky"])
        for mode in ("full", "no_verification", "standard_rag", "no_fallback"):
            context = retriever.retrieve("blue sky", mode=mode, fallback_floor=0.0)
            assert "sky" not in [c.id for c in context.trace.candidates]
        assert "sky" not in retriever
        with pytest.raises(UnknownIdError, match="'sky'"):
            retriever.get("sky")
        assert sorted(p.id for p in retriever.passages()) == ["grass", "sea"]

    def test_replaced_passage_is_found_by_its_new_words_only(self, retriever: Retriever) -> None:
        retriever.update(add=[Passage(id="sky", text="Clouds everywhere.", metadata={"lang": "it"})], remove=["sky"])
        assert retriever.get("sky").text == "Clouds everywhere."
        assert len(retriever) == 3
        assert _candidates(retriever, "clouds", sources="lexical") == ["sky"]
        assert _candidates(retriever, "sky", sources="lexical", fallback_k=0, fill=False) == []
        assert _candidates(retriever, "clouds", where={"lang": "it"}) == ["sky"]
        assert _candidates(retriever, "clouds", where={"lang": "en"}) == []

    def test_passage_is_returned_as_it_was_added(self, make: Make) -> None:
        metadata = {"n": [1, 2.5, None, True, {"deep": "é"}], "a.b": "'\"\\%s?", "empty": [], "": {}}
        added = Passage(
            id="odd ' \\ % ? id/é#1", title="Ein Titel", text="Straße 'x' \\ % ? \U0001f600", metadata=metadata
        )
        retriever = make([added])
        for found in (
            retriever.get(added.id),
            retriever.passages()[0],
            retriever.retrieve("straße").passages[0].passage,
        ):
            assert (found.id, found.title, found.text, dict(found.metadata)) == (
                added.id, added.title, added.text, metadata,
            )  # fmt: skip

    def test_candidates_come_with_their_vector_and_token_count(self, retriever: Retriever) -> None:
        for source in retriever._corpus.sources(retriever.config, counted=True):
            hits = source.search(Query(text="blue sky", vector=WordEmbedder().embed_query("blue sky")), 1)
            assert (hits[0].id, hits[0].tokens) == ("sky", 4)
            assert hits[0].vector is not None
            assert hits[0].vector == pytest.approx(WordEmbedder().embed_passages([SKY])[0])

    def test_generated_ids_are_never_reused(self, make: Make) -> None:
        retriever = make([])
        first = retriever.add([SKY, GRASS])
        retriever.remove(first)
        assert not set(retriever.add([SKY, SEA])) & set(first)

    def test_wrong_ids_change_nothing(self, retriever: Retriever) -> None:
        with pytest.raises(DuplicateIdError, match="'x'"):
            retriever.add([Passage(id="x", text="one"), Passage(id="x", text="two")])
        with pytest.raises(DuplicateIdError, match="'sky'"):
            retriever.add([Passage(id="y", text="one"), Passage(id="sky", text="two")])
        with pytest.raises(UnknownIdError, match="'nope'"):
            retriever.remove(["sky", "nope"])
        with pytest.raises(DuplicateIdError, match="repeat"):
            retriever.remove(["sky", "sky"])
        with pytest.raises(PassageError):
            retriever.add([Passage(id="fine", text="fine"), Passage(id="a", text=" ")])
        assert len(retriever) == 3
        assert "y" not in retriever
        assert retriever.get("sky").text == SKY

    def test_ties_are_broken_by_id_also_at_the_limit(self, make: Make) -> None:
        ids = [f"{n:02d}" for n in range(40)]
        retriever = make([Passage(id=i, text="same old words") for i in ids[1::2] + ids[::2]])
        for sources in ("dense", "lexical"):
            found = _candidates(retriever, "same words", sources=sources, candidates=5, fallback_k=0, fill=False)
            assert found == ids[:5]

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ({"lang": "en"}, {"sky"}),
            ({"lang": ["en", "de"]}, {"sky", "grass"}),
            ({"tags": "blue"}, {"sea"}),
            ({"lang": "en", "year": 2021}, set()),
            ({"lang": {"$ne": "en"}, "tags": {"$nin": ["red"]}}, {"sea"}),
            ({"nothing": 1}, set()),
        ],
    )
    def test_filter_applies_to_every_phase(
        self, retriever: Retriever, where: dict[str, Any], expected: set[str]
    ) -> None:
        for mode in ("full", "standard_rag", "no_verification"):
            context = retriever.retrieve("blue grass sky water", where=where, mode=mode, fallback_floor=0.0)
            assert {c.id for c in context.trace.candidates} <= expected
            if mode != "full":
                assert {p.passage.id for p in context.passages} == expected

    def test_filter_matches_passages_added_later(self, retriever: Retriever) -> None:
        assert _candidates(retriever, "blue sky", where={"lang": "en"}) == ["sky"]
        retriever.add([Passage(id="new", text=f"{SKY} Indeed.", metadata={"lang": "en"})])
        assert {p.id for p in retriever.iterate({"lang": ["en", "it"]})} == {"new", "sky"}
        assert set(_candidates(retriever, "blue sky", where={"lang": "en"})) == {"new", "sky"}

    def test_each_operator_admits_exactly_what_it_says(self, make: Make) -> None:
        """Over one passage for each value, alone and in a list."""
        values = [*_VALUES, {"a": 1}, [["a", 1]], [], ["a", 1], ["2024-05-01", None, 0.5]]
        retriever = make([Passage(id=str(n), text="word", metadata={_NAME: value}) for n, value in enumerate(values)])
        source, _ = retriever._corpus.sources(retriever.config, counted=True)
        filters: list[dict[str, Any]] = [{_NAME: {}}, {_NAME: {"$nin": []}}, {_NAME: []}]
        for operator in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
            for operand in _VALUES if operator in ("$eq", "$ne") else _BOUND_VALUES:
                filters.append({_NAME: {operator: operand}})
        for where in filters:
            expected = {str(n) for n, value in enumerate(values) if Filter(where).matches({_NAME: value})}
            question = Query(text="word", vector=WordEmbedder().embed_query("word"), where=where)
            assert {hit.id for hit in source.search(question, 100)} == expected, where

    def test_filters_admit_exactly_what_they_say(self, make: Make) -> None:
        """Each source returns those passages whose metadata `Filter.matches`."""
        retriever = make([])
        known: dict[str, Mapping[str, Any]] = {}

        @settings(max_examples=15, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(st.lists(_METADATA, max_size=4), st.lists(_WHERE, min_size=8, max_size=8))
        def story(added: list[dict[str, Any]], filters: list[dict[str, Any]]) -> None:
            new = {f"{len(known) + n}": metadata for n, metadata in enumerate(added)}
            retriever.update(add=[Passage(id=i, text="word", metadata=each) for i, each in new.items()])
            known.update(new)
            if not known:
                return
            for where in filters:
                expected = {
                    i for i, metadata in known.items() if Filter(where).matches(json.loads(json.dumps(metadata)))
                }
                question = Query(text="word", vector=WordEmbedder().embed_query("word"), where=where)
                for source in retriever._corpus.sources(retriever.config, counted=True):
                    assert {hit.id for hit in source.search(question, 1_000)} == expected, (source.name, where)

        story()

    def test_function_filter_is_called_or_refused(self, retriever: Retriever) -> None:
        where = lambda metadata: metadata["lang"] == "en"  # noqa: E731
        if self.calls_filters:
            assert _candidates(retriever, "blue sky", where=where) == ["sky"]
        else:
            with pytest.raises(ConfigurationError, match="can't call a function"):
                retriever.retrieve("blue sky", where=where)

    def test_unknown_name_in_a_filter_is_explained(self, retriever: Retriever) -> None:
        trace = retriever.retrieve("blue", where={"lnag": 2020}).trace
        sentence = "no passage has 'lnag' in its metadata, which the filter names; did you mean 'lang'?"
        assert trace.phases[0].settings["warnings"] == [sentence]
        assert trace.sufficiency["reason"] == f"no passage that matches the filter was found; {sentence}"
        retriever.add([Passage(id="new", text="A blue one.", metadata={"lnag": "x"})])
        assert "warnings" not in retriever.retrieve("blue", where={"lnag": "x"}).trace.phases[0].settings

    def test_words_of_all_kinds_are_found(self, make: Make) -> None:
        words = ["o'clock", "c++", "3.11", "naïve", "日", "имя", "o'reilly", "a" * 3_000, "\U0001d54f1", "_x_", "i̇"]
        retriever = make([Passage(id=str(n), text=f"filler {word} text") for n, word in enumerate(words)])
        for n, word in enumerate(words):
            assert _candidates(retriever, word, sources="lexical", candidates=2)[0] == str(n), word

    def test_keyword_scores_are_those_of_bm25(self, make: Make) -> None:
        """Over passages of all lengths, after removals, and with words that most of them have."""
        random = np.random.default_rng(0)
        vocabulary = [f"w{n}" for n in range(60)]
        weights = 1.0 / np.arange(1, 61)
        texts = [
            " ".join(random.choice(vocabulary, random.integers(1, 30), p=weights / weights.sum())) for _ in range(150)
        ]
        retriever = make([Passage(id=f"{n:03}", text=text) for n, text in enumerate(texts)])
        retriever.remove([f"{n:03}" for n in range(100, 150)])
        index = Bm25Index()
        index.add(np.arange(100), texts[:100])
        for question in ("w0", "w59 w0 w1", "w0 w1 w2 w3 w30", "w7 w7 w9", "unknown w5"):
            rows, scores = index.search(question, 20)
            context = retriever.retrieve(question, sources="lexical", candidates=20, fallback_k=0, fill=False, **LOW)
            found = {c.id: c.scores["lexical"] for c in context.trace.candidates}
            if self.counts_mean_length:
                assert found == pytest.approx(
                    {f"{row:03}": score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}, rel=1e-5
                )
            else:
                assert len(found) == len(rows)
                assert len(set(found) & {f"{row:03}" for row in rows.tolist()}) >= 0.8 * len(rows)

    def test_query_of_five_thousand_words_is_scored_by_all_of_them(self, make: Make) -> None:
        texts = [" ".join(f"w{n}" for n in range(start, start + 100)) for start in range(0, 5_000, 100)]
        retriever = make([Passage(id=f"{n:02}", text=text) for n, text in enumerate([*texts, "w7 w107 w207", "none"])])
        index = Bm25Index()
        index.add(np.arange(52), [*texts, "w7 w107 w207", "none"])
        question = Query(text=" ".join(texts))
        rows, scores = index.search(question.text, 100)
        expected = {f"{row:02}": score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}
        _, source = retriever._corpus.sources(retriever.config, counted=True)
        found = {hit.id: hit.scores["lexical"] for hit in source.search(question, 100)}
        assert set(found) == set(expected)
        scored = source.score_ids(question, [*expected, "51"])
        assert scored == pytest.approx({**found, "51": 0.0})
        if self.counts_mean_length:
            assert found == pytest.approx(expected, rel=1e-5)

    def test_filter_may_name_forty_thousand_values(self, make: Make) -> None:
        values = [7, [3, "c"], 7.5, "7", None, 39_999, 40_000, [[7]], {"n": 7}]
        retriever = make([Passage(id=str(n), text="word", metadata={"n": value}) for n, value in enumerate(values)])
        retriever.update(add=[Passage(id="none", text="word")])
        source, _ = retriever._corpus.sources(retriever.config, counted=True)
        for where in ({"n": {"$in": [*range(39_998), None, 39_999.0]}}, {"n": {"$nin": [*range(39_999), "c"]}}):
            admitted = Filter(where)
            expected = {str(n) for n, value in enumerate(values) if admitted.matches({"n": value})}
            question = Query(text="word", vector=WordEmbedder().embed_query("word"), where=where)
            assert {hit.id for hit in source.search(question, 100)} == expected

    def test_random_changes_match_a_dict(self, make: Make) -> None:
        retriever = make([])
        expected: dict[str, str] = {}
        names = st.sets(st.integers(0, 6), min_size=1)

        @settings(max_examples=25, deadline=None)
        @given(names, st.sets(st.integers(0, 6)), st.text("ab ", max_size=5))
        def step(added: set[int], removed: set[int], text: str) -> None:
            remove = [str(n) for n in removed | added if str(n) in expected]
            retriever.update(add=[Passage(id=str(n), text=f"story {n} {text}") for n in added], remove=remove)
            for each in remove:
                del expected[each]
            expected.update({str(n): f"story {n} {text}" for n in added})
            assert {p.id: p.text for p in retriever.passages()} == expected
            assert len(retriever) == len(expected)
            for sources in ("dense", "lexical"):
                assert set(_candidates(retriever, "story", sources=sources)) == set(expected)
            for each in expected:
                assert _candidates(retriever, f"{each}", sources="lexical", fallback_k=0, fill=False) == [each]

        step()

    def test_threads_add_and_retrieve_at_the_same_time(self, retriever: Retriever) -> None:

        def work(n: int) -> list[str]:
            (added,) = retriever.add([f"zebra number {n}"])
            assert added in _candidates(retriever, f"zebra number {n}", candidates=100)
            return [added]

        with ThreadPoolExecutor(4) as pool:
            ids = [i for added in pool.map(work, range(12)) for i in added]
        assert len(set(ids)) == 12
        assert len(retriever) == 15
        contexts = retriever.retrieve_many(["blue sky", "green grass"])
        assert [c.passages[0].passage.id for c in contexts] == ["sky", "grass"]


def _candidates(retriever: Retriever, question: str, **options: Any) -> list[str]:  # noqa: ANN401
    """Return the ids of all candidates, best first."""
    context = retriever.retrieve(question, **{**LOW, **options})
    return [candidate.id for candidate in context.trace.candidates]
