"""Reader of the project's own set: passages and questions that come with the package."""

from collections.abc import Iterator
from pathlib import Path

from meve.evaluation.datasets._assembly import build_set, packaged_file, read_passages, unique_answers
from meve.evaluation.datasets._rows import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, Question

PASSAGES, QUESTIONS = "own_passages.jsonl", "own_questions.jsonl"


def read_own(passages: Path | None = None, questions: Path | None = None) -> EvaluationSet:
    """Return the package's questions over the package's passages.

    Args:
        passages: another file with rows {id, title, text}.
        questions: another file with rows {id, question, answers, misleading, gold, answerable, kind}.

    Raises:
        DatasetError: a file is absent, truncated, of another format, or inconsistent with the other.
    """
    with packaged_file(PASSAGES, passages) as file:
        corpus = read_passages(read_rows(file))
    with packaged_file(QUESTIONS, questions) as file:
        return build_set("own", corpus, _questions(file))


def _questions(file: Path) -> Iterator[tuple[Row, Question]]:
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
