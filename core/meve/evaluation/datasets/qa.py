"""Readers of question-answering sets: HotpotQA, 2WikiMultihopQA, MuSiQue and Natural Questions.

A set is in a folder of its own name: `questions.jsonl` with {id, question, answer, type, gold_passage_ids, …} and
`passages.jsonl.gz` with {id, title, text}.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from meve.evaluation.datasets._assembly import build_set, read_passages, unique_answers
from meve.evaluation.datasets._rows import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, GoldSentence, Question


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


def read_hotpotqa(root: Path) -> EvaluationSet:
    """Return HotpotQA's questions, each needing two passages, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    return _read(root, "hotpotqa", _Layout(sentences=True))


def read_2wiki(root: Path) -> EvaluationSet:
    """Return 2WikiMultihopQA's questions over the passages of all of them and further passages.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    return _read(root, "2wiki", _Layout(more_passages="extra_passages.jsonl.gz", sentences=True))


def read_musique(root: Path) -> EvaluationSet:
    """Return MuSiQue's questions, each needing two to four passages, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    return _read(root, "musique", _Layout(aliases="answer_aliases", answerable="answerable"))


def read_nq_open(root: Path) -> EvaluationSet:
    """Return questions asked to a search engine, each needing one passage, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    return _read(root, "nq_open", _Layout(aliases="answers"))


def read_hotpotqa_fullwiki(root: Path) -> EvaluationSet:
    """Return HotpotQA's questions, each over ten passages from a search, which may miss gold passages.

    Gold passages that the search missed aren't in the set, so that an unanswerable question has less gold, or none.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    return _read(root, "hotpotqa_fullwiki", _Layout(sentences=True, answerable="gold_complete", has_pools=True))


def _read(root: Path, name: str, layout: _Layout) -> EvaluationSet:
    folder = root / name
    rows = read_rows(folder / "passages.jsonl.gz")
    if layout.more_passages:
        rows = chain(rows, read_rows(folder / layout.more_passages))
    return build_set(name, read_passages(rows), _questions(folder / "questions.jsonl", layout))


def _questions(file: Path, layout: _Layout) -> Iterator[tuple[Row, Question]]:
    for key, row in index_rows(read_rows(file)).items():
        yield (
            row,
            Question(
                id=key,
                text=row.text("question"),
                gold=dict.fromkeys(row.texts("gold_passage_ids"), 1),
                sentences=_sentences(row) if layout.sentences else (),
                answers=unique_answers([row.text("answer")], row.texts(layout.aliases) if layout.aliases else ()),
                answerable=row.flag(layout.answerable) if layout.answerable else True,
                pool=row.texts("context_passage_ids") if layout.has_pools else None,
                kind=row.text("type"),
            ),
        )


def _sentences(row: Row) -> tuple[GoldSentence, ...]:
    return tuple(
        GoldSentence(passage_id=each.text("passage_id"), text=each.text("text")) for each in row.rows("gold_sentences")
    )
