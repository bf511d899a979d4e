"""Splits the text of a long memory into passages, each with a vector, so that the memory is found by any part of it."""

PASSAGE = 400
"""The most characters of a passage, and of a text that has none (docs/benchmarks-memory.md compares sizes)."""
MAX_PASSAGES = 128
"""The number of passages of a text; those of longer texts are longer."""


def split_passages(text: str) -> list[str]:
    """Return the passages of a long text, in order, cut between paragraphs or sentences; none for a short text.

    >>> split_passages("I moved to Lyon.")
    []
    >>> [len(passage) for passage in split_passages("word " * 200)]
    [399, 399, 199]
    """
    if len(text) <= PASSAGE:
        return []
    from semantic_text_splitter import TextSplitter

    size = max(PASSAGE, 2 * len(text) // MAX_PASSAGES)
    passages = TextSplitter((size // 2, size)).chunks(text)
    return passages if len(passages) > 1 else []
