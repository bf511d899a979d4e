"""Tells whether a text shares words with a question, where its vector or its rating shows too little of them."""

from meve.components.lexical.analyzers import search_words


def shares_words(question: str, text: str) -> bool:
    """Return whether a text has most words of a question, or one of letters and digits, such as an error code.

    The vector of a long passage hardly shows a name or a code in it. Stop words don't count.

    >>> [shares_words(asked, "E3: no water.") for asked in ("What does E3 mean?", "Who is Ingrid?")]
    [True, False]
    """
    asked = set(search_words(question))
    shared = asked & set(search_words(text))
    return 2 * len(shared) > len(asked) or any(map(_is_code, shared))


def shares_code(question: str, text: str) -> bool:
    """Return whether a text has a word of letters and digits of the question, such as an error code.

    >>> [shares_code("What does E3 mean?", text) for text in ("| E3 | no water |", "| E4 | no mean water |")]
    [True, False]
    """
    codes = set(filter(_is_code, search_words(question)))
    return bool(codes) and not codes.isdisjoint(search_words(text))


def _is_code(word: str) -> bool:
    """Return whether a word has letters and digits, a letter first: `e3` or `fat32`, but not `1990s`."""
    return word[0].isalpha() and any(map(str.isdigit, word))
