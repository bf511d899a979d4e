"""Splits a text into chunks along its structure; headings become titles."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from time import monotonic

from meve._tables import read_csv_rows
from meve.errors import ConfigurationError, IngestError
from meve.ingest._file_kinds import FileKind, find_language
from meve.ingest._front_matter import read_front
from meve.ingest._grammars import load_grammar
from meve.ingest._headings import Heading, Outline, markdown_outline, rst_outline
from meve.ingest._layout import Form, Layout
from meve.ingest._line_cutter import SECTION_SHARE, LineCutter
from meve.ingest._mail_threads import has_mails
from meve.ingest._markup import hide_unclosed_fences
from meve.ingest._questions import lists_questions
from meve.ingest._slices import iter_slices
from meve.ingest._text_headings import find_last_title, text_outline

CHARS_PER_TOKEN = 20
"""Characters that count as at least one token: WordPiece counts a very long word as one, and blanks as none."""
TITLE_TOKENS = 40
"""Outer headings are dropped from a title that exceeds this many tokens."""
JOINT = " › "
TEXTS = ("", ".txt", ".text")
"""The suffixes of plain texts that may have headings."""
TABLES = (".csv", ".tsv")
"""The suffixes of tables, which are split between records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """The size of chunks.

    Raises:
        ConfigurationError: `tokens` is below 16, or `overlap` is negative or not below `tokens`.
    """

    tokens: int = 200
    """The maximum number of tokens of a passage's text. With its title it must fit the embedder's window."""
    overlap: int = 0
    """The maximum number of tokens that neighbouring chunks share."""

    def __post_init__(self) -> None:
        if isinstance(self.tokens, bool) or not isinstance(self.tokens, int) or self.tokens < 16:
            raise ConfigurationError(f"tokens must be a whole number of at least 16, got {self.tokens!r}")
        if isinstance(self.overlap, bool) or not isinstance(self.overlap, int) or not 0 <= self.overlap < self.tokens:
            raise ConfigurationError(f"overlap must be a whole number in [0, {self.tokens}), got {self.overlap!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a text, with its title and position."""

    text: str
    title: str
    start: int
    """The offset of its first character: `whole[start:end] == text`."""
    end: int


class Chunker:
    """Splits texts into chunks.

    Args:
        chunking: the size of chunks.
        count: counts tokens.
        max_seconds: the time limit of a text, checked after each few thousand characters; None for no limit.
    """

    def __init__(self, chunking: Chunking, count: Callable[[str], int], *, max_seconds: float | None = None) -> None:
        self.chunking = chunking
        self.count = count
        self.max_seconds = max_seconds

    def split(self, text: str, kind: FileKind, name: str, title: str = "") -> list[Chunk]:
        """Return the chunks in the order of the text.

        Headings that become titles are left out, and so are chunks without a letter or digit, or only of
        fences, comments and directives.

        Args:
            text: the whole text; for HTML, Word and notebooks, the Markdown made from them.
            kind: the kind of file.
            name: the file's name, which gives the language of code.
            title: the title of the page, where there is no heading or no single one above all others; the name of the
                file, if empty.

        Raises:
            IngestError: splitting took longer than `max_seconds`.
        """
        check = self._start_clock()
        file = name.rpartition("/")[2]
        form = _find_form(text, kind, name)
        if form is not None:
            front = read_front(text if kind == "markdown" else "")
            marked = hide_unclosed_fences(text) if form in {"markdown", "text"} else text
            outline = _read_outline(marked, form, front.lines, name)
            title = front.title or title or (file if form == "text" and outline.headings else "")
            layout = Layout(marked, outline, form, front=0 if front.is_text else front.lines)
            spans = list(self._cut_lines(text, layout, check))
            page = title if _count_outermost(outline) != 1 else ""
            return self._make_chunks(text, spans, outline, title or file, layout, page)
        language = find_language(name) if kind == "code" else None
        if language is not None and (grammar := load_grammar(language)) is not None:
            spans = list(self._cut(text, check, "CodeSplitter", grammar))
            return self._make_chunks(text, spans, Outline(()), title or file)
        outline = _read_outline(text, "text", 0, name)
        spans = list(self._cut_sections(text, outline, check))
        page = (title or file) if outline.headings and _count_outermost(outline) != 1 else ""
        return self._make_chunks(text, spans, outline, title or file, page=page)

    def size(self, text: str) -> int:
        """Return how much of the chunk size a text takes, in tokens."""
        return max(self.count(text), len(text) // CHARS_PER_TOKEN)

    def _start_clock(self) -> Callable[[], None]:
        """Return a function that raises an error once the time limit has passed."""
        began = monotonic()

        def check() -> None:
            if self.max_seconds is not None and monotonic() - began > self.max_seconds:
                raise IngestError(took_too_long(self.max_seconds))

        return check

    def _cut(self, text: str, check: Callable[[], None], kind: str, *arguments: object) -> Iterator[tuple[int, str]]:
        """Yield the offsets and texts of chunks, as a class of `semantic_text_splitter` cuts them."""
        import semantic_text_splitter

        make = getattr(semantic_text_splitter, kind).from_callback
        splitter = make(*arguments, self.size, self.chunking.tokens, self.chunking.overlap)
        for start, part in iter_slices(text):
            check()
            yield from ((start + n, piece) for n, piece in splitter.chunk_indices(part))

    def _cut_sections(self, text: str, outline: Outline, check: Callable[[], None]) -> Iterator[tuple[int, str]]:
        """Yield the offsets and texts of chunks of a plain text; only tiny sections share one."""
        limit = self.chunking.tokens // SECTION_SHARE
        ends = [*(heading.start for heading in outline.headings if heading.start), len(text)]
        start = 0
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is None or self.size(text[start:following]) > limit:
                spans = [(start + n, piece) for n, piece in self._cut(text[start:end], check, "TextSplitter")]
                yield from self._move_titles(text, spans, check)
                start = end

    def _move_titles(
        self, text: str, spans: Sequence[tuple[int, str]], check: Callable[[], None]
    ) -> Iterator[tuple[int, str]]:
        """Yield the offsets and texts of chunks; a line that may be a title at the end of one begins the next."""
        title: int | None = None
        last = spans[-1][0] + len(spans[-1][1]) if spans else 0
        for (start, piece), (following, _) in pairwise([*spans, (last, "")]):
            begin, end = start if title is None else title, start + len(piece)
            title = find_last_title(text[begin:end], text[end:following], text[following : min(last, following + 200)])
            title = title if title is None else begin + title
            whole = text[begin : end if title is None else title]
            if self.size(whole.strip()) <= self.chunking.tokens:
                yield from [(begin, whole)] if whole.strip() else []
            else:
                glued = text[begin:start].replace("\n", " ") + text[start : begin + len(whole)]
                yield from ((begin + n, part) for n, part in self._cut(glued, check, "TextSplitter"))

    def _cut_lines(self, text: str, layout: Layout, check: Callable[[], None]) -> Iterator[tuple[int, str]]:
        """Yield the offsets and texts of chunks: whole lines, or sentences of glued lines that exceed the size."""
        tokens, overlap = self.chunking.tokens, self.chunking.overlap
        cutter = LineCutter(text, layout, self.size, tokens - overlap)
        floor = 0  # chunks begin in order, and none begins within lines that were split into sentences
        for first, last in cutter.cut(0, len(layout.lines)) if layout.lines else ():
            check()
            start, end = layout.lines[first].body, cutter.ends[last - 1]
            room = tokens - cutter.size(first, last)
            if room < 0:
                floor = last
                piece = text[start:end].replace("\n", " ")
                yield from ((start + n, part) for n, part in self._cut(piece, check, "TextSplitter"))
            else:
                begin = cutter.extend_back(first, min(overlap, room), floor)
                start, floor = layout.lines[begin].start, begin + 1
                yield start, text[start:end]

    def _make_chunks(
        self,
        text: str,
        spans: Sequence[tuple[int, str]],
        outline: Outline,
        title: str,
        layout: Layout | None = None,
        page: str = "",
    ) -> list[Chunk]:
        followings = [start for start, _ in spans[1:]] + [len(text)]
        chunks: list[Chunk] = []
        for (start, piece), following in zip(spans, followings, strict=False):
            shared, body = _shared(text, outline, start, start + len(piece))
            if not text[body : start + len(piece)].strip():
                if _continues(outline, shared, following):
                    continue
                shared, body = shared[:-1], start
            raw = text[body : start + len(piece)]
            stripped = raw.strip("\n").rstrip()
            begin = body + len(raw) - len(raw.lstrip("\n"))
            end = begin + len(stripped)
            if layout is not None:
                begin, end = layout.without_cut_fences(begin, end)
                if chunks and chunks[-1].start == begin:  # with overlap, all that is left of it stands in this one
                    chunks.pop()
            titles = [heading.title for heading in shared if heading.title] or [title]
            if page and not (titles[0].startswith(page) or page.startswith(titles[0])):
                titles.insert(0, page)
            titles += layout.terms(begin) if layout else ()
            chunks.append(Chunk(text=text[begin:end], title=self._title(titles), start=begin, end=end))
        if layout is not None:
            return [chunk for chunk in chunks if layout.says_something(chunk.start, chunk.end)]
        return [chunk for chunk in chunks if any(map(str.isalnum, chunk.text))]

    def _title(self, titles: list[str]) -> str:
        while len(titles) > 1 and self.size(JOINT.join(titles)) > TITLE_TOKENS:
            del titles[0]
        whole = JOINT.join(titles)
        return whole if self.size(whole) <= TITLE_TOKENS else whole[: TITLE_TOKENS * 3].rsplit(" ", 1)[0] + " …"


def took_too_long(max_seconds: float) -> str:
    """Return the error message for a file whose time is up."""
    return f"takes too long: more than {max_seconds:g} seconds; split it, or allow more with max_seconds"


def _find_form(text: str, kind: FileKind, name: str) -> Form | None:
    """Return the markup of a text, by which it is split into lines; None for code, and for text without structure."""
    if kind in {"markdown", "html", "notebook", "docx"}:
        return "markdown"
    if kind == "rst":
        return "rst"
    if kind != "text":
        return None
    if name.lower().endswith(TABLES) and read_csv_rows(text.split("\n"))[0]:
        return "csv"
    return "text" if lists_questions(text) or has_mails(text) else None


def _read_outline(text: str, form: Form, front: int, name: str) -> Outline:
    """Return the headings of a file's text after so many lines of front matter."""
    if form == "markdown":
        return markdown_outline(text, front)
    if form == "rst":
        return rst_outline(text)
    return text_outline(text) if form == "text" and PurePosixPath(name).suffix.lower() in TEXTS else Outline(())


def _count_outermost(outline: Outline) -> int:
    levels = [heading.level for heading in outline.headings]
    return levels.count(min(levels, default=0))


def _shared(text: str, outline: Outline, start: int, end: int) -> tuple[tuple[Heading, ...], int]:
    """Return the headings above all of text[start:end], and the offset of its body after leading headings."""
    inside = outline.between(start, end)
    lead = start
    for heading in inside:
        if text[lead : heading.start].strip():
            break
        lead = heading.body
    shared = outline.path(lead if lead < end else max(start, end - 1))
    for heading in inside:
        if heading not in shared:
            above = zip(shared, outline.path(heading.start), strict=False)
            shared = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], above))
    body = start
    for heading in inside:
        if heading not in shared or text[body : heading.start].strip():
            break
        body = min(heading.body, end)
    return shared, body


def _continues(outline: Outline, shared: Sequence[Heading], following: int) -> bool:
    """Return whether headings without text also stand above the following text, and so in its title."""
    return bool(shared) and outline.path(following)[: len(shared)] == tuple(shared)
