import hashlib
import os
import socket
from pathlib import Path

import pytest

from meve.errors import IngestError
from meve.ingest import find_kind, read_text
from meve.ingest._file_readers import MAGIC, decode
from meve.ingest._html import html_to_markdown
from meve.ingest._jsonl import read_jsonl_passages

needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def file(folder: Path, data: bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "head",
    [
        "<svg xmlns='x'>",
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\n "svg11.dtd">\n<svg width="9">',
        "\n <!-- drawn by hand --> <SVG\n>",
    ],
)
def test_svg_raises(head):
    with pytest.raises(IngestError, match="SVG"):
        decode(f"{head}<path d='M 0 0'/></svg>".encode())
    assert decode(b"<p>See <svg></svg></p>")
    assert decode(b"<svgish>") == "<svgish>"


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>\n<html><body><svg width='9'></svg></body></html>",
        '<?xml version="1.0"?>\n<!DOCTYPE html [<!ENTITY a "b>">]>\n<html><svg></svg></html>',
        "<!-- a --><p>?></p><!-- b --><svg></svg>",
        "<!-- lint disable -->\n" * 400,
    ],
)
def test_page_with_a_picture_or_many_comments_is_text(page):
    """Decided at once: an expression that tried every way to pair the comments would never end."""
    assert decode(page.encode()) == page
    assert decode(b" " * 20_000) == " " * 20_000


def test_text_is_read_unchanged(tmp_path):
    read = read_text(file(tmp_path, "Grüße\n".encode()))
    assert (read.text, read.size) == ("Grüße\n", 8)
    assert read.sha256 == hashlib.sha256("Grüße\n".encode()).hexdigest()


def test_byte_order_mark_is_dropped_and_newlines_are_normalised(tmp_path):
    path = file(tmp_path, b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(path).text == "one\ntwo\nthree\n" == path.read_text(encoding="utf-8-sig")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"caf\xe9 au lait", "not UTF-8: byte 0xe9 at offset 3; save it as UTF-8"),
        (b"text\0text", "binary: a NUL byte at offset 4"),
        ("text".encode("utf-16"), "not UTF-8: it begins with the byte order mark of UTF-16; save it as UTF-8"),
        (b"%PDF-1.7 ...", "binary: a PDF; convert it to text first"),
    ],
)
def test_non_utf8_error_names_offset(tmp_path, data, reason):
    with pytest.raises(IngestError) as caught:
        read_text(file(tmp_path, data))
    assert str(caught.value) == reason


@pytest.mark.parametrize("magic", MAGIC)
def test_binary_file_error_names_format(magic):
    with pytest.raises(IngestError, match=r"^binary: an? "):
        decode(magic + b"rest")


def test_huge_file_raises_before_it_is_read(tmp_path):
    path = tmp_path / "huge.txt"
    with path.open("wb") as out:
        out.truncate(10**12)
    with pytest.raises(IngestError, match=r"too large: 1,000,000,000,000 bytes, over the limit of 20,000,000"):
        read_text(path)


def test_size_limit_is_inclusive(tmp_path):
    path = file(tmp_path, b"12345")
    assert read_text(path, max_bytes=5).text == "12345"
    with pytest.raises(IngestError, match=r"5 bytes, over the limit of 4"):
        read_text(path, max_bytes=4)


@needs_permissions
def test_forbidden_file_raises(tmp_path):
    path = file(tmp_path, b"secret")
    path.chmod(0)
    with pytest.raises(IngestError, match=r"permission denied"):
        read_text(path)


def test_permission_error_raises_for_any_user(tmp_path, monkeypatch):
    """Root may read every file, so the error is simulated."""
    path = file(tmp_path, b"secret")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(IngestError, match=r"^permission denied$"):
        read_text(path)


def test_broken_link_error_names_target(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(IngestError, match=r"a broken link, to nowhere"):
        read_text(tmp_path / "link")
    with pytest.raises(IngestError, match=r"there is no such file"):
        read_text(tmp_path / "missing")


def test_link_to_itself_raises(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(IngestError):
        read_text(tmp_path / "loop")


def test_pipes_and_sockets_raise_unopened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            kind = {"pipe": "a pipe", "socket": "a socket"}[name]
            with pytest.raises(IngestError, match=f"^not a regular file: {kind}"):
                read_text(tmp_path / name)
    with pytest.raises(IngestError, match=r"^not a regular file: a device$"):
        read_text(Path(os.devnull))


def test_file_that_becomes_a_pipe_raises_at_once(tmp_path, monkeypatch):
    path = file(tmp_path, b"text")
    status = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda self: status)
    with pytest.raises(IngestError, match=r"^not a regular file: a pipe"):
        read_text(path)


def test_kind_follows_suffix():
    names = ["A.MD", "a.html", "a.rst", "a.py", "a.tsx", "a.jsonl", "a.json", "Makefile", "a.b/c"]
    assert [find_kind(n) for n in names] == [
        "markdown", "html", "rst", "code", "code", "jsonl", "text", "text", "text",
    ]  # fmt: skip


def test_html_yields_visible_text():
    markdown, title = html_to_markdown(
        """<?xml version="1.0"?><!DOCTYPE html><!-- remark --><html><head><title> The
        page </title><style>p {}</style><script>alert(1)</script><body><nav>Home</nav>
        <h1>Snake_case</h1><p>See <a href="http://x">the <b>guide</b></a>.</p><ul><li>one</li><li>two</li></ul>
        <pre>a = 1
  b = 2</pre><script>more()</script></body></html>"""
    )
    assert title == "The page"
    assert markdown.startswith("# Snake_case\n\nSee the **guide**.\n\n- one\n- two\n\n```\na = 1\n  b = 2\n```")
    for hidden in ("alert", "more()", "Home", "remark", "xml", "p {}", "http"):
        assert hidden not in markdown


def test_html_navigation_is_left_out():
    markdown, _ = html_to_markdown(
        """<body class="nav"><div class="navheader"><table><tr><td>Prev</td><td>Up</td></tr></table></div>
        <div role="navigation">Home</div><ul class="wide breadcrumbs"><li>Docs</li></ul><div class="toc">1. One</div>
        <p class="navy">Navigation is explained here.</p><table><tr><td>Next</td></tr></table></body>"""
    )
    assert markdown.startswith("Navigation is explained here.")
    assert "Next" in markdown
    for hidden in ("Prev", "Up", "Home", "Docs", "One"):
        assert hidden not in markdown


@pytest.mark.parametrize(
    "page",
    [
        '<div class="content toc"><p>all</div>',
        '<div class="toc"><main>all</main></div><p>Much longer words after it.</p>',
        '<div role="navigation"><h1>all</h1></div><p>Much longer words after it.</p>',
        '<div class="nav">Home</div><div class="links"><div class="toc">1. One</div><p>all of the text</p></div>',
    ],
)
def test_html_container_of_the_page_is_kept(page):
    markdown, _ = html_to_markdown(page)
    assert "all" in markdown
    assert "One" not in markdown
    assert "Home" not in markdown


def test_html_links_of_headings_to_themselves_and_buttons_are_left_out():
    markdown, _ = html_to_markdown(
        '<a href="#main">Skip to content</a><h1>Bees<span><a href="#bees">#</a></span></h1>'
        '<h2>Food<a href="#f">\u00b6</a></h2><p>See <a href="#f">food</a>.</p><pre>buzz()<button>copy</button></pre>'
    )
    assert markdown == "# Bees\n\n## Food\n\nSee food.\n\n```\nbuzz()\n```"


def test_html_buttons_that_are_all_of_a_heading_are_kept():
    arrow = "<svg><title>arrow</title></svg>"
    button = f'<!-- x --><button aria-controls="a">\n {arrow} <span>Which <b>food</b>?</span></button>'
    markdown, _ = html_to_markdown(
        f'<h1>Bees</h1><h2>{button}</h2><div id="a" hidden>Nectar.</div><dl><dt>{button}</dt><dd>Pollen.</dd></dl>'
        "<h2>Wax <button>edit</button></h2><p>It melts.</p>"
    )
    assert markdown == "# Bees\n\n## Which **food**?\n\nNectar.\n\nWhich **food**?\n:   Pollen.\n\n## Wax\n\nIt melts."


def test_html_terms_of_one_definition_are_adjacent():
    markdown, _ = html_to_markdown("<dl><dt>-a</dt> <dt>-b</dt><dd>Both.</dd><dt>-c</dt><dd>One.</dd></dl>")
    assert markdown == "-a\n-b\n:   Both.\n\n-c\n:   One."


def test_html_heading_of_a_note_begins_no_section():
    page = "<h1>Bees</h1><div class='note'><h3 class='title'>Note</h3><p>They sting.</p></div><p>They fly.</p>"
    assert html_to_markdown(page)[0] == "# Bees\n\n**Note**\n\nThey sting.\n\nThey fly."


def test_html_nested_too_deeply_raises():
    with pytest.raises(IngestError, match=r"nested too deeply"):
        html_to_markdown("<div>" * 100_000 + "x")


def test_jsonl_rows_become_passages():
    (first, second), complaints = read_jsonl_passages(
        '{"text": "Ice floats.", "id": 7, "title": "Ice", "lang": "en", "metadata": {"year": 1999}}\n\n'
        '{"content": "Iron sinks."}\n',
        "a/facts.jsonl",
    )
    assert complaints == []
    assert (first.id, first.title, first.text) == ("7", "Ice", "Ice floats.")
    assert first.metadata == {"source": "a/facts.jsonl", "line": 1, "kind": "jsonl", "lang": "en", "year": 1999}
    assert (second.id, second.title, second.metadata["line"]) == ("a/facts.jsonl#3", "", 3)


def test_row_keeps_its_own_source():
    (passage,), _ = read_jsonl_passages('{"text": "x", "source": "http://x"}', "f.jsonl")
    assert passage.metadata["source"] == "http://x"


@pytest.mark.parametrize(
    ("keys", "name", "kept"),
    [
        ('"id": "a", "_id": "b"', "a", {"_id": "b"}),
        ('"id": null, "_id": "b"', "b", {}),
        ('"_id": "b"', "b", {}),
    ],
)
def test_second_id_of_a_row_is_metadata(keys, name, kept):
    ((passage,), ()) = read_jsonl_passages(f'{{"text": "x", "metadata": null, {keys}}}', "f.jsonl")
    assert passage.id == name
    assert {key: value for key, value in passage.metadata.items() if key in ("id", "_id")} == kept


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("[1]", "expected a JSON object, got list"),
        ('{"body": "x"}', "neither 'text' nor 'content' among the keys (body)"),
        ('{"text": " "}', "'text' is blank: give it some text"),
        ('{"text": 3}', "'text' is int: give it some text"),
        ('{"text": "x", "id": true}', "'id' is True: give some text or a whole number"),
        ('{"text": "x", "id": ""}', "'id' is '': give some text or a whole number"),
        ('{"text": "x", "title": 3}', "'title' must be text, got int"),
        ('{"text": "x", "metadata": []}', "'metadata' is list: give an object"),
        ('{"text": "x", "n": NaN}', "NaN is not valid JSON"),
        ('{"text": "x", "n": 1e999}', "Out of range float values are not JSON compliant"),
        ('{"text": "\\ud800"}', "a lone surrogate, which is invalid in UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        (f'{{"text": "x", "n": {"[" * 63 + "]" * 63}}}', "metadata must be nested at most 63 levels deep"),
        ('{"text": "again", "id": "first"}', "the id 'first' is already used on an earlier line"),
    ],
)
def test_invalid_row_is_reported_and_others_read(line, complaint):
    text = f'{{"text": "a", "id": "first"}}\n{line}\n{{"text": "b", "id": "last"}}'
    passages, (told,) = read_jsonl_passages(text, "f.jsonl")
    assert [p.id for p in passages] == ["first", "last"]
    assert told.startswith(f"line 2: {complaint}")
