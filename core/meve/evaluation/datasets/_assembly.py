"""Builds a set of passages and questions, after checking that they are consistent."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from meve.errors import DatasetError
from meve.evaluation.datasets._row_reader import Row, index_rows
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Passage


def read_passages(rows: Iterable[Row]) -> dict[str, Passage]:
    """Return passages by id, from rows {id, title, text}.

    Raises:
        DatasetError: a duplicate id, a field that is missing or of the wrong type, or a blank text.
    """
    return {
        key: Passage(id=key, title=row.text("title", blank=True), text=row.text("text"))
        for key, row in index_rows(rows).items()
    }


def unique_answers(*accepted: Iterable[str]) -> tuple[str, ...]:
    """Return every accepted answer once, in order."""
    return tuple(dict.fromkeys(answer for each in accepted for answer in each))


def build_set(name: str, passages: Mapping[str, Passage], questions: Iterable[tuple[Row, Question]]) -> EvaluationSet:
    """Return a set after checking each question against the passages.

    Each gold id must be that of a passage. (`hotpotqa_fullwiki` has gold passages that its source lacks; they have no
    ids.)

    Args:
        name: the set's name.
        passages: the passages by id.
        questions: the questions, each with the row that it came from.

    Raises:
        DatasetError: a passage of a question's gold or pool is missing; a gold passage is outside the pool; a gold
            sentence isn't in its passage, or its passage isn't gold; an answerable question has no gold.
    """
    checked = []
    for row, question in questions:
        _check(row, question, passages)
        checked.append(question)
    return EvaluationSet(name=name, passages=tuple(passages.values()), questions=tuple(checked))


def _check(row: Row, question: Question, passages: Mapping[str, Passage]) -> None:
    for key in (*question.gold, *(question.pool or ())):
        if key not in passages:
            raise row.error(f"question {question.id!r} names {key!r}, which isn't among the passages")
    if question.pool is not None and (outside := question.gold.keys() - set(question.pool)):
        raise row.error(f"question {question.id!r} has gold outside its own passages: {', '.join(sorted(outside))}")
    for sentence in question.sentences:
        if sentence.passage_id not in question.gold:
            raise row.error(f"question {question.id!r} has a gold sentence outside its gold: {sentence.passage_id!r}")
        if sentence.text not in passages[sentence.passage_id].text:
            raise row.error(
                f"question {question.id!r} has a gold sentence that isn't in {sentence.passage_id!r}: {sentence.text!r}"
            )
    if question.answerable and not question.gold:
        raise row.error(f"question {question.id!r} is answerable, but has no gold passage")


@contextmanager
def packaged_file(name: str, file: Path | None) -> Iterator[Path]:
    """Yield the given file, or else the file of this name that comes with the package."""
    if file is not None:
        yield file
        return
    with resources.as_file(resources.files("meve.evaluation") / "data" / name) as path:
        if not path.is_file():
            raise DatasetError(f"{name} is missing from this installation of meve: reinstall it, or give a file")
        yield path
