"""RGB's counterfactual questions: some passages give the right answer, some give it falsified, some give none."""

from collections.abc import Iterator
from pathlib import Path

from meve.evaluation.datasets._assembly import answers, assemble
from meve.evaluation.datasets._rows import Row, read, unique
from meve.evaluation.types import EvaluationSet, Question
from meve.types import Passage


def rgb(root: Path) -> EvaluationSet:
    """Questions, each over passages of its own: `rgb_counterfactual/questions.jsonl`.

    Passages are called after their question, such as `rgbf-001/positive/0`, `…/wrong/0` and `…/negative/0`. A text
    that a question has twice becomes one passage: a right one before a falsified one before one without an answer.

    Raises:
        DatasetError: the set is absent, cut short, of another format, or at odds with itself.
    """
    among: dict[str, Passage] = {}
    asked: list[tuple[Row, Question]] = []
    for key, row in unique(read(root / "rgb_counterfactual" / "questions.jsonl")).items():
        pool = {passage.id: passage for passage in _passages(key, row)}
        among |= pool
        question = Question(
            id=key,
            text=row.text("question"),
            gold={each: 1 for each in pool if each.startswith(f"{key}/positive/")},
            answers=answers(_accepted(row)),
            misleading=(row.text("fake_answer"),),
            pool=tuple(pool),
        )
        asked.append((row, question))
    return assemble("rgb", among, asked)


def _passages(key: str, row: Row) -> Iterator[Passage]:
    seen: set[str] = set()
    for name, field in (("positive", "positive"), ("wrong", "positive_wrong"), ("negative", "negative")):
        for at, text in enumerate(row.texts(field)):
            if text not in seen:
                seen.add(text)
                yield Passage(id=f"{key}/{name}/{at}", text=text)


def _accepted(row: Row) -> tuple[str, ...]:
    """`answer` is a text, or a list that holds one list: the forms that the answer may take.

    A second list would be a second thing that a right answer must name; no question here has one.
    """
    found = row.values.get("answer")
    if not isinstance(found, list):
        return (row.text("answer"),)
    if len(found) != 1 or not isinstance(found[0], list):
        raise row.wrong("answer", f"holds {found!r:.80}: a text, or a list of one list of texts, is wanted")
    forms = Row(file=row.file, line=row.line, values={"answer[0]": found[0]}).texts("answer[0]")
    if not forms:
        raise row.wrong("answer[0]", "is empty: at least one text is wanted")
    return forms
