"""Tells what a standing wish is about: the language of answers, their length, the units in them."""

import re

from meve.memory._classify.standing_wishes import LANGUAGE

_ASPECTS = {
    "language": rf"{LANGUAGE}|language",
    "length": r"short(?:er)?|brief(?:er|ly)?|concise(?:ly)?|long(?:er)?|details?|detailed|verbose|succinct(?:ly)?|wordy"
    r"|sentences?|as (?:much|long) as you (?:like|want)|(?:words|lines|paragraphs?) (?:at most|or less|max)"
    r"|(?:under|more than|at most|up to) \w+ (?:sentences?|words|lines|paragraphs?)",
    "emojis": r"emojis?|smileys?",
    "form": r"bullets?|bullet points?|lists?|tables?|headings?|markdown|full sentences|prose|charts?|paragraphs",
    "name": r"call me|address me|my (?:full |first |last )?name|go by|(?:i'?m|i am) called",
    "tone": r"formal(?:ly)?|informal(?:ly)?|casual(?:ly)?|polite(?:ly)?|friendly|blunt(?:ly)?|humou?r(?:ous)?|jokes?"
    r"|serious(?:ly)?|critical|chatty|sugar-?coat|flatter\w*|apologi[sz]\w*",
    "units": r"metric|imperial|celsius|fahrenheit|units?|miles|kilomet(?:er|re)s|pounds|kilos",
    "difficulty": r"jargon|technical|simpl[ey]r?|plain(?:ly)?|abbreviations?|foreign words|beginner|expert|layman",
    "spelling": r"spelling|british|american|lower case|upper case|capitals?",
    "dates": r"dates?|times? of day|24-hour|12-hour|iso format",
    "sources": r"sources?|cite|citations?|links?|references?",
    "comments": r"comments?|commented",
}
_PATTERNS = {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in _ASPECTS.items()}
_OPPOSITES = (
    (
        r"short(?:er)?|brief(?:er|ly)?|concise(?:ly)?|succinct(?:ly)?|kurz|kürzer|knapp"
        r"|(?:under|more than|at most|up to) \w+ (?:sentences?|words|lines|paragraphs?)"
        r"|\w+ (?:sentences?|words|lines|paragraphs?) (?:at most|or less|max)",
        r"long(?:er)?|details?|detailed|wordy|verbose|as (?:much|long) as you (?:like|want)|lang|länger"
        r"|ausführlich(?:er)?",
    ),
    ("celsius", "fahrenheit"),
    (r"kilomet(?:er|re)s?|km", "miles?"),
    ("kilos?|kilograms?|kg", "pounds?|lbs"),
    ("metric", "imperial"),
    (r"formal(?:ly)?|politely?", r"informal(?:ly)?|casual(?:ly)?"),
    (r"simpl(?:e|er|y)|plain(?:ly)?", r"technical|jargon|complicated"),
    ("lower case|lowercase", "upper case|uppercase|capitals?"),
    ("british", "american"),
    ("24-hour", "12-hour"),
    ("bullets?(?: points?)?|lists?", "full sentences|prose|paragraphs"),
)
"""Ways of answering of which one excludes the other."""
_GERMAN_NAMES = {
    "englisch": "english", "deutsch": "german", "französisch": "french", "spanisch": "spanish",
    "italienisch": "italian", "portugiesisch": "portuguese",
}  # fmt: skip
_LANGUAGES = re.compile(rf"\b(?:{LANGUAGE}|{'|'.join(_GERMAN_NAMES)})\b")
_WAYS = [tuple(re.compile(rf"\b(?:{words})\b") for words in pair) for pair in _OPPOSITES]


def find_aspects(wish: str) -> frozenset[str]:
    """Return the aspects of answers that a text names, such as `language` or `length`."""
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(wish))


def take_ways(text: str) -> tuple[frozenset[tuple[int, str]], str]:
    """Return the ways of answering that a text in lower case names, and the text without them.

    Two ways of equal number and different sides exclude each other.

    >>> ways, rest = take_ways("longer answers in german")
    >>> sorted(ways), rest.split()
    ([(-1, 'german'), (0, '1')], ['answers', 'in'])
    """
    found = {(-1, _GERMAN_NAMES.get(name, name)) for name in _LANGUAGES.findall(text)}
    rest = _LANGUAGES.sub(" ", text)
    for number, pair in enumerate(_WAYS):
        for side, pattern in enumerate(pair):
            if pattern.search(rest):
                found.add((number, str(side)))
                rest = pattern.sub(" ", rest)
    return frozenset(found), rest
