"""Test the pictures of a trace: what they show, and that foreign text stays text."""

from xml.etree import ElementTree

import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

SKY = ["The sky is blue.", "The blue sky is bright.", "Grass is green.", "Blue whales swim.", "The sea is blue."]
PARTS = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
SCRIPT = "</text><script>alert('&')</script>\x00\x1b\ud800"


@pytest.fixture(scope="module")
def retriever():
    return Retriever.from_texts(SKY, **PARTS)


def rows_of(svg):
    """Return the texts of each row, and the text of its tooltip."""
    root = ElementTree.fromstring(svg)
    return [["".join(each.itertext()) for each in group] for group in root.iter("{http://www.w3.org/2000/svg}g")]


@pytest.mark.parametrize("mode", ["full", "no_verification", "no_fallback", "standard_rag", "no_rag"])
@pytest.mark.parametrize("question", ["Is the sky blue?", "Who won?"])
def test_every_candidate_has_a_row_with_its_place_or_the_reason_why_it_was_dropped(retriever, question, mode):
    trace = retriever.retrieve(question, max_tokens=9, mode=mode).trace
    rows = rows_of(trace.to_svg())
    assert len(rows) == len(trace.candidates)
    by_id = {row[1]: row for row in rows}
    for candidate in trace.candidates:
        row = by_id[candidate.id]
        assert row[-1].startswith(candidate.reason.partition(":")[0].replace("_", " "))
        assert candidate.rank is None or str(candidate.rank) in row


def test_kept_candidates_come_first_and_those_dropped_first_are_left_out(retriever):
    trace = retriever.retrieve("Is the sky blue?", max_tokens=9).trace
    svg = trace.to_svg(max_candidates=2)
    assert rows_of(svg)[0][1] == trace.candidates[0].id
    assert f"and {len(trace.candidates) - 2} more" in svg
    with pytest.raises(ConfigurationError, match="max_candidates must be at least 1, got 0"):
        trace.to_html(max_candidates=0)


def test_passages_of_one_title_are_named_by_their_beginnings():
    texts = ("The sky is blue.", "Clouds in the sky are white.")
    retriever = Retriever.empty(**PARTS)
    retriever.add([Passage(id=f"{n}", title="Sky", text=text) for n, text in enumerate(texts)])
    html = retriever.retrieve("Is the sky blue?").to_html()
    drawn = [row[1] for row in rows_of(html[html.index("<svg") : html.index("</svg>") + 6])]
    assert sorted(drawn) == sorted(texts)


def test_foreign_text_stays_text_and_nothing_is_loaded():
    retriever = Retriever.from_texts(SKY, **PARTS)
    context = retriever.retrieve("Is the sky blue?")
    labels = {candidate.id: SCRIPT for candidate in context.trace.candidates}
    for picture in (context.trace.to_svg(labels=labels), context.trace.to_html(labels=labels)):
        drawn = picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not [each for each in ("<script", "\x00", "\ud800", "http", "url(", "href") if each in drawn]
    forged = Retriever.from_texts([f"The sky is blue. {SCRIPT[:-1]}"], **PARTS).retrieve("Is the <script>sky blue?")
    assert "<script" not in forged.to_html()


def test_picture_of_a_context_shows_its_text_and_that_of_a_trace_does_not(retriever):
    context = retriever.retrieve("Is the sky blue?")
    assert all(text in context._repr_html_() for text in ("Is the sky blue?", "The sky is blue."))
    assert "sky" not in context.trace._repr_html_()


def test_html_says_why_a_context_is_not_sufficient():
    context = Retriever.from_texts(SKY).retrieve("Who won the world cup in 1974?")
    assert not context.sufficient
    assert f"Not sufficient: {context.trace.sufficiency['reason']}" in context.trace.to_html()
