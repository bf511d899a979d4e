"""Replaces relative days, such as `yesterday`, by dates. Uses dateparser, for English."""

import re
from datetime import date, datetime, timedelta
from typing import Literal

from dateutil.relativedelta import relativedelta, weekday

from meve._fork_safety import ForkSafeLock
from meve.errors import ModelError, wrap_errors
from meve.memory._contradiction.lexicon import KIN, MONTHS, NO_EVENTS, PAST_VERBS

_UNIT = "(?:day|week|month|year)"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_UNDATED = (
    rf"(?!,?\s+(?:the\s+)?(?:\d{{1,2}}(?:st|nd|rd|th|\.?\s+(?:of\s+)?(?:{'|'.join(MONTHS)}))|{'|'.join(MONTHS)})\b)"
)
"""What doesn't follow a day that lacks a date."""
_RELATIVE = re.compile(
    rf"""\b(?P<before>(?:since|until|till|by|from|for|before|after|on)\s+)?(?P<told>
    the\s+day\s+(?:before\s+yesterday|after\s+tomorrow) | yesterday | today | tomorrow | last\s+night | tonight
    | (?:last|next|this)\s+(?:{_WEEKDAY}|week) | (?:last|next)\s+(?:month|year) (?!\w|\s+(?:of|in)\b)
    | {_COUNT}\s+{_UNIT}s?\s+ago | in\s+{_COUNT}\s+{_UNIT}s? (?!\s+time)
    )\b(?!['’-]\w|\s+and\s+age){_UNDATED}""",
    re.IGNORECASE | re.VERBOSE,
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMED = re.compile(
    rf"""\b(?P<before>on|until|till|by|before|from|since)\s+(?P<day>{_WEEKDAY})
    (?:\s+(?P<part>morning|afternoon|evening|night))?\b(?!['’-]\w)
    (?!\s+(?:mornings|afternoons|evenings|nights)\b){_UNDATED}(?!\s*(?:,|-|–|to|until|till|and|or)\s*(?:on\s+)?{_WEEKDAY})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A weekday without "next", which may come again every week."""
_REMINDER = re.compile(
    r"\b(?:remind\s+(?:me|us)|(?:don['’]t|do\s+not|never)\s+(?:let\s+\w+\s+)?forget|remember)\b", re.IGNORECASE
)
_HABIT = re.compile(
    rf"\b(?:always|usually|often|normally|mostly|sometimes|regularly|every|each|never|whenever|weekly|again\s+and\s+again"
    rf"|from\s+{_WEEKDAY}\s+(?:to|until|till)|{_WEEKDAY}s)\b",
    re.IGNORECASE,
)
_SOON = re.compile(
    r"""\b(?:will|shall|won['’]t|must|should|going\s+to|(?:have|has|need|needs|want|wants|plan|plans|hope|hopes|would\s+like)\s+to
    |appointment|interview|exam|test|flight|wedding|party|meeting|deadline|concert|trip|surgery|operation|funeral
    |an?\s+training|ceremony|match|conference|delivery|day\s+off|(?:am|is|are)\s+(?:\w+\s+)?\w{2,}ing
    |back\s+(?:at|from|home|in|to)|(?:i|we)(?:\s+(?:am|are)|['’](?:m|re))\s+(?:away|back|busy|free|off))\b
    |['’](?:ll\b|d\s+like\s+to\b|(?:m|re|s)\s+(?:\w+\s+)?\w{2,}ing\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a clause in which a weekday is the next one."""
_LASTS_UNTIL = re.compile(
    rf"\b(?:i|we|he|she|{'|'.join(sorted(KIN))})(?:\s+(?:am|is|are|needs?|stays?)|['’](?:m|re|s))\b", re.IGNORECASE
)
"""Words of a clause in which "until Thursday" means the next one: of a person, since a shop is open every week."""
_HAS_LASTED = re.compile(r"\b(?:have|has)\b|['’](?:ve|s)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?!\d)")
_CLAUSE_END = re.compile(r"[.,;:!?](?!\d)|\b(?:and|but|or|that|because|so)\b")
_REPEATED = re.compile(
    r"\b(?:times?|once|twice|can|could|usually|normally|often|always|n?ever|(?:have|has|had)n['’]t)\b", re.IGNORECASE
)
"""Words of a clause in which "in two days" is the time that something takes, or took."""
_AHEAD = re.compile(
    r"\b(?:will|shall|is|are|am)\b|['’](?:ll|m|re)\b|(?<!able )(?<!used )(?<!managed )\bto\b", re.IGNORECASE
)
"""Words of a clause in which it counts from now."""
_PAST = re.compile(
    rf"\b(?:\w+[^\We]ed|read|wrote|swam|drove|flew|ate|drank|slept|spent|built|grew|learnt|taught|{'|'.join(sorted(PAST_VERBS))})\b",
    re.IGNORECASE,
)
_TOLD_OTHERWISE = re.compile(
    rf"""\b(?:am|is|are|do|does|have|has|can|could|will|would|read|ago|as|back|born|last|once|then|used|when|while|year
    |arranged|booked|planned|promised|scheduled|supposed|wanted|(?:19|20)\d\d|{"|".join(MONTHS - {"may", "march"})})\b
    |['’](?:d|ll|m|re|ve)\b|\b(?:he|here|it|she|that|there|what|who)['’]s\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a sentence in the past tense in which a weekday may be another one than the last."""
_READ = 200
"""The characters before and after a day that are read."""
_LOCK = ForkSafeLock()


def resolve_days(text: str, spoken: datetime | date) -> str:
    """Return a text in which days, weeks, months and years relative to a moment are dates.

    Args:
        text: an English text.
        spoken: when it was said.

    Raises:
        ModelError: dateparser failed.

    >>> resolve_days("Yesterday I met Ann. I fly to Rome next Friday.", date(2026, 5, 20))
    'On 19 May 2026 I met Ann. I fly to Rome on 22 May 2026.'
    """
    dated = _RELATIVE.sub(lambda match: _as_date(match, spoken), text)
    return _NAMED.sub(lambda match: _as_named_date(match, spoken), dated)


def _as_named_date(match: re.Match[str], spoken: datetime | date) -> str:
    """Return a date for a weekday that is the next or the last one; else what was said."""
    before, part = match["before"], match["part"]
    begin, end = max(0, match.start() - _READ), match.end() + _READ
    way = _find_way(match.string[begin : match.start()], match.string[match.end() : end], before.lower())
    if not way:
        return match[0]
    number = _WEEKDAYS.index(match["day"].lower())
    day = date(spoken.year, spoken.month, spoken.day) + relativedelta(days=way, weekday=weekday(number, way))
    when = f"{day.day} {day:%B %Y}"
    return f"{before} the {part.lower()} of {when}" if part else f"{before} {when}"


def _find_way(earlier: str, later: str, before: str) -> Literal[-1, 0, 1]:
    """Return 1 if a weekday between two texts is the next one, -1 if the last one, and 0 for each one of its name."""
    sentence = _SENTENCE_END.split(earlier)[-1]
    clause = _CLAUSE_END.split(earlier)[-1] + " " + _CLAUSE_END.split(later, maxsplit=1)[0]
    if _HABIT.search(clause):
        return 0
    if before == "since":
        return -1 if _HAS_LASTED.search(clause) else 0
    if past := _PAST.findall(clause):
        is_last = before == "on" and not NO_EVENTS.issuperset(map(str.lower, past))
        whole = sentence + " " + _SENTENCE_END.split(later, maxsplit=1)[0]
        return -1 if is_last and not (_TOLD_OTHERWISE.search(whole) or _SOON.search(clause)) else 0
    lasts = before in ("until", "till") and bool(_LASTS_UNTIL.search(clause))
    return 1 if lasts or _REMINDER.search(sentence) or _SOON.search(clause) else 0


def _as_date(match: re.Match[str], spoken: datetime | date) -> str:
    told, before = match["told"], match["before"] or ""
    if told[:3].lower() == "in " and _is_span(match):
        return match[0]
    day, period = _parse(" ".join(told.lower().split()), spoken)
    if day is None:
        return match[0]
    if period == "year":
        preposition, when = "in", f"{day.year}"
    elif period == "month":
        preposition, when = "in", f"{day:%B %Y}"
    elif period == "week":
        day -= timedelta(days=day.weekday())
        preposition, when = "in", f"the week of {day.day} {day:%B %Y}"
    else:
        preposition, when = "on", f"{day.day} {day:%B %Y}"
    phrase = f"{before}{when}" if before else f"{preposition} {when}"
    return phrase[0].upper() + phrase[1:] if match[0][0].isupper() else phrase


def _is_span(match: re.Match[str]) -> bool:
    """Return whether "in two days" tells how long something takes, as in "I read it in two days"."""
    clause = _CLAUSE_END.split(match.string[max(0, match.start() - _READ) : match.start()])[-1]
    if not clause.strip():
        clause = _CLAUSE_END.split(match.string[match.end() : match.end() + _READ], maxsplit=1)[0]
    return bool(_REPEATED.search(clause) or (_PAST.search(clause) and not _AHEAD.search(clause)))


def _parse(told: str, spoken: datetime | date) -> tuple[datetime | None, str]:
    from dateparser.date import DateDataParser  # here, since it takes a while

    if told == "this week":
        return datetime(spoken.year, spoken.month, spoken.day), "week"
    base = datetime(spoken.year, spoken.month, spoken.day, 12)
    with _LOCK, wrap_errors(ModelError, "resolving a date with dateparser"):  # dateparser caches without a lock
        data = DateDataParser(languages=["en"], settings={"RELATIVE_BASE": base}).get_date_data(told)
    return data.date_obj, data.period
