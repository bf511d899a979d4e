"""Ingestion: read files, split them into passages by structure, and keep an index up to date."""

from meve.ingest._file_kinds import FileKind, find_kind
from meve.ingest._file_readers import MAX_BYTES, FileText, read_text
from meve.ingest._file_walk import FolderListing, find_files
from meve.ingest._passages import FilePassages, split_file
from meve.ingest.chunking import Chunk, Chunker, Chunking
from meve.ingest.folder import MAX_SECONDS, ingest, last_chunking
from meve.ingest.ray_shards import ingest_on_ray
from meve.ingest.report import IngestReport, SkippedFile

__all__ = [
    "MAX_BYTES",
    "MAX_SECONDS",
    "Chunk",
    "Chunker",
    "Chunking",
    "FileKind",
    "FilePassages",
    "FileText",
    "FolderListing",
    "IngestReport",
    "SkippedFile",
    "find_files",
    "find_kind",
    "ingest",
    "ingest_on_ray",
    "last_chunking",
    "read_text",
    "split_file",
]
