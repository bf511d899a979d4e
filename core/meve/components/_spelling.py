"""Correct misspelt words of a question that neither the collection nor English knows."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from string import ascii_lowercase

from meve.components._language import find_foreign_language
from meve.components.lexical.analyzers import FUNCTION_WORDS
from meve.components.tokenizers.huggingface import load_minilm_tokens

CountTexts = Callable[[str], int]
"""Returns in how many texts a word stands."""

SHORTEST = 4
"""The least letters of a word that is corrected; a shorter one resembles too many others."""
MIDDLING = 6
"""The least letters of a word that may have one letter too many: `memmber`."""
LONG = 8
"""The least letters of a word in which one letter may be replaced: `approcimately`. Shorter words that differ in one
letter are mostly two right words: `sleet` and `sleep`."""
MOST = 8
"""The most unknown words of a question that is corrected; one with more may be code or another language."""
COMMON = 3_000
"""The place in the vocabulary below which a word replaces a misspelt one though no text holds it. Whole words begin at
1996, the commonest first, so these are about a thousand."""
_WORD = rf"(?<![\w.\-/@=$#\\:'’+])[A-Za-z]{{{SHORTEST},30}}(?![\w\-/@=('’+]|[.:]\w)"
"""A word that is no part of a name, a path, an address, an option or code."""
_WORD_OR_QUOTED = re.compile(rf'"[^"\n]*"|`[^`\n]*`|({_WORD})')
_LISTED = """
aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt shouldnt wasnt werent wont wouldnt hes shes
thats theres theyre theyve weve whats whos youre youve
"""
_CONTRACTED = frozenset(_LISTED.split())
"""Contractions without their apostrophe."""
_PREFIX = re.compile(r"^(?:dis|inter|mis|non|out|over|pre|re|sub|un|de)(?=[a-z]{4})")
_DOUBLING = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")
"""The end of a word that doubles its last letter in other forms."""
_ENDINGS = ("s", "es", "d", "ed", "ing", "er", "ers", "r", "rs", "ly", "y", "al", "able", "ness", "less", "ful", "ment",
            "ize", "ized", "izes", "izing", "ise", "ised", "ises", "ising", "ion", "ions")  # fmt: skip


def correct_spelling(text: str, count_texts: CountTexts) -> tuple[str, dict[str, str]]:
    """Return a question with its misspelt words corrected, and the corrections by word.

    A word is taken to be misspelt if neither the collection nor the vocabulary of BERT has it, its stem, another form
    of it or what follows its prefix (`expired`, `repotting`, `unblock`), and it becomes a word of the collection, or a
    very common one, by one exchange of neighbours, one letter more or less, one or two doubled letters, or one other
    letter if it is long. The first letter changes only by an exchange with the second. Of several, a word of the
    collection is chosen before others. Names, code, quoted words and questions in other languages stay as they are.

    Args:
        text: the question.
        count_texts: returns in how many texts of the collection a word in lower case stands.

    Source: Damerau, A technique for computer detection and correction of spelling errors (1964): four of five
    misspelt words have one such error.

    >>> correct_spelling("how do i descal the cofee machine", lambda word: word in {"descale", "coffee"})
    ('how do i descale the coffee machine', {'descal': 'descale', 'cofee': 'coffee'})
    """
    corrections: dict[str, str] = {}
    matches = [m for m in _WORD_OR_QUOTED.finditer(text) if m[1]]
    unknown = [m for m in matches if _is_plain(m) and not _is_known(m[1].lower(), count_texts)]
    if not 0 < len(unknown) <= MOST or find_foreign_language(text):
        return text, corrections
    parts, end = [], 0
    for match in unknown:
        word = match[0]
        choice = _choose(word.lower(), count_texts, is_name=not word.islower())
        if choice is not None:
            corrections[word] = choice.capitalize() if word[0].isupper() else choice
            parts += [text[end : match.start()], corrections[word]]
            end = match.end()
    return "".join([*parts, text[end:]]), corrections


def _is_plain(match: re.Match[str]) -> bool:
    """Return whether a word is in lower case, but for the first letter of a question: elsewhere it is a name."""
    word = match[0]
    return word.islower() or (word[1:].islower() and not match.string[: match.start()].strip(" \t\n\"'(¿¡"))


def _is_known(word: str, count_texts: CountTexts) -> bool:
    """Return whether a text or English has a word, its stem, another form of it, or what follows its prefix."""
    english = _english()
    if word in _CONTRACTED or any(each in english or count_texts(each) for each in _list_forms(word)):
        return True
    rest = _PREFIX.sub("", word)
    if rest != word and (rest in english or count_texts(rest)):
        return True
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < SHORTEST - (ending == "s"):
            continue
        doubled = stem[:-1] if stem[-1] == stem[-2] else stem
        twice = f"{stem}{stem[-1]}{ending}"  # `swimming`, of which `swiming` isn't another form
        misses = ending[0] in "ei" and bool(_DOUBLING.search(stem)) and (twice in english or bool(count_texts(twice)))
        bases = {f"{stem}e", doubled, f"{stem[:-1]}y" if stem.endswith("i") else stem, stem} - {stem if misses else ""}
        if any(base in english or count_texts(base) for base in bases):
            return True
    return False


def _list_forms(word: str) -> Iterator[str]:
    """Yield a word and forms of it: `splice`, `spliced`, `splicing`; `repot`, `repotting`; `annul`, `annulment`."""
    yield word
    yield f"{word}s"
    if word.endswith("e"):
        yield from (word[:-1] + ending for ending in ("ed", "er", "eed", "ing", "able", "ation", "ement"))
    elif _DOUBLING.search(word):
        yield f"{word}ment"
        yield from (word + word[-1] + ending for ending in ("ing", "ed", "er", "able"))
    else:
        yield from (word + ending for ending in ("ing", "ed", "er", "able", "ation", "ion", "ment", "es"))


def _choose(word: str, count_texts: CountTexts, *, is_name: bool) -> str | None:
    """Return the best known word that is one error away; None if there is none.

    Args:
        word: the misspelt word, in lower case.
        count_texts: as for `correct_spelling`.
        is_name: whether it may be a name, which only a function word such as `which` replaces.
    """
    english = _english()
    known = {}
    for rank, candidates in enumerate(_list_edits(word)):
        for candidate in candidates:
            count = count_texts(candidate)
            allowed = candidate in FUNCTION_WORDS or (
                not is_name and (count or english.get(candidate, COMMON) < COMMON)
            )
            if allowed and candidate not in known:
                known[candidate] = (count == 0, rank, -count, english.get(candidate, len(english)), candidate)
    return min(known, key=known.__getitem__, default=None)


def _list_edits(word: str) -> Iterator[Iterator[str]]:
    """Yield the words that one error can have turned into a word, by kind of error, the likeliest first."""
    inner = range(1, len(word))
    yield (word[:n] + word[n + 1] + word[n] + word[n + 2 :] for n in range(len(word) - 1))
    doubled = (word[:n] + word[n - 1] + word[n:] for n in range(2, len(word) + 1))
    inserted = (word[:n] + letter + word[n:] for n in inner for letter in ascii_lowercase)
    appended = (word + letter for letter in ascii_lowercase if len(word) > SHORTEST)
    yield (each for edits in (doubled, inserted, appended, _double_two(word)) for each in edits)
    if len(word) >= MIDDLING:
        yield (word[:n] + word[n + 1 :] for n in inner if n < len(word) - 1 or word[n] == word[n - 1])
    if len(word) >= LONG:
        yield (word[:n] + letter + word[n + 1 :] for n in inner for letter in ascii_lowercase if letter != word[n])


def _double_two(word: str) -> Iterator[str]:
    """Yield a word with two of its letters doubled: `comitee` misses two."""
    for first, second in combinations(range(1, len(word)), 2):
        yield word[:first] + word[first] + word[first:second] + word[second] + word[second:]


@cache
def _english() -> dict[str, int]:
    """Return the words of BERT's uncased vocabulary with their places, which follow their frequency."""
    return {word: n for word, n in load_minilm_tokens().vocabulary().items() if word.isascii() and word.isalpha()}
