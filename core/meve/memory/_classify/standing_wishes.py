"""Detects standing wishes of a user to the assistant, by rules for English.

A wish asks the assistant to do something with its answers ("use", "explain", "call me"), and says that this lasts
("always", "whenever I …"), or how the answers should be ("in German", "without jargon"). A request for one thing
("write a poem", "translate this") is none.
"""

import re


def _any(words: str) -> str:
    return f"(?:{'|'.join(word.replace('_', ' ') for word in words.split())})"


_GERUND = (
    "(?:us|say|call|writ|add|repeat|mention|ask|giv|explain|start|end|apologi[sz]|flatter|lectur|guess|assum|swear)"
)
VERBS = _any("""
    add address answer apologi[sz]e ask assume avoid begin book call check cite compare consider convert define
    double-check end explain flatter format give greet guess include keep leave_out lecture make mention put quote
    recommend refer repeat reply respond return round say send show sign skip speak spell start sugar-?coat suggest
    swear talk tell translate treat use verify warn write correct
""")
_PAST = {
    "used": "use", "wrote": "write", "gave": "give", "said": "say", "spoke": "speak", "kept": "keep", "made": "make",
    "put": "put", "began": "begin", "skipped": "skip", "replied": "reply", "called": "call", "were": "be", "was": "be",
}  # fmt: skip
_NOUN = _any("answers? replies reply responses? explanations? messages?")
_MANNER = _any("""
    brief briefer concise short shorter long longer simple simpler honest direct formal informal polite friendly
    critical casual succinct blunt strict humorous funny kind clear plain neutral serious detailed wordy verbose
    technical chatty cheerful
""")
_STYLE = _any("""
    emojis? bullet_points bullets jargon small_talk abbreviations exclamation_marks slang markdown lower_case upper_case
    capitals(?!_of) capital_letters pronouns disclaimers introductions? greetings apologies filler puns plain_text
    (?:british|american|australian)_(?:english|spelling) (?:decimal_)?(?:commas|separators) (?:the_)?(?:24|12)-hour
    (?:short|long|full)_paragraphs [248]_spaces (?:technical|legal|medical|latin|foreign)_(?:terms|phrases)
    (?:simple|plain|short|easy|long|foreign)_words (?:short|long|full|complete)_sentences
    (?:simple|plain|marketing|technical)_language (?:metric|imperial)(?:_units)? celsius fahrenheit
""")
"""Ways of writing, which nobody asks for once."""
_UNIT = _any("""
    celsius fahrenheit kelvin miles kilomet(?:er|re)s met(?:er|re)s feet inches centimet(?:er|re)s pounds ounces
    kilos kilograms grams lit(?:er|re)s gallons knots (?:metric|imperial)(?:_units)? (?:swiss_)?francs dollars euros
""")
_CONTENT = _any("lists headings tables examples sources links numbers")
"""Things that a user may also ask for once."""
LANGUAGE = _any("""
    english french german spanish italian portuguese dutch swedish norwegian danish finnish polish czech russian
    ukrainian greek turkish arabic hebrew hindi chinese mandarin japanese korean latin
""")
_LASTING = re.compile(
    r"\b(?:always|never|from (?:(?:now|here|today|this point) on(?:wards)?|now|today)\b(?!['’])|going forward"
    r"|in (?:the )?future|every ?time"
    rf"|each time|whenever|ever|at all times|(?:each|every|all|any)(?: of)?(?: your| the)? {_NOUN}|by default)\b"
)
CONDITION = re.compile(
    r"(?:(?:if|when|whenever|unless|every ?time|each time) (?:you\b|i (?:ask|send|write|say|want|quote|mention"
    r"|tell|give|share|paste|post|type|talk)\b|\w+ing\b)[^,]*,\s*(?:then )?)"
    r"|for (?:all )?(?!(?:me|now|once|today|the|my|this|that)\b)\w+(?: \w+)?, "
    rf"(?=(?:please )?(?:(?:always|never|only) {VERBS}\b"
    r"|(?:use|write|format|give|show|add|prefer)\b(?! (?:the|this|that|my|his|her|an?)\b)))"
)
_START = (
    r"(?:from (?:(?:now|here|today|this point) on(?:wards)?|now|today)\b(?!['’])|going forward|in (?:the )?future"
    r"|by default)"
)
_MARKER = f"(?:always|never|only|{_START})"
_WISHED = re.compile(
    r"(?:i'd|i would) (?:rather|prefer|appreciate|like|love)(?: it)?(?: if| that)? you (?!to\b)(?:could |would )?"
)
OPENER = re.compile(
    r"(?:(?:oh|ah|by the way|btw|just so you know|so you know|fyi|for your information|one (?:more|last|other) thing"
    r"|one thing|another thing|before i forget|you know what|remember(?=:)"
    r"|p\.?s|actually|well|and|und|so|also|(?:hey|hi|hello)(?: there| all| everyone)?|ok(?:ay)?|thanks)\b"
    r"[\s.,:;!)–-]+)+",
    re.IGNORECASE,
)
"""Words before a wish that say nothing."""
_REQUEST = re.compile(
    r"(?:(?:can|could|would|will) you|(?:i'd|i would) (?:like|prefer|love) you to|i (?:want|need|expect) you to"
    r"|(?:it would|it'd) be (?:great|nice|good|helpful|better) if you(?: could| would)?"
    r"|you (?:can|could|should|must|may|(?:have|need) to)|make sure (?:that you|you|to)|be sure to|remember to|try to"
    r"|feel free to|let's)\b"
)
_LEAD = re.compile(rf"(?:please|just|also|and|so|hey|hi|ok(?:ay)?|{_MARKER})\b[,:]?\s+")
_NEGATION = re.compile(r"(?:don't|do not|didn't|did not|never|stop|avoid|no need to|not)\b(?: ever)?\s+")
_ONE_OFF = re.compile(
    r"\b(?:this|that|these|those|today|tomorrow|tonight)\b|\b(?:in|to|for|on) (?:the|my|his|her|our|their|an?)\b"
    rf"|^\w+ (?:me |us )?(?:an?|the|my|his|her|our|their)\b(?! (?:{_STYLE}|{_CONTENT}|{_NOUN}|answer))"
)
"""Objects that a user points at, which make a request one for a single thing."""
_NAMING = re.compile(
    r"(?:call (?:me|us|myself)|(?:address|treat|refer to|speak to|talk to) (?:me|us|my \w+)(?: as| like)) (?!back"
    r"|on\b|at\b|in\b|when|later|tomorrow|today|tonight|if\b|after|before|again|now\b|soon|an?\b(?= (?:taxi|cab)))"
)
_HOW = re.compile(
    r"(?:address me|answer|reply|respond|speak|talk|write|explain)(?: me| to me| things| everything)?,? (?:"
    r"(?:in|with|without|like|as)(?! (?:the|my|an?|this|that|your?)\b)|like an?\b|step by step"
    r"|(?:more |less )?(?:plainly|simply|briefly|clearly|formally|informally|politely|concisely|directly|casually)\b"
    rf"|(?:\w+ )?{LANGUAGE}(?=$|,| (?:only|with me|to me|when|unless|please)))"
    r"|(?:write|phrase|word|answer) (?:all |my )?(?!(?:this|his|its|us)\b)\w+s(?: to \w+s)? (?:in|with|without)"
    r" (?!the\b|my\b)"
    r"|explain (?:\w+ )?(?:terms|words|abbreviations|acronyms)\b"
    r"|give me the (?:answer|result|short version|summary|bottom line) first\b"
    r"|(?:format|write|give|show|express) (?:me )?(?:dates?|times?|numbers|prices|amounts|units) (?:as|in|with)\b"
    rf"|(?:give|show|tell|write|express) (?:me |us )?(?!(?:this|his|its|us)\b)\w+s in {_UNIT}(?=$|,| please)"
)
REASON = re.compile(r"(?:i'm|i am|my|i have|i've)\b[^,;]*[,;] (?:so |and )?(?=please\b)")
"""The reason that a user gives before a wish: "I'm dyslexic, please …"."""
_FINE = r"(?:fine|ok(?:ay)?|welcome|allowed|good)"
_ENDS = re.compile(
    r"(?:you (?:don't (?:have|need) to|needn't|no longer have to|can stop)|i don't (?:need|want)|no(?: need)?)\b"
    r"(?=.*\b(?:any ?more|any longer)\b)"
    rf"(?=.*\b(?:{_STYLE}|{_CONTENT}|{_NOUN}|{LANGUAGE}|{_MANNER}|call me|units)\b)"
    rf"|you (?:can|may) (?:stop|go back to|switch to) (?:answering|writing|using|calling me|{LANGUAGE}|{_STYLE})\b"
    rf"|you can be {_MANNER} (?:with me )?again$|switch (?:back )?to {LANGUAGE}\b"
    rf"|(?:{_MANNER} {_NOUN}|(?:your )?(?:{_STYLE}|{_CONTENT}|{_NOUN})) (?:is|are|can be) (?:\w+ )?{_FINE}\b"
    rf"|your {_NOUN} can be {_MANNER} (?:again|now)$"
    rf"|stop (?:answering|replying|responding|writing|speaking|talking)(?: to me)? in {LANGUAGE}\b"
    rf"|(?:you can )?forget (?:about )?the (?:\w{{1,20}} ){{0,2}}(?:{_STYLE}|{LANGUAGE}|{_MANNER}|sentence)"
    r"(?: (?:thing|rule|part|bit))?(?=$|,)"
)
"""The end of an earlier wish."""
_OBJECT = r"(?:(?:me|us|any|some|so|too|many|much|only|more|fewer|the|your|of|all) )*"
_KINDS = re.compile(
    r"(?:suggest|recommend|offer|propose|add|include|use)"
    r" (?!(?:this|his|its|us|yours|ours)\b)\w+s\b(?!\s+(?:for|to) the\b)"
)
"""Kinds of things that the assistant shouldn't offer: "don't suggest restaurants"."""
_BEHAVIOUR = r"(?:apologi[sz]|flatter|lectur|guess|assum|greet|swear|sugar-?coat)(?:es?|ing)?"
_ABOUT_ANSWERS = re.compile(
    rf"your (?:{_NOUN}|tone|style|language) (?:(?:is|are) (?:\w+ )?(?:too|always|never)|should|must|need)\b"
    r"|i (?:really )?(?:(?:do not|don't) (?:want|need|like)|prefer|like|want|need|hate|dislike) "
    rf"(?:(?:.* in your|(?:your|{_MANNER}|\w+er)) {_NOUN}$|(?:any )?{_STYLE}$)"
    rf"|no (?:more )?(?:{_STYLE}|\w+ (?:phrases|words|expressions)(?=,| please|$))"
    rf"|(?:i'd|i would) (?:rather have|prefer) (?:{_STYLE}|{_CONTENT})$"
    rf"|(?:(?:your|my|all) )?{_NOUN} (?:should|must) (?:always |only )?(?:be|come|stay|have|use|contain|include)"
    r" (?!in (?:the|by)\b)"
    r"|i (?:want|prefer|like|need) (?:dates?|times|prices|numbers|temperatures|amounts|units|answers|replies|code) "
    r"(?:as|in|with|without) (?!(?:the|my|our|his|her)\b)"
    r"|(?:ask|warn|tell|check with) (?:me )?(?:the \w+ )?before you (?!\w+ (?:the|this|that|my|it)\b)"
    r"|(?:show|give|tell|explain) (?:me )?.* (?:when|whenever) (?:you\b|i (?:ask|send|write|paste|share)\b)"
    r"|i (?:really )?(?:like|love|prefer|hate|don't like) it when you\b"
)
_GERMAN = re.compile(
    r"(?:bitte )?(?:antworte|schreibe?|sprich|rede)(?: (?:bitte|mir|mit mir|immer|nur|stets|ab jetzt))* (?:auf \w+sch\b"
    r"|kurz|knapp|einfach|ausführlich)|du kannst mich (?:\w+ )?(?:duzen|siezen)"
    r"|(?:bitte )?sprich mich (?:bitte )?mit \w+ an"
    r"|(?:bitte )?(?:duze|sieze|nenne?) mich\b"
)


def is_standing_wish(text: str) -> bool:
    """Return whether a text begins with a wish about how the assistant should answer from now on.

    >>> [is_standing_wish(t) for t in ("Always answer in German.", "Please keep your answers short.", "Never mind!")]
    [True, True, False]
    >>> [is_standing_wish(t) for t in ("Don't use emojis.", "When I ask for code, use Python.", "Translate this.")]
    [True, True, False]
    """
    sentence = re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]
    plain = _strip(" ".join(sentence.casefold().replace("\u2019", "'").split()).rstrip(".!?"), OPENER)
    reason = REASON.match(plain)
    return _is_wish(plain, text) or (reason is not None and _is_wish(plain[reason.end() :], text))


def _is_wish(plain: str, text: str) -> bool:
    """Return whether a wish begins a sentence in lower case, without its end, or what follows the reason for it."""
    if _ABOUT_ANSWERS.match(_strip(plain, _LEAD)) or _GERMAN.match(plain) or _ENDS.match(_strip(plain, _LEAD)):
        return True
    if re.match(rf"{_START},? you(?:'re| are)\b", plain):
        return True
    core, has_condition, is_wished, is_reminder = plain, False, False, False
    for _ in range(6):
        before = core
        core = _strip(core, _LEAD)
        for pattern in (CONDITION, _WISHED, _REQUEST):
            rest = _strip(core, pattern)
            has_condition |= rest != core and pattern is CONDITION
            is_wished |= rest != core and pattern is _WISHED
            is_reminder |= rest != core and core.startswith(("make sure", "be sure", "remember", "try"))
            core = rest
        if core == before:
            break
    lasts = (
        has_condition or is_wished or _LASTING.search(plain) is not None or plain.startswith(("only ", "please only "))
    )
    if text.rstrip().endswith("?") and core == plain:
        return False  # "Be honest, was it good?"
    return _asks(core, lasts=lasts, is_reminder=is_reminder)


def cut_opener(wish: str) -> str:
    """Return a standing wish without what leads to it.

    >>> cut_opener("By the way, please always answer in German.")
    'Please always answer in German.'
    """
    rest = _strip(wish, OPENER)
    return rest[:1].upper() + rest[1:]


def _asks(core: str, *, lasts: bool, is_reminder: bool) -> bool:
    """Return whether the rest of a sentence, without what leads to it, asks for a way of answering."""
    rest = _strip(core, _NEGATION)
    is_denied, rest = rest != core, _strip(rest, _LEAD)
    first, _, more = rest.partition(" ")
    first = _PAST.get(first, first)
    rest = f"{first} {more}".rstrip()
    if first == "be":
        return re.match(rf"be (?:(?:more|less|very|as|so|too|that) )?{_MANNER}\b", rest) is not None
    if re.match(r"(?:call|address|treat|refer)\b", rest):
        return bool(
            _NAMING.match(rest) or _HOW.match(rest) or (lasts and re.match(r"(?:address|treat) (?:me|us) ", rest))
        )
    if re.match(r"keep\b", rest) and re.search(rf"\b(?:{_MANNER}|under \d+ words)\b", rest):
        return lasts or re.search(rf"\b(?:{_NOUN}|tone|it|things)\b", rest) is not None
    if re.match(rf"(?:keep|make) (?:all )?(?:your )?{_NOUN}\b", rest) or (is_denied and re.match(_STYLE, rest)):
        return True
    if not re.match(rf"(?:{VERBS}|{_GERUND}ing)\b", rest):
        return False
    if lasts and not re.match(r"(?:ask|call|check) (?:my|his|her|the)\b", rest):
        return True
    if _ONE_OFF.search(rest):
        return False
    nouns = f"(?:{_STYLE}|{_CONTENT})" if is_reminder or is_denied else _STYLE
    return (
        re.match(rf"\S+ {_OBJECT}{nouns}\b", rest) is not None
        or _HOW.match(rest) is not None
        or (is_denied and _KINDS.match(rest) is not None)
        or (is_denied and re.match(rf"(?:{_BEHAVIOUR}|{_GERUND}ing)\b", rest) is not None)
    )


def _strip(text: str, pattern: re.Pattern[str]) -> str:
    """Return a text without a pattern at its beginning."""
    match = pattern.match(text)
    return text if match is None else text[match.end() :].lstrip(" ,")
