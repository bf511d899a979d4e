"""Public sets, read from their files, and every error in the files."""

import gzip
import json
import os
import pickle
import re
import zlib

import pytest

from meve.errors import DatasetError, EvaluationError
from meve.evaluation import EvaluationSet
from meve.evaluation.datasets import SETS, read_set
from tests.evaluation.dataset_files import EXPECTED, FILES, MOON, QA, SUN, write_rows, write_set


def error_message(name, root):
    with pytest.raises(DatasetError) as caught:
        read_set(name, root)
    return str(caught.value)


def test_every_set_has_a_small_instance():
    assert list(SETS) == ["hotpotqa", "2wiki", "musique", "nq_open", "nfcorpus", "scifact", "hotpotqa_fullwiki", "rgb"]
    assert set(FILES) == set(EXPECTED) == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_set_is_read_as_questions_over_passages(name, tmp_path):
    passages, questions = EXPECTED[name]
    dataset = read_set(name, write_set(tmp_path, name))
    assert dataset == EvaluationSet(name=name, passages=passages, questions=questions)
    assert dataset.has_pools is (name in {"hotpotqa_fullwiki", "rgb"})


def test_blank_lines_are_skipped_but_counted(tmp_path):
    write_set(tmp_path, "hotpotqa", {"hotpotqa/questions.jsonl": ["", QA, "  ", {**QA, "id": 7}]})
    message = error_message("hotpotqa", tmp_path)
    assert message == f"{tmp_path}/hotpotqa/questions.jsonl line 4: the field 'id' must be a text, got 7"


def test_unknown_name_is_rejected_with_the_known_ones(tmp_path):
    message = error_message("squad", tmp_path)
    assert message == f"unknown set 'squad': choose from {', '.join((*SETS, 'own'))}"


@pytest.mark.parametrize("name", SETS)
def test_absent_set_is_rejected_by_its_folder(name, tmp_path):
    folder = tmp_path / next(iter(FILES[name])).partition("/")[0]
    assert error_message(name, tmp_path) == (
        f"there is no folder {folder}: name the folder with all sets with --data DIR"
    )


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, files in FILES.items() for path in files])
class TestEachFile:
    """Each file of each set."""

    def test_absent_file_is_rejected(self, name, path, tmp_path):
        (write_set(tmp_path, name) / path).unlink()
        file = tmp_path / path
        (file.parent / "keep").touch()
        assert error_message(name, tmp_path) == (
            f"{file.parent} has no file {file.name}: get it, or name another folder with --data DIR"
        )

    def test_empty_file_is_rejected(self, name, path, tmp_path):
        file = write_set(tmp_path, name) / path
        file.write_bytes(b"")
        assert error_message(name, tmp_path) == f"{file} has no rows: get it again"

    def test_truncated_line_is_rejected(self, name, path, tmp_path):
        rows = [json.dumps(row) for row in FILES[name][path]]
        write_set(tmp_path, name, {path: [*rows, rows[0][:9]]})
        message = error_message(name, tmp_path)
        assert message.startswith(f"{tmp_path / path} line {len(rows) + 1}: not JSON: ")
        assert message.endswith("; if the file is truncated, get it again")

    def test_line_without_object_is_rejected(self, name, path, tmp_path):
        write_set(tmp_path, name, {path: ["[1, 2]"]})
        assert f"{tmp_path / path} line 1: expected a JSON object, got list" in error_message(name, tmp_path)

    def test_duplicate_id_is_rejected(self, name, path, tmp_path):
        rows = FILES[name][path]
        write_set(tmp_path, name, {path: [*rows, rows[0]]})
        message = error_message(name, tmp_path)
        if path.endswith("qrels.jsonl"):
            assert message == f"{tmp_path / path} line 4: query 'n3' and 'p-sun' are also judged on an earlier line"
        else:
            file = tmp_path / path
            key = rows[0]["id"]
            assert message == f"{file} line {len(rows) + 1}: the id {key!r} is also in {file} line 1"


PASSAGE = ("id", "title", "text")
ASKED = ("id", "question", "answer", "type", "gold_passage_ids")
FIELDS = {
    "hotpotqa/passages.jsonl.gz": PASSAGE,
    "hotpotqa/questions.jsonl": (*ASKED, "gold_sentences"),
    "2wiki/passages.jsonl.gz": PASSAGE,
    "2wiki/extra_passages.jsonl.gz": PASSAGE,
    "2wiki/questions.jsonl": (*ASKED, "gold_sentences"),
    "musique/passages.jsonl.gz": PASSAGE,
    "musique/questions.jsonl": (*ASKED, "answer_aliases", "answerable"),
    "nq_open/passages.jsonl.gz": PASSAGE,
    "nq_open/questions.jsonl": (*ASKED, "answers"),
    "hotpotqa_fullwiki/passages.jsonl.gz": PASSAGE,
    "hotpotqa_fullwiki/questions.jsonl": (*ASKED, "gold_sentences", "context_passage_ids", "gold_complete"),
    "rgb_counterfactual/questions.jsonl": (
        "id",
        "question",
        "answer",
        "fake_answer",
        "positive",
        "positive_wrong",
        "negative",
    ),
    "scifact/corpus.jsonl.gz": (*PASSAGE, "sent_starts"),
    "scifact/claims.jsonl": ("id", "claim", "evidence"),
    "nfcorpus/corpus.jsonl.gz": PASSAGE,
    "nfcorpus/queries.jsonl": ("id", "text"),
    "nfcorpus/qrels.jsonl": ("query_id", "doc_id", "relevance"),
}
"""Every field that is read, by file."""


NAME = {path: name for name, files in FILES.items() for path in files}


@pytest.mark.parametrize(("path", "field"), [(path, field) for path in NAME for field in FIELDS[path]])
def test_missing_or_mistyped_field_is_rejected_by_name(path, field, tmp_path):
    name = NAME[path]
    write_set(tmp_path, name)
    first, *others = FILES[name][path]
    at = f"{tmp_path / path} line 1: the field {field!r}"
    write_rows(tmp_path / path, [{key: value for key, value in first.items() if key != field}, *others])
    assert re.fullmatch(rf"{re.escape(at)} is missing: it must be .*", error_message(name, tmp_path))
    write_rows(tmp_path / path, [{**first, field: {"x": "é"}}, *others])
    assert re.fullmatch(rf"{re.escape(at)} must be .*, got {{\"x\": \"é\"}}", error_message(name, tmp_path))


QUESTIONS, PASSAGES, RGB = (
    "hotpotqa/questions.jsonl",
    "hotpotqa/passages.jsonl.gz",
    "rgb_counterfactual/questions.jsonl",
)
QRELS, CLAIMS, CORPUS = "nfcorpus/qrels.jsonl", "scifact/claims.jsonl", "scifact/corpus.jsonl.gz"


def evidence(**changes):
    """A claim's."""
    return {"evidence": [{"doc_id": "p-moon", "label": "SUPPORT", "sentences": [0], **changes}]}


@pytest.mark.parametrize(
    ("path", "changes", "complaint"),
    [
        (QUESTIONS, {"id": None}, "'id' must be a text, got null"),
        (QUESTIONS, {"id": 5}, "'id' must be a text, got 5"),
        (QUESTIONS, {"question": " \n"}, "'question' is blank: it must be a text"),
        (QUESTIONS, {"gold_passage_ids": "p"}, "'gold_passage_ids' must be a list, got \"p\""),
        (QUESTIONS, {"gold_passage_ids": ["p", 3]}, "'gold_passage_ids[1]' must be a text, got 3"),
        (QUESTIONS, {"gold_passage_ids": ["p", ""]}, "'gold_passage_ids[1]' is blank: it must be a text"),
        (QUESTIONS, {"gold_sentences": ["It."]}, "'gold_sentences[0]' must be an object, got \"It.\""),
        (
            QUESTIONS,
            {"gold_sentences": [QA["gold_sentences"][0], {"passage_id": "p-moon"}]},
            "'gold_sentences[1].text' is missing: it must be a text",
        ),
        (
            QUESTIONS,
            {"gold_sentences": [{"passage_id": 1, "text": "It."}]},
            "'gold_sentences[0].passage_id' must be a text, got 1",
        ),
        (QUESTIONS, {"answer": ["n" * 100]}, f"'answer' must be a text, got [\"{'n' * 78}…"),
        (PASSAGES, {"text": " "}, "'text' is blank: it must be a text"),
        ("musique/questions.jsonl", {"answerable": 1}, "'answerable' must be true or false, got 1"),
        (QRELS, {"relevance": True}, "'relevance' must be a whole number, got true"),
        (QRELS, {"relevance": 1.0}, "'relevance' must be a whole number, got 1.0"),
        (QRELS, {"relevance": 0}, "'relevance' must be at least 1, got 0"),
        (CLAIMS, evidence(doc_id="p"), "'evidence[0].doc_id' names 'p', which isn't among the passages"),
        (CLAIMS, evidence(label="PERHAPS"), "'evidence[0].label' must be SUPPORT or CONTRADICT, got 'PERHAPS'"),
        (CLAIMS, evidence(sentences=[2]), "'evidence[0].sentences' names sentence 2 of 'p-moon', which has 2"),
        (CLAIMS, evidence(sentences=[-1]), "'evidence[0].sentences' names sentence -1 of 'p-moon', which has 2"),
        (CLAIMS, evidence(sentences=[True]), "'evidence[0].sentences[0]' must be a whole number, got true"),
        *(
            (
                CORPUS,
                {"sent_starts": starts},
                "'sent_starts' must rise within the text's 32 characters, without blank sentences",
            )
            for starts in ([-1, 21], [-32, 21], [21, 0], [0, 0], [0, 32], [0, 20, 21], [99])
        ),
        *(
            (RGB, {"answer": answer}, f"'answer' must be a text, or a list with one list of texts, got {answer}")
            for answer in (["Ada", "Bob"], [["Ada"], ["Bob"]], [])
        ),
        (RGB, {"answer": [[]]}, "'answer[0]' is empty: it must have at least one text"),
        (RGB, {"answer": [[4]]}, "'answer[0][0]' must be a text, got 4"),
        (RGB, {"positive": [" "]}, "'positive[0]' is blank: it must be a text"),
    ],
)
def test_invalid_field_is_rejected_by_name(path, changes, complaint, tmp_path):
    rows = FILES[NAME[path]][path]
    write_set(tmp_path, NAME[path], {path: [{**rows[0], **changes}, *rows[1:]]})
    assert error_message(NAME[path], tmp_path) == f"{tmp_path / path} line 1: the field {complaint}"


@pytest.mark.parametrize(
    ("name", "changes", "complaint"),
    [
        (
            "hotpotqa",
            {"gold_passage_ids": ["p-moon", "p-pluto"]},
            "question 'q1' names 'p-pluto', which isn't among the passages",
        ),
        ("hotpotqa", {"gold_passage_ids": []}, "question 'q1' has a gold sentence outside its gold: 'p-moon'"),
        (
            "hotpotqa",
            {"gold_passage_ids": [], "gold_sentences": []},
            "question 'q1' is answerable, but has no gold passage",
        ),
        (
            "hotpotqa",
            {"gold_sentences": [{"passage_id": "p-moon", "text": "It is green."}]},
            "question 'q1' has a gold sentence that isn't in 'p-moon': 'It is green.'",
        ),
        ("musique", {"gold_passage_ids": []}, "question 'q1' is answerable, but has no gold passage"),
        ("nq_open", {"gold_passage_ids": []}, "question 'q1' is answerable, but has no gold passage"),
        (
            "hotpotqa_fullwiki",
            {"context_passage_ids": ["p-moon", "p-pluto"]},
            "question 'q1' names 'p-pluto', which isn't among the passages",
        ),
        (
            "hotpotqa_fullwiki",
            {"context_passage_ids": ["p-mars"]},
            "question 'q1' has gold outside its own passages: p-moon",
        ),
        ("rgb", {"positive": []}, "question 'r-1' is answerable, but has no gold passage"),
        ("nfcorpus", {"query_id": "n9"}, "the query 'n9' isn't among the queries"),
        ("nfcorpus", {"doc_id": "p-pluto"}, "query 'n3' names 'p-pluto', which isn't among the passages"),
    ],
)
def test_inconsistent_question_is_rejected(name, changes, complaint, tmp_path):
    path = list(FILES[name])[-1]
    rows = FILES[name][path]
    write_set(tmp_path, name, {path: [{**rows[0], **changes}, *rows[1:]]})
    assert error_message(name, tmp_path) == f"{tmp_path / path} line 1: {complaint}"


def test_passage_in_both_files_of_2wiki_is_rejected(tmp_path):
    write_set(tmp_path, "2wiki", {"2wiki/extra_passages.jsonl.gz": [SUN, MOON]})
    folder = tmp_path / "2wiki"
    assert error_message("2wiki", tmp_path) == (
        f"{folder}/extra_passages.jsonl.gz line 2: the id 'p-moon' is also in {folder}/passages.jsonl.gz line 1"
    )


def test_scifact_claim_can_have_both_labels(tmp_path):
    both = [
        {"doc_id": "p-mars", "label": "SUPPORT", "sentences": [0]},
        {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [1]},
    ]
    claim = {**FILES["scifact"]["scifact/claims.jsonl"][0], "evidence": both}
    (question,) = read_set("scifact", write_set(tmp_path, "scifact", {"scifact/claims.jsonl": [claim]})).questions
    assert (question.kind, question.gold) == ("SUPPORT and CONTRADICT", {"p-mars": 1, "p-moon": 1})


def test_truncated_gzip_file_is_rejected(tmp_path):
    file = write_set(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-12])
    message = error_message("hotpotqa", tmp_path)
    assert re.fullmatch(rf"{file} line \d: the gzip stream is truncated; get the file again", message)


def test_truncated_gzip_file_is_rejected_with_its_line(tmp_path):
    rows = [{"id": os.urandom(500).hex(), "title": "", "text": "Text."} for _ in range(300)]
    file = write_rows(write_set(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz", rows)
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.write_bytes(half)
    whole = zlib.decompressobj(wbits=31).decompress(half).count(b"\n")
    assert 100 < whole < 200
    assert f"line {whole + 1}: the gzip stream is truncated" in error_message("hotpotqa", tmp_path)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"id": "p-moon"}\n', r"line 1: no gzip, or damaged \(.*\); get the file again"),
        (gzip.compress(b"{}")[:10] + b"\xff" * 40, r"line 1: no gzip, or damaged \(.*\); get the file again"),
        (
            gzip.compress(b'{"id": "p"}\n')[:-8] + b"\0" * 8,
            r"line 2: no gzip, or damaged \(CRC check failed.*\); get the file again",
        ),
        (gzip.compress(b""), "has no rows: get it again"),
        (gzip.compress(b'\n{"id": "caf\xe9"}\n'), "line 2: not UTF-8 at byte 11 of the line"),
        (gzip.compress(b"{NaN}\n"), "line 1: not JSON: .*; if the file is truncated, get it again"),
    ],
    ids=["plain", "stream", "checksum", "empty", "encoding", "JSON"],
)
def test_file_of_another_format_is_rejected(data, complaint, tmp_path):
    file = write_set(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz"
    file.write_bytes(data)
    assert re.fullmatch(rf"{file} {complaint}", error_message("hotpotqa", tmp_path))


def test_folder_in_place_of_a_file_is_rejected(tmp_path):
    file = write_set(tmp_path, "hotpotqa") / QUESTIONS
    file.unlink()
    file.mkdir()
    assert error_message("hotpotqa", tmp_path) == f"{file} can't be read: is a directory"


def test_dataset_error_is_an_evaluation_error_and_pickles(tmp_path):
    with pytest.raises(EvaluationError) as caught:
        read_set("rgb", tmp_path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (DatasetError, str(caught.value))


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "passages", "questions", "answerable", "gold", "sentences"),
    [
        ("hotpotqa", 5428, 552, 552, 1104, 1351),
        ("2wiki", 4566, 250, 250, 622, 623),
        ("musique", 972, 50, 50, 116, 0),
        ("nq_open", 1311, 1328, 1328, 1328, 0),
        ("nfcorpus", 3633, 323, 323, 11378, 0),
        ("scifact", 5183, 807, 505, 564, 1025),
        ("hotpotqa_fullwiki", 2488, 250, 71, 284, 355),
        ("rgb", 690, 50, 50, 195, 0),
    ],
)
def test_real_set_is_read_completely(name, passages, questions, answerable, gold, sentences, shared):
    dataset = read_set(name, shared / "data")
    assert (len(dataset.passages), len(dataset.questions)) == (passages, questions)
    assert sum(question.answerable for question in dataset.questions) == answerable
    assert sum(len(question.gold) for question in dataset.questions) == gold
    assert sum(len(question.sentences) for question in dataset.questions) == sentences
    texts = {passage.id: passage.text for passage in dataset.passages}
    for question in dataset.questions:
        pool = texts.keys() if question.pool is None else set(question.pool)
        assert question.gold.keys() <= pool <= texts.keys()
        assert all(sentence.text in texts[sentence.passage_id] for sentence in question.sentences)
        assert question.gold or not question.answerable


@pytest.mark.shared
def test_real_fullwiki_has_less_gold_if_unanswerable(shared):
    for question in read_set("hotpotqa_fullwiki", shared / "data").questions:
        assert (len(question.gold) == 2) is question.answerable


@pytest.mark.shared
def test_real_rgb_has_unaltered_falsified_text_as_gold(shared):
    dataset = read_set("rgb", shared / "data")
    assert "rgbf-073/positive/1" in {passage.id for passage in dataset.passages}
    assert "rgbf-073/wrong/1" not in {passage.id for passage in dataset.passages}
    texts = {passage.id: passage.text for passage in dataset.passages}
    assert all(len({texts[key] for key in question.pool}) == len(question.pool) for question in dataset.questions)
    assert max(len(question.answers) for question in dataset.questions) == 8
