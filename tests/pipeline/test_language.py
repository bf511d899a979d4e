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


ENGLISH_TABLES = [
    """# Price list 2026

## Rental, per day
| bike | 1 day | 3 days | 7 days |
|---|---|---|---|
| City bike | 14 € | 36 € | 70 € |
| E-bike | 38 € | 99 € | 189 € |
| Cargo bike | 55 € | 145 € | 280 € |""",
    """| room | seats | projector | per hour |
|---|---|---|---|
| La Jolla | 8 | no | 20 € |
| Los Altos | 12 | no | 35 € |
| Del Mar | 30 | yes | 60 € |""",
    """Size;Men;Women;Stock
S;36;34;no
M;40;38;ten
L;44;42;no
XL;48;46;come back in May""",
    """| code | error | remedy |
|---|---|---|
| E-09 | speed sensor not found | check magnet |
| E-10 | die cast cover open | close cover |
| I-02 | van door open | close door |""",
    """Vitamin E, 12 mg per day
Vitamin A, 1 mg per day
Sodium, 2 g per day
Sugar per portion, no limit""",
]
FOREIGN_TABLES = [
    (
        """| servizio | prezzo |
|---|---|
| Noleggio bici per un giorno | 14 € |
| Riparazione della ruota | 24 € |
| Sostituzione del freno | 35 € |
| Deposito per bici elettrica | 300 € |""",
        "Italian",
    ),
    (
        """| habitación | precio por noche |
|---|---|
| Individual con desayuno | 60 € |
| Doble con vistas al mar | 95 € |
| Cama para niños | 15 € |
| Alquiler de la sala | 120 € |""",
        "Spanish",
    ),
    (
        """| Leistung | Preis |
|---|---|
| Miete für einen Tag | 14 € |
| Reparatur mit Ersatzteil | 24 € |
| Abholung nach 18 Uhr | 10 € |
| Kindersitz und Helm | 9 € |""",
        "German",
    ),
    (
        """| Raum | Plätze | Beamer |
|---|---|---|
| Saal im Erdgeschoss | 80 | auf Anfrage |
| Zimmer mit Küche | 12 | nicht vorhanden |
| Keller | 20 | ist eingebaut |""",
        "German",
    ),
    (
        """Orario della biblioteca
lunedì;9-18;chiuso alla pausa
martedì;9-20;aperto anche di sera
sabato;9-13;solo per studenti
domenica;chiuso;""",
        "Italian",
    ),
]


@pytest.mark.parametrize("table", ENGLISH_TABLES)
def test_few_words_in_an_english_table_tell_no_language(table):
    assert find_foreign_language(table) is None


@pytest.mark.parametrize(("table", "language"), FOREIGN_TABLES)
def test_tables_in_other_languages_are_told(table, language):
    assert find_foreign_language(table) == language


@pytest.mark.parametrize(
    ("texts", "question", "what"),
    [
        ([ENGLISH], "Wie viel Sonne brauchen Tomaten?", "question seems to be German"),
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
