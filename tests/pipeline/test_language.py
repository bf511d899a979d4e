"""Test the warning for text that isn't English."""

import warnings

import pytest

from meve import Retriever
from meve.components._language import find_foreign_language
from meve.errors import LanguageWarning
from tests.fake_components import make_components

GERMAN = [
    "Tomaten brauchen sechs bis acht Stunden Sonne am Tag, und das ist nicht wenig.",
    "Brot wird aus Mehl gebacken.",
]
ENGLISH = "Tomatoes want six to eight hours of sun a day."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie viel Sonne brauchen Tomaten?", "German"),
        ("Combien de soleil faut-il aux tomates ?", "French"),
        ("¿Cuánto sol necesitan los tomates?", "Spanish"),
        ("Hoeveel zon hebben tomaten nodig?", "Dutch"),
        ("Сколько солнца нужно помидорам?", "Cyrillic"),
        ("トマトはどれくらい日光が必要ですか", "Hiragana"),
        ("番茄需要多少阳光", "Cjk"),
        ("Who sang in Los Lobos de la Montana, and what did the band do?", None),
        ("The word 東京 means Tokyo in Japanese.", None),
        ("def f(x): return x", None),
        ("tomato sun hours", None),
        ("", None),
        ("12345 :-)", None),
    ],
)
def test_language_is_told_by_script_and_function_words(text, language):
    assert find_foreign_language(text) == language


@pytest.mark.parametrize(
    ("texts", "question", "what"),
    [
        ([ENGLISH], "Wie viel Sonne brauchen Tomaten?", "question seem to be German"),
        (GERMAN, "Tomaten Sonne Stunden", "passages seem to be German"),
    ],
)
def test_other_languages_get_one_warning_with_the_remedy(texts, question, what):
    retriever = Retriever.from_texts(texts, embedder="static", fallback_floor=0.0)
    with pytest.warns(LanguageWarning, match=f"{what}.*verifier='BAAI/bge-reranker-v2-m3'") as caught:
        retriever.retrieve(question)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retriever.retrieve(question)
        retriever.retrieve_many([question, "Wer hat das Brot gebacken?"])


def test_english_and_other_verifiers_get_no_warning():
    english = Retriever.from_texts([ENGLISH, GERMAN[1]], embedder="static", fallback_floor=0.0)
    assert english.retrieve("How much sun do tomatoes want?").passages
    assert Retriever.from_texts(GERMAN, **make_components()).retrieve("Wie viel Sonne brauchen Tomaten?").passages
