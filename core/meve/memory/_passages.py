"""Splits the text of a long memory into passages, each with a vector, so that the memory is found by any part of it."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import normalize
from meve.memory.records import HalfArray, MemoryRecord
from meve.types import FloatArray

PASSAGE = 400
"""The most characters of a passage, and of a text that has none (docs/results/memory.md compares sizes)."""
PARTS = "parts"
"""In the metadata of an item with several texts, the number of characters of each; a line break divides them."""
MAX_PASSAGES = 128
"""The most passages of a text, and texts of an item; those of longer texts are longer."""


def split_passages(text: str) -> list[str]:
    """Return the passages of a long text, in order, cut between paragraphs or sentences; none for a short text.

    >>> split_passages("I moved to Lyon.")
    []
    >>> [len(passage) for passage in split_passages("word " * 200)]
    [204, 204, 204, 384]
    """
    if len(text) <= PASSAGE:
        return []
    from semantic_text_splitter import TextSplitter

    size = max(PASSAGE, 2 * len(text) // MAX_PASSAGES)
    passages = TextSplitter((size // 2, size)).chunks(text)
    return passages if len(passages) > 1 else []


def texts_of(record: MemoryRecord) -> list[str]:
    """Return the texts of a record that are searched each by itself: the parts of an item, or its whole text."""
    texts, begin = [], 0
    for length in record.metadata.get(PARTS, ()) if record.kind == "item" else ():
        texts.append(record.text[begin : begin + length])
        begin += length + 1
    return [text for text in texts if text] or [record.text]


def split_record(record: MemoryRecord) -> list[str]:
    """Return the texts of a record that are embedded besides its first one: its other ones, and passages of long ones.

    Messages have none, since no search returns them.
    """
    if record.kind == "message":
        return []
    first, *others = texts_of(record)
    return [*split_passages(first), *(part for text in others for part in (text, *split_passages(text)))]


def pack_passages(vectors: Sequence[FloatArray] | FloatArray, dimension: int) -> HalfArray:
    """Return vectors of passages as they are stored: of length 1 and in half precision, shape (m, d).

    Args:
        vectors: the vectors, each of shape (d,); none for a short text.
        dimension: their length d.
    """
    return normalize(np.asarray(vectors, dtype=np.float32).reshape(-1, dimension)).astype(np.float16)
