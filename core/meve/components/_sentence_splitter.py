"""Splits a text into sentences."""

from meve._tables import split_tables
from meve.errors import ModelError, wrap_errors


def split_sentences(text: str) -> list[str]:
    """Return the sentences of an English text, in order; only white space between them and lone surrogates are dropped.

    Raises:
        ModelError: the text can't be split.

    >>> split_sentences("Dr. Smith went home. It rained.")
    ['Dr. Smith went home.', 'It rained.']
    """
    import sentencex

    with wrap_errors(ModelError, "splitting a text into sentences"):
        whole = text.encode(errors="ignore").decode()
        return [sentence.strip() for sentence in sentencex.segment("en", whole) if sentence.strip()]


def split_passage(text: str) -> list[str]:
    """Return the sentences of a passage; a row of a table counts as one, and so does its header with the rule below.

    Raises:
        ModelError: the text can't be split.
    """
    parts = split_tables(text)
    return [one for part, is_table in parts for one in ([part.strip()] if is_table else split_sentences(part))]
