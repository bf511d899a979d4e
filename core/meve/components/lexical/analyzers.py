"""Analyzers split a text into words; any `str -> list[str]` function can replace them."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

from meve._fork_safety import ForkSafeLock
from meve.components.lexical._spellings import join_codes, remove_accents, unify_numbers
from meve.errors import ConfigurationError, IndexMismatchError

Analyzer: TypeAlias = Callable[[str], Sequence[str]]
"""Splits a text or a query into words; must be deterministic."""

_LISTED = """
a an the and or but nor so than then that this these those there here it its i me my we us our you your he him his she
her they them their what which who whom whose when where why how is am are was were be been being do does did has have
had having will would shall should can could may might must not no of to in on at by for from with as into about if
because while too very such don't doesn't didn't isn't aren't wasn't weren't it's
"""
FUNCTION_WORDS = frozenset(_LISTED.split())
"""English stop words: articles, pronouns, prepositions, conjunctions, auxiliaries."""

_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Han, written without spaces."""
_MARKS = "\u0300-\u036f\u0591-\u05bd\u05bf\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0dff\u0e31-\u0e4e"
r"""Vowel signs and accents of the most read scripts, which `\w` doesn't match."""
_LETTERS = rf"(?:[^\W{_ALONE}]|[{_MARKS}])"
_WORD = re.compile(rf"[{_ALONE}]|{_LETTERS}+(?:(?:'|(?<=\d)[.,](?=\d)){_LETTERS}+)*(?:\+\+|#)?")
_ASCII_WORD = re.compile(r"\w+(?:(?:'|(?<=\d)[.,](?=\d))\w+)*(?:\+\+|#)?")


def words(text: str) -> list[str]:
    """Split a text in any script into words: runs of letters, digits and underscores, case folded.

    Apostrophes inside a word stay (don't); a possessive 's is dropped. Points and commas stay only between digits
    (3.11, 1,000). C++ and C# keep their signs. Hyphens separate. Text is normalised to NFKC; accents stay. Kana and Han
    characters are words of their own. No stop words, no stemming.

    >>> words("Don't use C++ 3.11's well-known state.")
    ["don't", 'use', 'c++', '3.11', 'well', 'known', 'state']
    """
    if text.isascii():
        tokens = _ASCII_WORD.findall(text.lower())
    else:
        tokens = _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold())
    if "'" not in text and "\u2019" not in text:
        return tokens
    return [word[:-2] if word.endswith("'s") else word for word in tokens]


def content_words(text: str) -> list[str]:
    """Split a text into `words` and drop English stop words.

    On 300 questions each of HotpotQA, 2Wiki, NQ, MuSiQue, NFCorpus and SciFact this adds 0.5 points to BM25's mean
    recall at 20. Far fewer postings are read. Other languages lose only words spelled like an English one.

    >>> content_words("What is the capital of France?")
    ['capital', 'france']
    """
    return [word for word in words(text) if word not in FUNCTION_WORDS]


def search_words(text: str) -> list[str]:
    """Split a text into `content_words`, with one spelling for Malmö and Malmo, 16,260 and 16260, v2.7 and 2.7.

    Latin letters lose their accents; a German ü becomes u, not ue. Other scripts keep their marks. A code of letters
    and numbers with hyphens is its parts and also one word, so that ML103 finds ML-103, and ML-103 finds ML103.

    >>> search_words("The 16,260 rows of Malmö's ML-103")
    ['16260', 'rows', 'malmo', 'ml', '103', 'ml103']
    """
    text = unify_numbers(text)
    terms = content_words(text)
    if not text.isascii():
        terms = [word if word.isascii() else remove_accents(word) for word in terms]
    return terms + join_codes(text)


def whitespace(text: str) -> list[str]:
    """Split a lower-cased text at white space and keep punctuation, as the paper does.

    Source: MeVe (Ottem 2025), appendix A.2.

    >>> whitespace("Who wrote it?")
    ['who', 'wrote', 'it?']
    """
    return text.lower().split()


_STEMMER_LOCK = ForkSafeLock()


def stemmed_words(text: str) -> list[str]:
    """Split an English text into stemmed `content_words`, so that `painted` matches `painting`.

    Source: Porter, Snowball: a language for stemming algorithms (2001).

    >>> stemmed_words("Who was painting the horses?")
    ['paint', 'hors']
    """
    return [stem(word) for word in content_words(text)]


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of an English word in lower case.

    >>> stem("painting"), stem("leaves"), stem("leave")
    ('paint', 'leav', 'leav')
    """
    with _STEMMER_LOCK:  # a stemmer holds the current word as state
        return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:  # noqa: ANN401 - it has no types
    import snowballstemmer

    return snowballstemmer.stemmer("english")


NAMED: tuple[Analyzer, ...] = (search_words, content_words, words, whitespace, stemmed_words)
"""Analyzers that an index file refers to by name."""


def analyzer_name(analyzer: Analyzer) -> str:
    """Return an analyzer's name in index files: its own, or `custom:` and the name of the user's function."""
    if analyzer in NAMED:
        return str(getattr(analyzer, "__name__", ""))
    return f"custom:{getattr(analyzer, '__qualname__', type(analyzer).__qualname__)}"


def resolve_analyzer(name: str, given: Analyzer | None, path: object) -> Analyzer:
    """Return the analyzer that an index file names; a custom analyzer must be passed in.

    Raises:
        ConfigurationError: the file names a custom analyzer, and none is given.
        IndexMismatchError: the given analyzer isn't the one that the file names.
    """
    if given is not None:
        if analyzer_name(given) != name:
            raise IndexMismatchError(f"{path} was built with analyzer {name!r}, got {analyzer_name(given)!r}")
        return given
    for own in NAMED:
        if getattr(own, "__name__", "") == name:
            return own
    raise ConfigurationError(f"{path} was built with analyzer {name!r}: pass it again, load(path, analyzer=…)")
