"""Wikipedia articles as sentences, and the sentence splitter."""

import copy
import re
import sys

import pytest

from meve.errors import ConfigurationError, DatasetError, MissingExtraError
from meve.evaluation import EvaluationSet, Question
from meve.evaluation.datasets import ARTICLES, read_articles, read_wikipedia, train_sentence_splitter
from meve.types import Passage
from tests.evaluation.dataset_files import write_rows

ARTICLE_ROWS = [
    {
        "id": "39",
        "title": "Albedo",
        "text": "Albedo is white.  Lambert\nused it in 1760. He was. Lambert used it.",
    },
    {"id": "40", "title": "Abacus", "text": "One counts. Lambert used it in 1760."},
    {"id": "41", "title": "Acid", "text": "It burns."},
]
WIKIPEDIA_QUESTIONS = [
    {"id": "wp-1", "question": "When?", "answers": ["1760"], "article": "Albedo", "evidence": ["Lambert used", "1760"]},
    {
        "id": "wp-2",
        "question": "Who?",
        "answers": ["L.", "Lambert"],
        "article": "Albedo",
        "evidence": ["Lambert  u"],
    },
    {"id": "wp-3", "question": "Why?", "answers": [], "article": None, "evidence": []},
]


def split_at_stops(text):
    """Sentences, and an empty one behind the last."""
    return [part.strip() and part.strip() + "." for part in text.split(".")]


def write_wikipedia(root, rows=ARTICLE_ROWS, questions=WIKIPEDIA_QUESTIONS):
    """Both files."""
    return write_rows(root / ARTICLES, rows), write_rows(root / "questions.jsonl", questions)


def test_wikipedia_articles_become_sentences_without_titles(tmp_path):
    path, questions = write_wikipedia(tmp_path)
    dataset = read_wikipedia(path, split_at_stops, articles=2, questions=questions)
    texts = {
        "39#0": "Albedo is white.",
        "39#1": "Lambert\nused it in 1760.",
        "39#2": "He was.",
        "39#3": "Lambert used it.",
        "40#0": "One counts.",
        "40#1": "Lambert used it in 1760.",
    }
    assert dataset == EvaluationSet(
        name="wikipedia",
        passages=tuple(
            Passage(id=key, text=text, metadata={"article": "Albedo" if key.startswith("39") else "Abacus"})
            for key, text in texts.items()
        ),
        questions=(
            Question(id="wp-1", text="When?", gold={"39#1": 1}, answers=("1760",)),
            Question(id="wp-2", text="Who?", gold={"39#1": 1, "39#3": 1}, answers=("L.", "Lambert")),
            Question(id="wp-3", text="Why?", answerable=False),
        ),
    )
    assert all(passage.title == "" for passage in dataset.passages)


def test_only_the_first_articles_are_read(tmp_path):
    path, _ = write_wikipedia(tmp_path, [*ARTICLE_ROWS, "{"])
    assert [article.title for article in read_articles(path, 2)] == ["Albedo", "Abacus"]
    assert read_articles(path, 3)[2] == Passage(id="41", title="Acid", text="It burns.")
    with pytest.raises(DatasetError, match="line 4: not JSON"):
        read_articles(path)
    _, questions = write_wikipedia(tmp_path)
    assert len(read_articles(path)) == 3
    assert read_wikipedia(path, split_at_stops, questions=questions).passages[-1].id == "41#0"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"evidence": ["lambert used"]},
            "question 'wp-1': no sentence of 'Albedo' holds all of its evidence, ['lambert used']",
        ),
        (
            {"evidence": ["white", "He was"]},
            "question 'wp-1': no sentence of 'Albedo' holds all of its evidence, ['white', 'He was']",
        ),
        ({"evidence": []}, "question 'wp-1' has an article, but no evidence"),
        ({"article": "Acid"}, "question 'wp-1' is about 'Acid', which isn't among the 2 articles read"),
        ({"article": None}, "question 'wp-1' has evidence, but no article"),
        ({"article": 3}, "the field 'article' must be a text, got 3"),
        ({"evidence": None}, "the field 'evidence' must be a list, got null"),
        ({"answers": "1760"}, "the field 'answers' must be a list, got \"1760\""),
        ({"question": ""}, "the field 'question' is blank: it must be a text"),
    ],
)
def test_inconsistent_wikipedia_question_is_rejected(changes, complaint, tmp_path):
    path, questions = write_wikipedia(tmp_path, questions=[{**WIKIPEDIA_QUESTIONS[0], **changes}])
    with pytest.raises(DatasetError) as caught:
        read_wikipedia(path, split_at_stops, articles=2, questions=questions)
    assert str(caught.value) == f"{questions} line 1: {complaint}"


@pytest.mark.parametrize("field", ["id", "question", "answers", "article", "evidence"])
def test_incomplete_wikipedia_question_is_rejected(field, tmp_path):
    row = {key: value for key, value in WIKIPEDIA_QUESTIONS[0].items() if key != field}
    path, questions = write_wikipedia(tmp_path, questions=[row])
    with pytest.raises(DatasetError, match=f"line 1: the field '{field}' is missing"):
        read_wikipedia(path, split_at_stops, questions=questions)


def test_duplicate_wikipedia_question_id_is_rejected(tmp_path):
    path, questions = write_wikipedia(tmp_path, questions=[WIKIPEDIA_QUESTIONS[0]] * 2)
    with pytest.raises(DatasetError, match="line 2: the id 'wp-1' is also in"):
        read_wikipedia(path, split_at_stops, questions=questions)


@pytest.mark.parametrize("field", ["id", "title", "text"])
def test_invalid_article_is_rejected(field, tmp_path):
    rows = copy.deepcopy(ARTICLE_ROWS)
    if field != "text":
        rows[1][field] = rows[0][field]
        path, _ = write_wikipedia(tmp_path, rows)
        with pytest.raises(DatasetError, match=rf"articles.jsonl.gz line 2: the {field} '\w+' is also in .* line 1"):
            read_articles(path)
    del rows[1][field]
    path, _ = write_wikipedia(tmp_path, rows)
    with pytest.raises(DatasetError, match=rf"articles.jsonl.gz line 2: the field '{field}' is missing"):
        read_articles(path)


def test_absent_articles_are_rejected_by_their_folder(tmp_path):
    with pytest.raises(DatasetError, match=rf"there is no folder {tmp_path}/wikipedia: .* --data DIR"):
        read_articles(tmp_path / ARTICLES)
    with pytest.raises(ConfigurationError, match="articles must be a whole number of at least 1, got 0"):
        read_articles(tmp_path / ARTICLES, 0)


TEXTS = [
    "The company, e.g. Acme Inc. of Ohio, grew. It was founded by Mr. Jones in 1901. Mr. Jones sold it.",
    "She met Mr. Smith. They left with Mr. Brown, e.g. for lunch. Nobody saw Mr. Green. It rained at 3.14 p.m. there.",
]


@pytest.mark.slow
def test_splitter_learns_abbreviations_from_the_texts():
    pytest.importorskip("nltk")
    assert train_sentence_splitter(TEXTS * 20)("It was Mr. Jones. She met Mr. Smith.\n\nThey left.") == [
        "It was Mr. Jones.",
        "She met Mr. Smith.",
        "They left.",
    ]


def test_splitter_without_nltk_names_the_extra(monkeypatch):
    for name in ("nltk", "nltk.tokenize", "nltk.tokenize.punkt"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"needs 'nltk', which isn't installed: pip install 'meve\[bench\]'"):
        train_sentence_splitter(TEXTS)


@pytest.mark.shared
def test_real_articles_contain_the_evidence_of_questions(shared):
    dataset = read_wikipedia(shared / "data" / ARTICLES, lambda text: re.split(r"(?<=[.?!])\s+", text))
    assert len({passage.metadata["article"] for passage in dataset.passages}) == 100
    assert 15_000 < len(dataset.passages) < 30_000
    assert sum(question.answerable for question in dataset.questions) >= 25
    assert sum(not question.answerable for question in dataset.questions) >= 10


@pytest.mark.slow
@pytest.mark.shared
def test_splitter_splits_real_articles_into_sentences(shared):
    pytest.importorskip("nltk")
    texts = [article.text for article in read_articles(shared / "data" / ARTICLES, 8)]
    cut = train_sentence_splitter(texts)
    sentences = [sentence for text in texts for sentence in cut(text)]
    assert ["".join("".join(cut(text)).split()) for text in texts] == ["".join(text.split()) for text in texts]
    assert 15 < sum(len(sentence.split()) for sentence in sentences) / len(sentences) < 30
    assert sum(sentence[0].isupper() for sentence in sentences) / len(sentences) > 0.9
