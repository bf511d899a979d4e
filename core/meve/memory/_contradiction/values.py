"""Write values in one form, for English: times, dates, numbers in words, units and currencies.

text2num writes numbers in words in digits, which takes some 2 µs; the rest is own code. A statement takes 18 µs in all.
On the 480 statements of the half for tuning of the updates, no other library was as good: `number-parser` reads
ordinals and pronouns as numbers ("the big 1", "my 1 car", in 22 statements). `dateparser` takes 3.4 ms, and reads "May
I come" as a date and "3.5.2024" as 5 March; `ctparse` takes 4.1 ms. `price-parser` finds one price and not its place,
`babel` finds no number in a text, and `pint` takes 0.2 ms for a quantity and finds none in a text. `quantulum3` (24 MB)
takes 6.4 ms. `recognizers-text-suite` is an alpha version, which can't be loaded beside a current `emoji`.
"""

import re
from collections.abc import Mapping

from text_to_num import alpha2digit

from meve.components._rewriting import Step, Write, fold, rewrite

_SCALES = {"thousand": 1_000, "million": 1_000_000}
_NUMBER_SIGNS = """
three four five six seven eight nine nint eleven twel thir fif twen fort hundred thousand million billion point
"""
"""Parts of words; each number in words that text2num writes in digits has one, or is ten."""
_ISOLATED = re.compile(r"\b(?:zero|one|two|(?:first|second)(?= of (?:[jfmasond][a-z]{2})))\b", re.I)
"""What text2num leaves when it stands alone."""
_DIGITS = {"zero": "0", "one": "1", "two": "2", "first": "1", "second": "2"}
_HYPHENATED = re.compile(r"\b([a-z]+)(?:-[a-z]+)?(?=-[a-z])", re.I)
_PRONOUN_ONE = re.compile(
    r"\b(?:the|this|that|each|every|no|other|\w+(?:er|est|ig|ld|ew))\s+one\b|\bone (?:of|day)\b", re.I
)
_SCALED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:(k)\b|(thousand|million)\b)", re.I)
_GROUPED = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+)(?![\d,])")
_DECIMAL_COMMA = re.compile(r"(?<![\w.,])(\d+),(\d{1,2})(?![\d,])")
_TRAILING_ZEROS = re.compile(r"(?<![\w.:/-])(\d+)\.(?!000(?!\d))0+(?![\w.])")

_HALF_DAY = r"(?:\s?([ap])\.?m\b\.?|\s(?:in the|at) (morning|afternoon|evening|night)\b)"
_TO_HOUR = re.compile(
    r"\b(?:a )?(quarter|half|\d{1,2}(?= past| minutes))(?: minutes)? (past|to) (\d{1,2})\b(?![:.]\d)", re.I
)
_CLOCK = re.compile(rf"(?<![\w.:])([01]?\d|2[0-4])(?::([0-5]\d))(?![:\d]){_HALF_DAY}?", re.I)
_HOUR = re.compile(rf"(?<![\w.:])(1?\d)(?:\.([0-5]\d))?{_HALF_DAY}", re.I)
_O_CLOCK = re.compile(r"\b(\d{1,2}) o['’]?clock\b", re.I)
_AT_HOUR = re.compile(
    r"\b(at) ([01]?\d|2[0-4])(?![\w:]|[.,]\d|%)(?! (?!nowadays|always|as|is|was|this)[a-z]+s\b)", re.I
)

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
_MONTH = rf"({'|'.join(_MONTHS)}|(?:{'|'.join(m[:3] for m in _MONTHS)}|sept)\b\.?)"
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (\d{{4}}))?\b", re.I)
_MONTH_DAY = re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?", re.I)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DOTTED_DATE = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_WEEKDAY = re.compile(r"\b(Mon|Tues?|Wed|Thu(?:rs?)?|Fri)\b\.?|\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)s\b", re.I)
_SHORT_DAYS = {"mon": "monday", "tue": "tuesday", "wed": "wednesday", "thu": "thursday", "fri": "friday"}

_CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp"}
_SIGNED = re.compile(r"([$€£])\s?(\d+(?:\.\d+)?)")
_UNITS: Mapping[str, tuple[str, float]] = {
    name: (base, factor)
    for base, factor, names in (
        ("g", 0.001, "mg milligram milligrams"), ("g", 1, "g gram grams"),
        ("g", 1_000, "kg kgs kilo kilos kilogram kilograms"), ("lb", 1, "lb lbs"),
        ("mm", 1, "mm millimetre millimetres millimeter millimeters"),
        ("mm", 10, "cm centimetre centimetres centimeter centimeters"),
        ("mm", 1_000, "metre metres meter meters"),
        ("mm", 1_000_000, "km kilometre kilometres kilometer kilometers"), ("mile", 1, "mile miles"),
        ("ml", 1, "ml millilitre millilitres"), ("ml", 1_000, "l litre litres liter liters"),
        ("min", 1 / 60, "sec secs seconds"), ("min", 1, "min mins minute minutes"), ("min", 60, "h hr hrs hour hours"),
        ("day", 1, "day days"), ("day", 7, "week weeks"), ("month", 1, "month months"), ("month", 12, "year years"),
        ("%", 1, "% percent"), ("eur", 1, "eur euro euros"), ("usd", 1, "usd dollar dollars"), ("gbp", 1, "gbp quid"),
        ("pound", 1, "pound pounds"), ("yen", 1, "jpy yen"),
    )
    for name in names.split()
}  # fmt: skip
"""For each name of a unit: its base unit, and how many of these it is. Left out is "m", which may mean metres, minutes
or millions; "pound" may be a weight or money, and so is a unit of its own."""
_QUANTITY = re.compile(
    rf"(?<![\w.:/-])(\d+(?:\.\d+)?)[\s-]?({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?!\w)",
    re.I,
)


def normalise_values(text: str) -> str:
    """Return a text in which equal values are written alike.

    >>> normalise_values("Call at quarter to eight"), normalise_values("Call at 7:45")
    ('Call at 07:45', 'Call at 07:45')
    >>> normalise_values("It costs 1.5k euros."), normalise_values("It costs €1,500.")
    ('It costs 1500eur.', 'It costs 1500eur.')
    >>> normalise_values("due on 3rd of May, ninety minutes"), normalise_values("due on May 3, 1.5 hours")
    ('due on 05-03, 90min', 'due on 05-03, 90min')
    """
    text = rewrite(text, _FREQUENCIES)
    if _LARGE_SIGN.search(fold(text)):
        for pattern, write in _LARGE_NUMBERS:
            text = pattern.sub(write, text)
    text = rewrite(text, _WORDS)
    if _NUMBER_SIGN.search(folded := fold(text)) or _NUMBER_AFTER_SPACE.search(folded):
        for pattern, write in _NUMBERS:
            text = pattern.sub(write, text)
    return text


def _number(value: float) -> str:
    return f"{value:.6g}" if value < 1_000_000 else f"{value:.0f}"


def _write_in_digits(match: re.Match[str]) -> str:
    """Return a text with its numbers of several words, and those from three on, in digits."""
    return str(alpha2digit(match[0], "en"))


def _split_number(match: re.Match[str]) -> str:
    """Return words joined by hyphens with the number before them in digits: "sixty-five-year-old", "four-year-old"."""
    for words in (match[0], match[1]):
        if (number := str(alpha2digit(words, "en", 0.0))).isdigit():
            return number + match[0][len(words) :]
    return match[0]


def _clock(hour: str, minute: str | None, half: str | None, part: str | None) -> str:
    h = int(hour)
    is_late = (
        (half or "").lower() == "p"
        or (part or "").lower() in ("afternoon", "evening")
        or ((part or "").lower() == "night" and h > 5)
    )
    if is_late and h < 12:
        h += 12
    elif (half or "").lower() == "a" and h == 12:
        h = 0
    return f"{h % 24:02}:{minute or '00'}"


def _to_hour(match: re.Match[str]) -> str:
    minutes = {"quarter": 15, "half": 30}.get(match[1].lower()) or int(match[1])
    hour = int(match[3])
    if hour > 24 or minutes > 59:
        return match[0]
    total = 60 * hour + (minutes if match[2].lower() == "past" else -minutes)
    return f"{total // 60 % 24:02}:{total % 60:02}"


def _date(day: str, month: str | int, year: str | None) -> str:
    number = month if isinstance(month, int) else [m[:3] for m in _MONTHS].index(month[:3].lower()) + 1
    return f"{year}-{number:02}-{int(day):02}" if year else f"{number:02}-{int(day):02}"


def _dotted(match: re.Match[str]) -> str:
    return _date(match[1], int(match[2]), match[3]) if int(match[2]) <= 12 else match[0]


def _weekday(match: re.Match[str]) -> str:
    if match[2]:
        return match[2]
    return _SHORT_DAYS[match[1][:3].lower()].title() if match[1][0].isupper() else match[0]


def _quantity(match: re.Match[str]) -> str:
    if match[2] in ("G", "H"):
        return f"{match[1]}-{match[2]}"  # "5G" is no weight
    if len(match[1].partition(".")[2]) == 3:  # "1.500 euros" may be 1500
        return match[0]
    base, factor = _UNITS[match[2].lower()]
    return f"{_number(float(match[1]) * factor)}{base}"


_PLACEHOLDER = "\x00"
_FREQUENCIES: tuple[Step, ...] = (
    (("dr. ", "mr. ", "mrs. ", "ms. ", "prof. ", "st. "), re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.(?= )"), r"\1"),
    (("noon",), re.compile(r"\bnoon\b", re.I), "12:00"),
    (("midnight",), re.compile(r"\bmidnight\b", re.I), "00:00"),
    (("once ",), re.compile(r"\bonce\b(?= an?\b| every\b| per\b)", re.I), "1 times"),
    (("twice",), re.compile(r"\btwice\b", re.I), "2 times"),
    (("one",), _PRONOUN_ONE, lambda match: match[0].replace("one", f"o{_PLACEHOLDER}ne")),
)
_LARGE_SIGN = re.compile(r"\d(?:,\d|\s?[ktm])")
"""Is in a folded text if a pattern of `_LARGE_NUMBERS` matches."""
_LARGE_NUMBERS: tuple[tuple[re.Pattern[str], Write], ...] = (
    (_GROUPED, lambda match: match[1].replace(",", "")),
    (_SCALED, lambda match: _number(float(match[1]) * _SCALES.get((match[3] or "thousand").lower(), 1))),
)
_WORDS: tuple[Step, ...] = (
    (("a hundred", "a thousand", "a million"), re.compile(r"\ba (?=(?:hundred|thousand|million)\b)", re.I), ""),
    ((" ten", "ten ", *_NUMBER_SIGNS.split()), re.compile(r"\A.*\Z", re.S), _write_in_digits),
    (("-",), _HYPHENATED, _split_number),
    (tuple(_DIGITS), _ISOLATED, lambda match: _DIGITS[match[0].lower()]),
    ((_PLACEHOLDER,), re.compile(_PLACEHOLDER), ""),
    ((*_SHORT_DAYS, "days"), _WEEKDAY, _weekday),
)
_NUMBER_SIGN = re.compile(r"[\d$€£](?:(?<=[$€£])|[\s-]?[a-z%]|[,.:-]\d)")
_NUMBER_AFTER_SPACE = re.compile(r" \d")
"""One of these two is in a folded text if a pattern of `_NUMBERS` matches; they are found faster."""
_NUMBERS: tuple[tuple[re.Pattern[str], Write], ...] = (
    (_DECIMAL_COMMA, r"\1.\2"),
    (_TO_HOUR, _to_hour),
    (_CLOCK, lambda match: _clock(*match.groups())),
    (_HOUR, lambda match: _clock(*match.groups())),
    (_O_CLOCK, lambda match: _clock(match[1], None, None, None)),
    (_ISO_DATE, r"\1-\2-\3"),
    (_DOTTED_DATE, _dotted),
    (_DAY_MONTH, lambda match: _date(match[1], match[2], match[3])),
    (_MONTH_DAY, lambda match: _date(match[2], match[1], match[3])),
    (_SIGNED, lambda match: f"{match[2]}{_CURRENCIES[match[1]]}"),
    (_TRAILING_ZEROS, r"\1"),
    (_QUANTITY, _quantity),
    (_AT_HOUR, lambda match: f"{match[1]} {_clock(match[2], None, None, None)}"),
)
