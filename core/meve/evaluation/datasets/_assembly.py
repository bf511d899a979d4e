"""Passages and questions become a set, once they have been found to fit together."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from meve.errors import DatasetError
from meve.evaluation.datasets._rows import Row, unique
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Passage


def passages(rows: Iterable[Row]) -> dict[str, Passage]:
    """Passages by id, from rows {id, title, text}.

    Raises:
        DatasetError: an id given twice, a field that is missing or of the wrong type, a blank text.
    """
    return {
        key: Passage(id=key, title=row.text("title", blank=True), text=row.text("text"))
        for key, row in unique(rows).items()
    }


def answers(*accepted: Iterable[str]) -> tuple[str, ...]:
    """Every accepted answer once, in order."""
    return tuple(dict.fromkeys(answer for each in accepted for answer in each))


def assemble(name: str, among: Mapping[str, Passage], asked: Iterable[tuple[Row, Question]]) -> EvaluationSet:
    """A set, once each question has been found to fit its passages.

    In every set read here a gold passage that its source lacks has no id: `hotpotqa_fullwiki` names such by their
    titles. So each gold id must lead to a passage, without an exception.

    Args:
        name: the set's.
        among: the passages by id.
        asked: the questions, each with the row that it came from.

    Raises:
        DatasetError: a gold passage, or one of a pool, isn't there; a gold passage is outside the question's pool; a
            gold sentence isn't in its passage, or its passage isn't gold; a question is said to be answerable, and no
            passage is gold.
    """
    questions = []
    for row, question in asked:
        _check(row, question, among)
        questions.append(question)
    return EvaluationSet(name=name, passages=tuple(among.values()), questions=tuple(questions))


def _check(row: Row, question: Question, among: Mapping[str, Passage]) -> None:
    for key in (*question.gold, *(question.pool or ())):
        if key not in among:
            raise row.error(f"question {question.id!r} names {key!r}, which isn't among the passages")
    if question.pool is not None and (outside := question.gold.keys() - set(question.pool)):
        raise row.error(f"question {question.id!r} has gold outside its own passages: {', '.join(sorted(outside))}")
    for sentence in question.sentences:
        if sentence.passage_id not in question.gold:
            raise row.error(f"question {question.id!r} has a gold sentence outside its gold: {sentence.passage_id!r}")
        if sentence.text not in among[sentence.passage_id].text:
            raise row.error(
                f"question {question.id!r} has a gold sentence that isn't in {sentence.passage_id!r}: {sentence.text!r}"
            )
    if question.answerable and not question.gold:
        raise row.error(f"question {question.id!r} is answerable, but no passage is gold for it")


@contextmanager
def packaged(name: str, given: Path | None) -> Iterator[Path]:
    """The file given; without one, that of this name which comes with the package."""
    if given is not None:
        yield given
        return
    with resources.as_file(resources.files("meve.evaluation") / "data" / name) as path:
        if not path.is_file():
            raise DatasetError(f"{name} didn't come with this installation of meve: install it anew, or give a file")
        yield path
