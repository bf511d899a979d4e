"""From a file's text to passages: cut by its kind, named by its place, with where they came from."""

from dataclasses import dataclass

from meve.errors import IngestError
from meve.ingest._file_kinds import kind_of, language_of
from meve.ingest._grammars import grammar
from meve.ingest._html import html_to_markdown
from meve.ingest._jsonl import read_rows
from meve.ingest.chunking import Chunker
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a file gave."""

    passages: tuple[Passage, ...]
    complaints: tuple[str, ...] = ()
    """Of the lines that were left out."""
    lacked: str = ""
    """The language whose grammar isn't installed, so that the file was cut as plain text."""


def cut(text: str, source: str, chunker: Chunker) -> Cut:
    """The passages of a file. Ids are `source#1`, `source#2`, …, unless a JSONL row brings its own.

    Metadata: `source`; `kind`; `chunk`, from 1; `start` and `end`, character offsets into the file's text, or into
    the Markdown that was made of HTML. For JSONL: `source`, `kind`, `line`, and what else the row holds.

    Args:
        text: as `read_text` gives it.
        source: the file's relative path, with forward slashes.
        chunker: says how large passages are.

    Raises:
        IngestError: HTML that can't be parsed, or JSONL in which no line is a passage.
    """
    kind = kind_of(source)
    if kind == "jsonl":
        rows = read_rows(text, source)
        if rows.complaints and not rows.passages:
            raise IngestError(f"no line of it is a passage: {rows.complaints[0]}")
        return Cut(passages=rows.passages, complaints=rows.complaints)
    title = ""
    if kind == "html":
        page = html_to_markdown(text)
        text, title = page.markdown, page.title
    chunks = chunker.split(text, kind, source, title)
    language = language_of(source) or ""
    return Cut(
        passages=tuple(
            Passage(
                id=f"{source}#{number}",
                text=chunk.text,
                title=chunk.title,
                metadata={"source": source, "start": chunk.start, "end": chunk.end, "chunk": number, "kind": kind},
            )
            for number, chunk in enumerate(chunks, start=1)
        ),
        lacked=language if language and grammar(language) is None else "",
    )
