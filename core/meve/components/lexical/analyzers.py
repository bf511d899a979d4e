"""How a text becomes words: plain functions, so that any `str -> list[str]` can stand in for them."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any, TypeAlias

from meve.errors import ConfigurationError, IndexMismatchError

Analyzer: TypeAlias = Callable[[str], Sequence[str]]
"""Turns a text, or a query, into words; always the same ones for the same text."""

_LISTED = """
a an the and or but nor so than then that this these those there here it its i me my we us our you your he him his she
her they them their what which who whom whose when where why how is am are was were be been being do does did has have
had having will would shall should can could may might must not no of to in on at by for from with as into about if
because while too very such don't doesn't didn't isn't aren't wasn't weren't it's
"""
FUNCTION_WORDS = frozenset(_LISTED.split())
"""English words that hold sentences together: articles, pronouns, prepositions, conjunctions, auxiliaries."""

_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Han, written without spaces."""
_MARKS = "\u0300-\u036f\u0591-\u05bd\u05bf\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0dff\u0e31-\u0e4e"
"""Vowel signs and accents, of the scripts with most readers; `\\w` doesn't hold them, and would cut words there."""
_LETTERS = rf"(?:[^\W{_ALONE}]|[{_MARKS}])"
_WORD = re.compile(rf"[{_ALONE}]|{_LETTERS}+(?:(?:'|(?<=\d)[.,](?=\d)){_LETTERS}+)*(?:\+\+|#)?")
_ASCII_WORD = re.compile(r"\w+(?:(?:'|(?<=\d)[.,](?=\d))\w+)*(?:\+\+|#)?")


def words(text: str) -> list[str]:
    """The words of a text in any script: runs of letters, digits and underscores, case folded.

    An apostrophe inside a word stays (don't), a possessive 's goes; so do points and commas except between digits
    (3.11, 1,000). C++ and C# keep their signs. Hyphens separate. Compatible forms are one (NFKC), accents are kept.
    Kana and Han characters stand alone, since nothing separates their words. No stop words, no stemming.

    >>> words("Don't use C++ 3.11's well-known state.")
    ["don't", 'use', 'c++', '3.11', 'well', 'known', 'state']
    """
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        found = _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold())
    return [word[:-2] if word.endswith("'s") else word for word in found] if "'s" in text or "\u2019" in text else found


def content_words(text: str) -> list[str]:
    """The `words` of a text without the English function words, which say nothing of what it's about.

    On 300 questions each of HotpotQA, 2Wiki, NQ, MuSiQue, NFCorpus and SciFact BM25 finds as much without them or a
    little more (recall at 20: +0.5 points in the mean), and reads far fewer postings. Other languages lose nothing but
    the words that happen to be spelled alike.

    >>> content_words("What is the capital of France?")
    ['capital', 'france']
    """
    return [word for word in words(text) if word not in FUNCTION_WORDS]


def whitespace(text: str) -> list[str]:
    """What stands between spaces, lower-cased, punctuation and all: the paper's own.

    Source: MeVe (Ottem 2025), appendix A.2.

    >>> whitespace("Who wrote it?")
    ['who', 'wrote', 'it?']
    """
    return text.lower().split()


_ONE_AT_A_TIME = Lock()


def stemmed_words(text: str) -> list[str]:
    """The `content_words` of an English text, without their endings: a memory says `painted`, a question `painting`.

    Source: Porter, Snowball: a language for stemming algorithms (2001).

    >>> stemmed_words("Who was painting the horses?")
    ['paint', 'hors']
    """
    return [stem(word) for word in content_words(text)]


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """An English word without its ending, in lower case.

    >>> stem("painting"), stem("leaves"), stem("leave")
    ('paint', 'leav', 'leav')
    """
    with _ONE_AT_A_TIME:  # a stemmer keeps the word that it works on
        return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:  # noqa: ANN401 - it has no types
    import snowballstemmer

    return snowballstemmer.stemmer("english")


NAMED: tuple[Analyzer, ...] = (content_words, words, whitespace, stemmed_words)
"""Those that an index file can call by name."""


def analyzer_name(analyzer: Analyzer) -> str:
    """What an index file calls an analyzer: its name, or `custom:` and the name of a function of somebody's own."""
    if analyzer in NAMED:
        return str(getattr(analyzer, "__name__", ""))
    return f"custom:{getattr(analyzer, '__qualname__', type(analyzer).__qualname__)}"


def analyzer_of(name: str, given: Analyzer | None, path: object) -> Analyzer:
    """The analyzer that an index file names; one of your own must be given again.

    Raises:
        ConfigurationError: the file names an analyzer of somebody's own, and none is given.
        IndexMismatchError: the one that is given isn't the one that the file names.
    """
    if given is not None:
        if analyzer_name(given) != name:
            raise IndexMismatchError(f"{path} was built with analyzer {name!r}, and not {analyzer_name(given)!r}")
        return given
    for own in NAMED:
        if getattr(own, "__name__", "") == name:
            return own
    raise ConfigurationError(f"{path} was built with analyzer {name!r}: give it again, load(path, analyzer=…)")
