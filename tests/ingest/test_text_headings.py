"""Headings of plain texts become titles, and what only looks like one doesn't."""

import pytest

from meve.ingest import Chunker, Chunking
from meve.ingest._text_headings import text_outline
from meve.testing.fakes import WordCounter

BODY = "The cellar of block C is overfull, so that bikes without\na tag will be removed in May and given to the shop.\n"


def split(text: str, name: str = "minutes.txt", tokens: int = 30, overlap: int = 0) -> list[tuple[str, str]]:
    chunker = Chunker(Chunking(tokens=tokens, overlap=overlap), WordCounter().count)
    return [(chunk.title, chunk.text) for chunk in chunker.split(text, "text", name)]


def titles(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in text_outline(text).headings]


@pytest.mark.parametrize("name", ["MINUTES", "minutes.TXT", "notes/minutes.text"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1. CELLAR\n\n", "2. GARDEN\n\n"),
        ("1. CELLAR\n", "2. GARDEN\n"),
        ("1. The cellar\n\n", "2) The garden\n\n"),
        ("1. The cellar\n", "2. The garden\n"),
        ("CELLAR\n\n", "THE GARDEN, WEST\n\n"),
        ("Cellar\n======\n", "Garden\n======\n\n"),
        ("-------\nCellar\n-------\n", "-------\nGarden\n-------\n"),
    ],
)
def test_headings_become_titles_below_the_name_of_the_file(name, first, second):
    body = f"{BODY}\n{BODY}"
    chunks = split(f"Present: all.\n\n{first}{body}\n{second}{body}", name)
    file = name.rpartition("/")[2]
    cellar, garden = (part.strip("-=\n").strip("-=\n") for part in (first, second))
    assert chunks == [
        (file, "Present: all."),
        *[(f"{file} › {title}", BODY.strip()) for title in (cellar, garden) for _ in "12"],
    ]


def test_title_of_the_text_stands_above_its_headings():
    chunks = split(f"HOUSING CO-OPERATIVE\nMinutes of March 24\n\n1. CELLAR\n\n{BODY}\n2. GARDEN\n\n{BODY}")
    top = "HOUSING CO-OPERATIVE Minutes of March 24"
    assert [title for title, _ in chunks] == [f"{top} › 1. CELLAR", f"{top} › 2. GARDEN"]


def test_levels_follow_numbers_and_the_order_of_underlines():
    first = f"Guide\n=====\n\nUse\n---\n{BODY}"
    text = f"{first}\n1. Files\n\n{BODY}\n1.2 Names\n\n{BODY}\n2. Tags\n\n{BODY}\nStop\n----\n{BODY}"
    assert titles(text) == [
        (1, "Guide"), (11, "Use"), (21, "1. Files"), (22, "1.2 Names"), (21, "2. Tags"), (11, "Stop"),
    ]  # fmt: skip
    assert split(text)[2][0] == "Guide › Use › 1. Files › 1.2 Names"


def test_manual_page_is_split_at_its_sections():
    page = f"TOOL(1)     Tools     TOOL(1)\n\nNAME\n    tool - clean\n\nEXIT STATUS\n    0   Good.\n\n    1   {BODY}"
    assert titles(page) == [(1, "NAME"), (1, "EXIT STATUS")]


def test_two_headings_in_capitals_without_text_between_are_one():
    assert titles(f"PART ONE\nof two.\n\nCHAPTER I\n\nTHE CELLAR\n\n{BODY}\nCHAPTER II\n\n{BODY}") == [
        (1, "CHAPTER I THE CELLAR"),
        (1, "CHAPTER II"),
    ]


def test_line_of_marks_ends_a_section():
    rule = "=" * 30
    text = f"{BODY}\nCELLAR\n\n{BODY}\n{rule}\n{BODY}\nGARDEN\n\n{BODY}"
    assert [title.partition(" › ")[2] for title, _ in split(text)] == ["", "CELLAR", "", "GARDEN"]


def test_tiny_sections_share_a_passage():
    text = f"1. CELLAR\n\nIt is full.\n\n2. GARDEN\n\nIt is dry.\n\n3. ROOF\n\n{BODY}\n{BODY}"
    assert split(text, tokens=100) == [
        ("minutes.txt", "1. CELLAR\n\nIt is full.\n\n2. GARDEN\n\nIt is dry."),
        ("minutes.txt › 3. ROOF", f"{BODY}\n{BODY}".strip()),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"CELLAR\n\n{BODY}",
        f"{BODY}\nNASA\n\n{BODY}",
        f"{BODY}\nDO NOT RUN THIS!\n\n{BODY}\nIT IS DANGEROUS.\n\n{BODY}",
        "1. Bread\n\n2. Milk\n\n3. Eggs from the market\n\nThat is all.\n",
        "1. Open the lid\n\nIt is stiff.\n\n2. Take the key\n\nIt is red.\n\n3. Close the lid\n\nSoftly.\n",
        f"1. Bread\n\n{BODY * 3}\n1. Milk\n\n{BODY * 3}\n",
        f"5. Bread\n\n{BODY * 3}\n6. Milk\n\n{BODY * 3}\n",
        f"1. The hash is long enough to match\n   others.\n\n{BODY * 3}\n2. It is fast on\n   all.\n\n{BODY * 3}",
        f"1. It is cheap,\nand it is good.\n{BODY * 3}\n2. It is fast,\nand quiet.\n{BODY * 3}",
        f"1. The hash of the file is long enough to match no\nOther one.\n{BODY * 3}\n2. It is\nFast.\n{BODY * 3}",
        f"24 March\n\n{BODY * 3}\n12.5 kg of flour\n\n{BODY * 3}",
        f"NAME   PRICE\n\n{BODY}\nNAME   RENT\n\n{BODY}",
        f"Name  Price\n===========\n{BODY}\nName  Rent\n==========\n{BODY}",
        f"MAX_SIZE\n\n{BODY}\nMIN_SIZE\n\n{BODY}",
        f"X = 1\n\n{BODY}\nY = 2\n\n{BODY}",
        f"BS1 5TR\n\n{BODY}\nBS2 7AA\n\n{BODY}",
        f"BREAD\n\nMILK\n\nEGGS\n\n{BODY}\nSALT\n\nOIL\n\nRICE\n\n{BODY}",
        f"THE ROSES ARE RED\nAND VIOLETS BLUE\n\n{BODY}\nTHE SKY IS GREY\nAND SO ARE YOU\n\n{BODY}",
        f"    CELLAR\n\n{BODY}\n    GARDEN\n\n{BODY}",
        f"{BODY}----\n{BODY}\n{BODY}----\n{BODY}",
        f"----------\n$ git log\n----------\n{BODY}\n----------\n$ git gc\n----------\n{BODY}",
        "2026-03-01 ERROR disk full\n\n2026-03-02 ERROR disk full\n\nDONE\n",
        f"ROOF\n\n{BODY}\nCELLAR\n\n{BODY}\nGARDEN\n\n{BODY * 120}",
        "ROOF\n\nCELLAR\n",
        "",
    ],
)  # fmt: skip
def test_lookalikes_are_no_headings(text):
    assert titles(text) == []


@pytest.mark.parametrize("name", ["app.log", "config.yaml", "mail.eml"])
def test_other_files_have_no_headings(name):
    assert {title for title, _ in split(f"1. CELLAR\n\n{BODY}\n2. GARDEN\n\n{BODY}", name)} == {name}


@pytest.mark.parametrize("name", ["minutes.txt", "notes.log"])
@pytest.mark.parametrize("title", ["Bicycle cellar", "Bicycle cellar\n--------------"])
@pytest.mark.parametrize("tokens", [22, 24, 26, 40])
def test_passage_does_not_end_with_the_title_of_the_next(name, title, tokens):
    text = f"{BODY}\n{title}\n\n{BODY}\n{BODY}\nThe last words are short."
    chunks = split(text, name, tokens)
    assert len(chunks) > 1
    assert all(WordCounter().count(chunk) <= tokens for _, chunk in chunks)
    assert not any(chunk.endswith(title) for _, chunk in chunks)
    assert sum(chunk.count("Bicycle cellar") for _, chunk in chunks) == 1
    words = " ".join(chunk for _, chunk in chunks).split()
    assert words == text.split(), "nothing is lost or twice"


@pytest.mark.parametrize("text", ["", "\n\n", "\n \n1. CELLAR\n\n\n2. GARDEN\n\n \n"])
def test_text_without_words_below_its_headings_is_split(text):
    assert all(chunk for _, chunk in split(text))
    blank = f"\n\n{text}ROOF\n\n{BODY}"
    assert split(blank)[-1] == ("minutes.txt", f"{text}ROOF\n\n{BODY}".strip())


def test_items_of_a_list_are_not_taken_for_titles():
    text = "\n\n".join(f"Item number {n}" for n in range(30))
    assert [chunk for _, chunk in split(text)] == ["\n\n".join(text.split("\n\n")[n : n + 10]) for n in (0, 10, 20)]


def test_questions_below_headings_are_titled():
    asked = "".join(f"Q: {word} is it?\nA: {BODY}\n" for word in ("Who", "What"))
    chunks = split(f"Guide\n=====\n\nCellar\n------\n\n{asked}Garden\n------\n\n{asked}", tokens=60)
    assert [title for title, _ in chunks] == ["Guide › Cellar"] * 2 + ["Guide › Garden"] * 2
