"""Test that misspelt words of a question are corrected, and nothing else."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meve import Retriever, RetrieverConfig
from meve.components._spelling import correct_spelling
from meve.components.lexical.bm25 import Bm25Index
from tests.fake_components import make_components

WORDS = {
    "parcelctl", "kangoo", "descale", "coffee", "machine", "rack", "committee", "arteriosus", "upcoming", "uninstalls",
    "kowalski", "zebra", "stopped",
}  # fmt: skip


def correct(text, words=WORDS):
    return correct_spelling(text, lambda word: int(word in words))


@pytest.mark.parametrize(
    ("text", "corrections"),
    [
        ("how do i descal the cofee machine", {"descal": "descale", "cofee": "coffee"}),
        ("roof rakc", {"rakc": "rack"}),
        ("next comitee meeting wehn", {"comitee": "committee", "wehn": "when"}),
        ("the memmber of a club", {"memmber": "member"}),
        ("patent ductus ateriosus", {"ateriosus": "arteriosus"}),
        ("the umcoming event", {"umcoming": "upcoming"}),
        ("Wich pool car?", {"Wich": "Which"}),
        ("who stoped him, and runing begining", {"stoped": "stopped", "runing": "running", "begining": "beginning"}),
        ("wich Kangoo is mine, and wich isn't?", {"wich": "which"}),
    ],
)
def test_a_misspelt_word_becomes_a_known_one(text, corrections):
    corrected, found = correct(text)
    assert found == corrections
    expected = re.sub(r"\w+", lambda word: corrections.get(word[0], word[0]), text)
    assert corrected == expected


@pytest.mark.parametrize(
    "text",
    [
        "who is Kowalsky in Machne Street",  # names
        "Kowalsky runs it",  # a first word that only the collection has may be a name
        "run cofee-machin --descal /opt/cofee cofee.py cofee_2 ML103 $cofe @descal descal()",  # code
        "where is he from and why",  # known
        "they cant say it, and theyre wrong, arent they",  # contractions
        "uninstall it, it expires, machines, visiting, entered, planed, benefiting, offering",  # stems and next forms
        "how does sleet form",  # short words, and one other letter
        "the mna of tls",  # too short
        'find "speling cofee" and `machne cofee`',  # quoted
        "Wo steht die Kafeemaschine und wer darf sie benutzen?",  # another language
        "descal cofee machne rakc comitee kangooo uninstals wich wehn",  # too many
        "",
    ],
)
def test_what_may_be_right_stays(text):
    assert correct(text) == (text, {})


def test_a_word_of_the_collection_comes_before_one_of_english():
    assert correct("cool modul", {"module"})[1] == {"modul": "module"}
    assert correct("peopel")[1] == {"peopel": "people"}
    assert correct("peopel", {"peopler"})[1] == {"peopel": "people"}
    assert correct("when do i repot statins and annul a sluice")[1] == {}


@given(st.text(alphabet="abcdefg hiklmno.-'\n", max_size=60))
def test_only_the_named_words_change(text):
    corrected, found = correct(text)
    before, after = (re.findall(r"[A-Za-z]+|[^A-Za-z]+", each) for each in (text, corrected))
    assert len(before) == len(after)
    for word, other in zip(before, after, strict=True):
        assert other in {word, found.get(word)}


def test_the_context_names_the_corrections_and_keeps_the_question():
    retriever = Retriever.from_texts(["the coffee machine", "a pool car"], **make_components())
    context = retriever.retrieve("cofee machine")
    assert context.passages[0].passage.text == "the coffee machine"
    assert (context.query, context.corrections) == ("cofee machine", {"cofee": "coffee"})
    assert context.to_dict()["corrections"] == {"cofee": "coffee"}
    assert "read cofee as coffee" in context.to_html()
    assert "cofee" not in str(context.trace.to_dict())


@pytest.mark.parametrize("settings", [{"spelling": False}, {"config": RetrieverConfig.paper().override(tokens=None)}])
def test_spelling_can_be_switched_off(settings):
    retriever = Retriever.from_texts(["the coffee machine"], **make_components())
    assert retriever.retrieve("cofee", **settings).corrections == {}


def test_a_filter_hides_the_words_of_other_passages():
    users = [{"user": "ann"}, {"user": "bob"}]
    retriever = Retriever.from_texts(["the kangoo", "a car"], metadatas=users, **make_components())
    assert retriever.retrieve("kangooo").corrections == {"kangooo": "kangoo"}
    assert retriever.retrieve("kangooo", where={"user": "ann"}).corrections == {"kangooo": "kangoo"}
    assert retriever.retrieve("kangooo", where={"user": "bob"}).corrections == {}


def test_words_of_removed_passages_are_forgotten():
    retriever = Retriever.from_texts(["the kangoo", "a car"], ids=["1", "2"], **make_components())
    retriever.remove(["1"])
    assert retriever.retrieve("kangooo").corrections == {}


def test_the_index_counts_texts_with_a_word():
    index = Bm25Index()
    index.add([1, 2, 3], ["red fox", "red red hen", "the hen"])
    assert [index.word_counter()(word) for word in ("red", "hen", "the", "red fox", "cat")] == [2, 2, 0, 0, 0]
    assert index.word_counter(lambda: [2, 3])("red") == 1
    index.remove([2])
    assert index.word_counter()("red") == 1
    assert Bm25Index(analyzer=str.split).word_counter() is None


HERE = Path(__file__).parent
HANDBOOKS = {
    word
    for file in sorted((HERE.parents[1] / "benchmarks/documentation/handbooks").rglob("*.*"))
    for word in re.findall(r"[a-z]+", file.read_text("utf-8").lower())
}


@pytest.mark.parametrize("known", [set(), HANDBOOKS], ids=["of no collection", "of handbooks"])
def test_right_questions_with_rare_words_hardly_change(known):
    questions = (HERE / "right_questions.txt").read_text("utf-8").splitlines()
    changed = [found for question in questions if (found := correct(question, known)[1])]
    assert len(changed) <= len(questions) / 100, changed
