"""Finds passwords, PINs and access codes that somebody tells in everyday English words."""

import re
from collections.abc import Iterator

_TRIGGER = re.compile(
    r"pin\b|puk\b|pass|pwd|pw:|code|key|combination|combo\b|log ?in|sign ?in|user|cv[vc]|phrase|seed|sort|account|ssn"
    r"|social|get in|wpa|opens?\b|unlock|disarm|gate|door",
    re.IGNORECASE,
)
"""Text without any of these tells nothing that is found here."""
_OWN = r"(?:my|our|the|your|his|her|their|this)"
_PLACE = r"""(?:(?:front|back|side|garage|main|cellar|office|house)\s+)?
    (?:doors?|gates?|garage|safe|vault|padlock|lock|locker|lockbox|building|house|home|flat|apartment|office|shed|barn
    |cottage|cellar|alarm|suitcase|phone|gym|entrance|box|lift|keypad)"""
_NOT_AREA = "".join(rf"(?<!{word}\s)" for word in ("postal", "post", "zip", "area", "dialling", "country", "bar", "qr"))
_CODE = rf"""(?:
    (?:pin|puk)(?:[\s-]?(?:code|number|no\.?))?
    |pass(?:code|key)
    |(?:key|door|gate|garage|entry|entrance|access|alarm|safe|vault|lock|locker|padlock|building|house|key\s?box|lockbox
        |security|voicemail|unlock|verification|confirmation|2fa|tan|one[- ]time|backup|recovery|keypad)\s+codes?
    |(?:safe|lock|lockbox|padlock|vault|locker)(?:['\u2019]s)?\s+(?:combination|combo)
    |{_NOT_AREA}(?:code|combination|combo|key)\s+(?:to|of|for|at|on)\s+(?:\w+\s+){{0,3}}?{_PLACE}(?:\s+\d{{1,3}})?
    )"""
"""What has a number that opens something."""
_NUMBER = r"[A-Z]{0,3}\d(?:[ .\u2013-]?\d){2,11}[#*]?(?![\w:%\u20ac$]|[.,]\d)"
_IS = (
    r"(?:\s+(?:is|was|are)(?:\s+(?:now|still|again|just|simply|currently))?"
    r"|(?:\s+(?:is|was|has\s+been))?\s+(?:changed|set|reset|goes)\s+to|\s*[:=]|\s*->)"
)
_WHERE = r"(?:\s+(?:for|of|to|at|on|in|from|I|we|that|which)\s+(?:[\w'\u2019-]+\s+){0,5}?[\w'\u2019-]+)?"
_TELLS = rf"(?:['\u2019]s(?:\s+now)?|{_WHERE}{_IS})"
_NUMBERS = re.compile(
    rf"""\b{_CODE}{_TELLS}\s*["'`]?{_NUMBER}
    |(?<!gpio\s)\b(?:(?:pin|puk)(?:[\s-]?(?:code|number))?|passcode
        |(?:key|door|gate|garage|entry|access|alarm|safe|lock|padlock|locker|security|voicemail|verification)\s+code)
        (?:\s+[\u2013-])?\s+\#?(?:\d{{4,8}}|\d{{3}}\ \d{{3}})(?![\w:%-]|[.,]\d)
    |\b(?:safe|lock|lockbox|padlock|vault|locker)\s+(?:combination|combo)\s+{_NUMBER}
    |\b(?:use|need|takes)\s+(?:code\s+)?\d{{3,8}}[\#*]?\s+(?:to\s+(?:open|unlock|enter|disarm|get\s+in)\b|(?:at|for)\s+the\s+{_PLACE}\b)
    |\b(?:the|my|our)\s+code(?:\s+is|['\u2019]s|:)\s*\#?\d{{4,8}}[\#*]?(?![\w:%-]|[.,]\d)
    |\b(?:get|go|come|let\s+yourself)\s+in\s+(?:with|using|by)\s+(?:code\s+)?\d{{3,8}}[\#*]?(?![\w:%-])
    |\bto\s+(?:open|unlock|enter|disarm)\s[^.\n]{{1,30}}?\s(?:press|enter|type|dial|use)\s+(?:code\s+)?\d{{3,8}}[\#*]?(?![\w:%-])
    |\b\d(?:[ -]?\d){{2,7}}[\#*]?\s+(?:is|was)\s+(?:{_OWN}\s+)(?:\w+\s+){{0,3}}?{_CODE}\b
    |\b{_PLACE}\b:?(?:\s+\w+){{0,3}}?\s+(?:opens?|opened|unlocks?|unlocked|disarm(?:ed)?|switched\s+off|deactivated)
        \s+(?:with|by|using)\s+(?:{_OWN}\s+)?(?:code\s+)?\d(?:[ -]?\d){{2,7}}[\#*]?(?![\w:])
    |\b(?:enter|type|type\s+in|press|dial|punch(?:\s+in)?|key\s+in)\s+(?:in\s+)?\#?\d(?:[ -]?\d){{2,7}}[\#*]?
        \s+(?:at|on|into|in|to)\s+the\s+(?:\w+\s+){{0,2}}?(?:keypad|pad|panel|door|gate|lock|safe|alarm)\b
    |\bcv[vc]2?\b(?:\s+(?:code|number))?{_WHERE}(?:\s+is|\s*[:=])?\s*\d{{3,4}}\b
    |\b(?:ssn|social(?:\s+security)?(?:\s+(?:number|no\.?))?)(?:\s+is|\s*[:\#=])?\s*\d{{3}}-?\d\d-?\d{{4}}\b
    |\bsort\s+code(?:\s+is|\s*[:=])?\s*\d\d-?\d\d-?\d\d\b
    |\bbank\s+account\s+(?:number|no\.?)(?:\s+is|\s*[:\#=])?\s*\d{{6,}}\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number that is told as a code."""
_STRICT = rf"""(?:(?:{_OWN}|card|debit|credit|bank|sim|atm|phone|door|banking)\s+(?:\w+\s+)?pin\b|(?-i:\bPIN\b)
    |\bpuk\b|\bpasscode\b
    |\b(?:my|our|your|his|her)\s+(?:\w+\s+){{0,2}}?(?!(?:postal|post|zip|area|error|exit|status|country|dialling|product|discount|promo
        |voucher|coupon|bar|qr|dress|colou?r|source|tax|course|return|morse|genetic|building|http|booking|airport|language
        |currency|class|item|part|article|order|tracking)\b)\w+\s+code\b
    |\b(?:sms|intercom|authenticator|door|gate|garage|alarm|safe|access|entry|security)\s+code\b
    |\b(?:lock|door|gate|safe|garage|alarm)\b[^.?!\n]{{0,20}}?\bcode\b)"""
_CLAUSE = r"(?=\s*(?:[.,;!)\n]|$|and\b|but\b|as\b|if\b))"
_CODE_NUMBER = r"(?<![\w\#.,:\u20ac$\u00a3-])(?!(?:19|20)\d\d\b)\d(?:[ -]?\d){2,7}[A-Z\#*]?(?![\w:%]|[.,]\d)"
_NEAR = re.compile(
    rf"""{_STRICT}[^.?!\n]{{0,40}}?{_CODE_NUMBER}{_CLAUSE}
    |{_CODE_NUMBER}\s+(?:as|is|for|=)\s[^.?!\n]{{0,8}}?{_STRICT}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number near a word for a code, at the end of a clause."""
_WORD = r"pass(?:wor[dt]|phrase|wd)|pwd|pw(?=:)|(?:wi-?fi|wlan|network|router|wpa\d?)\s+(?:key|pass)"
_ANY = r"(?P<value>\"[^\"\n]{4,30}\"|'[^'\n]{4,30}'(?!\w)|[^\s\"'`]{4,})"
_VALUE = rf"{_ANY}(?P<after>.?\s*\S?)"
_PASSWORDS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:{_WORD}){_TELLS}\s*{_VALUE}",
        rf"\b(?:set|changed?|reset|switched)\s+(?:{_OWN}\s+)?(?:[\w'-]+\s+){{0,3}}?(?:{_WORD}){_WHERE}\s+to\s+{_VALUE}",
        rf"\b(?:use|used|chose|took|have)\s+{_ANY}(?P<after>)\s+(?:as|for)\s+{_OWN}\s+(?:[\w-]+\s+){{0,3}}?(?:{_WORD})\b(?!\s+\w)",
        rf"\b(?:user(?:name)?|login|log(?:ged)?\s+in\s+as|sign(?:ed)?\s+in\s+as|name)(?:\s+is|\s*[:=])?\s+[^\s,;]+[\s,;]+"
        rf"(?:(?:and|with)\s+)?(?:{_OWN}\s+)?(?:pass(?:word)?|pw|pwd)(?:\s+is|\s*[:=])?\s+{_VALUE}",
    )
)
"""A password that is told; its value may be a word."""
_MIXED = re.compile(
    r"""\b(?:(?:pass(?:word|phrase|wd)|pwd)(?:\s+[\u2013-])?|my\s+pass\s+is)\s+(?=[^\s"']*\d)(?=[^\s"']*[a-z])[^\s"',;()]{6,}
    |\b(?:log\s?in|sign\s?in|credentials?)\b[^\n]{0,20}?\s\S{2,30}\s*/\s*(?=\S*\d)(?=\S*[a-z])[^\s/]{6,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A value of letters and digits right after a word for a password, or after a name and a slash."""
_PHRASE = re.compile(
    r"\b(?:seed|recovery|backup|mnemonic)\s+(?:phrase|words)(?:\s+(?:is|are)|\s*:)\s*(?:[a-z]{3,8}[,\s]+){11,23}[a-z]{3,8}\b"
    r"|\bpassphrase\s*[:=]\s*(?:[a-z]+[ -]){2,9}[a-z]+[.!]?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_NO_VALUES = """
required optional missing wrong invalid expired incorrect correct changed forgotten reset protected none null true false
string secret safe secure insecure weak strong long short longer shorter empty blank unknown known needed different same
stored saved hashed encrypted hidden visible public private default temporary static here there below above attached
gone lost leaked stolen broken fine good okay easy hard simple complex something someone mine yours ours this that these
those what which only also unset hers theirs enough important necessary mandatory masked shown sent written printed old
older outdated stale new random unique accepted rejected refused denied allowed valid guessable better worse terrible
bad awful great funny boring impossible possible case-sensitive ready compromised unchanged confidential personal
"""
_NO_PASSWORDS = frozenset(_NO_VALUES.split())
_ADJECTIVE = re.compile(r"(?:ed|able|ible|ing|less|ful|ous|ive|ly)$")
_CALL = re.compile(r"\w[\[(]")
"""An expression of a program."""
_END = ".,;:!?)"
_STRONG = re.compile(r"[a-z][^a-zA-Z\n]*+[A-Z]|\d|[^\w\s.!?-]|[a-z][-_][a-z]")


def tells_secret(text: str) -> bool:
    """Return whether a text tells a password, a PIN, an access code or a phrase that restores a wallet.

    >>> [tells_secret(text) for text in ("4711 is my PIN.", "My password is correcthorse.", "My password is weak.")]
    [True, True, False]
    """
    if not _TRIGGER.search(text):
        return False
    patterns = (_NUMBERS, _NEAR, _MIXED, _PHRASE)
    return any(pattern.search(text) for pattern in patterns) or any(_find_passwords(text))


def _find_passwords(text: str) -> Iterator[str]:
    for pattern in _PASSWORDS:
        for match in pattern.finditer(text):
            value = match["value"]
            if value[0] in "\"'":
                yield value
                continue
            after = value[len(value.rstrip(_END)) :] + match["after"].strip()
            value = value.rstrip(_END)
            if len(value) < 4 or value.lower() in _NO_PASSWORDS or value[0] in "<{[*$%(" or _CALL.search(value):
                continue
            is_last = not match["after"].strip() or after[:1] in ".,;!"
            if "?" not in after and (_STRONG.search(value) or (is_last and not _ADJECTIVE.search(value.lower()))):
                yield value
