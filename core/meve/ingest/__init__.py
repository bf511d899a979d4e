"""Files into passages: read, cut by their structure, and kept in step with an index."""

from meve.ingest._file_kinds import Kind, kind_of
from meve.ingest._file_readers import MAX_BYTES, FileText, read_text
from meve.ingest._file_walk import Found, find_files
from meve.ingest._passages import Cut, cut
from meve.ingest.chunking import Chunk, Chunker, Chunking
from meve.ingest.folder import ingest, last_chunking
from meve.ingest.report import IngestReport, SkippedFile

__all__ = [
    "MAX_BYTES",
    "Chunk",
    "Chunker",
    "Chunking",
    "Cut",
    "FileText",
    "Found",
    "IngestReport",
    "Kind",
    "SkippedFile",
    "cut",
    "find_files",
    "ingest",
    "kind_of",
    "last_chunking",
    "read_text",
]
