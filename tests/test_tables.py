"""Test that each piece of a table keeps the names of its columns: when indexed, shortened, or packed by sentences."""

import re

import pytest

from meve import Retriever
from meve._tables import find_headers, read_csv_header, read_csv_rows, split_tables
from meve.components._sentence_splitter import split_passage
from meve.ingest import Chunker, Chunking
from meve.ingest._html import html_to_markdown
from meve.testing.fakes import WordCounter
from tests.fake_components import make_components

ROWS = [(f"Model {n}", f"{n * 3} kg", f"{n * 7} W. Ask us.") for n in range(1, 40)]
MARKDOWN = "| Name | Weight | Power |\n|---|---:|---|\n" + "\n".join(f"| {' | '.join(row)} |" for row in ROWS)
BARE = "Name | Weight | Power\n--- | --- | ---\n" + "\n".join(" | ".join(row) for row in ROWS)
CSV = "Name,Weight,Power\n" + "\n".join(",".join(row) for row in ROWS)
TSV = CSV.replace(",", "\t")
_HTML_ROWS = ["<td>" + "</td><td>".join(row) + "</td>" for row in [("Name", "Weight", "Power"), *ROWS]]
HTML = "<table><tr>" + "</tr><tr>".join(_HTML_ROWS) + "</tr></table>"
TABLES = {"markdown": MARKDOWN, "bare": BARE, "csv": CSV, "tsv": TSV}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_shortened_table_keeps_its_header(table):
    retriever = Retriever.from_texts([f"{table}"], **make_components())
    context = retriever.retrieve("Model 17", max_tokens=40)
    lines = context.text.splitlines()
    assert lines[0] == table.splitlines()[0]
    assert any("Model 17" in line for line in lines)
    assert len(lines) < 20


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_table_packed_by_sentences_keeps_its_header(table):
    retriever = Retriever.from_texts([f"These are lamps.\n\n{table}" if "|" in table else table], **make_components())
    context = retriever.retrieve("17 51 119", max_tokens=2_000, packing="sentences", threshold=0.3)
    lines = [line for line in context.text.splitlines() if line != "…"]
    head = table.splitlines()[: 1 + ("-|" in table or "- |" in table)]
    assert lines == [*head, next(line for line in table.splitlines() if "Model 17" in line)]


def test_row_that_is_read_by_itself_is_read_below_its_header():
    parts = split_passage(f"Lamps. They shine.\n\n{MARKDOWN}\n\nThat is all. Bye.")
    headers = find_headers(parts)
    assert parts[:2] == ["Lamps.", "They shine."]
    assert parts[-2:] == ["That is all.", "Bye."]
    assert {parts[header] for header in headers.values()} == {"\n".join(MARKDOWN.splitlines()[:2])}
    assert [parts[row] for row in headers] == MARKDOWN.splitlines()[2:]


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("a.md", "markdown", f"# Lamps\n\n{MARKDOWN}"),
        ("a.md", "markdown", f"# Lamps\n\n{BARE}"),
        ("a.html", "html", html_to_markdown(f"<h1>Lamps</h1>{HTML}")[0]),
        ("a.csv", "text", CSV),
        ("a.TSV", "text", TSV),
    ],
)
def test_chunk_cut_out_of_a_table_names_the_columns_in_its_title(name, kind, text):
    first, *rest = Chunker(Chunking(tokens=50), WordCounter().count).split(text, kind, name)
    assert all(column in first.text for column in ("Name", "Weight", "Power"))
    assert len(rest) > 1
    assert {chunk.title.partition(" › ")[2] for chunk in rest} == {"Name, Weight, Power"}
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in rest)


def test_table_whose_header_exceeds_the_budget_is_shortened_to_its_row():
    wide = " | ".join(f"column{n}" for n in range(60))
    table = f"{wide}\n{' | '.join(['---'] * 60)}\nblue sky today | yes\ngrey | no"
    context = Retriever.from_texts([table], **make_components()).retrieve("blue sky today", max_tokens=40)
    assert "blue sky today" in context.text


@pytest.mark.parametrize(
    "text",
    [
        "One, two, three.\nFour, five.\nSix.",
        "a,b,c\n1,2,3",
        "1,2,3\n4,5,6\n7,8,9",
        "Yes, it is.\nNo, it isn't.\nWell, maybe.",
        "a,,c\n1,2,3\n4,5,6",
        "",
    ],
)
def test_text_that_is_no_table_is_left_whole(text):
    assert read_csv_header(text) == []
    assert list(split_tables(text)) == [(text, False)]


def test_quoted_fields_may_hold_the_delimiter():
    assert read_csv_header('a;"b;b";c\n1;"2;2";3\n4;5;6') == ["a", "b;b", "c"]


RECORDS = "name,address,fee\n" + "".join(
    f'"Shop {n}","Main street {n}\n\nFloor {n}: left\n90{n} Gent",{n}\n' for n in range(9)
)


@pytest.mark.parametrize("above", ["", "Shops of 2026,,\nas of May,,\n\n,,\n"])
@pytest.mark.parametrize("overlap", [0, 8])
def test_passages_of_csv_hold_whole_records(above, overlap):
    chunker = Chunker(Chunking(tokens=30, overlap=overlap), WordCounter().count)
    first, *others = chunker.split(above + RECORDS, "text", "shops.csv")
    assert first.text.startswith(f"{above}name,address,fee\n")
    assert len(others) > 1
    for chunk in others:
        assert chunk.title == "shops.csv › name, address, fee" or "name,address,fee\n" in chunk.text
    for chunk in (first, *others):
        assert re.fullmatch(r"90\d Gent\",\d", chunk.text.splitlines()[-1])
    for chunk in others:
        assert re.match(r'"Shop \d","Main|name,address,fee\n', chunk.text)
    assert [any(f"Floor {n}:" in chunk.text for chunk in (first, *others)) for n in range(9)] == [True] * 9


def test_columns_may_stand_below_a_title_but_not_among_rows():
    rows = ["a,1,x", "b,2,y", "c,3,z"]
    assert read_csv_rows(["Prices,,", "name,price,unit", *rows])[0] == ["name", "price", "unit"]
    assert read_csv_rows(["a,1,x", "name,price,unit", *rows]) == ([], [])
    assert read_csv_rows([*["note,,"] * 11, "name,price,unit", *rows]) == ([], [])
