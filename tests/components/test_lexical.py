"""Test the lexical indexes: the contract, the BM25 formula, and agreement with `rank_bm25`."""

import gzip
import json
import math
import sys

import numpy as np
import pytest

from meve.components.lexical import _postings as lexical_postings
from meve.components.lexical import _ranking as lexical_ranking
from meve.components.lexical import bm25, lexical_class, make_lexical
from meve.components.lexical.analyzers import content_words, search_words, whitespace, words
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index
from meve.errors import ConfigurationError, IndexMismatchError, MissingExtraError
from meve.testing.lexical_contract import LexicalIndexContract


class TestIndexes(LexicalIndexContract):
    @pytest.fixture(params=[Bm25Index, RankBm25Index])
    def make_index(self, request):
        return request.param


class TestBm25InManyBlocks(LexicalIndexContract):
    """A tail of two texts and bulk adds of three or more make small tests merge blocks."""

    @pytest.fixture
    def make_index(self, monkeypatch):
        monkeypatch.setattr(lexical_postings, "TAIL_TEXTS", 2)
        monkeypatch.setattr("meve.components.lexical.bm25._BULK", 3)
        monkeypatch.setattr("meve.components.lexical.bm25._BLOCK_WORDS", 4)
        return Bm25Index


def fill(index, texts):
    index.add(np.arange(len(texts)), texts)
    return index


def search_scores(index, query, k=10):
    rows, scores = index.search(query, k)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def test_score_matches_hand_calculation():
    """One term, three texts: idf ln(1 + 2.5/1.5), and 2·2.5/(2 + 1.5·(0.25 + 0.75·3/2)) for two of three words."""
    index = fill(Bm25Index(), ["cat cat dog", "dog", "bird fish"])
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    saturation = 2 * 2.5 / (2 + 1.5 * (1 - 0.75 + 0.75 * 3 / 2))
    assert search_scores(index, "cat") == {0: pytest.approx(idf * saturation, rel=1e-6)}


def test_only_idf_differs_from_rank_bm25():
    texts = ["cat cat dog", "dog cow", "bird fish", "cat bird cow cow", "cow ant", "bee", "fly fly", "owl"]
    ours, theirs = fill(Bm25Index(analyzer=whitespace), texts), fill(RankBm25Index(), texts)
    ratio = math.log(1 + 6.5 / 2.5) / math.log(6.5 / 2.5)
    expected = {row: pytest.approx(ratio * score, rel=1e-5) for row, score in search_scores(theirs, "cat").items()}
    assert search_scores(ours, "cat") == expected


def test_very_common_word_never_lowers_score():
    index = fill(Bm25Index(), ["moon cat", "moon dog", "moon"])
    assert min(search_scores(index, "moon").values()) > 0


def measure_overlap(texts, queries, analyzer):
    """Return the mean share of rank_bm25's ten best that are also ours, with the same words."""
    ours, theirs = fill(Bm25Index(analyzer=analyzer), texts), fill(RankBm25Index(analyzer=analyzer), texts)
    shares = []
    for query in queries:
        expected = set(theirs.search(query, 10)[0].tolist())
        if expected:
            shares.append(len(expected & set(ours.search(query, 10)[0].tolist())) / len(expected))
    assert len(shares) > 0.9 * len(queries)
    return sum(shares) / len(shares)


def test_ranking_matches_rank_bm25():
    from pydoc_data import topics

    parts = [part for topic in topics.topics.values() for part in topic.split("\n\n") if len(part.split()) >= 5]
    texts = list(dict.fromkeys(parts))
    queries = [" ".join(text.split(". ")[0].split()[:12]) for text in texts[:: len(texts) // 200]][:200]
    assert measure_overlap(texts, queries, content_words) >= 0.9


@pytest.mark.shared
@pytest.mark.parametrize("name", ["hotpotqa", "2wiki", "nq_open"])
def test_ranking_matches_rank_bm25_on_real_questions(shared, name):
    """With function words the overlap is lower, because of rank_bm25's lower limit of the IDF."""
    with gzip.open(shared / "data" / name / "passages.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [f"{passage['title']}\n{passage['text']}" for passage in map(json.loads, lines)]
    with (shared / "data" / name / "questions.jsonl").open(encoding="utf-8") as lines:
        queries = [json.loads(line)["question"] for line in lines][:200]
    overlap = measure_overlap(texts, queries, content_words)
    assert overlap >= 0.9
    assert 0.75 <= measure_overlap(texts, queries, whitespace) < overlap


def test_batch_and_single_adds_make_the_same_index():
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in random.zipf(1.3, 12) % 500) for _ in range(700)]
    whole = fill(Bm25Index(), texts)
    parts = Bm25Index()
    for start, stop in [(0, 1), (1, 300), (300, 310), (310, 600)]:
        parts.add(np.arange(start, stop), texts[start:stop])
    for row in range(600, 700):
        parts.add(np.array([row]), [texts[row]])
    for query in texts[:50]:
        assert search_scores(parts, query, 700) == search_scores(whole, query, 700)


def test_removed_text_is_freed_from_memory():
    index = fill(Bm25Index(), [f"word{i} shared" for i in range(100)])
    index.remove(np.arange(80))
    assert len(index._state.vocabulary) <= 1 + 20 / (1 - 0.25) + 1
    assert index._state.rows.size < 30


def test_very_frequent_word_does_not_overflow():
    index = fill(Bm25Index(b=0), ["moon " * 65_537, "moon " * 30_000, "moon sun", *["sun"] * 97])
    index.add(np.array([100]), ["moon " * 65_537])
    scores = search_scores(index, "moon")
    assert scores[0] >= scores[1] > scores[2]
    assert scores[100] == scores[0]


def test_search_reads_only_postings_of_query_terms(monkeypatch):
    index = fill(Bm25Index(), [f"word{i} shared" for i in range(1000)])
    terms = []
    lookup = lexical_postings.Postings.lookup
    monkeypatch.setattr(
        lexical_postings.Postings, "lookup", lambda self, term: terms.append(term) or lookup(self, term)
    )
    index.search("word5 word5 word7 unheard", 3)
    assert sorted(terms) == sorted(index._state.vocabulary[word] for word in ("word5", "word7"))


def test_score_shares_divide_by_maximum_score():
    index = Bm25Index()
    index.add(np.array([7, 3, 5, 9]), ["red moon", "blue moon", "green sun", "red red moon"])
    rows, scores = index.search("red moon", 10)
    result, shares = index.score_shares("red moon")
    ranked = dict(zip(result.tolist(), shares.tolist(), strict=True))
    assert sorted(ranked) == sorted(rows.tolist())
    ratios = [ranked[row] / score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 3)
    assert 0 < min(ranked.values()) <= max(ranked.values()) <= 1
    unheard = dict(zip(*(each.tolist() for each in index.score_shares("red moon unheard")), strict=True))
    assert all(unheard[row] < ranked[row] for row in ranked)
    index.remove(np.array([9]))
    assert sorted(index.score_shares("red moon")[0].tolist()) == [3, 7]
    assert index.score_shares("nothing of it")[0].tolist() == []


def test_kept_scores_of_words_are_those_of_a_new_index(monkeypatch):
    texts = {n: f"moon {'red ' * (n % 3)}word{n}" for n in range(30)}
    questions = ["red moon", "red red moon", "moon", "word7 unheard", "word3 word4 red"]
    index = Bm25Index()
    index.add(np.arange(20), [texts[n] for n in range(20)])

    def shares(of, question):
        return sorted(zip(*(each.tolist() for each in of.score_shares(question, 2.0)), strict=True))

    def compare(rows):
        fresh = Bm25Index()
        fresh.add(np.array(rows), [texts[n] for n in rows])
        for question in [*questions, *questions]:
            assert shares(index, question) == shares(fresh, question)
            fresh._state.norms = None

    compare(range(20))
    index.add(np.arange(20, 30), [texts[n] for n in range(20, 30)])
    compare(range(30))
    index.remove(np.arange(5))
    compare(range(5, 30))
    monkeypatch.setattr(bm25, "_KEPT", 1)
    index.remove(np.array([5]))
    compare(range(6, 30))
    assert index._state.norms.postings <= 2 * len(index)
    index.remove(np.arange(6, 30))
    assert shares(index, "moon") == []


def test_shares_of_few_common_words_are_smaller_with_a_least():
    index = Bm25Index()
    index.add(np.arange(20), [f"the moon and word{n}" for n in range(20)])

    def share(query, least):
        return float(index.score_shares(query, least)[1].max())

    assert share("moon", 2) < share("moon", 0) / 10
    assert share("moon", 2) < share("word3", 2) < share("word3", 0)
    three = "word3 word4 word5"
    assert share(three, 2) == share(three, 0)


def test_large_filter_returns_no_removed_row():
    index = fill(Bm25Index(), ["moon"] * 6000)
    index.remove(np.arange(100))
    assert index.search("moon", 1, np.arange(5000))[0].tolist() == [100]


def own(text):
    return text.split("-")


@pytest.mark.parametrize("kind", [Bm25Index, RankBm25Index])
def test_custom_analyzer_must_be_passed_to_load(kind, tmp_path):
    fill(kind(analyzer=own), ["a-b", "c-d", "e-f"]).save(tmp_path / "own")
    assert list(search_scores(kind.load(tmp_path / "own", analyzer=own), "b")) == [0]
    with pytest.raises(ConfigurationError, match="custom:own"):
        kind.load(tmp_path / "own")
    with pytest.raises(IndexMismatchError, match="custom:own"):
        kind.load(tmp_path / "own", analyzer=words)


def test_settings_survive_save_and_load(tmp_path):
    index = fill(Bm25Index(k1=0.9, b=0.4, analyzer=whitespace), ["Moon?", "sun moon", "\ud800 odd"])
    index.save(tmp_path / "index")
    loaded = Bm25Index.load(tmp_path / "index")
    assert (loaded._k1, loaded._b, loaded._analyzer) == (0.9, 0.4, whitespace)
    assert search_scores(loaded, "moon? \ud800") == search_scores(index, "moon? \ud800")


@pytest.mark.parametrize("settings", [{"k1": -1}, {"b": 1.5}, {"k1": math.nan}])
def test_invalid_settings_raise(settings):
    with pytest.raises(ConfigurationError):
        Bm25Index(**settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't panic: C++ and C# in 3.11!", ["don't", "panic", "c++", "and", "c#", "in", "3.11"]),
        ("Einstein’s 1,000 well-known snake_cases.", ["einstein", "1,000", "well", "known", "snake_cases"]),
        ("Straße ＦＵＬＬ cafe\u0301", ["strasse", "full", "caf\u00e9"]),
        ("東京タワー in नमस्ते", ["東", "京", "タ", "ワ", "ー", "in", "नमस्ते"]),
        ("meve.errors end.Start", ["meve", "errors", "end", "start"]),
        ("", []),
    ],
)
def test_words_are_split_and_folded(text, expected):
    assert words(text) == expected


def test_make_lexical_accepts_kind_or_index():
    ready = Bm25Index()
    assert make_lexical(ready) is ready
    assert make_lexical("rank_bm25").kind == "rank_bm25"
    assert lexical_class("bm25") is Bm25Index
    with pytest.raises(ConfigurationError, match="'tantivy'"):
        lexical_class("tantivy")


def test_missing_extra_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rank_bm25", None)
    with pytest.raises(MissingExtraError, match=r"meve\[reference\]"):
        RankBm25Index()


def test_skipping_long_postings_changes_no_result(monkeypatch):
    random = np.random.default_rng(3)
    texts = [" ".join(f"w{n}" for n in np.minimum(random.zipf(1.25, 25), 3000)) for _ in range(3000)]
    index = fill(Bm25Index(), texts)
    index.remove(np.arange(0, 3000, 11))
    allowed = np.arange(0, 3000, 3)
    queries = [" ".join(random.permutation(text.split())[:6]) for text in texts[:150]]
    pruned: list[int] = []
    whole = lexical_ranking._completed
    monkeypatch.setattr(lexical_ranking, "_completed", lambda *a: pruned.append(1) or whole(*a))
    result = [[index.search(query, k, rows) for k in (1, 5, 40) for rows in (None, allowed)] for query in queries]
    assert len(pruned) > 50
    monkeypatch.setattr(lexical_ranking, "_LONG", 10**9)
    for query, answers_ in zip(queries, result, strict=True):
        expected = [index.search(query, k, rows) for k in (1, 5, 40) for rows in (None, allowed)]
        for (rows, scores), (true_rows, true_scores) in zip(answers_, expected, strict=True):
            assert rows.tolist() == true_rows.tolist()
            assert scores.tolist() == true_scores.tolist()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("16260", "16,260 euro"),
        ("16,260", "16260 euro"),
        ("16260", "16\u00a0260 euro"),
        ("1234567", "1\u202f234\u202f567 rows"),
        ("1000.50", "1,000.50 euro"),
        ("2.7.3", "since v2.7.3"),
        ("V117.0", "since 117.0"),
        ("Malmo", "the Malmö office"),
        ("Malmö", "the Malmo office"),
        ("Malmo\u0308", "the Malmö office"),
        ("Lodz", "a tram in Łódź"),
        ("Istanbul", "İstanbul"),
        ("ML103", "meter ML-103."),
        ("ml-103", "meter ML103"),
        ("ML103", "meter ML\u2010103."),
        ("ML\u2011103", "meter ML103"),
        ("NB32O", "NB-32-O,32"),
        ("SARSCoV2", "the SARS-CoV-2 genome"),
    ],
)
def test_spellings_of_one_word_match(query, text):
    assert set(search_words(query)) & set(search_words(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("16.260", "16260"),
        ("3,14", "314"),
        ("2024\u00a0100", "2024100"),
        ("12345,678", "12345678"),
        ("v2", "2"),
        ("conv2.7", "con2.7"),
        ("ёлка", "елка"),
        ("й", "и"),
        ("が", "か"),
        ("हिन्दी", "हनद"),
        ("ภาษาไทย", "ภาษาไทย".replace("\u0e32", "")),
        ("שָׁלוֹם", "שלום"),
        ("ά", "α"),
        ("well-known", "wellknown"),
        ("19-year", "19year"),
        ("2010-05-03", "20100503"),
        ("HTTP-1.1", "http1"),
    ],
)
def test_different_words_stay_apart(one, other):
    assert not set(search_words(one)) & set(search_words(other))


@pytest.mark.parametrize(
    "text",
    [
        "A well-known rule: don't pay 3.14 for C++ in 2010-05-03.",
        "Ёлка й и が हिन्दी ภาษาไทย 한국어 שלום",
        "Costs 16.260 today",
    ],
)
def test_ordinary_text_has_its_content_words_only(text):
    assert search_words(text) == content_words(text)


def test_word_that_loses_its_accent_is_no_stop_word():
    assert search_words("thé à Dö") == ["the", "a", "do"]


def test_saved_index_keeps_the_analyzer_it_was_made_with(tmp_path):
    """One that names `content_words` was saved by an earlier version; its words have accents."""
    fill(Bm25Index(analyzer=content_words), ["the Malmö office"]).save(tmp_path / "earlier")
    fill(Bm25Index(), ["the Malmö office"]).save(tmp_path / "new")
    earlier, new = Bm25Index.load(tmp_path / "earlier"), Bm25Index.load(tmp_path / "new")
    assert (len(search_scores(earlier, "Malmö")), len(search_scores(new, "Malmö"))) == (1, 1)
    assert (len(search_scores(earlier, "Malmo")), len(search_scores(new, "Malmo"))) == (0, 1)
