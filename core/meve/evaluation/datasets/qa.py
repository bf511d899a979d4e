"""Readers of question-answering sets: HotpotQA, 2WikiMultihopQA, MuSiQue, Natural Questions and our own.

A set is in a folder of its own name: `questions.jsonl` with {id, question, answer, type, gold_passage_ids, …} and
`passages.jsonl.gz` with {id, title, text}.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from meve.evaluation.datasets._assembly import build_set, packaged_file, read_passages, unique_answers
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, GoldSentence, Question

OWN_PASSAGES, OWN_QUESTIONS = "own_passages.jsonl", "own_questions.jsonl"
"""The files of the set that comes with the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A set's files and fields beyond those that all share."""

    more_passages: str = ""
    """A second file of passages."""
    sentences: bool = False
    """Whether rows have `gold_sentences`."""
    aliases: str = ""
    """The field with further accepted answers."""
    answerable: str = ""
    """The field for whether the passages suffice; empty if they always do."""
    has_pools: bool = False
    """Whether each question chooses only from its `context_passage_ids`."""


LAYOUTS: Mapping[str, _Layout] = {
    "hotpotqa": _Layout(sentences=True),
    "2wiki": _Layout(more_passages="extra_passages.jsonl.gz", sentences=True),
    "musique": _Layout(aliases="answer_aliases", answerable="answerable"),
    "nq_open": _Layout(aliases="answers"),
    # gold passages that the search missed aren't in the set: an unanswerable question has less gold, or none
    "hotpotqa_fullwiki": _Layout(sentences=True, answerable="gold_complete", has_pools=True),
}


def read_qa(name: str, root: Path) -> EvaluationSet:
    """Return a set of `LAYOUTS`: its questions over the passages of all of them, or over pools.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    folder, layout = root / name, LAYOUTS[name]
    rows = read_rows(folder / "passages.jsonl.gz")
    if layout.more_passages:
        rows = chain(rows, read_rows(folder / layout.more_passages))
    return build_set(name, read_passages(rows), _qa_questions(folder / "questions.jsonl", layout))


def _qa_questions(file: Path, layout: _Layout) -> Iterator[tuple[Row, Question]]:
    for row in index_rows(read_rows(file)).values():
        yield (
            row,
            Question(
                id=row.text("id"),
                text=row.text("question"),
                gold=dict.fromkeys(row.texts("gold_passage_ids"), 1),
                sentences=read_gold_sentences(row) if layout.sentences else (),
                answers=unique_answers([row.text("answer")], row.texts(layout.aliases) if layout.aliases else ()),
                answerable=row.flag(layout.answerable) if layout.answerable else True,
                pool=row.texts("context_passage_ids") if layout.has_pools else None,
                kind=row.text("type"),
            ),
        )


def read_gold_sentences(row: Row) -> tuple[GoldSentence, ...]:
    """Return the sentences of a row's `gold_sentences`."""
    return tuple(
        GoldSentence(passage_id=each.text("passage_id"), text=each.text("text")) for each in row.rows("gold_sentences")
    )


def read_own(passages: Path | None = None, questions: Path | None = None) -> EvaluationSet:
    """Return the package's questions over the package's passages.

    Args:
        passages: another file with rows {id, title, text}.
        questions: another file with rows {id, question, answers, misleading, gold, answerable, kind}.

    Raises:
        DatasetError: a file is absent, truncated, of another format, or inconsistent with the other.
    """
    with packaged_file(OWN_PASSAGES, passages) as file:
        corpus = read_passages(read_rows(file))
    with packaged_file(OWN_QUESTIONS, questions) as file:
        return build_set("own", corpus, _own_questions(file))


def _own_questions(file: Path) -> Iterator[tuple[Row, Question]]:
    for key, row in index_rows(read_rows(file)).items():
        yield (
            row,
            Question(
                id=key,
                text=row.text("question"),
                gold=dict.fromkeys(row.texts("gold"), 1),
                answers=unique_answers(row.texts("answers")),
                misleading=unique_answers(row.texts("misleading")),
                answerable=row.flag("answerable"),
                kind=row.text("kind"),
            ),
        )
