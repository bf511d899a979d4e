"""Patterns of English expressions of time in questions."""

import re

from meve.memory._recall.periods import HOLIDAYS, SEASONS

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    "(?:january|february|march|april|may|june|july|august|september|october|november|december|feb|sept?|oct|nov|dec)"
)
_TH = "(?:st|nd|rd|th)?"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
COUNTS = ("an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = rf"(?:\d{{1,3}}|a|{'|'.join(COUNTS)})"
VAGUE = {"couple of": (1, 3), "few": (2, 5), "several": (3, 8)}
"""The least and the most units that a vague word stands for."""
_COUNT = rf"(?:a\ )?(?:couple\ of|few|several)|{_NUMBER}"
_UNIT = "minute|hour|day|week|weekend|fortnight|month|quarter|year"
_SEASON = "|".join(SEASONS)
_PART = r"early|mid|middle|late|start|beginning|end|first\ week|last\ week|first\ half|second\ half"
_ANY_PART = rf"(?:(?:at\ |in\ )?(?:the\ )?(?P<part>{_PART})(?:[ -](?:of\ )?(?:the\ )?))?"
PAST = re.compile(
    rf"""\b(?:
    (?:the\ )?(?P<before_last>day|night|week|weekend|month|year)\ before\ last
    | (?P<half>half\ an?)\ (?P<half_unit>hour|year)\ ago
    | (?:(?P<about>about|around|roughly)\ )?(?P<count>{_COUNT})\ (?P<unit>{_UNIT})s?
      (?P<more>\ or\ two)?(?P<so>\ or\ so)?\ ago(?:\ today|\ (?:on\ |last\ )?(?P<ago_day>{_WEEKDAY}))?
    | (?:in|over|during|within|for)?\ ?the\ (?:last|past|previous)\ (?P<recent>{_COUNT})
      \ (?P<recent_unit>{_UNIT})s?
    | (?:in|over|during|within)\ the\ (?:last|past)\ (?P<rolling>hour|day|week|month|year)
    | (?:the\ )?(?:previous|past)\ (?P<previous>week|weekend|month|quarter|year)
    | (?P<week_day>{_WEEKDAY})\ (?:of\ )?last\ week
    | {_ANY_PART}last\ (?:(?P<last>week|weekend|month|quarter|year)|(?P<last_season>{_SEASON}))
    | earlier\ (?:(?P<today>today)|this\ (?P<earlier>week|month|quarter|year))
    | (?P<two_days_ago>the\ day\ before\ yesterday) | (?P<day_ago>yesterday|last\ night)
    | last\ (?P<last_day>{_WEEKDAY})
    )\b(?!\ of\ (?!last|this))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that name a time in the past."""
PAST_SIGNS = ("last", "ago", "past", "previous", "earlier", "yesterday")
"""Words, one of which is in a folded text if `PAST` matches; they are found faster."""


def _with_year(name: str) -> str:
    """Return the pattern of the year that may follow a time, in groups that are named after it."""
    return rf"(?:,?\ (?:of\ )?(?:(?P<{name}_of>last|this)\ year|(?P<{name}_year>\d{{4}})))?"


_AND = r"(?:\ (?:and|or|to|until|till|through)\ |,\ |\ ?[-\u2013]\ ?)(?:the\ )?"
_DATE = rf"""(?P<iso>\d{{4}}-\d\d-\d\d)
    | (?P<date_month>{_MONTH})\ (?P<date_day>\d{{1,2}}){_TH}(?:{_AND}(?P<date_to>\d{{1,2}}){_TH}\b)?{_with_year("date")}
    | (?:the\ )?(?:(?P<from>\d{{1,2}}){_TH}{_AND}(?:\d{{1,2}}{_TH}{_AND}){{0,9}})?
      (?P<day>\d{{1,2}}(?={_TH}\ )|{"|".join(ORDINALS)}){_TH}\ (?:of\ )?(?P<day_month>{_MONTH}){_with_year("day")}"""
_PART_OF = rf"""(?:the\ )?(?P<part>{_PART})(?:[ -](?:of\ )?)(?:the\ |this\ )?
    (?:(?P<part_unit>week|month|quarter|year)|(?P<part_month>{_MONTH}){_with_year("part")}|(?P<part_only>(?:19|20)\d\d))"""
_MONTH_YEAR = rf"(?:the\ month\ of\ )?(?P<month>{_MONTH}){_with_year('month')}"
_SEASON_YEAR = rf"(?:the\ |this\ )?(?P<season>{_SEASON}){_with_year('season')}"
_HOLIDAY_YEAR = rf"(?P<holiday>{'|'.join(HOLIDAYS)})(?:'?s)?{_with_year('holiday')}"
_QUARTER_YEAR = rf"""(?:(?:the\ )?(?P<ordinal>first|second|third|fourth|[1-4](?=st|nd|rd|th)){_TH}\ quarter
    | q(?P<quarter>[1-4])){_with_year("quarter")}(?!\ of\b)"""
_YEAR = r"(?P<only_year>(?:19|20)\d\d)"
_THIS = r"(?P<now>today|now|this\ (?:morning|afternoon|evening))|this\ (?P<this>week|weekend|month|quarter|year)"
ANY = re.compile(
    rf"""\b(?:
    {_THIS}
    | (?:in\ |at\ )?{_PART_OF}
    | (?:in|during|last)\ {_MONTH_YEAR}
    | how\ (?:was|were|did|has|have)\ (?:my|our)\ (?P<own>day|week|weekend|month|year)
    | (?:over|at|on|during)\ the\ (?P<weekend>weekend)
    | (?:between|from)\ (?P<from_day>{_WEEKDAY})\ (?:and|to|until|till|through)\ (?P<to_day>{_WEEKDAY})
    | (?:in|over|during)\ {_SEASON_YEAR}
    | (?:at|over|on|during)\ {_HOLIDAY_YEAR}
    | (?:on\ | (?<!for\ )(?<!for\ the\ )(?<!about\ )) (?:{_DATE})
    | on\ (?P<weekday>{_WEEKDAY})
    | (?:in|during|of)\ {_YEAR}
    | (?:in\ )? {_QUARTER_YEAR}
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that may also name when something happens. They count only with words of `TELLING`."""
TIME = re.compile(
    rf"""(?:{_THIS} | {_PART_OF} | {_DATE} | {_MONTH_YEAR} | {_SEASON_YEAR} | {_HOLIDAY_YEAR} | {_QUARTER_YEAR}
    | {_YEAR} | (?:the\ )?(?P<weekend>weekend) | (?P<weekday>{_WEEKDAY}))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Expressions that name a time after a word of `RELATION`, or after another time."""
RELATION = re.compile(
    r"\b(since|after|before|prior to|until|till|up to|by|as of|around|between|from|(?:week|weekend) of) ",
    re.IGNORECASE,
)
"""Words that relate what is asked for to the time that follows."""
BEFORE = frozenset({"before", "prior to", "until", "till", "up to", "by", "as of"})
"""Those that end the time, at its beginning or its end."""
RANGE = re.compile(r" (?:and|to|until|till|through) ", re.IGNORECASE)
ONWARDS = re.compile(r" on(?:wards?)?\b", re.IGNORECASE)
MORE = re.compile(rf"(?x){_AND}(?:in\ |on\ |during\ )?", re.IGNORECASE)
"""The words between two times of a list, such as `or in` of `in May or in June`."""
CLAUSE = re.compile(
    r"['\u2019]s\b|,? (?:is|was|has|had|will|can|does|did|isn|wasn|came|left|got|met|went|moved|\w{2,20}ed)\b",
    re.IGNORECASE,
)
"""Words after which the word before is no time, such as `left` in `since May left`, or begins another clause."""
LISTING = re.compile(
    r"\W{0,9}(?:please )?(?:list|count|show|name|find|give|tell|recap|sum|summari[sz]e|what|which|how|who|where)\b",
    re.IGNORECASE,
)
TAIL = re.compile(r"\W{0,20}\Z")
"""The end of a question."""
PRESENT = re.compile(
    r"\b(?:need|want|do (?:i|we|you|they|my|our)|does|am|is|are|will|shall|should|can|could|would|must)\b",
    re.IGNORECASE,
)
"""Words of what is, or lies ahead."""
TELLING = re.compile(
    r"\b(?:say|said|tell|told|mention(?:ed)?|talk(?:ed)?|report(?:ed)?|ask(?:ed)?|wrote|discuss(?:ed)?"
    r"|(?:did|was|were|had|have|has|what['\u2019]d) (?:i|we|my|our)|highlights"
    r"|did (?!.{0,60}\b(?:plan|want|hope|intend|book|schedule|arrange|need|have to)\b)"
    r"|(?:was|were|has|have) (?!been\b)\w{1,30} (?:\w{2,20}(?:ing|ed)|been|seen|gone|done|met|read|bought|made)\b"
    r"|(?:i|we) (?:saw|met|did|bought|went|visited)"
    r"|(?:what|anything|everything)(?: (?!will|would)\w+)? (?:happened|happen|went)"
    r"|(?:did|was|were|had|have|has)\b[^?!.]{0,80}\bthis (?:week|month|quarter|year))\b",
    re.IGNORECASE,
)
_DONE = (
    r"(?:(?!(?:shed|need|speed|seed|weed|feed|breed|hundred)\b)\w{2,20}ed|been|seen|gone|done|met|read|bought|brought"
    r"|thought|caught|taught|made|said|told|had|left|sent|spent|lost|found|paid|heard|felt|come|run|won|slept|kept|sold"
    r"|learnt|grown|known|shown|flown|drunk|sung|swum|begun|eaten|taken|given|written|driven|forgotten|broken|chosen"
    r"|spoken|fallen|ridden|hidden|stolen)"
)
_SUBJECT = "(?:i|we|you|he|she|they|it)"
NOWADAYS = re.compile(
    r"\W{0,9}(?:(?:and|so|but|ok(?:ay)?|hey|then|now)\W{1,9}){0,3}(?:(?:who|what|where|which|how|when|why)\b"
    r"(?: (?!(?:did|was|were|had|would|could)\b)[\w'\u2019-]{1,30}){0,4}? ?)?"
    r"(?<![\w-])(?:do|does|is|are|am|owns?|lives?|works?|runs|drives"
    rf"|(?:has|have|(?<=\w)['\u2019]s)\b(?!(?: {_SUBJECT})?(?:(?! (?:{_SUBJECT}|that|which|who)\b) \S{{1,30}}){{0,8}}"
    rf" {_DONE}\b))\b",
    re.IGNORECASE,
)
"""The beginning of a question about what is so now: "Who has my truck today?", but not "What have I done today?"."""
JUST_DONE = re.compile(
    rf"\b(?:{_DONE}|did|was|were|went|saw|ate|wrote|took|gave|came|happen)(?: (?!do\b)[\w'\u2019-]{{1,30}}){{0,2}} ?\Z",
    re.IGNORECASE,
)
"""What stands before a time in which something was done, also in a question about now."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
TIME_SIGNS = (
    *MONTHS, *SEASONS, *HOLIDAYS, *"0123456789", "day", "week", "month", "quarter", "year", "now", "morning",
    "afternoon", "evening",
)  # fmt: skip
"""Words, one of which is in a folded text if `ANY` or `TIME` matches."""
APPROXIMATE = frozenset({"part", "season", "last_season", "holiday", "unit", "half_unit"})
"""Parts of an expression whose time has no exact beginning and end."""
YEARLY = frozenset({"month", "date_month", "day_month", "part_month", "season", "holiday", "ordinal", "quarter"})
"""Parts of an expression that recurs each year."""
