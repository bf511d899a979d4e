"""How is a text cut into passages? Where its structure allows, by semantic-text-splitter; headings become titles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from meve.errors import ConfigurationError
from meve.ingest._file_kinds import Kind, language_of
from meve.ingest._grammars import grammar
from meve.ingest._headings import Heading, Outline, markdown_outline, rst_as_markdown, rst_outline

CHARS_PER_TOKEN = 20
"""A token stands for at most so many characters: WordPiece counts a word of a hundred letters or more, such as encoded
data, as one; and blanks, such as a table's, as none."""
TITLE_TOKENS = 40
"""Outer headings are left off a title that is longer."""
JOINT = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """How passages are cut.

    Raises:
        ConfigurationError: `tokens` under 16, or an `overlap` that is negative or not under `tokens`.
    """

    tokens: int = 200
    """The most tokens of a passage's text. With its title it must fit the embedder's window."""
    overlap: int = 0
    """How many tokens neighbours may share."""

    def __post_init__(self) -> None:
        if isinstance(self.tokens, bool) or not isinstance(self.tokens, int) or self.tokens < 16:
            raise ConfigurationError(f"chunk_tokens is {self.tokens!r}: give a whole number of at least 16")
        if isinstance(self.overlap, bool) or not isinstance(self.overlap, int) or not 0 <= self.overlap < self.tokens:
            raise ConfigurationError(
                f"chunk_overlap is {self.overlap!r}: give a whole number from 0 to under chunk_tokens ({self.tokens})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text."""

    text: str
    title: str
    start: int
    """Offset of its first character: `whole[start:end] == text`."""
    end: int


class Chunker:
    """Cuts texts into chunks.

    Args:
        chunking: how large.
        count: counts tokens.
    """

    def __init__(self, chunking: Chunking, count: Callable[[str], int]) -> None:
        self.chunking = chunking
        self.count = count

    def split(self, text: str, kind: Kind, name: str, title: str = "") -> list[Chunk]:
        """Chunks in the order of the text.

        Left out are headings that stand in titles, and chunks that hold no letter and no digit.

        Args:
            text: the whole; for HTML, the Markdown made of it.
            kind: how to read it.
            name: the file's name; tells the language of code.
            title: stands where no heading does; the name, if empty.
        """
        title = title or name.rpartition("/")[2]
        if kind in {"markdown", "html"}:
            return self._outlined(
                text, self._splitter("MarkdownSplitter").chunk_indices(text), markdown_outline(text), title
            )
        if kind == "rst":
            spans = self._splitter("MarkdownSplitter").chunk_indices(rst_as_markdown(text))
            return self._outlined(text, spans, rst_outline(text), title)
        language = language_of(name) if kind == "code" else None
        if language is not None and (capsule := grammar(language)) is not None:
            spans = self._splitter("CodeSplitter", capsule).chunk_indices(text)
        else:
            spans = self._splitter("TextSplitter").chunk_indices(text)
        return self._outlined(text, spans, Outline(()), title)

    def size(self, text: str) -> int:
        """How much of the chunk size a text takes up."""
        return max(self.count(text), len(text) // CHARS_PER_TOKEN)

    def _splitter(self, kind: str, *arguments: object) -> Any:  # noqa: ANN401 - three classes without a common one
        import semantic_text_splitter

        make = getattr(semantic_text_splitter, kind).from_callback
        return make(*arguments, self.size, self.chunking.tokens, self.chunking.overlap)

    def _outlined(self, text: str, spans: Sequence[tuple[int, str]], outline: Outline, title: str) -> list[Chunk]:
        followings = [start for start, _ in spans[1:]] + [len(text)]
        chunks = []
        for (start, piece), following in zip(spans, followings, strict=False):
            shared, body = _shared(text, outline, start, start + len(piece))
            if not text[body : start + len(piece)].strip():
                if _led_on(outline, shared, following):
                    continue
                shared, body = shared[:-1], start
            raw = text[body : start + len(piece)]
            stripped = raw.strip("\n").rstrip()
            begin = body + len(raw) - len(raw.lstrip("\n"))
            chunks.append(
                Chunk(text=stripped, title=self._title(shared) or title, start=begin, end=begin + len(stripped))
            )
        return [chunk for chunk in chunks if any(map(str.isalnum, chunk.text))]

    def _title(self, path: Sequence[Heading]) -> str:
        titles = [heading.title for heading in path if heading.title]
        while len(titles) > 1 and self.size(JOINT.join(titles)) > TITLE_TOKENS:
            del titles[0]
        whole = JOINT.join(titles)
        return whole if self.size(whole) <= TITLE_TOKENS else whole[: TITLE_TOKENS * 3].rsplit(" ", 1)[0] + " …"


def _shared(text: str, outline: Outline, start: int, end: int) -> tuple[tuple[Heading, ...], int]:
    """The headings that all of text[start:end] stands under, and where it begins behind those at its head."""
    inside = outline.between(start, end)
    lead = start
    for heading in inside:
        if text[lead : heading.start].strip():
            break
        lead = heading.body
    shared = outline.path(lead if lead < end else max(start, end - 1))
    for heading in inside:
        shared = _common(shared, outline.path(heading.start)) if heading not in shared else shared
    body = start
    for heading in inside:
        if heading not in shared or text[body : heading.start].strip():
            break
        body = min(heading.body, end)
    return shared, body


def _common(one: Sequence[Heading], other: Sequence[Heading]) -> tuple[Heading, ...]:
    """How far two paths go together, from the outermost on."""
    return tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _led_on(outline: Outline, shared: Sequence[Heading], following: int) -> bool:
    """Whether headings without text of their own stand above the text that follows, and so in its title."""
    return bool(shared) and outline.path(following)[: len(shared)] == tuple(shared)
