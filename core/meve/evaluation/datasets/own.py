"""The project's own set: passages and questions that come with the package."""

from collections.abc import Iterator
from pathlib import Path

from meve.evaluation.datasets._assembly import answers, assemble, packaged
from meve.evaluation.datasets._assembly import passages as read_passages
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.types import EvaluationSet, Question

PASSAGES, QUESTIONS = "own_passages.jsonl", "own_questions.jsonl"


def own(passages: Path | None = None, questions: Path | None = None) -> EvaluationSet:
    """The questions that come with the package, over the passages that do.

    Args:
        passages: rows {id, title, text} of another file.
        questions: rows {id, question, answers, misleading, gold, answerable, kind} of another file.

    Raises:
        DatasetError: a file is absent, cut short, of another format, or at odds with the other.
    """
    with packaged(PASSAGES, passages) as file:
        among = read_passages(read(file))
    with packaged(QUESTIONS, questions) as file:
        return assemble("own", among, _questions(file))


def _questions(file: Path) -> Iterator[tuple[Row, Question]]:
    for key, row in unique(read(file)).items():
        yield (
            row,
            Question(
                id=key,
                text=row.text("question"),
                gold=dict.fromkeys(row.texts("gold"), 1),
                answers=answers(row.texts("answers")),
                misleading=answers(row.texts("misleading")),
                answerable=row.flag("answerable"),
                kind=row.text("kind"),
            ),
        )
