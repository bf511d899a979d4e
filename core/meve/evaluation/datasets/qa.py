"""Question answering over passages: HotpotQA, 2WikiMultihopQA, MuSiQue and Natural Questions, in one shape of rows.

A set lies in a folder of its own name: `questions.jsonl` with {id, question, answer, type, gold_passage_ids, …} and
`passages.jsonl.gz` with {id, title, text}.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from meve.evaluation.datasets._assembly import answers, assemble, passages
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.types import EvaluationSet, GoldSentence, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What a set has beyond the shape that all share."""

    more_passages: str = ""
    """A second file of passages."""
    sentences: bool = False
    """Whether rows have `gold_sentences`."""
    aliases: str = ""
    """The field with further accepted answers."""
    answerable: str = ""
    """The field that says whether the passages suffice; without one, they do."""
    closed: bool = False
    """Whether each question is asked of its `context_passage_ids` alone."""


def hotpotqa(root: Path) -> EvaluationSet:
    """HotpotQA's questions, each resting on two passages, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    return _read(root, "hotpotqa", _Layout(sentences=True))


def two_wiki(root: Path) -> EvaluationSet:
    """2WikiMultihopQA's questions over the passages of all of them, and further ones of the same kind.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    return _read(root, "2wiki", _Layout(more_passages="extra_passages.jsonl.gz", sentences=True))


def musique(root: Path) -> EvaluationSet:
    """MuSiQue's questions, each resting on two to four passages, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    return _read(root, "musique", _Layout(aliases="answer_aliases", answerable="answerable"))


def nq_open(root: Path) -> EvaluationSet:
    """Questions that people asked a search engine, each resting on one passage, over the passages of all of them.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    return _read(root, "nq_open", _Layout(aliases="answers"))


def hotpotqa_fullwiki(root: Path) -> EvaluationSet:
    """HotpotQA's questions, each over ten passages that a search brought; often they don't hold all it takes.

    Gold that the search missed has no passage, so that a question that isn't answerable has less gold, or none.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    return _read(root, "hotpotqa_fullwiki", _Layout(sentences=True, answerable="gold_complete", closed=True))


def _read(root: Path, name: str, layout: _Layout) -> EvaluationSet:
    folder = root / name
    rows = read(folder / "passages.jsonl.gz")
    if layout.more_passages:
        rows = chain(rows, read(folder / layout.more_passages))
    return assemble(name, passages(rows), _questions(folder / "questions.jsonl", layout))


def _questions(file: Path, layout: _Layout) -> Iterator[tuple[Row, Question]]:
    for key, row in unique(read(file)).items():
        yield (
            row,
            Question(
                id=key,
                text=row.text("question"),
                gold=dict.fromkeys(row.texts("gold_passage_ids"), 1),
                sentences=_sentences(row) if layout.sentences else (),
                answers=answers([row.text("answer")], row.texts(layout.aliases) if layout.aliases else ()),
                answerable=row.flag(layout.answerable) if layout.answerable else True,
                pool=row.texts("context_passage_ids") if layout.closed else None,
                kind=row.text("type"),
            ),
        )


def _sentences(row: Row) -> tuple[GoldSentence, ...]:
    return tuple(
        GoldSentence(passage_id=each.text("passage_id"), text=each.text("text")) for each in row.rows("gold_sentences")
    )
