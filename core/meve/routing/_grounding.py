"""Looks up an answer in the evidence: its words, its names, and its numbers, which may be computed from others."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, tzinfo
from itertools import combinations
from math import ceil, floor

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.memory._recall.memory_passage import in_zone
from meve.memory.records import MemoryRecord
from meve.routing._base_forms import base_stem
from meve.routing._groups import stems_with_groups
from meve.routing._topic import topic_stems

_WRAPPING = """
user answer question memory according yes yeah yep no nope any more anymore longer still yet right correct indeed dr mr
mrs ms pm p m however actually also additionally currently overall certainly definitely probably apparently finally plus
few several
"""
_PHRASES = frozenset(base_stem(word) for word in _WRAPPING.split())
"""Stems of words that wrap an answer or go with a yes, a no, a name or an hour, as in `The user's answer is: Oslo`."""
_LISTED_MONTHS = "january february march april may june july august september october november december"
_MONTHS = _LISTED_MONTHS.split()
_NAMED_MONTHS = frozenset(_MONTHS) - {"may"}
"""The months whose names are no other word."""
_MONTH_STEMS = frozenset(map(base_stem, _NAMED_MONTHS))
_DATED_MAY = re.compile(r"\bMay,? \d|\d(?:st|nd|rd|th)?,? (?:of )?May\b")
_LONGEST_MONTH = 31
_CALENDAR = """
monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter morning afternoon evening weekend
today yesterday last next early mid late beginning end ago second minute hour day week month year time dollar euro pound
about around approximately roughly nearly almost total altogether before after since first prior following
over under exactly now gain lose drop rise fall increase decrease grow shrink more less higher lower heavier lighter
longer shorter bigger smaller faster slower older younger cheaper same equal instead against compared versus
"""
_CALCULABLE = frozenset(base_stem(word) for word in [*_CALENDAR.split(), *_MONTHS])
"""Stems of dates, spans, units and changes, which a model may compute from the dates of memories."""
_DIGITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
NUMBERS = {
    **{word: float(n) for n, word in enumerate(_DIGITS.split())},
    **{word: 10.0 * n for n, word in enumerate(_TENS.split(), 2)},
    "thousand": 1_000.0, "once": 1.0, "twice": 2.0, "thrice": 3.0, "dozen": 12.0, "couple": 2.0, "half": 0.5,
}  # fmt: skip
_VAGUE = re.compile(r"\bcouple\b", re.IGNORECASE)
"""A number that an answer needn't mean exactly."""
_CLOCK = re.compile(r"\b(\d{1,2})(?::[0-5]\d|\s?[ap]\.?m\b)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<!\d)(\d+)(?:st|nd|rd|th)")
_CAPITAL = re.compile(r"(?<![\w'])[A-Z\u00c0-\u00de][\w'-]*")
_OPENING = re.compile(r"[\s\"'*\[(-]*")
_ROOT, _ENDING = 4, 2
"""Words of one root share at least so many letters, and all but so many: `Slovenia` and `Slovenian`."""
_MOST_NUMBERS = 10
_LONGEST = 4_000
"""The characters of an answer that are read."""
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.2}
"""The days of each unit of spans."""
_ASKED_UNIT = re.compile(r"\bhow many (?:\w+ )?(day|week|month|year)s?\b", re.IGNORECASE)
_REACH = 3
"""The most words between a number and its unit, as in `nine and a half months`."""
_TO_OTHERS = re.compile(
    r"\b(?:answer|reply|respond|say)s? (?:to )?(?=(?-i:[A-Z])|(?:my|our|his|her|the|their) )"
    r"(?!(?:(?:my|our|his|her|the|their) )?(?:questions?|query|queries|prompts?|messages?|requests?|user|reader|every"
    r"|any|all|each)\b)",
    re.IGNORECASE,
)
"""A request to answer somebody else, as in `Please reply to Bob with the date`."""
_JOINT = re.compile(r";|,? and |, ")
_LEAST_WORDS, _MOST_CLAUSES = 2, 50
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}\b(?:instructions?|prompts?|rules|the user"
    r"|(?:previous|prior|earlier|above|other) (?:text|messages?|context|memor(?:y|ies)|notes?|questions?)|above)\b"
    r"|\b(?:answer|reply|respond)\b[^.!?]{0,30}\b(?:every|any|all|each)"
    r" (?:questions?|quer(?:y|ies)|requests?|messages?)\b"
    r"|(?<!\bi )\b(?:must|shall|always|only|please|whoever)\b[^.!?]{0,30}\b(?:answer|reply|respond|say)s?\b[^.!?]{0,20}"
    r"\b(?:with|only|exactly|that)\b"
    r"|\b(?:respond|reply|say|answer|tell|inform)\b[^.!?]{0,15}\bthe user\b"
    r"|^\W*(?:assistant|ai|system|model|chatbot|bot|llm)\b[^.!?]{0,15}[,:]"
    r"|\b(?:system|admin|developer) (?:note|prompt|message|override|instruction)s?\b"
    r"|\b(?:whoever reads this|when(?:ever)? (?:you are |you're )?asked|you are now|new instructions?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the evidence tells, without instructions to the reader."""

    texts: tuple[str, ...]
    stems: frozenset[str]
    numbers: tuple[float, ...]
    days: tuple[date, ...]
    """When the memories were told, and of which time."""
    today: date | None = None
    """The day of the question, up to which spans are counted; None for none."""

    def numbers_about(self, question: str) -> list[float]:
        """Return the numbers of the texts that share a word of the question's topic."""
        topic = topic_stems(question)
        return find_numbers(" ".join(text for text in self.texts if not topic.isdisjoint(stems_with_groups(text))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What of an answer the evidence tells."""

    share: float
    """The share of its words in the evidence, in [0, 1], without those of the question; 1 if there is no other word."""
    missing: tuple[str, ...]
    """Its names and numbers that neither the evidence nor the question holds, and that can't be computed."""


def read_evidence(memories: Iterable[MemoryRecord], zone: tzinfo = UTC, *, today: date | None = None) -> Told:
    """Return what memories tell. Instructions to a model aren't told by anybody, so an answer can't rest on them.

    Args:
        memories: the memories.
        zone: the time zone of their days.
        today: the day of the question, for spans up to now.
    """
    told, days = [], []
    for memory in memories:
        told.append(_without_instructions(memory.text, is_own=memory.source == "chat_user"))
        moments = (memory.created_at, memory.valid_from, memory.valid_to)
        days += [in_zone(moment, zone).date() for moment in moments if moment]
    whole = " ".join(told)
    return Told(
        texts=tuple(text for text in told if text), stems=frozenset(content_stems(whole)),
        numbers=tuple(dict.fromkeys(find_numbers(whole))), days=tuple(sorted(set(days))), today=today,
    )  # fmt: skip


def look_up(answer: str, question: str, told: Told, *, calculated: bool) -> Lookup:
    """Return what of an answer the evidence tells.

    Args:
        answer: the answer, or a sentence of it.
        question: the question, whose words an answer may repeat.
        told: the evidence.
        calculated: whether numbers and dates may be computed from the evidence, as for a count.
    """
    answer = answer[:_LONGEST]
    asked = frozenset(content_stems(question))
    known = told.stems | asked
    missing = [name for name in find_names(answer) if not all(_is_known(stem, known) for stem in content_stems(name))]
    allowed = {*told.numbers, *find_numbers(question), *_find_hours(told.texts)}
    allowed |= _compute(told, question) if calculated else set()
    missing += _find_unknown_times(answer, known, told, allowed, calculated=calculated)
    missing += _find_unknown_numbers(answer, question, told, allowed, calculated=calculated)
    telling = (word for word in words(answer) if word not in FUNCTION_WORDS and _to_number(word) is None)
    wanted = {base_stem(word) for word in telling} - asked - _PHRASES
    wanted -= _CALCULABLE if calculated else _MONTH_STEMS
    found = sum(_is_known(word, told.stems) for word in wanted)
    return Lookup(share=found / len(wanted) if wanted else 1.0, missing=tuple(dict.fromkeys(missing)))


def content_stems(text: str) -> Iterable[str]:
    """Yield the stems of the words of a text that aren't function words."""
    return (base_stem(word) for word in words(text) if word not in FUNCTION_WORDS)


def find_numbers(text: str) -> list[float]:
    """Return the numbers of a text, also those in words.

    >>> find_numbers("Three of 1,500 on the 2nd")
    [3.0, 1500.0, 2.0]
    """
    return [number for word in words(text) if (number := _to_number(word)) is not None]


def find_names(text: str) -> list[str]:
    """Return the words of a text with a capital that don't begin a sentence, or that begin one with such a word.

    >>> find_names("She met Laura. Jan Novak came. Then I left in June.")
    ['Laura', 'Jan', 'Novak']
    """
    matches = list(_CAPITAL.finditer(text))
    names = []
    for place, match in enumerate(matches):
        word = match[0].removesuffix("'s")
        follows = place + 1 < len(matches) and text[match.end() : matches[place + 1].start()] == " "
        if not follows and _begins_sentence(text[max(match.start() - 20, 0) : match.start()]):
            continue
        is_plain = word.lower() in FUNCTION_WORDS | NUMBERS.keys()
        if not is_plain and base_stem(word.lower()) not in _CALCULABLE:
            names.append(word)
    return names


def _begins_sentence(before: str) -> bool:
    """Return whether what stands before a word ends a sentence, or opens a line, a quotation or a parenthesis."""
    backwards = before[::-1]
    signs = _OPENING.match(backwards)
    assert signs is not None
    rest = backwards[signs.end() :]
    return not rest or rest[0] in ".!?:;" or not set('"\n(').isdisjoint(signs.group())


def split_clauses(answer: str) -> list[str]:
    """Return the sentences of an answer, and those that `and`, `;` or a list joins apart.

    Whole sentences with less than two words besides function words are left out, if others remain.

    >>> split_clauses("She works as a nurse and lives in Bonn. Yes.")
    ['She works as a nurse', 'lives in Bonn.']
    """
    telling = []
    for sentence in split_sentences(answer[:_LONGEST]):
        parts = [part.strip() for part in _JOINT.split(sentence)]
        least = _LEAST_WORDS if len(parts) == 1 else 1
        telling += [part for part in parts if len(set(content_stems(part)) - _PHRASES) >= least]
    return telling[:_MOST_CLAUSES] or [answer[:_LONGEST]]


def _without_instructions(text: str, *, is_own: bool) -> str:
    """Return the text up to the first instruction to a model; nothing of another text than the user's own."""
    if not _INSTRUCTION.search(text):
        return text
    if not is_own:
        return ""
    kept = []
    for sentence in split_sentences(text):
        if _INSTRUCTION.search(_TO_OTHERS.sub("tell ", sentence)):
            break
        kept.append(sentence)
    return " ".join(kept)


def _is_known(stem: str, known: Collection[str]) -> bool:
    """Return whether a word or another one of its root is known."""
    return stem in known or (stem[0].isalpha() and any(_share_root(stem, other) for other in known))


def _share_root(first: str, second: str) -> bool:
    length = max(_ROOT, min(len(first), len(second)) - _ENDING)
    return len(first) >= length and first[:length] == second[:length]


def _to_number(word: str) -> float | None:
    if word in NUMBERS:
        return NUMBERS[word]
    ordinal = _ORDINAL.fullmatch(word)
    plain = ordinal[1] if ordinal else word.replace(",", "")
    return float(plain) if re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", plain) else None


def _find_unknown_numbers(
    answer: str, question: str, told: Told, allowed: Collection[float], *, calculated: bool
) -> list[str]:
    """Return the numbers of an answer that can't be right, without years, and without days if it names a month.

    In a calculation, a number of days, weeks, months or years may be a span between dates, and one without a unit a
    number of memories.
    """
    has_month = _DATED_MAY.search(answer) is not None or not _NAMED_MONTHS.isdisjoint(words(answer))
    asked = _ASKED_UNIT.search(question)
    unknown = []
    for number, unit in _find_measured(_VAGUE.sub(" ", answer)):
        if number in allowed or _is_year(number) or (has_month and number <= _LONGEST_MONTH):
            continue
        unit = unit or (asked[1].lower() if asked else "")
        counted = number.is_integer() and number <= len(told.texts) and (not unit or asked is not None)
        if not (calculated and (counted or (unit and number in _spans(told, unit)))):
            unknown.append(f"{number:g}")
    return unknown


def _find_measured(text: str) -> Iterable[tuple[float, str]]:
    """Yield each number of a text with the unit of the span that it counts; empty for none."""
    spoken = words(text)
    for place, word in enumerate(spoken):
        number = _to_number(word)
        if number is not None:
            units = (unit.removesuffix("s") for unit in spoken[place + 1 : place + 2 + _REACH])
            yield number, next((unit for unit in units if unit in _UNITS), "")


def _is_year(number: float) -> bool:
    return number.is_integer() and 1_800 <= number <= 2_200


def _find_hours(texts: Iterable[str]) -> set[float]:
    """Return the hours of times of day in texts as another clock tells them: 9 for `21:00`, 21 for `9 pm`, and 0."""
    hours = {float(match[1]) for text in texts for match in _CLOCK.finditer(text)}
    return {hour + half for hour in hours for half in (-12.0, 12.0)} | {0.0 for _ in hours}


def _find_unknown_times(
    answer: str, known: Collection[str], told: Told, allowed: Collection[float], *, calculated: bool
) -> list[str]:
    """Return the years of an answer more than a year from the evidence's dates, and months more than a month from them.

    Numbers that may be told are no unknown years: `1,900 euros`. Months of a calculation may be any.
    """
    years = {float(day.year + offset) for day in told.days for offset in (-1, 0, 1)}
    if calculated:
        years |= {day.year - number for day in told.days for number in told.numbers}
    months = {_MONTHS[(day.month + offset - 1) % len(_MONTHS)] for day in told.days for offset in (-1, 0, 1)}
    named = [word for word in words(answer) if word in _NAMED_MONTHS and not calculated]
    unknown = [month for month in named if month not in months and base_stem(month) not in known]
    return unknown + [f"{n:g}" for n in find_numbers(answer) if _is_year(n) and n not in years and n not in allowed]


def _compute(told: Told, question: str) -> set[float]:
    """Return what can be computed from the numbers that are told of the topic: sums, means, differences, products."""
    numbers = told.numbers_about(question)[:_MOST_NUMBERS]
    computed = {NUMBERS["half"]}
    for size in range(2, len(numbers) + 1):
        sums = {sum(each) for each in combinations(numbers, size)}
        computed |= sums | {total / size for total in sums}
    for first, second in combinations(numbers, 2):
        computed |= {abs(first - second), first * second}
    return computed


def _spans(told: Told, unit: str) -> set[float]:
    """Return the days, weeks, months or years between the evidence's dates, and from them until the question.

    Days and weeks may be one more or less, since the first and the last may be counted or not. What is not whole may be
    rounded up or down.
    """
    dates = {*told.days, *([told.today] if told.today else [])}
    lengths = {abs((first - second).days) / _UNITS[unit] for first, second in combinations(dates, 2)}
    if unit in ("day", "week"):
        return {max(round(length) + more, 0.0) for length in lengths for more in (-1, 0, 1)}
    return {float(rounded) for length in lengths for rounded in (floor(length), ceil(length))}
