"""Splits a file's text into passages with ids and metadata, by the kind of file."""

from dataclasses import dataclass

from meve.errors import IngestError
from meve.ingest._file_kinds import find_kind, find_language
from meve.ingest._front_matter import read_front_metadata
from meve.ingest._grammars import load_grammar
from meve.ingest._html import html_to_markdown
from meve.ingest._jsonl import read_jsonl_passages
from meve.ingest._notebook import notebook_to_markdown
from meve.ingest.chunking import Chunker
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePassages:
    """The passages of a file."""

    passages: tuple[Passage, ...]
    complaints: tuple[str, ...] = ()
    """The invalid lines that were left out, each with the reason."""
    missing_grammar: str = ""
    """The language whose grammar isn't installed, so that the file was split as plain text."""


def split_file(text: str, source: str, chunker: Chunker) -> FilePassages:
    """Return the passages of a file. Ids are `source#1`, `source#2`, …, unless a JSONL row sets its own.

    Metadata: `source`; `kind`; `chunk`, from 1; `start` and `end`, character offsets into the file's text, or into the
    text made from HTML, a notebook, PDF or Word; and the front matter of Markdown. For JSONL: `source`, `kind`,
    `line` and the row's other keys.

    Args:
        text: as `read_text` returns it.
        source: the file's relative path, with forward slashes.
        chunker: splits the text.

    Raises:
        IngestError: the HTML can't be parsed, the notebook is broken, no line of the JSONL is valid, or the file isn't
            text.
    """
    kind, title = find_kind(source), ""
    if kind == "html":
        text, title = html_to_markdown(text)
    elif kind in ("pdf", "docx"):
        raise IngestError(f"not text: {kind}; `ingest` reads such files")
    return split_text(text, title, source, chunker)


def split_text(text: str, title: str, source: str, chunker: Chunker) -> FilePassages:
    """Return the passages of a file, as `split_file` does, from the text made from it, if it is HTML, PDF or Word.

    Raises:
        IngestError: the notebook is broken, or no line of the JSONL is valid.
    """
    kind = find_kind(source)
    if kind == "jsonl":
        rows, complaints = read_jsonl_passages(text, source)
        if complaints and not rows:
            raise IngestError(f"no line is a valid passage: {complaints[0]}")
        return FilePassages(passages=tuple(rows), complaints=tuple(complaints))
    if kind == "notebook":
        text = notebook_to_markdown(text)
    front = read_front_metadata(text) if kind == "markdown" else {}
    passages = []
    for number, chunk in enumerate(chunker.split(text, kind, source, title), start=1):
        place = {"source": source, "start": chunk.start, "end": chunk.end, "chunk": number, "kind": kind}
        metadata = {**front, **place}
        passages.append(Passage(id=f"{source}#{number}", text=chunk.text, title=chunk.title, metadata=metadata))
    language = find_language(source)
    missing = language if language and load_grammar(language) is None else ""
    return FilePassages(passages=tuple(passages), missing_grammar=missing)
