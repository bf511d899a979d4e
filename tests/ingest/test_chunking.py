import ast
import itertools
import pydoc_data.topics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meve.errors import ConfigurationError
from meve.ingest import Chunker, Chunking, split_file
from meve.ingest import chunking as module
from meve.ingest._file_kinds import LANGUAGES
from meve.ingest._headings import markdown_outline, rst_outline
from meve.ingest._markup import close_fence, hide_unclosed_fences
from meve.testing.fakes import WordCounter


def chunker(tokens: int = 20, overlap: int = 0) -> Chunker:
    return Chunker(Chunking(tokens=tokens, overlap=overlap), WordCounter().count)


GUIDE = """# Guide

Intro of the guide.

## Install

Run the installer, then wait until it has ended, and restart the machine once it has.

## Use

Call it, with the name of the file that it should read, and look at what comes out of it.
"""


def test_markdown_is_split_at_headings_which_become_titles():
    chunks = chunker().split(GUIDE, "markdown", "guide.md")
    assert [(c.title, c.text.split()[0]) for c in chunks] == [
        ("Guide", "Intro"),
        ("Guide › Install", "Run"),
        ("Guide › Use", "Call"),
    ]


def test_sections_are_not_joined_even_if_they_fit():
    assert len(chunker(tokens=100).split(GUIDE, "markdown", "guide.md")) == 3


def test_tiny_sections_share_a_chunk_and_keep_their_headings():
    text = f"# Top\n\n{'Intro. ' * 6}\n\n## One\n\nFirst words.\n\n## Two\n\nSecond words.\n"
    tiny = text[text.index("## One") :].strip()
    assert [c.text for c in chunker(tokens=140).split(text, "markdown", "f.md")] == [f"{'Intro. ' * 6}\n\n{tiny}"]
    last = chunker(tokens=80).split(text, "markdown", "f.md")[-1]
    assert (last.title, last.text) == ("Top", tiny)


OPTIONS = """Start.

a
:   The first option has a short text.

b
c
:   The second option has two names, and a text that is
    somewhat longer.
"""


@pytest.mark.parametrize("tokens", [16, 18, 20, 24])
def test_term_stays_with_its_definition(tokens):
    texts = [c.text for c in chunker(tokens=tokens).split(OPTIONS, "markdown", "f.md")]
    assert len(texts) > 1
    for part in ("a\n:   The first", "b\nc\n:   The second"):
        assert any(part in text for text in texts)


def test_each_definition_is_a_passage_of_its_own():
    first, second, third = (f"{word}\n:   {'Some words on it. ' * 4}" for word in "abc")
    text = f"# Page\n\n## Options\n\nSome lead.\n\n{first}\n\n{second}\n{third}\n\nWords after them."
    chunks = chunker(tokens=100).split(text, "markdown", "f.md")
    lead, after = "Some lead.", "Words after them."
    assert [c.text for c in chunks] == [lead, *(t.rstrip() for t in (first, second, third)), after]
    assert {c.title for c in chunks} == {"Page › Options"}
    assert len(chunker(tokens=200).split(text, "markdown", "f.md")) == 4, "the first shares a passage with the lead"


def test_definition_with_others_inside_stays_whole_if_it_fits():
    inner = "".join(f"    {word}\n    :   {'Some words on it. ' * 2}\n\n" for word in "bc")
    text = f"Lead.\n\na\n:   {'Some outer words. ' * 4}\n\n{inner}d\n:   {'Some last words. ' * 4}"
    whole = chunker(tokens=60).split(text, "markdown", "f.md")
    assert [c.text.split()[0] for c in whole] == ["Lead.", "a", "d"]
    parts = chunker(tokens=20).split(text, "markdown", "f.md")
    assert [(c.title, c.text.split()[0]) for c in parts] == [
        ("f.md", "Lead."), ("f.md", "a"), ("f.md › a", "b"), ("f.md › a", "c"), ("f.md", "d"),
    ]  # fmt: skip


def test_directives_that_define_are_passages_of_their_own_and_notes_are_not():
    def text(name: str) -> str:
        return f"Lead words.\n\n.. {name}:: --fast\n\n   {'First. ' * 12}\n\nAfter it.\n"

    texts = [c.text.split()[0] for c in chunker(tokens=100).split(text("option"), "rst", "f.rst")]
    assert texts == ["Lead", "..", "After"]
    assert len(chunker(tokens=100).split(text("versionadded"), "rst", "f.rst")) == 1


def make_questions(question: str = "Q: ", answer: str = "A: ") -> str:
    pairs = [f"{question}{word} is it?\n{answer}{'Some words on it. ' * 5}".rstrip() for word in ("Who", "What", "Why")]
    return "Some lead.\n\n" + "\n\n".join(pairs) + "\n\nWords after them.\n"


@pytest.mark.parametrize("kind", ["text", "markdown", "rst"])
@pytest.mark.parametrize(
    ("question", "answer"), [("Q: ", "A: "), ("Q1. ", "A1. "), ("**Q:** ", "**A:** "), ("Question 2: ", "\nAnswer: ")]
)
def test_each_question_is_a_passage_with_its_answer(kind, question, answer):
    chunks = chunker(tokens=100).split(make_questions(question, answer), kind, "faq.txt")
    texts = [c.text for c in chunks]
    assert [text.split()[0] for text in texts] == ["Some", *[question.split()[0]] * 3, "Words"]
    for word, text in zip(("Who", "What", "Why"), texts[1:4], strict=True):
        assert word in text
        assert text.count("Some words on it.") == 5
    assert {c.title for c in chunks} == {"faq.txt"}


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_title_above_the_first_question_is_no_passage_of_its_own(gap):
    asked = make_questions().removeprefix("Some lead.\n\n")
    texts = [c.text for c in chunker(tokens=100).split(f"Club rules{gap}{asked}", "text", "faq.txt")]
    assert [text.split()[0] for text in texts] == ["Club", "Q:", "Q:", "Words"]
    assert texts[0].startswith(f"Club rules{gap}Q: Who is it?\nA: Some")


def test_answer_of_several_paragraphs_is_titled_by_its_question():
    answer = f"A: {'First words. ' * 6}\n\n{'Second words. ' * 6}"
    text = f"Q: Who?\n{answer}\n\nQ: What?\n{answer}\n"
    whole, *rest = chunker(tokens=40).split(text, "text", "faq.txt")
    assert whole.text == f"Q: Who?\n{answer}".rstrip()
    assert [c.text.split()[0] for c in rest] == ["Q:", "Second"], "after the last answer, a paragraph stands alone"
    parts = chunker(tokens=16).split(text, "text", "faq.txt")
    assert [(c.title, c.text.split()[0]) for c in parts[:3]] == [
        ("faq.txt", "Q:"), ("faq.txt › Who?", "Second"), ("faq.txt", "Q:"),
    ]  # fmt: skip


ANSWERED = "Some words on it. " * 5


@pytest.mark.parametrize(
    ("form", "first"),
    [("**{}**\n\n{}", "**Who"), ("**{}** {}", "**Who"), ("__1. {}__\n{}", "__1."), ("- **{}** {}", "-")],
)
def test_emphasised_questions_are_passages_with_their_answers(form, first):
    text = "# FAQ\n\nSome lead.\n\n" + "\n\n".join([form.format("Who is it?", ANSWERED)] * 2)
    chunks = chunker(tokens=100).split(f"{text}\n\n**Note.** Words after them.", "markdown", "f.md")
    assert [c.text.split()[0] for c in chunks] == ["Some", first, first, "**Note.**"]
    assert [c.text.count("Some words") for c in chunks] == [0, 5, 5, 0]


@pytest.mark.parametrize(
    "text", ["**Who is it?**", "**Who** is it?\n\n**What** is it?", "```\n**Who?**\n**What?**\n```"]
)
def test_single_or_partly_emphasised_question_is_no_list(text):
    assert len(chunker(tokens=60).split(f"{text}\n\nLast words of it.", "markdown", "f.md")) == 1


WRITTEN = "Some words on it. " * 7


def make_thread(between: str, *, sender: str = "From:", date: str = "Date:") -> str:
    mails = [
        f"{sender} {name}\n{date} Mon, 3 Feb\n\nHello all,\n\n{WRITTEN}\n\n{name}" for name in ("Ann", "Bob", "Cyd")
    ]
    return between.join(mails)


@pytest.mark.parametrize(("sender", "date"), [("From:", "Date:"), ("**From:**", "**Sent:**"), ("Von:", "Gesendet:")])
@pytest.mark.parametrize("between", ["\n\n", "\n\n---\n\n"])
@pytest.mark.parametrize("kind", ["text", "markdown"])
def test_header_of_a_mail_in_a_thread_stays_with_its_text(kind, between, sender, date):
    """At the end of the passage before, it would tell that its sender wrote that."""
    chunks = chunker(tokens=50).split(make_thread(between, sender=sender, date=date), kind, "thread.txt")
    assert [c.text.split("\n")[0] for c in chunks] == [f"{sender} {name}" for name in ("Ann", "Bob", "Cyd")]
    assert [c.text.removesuffix("---").split()[-1] for c in chunks] == ["Ann", "Bob", "Cyd"]


@pytest.mark.parametrize(
    ("after", "title"), [("# Notes", "Notes"), ("* * *", "f.md › Ann, Mon, 3 Feb"), ("***", "f.md")]
)
def test_part_of_a_long_mail_is_titled_by_sender_and_date(after, title):
    text = f"From: Ann\nTo: Bob\nDate: Mon, 3 Feb\n\n{WRITTEN}\n\n{WRITTEN}\n\n{after}\n\n{WRITTEN}"
    chunks = chunker(tokens=50).split(text, "markdown", "f.md")
    assert [c.title for c in chunks] == ["f.md", "f.md › Ann, Mon, 3 Feb", title]


def test_greeting_of_a_mail_stays_with_its_text():
    text = f"From: Ann\nDate: Mon\n\nHello all,\n\n{WRITTEN}{WRITTEN}"
    assert "Some words" in chunker(tokens=34).split(text, "markdown", "f.md")[0].text


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("From: Oslo\nTo: Bergen", 1),
        ("Date: Mon\n\nFrom: Ann", 1),
        ("```\nFrom: Ann\nDate: Mon\n```", 1),
        ("From: Ann\nDate: Mon", 2),
    ],
)
def test_only_adjacent_lines_with_sender_and_date_are_the_header_of_a_mail(text, passages):
    whole = f"{WRITTEN}\n\n{text}\n\n{WRITTEN}"
    assert len(chunker(tokens=80).split(whole, "markdown", "f.md")) == passages
    titles = {c.title for c in chunker(tokens=20).split(whole, "markdown", "f.md")}
    assert titles == ({"f.md"} if passages == 1 else {"f.md", "f.md › Ann, Mon"})


@pytest.mark.parametrize(
    "text",
    [
        "Q: Who?\nA: Some words.\n\nAll others come later.",
        "Q. Smith wrote it.\n\nQ. Jones read it.",
        "```\nQ: Who?\nA: He.\nQ: What?\nA: That.\n```",
    ],
)
def test_what_is_no_list_of_questions_is_not_cut_as_one(text):
    for kind in ("text", "markdown"):
        assert len(chunker(tokens=60).split(f"{text}\n\nLast words of it.", kind, "f.txt")) == 1


def test_part_of_a_definition_has_its_terms_in_the_title():
    text = f"# Page\n\na\nb\n:   {'First words. ' * 6}\n\n    {'Second words. ' * 6}\n\n"
    text += f"    inner\n    :   {'Third words. ' * 6}\n\n        {'Fourth words. ' * 6}\n\n{'After words. ' * 6}"
    chunks = chunker(tokens=16).split(text, "markdown", "f.md")
    assert [(c.title, c.text.split()[0]) for c in chunks] == [
        ("Page", "a"),
        ("Page › a, b", "Second"),
        ("Page › a, b", "inner"),
        ("Page › a, b › inner", "Fourth"),
        ("Page", "After"),
    ]


def test_definition_in_one_long_line_is_cut_between_sentences():
    first, second = chunker(tokens=16).split("term\n:   " + "Some four words here. " * 7, "markdown", "f.md")
    assert first.text.startswith("term\n:   Some")
    assert (second.title, second.text.split()[0]) == ("f.md › term", "Some")


@pytest.mark.parametrize("lead", ["The steps are as follows:", "**Steps**", "*What are the steps?*", "    ### Steps"])
def test_announcement_stays_with_what_follows(lead):
    text = f"{'Words before it. ' * 4}\n\n{lead}\n\n- open the door\n- go out\n- close the door\n"
    first, second = chunker(tokens=17).split(text, "markdown", "f.md")
    assert first.text.endswith("before it.")
    assert second.text.startswith(lead)


def test_directive_stays_with_its_body_and_titles_the_rest():
    text = f"{'Words. ' * 14}\n\n.. option:: --fast\n   :default: no\n\n   {'First. ' * 8}\n\n   {'Second. ' * 12}\n"
    chunks = chunker(tokens=16).split(text, "rst", "f.rst")
    assert [(c.title, c.text.split()[0]) for c in chunks] == [
        ("f.rst", "Words."),
        ("f.rst", ".."),
        ("f.rst › option --fast", "Second."),
    ]


def test_labels_are_no_chunks():
    text = f".. _top:\n\nTitle\n=====\n\n.. _a:\n\n{'Words. ' * 14}\n\n.. _b:\n.. _c:\n\nNext\n----\n\n{'Last. ' * 14}"
    chunks = chunker(tokens=16).split(text + "\n\n.. _link: https://x.org/a\n", "rst", "f.rst")
    assert [(c.title, c.text.split()[0]) for c in chunks] == [("Title", ".."), ("Title › Next", "Last.")]


def test_fenced_code_is_no_structure():
    text = f"{'Words. ' * 12}\n\n```\na\n:   b\n\n# c\n\nd\n```\n\n{'More. ' * 12}"
    texts = [c.text for c in chunker(tokens=16).split(text, "markdown", "f.md")]
    assert texts[1] == "```\na\n:   b\n\n# c\n\nd\n```"


@pytest.mark.parametrize(
    ("lead", "titles"),
    [
        ("## Options\nfoo\n", "Options › foo"),
        ("Options\n-------\nfoo\nbar\n", "Options › foo, bar"),
        ("| a | b |\n|---|---|\n| c | d |\n\n", "f.md"),
        ("A paragraph\nof two lines.\n\n", "f.md"),
        ("## Options\nfoo\n\n", "Options › foo"),
        ("## Options\n", "Options"),
    ],
)
def test_terms_are_neither_headings_nor_tables_nor_paragraphs(lead, titles):
    text = f"{lead}: {'First words. ' * 7}\n\n  {'Last words. ' * 7}"
    assert chunker(tokens=16).split(text, "markdown", "f.md")[-1].title == titles


def test_section_that_begins_with_a_definition_is_cut_off():
    text = f"{'Words. ' * 8}\n\n## One\na\n: {'First. ' * 5}\n\n## Two\nb\n: {'Second. ' * 5}"
    assert [c.title for c in chunker().split(text, "markdown", "f.md")] == ["f.md", "One", "Two"]


@pytest.mark.parametrize("code", ["  ```\n  code\n```", "  ```\ncode\n  ```", "~~~\ncode\n   ~~~"])
def test_fence_closes_at_any_column(code):
    text = f"{code}\n\nterm\n: {'First words. ' * 7}\n\n  {'Last words. ' * 7}"
    assert chunker(tokens=16).split(text, "markdown", "f.md")[-1].title == "f.md › term"


def test_fence_ends_with_its_list_item():
    text = f"- item\n\n  ```\n  code\n\nterm\n: {'First words. ' * 7}\n\n  {'Last words. ' * 7}"
    assert chunker(tokens=16).split(text, "markdown", "f.md")[-1].title == "f.md › term"


def test_deep_indentation_is_split():
    text = "\n".join(" " * n + "word" for n in range(2000, 0, -1))
    assert all(len(c.text.split()) <= 16 for c in chunker(tokens=16).split(text, "markdown", "f.md"))


def test_heading_without_text_is_kept():
    text = "# Rules\n\n## No refunds are given\n\n## Returns\n\n" + "Bring it back within a week. " * 8
    whole = " ".join(f"{c.title} {c.text}" for c in chunker().split(text, "markdown", "rules.md"))
    for words in ("Rules", "No refunds are given", "Returns", "Bring it back"):
        assert words in whole


def test_text_before_first_heading_is_titled_by_file():
    text = "Words first.\n\n# Then\n\n" + "More words follow here. " * 5
    assert chunker().split(text, "markdown", "docs/a.md")[0].title == "a.md"
    assert chunker().split(text, "markdown", "docs/a.md", "Page")[0].title == "Page"


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ('Set-up <a name="set-up"></a>', "Set-up"),
        ('<img src="a.svg" alt="x"/> H<sub>2</sub>O<!-- old -->', "H2O"),
        ("The --config <file> option", "The --config <file> option"),
        ("An <i-node> of <a1>", "An <i-node> of <a1>"),
        ("Install<br>and<BR/>run", "Install and run"),
        ("`<b>` and <B class=x>bold</B>", "<b> and bold"),
    ],
)
def test_title_holds_no_inline_html_but_placeholders(heading, title):
    assert [h.title for h in markdown_outline(f"# {heading}\n\nWords.\n").headings] == [title]


def test_heading_lookalikes_are_ignored():
    text = "---\nname: x\n---\n\n# Real *one*\n\n```\n# code\n```\n\n> # quoted\n\n- # listed\n\nSecond\n------\n"
    assert [(h.level, h.title) for h in markdown_outline(text, 3).headings] == [(1, "Real one"), (2, "Second")]


def test_rst_levels_follow_order_of_adornments():
    text = (
        "=====\nTitle\n=====\n\nPart\n====\n\nSection\n~~~~~~~\n\ncode::\n\n   Not\n   ===\n\n"
        "===  ===\n a    b\n===  ===\n\nNext\n====\n"
    )
    headings = rst_outline(text).headings
    assert [(h.level, h.title) for h in headings] == [(1, "Title"), (2, "Part"), (3, "Section"), (2, "Next")]
    assert text[headings[0].start : headings[0].body] == "=====\nTitle\n=====\n"


def test_rst_is_split_at_headings_which_become_titles():
    text = pydoc_data.topics.topics["assignment"]
    chunks = chunker(tokens=120).split(text, "rst", "assignment.rst")
    titles = list(dict.fromkeys(c.title for c in chunks))
    assert titles[0] == "Assignment statements"
    assert "Assignment statements › Augmented assignment statements" in titles
    assert not any("****" in c.text or "====" in c.text for c in chunks)


def test_offsets_and_sizes_are_exact_on_real_text():
    for name, text in pydoc_data.topics.topics.items():
        chunks = chunker(tokens=50).split(text, "rst", name)
        for chunk in chunks:
            assert text[chunk.start : chunk.end] == chunk.text
            assert len(chunk.text.split()) <= 50
        titles = {word for chunk in chunks for word in chunk.title.split()}
        ends = [0, *(c.end for c in chunks)]
        gaps = [text[a:b] for a, b in zip(ends, [*(c.start for c in chunks), len(text)], strict=True)]
        lost = {word for gap in gaps for word in gap.split() if any(map(str.isalnum, word))}
        assert lost <= titles


FRAGMENTS = ["# A", "## B", "\nTitle\n=====", "\nPart\n----", "```", "  ```", "", "a", "Five words stand in it.", "c:"]
FRAGMENTS += [": text of a term", "- item", "  indented", "    code here", "| a |", ".. note:: x", "   body", ".. _l:"]
FRAGMENTS += ["Words. " * 12, "More words. " * 12]


@given(
    st.lists(st.sampled_from(["# A", "## B", "text here", "", "```", "* x", "====", "---", "> q", "    code", "| a |"]))
)
def test_offsets_are_exact_on_random_markdown_and_rst(lines):
    text = "\n".join(lines)
    for kind in ("markdown", "rst"):
        for chunk in chunker(tokens=16).split(text, kind, "f"):
            assert text[chunk.start : chunk.end] == chunk.text
            assert chunk.text.strip()


def test_python_is_split_between_statements():
    text = "import os\n\n\n" + "\n\n".join(f"def f{n}(x):\n    y = x + {n}\n    return y\n" for n in range(20))
    chunks = chunker(tokens=25).split(text, "code", "pkg/m.py")
    assert len(chunks) > 5
    assert {c.title for c in chunks} == {"m.py"}
    for chunk in chunks:
        ast.parse(chunk.text)


SOURCES = {
    "bash": "f() {\n  echo hello\n}\n",
    "c": "int f(int a) {\n  return a + 1;\n}\n",
    "c_sharp": "class A {\n  int F(int a) { return a + 1; }\n}\n",
    "cpp": "int f(int a) {\n  return a + 1;\n}\n",
    "go": "func f(a int) int {\n  return a + 1\n}\n",
    "java": "class A {\n  int f(int a) { return a + 1; }\n}\n",
    "javascript": "function f(a) {\n  return a + 1;\n}\n",
    "python": "def f(a):\n    return a + 1\n",
    "ruby": "def f(a)\n  a + 1\nend\n",
    "rust": "fn f(a: i32) -> i32 {\n  a + 1\n}\n",
    "tsx": "function f(a: number) {\n  return <b>{a}</b>;\n}\n",
    "typescript": "function f(a: number): number {\n  return a + 1;\n}\n",
}


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_every_language_is_split_by_its_grammar(suffix):
    piece = SOURCES[LANGUAGES[suffix]]
    result = split_file(piece * 12, f"a{suffix}", chunker(tokens=16))
    assert result.missing_grammar == ""
    assert len(result.passages) > 2
    for passage in result.passages:
        assert passage.text.count(piece.strip()) * len(piece.split()) == len(passage.text.split())


def test_language_without_grammar_is_split_as_text(monkeypatch):
    monkeypatch.setattr(module, "load_grammar", lambda _: None)
    monkeypatch.setattr("meve.ingest._passages.load_grammar", lambda _: None)
    result = split_file("fn f() {}\n", "a.rs", chunker())
    assert (result.missing_grammar, result.passages[0].text) == ("rust", "fn f() {}")


def test_passages_carry_source_metadata():
    first = split_file(GUIDE, "docs/guide.md", chunker()).passages
    assert [p.id for p in first] == ["docs/guide.md#1", "docs/guide.md#2", "docs/guide.md#3"]
    assert first == split_file(GUIDE, "docs/guide.md", chunker()).passages
    about = first[1].metadata
    assert GUIDE[about["start"] : about["end"]] == first[1].text
    assert (about["source"], about["chunk"], about["kind"]) == ("docs/guide.md", 2, "markdown")


def test_encoded_data_and_blanks_are_split_despite_few_tokens():
    """WordPiece counts a word of a hundred thousand letters as one token."""
    chunks = chunker(tokens=20).split("a" * 10_000, "text", "blob")
    assert max(len(c.text) for c in chunks) <= 21 * module.CHARS_PER_TOKEN


def test_long_title_loses_outer_headings():
    text = f"# {'outer ' * 50}\n\n## Inner\n\n{'Words stand here. ' * 30}\n"
    assert chunker(tokens=100).split(text, "markdown", "f.md")[-1].title == "Inner"


@pytest.mark.parametrize(("kind", "between"), [("text", " "), ("markdown", "\n"), ("markdown", "\n\n")])
def test_overlap_repeats_end_of_previous_chunk(kind, between):
    text = between.join(f"word{n}." for n in range(100))
    chunks = chunker(tokens=20, overlap=5).split(text, kind, "f")
    assert max(len(c.text.split()) for c in chunks) <= 20
    assert all(b.start < a.end for a, b in itertools.pairwise(chunks))


def test_overlap_keeps_to_the_size():
    """Lines that fill a chunk leave less room for the overlap, or none."""
    text = "\n".join(["one two three four"] * 2 + [f"- {'word ' * 19}\n  last"] * 3)
    chunks = chunker(tokens=24, overlap=8).split(text, "markdown", "f.md")
    assert max(len(c.text.split()) for c in chunks) <= 24


def test_overlap_leaves_split_lines_alone():
    text = f"{'Some four words here. ' * 8}\n  Glued words.\n\nNext.\n\n{'Last words. ' * 10}"
    chunks = chunker(tokens=24, overlap=8).split(text, "markdown", "f.md")
    assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(chunks))
    assert not any("Glued" in c.text for c in chunks if "Next" in c.text)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25), st.integers(0, 15))
def test_random_chunks_keep_to_size_and_order(lines, overlap):
    text = "\n".join(lines)
    for kind in ("markdown", "rst"):
        chunks = chunker(tokens=16, overlap=overlap).split(text, kind, "f")
        assert all(text[c.start : c.end] == c.text for c in chunks)
        assert all(a.start < b.start for a, b in itertools.pairwise(chunks))
        assert all(len(c.text.split()) <= 16 for c in chunks)


@pytest.mark.parametrize("values", [{"tokens": 15}, {"tokens": True}, {"overlap": -1}, {"tokens": 20, "overlap": 20}])
def test_sizes_out_of_range_raise(values):
    with pytest.raises(ConfigurationError, match=r"^(tokens|overlap) must be a whole number"):
        Chunking(**values)


def texts(text: str, kind: str = "markdown", tokens: int = 16) -> list[str]:
    return [chunk.text for chunk in chunker(tokens).split(text, kind, "a")]


PLACE = ("source", "start", "end", "chunk", "kind")
WORDS = "one two three four five six seven eight nine ten eleven twelve"


@pytest.mark.parametrize("code", ["```python\nx = 1", "```\nx = 1", "~~~\nx = 1\n```", "```a\nx\n```\n\n```\ny"])
def test_unclosed_fence_leaves_the_headings_below(code):
    chunks = chunker().split(f"# A\n\n{code}\n\n# B\n\n{WORDS}\n", "markdown", "a.md")
    assert (chunks[-1].title, chunks[-1].text) == ("B", WORDS)


def test_closed_fences_are_kept():
    text = "# A\n\n````\n```\n# no heading\n````\n\n~~~\n# none\n~~~\n"
    assert hide_unclosed_fences(text) == text
    assert hide_unclosed_fences(f"{text}```b\nx") == f"{text}....\nx"
    assert [close_fence(t) for t in ("```a\nx", "```\nx\n```", "- ~~~~\n  x")] == [
        "```a\nx\n```",
        "```\nx\n```",
        "- ~~~~\n  x\n~~~~",
    ]


def test_a_fence_whose_block_is_in_another_passage_is_left_out():
    """The block is as long as a passage, so that its first or last line falls into a passage of text."""
    code = "\n".join(f"row {n} of the listing" for n in range(8))
    text = f"# A\n\n{WORDS}\n\n```\n{code}\n```\n\nEach listing tells something.\n"
    for tokens in range(16, 48):
        chunks = chunker(tokens).split(text, "markdown", "a.md")
        assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
        for chunk in chunks:
            assert not chunk.text.startswith("```\n\n"), (tokens, chunk.text)
            assert not chunk.text.endswith(f"{WORDS}\n\n```"), (tokens, chunk.text)


@pytest.mark.parametrize(
    "markup",
    [
        "```python\n```",
        "<!-- lint disable -->",
        "<!--\nTODO: more\n\nwords\n-->",
        "~~~\n~~~",
        "[bee]: bee.md\n[`x y`]: <a> 'b'",
        "</details>",
        "<div align='left'>\n<br/>\n</div>",
    ],
)
def test_passages_of_fences_and_comments_are_not_made(markup):
    assert texts(f"# A\n\n{markup}\n\n# B\n\n{WORDS}") == [WORDS]
    assert texts(f"# A\n\n```html\n<!-- code -->\n```\n\n# B\n\n{WORDS}") == ["```html\n<!-- code -->\n```", WORDS]


def test_comment_beside_text_or_without_end_is_kept():
    for text in (f"<!-- a --> {WORDS}", f"<!-- {WORDS}", f"{WORDS} <!--\na -->"):
        assert " ".join(texts(f"# A\n\n{text}")).split() == text.split()


@pytest.mark.parametrize(
    "markup",
    [
        ".. toctree::\n   :maxdepth: 2\n\n   install\n   usage",
        ".. a comment\n   of two lines",
        "..\n   a comment",
        ".. image:: bee.png\n   :alt: a bee",
        ".. code-block:: python",
        ".. automodule:: bees\n   :members:",
        ".. |bee| image:: bee.png",
        ".. currentmodule:: bees",
        ".. cmake-module:: ../Modules/Bees.cmake",
    ],
)
def test_passages_of_directives_and_comments_are_not_made(markup):
    page = f"Aa\n==\n\n{markup}\n\nBb\n==\n\n{WORDS}\n"
    assert texts(page, "rst") == [WORDS]


@pytest.mark.parametrize(
    "content",
    [".. note:: Bees sting.", ".. http:get:: /bees.json", ".. part:: ../bees.rst\n\n   Bees sting.",
     ".. function:: buzz(loudness)", ".. note::\n\n   Bees sting.", ".. [1] A footnote.",
     ".. figure:: bee.png\n   :alt: x\n\n   A bee.", ".. code-block:: python\n   :linenos:\n\n   buzz(3)"],
)  # fmt: skip
def test_directives_with_text_are_kept(content):
    assert texts(f"Aa\n==\n\n{content}\n\nBb\n==\n\n{WORDS}\n", "rst") == [content, WORDS]


def test_rows_of_a_table_have_its_columns_in_the_title():
    rows = "".join(f"| number {n} | It means {n}. |\n" for n in range(6))
    chunks = chunker(30).split(
        f"# Codes\n\nAll codes:\n\n| Code | Meaning |\n| --- | --- |\n{rows}", "markdown", "a.md"
    )
    assert [chunk.title for chunk in chunks[:2]] == ["Codes", "Codes › Code, Meaning"]
    assert "| --- | --- |\n| number 0 |" in chunks[0].text
    assert chunks[1].text.startswith("| number ")


def test_anchors_belong_to_the_heading_below():
    text = f'# A\n\n{WORDS}\n\n<a id="B"></a>\n\n## B\n\n{WORDS}\n\n# C\n\n<i id="x"></i><i id="y"></i>\n'
    chunks = chunker().split(text, "markdown", "a.md")
    assert [(chunk.title, chunk.text) for chunk in chunks] == [("A", WORDS), ("A › B", WORDS)]


def test_options_of_a_page_are_no_passage():
    assert texts(":orphan:\n\n.. _a:\n", "rst") == []


def test_language_of_a_code_block_is_no_term():
    code = "".join(f"    one two three {n}\n\n" for n in range(9))
    chunks = chunker().split(f"Aa\n==\n\n.. code-block:: python\n\n{code}", "rst", "a.rst")
    assert len(chunks) > 1
    assert {chunk.title for chunk in chunks} == {"Aa"}


def test_front_matter_titles_the_file_and_is_no_passage():
    front = '---\ntitle: "About bees"\nlayout: page\ntags:\n  - a\n  # why\n---\n'
    chunks = chunker(16).split(f"{front}\n{WORDS}\n\n# Queens\n\n{WORDS}\n", "markdown", "a.md")
    assert [(chunk.title, chunk.text) for chunk in chunks] == [("About bees", WORDS), ("Queens", WORDS)]


@pytest.mark.parametrize("gap", ["\n", ""])
@pytest.mark.parametrize("overlap", [0, 60])
def test_short_front_matter_is_no_part_of_the_first_passage(gap, overlap):
    text = f"---\ntitle: Sports hall\n---\n{gap}## Fees\n\n40 euro.\n\n## Term\n\nTwo weeks.\n"
    (chunk,) = chunker(200, overlap).split(text, "markdown", "a.md")
    assert (chunk.title, chunk.text) == ("Sports hall", text[text.index("## Fees") :].rstrip())


def test_what_stands_between_rules_of_a_page_is_text():
    (passage,) = split_file("<hr><p>Note: bees</p><hr><p>Wasps</p>", "a.html", chunker()).passages
    assert "Note: bees" in passage.text


def test_title_of_a_page_stands_before_headings_of_which_none_is_above_all():
    def titles(headings: str) -> list[str]:
        body = "".join(f"{heading}\n\n{WORDS}\n\n" for heading in headings.split("|"))
        return [chunk.title for chunk in chunker(16).split(body, "html", "a.html", "bees(1)")]

    assert titles("## bees|## Options|## Notes|### Old") == [
        "bees",
        "bees(1) › Options",
        "bees(1) › Notes",
        "bees(1) › Notes › Old",
    ]
    assert titles("# Bees|## Options") == ["Bees", "Bees › Options"]


def test_text_between_rules_is_no_front_matter():
    assert texts("---\nHere are bees.\n\n---\n") == ["---\nHere are bees.\n\n---"]


def test_aliases_in_front_matter_that_stand_for_billions_of_words_cost_nothing():
    bomb = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 30))
    text = f"---\na0: &a0 [lol]\n{bomb}title: *a29\n---\n\n{WORDS}"
    passages = split_file(text, "a.md", chunker()).passages
    assert {passage.title for passage in passages} == {"a.md"}
    assert tuple(passages[0].metadata) == PLACE
    assert sum(len(passage.text) for passage in passages) <= len(text)


def front_metadata(front: str) -> dict[str, object]:
    passage = split_file(f"---\n{front}---\n\n{WORDS}\n", "a.md", chunker()).passages[-1]
    return {name: value for name, value in passage.metadata.items() if name not in PLACE}


def test_plain_values_of_front_matter_are_metadata():
    front = "lang: en\nyear: 2024\nnorth: NO\ndraft: false\nday: 2024-05-01\ntags: [hive, queen]\n"
    assert front_metadata(front) == {
        "lang": "en", "year": 2024, "north": "NO", "draft": False, "day": "2024-05-01", "tags": ["hive", "queen"]
    }  # fmt: skip
    (passage,) = split_file(f"---\ntitle: Hive\n---\n\n# Bees\n\n{WORDS}\n", "a.md", chunker()).passages
    assert (passage.title, passage.metadata["title"]) == ("Bees", "Hive"), "the heading takes the title's place"
    (passage,) = split_file(f"---\nsource: elsewhere\nkind: x\na: b\n---\n\n{WORDS}\n", "a.md", chunker()).passages
    assert (passage.metadata["source"], passage.metadata["kind"]) == ("a.md", "markdown"), "the place is the file's"


@pytest.mark.parametrize(
    "front",
    [
        "nested: {a: 1}\n", "nothing:\n", "infinite: .inf\n", "tags: [[a]]\n", "meve.source: x\n", "1: x\n",
        "broken: [\n", "tag: !!python/name:os.system\n", f"long: {'x' * 4_000}\n",
        'a: "\\ud800"\n', 'a: [b, "\\udc00"]\n', 'a: "\\0"\n', f"a: {'9' * 3_900}\n", f"a: 0x{'f' * 16}\n",
        f"a: 1{':30' * 600}.5\n", '"": x\n', '" ": x\n', '"a\\0": x\n', '"a\\ud800": x\n',
    ],
)  # fmt: skip
def test_other_front_matter_is_no_metadata_and_stays_in_the_text(front):
    assert front_metadata(front) == {}
    passages = split_file(f"---\n{front}---\n\n{WORDS}\n", "a.md", chunker(10_000)).passages
    assert front.strip() in passages[0].text


@pytest.mark.parametrize(
    "front",
    [
        'title: "Unclosed\ncode: 4711 opens the door\n',
        "title: Keys: the code is 4711\n",
        "contact:\n  phone: 4711\n  mail: a@x\n",
        "faq:\n  - q: What is the code?\n    a: It is 4711.\n",
        "source: The code is 4711\n",
    ],
)
def test_front_matter_without_metadata_stays_in_the_text(front):
    file = split_file(f"---\n{front}---\nBody text\n", "a.md", chunker())
    assert [passage.text for passage in file.passages] == [f"---\n{front}---\nBody text"]
    assert file.complaints == ()


def test_values_of_front_matter_that_are_left_out_are_named():
    front = 'lang: en\ncontact:\n  phone: 4711\nempty:\nsource: x\n1: y\n"a\\ud800": z\n'
    file = split_file(f"---\n{front}---\n\n{WORDS}\n", "a.md", chunker())
    assert [passage.text for passage in file.passages] == [WORDS]
    assert file.complaints == ("values of the front matter aren't metadata: contact, source, other names",)
    assert split_file(f"---\nlang: en\n---\n\n{WORDS}\n", "a.md", chunker()).complaints == ()
