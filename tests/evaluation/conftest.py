import pytest

from meve.evaluation import statistics
from tests.evaluation.dataset_files import write_rows


@pytest.fixture
def few_draws(monkeypatch):
    """Intervals of little use, made quickly: for tests that look at means."""
    monkeypatch.setattr(statistics, "RESAMPLES", 20)


@pytest.fixture
def data(tmp_path):
    """A folder of sets to tell: twelve questions over two paragraphs each, a chat room, and a conversation."""
    passages, questions = [], []
    for n in range(12):
        for k, text in enumerate(
            (f"City{n} lies in Land{n}. It is old.", f"Person{n} was born in City{n} in 19{n + 10}.")
        ):
            starts = [0, text.index("It")] if "It" in text else [0]
            passages.append({"id": f"p{n}-{k}", "title": "T", "text": text, "sent_starts": starts})
        gold = [{"passage_id": f"p{n}-1", "sent_idx": 0, "text": passages[-1]["text"]}]
        questions.append(
            {"id": f"q{n}", "question": f"When was Person{n} born?", "answer": f"19{n + 10}", "type": "x",
             "gold_sentences": gold, "context_passage_ids": [f"p{n}-0", f"p{n}-1"]}
        )  # fmt: skip
    write_rows(tmp_path / "2wiki" / "passages.jsonl.gz", passages)
    write_rows(tmp_path / "2wiki" / "questions.jsonl", questions)
    chat = [{"speaker": "bob", "text": f"eve: so it goes{'o' * (n % 7)}", "system": False} for n in range(400)]
    chat += [{"speaker": "eve", "text": "bob, ", "system": False}, {"speaker": "", "text": "<left>", "system": True}]
    chat += [{"speaker": "eve", "text": "see you in Oslo", "system": False}]
    write_rows(tmp_path / "irc" / "messages.jsonl.gz", chat)
    turns = [
        {"dia_id": f"D1:{n}", "speaker": "Ana" if n % 2 else "Bo", "text": f"we saw {n} zebras"} for n in range(30)
    ]
    session = {"session_id": 1, "timestamp": "2024-02-15T11:01:00", "turns": turns}
    write_rows(tmp_path / "locomo" / "conversations.jsonl", [{"conversation_id": "c", "sessions": [session]}])
    question_row = {"conversation_id": "c", "question": "How many zebras?", "category_name": "single", "category": 1}
    write_rows(
        tmp_path / "locomo" / "questions.jsonl",
        [
            {**question_row, "id": "a", "answer": 7, "evidence": ["D1:7"]},
            {**question_row, "id": "b", "answer": "8", "evidence": ["D1:7"], "audit": {"correct_evidence": ["D1:8"]}},
            {**question_row, "id": "adversarial", "answer": "7", "evidence": ["D1:7"], "category": 5},
            {**question_row, "id": "lost", "answer": "7", "evidence": ["D9:9"]},
        ],
    )
    return tmp_path
