"""Reader of RGB's counterfactual questions, whose passages have the right answer, a falsified one, or none."""

from collections.abc import Iterator
from pathlib import Path

from meve.evaluation.datasets._assembly import build_set, unique_answers
from meve.evaluation.datasets._row_reader import Row, index_rows, read_rows
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Passage


def read_rgb(root: Path) -> EvaluationSet:
    """Return questions over passages of their own, from `rgb_counterfactual/questions.jsonl`.

    Passage ids begin with the question's: `rgbf-001/positive/0`, `…/wrong/0` and `…/negative/0`. Equal texts of a
    question become one passage, labelled right if one of them is, else falsified if one is.

    Raises:
        DatasetError: the set is absent, truncated, of another format, or inconsistent.
    """
    passages: dict[str, Passage] = {}
    questions: list[tuple[Row, Question]] = []
    for key, row in index_rows(read_rows(root / "rgb_counterfactual" / "questions.jsonl")).items():
        pool = {passage.id: passage for passage in _passages(key, row)}
        passages |= pool
        question = Question(
            id=key,
            text=row.text("question"),
            gold={each: 1 for each in pool if each.startswith(f"{key}/positive/")},
            answers=unique_answers(_accepted(row)),
            misleading=(row.text("fake_answer"),),
            pool=tuple(pool),
        )
        questions.append((row, question))
    return build_set("rgb", passages, questions)


def _passages(key: str, row: Row) -> Iterator[Passage]:
    seen: set[str] = set()
    for name, field in (("positive", "positive"), ("wrong", "positive_wrong"), ("negative", "negative")):
        for at, text in enumerate(row.texts(field)):
            if text not in seen:
                seen.add(text)
                yield Passage(id=f"{key}/{name}/{at}", text=text)


def _accepted(row: Row) -> tuple[str, ...]:
    """Return the accepted forms of the answer: `answer` is a text, or a list with one list of texts.

    A second list would be a second thing that a right answer must name; no question here has one.
    """
    value = row.values.get("answer")
    if not isinstance(value, list):
        return (row.text("answer"),)
    if len(value) != 1 or not isinstance(value[0], list):
        raise row.field_error("answer", f"must be a text, or a list with one list of texts, got {value!r:.80}")
    forms = Row(file=row.file, line=row.line, values={"answer[0]": value[0]}).texts("answer[0]")
    if not forms:
        raise row.field_error("answer[0]", "is empty: it must have at least one text")
    return forms
