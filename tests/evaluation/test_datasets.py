"""Public sets and the project's own as questions over passages; and whatever may be wrong with their files."""

import copy
import gzip
import json
import os
import pickle
import re
import sys
import zlib

import pytest

from meve.errors import ConfigurationError, DatasetError, EvaluationError, MissingExtraError
from meve.evaluation.datasets import ARTICLES, SETS, Article, own, punkt, read_articles, read_set, wikipedia
from meve.evaluation.types import EvaluationSet, GoldSentence, Question
from meve.types import Passage

MOON = {"id": "p-moon", "title": "Moon", "text": "It orbits the Earth. It is grey.", "sent_starts": [0, 21]}
MARS = {"id": "p-mars", "title": "Mars", "text": "It is red.", "sent_starts": [0]}
SUN = {"id": "p-sun", "title": "", "text": "It is a star."}

QA = {
    "id": "q1",
    "question": "What colour is the Moon?",
    "answer": "grey",
    "type": "bridge",
    "gold_passage_ids": ["p-moon"],
    "gold_sentences": [{"passage_id": "p-moon", "sent_idx": 1, "text": "It is grey."}],
    "context_passage_ids": ["p-mars", "p-moon"],
    "source": "nowhere",
}
"""With fields that nothing reads: they do no harm."""

FILES = {
    "hotpotqa": {"hotpotqa/passages.jsonl.gz": [MOON, MARS], "hotpotqa/questions.jsonl": [QA]},
    "2wiki": {
        "2wiki/passages.jsonl.gz": [MOON],
        "2wiki/extra_passages.jsonl.gz": [SUN],
        "2wiki/questions.jsonl": [QA],
    },
    "musique": {
        "musique/passages.jsonl.gz": [MOON, SUN],
        "musique/questions.jsonl": [
            {**QA, "answer_aliases": ["gray", "grey", "gray"], "answerable": True},
            {**QA, "id": "q2", "answer_aliases": [], "answerable": False, "gold_passage_ids": []},
        ],
    },
    "nq_open": {
        "nq_open/passages.jsonl.gz": [MOON, SUN],
        "nq_open/questions.jsonl": [{**QA, "answers": ["grey", "ashen"], "gold_passage_ids": ["p-sun", "p-moon"]}],
    },
    "hotpotqa_fullwiki": {
        "hotpotqa_fullwiki/passages.jsonl.gz": [MOON, MARS, SUN],
        "hotpotqa_fullwiki/questions.jsonl": [
            {**QA, "gold_complete": True},
            {
                **QA,
                "id": "q2",
                "gold_complete": False,
                "gold_titles_missing": ["Venus"],
                "context_passage_ids": ["p-moon", "p-sun"],
            },
            {**QA, "id": "q3", "gold_complete": False, "gold_passage_ids": [], "gold_sentences": []},
        ],
    },
    "rgb": {
        "rgb_counterfactual/questions.jsonl": [
            {
                "id": "r-1",
                "question": "Who won?",
                "answer": "Ada",
                "fake_answer": "Bob",
                "positive": ["Ada won.", "She won, Ada."],
                "positive_wrong": ["Bob won.", "She won, Ada."],
                "negative": ["It rained.", "Bob won.", "It rained."],
            },
            {
                "id": "r-2",
                "question": "When?",
                "answer": [["May 2", "2 May", "May 2"]],
                "fake_answer": "June",
                "positive": ["Ada won."],
                "positive_wrong": [],
                "negative": [],
            },
        ]
    },
    "scifact": {
        "scifact/corpus.jsonl.gz": [MOON, MARS, {**SUN, "sent_starts": []}],
        "scifact/claims.jsonl": [
            {
                "id": "1",
                "claim": "The Moon is green.",
                "cited_doc_ids": ["p-moon", "p-mars"],
                "evidence": [
                    {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [1]},
                    {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [0, 1]},
                ],
            },
            {
                "id": "2",
                "claim": "Mars is red.",
                "cited_doc_ids": ["p-mars"],
                "evidence": [{"doc_id": "p-mars", "label": "SUPPORT", "sentences": [0]}],
            },
            {"id": "3", "claim": "Venus is hot.", "cited_doc_ids": ["p-mars"], "evidence": []},
        ],
    },
    "nfcorpus": {
        "nfcorpus/corpus.jsonl.gz": [MOON, SUN],
        "nfcorpus/queries.jsonl": [
            {"id": "n1", "text": "moons"},
            {"id": "n2", "text": "cheese"},
            {"id": "n3", "text": "stars"},
        ],
        "nfcorpus/qrels.jsonl": [
            {"query_id": "n3", "doc_id": "p-sun", "relevance": 2},
            {"query_id": "n1", "doc_id": "p-moon", "relevance": 2},
            {"query_id": "n1", "doc_id": "p-sun", "relevance": 1},
        ],
    },
}
"""A small instance of each format, one that shows all of its rules."""

moon = Passage(id="p-moon", title="Moon", text="It orbits the Earth. It is grey.")
mars = Passage(id="p-mars", title="Mars", text="It is red.")
sun = Passage(id="p-sun", text="It is a star.")
grey = GoldSentence(passage_id="p-moon", text="It is grey.")
asked = Question(
    id="q1",
    text="What colour is the Moon?",
    gold={"p-moon": 1},
    sentences=(grey,),
    answers=("grey",),
    kind="bridge",
)


def like(question, **changes):
    """The question with other values."""
    values = {name: getattr(question, name) for name in Question.__slots__}
    return Question(**{**values, **changes})


EXPECTED = {
    "hotpotqa": ((moon, mars), (asked,)),
    "2wiki": ((moon, sun), (asked,)),
    "musique": (
        (moon, sun),
        (
            like(asked, sentences=(), answers=("grey", "gray")),
            like(asked, id="q2", sentences=(), gold={}, answerable=False),
        ),
    ),
    "nq_open": (
        (moon, sun),
        (like(asked, sentences=(), answers=("grey", "ashen"), gold={"p-sun": 1, "p-moon": 1}),),
    ),
    "hotpotqa_fullwiki": (
        (moon, mars, sun),
        (
            like(asked, pool=("p-mars", "p-moon")),
            like(asked, id="q2", pool=("p-moon", "p-sun"), answerable=False),
            like(asked, id="q3", pool=("p-mars", "p-moon"), answerable=False, gold={}, sentences=()),
        ),
    ),
    "rgb": (
        (
            Passage(id="r-1/positive/0", text="Ada won."),
            Passage(id="r-1/positive/1", text="She won, Ada."),
            Passage(id="r-1/wrong/0", text="Bob won."),
            Passage(id="r-1/negative/0", text="It rained."),
            Passage(id="r-2/positive/0", text="Ada won."),
        ),
        (
            Question(
                id="r-1",
                text="Who won?",
                gold={"r-1/positive/0": 1, "r-1/positive/1": 1},
                answers=("Ada",),
                misleading=("Bob",),
                pool=("r-1/positive/0", "r-1/positive/1", "r-1/wrong/0", "r-1/negative/0"),
            ),
            Question(
                id="r-2",
                text="When?",
                gold={"r-2/positive/0": 1},
                answers=("May 2", "2 May"),
                misleading=("June",),
                pool=("r-2/positive/0",),
            ),
        ),
    ),
    "scifact": (
        (moon, mars, sun),
        (
            Question(
                id="1",
                text="The Moon is green.",
                gold={"p-moon": 1},
                sentences=(grey, GoldSentence(passage_id="p-moon", text="It orbits the Earth.")),
                kind="CONTRADICT",
            ),
            Question(
                id="2",
                text="Mars is red.",
                gold={"p-mars": 1},
                sentences=(GoldSentence(passage_id="p-mars", text="It is red."),),
                kind="SUPPORT",
            ),
            Question(id="3", text="Venus is hot.", answerable=False, kind="NOT_ENOUGH_INFO"),
        ),
    ),
    "nfcorpus": (
        (moon, sun),
        (
            Question(id="n1", text="moons", gold={"p-moon": 2, "p-sun": 1}),
            Question(id="n3", text="stars", gold={"p-sun": 2}),
        ),
    ),
}


def write(file, rows):
    """Rows, or lines of text, as JSONL; packed where the name says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    data = text.encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return file


def lay(root, name, changed=None):
    """The small instance of a set; of the files in `changed`, with other rows."""
    for path, rows in {**FILES[name], **(changed or {})}.items():
        write(root / path, rows)
    return root


def refusal(name, root):
    """What is said of a set that can't be read."""
    with pytest.raises(DatasetError) as caught:
        read_set(name, root)
    return str(caught.value)


def test_every_set_has_an_instance_here():
    """So that no reader goes without the tests below."""
    assert list(SETS) == ["hotpotqa", "2wiki", "musique", "nq_open", "nfcorpus", "scifact", "hotpotqa_fullwiki", "rgb"]
    assert set(FILES) == set(EXPECTED) == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_each_format_becomes_questions_over_passages(name, tmp_path):
    """Exactly these."""
    passages, questions = EXPECTED[name]
    found = read_set(name, lay(tmp_path, name))
    assert found == EvaluationSet(name=name, passages=passages, questions=questions)
    assert found.closed is (name in {"hotpotqa_fullwiki", "rgb"})


def test_blank_lines_are_passed_over_and_keep_their_number(tmp_path):
    """A line is named by its number in the file."""
    lay(tmp_path, "hotpotqa", {"hotpotqa/questions.jsonl": ["", QA, "  ", {**QA, "id": 7}]})
    message = refusal("hotpotqa", tmp_path)
    assert message == f"{tmp_path}/hotpotqa/questions.jsonl line 4: the field 'id' holds 7: a text is wanted"


# What a set may lack, or have wrongly


def test_an_unknown_name_is_answered_with_the_known(tmp_path):
    """All of them."""
    message = refusal("squad", tmp_path)
    assert message == f"no set is called 'squad': there are {', '.join((*SETS, 'own'))}"


@pytest.mark.parametrize("name", SETS)
def test_an_absent_set_is_named_by_its_folder(name, tmp_path):
    """With the way to give another."""
    folder = tmp_path / next(iter(FILES[name])).partition("/")[0]
    assert refusal(name, tmp_path) == (
        f"there is no folder {folder}: give the folder that holds the sets with --data DIR"
    )


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, files in FILES.items() for path in files])
class TestEachFile:
    """Each file of each set."""

    def test_absent(self, name, path, tmp_path):
        """Though its folder is there."""
        (lay(tmp_path, name) / path).unlink()
        file = tmp_path / path
        (file.parent / "keep").touch()
        assert refusal(name, tmp_path) == (
            f"there is no {file.name} in {file.parent}: get it, or give another folder with --data DIR"
        )

    def test_empty(self, name, path, tmp_path):
        """No rows are no set."""
        file = lay(tmp_path, name) / path
        file.write_bytes(b"")
        assert refusal(name, tmp_path) == f"{file} holds no rows: it must be had anew"

    def test_half_a_line(self, name, path, tmp_path):
        """As a transfer that broke off leaves it; packed, or not."""
        rows = [json.dumps(row) for row in FILES[name][path]]
        lay(tmp_path, name, {path: [*rows, rows[0][:9]]})
        message = refusal(name, tmp_path)
        assert message.startswith(f"{tmp_path / path} line {len(rows) + 1}: not JSON: ")
        assert message.endswith("; a file that was cut short must be had anew")

    def test_no_object(self, name, path, tmp_path):
        """A line that is JSON, but of another kind."""
        lay(tmp_path, name, {path: ["[1, 2]"]})
        assert f"{tmp_path / path} line 1: a JSON object is wanted, not list" in refusal(name, tmp_path)

    def test_an_id_given_twice(self, name, path, tmp_path):
        """The second place is named, and the first."""
        rows = FILES[name][path]
        lay(tmp_path, name, {path: [*rows, rows[0]]})
        message = refusal(name, tmp_path)
        if path.endswith("qrels.jsonl"):
            assert message == f"{tmp_path / path} line 4: query 'n3' and 'p-sun' are judged on an earlier line too"
        else:
            file = tmp_path / path
            key = rows[0]["id"]
            assert message == f"{file} line {len(rows) + 1}: the id {key!r} stands in {file} line 1 too"


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
"""Of the set, by file."""


@pytest.mark.parametrize(("path", "field"), [(path, field) for path in NAME for field in FIELDS[path]])
def test_a_field_that_is_missing_or_of_another_type_is_named(path, field, tmp_path):
    """With file and line, and what was found in its place."""
    name = NAME[path]
    lay(tmp_path, name)
    first, *others = FILES[name][path]
    at = f"{tmp_path / path} line 1: the field {field!r}"
    write(tmp_path / path, [{key: value for key, value in first.items() if key != field}, *others])
    assert re.fullmatch(rf"{re.escape(at)} is missing: .* is wanted", refusal(name, tmp_path))
    write(tmp_path / path, [{**first, field: {"x": "é"}}, *others])
    assert re.fullmatch(rf"{re.escape(at)} holds {{\"x\": \"é\"}}: .* is wanted", refusal(name, tmp_path))


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
        (QUESTIONS, {"id": None}, "'id' holds null: a text is wanted"),
        (QUESTIONS, {"id": 5}, "'id' holds 5: a text is wanted"),
        (QUESTIONS, {"question": " \n"}, "'question' is blank: a text is wanted"),
        (QUESTIONS, {"gold_passage_ids": "p"}, "'gold_passage_ids' holds \"p\": a list is wanted"),
        (QUESTIONS, {"gold_passage_ids": ["p", 3]}, "'gold_passage_ids[1]' holds 3: a text is wanted"),
        (QUESTIONS, {"gold_passage_ids": ["p", ""]}, "'gold_passage_ids[1]' is blank: a text is wanted"),
        (QUESTIONS, {"gold_sentences": ["It."]}, "'gold_sentences[0]' holds \"It.\": an object is wanted"),
        (
            QUESTIONS,
            {"gold_sentences": [QA["gold_sentences"][0], {"passage_id": "p-moon"}]},
            "'gold_sentences[1].text' is missing: a text is wanted",
        ),
        (
            QUESTIONS,
            {"gold_sentences": [{"passage_id": 1, "text": "It."}]},
            "'gold_sentences[0].passage_id' holds 1: a text is wanted",
        ),
        (QUESTIONS, {"answer": ["n" * 100]}, f"'answer' holds [\"{'n' * 78}…: a text is wanted"),
        (PASSAGES, {"text": " "}, "'text' is blank: a text is wanted"),
        ("musique/questions.jsonl", {"answerable": 1}, "'answerable' holds 1: true or false is wanted"),
        (QRELS, {"relevance": True}, "'relevance' holds true: a whole number is wanted"),
        (QRELS, {"relevance": 1.0}, "'relevance' holds 1.0: a whole number is wanted"),
        (QRELS, {"relevance": 0}, "'relevance' holds 0: at least 1 is wanted"),
        (CLAIMS, evidence(doc_id="p"), "'evidence[0].doc_id' names 'p', which isn't among the passages"),
        (CLAIMS, evidence(label="PERHAPS"), "'evidence[0].label' holds 'PERHAPS': SUPPORT or CONTRADICT is wanted"),
        (CLAIMS, evidence(sentences=[2]), "'evidence[0].sentences' names sentence 2 of 'p-moon', which has 2"),
        (CLAIMS, evidence(sentences=[-1]), "'evidence[0].sentences' names sentence -1 of 'p-moon', which has 2"),
        (CLAIMS, evidence(sentences=[True]), "'evidence[0].sentences[0]' holds true: a whole number is wanted"),
        *(
            (
                CORPUS,
                {"sent_starts": starts},
                "'sent_starts' doesn't rise within the text's 32 characters, or leaves one blank",
            )
            for starts in ([-1, 21], [-32, 21], [21, 0], [0, 0], [0, 32], [0, 20, 21], [99])
        ),
        *(
            (RGB, {"answer": answer}, f"'answer' holds {answer}: a text, or a list of one list of texts, is wanted")
            for answer in (["Ada", "Bob"], [["Ada"], ["Bob"]], [])
        ),
        (RGB, {"answer": [[]]}, "'answer[0]' is empty: at least one text is wanted"),
        (RGB, {"answer": [[4]]}, "'answer[0][0]' holds 4: a text is wanted"),
        (RGB, {"positive": [" "]}, "'positive[0]' is blank: a text is wanted"),
    ],
)
def test_a_field_that_holds_something_else_is_named(path, changes, complaint, tmp_path):
    """Each rule of each format, on the first line of a file."""
    rows = FILES[NAME[path]][path]
    lay(tmp_path, NAME[path], {path: [{**rows[0], **changes}, *rows[1:]]})
    assert refusal(NAME[path], tmp_path) == f"{tmp_path / path} line 1: the field {complaint}"


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
            "question 'q1' is answerable, but no passage is gold for it",
        ),
        (
            "hotpotqa",
            {"gold_sentences": [{"passage_id": "p-moon", "text": "It is green."}]},
            "question 'q1' has a gold sentence that isn't in 'p-moon': 'It is green.'",
        ),
        ("musique", {"gold_passage_ids": []}, "question 'q1' is answerable, but no passage is gold for it"),
        ("nq_open", {"gold_passage_ids": []}, "question 'q1' is answerable, but no passage is gold for it"),
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
        ("rgb", {"positive": []}, "question 'r-1' is answerable, but no passage is gold for it"),
        ("nfcorpus", {"query_id": "n9"}, "the query 'n9' isn't among the queries"),
        ("nfcorpus", {"doc_id": "p-pluto"}, "query 'n3' names 'p-pluto', which isn't among the passages"),
    ],
)
def test_a_question_at_odds_with_its_passages_is_named(name, changes, complaint, tmp_path):
    """A measure of it would be wrong, and nobody would see."""
    path = list(FILES[name])[-1]
    rows = FILES[name][path]
    lay(tmp_path, name, {path: [{**rows[0], **changes}, *rows[1:]]})
    assert refusal(name, tmp_path) == f"{tmp_path / path} line 1: {complaint}"


def test_the_same_passage_in_both_files_of_2wiki(tmp_path):
    """Each file is named."""
    lay(tmp_path, "2wiki", {"2wiki/extra_passages.jsonl.gz": [SUN, MOON]})
    folder = tmp_path / "2wiki"
    assert refusal("2wiki", tmp_path) == (
        f"{folder}/extra_passages.jsonl.gz line 2: the id 'p-moon' stands in {folder}/passages.jsonl.gz line 1 too"
    )


def test_scifact_holds_a_label_of_each_side(tmp_path):
    """A claim with evidence for and against it."""
    both = [
        {"doc_id": "p-mars", "label": "SUPPORT", "sentences": [0]},
        {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [1]},
    ]
    claim = {**FILES["scifact"]["scifact/claims.jsonl"][0], "evidence": both}
    (question,) = read_set("scifact", lay(tmp_path, "scifact", {"scifact/claims.jsonl": [claim]})).questions
    assert (question.kind, question.gold) == ("SUPPORT and CONTRADICT", {"p-mars": 1, "p-moon": 1})


# Files that can't be read


def test_a_gzip_file_that_was_cut_short(tmp_path):
    """It names the line that it could be read up to."""
    file = lay(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-12])
    message = refusal("hotpotqa", tmp_path)
    assert re.fullmatch(rf"{file} line \d: cut short: its gzip stream has no end; get it anew", message)


def test_a_gzip_file_cut_far_in_names_the_line(tmp_path):
    """Lines before it were read."""
    rows = [{"id": os.urandom(500).hex(), "title": "", "text": "Text."} for _ in range(300)]
    file = write(lay(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz", rows)
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.write_bytes(half)
    whole = zlib.decompressobj(wbits=31).decompress(half).count(b"\n")
    assert 100 < whole < 200
    assert f"line {whole + 1}: cut short" in refusal("hotpotqa", tmp_path)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"id": "p-moon"}\n', r"line 1: no gzip, or damaged \(.*\); get it anew"),
        (gzip.compress(b"{}")[:10] + b"\xff" * 40, r"line 1: no gzip, or damaged \(.*\); get it anew"),
        (
            gzip.compress(b'{"id": "p"}\n')[:-8] + b"\0" * 8,
            r"line 2: no gzip, or damaged \(CRC check failed.*\); get it anew",
        ),
        (gzip.compress(b""), "holds no rows: it must be had anew"),
        (gzip.compress(b'\n{"id": "caf\xe9"}\n'), "line 2: not UTF-8 at byte 11 of the line"),
        (gzip.compress(b"{NaN}\n"), "line 1: not JSON: .*; a file that was cut short must be had anew"),
    ],
    ids=["plain", "stream", "checksum", "empty", "encoding", "JSON"],
)
def test_a_file_that_is_no_jsonl(data, complaint, tmp_path):
    """Of another kind, damaged, empty, of another encoding."""
    file = lay(tmp_path, "hotpotqa") / "hotpotqa/passages.jsonl.gz"
    file.write_bytes(data)
    assert re.fullmatch(rf"{file} {complaint}", refusal("hotpotqa", tmp_path))


def test_a_folder_in_a_file_s_place(tmp_path):
    """What the system says is passed on."""
    file = lay(tmp_path, "hotpotqa") / QUESTIONS
    file.unlink()
    file.mkdir()
    assert refusal("hotpotqa", tmp_path) == f"{file} can't be read: is a directory"


def test_the_errors_are_caught_as_errors_of_an_evaluation(tmp_path):
    """And survive pickling."""
    with pytest.raises(EvaluationError) as caught:
        read_set("rgb", tmp_path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (DatasetError, str(caught.value))


# Wikipedia

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


def by_stops(text):
    """Sentences, and an empty one behind the last."""
    return [part.strip() and part.strip() + "." for part in text.split(".")]


def lay_wikipedia(root, rows=ARTICLE_ROWS, questions=WIKIPEDIA_QUESTIONS):
    """Both files."""
    return write(root / ARTICLES, rows), write(root / "questions.jsonl", questions)


def test_wikipedia_becomes_bare_sentences(tmp_path):
    """Gold are those of the article with all of the evidence, and no others."""
    path, questions = lay_wikipedia(tmp_path)
    found = wikipedia(path, by_stops, articles=2, questions=questions)
    texts = {
        "39#0": "Albedo is white.",
        "39#1": "Lambert\nused it in 1760.",
        "39#2": "He was.",
        "39#3": "Lambert used it.",
        "40#0": "One counts.",
        "40#1": "Lambert used it in 1760.",
    }
    assert found == EvaluationSet(
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
    assert all(passage.title == "" for passage in found.passages)


def test_only_the_first_articles_are_read(tmp_path):
    """What stands behind them doesn't matter; where there are fewer, all are read."""
    path, _ = lay_wikipedia(tmp_path, [*ARTICLE_ROWS, "{"])
    assert [article.title for article in read_articles(path, 2)] == ["Albedo", "Abacus"]
    assert read_articles(path, 3)[2] == Article(id="41", title="Acid", text="It burns.")
    with pytest.raises(DatasetError, match="line 4: not JSON"):
        read_articles(path)
    _, questions = lay_wikipedia(tmp_path)
    assert len(read_articles(path)) == 3
    assert wikipedia(path, by_stops, questions=questions).passages[-1].id == "41#0"


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
        ({"article": 3}, "the field 'article' holds 3: a text is wanted"),
        ({"evidence": None}, "the field 'evidence' holds null: a list is wanted"),
        ({"answers": "1760"}, "the field 'answers' holds \"1760\": a list is wanted"),
        ({"question": ""}, "the field 'question' is blank: a text is wanted"),
    ],
)
def test_a_question_on_wikipedia_that_does_not_fit_is_named(changes, complaint, tmp_path):
    """Evidence is looked for as it is written."""
    path, questions = lay_wikipedia(tmp_path, questions=[{**WIKIPEDIA_QUESTIONS[0], **changes}])
    with pytest.raises(DatasetError) as caught:
        wikipedia(path, by_stops, articles=2, questions=questions)
    assert str(caught.value) == f"{questions} line 1: {complaint}"


@pytest.mark.parametrize("field", ["id", "question", "answers", "article", "evidence"])
def test_a_question_on_wikipedia_must_have_each_field(field, tmp_path):
    """A missing article is no article that is null."""
    row = {key: value for key, value in WIKIPEDIA_QUESTIONS[0].items() if key != field}
    path, questions = lay_wikipedia(tmp_path, questions=[row])
    with pytest.raises(DatasetError, match=f"line 1: the field '{field}' is missing"):
        wikipedia(path, by_stops, questions=questions)


def test_questions_on_wikipedia_have_ids_of_their_own(tmp_path):
    """As everywhere."""
    path, questions = lay_wikipedia(tmp_path, questions=[WIKIPEDIA_QUESTIONS[0]] * 2)
    with pytest.raises(DatasetError, match="line 2: the id 'wp-1' stands in"):
        wikipedia(path, by_stops, questions=questions)


@pytest.mark.parametrize("field", ["id", "title", "text"])
def test_articles_are_checked(field, tmp_path):
    """Fields that are missing; ids and titles given twice."""
    rows = copy.deepcopy(ARTICLE_ROWS)
    if field != "text":
        rows[1][field] = rows[0][field]
        path, _ = lay_wikipedia(tmp_path, rows)
        with pytest.raises(DatasetError, match=rf"articles.jsonl.gz line 2: the {field} '\w+' stands in .* line 1 too"):
            read_articles(path)
    del rows[1][field]
    path, _ = lay_wikipedia(tmp_path, rows)
    with pytest.raises(DatasetError, match=rf"articles.jsonl.gz line 2: the field '{field}' is missing"):
        read_articles(path)


def test_articles_that_are_absent_are_named_by_their_folder(tmp_path):
    """As other sets."""
    with pytest.raises(DatasetError, match=rf"there is no folder {tmp_path}/wikipedia: .* --data DIR"):
        read_articles(tmp_path / ARTICLES)
    with pytest.raises(ConfigurationError, match="articles is 0: give a whole number of at least 1"):
        read_articles(tmp_path / ARTICLES, 0)


# The project's own set

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


def test_a_set_of_one_s_own_is_read(tmp_path):
    """All of its fields."""
    unanswered = {**OWN_QUESTION, "id": "oq-2", "answers": [], "misleading": [], "gold": [], "answerable": False}
    passages = write(tmp_path / "passages.jsonl", OWN_PASSAGES)
    questions = write(tmp_path / "questions.jsonl", [OWN_QUESTION, unanswered])
    assert own(passages, questions) == EvaluationSet(
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
def test_each_field_of_one_s_own_questions_is_checked(field, tmp_path):
    """Missing, or of another type."""
    passages = write(tmp_path / "passages.jsonl", OWN_PASSAGES)
    without = {key: value for key, value in OWN_QUESTION.items() if key != field}
    with pytest.raises(DatasetError, match=f"questions.jsonl line 1: the field '{field}' is missing"):
        own(passages, write(tmp_path / "questions.jsonl", [without]))
    with pytest.raises(DatasetError, match=f"questions.jsonl line 1: the field '{field}' holds {{}}: "):
        own(passages, write(tmp_path / "questions.jsonl", [{**OWN_QUESTION, field: {}}]))


@pytest.mark.parametrize(
    ("gold", "complaint"),
    [
        (["o-9"], "question 'oq-1' names 'o-9', which isn't among the passages"),
        ([], "question 'oq-1' is answerable, but no passage is gold for it"),
    ],
)
def test_one_s_own_questions_fit_the_passages(gold, complaint, tmp_path):
    """As in every set."""
    passages = write(tmp_path / "passages.jsonl", OWN_PASSAGES)
    with pytest.raises(DatasetError, match=complaint):
        own(passages, write(tmp_path / "questions.jsonl", [{**OWN_QUESTION, "gold": gold}]))


def test_the_set_that_comes_with_the_package_is_sound():
    """Every question fits the passages, and each answerable one has an answer."""
    found = own()
    assert found.passages
    assert found.questions
    assert all(question.answers for question in found.questions if question.answerable)


def test_a_file_that_did_not_come_with_the_package_is_said_to_be_lacking(tmp_path, monkeypatch):
    """The folder of sets has nothing to do with it."""
    from meve.evaluation.datasets import _assembly as gather

    monkeypatch.setattr(gather.resources, "files", lambda package: tmp_path)
    with pytest.raises(DatasetError, match=r"own_passages\.jsonl didn't come with this installation of meve"):
        own()


# Sentences

TEXTS = [
    "The company, e.g. Acme Inc. of Ohio, grew. It was founded by Mr. Jones in 1901. Mr. Jones sold it.",
    "She met Mr. Smith. They left with Mr. Brown, e.g. for lunch. Nobody saw Mr. Green. It rained at 3.14 p.m. there.",
]


@pytest.mark.slow
def test_punkt_learns_abbreviations_from_the_texts():
    """`Mr.` ends no sentence; white space between sentences is gone."""
    pytest.importorskip("nltk")
    assert punkt(TEXTS * 20)("It was Mr. Jones. She met Mr. Smith.\n\nThey left.") == [
        "It was Mr. Jones.",
        "She met Mr. Smith.",
        "They left.",
    ]


def test_punkt_without_nltk_names_the_extra(monkeypatch):
    """With the line that installs it."""
    for name in ("nltk", "nltk.tokenize", "nltk.tokenize.punkt"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"needs 'nltk', which isn't installed: pip install 'meve\[bench\]'"):
        punkt(TEXTS)


# The real sets


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
def test_the_real_sets_are_read_whole(name, passages, questions, answerable, gold, sentences, shared):
    """As many as there are; each gold id and each pooled id leads to a passage."""
    found = read_set(name, shared / "data")
    assert (len(found.passages), len(found.questions)) == (passages, questions)
    assert sum(question.answerable for question in found.questions) == answerable
    assert sum(len(question.gold) for question in found.questions) == gold
    assert sum(len(question.sentences) for question in found.questions) == sentences
    texts = {passage.id: passage.text for passage in found.passages}
    for question in found.questions:
        pool = texts.keys() if question.pool is None else set(question.pool)
        assert question.gold.keys() <= pool <= texts.keys()
        assert all(sentence.text in texts[sentence.passage_id] for sentence in question.sentences)
        assert question.gold or not question.answerable


@pytest.mark.shared
def test_the_real_fullwiki_has_less_gold_where_it_is_not_answerable(shared):
    """An answer takes two pages; of those that the search missed there is no id."""
    for question in read_set("hotpotqa_fullwiki", shared / "data").questions:
        assert (len(question.gold) == 2) is question.answerable


@pytest.mark.shared
def test_the_real_rgb_holds_a_falsified_text_that_was_not_altered(shared):
    """It stands among the right ones, and only there."""
    found = read_set("rgb", shared / "data")
    assert "rgbf-073/positive/1" in {passage.id for passage in found.passages}
    assert "rgbf-073/wrong/1" not in {passage.id for passage in found.passages}
    texts = {passage.id: passage.text for passage in found.passages}
    assert all(len({texts[key] for key in question.pool}) == len(question.pool) for question in found.questions)
    assert max(len(question.answers) for question in found.questions) == 8


@pytest.mark.shared
def test_the_real_articles_become_sentences_and_fit_the_questions(shared):
    """All questions that come with the package find their evidence."""
    found = wikipedia(shared / "data" / ARTICLES, lambda text: re.split(r"(?<=[.?!])\s+", text))
    assert len({passage.metadata["article"] for passage in found.passages}) == 100
    assert 15_000 < len(found.passages) < 30_000
    assert sum(question.answerable for question in found.questions) >= 25
    assert sum(not question.answerable for question in found.questions) >= 10


@pytest.mark.slow
@pytest.mark.shared
def test_punkt_cuts_real_articles_sensibly(shared):
    """Few pieces are fragments, few are paragraphs; nothing but white space is lost."""
    pytest.importorskip("nltk")
    texts = [article.text for article in read_articles(shared / "data" / ARTICLES, 8)]
    cut = punkt(texts)
    sentences = [sentence for text in texts for sentence in cut(text)]
    assert ["".join("".join(cut(text)).split()) for text in texts] == ["".join(text.split()) for text in texts]
    assert 15 < sum(len(sentence.split()) for sentence in sentences) / len(sentences) < 30
    assert sum(sentence[0].isupper() for sentence in sentences) / len(sentences) > 0.9
