"""Replaces relative days, such as `yesterday`, by dates. Uses dateparser, for English."""

import re
from datetime import date, datetime, timedelta
from typing import Literal

from dateutil.relativedelta import relativedelta, weekday

from meve._fork_safety import ForkSafeLock
from meve.errors import ModelError, wrap_errors
from meve.memory._contradiction.lexicon import KIN, MONTHS, NO_EVENTS, PAST_VERBS

_UNIT = "(?:day|week|fortnight|month|year)"
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = r"(?:\d{1,3}|half\s+an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_DATE = rf",?\s+(?:the\s+)?(?:\d{{1,2}}(?:st|nd|rd|th|\.?\s+(?:of\s+)?(?:{'|'.join(MONTHS)}))|{'|'.join(MONTHS)})\b"
"""A date after a weekday."""
_UNDATED = f"(?!{_DATE})"
_DATED = re.compile(rf"\b({_WEEKDAY}){_DATE}", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"""\b(?P<before>(?:since|until|till|by|from|for|before|after|on|to)\s+)?(?P<told>
    (?:today|tomorrow|{_WEEKDAY})\s+week | (?:last|next|this)\s+weekend | this\s+(?:morning|afternoon|evening)
    | the\s+day\s+(?:before\s+yesterday|after\s+tomorrow) | yesterday | today | tomorrow | last\s+night | tonight
    | (?:last|next|this)\s+(?:{_WEEKDAY}|week) | (?:last|next)\s+(?:month|year) (?!\w|\s+(?:of|in)\b)
    | {_COUNT}\s+{_UNIT}s?\s+ago | in\s+{_COUNT}\s+{_UNIT}s? (?!\s+time)
    )\b(?!['’-]\w|\s+and\s+age){_UNDATED}""",
    re.IGNORECASE | re.VERBOSE,
)
_NOW = re.compile(r"\s*(?:so|very|too|such|really|super|pretty)\s+\w+\s*$", re.IGNORECASE)
"""What stands alone before "today" in an exclamation: "So tired today."."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMED = re.compile(
    rf"""(?:\b(?<!week\s)(?P<before>on|until|till|by|before|from|since)\s+|(?<=[^\W\d_]\s)(?={_WEEKDAY}\s*(?:[.!?]|$|at\s+\d)))(?P<day>{_WEEKDAY})
    (?:\s+(?P<part>morning|afternoon|evening|night))?\b(?!['’-]\w)
    (?!\s+(?:mornings|afternoons|evenings|nights)\b){_UNDATED}(?!\s*(?:,|-|–|to|until|till|and|or)\s*(?:on\s+)?{_WEEKDAY})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A weekday without "next", which may come again every week; without "on" only before a time or an end."""
_NO_DAY = re.compile(
    r"\b(?:an?|and|each|every|good|is|last|next|not|of|on|or|than|that|the|this|to)\s$|(?<=\s)(?-i:[A-Z])\w*\s$",
    re.IGNORECASE,
)
"""What before a weekday without "on" makes it another one, or a name: "Black Friday"."""
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
_HAVE_GOT = re.compile(r"(\b(?:have|has)|['’](?:ve|s))\s+got\b", re.IGNORECASE)
_HAS_EVENT = re.compile(
    r"""(?:\b(?:have|has)|['’](?:ve|s))\s+(?:
      (?:an?|another|my|our|his|her|their)\s+(?:[\w'’-]+\s+){0,3}?(?:audition|check-?up|consultation|date|fitting|gig
        |haircut|hearing|inspection|lesson|presentation|race|reservation|recital|rehearsal|scan|viewing|x-ray)
    | (?:an?|my|our|his|her|their)\s+(?:first|last|next|final|trial)\s+(?:[\w'’-]+\s+){0,3}?(?:class|course|shift
        |session|training|day)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""What somebody has on one day, with the words before it."""
_COMES = re.compile(
    r"""\b(?!(?:the|our|my)\s+(?:clean|nann|baby|rubbish|bin|post|maid|garden))(?:\w+\s+){0,3}
    (?:arrives?|begins?|comes?|departs?|fly|flies|goes?\s+back|leaves?|returns?|starts?|visits?)\b(?!\s+(?:work|at\s+\d))
    |^\W*(?:brunch|coffee|dentist|dinner|doctor|drinks|hairdresser|lunch|vet)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A clause in which somebody comes or goes, or an appointment without a verb."""
_LASTS_UNTIL = re.compile(
    rf"\b(?:i|we|he|she|{'|'.join(sorted(KIN))})(?:\s+(?:am|is|are|needs?|stays?)|['’](?:m|re|s))\b", re.IGNORECASE
)
"""Words of a clause in which "until Thursday" means the next one: of a person, since a shop is open every week."""
_HAS_LASTED = re.compile(r"\b(?:have|has)\b|['’](?:ve|s)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?!\d)")
_CLAUSE_END = re.compile(r"[.,;:!?](?!\d)|\b(?:and|but|or|that|because|so)\b")
_REPEATED = re.compile(
    r"""\b(?:times?|once|twice|can|could|usually|normally|often|always|n?ever|no|not|nothing|nobody|none|hardly|without
    |only|first|second|third|fourth|fifth|sixth|most|least|best|worst|fewest|(?!(?:t|gu|r|w|for|inter|requ|cont|prot|ch)est\b)\w+est)\b|n['’]t\b|['’]ve\b|%""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a clause in which "in two days" is the time that something takes, took or counts in."""
_AMOUNT = re.compile(
    r"\b(?<!\bat )(?<!\bbe )(?<!\bam )(?<!['’]m )(?<!\bturn )(?<!turns )"
    r"(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b",
    re.IGNORECASE,
)
"""What somebody does so often or so much of in a time: "two tablets in a day"."""
_AHEAD = re.compile(
    r"""\b(?:will|shall|must|should|going\s+to|(?:have|has|need|needs|want|wants|plan|plans|hope|hopes)\s+to|due|is|are|am
    |arrives?|begins?|comes?|closes?|ends?|expires?|finish(?:es)?|fly|flies|gets?|go(?:es)?|leaves?|meets?|moves?|opens?
    |pays?|retires?|returns?|runs?\s+out|sees?|sells?|starts?|stops?|turns?|visits?
    |back|appointment|interview|exam|test|wedding|surgery|operation)\b|['’](?:ll|m|re)\b
    |(?<!able )(?<!used )(?<!managed )\bto\s+\w""",
    re.IGNORECASE | re.VERBOSE,
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
_FORTNIGHT = re.compile(r"\b(\d+|an?|one) fortnights?\b")
_HALF = re.compile(r"\bhalf an? year\b")
_LOCK = ForkSafeLock()


def resolve_days(text: str, spoken: datetime | date, turn: str = "") -> str:
    """Return a text in which days, weeks, months and years relative to a moment are dates.

    Args:
        text: an English text.
        spoken: when it was said.
        turn: what the text is from. A weekday that has a date there means that day, and stays as it is.

    Raises:
        ModelError: dateparser failed.

    >>> resolve_days("Yesterday I met Ann. I fly to Rome next Friday.", date(2026, 5, 20))
    'On 19 May 2026 I met Ann. I fly to Rome on 22 May 2026.'
    """
    dated = _RELATIVE.sub(lambda match: _as_date(match, spoken), text)
    of_other_days = {day.lower() for day in _DATED.findall(turn)}
    return _NAMED.sub(
        lambda match: match[0] if match["day"].lower() in of_other_days else _as_named_date(match, spoken), dated
    )


def _as_named_date(match: re.Match[str], spoken: datetime | date) -> str:
    """Return a date for a weekday that is the next or the last one; else what was said."""
    before, part = match["before"] or "on", match["part"]
    begin, end = max(0, match.start() - _READ), match.end() + _READ
    if match["before"] is None and _NO_DAY.search(match.string[begin : match.start()]):
        return match[0]
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
    clause = _HAVE_GOT.sub(r"\1", clause)
    said = _CLAUSE_END.split(earlier)[-1].strip() or _CLAUSE_END.split(later, maxsplit=1)[0]
    if _HABIT.search(clause):
        return 0
    if before == "from":
        return 1
    if before == "since":
        return -1 if _HAS_LASTED.search(clause) else 0
    if past := _PAST.findall(clause):
        is_last = before == "on" and not NO_EVENTS.issuperset(map(str.lower, past))
        whole = sentence + " " + _SENTENCE_END.split(later, maxsplit=1)[0]
        return -1 if is_last and not (_TOLD_OTHERWISE.search(whole) or _SOON.search(clause)) else 0
    lasts = before in ("until", "till") and bool(_LASTS_UNTIL.search(clause))
    return 1 if lasts or _REMINDER.search(sentence) or _is_coming(clause, said) else 0


def _is_coming(clause: str, said: str) -> bool:
    """Return whether a clause tells of what comes, and not of each week."""
    return any((_SOON.search(clause), _HAS_EVENT.search(clause), _COMES.match(said)))


def _as_date(match: re.Match[str], spoken: datetime | date) -> str:
    told, before = match["told"], match["before"] or ""
    if told[:3].lower() == "in " and not _lies_ahead(match):
        return match[0]
    if told.lower() == "today" and _NOW.fullmatch(
        _SENTENCE_END.split(match.string[max(0, match.start() - _READ) : match.start()])[-1]
    ):
        return match[0]
    day, period = _parse(" ".join(told.lower().split()), spoken)
    if day is None:
        return match[0]
    if period == "year":
        preposition, when = "in", f"{day.year}"
    elif period == "month":
        preposition, when = "in", f"{day:%B %Y}"
    elif period == "weekend":
        preposition, when = "on", f"the weekend of {day.day} {day:%B %Y}"
    elif period in ("morning", "afternoon", "evening"):
        preposition, when = "on", f"the {period} of {day.day} {day:%B %Y}"
    elif period == "week":
        day -= timedelta(days=day.weekday())
        preposition, when = "in", f"the week of {day.day} {day:%B %Y}"
    else:
        preposition, when = "on", f"{day.day} {day:%B %Y}"
    phrase = f"{before}{when}" if before else f"{preposition} {when}"
    return (
        phrase[0].upper() + phrase[1:]
        if match[0][0].isupper() and not re.match(_WEEKDAY, match[0], re.IGNORECASE)
        else phrase
    )


def _lies_ahead(match: re.Match[str]) -> bool:
    """Return whether "in two days" counts from now, and isn't how long something takes: "I read it in two days"."""
    clause = _CLAUSE_END.split(match.string[max(0, match.start() - _READ) : match.start()])[-1]
    begins = not clause.strip()
    if begins:
        clause = _CLAUSE_END.split(match.string[match.end() : match.end() + _READ], maxsplit=1)[0]
    if _REPEATED.search(clause) or _AMOUNT.search(clause) or (_PAST.search(clause) and not _AHEAD.search(clause)):
        return False
    return begins or _AHEAD.search(clause) is not None


def _parse(told: str, spoken: datetime | date) -> tuple[datetime | None, str]:
    from dateparser.date import DateDataParser  # here, since it takes a while

    today = datetime(spoken.year, spoken.month, spoken.day)
    if told == "this week":
        return today, "week"
    if told.endswith("weekend"):
        saturday = today + timedelta(days=5 - today.weekday() if today.weekday() < 6 else -1)
        return saturday + timedelta(weeks=("last", "this", "next").index(told[:4]) - 1), "weekend"
    if told.startswith("this ") and told[5:] in ("morning", "afternoon", "evening"):
        return today, told[5:]
    if told.endswith(" week") and (first := told[:-5]) in ("today", "tomorrow", *_WEEKDAYS):
        ahead = (
            ("today", "tomorrow").index(first)
            if first not in _WEEKDAYS
            else (_WEEKDAYS.index(first) - today.weekday() - 1) % 7 + 1
        )
        return today + timedelta(days=ahead, weeks=1), "day"
    told = _HALF.sub(
        "6 months", _FORTNIGHT.sub(lambda match: f"{2 * int(match[1]) if match[1].isdigit() else 2} weeks", told)
    )
    base = today + timedelta(hours=12)
    with _LOCK, wrap_errors(ModelError, "resolving a date with dateparser"):  # dateparser caches without a lock
        data = DateDataParser(languages=["en"], settings={"RELATIVE_BASE": base}).get_date_data(told)
    return data.date_obj, data.period
