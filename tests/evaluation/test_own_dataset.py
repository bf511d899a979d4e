"""The project's own set."""

import pytest

from meve.errors import DatasetError
from meve.evaluation import EvaluationSet, Question
from meve.evaluation.datasets import read_own
from meve.types import Passage
from tests.evaluation.dataset_files import write_rows

OWN_PASSAGES = [{"id": "o-1", "title": "Paris", "text": "It is in France."}, {"id": "o-2", "title": "", "text": "No."}]
OWN_QUESTION = {
    "id": "oq-1",
    "question": "Where is Paris?",
    "answers": ["France", "in France", "France"],
    "misleading": ["Texas"],
    "gold": ["o-1"],
    "answerable": True,
    "kind": "single",
}


def test_own_set_is_read_from_other_files(tmp_path):
    unanswered = {**OWN_QUESTION, "id": "oq-2", "answers": [], "misleading": [], "gold": [], "answerable": False}
    passages = write_rows(tmp_path / "passages.jsonl", OWN_PASSAGES)
    questions = write_rows(tmp_path / "questions.jsonl", [OWN_QUESTION, unanswered])
    assert read_own(passages, questions) == EvaluationSet(
        name="own",
        passages=(Passage(id="o-1", title="Paris", text="It is in France."), Passage(id="o-2", text="No.")),
        questions=(
            Question(
                id="oq-1",
                text="Where is Paris?",
                gold={"o-1": 1},
                answers=("France", "in France"),
                misleading=("Texas",),
                kind="single",
            ),
            Question(id="oq-2", text="Where is Paris?", answerable=False, kind="single"),
        ),
    )


@pytest.mark.parametrize("field", OWN_QUESTION)
def test_invalid_own_question_is_rejected(field, tmp_path):
    passages = write_rows(tmp_path / "passages.jsonl", OWN_PASSAGES)
    without = {key: value for key, value in OWN_QUESTION.items() if key != field}
    with pytest.raises(DatasetError, match=f"questions.jsonl line 1: the field '{field}' is missing"):
        read_own(passages, write_rows(tmp_path / "questions.jsonl", [without]))
    with pytest.raises(DatasetError, match=f"questions.jsonl line 1: the field '{field}' must be .*, got {{}}"):
        read_own(passages, write_rows(tmp_path / "questions.jsonl", [{**OWN_QUESTION, field: {}}]))


@pytest.mark.parametrize(
    ("gold", "complaint"),
    [
        (["o-9"], "question 'oq-1' names 'o-9', which isn't among the passages"),
        ([], "question 'oq-1' is answerable, but has no gold passage"),
    ],
)
def test_inconsistent_own_question_is_rejected(gold, complaint, tmp_path):
    passages = write_rows(tmp_path / "passages.jsonl", OWN_PASSAGES)
    with pytest.raises(DatasetError, match=complaint):
        read_own(passages, write_rows(tmp_path / "questions.jsonl", [{**OWN_QUESTION, "gold": gold}]))


def test_packaged_own_set_is_consistent():
    dataset = read_own()
    assert dataset.passages
    assert dataset.questions
    assert all(question.answers for question in dataset.questions if question.answerable)


def test_missing_packaged_file_is_rejected(tmp_path, monkeypatch):
    from meve.evaluation.datasets import _assembly

    monkeypatch.setattr(_assembly.resources, "files", lambda package: tmp_path)
    with pytest.raises(DatasetError, match=r"own_passages\.jsonl is missing from this installation of meve"):
        read_own()
