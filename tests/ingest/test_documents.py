"""Files that aren't plain text: notebooks, PDF and Word."""

import json
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from meve.errors import IngestError
from meve.ingest import Chunker, Chunking, find_kind, ingest, split_file
from meve.ingest._converter import Converter
from meve.ingest._documents import docx_to_markdown, pdf_to_text
from meve.ingest._notebook import notebook_to_markdown
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


@pytest.fixture
def retriever():
    return Retriever.empty(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())


@pytest.fixture
def converter():
    with Converter(60) as opened:
        yield opened


def make_pdf(*pages: str, password: str = "") -> bytes:
    """Return a PDF with a line of text on each page; a page without text is blank."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf isn't installed: pip install 'meve[files]'")
    from pypdf.generic import DictionaryObject, NameObject, StreamObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject({NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
                             NameObject("/BaseFont"): NameObject("/Helvetica")})  # fmt: skip
    for text in pages:
        page = writer.add_blank_page(200, 200)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F"): writer._add_object(font)})}
        )
        content = StreamObject()
        content.set_data(f"BT /F 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_docx(body: str) -> bytes:
    """Return a Word file with this body in WordprocessingML."""
    pytest.importorskip("mammoth", reason="mammoth isn't installed: pip install 'meve[files]'")
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as parts:
        parts.writestr("[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types"/>')
        target = f'Id="r" Type="{OFFICE}/officeDocument" Target="word/document.xml"'
        parts.writestr(
            "_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship {target}/></Relationships>'
        )
        parts.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
    return out.getvalue()


def paragraph(text: str, style: str = "") -> str:
    kind = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{kind}<w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def notebook(*cells: dict, **metadata: object) -> str:
    return json.dumps({"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def markdown(*lines: str) -> dict:
    return {"cell_type": "markdown", "source": [f"{line}\n" for line in lines]}


def code(source: str, output: str = "") -> dict:
    outputs = [{"output_type": "stream", "text": [output], "name": "stdout"}]
    return {"cell_type": "code", "source": source, "outputs": outputs, "execution_count": 1, "metadata": {}}


def test_notebook_cells_become_passages_titled_by_headings():
    text = notebook(
        markdown("# Bees", "", "How bees live."), code("count = 40_000\nprint(count)", "40000"),
        markdown("## Queen", "", "She lays eggs."), code(" \n"), {"cell_type": "raw", "source": "%raw"},
    )  # fmt: skip
    passages = split_file(text, "bees.ipynb", Chunker(Chunking(tokens=20), WordCounter().count)).passages
    assert [(p.id, p.title, p.text) for p in passages] == [
        ("bees.ipynb#1", "Bees", "How bees live.\n\n```python\ncount = 40_000\nprint(count)\n```"),
        ("bees.ipynb#2", "Bees › Queen", "She lays eggs."),
    ]
    assert passages[0].metadata["kind"] == "notebook"


def test_notebook_code_is_fenced_in_its_language():
    text = notebook(code("x <- '```'"), language_info={"name": "R"})
    assert notebook_to_markdown(text) == "````R\nx <- '```'\n````"


def test_unclosed_fence_in_a_cell_ends_with_the_cell():
    text = notebook(markdown("# One", "```", "a"), markdown("# Two", "Words about bees."), code("x = 1"))
    passages = split_file(text, "a.ipynb", Chunker(Chunking(tokens=20), WordCounter().count)).passages
    assert [p.title for p in passages] == ["One", "Two"]


def test_old_notebook_is_read():
    cells = [{"cell_type": "heading", "level": 2, "source": "Bees"}, {"cell_type": "code", "input": ["x = 1"]}]
    assert notebook_to_markdown(json.dumps({"worksheets": [{"cells": cells}]})) == "## Bees\n\n```python\nx = 1\n```"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', '{"cells": ["a"]}', "[" * 100_000])
def test_broken_notebook_raises(text):
    with pytest.raises(IngestError, match=r"^not a notebook"):
        notebook_to_markdown(text)


def test_pdf_pages_become_text():
    assert pdf_to_text(make_pdf("Bees make honey.", "", "Wasps do not.")) == "Bees make honey.\n\nWasps do not."


def test_encrypted_broken_and_scanned_pdf_raise():
    with pytest.raises(IngestError, match=r"^an encrypted PDF"):
        pdf_to_text(make_pdf("Secret.", password="honey"))
    with pytest.raises(IngestError, match=r"^a broken PDF"):
        pdf_to_text(b"%PDF-1.7\nnothing")
    with pytest.raises(IngestError, match=r"^a broken PDF|^a PDF without text"):
        pdf_to_text(make_pdf("Bees.")[:300])
    with pytest.raises(IngestError, match=r"^a PDF without text, such as a scan"):
        pdf_to_text(make_pdf("", ""))


def test_word_headings_and_tables_become_markdown():
    data = make_docx(
        paragraph("Bees", "Heading1") + paragraph("They make honey.")
        + table(("Month", "Frames"), ("May", "10")) + paragraph("Queens", "Heading2")
    )  # fmt: skip
    text = docx_to_markdown(data)
    assert text.splitlines()[:3] == ["# Bees", "", "They make honey."]
    assert "| May | 10 |" in text
    assert text.endswith("## Queens")


def test_encrypted_broken_and_huge_word_files_raise(monkeypatch):
    assert make_docx("")
    with pytest.raises(IngestError, match=r"^a Word file that is encrypted or older"):
        docx_to_markdown(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500))
    with pytest.raises(IngestError, match=r"^a broken Word file"):
        docx_to_markdown(make_docx("")[:100])
    with pytest.raises(IngestError, match=r"^a broken Word file"):
        docx_to_markdown(make_docx("<w:p>"))
    monkeypatch.setattr("meve.ingest._documents.MAX_UNPACKED", 100)
    with pytest.raises(IngestError, match=r"^too large: [\d,]+ bytes when unpacked"):
        docx_to_markdown(make_docx(paragraph("a" * 200)))


def test_documents_are_ingested_and_bad_ones_are_named(tmp_path, retriever):
    (tmp_path / "bees.pdf").write_bytes(make_pdf("Bees make honey."))
    (tmp_path / "bees.docx").write_bytes(make_docx(paragraph("Bees", "Heading1") + paragraph("They make honey.")))
    (tmp_path / "bees.ipynb").write_text(notebook(markdown("Bees make wax.")))
    (tmp_path / "bees.html").write_text("<title>Bees</title><p>Bees make jelly.</p>")
    (tmp_path / "locked.pdf").write_bytes(make_pdf("Secret.", password="honey"))
    (tmp_path / "scan.pdf").write_bytes(make_pdf(""))
    (tmp_path / "torn.docx").write_bytes(make_docx("")[:100])
    report = ingest(tmp_path, retriever)
    assert report.read == ("bees.docx", "bees.html", "bees.ipynb", "bees.pdf")
    assert {p.id: (p.title, p.text) for p in retriever.passages()} == {
        "bees.docx#1": ("Bees", "They make honey."),
        "bees.html#1": ("Bees", "Bees make jelly."),
        "bees.ipynb#1": ("bees.ipynb", "Bees make wax."),
        "bees.pdf#1": ("bees.pdf", "Bees make honey."),
    }
    assert [(s.path, s.reason.partition(":")[0]) for s in report.skipped] == [
        ("locked.pdf", "an encrypted PDF"),
        ("scan.pdf", "a PDF without text, such as a scan"),
        ("torn.docx", "a broken Word file"),
    ]
    assert ingest(tmp_path, retriever).unchanged == 4


@pytest.mark.parametrize(("package", "kind"), [("pypdf", "pdf"), ("mammoth", "docx")])
def test_missing_extra_is_named(tmp_path, retriever, monkeypatch, package, kind):
    monkeypatch.setitem(sys.modules, package, None)
    read = pdf_to_text if kind == "pdf" else docx_to_markdown
    with pytest.raises(ImportError, match=rf"'{package}', which isn't installed: pip install 'meve\[files\]'"):
        read(b"")


def test_slow_conversion_is_stopped_and_the_next_file_is_read(converter):
    slow = "<table><tr><td>" * 3_000 + "x"
    assert converter.convert(b"<p>Bees</p>", "html").text == "Bees"
    converter.max_seconds = 0.01
    with pytest.raises(IngestError, match=r"^takes too long: more than 0.01 seconds"):
        converter.convert(slow.encode() * 50, "html")
    converter.max_seconds = 60
    assert converter.convert(b"<p>Bees</p>", "html").text == "Bees"


def test_conversion_that_ends_its_process_raises(converter):
    converter.convert(b"<p>Bees</p>", "html")
    converter._process.kill()
    with pytest.raises(IngestError, match="its reader stopped with status"):
        converter.convert(b"<p>Bees</p>", "html")
    converter.close()
    assert converter._process is None


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system doesn't limit the memory of a process")
def test_conversion_takes_limited_memory():
    with Converter(15, max_memory=50 << 20) as small:
        assert small.convert(b"<p>Bees</p>", "html").text == "Bees"
        with pytest.raises(
            IngestError, match=r"^takes more than 50 MiB of memory|^its reader stopped|^takes too long"
        ):  # in time
            small.convert(b"<p>Bees make honey.</p>" * 200_000, "html")


def test_process_that_does_not_start_raises(converter, monkeypatch):
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **k: popen([command[0], "-c", "1"], **k))
    with pytest.raises(IngestError, match="another Python process couldn't be started"):
        converter.convert(b"<p>Bees</p>", "html")


def test_slow_splitting_is_stopped():
    chunker = Chunker(Chunking(), WordCounter().count, max_seconds=1e-9)
    for kind in ("code", "text", "markdown"):
        with pytest.raises(IngestError, match=r"^takes too long: more than 1e-09 seconds"):
            chunker.split("words " * 10_000, kind, "a.py")


def test_kinds_of_documents():
    assert [find_kind(n) for n in ("a.ipynb", "a.PDF", "a.docx", "a.doc")] == ["notebook", "pdf", "docx", "text"]
