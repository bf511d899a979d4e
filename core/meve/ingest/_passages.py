"""Splits a file's text into passages with ids and metadata, by the kind of file."""

from dataclasses import dataclass

from meve.errors import IngestError
from meve.ingest._converted_text import ConvertedText
from meve.ingest._converter import convert
from meve.ingest._file_kinds import FileKind, find_kind, find_language
from meve.ingest._front_matter import read_front
from meve.ingest._grammars import load_grammar
from meve.ingest._jsonl import read_jsonl_passages
from meve.ingest._notebook import notebook_to_markdown
from meve.ingest.chunking import Chunker
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePassages:
    """The passages of a file."""

    passages: tuple[Passage, ...]
    complaints: tuple[str, ...] = ()
    """What was left out: invalid lines, each with the reason, values of front matter, and the attachments of a mail."""
    missing_grammar: str = ""
    """The language whose grammar isn't installed, so that the file was split as plain text."""


def split_file(text: str, source: str, chunker: Chunker) -> FilePassages:
    """Return the passages of a file. Ids are `source#1`, `source#2`, …, unless a JSONL row sets its own.

    Metadata: `source`; `kind`; `chunk`, from 1; `start` and `end`, character offsets into the file's text, or into the
    text made from HTML, a notebook, a mail, PDF or Word; and the front matter of Markdown, or the headers of a mail.
    For JSONL: `source`, `kind`, `line` and the row's other keys.

    Args:
        text: as `read_text` returns it.
        source: the file's relative path, with forward slashes.
        chunker: splits the text.

    Raises:
        IngestError: the HTML or the mail can't be parsed, the notebook is broken, no line of the JSONL is valid, or the
            file isn't text.
    """
    kind = find_kind(source)
    if kind in ("pdf", "docx"):
        raise IngestError(f"not text: {kind}; `ingest` reads such files")
    if kind == "html" or kind == "mail":
        return split_text(convert(text.encode(), kind), source, chunker)
    return split_text(ConvertedText(text=text), source, chunker)


def split_text(file: ConvertedText, source: str, chunker: Chunker) -> FilePassages:
    """Return the passages of a file, as `split_file` does, from its text or the text made from it.

    Raises:
        IngestError: the notebook is broken, or no line of the JSONL is valid.
    """
    kind, text = find_kind(source), file.text
    if kind == "jsonl":
        rows, complaints = read_jsonl_passages(text, source)
        if complaints and not rows:
            raise IngestError(f"no line is a valid passage: {complaints[0]}")
        return FilePassages(passages=tuple(rows), complaints=tuple(complaints))
    if kind == "notebook":
        text = notebook_to_markdown(text)
    front = read_front(text if kind == "markdown" else "")
    about = front.metadata if kind == "markdown" else file.metadata
    complaints = list(file.complaints)
    if front.left_out and not front.is_text:
        complaints.append(f"values of the front matter aren't metadata: {', '.join(front.left_out):.500}")
    form = kind if kind != "mail" else "html" if file.is_markdown else "text"
    passages = []
    for number, chunk in enumerate(chunker.split(text, form, source, file.title), start=1):
        place = {"source": source, "start": chunk.start, "end": chunk.end, "chunk": number, "kind": kind}
        metadata = {**about, **place}
        passages.append(Passage(id=f"{source}#{number}", text=chunk.text, title=chunk.title, metadata=metadata))
    language = find_language(source)
    missing = language if language and load_grammar(language) is None else ""
    return FilePassages(passages=tuple(passages), complaints=tuple(complaints), missing_grammar=missing)


def explain_lack(text: str, kind: FileKind) -> str:
    """Return why a file has no passages, from its text or the text made from it."""
    if not text.strip():
        return "empty"
    front = read_front(text if kind == "markdown" else "")
    return "holds only front matter" if front.metadata else "holds no letter and no digit"
