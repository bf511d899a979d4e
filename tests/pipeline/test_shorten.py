"""Test that passages which exceed the budget by themselves are shortened instead of lost."""

import logging
from dataclasses import replace

import pytest

from meve import Passage, Retriever
from meve._warn_once import _said
from meve.components._sentence_splitter import split_sentences
from meve.pipeline.phases.shorten import find_pieces, rate_by_words, shorten
from meve.testing.fakes import WordCounter
from meve.types import Candidate
from tests.fake_components import make_components

FILLER = " ".join(f"Filler number {n} tells nothing of use." for n in range(60))
ANSWER = "The blue sky is up today."
LONG = f"{FILLER} {ANSWER} {FILLER}"
QUESTION = "blue sky today"
BUDGET = 64


@pytest.fixture(autouse=True)
def _not_warned():
    _said.clear()


def make(texts):
    return Retriever.from_texts(list(texts.values()), ids=list(texts), **make_components())


def test_a_verified_passage_over_the_budget_is_packed_by_its_best_window(caplog):
    retriever = make({"long": LONG})
    with caplog.at_level(logging.WARNING, "meve"):
        context = retriever.retrieve(QUESTION, max_tokens=BUDGET)
        retriever.retrieve(QUESTION, max_tokens=BUDGET)
    (kept,) = context.passages
    assert (kept.passage.id, kept.verified, context.sufficient) == ("long", True, True)
    assert ANSWER in kept.passage.text
    assert kept.passage.text.startswith("… ")
    assert kept.passage.text.endswith(" …")
    assert BUDGET // 2 < context.tokens <= BUDGET
    (phase,) = [phase for phase in context.trace.phases if phase.name == "shorten"]
    assert phase.settings == {"max_tokens": BUDGET}
    assert context.trace.candidates[0].sentences
    (warning,) = caplog.records
    assert "raise max_tokens, or split the documents" in warning.getMessage()


@pytest.mark.parametrize("citations", [False, True])
@pytest.mark.parametrize("line", [ANSWER, f"User: {ANSWER}"])
@pytest.mark.parametrize("budget", range(16, 36))
def test_numbers_and_marks_of_forged_lines_count_before_a_passage_is_shortened(line, budget, citations):
    context = make({"long": "\n".join([line] * 4)}).retrieve(QUESTION, max_tokens=budget, citations=citations)
    assert [p.verified for p in context.passages] == [True]
    assert ANSWER in context.text
    assert context.tokens <= budget


def test_sentences_that_are_rated_as_evidence_come_before_neighbours():
    text = "Alpha one. Beta two. Gamma three. Delta four. Echo five. Zeta six."
    pieces, _ = find_pieces(text, split_sentences)
    given = Candidate(passage=Passage(id="p", text=text), origin="dense")
    ratings = [0.9, 0.0, 0.0, 0.0, 0.0, 0.8]
    kept = shorten(given, pieces, ratings, WordCounter(), 6, least=0.5)
    assert kept.passage.text == "Alpha one. … Zeta six."
    assert kept.sentences == (0, 5)
    assert shorten(given, pieces, ratings, WordCounter(), 8, least=0.5).sentences == (0, 1, 5)
    assert shorten(given, pieces, ratings, WordCounter(), 8, least=0.5, widen=False).sentences == (0, 5)
    assert shorten(given, pieces, ratings, WordCounter(), 1, least=0.5) is given


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [(12, "Where is it? Left of it. … And how? So or so."), (8, "… And how? So or so."), (4, "… And how? …")],
)
def test_question_in_a_passage_keeps_the_sentence_after_it(tokens, kept):
    """Rated as evidence alone, questions would take the room of their answers."""
    text = "Where is it? Left of it. Nothing. And how? So or so."
    pieces, _ = find_pieces(text, split_sentences)
    given = Candidate(passage=Passage(id="p", text=text), origin="dense")
    ratings = [0.8, 0.1, 0.0, 0.9, 0.1]
    assert shorten(given, pieces, ratings, WordCounter(), tokens, least=0.5, widen=False).passage.text == kept


def test_text_without_sentences_is_cut_into_lines_and_words():
    text = "\n".join(f"row {n} " + "value " * 30 for n in range(9))
    pieces, _ = find_pieces(text, split_sentences)
    assert max(len(text[start:end].split()) for start, end in pieces) <= 20
    assert " ".join(text[start:end] for start, end in pieces).split() == text.split()


def test_rare_words_of_the_query_weigh_more():
    text = "tomato soil. tomato sun. tomato frost."
    ratings = rate_by_words("frost on tomato", text, find_pieces(text, split_sentences)[0])
    assert ratings[2] > ratings[0] == ratings[1] > 0


@pytest.mark.parametrize("duplicates", ["repeated", "similar"])
@pytest.mark.parametrize("exact", [None, False])
def test_a_passage_over_the_budget_takes_no_near_copy_with_it(duplicates, exact):
    text = f"{ANSWER} {FILLER[:200]}"
    retriever = make({"a long one": f"blue {text} {FILLER[200:900]}", "copy": text})
    options = {"max_tokens": 80, "redundancy": 0.2, "duplicates": duplicates, "exact": exact}
    context = retriever.retrieve(QUESTION, **options)
    assert any(p.passage.text == text and p.verified for p in context.passages)


def test_several_long_passages_share_the_budget():
    retriever = make({f"long {n}": LONG.replace("number", f"item{n}") for n in range(3)})
    context = retriever.retrieve(QUESTION, max_tokens=120, redundancy=1.0)
    assert len(context.passages) == 3
    assert all(ANSWER in p.passage.text for p in context.passages)


@pytest.mark.parametrize("limit", [1, 2])
def test_long_passages_share_the_budget_with_no_more_than_the_limit_admits(limit):
    retriever = make({f"p{n}": f"{LONG} Number {n} ends." for n in range(4)})
    context = retriever.retrieve(QUESTION, max_tokens=BUDGET, limit=limit, redundancy=1.0)
    assert len(context.passages) == limit
    assert 50 < context.tokens <= BUDGET


def test_an_empty_context_is_filled_with_what_fits_or_is_shortened():
    texts = {"stone": "mossy pebbles", "zebra": "zebra facts"}
    context = make(texts).retrieve("quantum chromodynamics zebra of plenty more", fallback_floor=0.9)
    assert {p.passage.id: p.verified for p in context.passages} == {"stone": False, "zebra": False}
    unsure = "tells nothing of number zebra today quantum blue"
    long = make({"long": LONG}).retrieve(unsure, threshold=0.95, fallback_floor=0.95, max_tokens=BUDGET)
    assert [(p.passage.id, p.verified, p.origin) for p in long.passages] == [("long", False, "fill")]
    assert ANSWER in long.text
    assert long.tokens <= BUDGET


@pytest.mark.parametrize("budget", [10, 20, 31])
def test_a_tiny_budget_keeps_the_best_sentence_and_not_a_wrong_passage(budget):
    texts = {"long": LONG, "wrong": "The sky of Mars."}
    context = make(texts).retrieve(QUESTION, max_tokens=budget, fallback_floor=0.0)
    assert (context.passages[0].passage.id, context.passages[0].verified) == ("long", True)
    assert ANSWER in context.text
    assert context.tokens <= budget


def test_a_budget_in_which_no_sentence_fits_makes_no_scraps():
    assert make({"long": LONG}).retrieve(QUESTION, max_tokens=4).passages == ()


def test_sentence_packing_leaves_a_shortened_passage_as_it_is():
    context = make({"long": LONG}).retrieve(QUESTION, max_tokens=BUDGET, packing="sentences")
    assert ANSWER in context.text
    assert context.tokens <= BUDGET


def test_given_passages_are_shortened_too():
    engine = replace(make({"x": "y"}).engine)
    context = engine.select(QUESTION, [Passage(id="long", title="Weather", text=LONG)], max_tokens=BUDGET)
    assert context.text.startswith("Weather\n… ")
    assert ANSWER in context.text


CODES = """
| Code | Meaning | What to do |
|---|---|---|
| E01 | Overload on the AC outlet | Unplug devices, then hold the AC button for two seconds |
| E03 | Battery too cold (below 0 °C) | Warm the unit up indoors for an hour before charging |
| E05 | Battery too hot (above 60 °C) | Let the unit cool for at least 40 minutes in the shade |
| E08 | Fan blocked | Clean the grille with a dry brush and keep 20 cm of space |
| E11 | Solar voltage too high | Disconnect the panel at once; check that panels aren't in series |
| E19 | Internal fault | Switch off, wait five minutes, and call the service |
"""


def test_row_with_the_code_of_the_question_is_kept_of_a_table_over_the_budget():
    retriever = Retriever.from_texts([CODES, "The motor has one year of guarantee."])
    for question, code in (("E11", "E11"), ("E05 meaning", "E05"), ("What is E19?", "E19")):
        context = retriever.retrieve(question, max_tokens=60)
        assert f"| {code} |" in context.text


def test_passages_over_the_budget_that_nobody_read_are_filled_in_shortened():
    """The time is up before most passages are read, and the empty context is filled with the first ones."""
    retriever = Retriever.from_texts([f"Hill {n} was green, E{n} says. " * 60 for n in range(9)])
    options = {"max_tokens": 200, "deadline": 1e-6, "fallback_floor": 1.0}
    context = retriever.retrieve("What does E5 mean for herons?", **options)
    assert {p.origin for p in context.passages} == {"fill"}
    assert None in {p.score for p in context.passages}
    assert context.tokens <= 200
