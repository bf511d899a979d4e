"""Splits a text into sentences."""

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
