"""Finds dates, quantities, names and personal facts by patterns, in English. No model, no download.

In other languages it finds numbers and dates in digits of any script, and dates with the East Asian signs for year,
month and day. It finds names in scripts with capital letters; in German every noun counts as one. Concepts are found
in English only, except those given.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import takewhile

from meve.components.entities.composite import remove_overlaps
from meve.errors import ConfigurationError
from meve.types import Entity

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SPAN = r"(?:day|week|month|year|weekend|morning|evening|night|summer|autumn|fall|winter|spring)"
_COUNT = r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred)"
_WORDY = r"[\d_A-Za-zÀ-֏]"
"""Characters of words that are separated by spaces: digits and letters of Latin to Armenian."""
_STUCK, _GOES_ON = r"[\d_A-Za-zÀ-֏.\-/]", r"[\d_A-Za-zÀ-ɏ\-/]"
"""Characters before and after a number that make it part of a word or another number."""
_REST = r"[\d.,]{0,30}"
"""The rest of a number after its first digit. Without the limit, long lists of digits would take quadratic time."""
_DATE = re.compile(
    rf"""(?ix)
    (?<!{_STUCK})(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2}}(?:\d{{2}})?)(?!{_GOES_ON}|\.\d)
    | \d{{1,4}}\s?[年년](?:\s?\d{{1,2}}\s?[月월](?:\s?\d{{1,2}}\s?[日일])?)? | \d{{1,2}}\s?[月월]\s?\d{{1,2}}\s?[日일]
    | \b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{_MONTH}\.?,?\s+\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?
    | \b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b
    | \b(?:in|since|until|by|last|next|this|of)\s+{_MONTH}\b(?!\s+\d)
    | \b(?:(?:last|next|this|on)\s+)?{_DAY}s?\b
    | \b(?:last|next)\s+{_SPAN}\b
    | \b(?:yesterday|tomorrow|tonight)\b
    | \b(?:\d+|an?|{_COUNT})\s+{_SPAN}s?\s+ago\b
    | (?<![\w.,])(?:1[0-9]|20)\d\d(?!\w|[.,]\d)
    | \b\d{{1,2}}:\d{{2}}\b | \b\d{{1,2}}\s?[ap]\.?m\b
    """
)
_QUANTITY = re.compile(
    rf"""(?ix)
    [$€£¥₹]\s?\d{_REST} | (?<!\w)\d{_REST}\s?(?:%|[$€£¥₹])
    | (?<![\w.\-/])\d(?:{_REST}\d)?\s?(?:mg|kg|g|km|m|cm|mm|ml|l|gb|mb|mhz|ghz|kb|tb|hours?|hrs?|minutes?|mins?)\b
    | (?<!{_STUCK})\d(?:{_REST}\d)?(?!{_GOES_ON}|\.[\d_A-Za-z])
    | \b{_COUNT}\s+[^\W\d_]{{3,}}
    """
)
_LIST = (
    """
i i'm i'd i've i'll a an the he she it they we you his her its their our my your this that these those there here and
but or so if when where who what which why how not no yes yeah yep nope ok okay oh ah hey hi hello thanks thank please
sorry well wow lol good great nice cool sure right just also then now maybe actually really as at by for from in of on
to with do does did is are was were be been am have has had can could will would shall should may might must let let's
after before because while since until during although however both some many most all each every one two three
that's it's what's he's she's there's here's don't doesn't didn't isn't aren't wasn't won't can't haha hmm bye
anyway absolutely definitely totally congrats congratulations god gosh man woah woohoo yay sounds awesome amazing
"""
    + """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december
"""
)
_COMMON = frozenset(_LIST.split())
_WORD = r"[^\W\d_a-zß-öø-ÿа-яёα-ω][\w'’-]*"
"""A word with a capital first letter, or in a script without case; `_trim_name` tells them apart."""
_PART = rf"(?:[A-Z][a-z]{{0,2}}\.|{_WORD})"
"""A capitalised word or an abbreviation with a point: `Dr.`, `J.`"""
_NAME = re.compile(rf"{_PART}(?:[ ]+(?:(?:of|the|de|del|von|van|der|la|le|di|da|bin|al)[ ]+)*{_PART})*")
_QUOTED = re.compile(r'["“«]([^"“”«»\n]{2,60})["”»]')
_SELF_REPORT = re.compile(
    r"""(?ix)
    (?:\b(?:i|we|he|she|they|my|our|his|her|their)|(?-i:\b[A-Z][a-z]+))\b [^.!?\n]{0,40}?
    \b(?P<cue>start(?:ed)?|stopp?(?:ed)?|quit|began|took|taking|bought|sold|moved|married|divorced|born|died|diagnosed|prescribed
    |allergic|prefers?|favou?rite|loves?|hates?|works?|worked|lives?|lived|stud(?:y|ies|ied)|joined|adopted
    |owns?|signed|planned|booked|promised|decided|called|named)\b
    (?:\s+(?:to|at|in|on|a|an|the|my|our|his|her|their|taking|is)){0,9}\s+(?P<what>[^\W\d_]{3,}(?:[ ][^\W\d_]{3,})?)
    """
)  # fmt: skip
_OPENINGS, _ENDINGS = tuple('"“(-–—*>'), tuple(".!?:;…")
_NEAR = 40
"""Number of characters before a name that are searched for the beginning of its sentence."""


class PatternEntities:
    """Finds entities by patterns. Threads may share it.

    A capitalised word at the beginning of a sentence isn't a name by itself. A concept is a given word, or what follows
    a verb of change or habit (stopped, moved, allergic, prefers, …) in a statement about a person.

    Args:
        concepts: further words or phrases that count as concepts, in any case.

    Raises:
        ConfigurationError: a concept is blank.

    >>> found, = PatternEntities().detect(["Patient A stopped taking medication in February 2024."])
    >>> [(entity.kind, entity.text) for entity in found]
    [('name', 'Patient A'), ('concept', 'medication'), ('date', 'February 2024')]
    """

    name = "patterns"

    def __init__(self, concepts: Sequence[str] = ()) -> None:
        if isinstance(concepts, str) or not all(isinstance(each, str) and each.strip() for each in concepts):
            raise ConfigurationError(f"concepts must be a list of words, none of them blank, got {concepts!r:.80}")
        listed = "|".join(re.escape(each.strip()) for each in sorted(concepts, key=len, reverse=True))
        self._given = re.compile(rf"(?i)(?<!{_WORDY})(?:{listed})(?!{_WORDY})") if listed else None

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the entities of each text, in the order given."""
        return [remove_overlaps(list(self._detect_one(text))) for text in texts]

    def _detect_one(self, text: str) -> Iterator[Entity]:
        if self._given is not None:
            yield from _match_entities("concept", self._given, text)
        yield from _match_entities("date", _DATE, text)
        yield from _match_entities("quantity", _QUANTITY, text)
        for quoted in _QUOTED.finditer(text):
            if quoted[1][:1].isupper():
                yield Entity(kind="name", text=quoted[1], start=quoted.start(1))
        for match in _NAME.finditer(text):
            yield from _trim_name(match, text)
        for match in _SELF_REPORT.finditer(text):
            what = " ".join(takewhile(lambda word: word.casefold() not in _COMMON, match["what"].split(" ")))
            if what:
                yield Entity(kind="concept", text=what, start=match.start("what"))


def _match_entities(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Entity]:
    for match in pattern.finditer(text):
        yield Entity(kind=kind, text=match[0], start=match.start())


def _trim_name(match: re.Match[str], text: str) -> Iterator[Entity]:
    """Yield the name in a run of capitalised words, without common words at its ends; at most one."""
    words = deque(re.finditer(r"\S+", match[0]))
    begins = _begins_sentence(text[max(0, match.start() - _NEAR) : match.start()])
    while words and (not words[0][0][0].isupper() or words[0][0].strip(".'’").casefold() in _COMMON):
        words.popleft()
        begins = False
    while words and not _capital(words[-1][0]):
        words.pop()
    if not words or not any(_capital(word[0]) for word in words) or (begins and len(words) == 1):
        return
    start, end = words[0].start(), words[-1].end()
    name = match[0][start:end].rstrip(".'’-")
    if len(name) > 1:
        yield Entity(kind="name", text=name, start=match.start() + start)


def _begins_sentence(before: str) -> bool:
    """Return whether a sentence begins after this text, which is empty or ends with a sign or a line break."""
    rest = before.rstrip()
    gap = before[len(rest) :]
    return not before or "\n" in gap or rest.endswith(_OPENINGS) or (bool(gap) and rest.endswith(_ENDINGS))


def _capital(word: str) -> bool:
    plain = word.strip(".'’")
    return word[0].isupper() and (plain == "A" or plain.casefold() not in _COMMON)
