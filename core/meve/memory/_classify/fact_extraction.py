"""Extracts the facts that a turn of a conversation states, by rules for English."""

import re
from collections.abc import Sequence

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import content_words, words
from meve.memory._classify.exclamations import is_exclamation
from meve.memory._classify.follow_ups import tell_apart
from meve.memory._classify.pasted_text import remove_pasted_text
from meve.memory._classify.small_talk import (
    BACK_REFERENCES,
    COMMAND_ABOUT_USER,
    EXCLAIMED,
    FIRST_PERSON,
    LAUGHTER,
    POLITE_WORDS,
    is_small_talk,
    tells_only_when,
)
from meve.memory._classify.standing_wishes import cut_opener, is_standing_wish
from meve.memory._classify.wish_endings import ends_wish
from meve.memory._contradiction.lexicon import MONTHS
from meve.memory._contradiction.statements import parse_values

_PLEASE = r"(?:(?:please|(?:can|could|would|will)\s+you)\s+)*"
_REMEMBER = re.compile(
    rf"{_PLEASE}(?:remember|note|keep\s+in\s+mind|(?:don't|do\s+not|never)\s+(?:let\s+me\s+)?forget"
    rf"|remind\s+(?:me|us)\b(?=[^.]*?\s(?:to|that)\s))\b"
    r"(?!\s+(?:again\s+)?(?:when|how|what|where|who|why|which|of|if)\b)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey)\b[\s,]*+(?!(?:i|im|we)\b)(?:there\b[\s,]*+)?(?:(?:my|dear)\b\s*+)?"
    r"\w*+(?:\s++(?!here\b)\w++)?\W*+$",
    re.IGNORECASE,
)
"""A greeting, with at most two words for who is greeted."""
_SIGN_ON = re.compile(
    r"(?:hi|hiya|hello|hey)\b(?:\s++(?:there|all|everyone|everybody|again)\b)?"
    r"[\s,.!]*+(?:[:;]-?[)DP](?!\w)[\s,.!]*+)?(?<=\s)(?:(?:so|well)\b,?\s++)?(?=(?:i|my|we|our)\b)",
    re.IGNORECASE,
)
"""A greeting before what a sentence tells of the user: "hey there :) so I'm Ann"."""
_PASTED_FROM = 25
"""The number of statements of one turn from which those that don't speak of the user are pasted, if most don't."""
_REQUEST = re.compile(
    r"(?:please\s+)?(?:(?:can|could|would|will|do)\s+you\b|(?:tell|show|give|help|remind|let|make)\s+(?:me|us)\b"
    r"|let's\b"
    r"|(?:explain|write|list|find|search|summari[sz]e|translate|describe|forget|delete|compare|suggest|recommend)\b"
    r"|i\s+want\s+you\s+to\b|i\s+wonder\b"
    r"|(?:what|how|why|who|where|when|which)(?:'s|\s+(?:is|are|was|were|do|does|did|can|could|should|would|will"
    r"|many|much"
    r"|often|long|about|to))\b)",
    re.IGNORECASE,
)
_QUESTION_MARKS = "?\uff1f\u061f\u037e"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_OPENER = re.compile(
    rf"(?:(?:(?:(?:a+w+|a+h+|oh?|wow|whoa|woah|hey|hi|hello|yeah|yes|yep|yea|yup|nope|nah|ok|okay|sure|so|and|but|oof"
    rf"|{LAUGHTER}|h+m+|m+|by\s+the\s+way|btw|actually|absolutely|totally|definitely|exactly|true|maybe|not\s+now|on\s+second\s+thoughts?|as\s+for\s+me)\b"
    r"|(?:(?:(?:more|some|the)\s+)?(?:good|great|bad|sad|big|better|best|more|other|happy|wonderful|terrible)\s+news|news"
    r"|update)(?=\s*[:!.\u2013\u2014-])"
    r"|(?:no|well|right|cool|great|good|nice|fine|alright|perfect|awesome|amazing|same|sorry|thanks|thank\s+you)(?:\s+(?:so\s+much"
    r"|a\s+lot|again|(?-i:[A-Z]\w+)))?(?=[,.!-]))"
    r"(?:\s+(?:there|all|everyone)\b(?!['’]|\s+(?:is|are|was|were)\b))?(?:,?\s+(?-i:[A-Z]\w+)(?=[,!.-]))?|(?-i:[A-Z]\w+)(?=,\s+(?:that|you|it|i"
    r"|i'm)\b))[\s,.:!\u2013\u2014-]+)+",
    re.IGNORECASE,
)
"""Words before what a sentence says."""
_ADDRESSED = re.compile(r",\s+[A-Z]\w+(?=[!,.?])")
"""A name of the one who is spoken to."""
_LAUGHS = re.compile(rf"(?:{LAUGHTER})\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:i|im|ive|my|mine|we|our|ours)\b", re.IGNORECASE)
_TOLD_BY_ASKING = re.compile(
    r"(?:(?:do|did|have)\s+(?:you|i)\s+(?:ever\s+|already\s+)?(?:know|remember|mention|mentioned|say|tell\s+you"
    r"|told\s+you)|let\s+me\s+tell\s+you(?=\s+(?:about|that)\s))\s+"
    r"(?:(?:that|about)\s+(?:i|i['’](?:m|ve)|my|we|we['’](?:re|ve)|our)\b(?![^?]*\bor\b)|(?:i|we)(?:['’]\w+)?\s)",
    re.IGNORECASE,
)
"""A question that tells: "Did I mention that I'm colour-blind?"."""
_ASIDE = re.compile(
    r"[,;\u2013\u2014-]\s*+(?:(?:because|since|as|and|but)\s+)?(?:(?:i|we|he|she|they)['’](?:m|re|s|ve)\b"
    r"|(?:i|we)\s+(?!(?:want|need|would|hope|think|guess|can|could|mean|don['’]t\s+know)\b)|my\s|our\s)",
    re.IGNORECASE,
)
"""What a request tells beside it: "Suggest a book for my nephew, he's nine."."""
_SUPPOSED = re.compile(
    r"(?:(?:let's|let\s+us)\s+(?:say|suppose|imagine|assume|pretend)|suppose|supposing|imagine|assume|assuming"
    r"|pretend|what\s+if"
    r"|unless\b[^,]*$|(?:unless|provided(?:\s+that)?|were)\s+(?:i|we|my\s+\w+)\b|had\s+(?:i|we)\b|hypothetically|say\s+(?:i|we|my)\b|if\s+only)"
    r"|.*\bif\s+(?:i|we|my\s+\w+)\s+(?:were|was|had|lived|did|could|would|ever|got|went|moved|owned|became|worked"
    r"|won|knew|found|bought|sold|lost|met|quit|\w{3,}ed)\b"
    r"|(?=.*\bif\b)(?=.*\b(?:would|could|might)\b)(?!.*\b(?:would|'d)\s+(?:like|love|prefer)\b)",
    re.IGNORECASE | re.DOTALL,
)
_WISH = re.compile(r"i\s+wish\s+(?:i|we|my)\b[^,;]*$", re.IGNORECASE)
_SUPPOSED_FURTHER = re.compile(
    r"(?:then\b|.*\b(?:would|could|might|wouldn't|couldn't)\b|.*\w'd\b)", re.IGNORECASE | re.DOTALL
)
_TOLD_FIRST = re.compile(
    r"(?:(?:since|because|now\s+that)\s+)?((?:(?:so|well|hi|hey|hello|ok|okay|yes|no)\b[\s,.!]*)*(?:i|i'm|i've|i'd|my|we|we're|we've|our)\b[^?]*?[,;-]\s*)"
    r"(?:(?:so|and|but|then)\s+)?(?:can|could|would|will|do|does|did|is|are|what|where|when|which|who|how|should"
    r"|may|any|you\s+know|you\s+see|remember|(?:is|was)n['’]t\s+(?:it|that)\s+\w+)\b"
    r"[^?]*\?\W*$",
    re.IGNORECASE,
)
"""A statement, and a question after it."""
_ORDINAL = re.compile(r"\b(?:am|dem|vom|zum|bis|ab|den|the)\s+\d{1,2}\.$|\b(?:DD|MM|TT)\.$", re.IGNORECASE)
_DAY_NUMBER = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(
    rf"(?:{'|'.join(sorted(MONTHS))}|januar|jänner|februar|märz|mai|juni|juli|oktober|dezember)\b", re.IGNORECASE
)
_GAP = re.compile(
    r"(?<=[!?][!?])\s+(?=[A-Z])|(?:(?<=\bme\.)|(?<=\bno\.)|(?<=\bart\.)|(?<=\bill\.))\s+(?=[A-Z][a-z'’]|I\b)"
)
"""The gap after "!!", or after a word that is an abbreviation elsewhere: "She sits next to me. Paul is new."."""
_OPENING_QUOTES, _CLOSING_QUOTES = '"“„«', '"”“»'


def extract_statements(text: str, wishes: Sequence[str] = ()) -> list[str]:
    """Return the statements of a user in a text.

    Questions, requests, pleasantries, reactions to the other speaker, suppositions, code, tracebacks and quotations are
    left out. Each sentence is a statement, together with following sentences that refer back to it. One that certainly
    tells more of the same person or thing is a statement of its own, with that in place of its pronoun. So is each
    standing wish, and what takes one of `wishes` back, which are those of the user.

    >>> extract_statements("Hi! I have a dog. He is called Rex. What does he eat?")
    ['I have a dog. He is called Rex.']
    >>> extract_statements("My sister Tonya lives in Akron. She's a nurse.")
    ['My sister Tonya lives in Akron.', 'My sister Tonya is a nurse.']
    >>> extract_statements("Please remember that I eat no meat.")
    ['Please remember that I eat no meat.']
    >>> extract_statements("I see. If I lived in Lyon, I would eat out.")
    []
    """
    told: list[list[str]] = []
    """Statements, each with the sentences that refer back to it."""
    continues = is_supposed = False
    heading = ""
    for line in remove_pasted_text(text).splitlines():
        heading = heading if line.strip() else ""
        for sentence in map(_told_first, _split(_BULLET.sub("", line))):
            if sentence.endswith(":"):
                heading, continues = sentence, False
                continue
            said = _skip_opening(sentence)
            goes_on = is_supposed and not _REMEMBER.match(said) and bool(_SUPPOSED_FURTHER.match(said))
            is_end = ends_wish(sentence, wishes)
            is_wish = is_end or is_standing_wish(sentence)
            is_supposed = not is_wish and (_is_supposition(said) or _is_supposition(sentence) or goes_on)
            is_further = (continues and _refers_back(sentence)) or tells_only_when(sentence)
            is_told = is_end or (is_statement(sentence) and not _is_talk(sentence, said, continues=continues))
            if is_supposed or not is_told:
                continues = continues and is_exclamation(sentence.replace("’", "'").strip(" .!"))
            elif continues and is_further and not is_wish:
                told[-1].append(sentence)
            else:
                is_item = heading and not is_wish and not FIRST_PERSON.search(sentence) and FIRST_PERSON.search(heading)
                begun = f"{heading} {sentence}" if is_item else _without_greeting(sentence)
                told.append([cut_opener(sentence) if is_wish else begun])
                continues = True
    statements = [each for sentences in told for each in tell_apart(sentences)]
    own = [each for each in statements if FIRST_PERSON.search(each)]
    return own if len(statements) >= _PASTED_FROM and 2 * len(own) < len(statements) else statements


def is_statement(sentence: str) -> bool:
    """Check that a sentence states something that may be worth remembering, or is a standing wish.

    >>> [is_statement(each) for each in ("I live in Oslo.", "Where do I live?", "Tell me a joke.", "Thanks a lot!")]
    [True, False, False, False]
    """
    if not set(content_words(sentence)) - POLITE_WORDS or _GREETING.match(sentence):
        return False
    if _REMEMBER.match(sentence) or is_standing_wish(sentence):
        return True
    if _TOLD_BY_ASKING.match(sentence):
        return True
    return not _is_question(sentence) and (_REQUEST.match(sentence) is None or _ASIDE.search(sentence) is not None)


def _refers_back(sentence: str) -> bool:
    """Return whether a sentence begins with a word such as "he", "they're" or "but"."""
    first = (words(sentence)[:1] or [""])[0]
    return first.partition("'")[0] in BACK_REFERENCES


def _is_question(sentence: str) -> bool:
    """Return whether a question mark stands after the last word."""
    return _ends_with(sentence, _QUESTION_MARKS)


def _is_quotation(sentence: str) -> bool:
    """Return whether a sentence is all in quotation marks."""
    return sentence[:1] in tuple(_OPENING_QUOTES) and _ends_with(sentence[1:], _CLOSING_QUOTES)


def _ends_with(sentence: str, signs: str) -> bool:
    """Return whether one of some signs stands after the last word."""
    for sign in reversed(sentence):
        if sign in signs or sign.isalnum() or sign == "_":
            return sign in signs
    return False


def _skip_opening(sentence: str) -> str:
    """Return a sentence without interjections before it, and without the name of the one who is spoken to."""
    said = _ADDRESSED.sub("", sentence)
    opening = _OPENER.match(said)
    return said[opening.end() :] if opening else said


def _told_first(sentence: str) -> str:
    """Return what a sentence tells of the user before it asks; the sentence if it doesn't."""
    match = _TOLD_FIRST.match(sentence)
    return f"{match[1][:1].upper()}{match[1][1:]}".rstrip(" ,;:-") + "." if match else sentence


def _laughs_at_other(sentence: str, said: str) -> bool:
    """Return whether a sentence opens with laughter and speaks of the other speaker: "Haha, you know me too well"."""
    is_of_other = said.lower().startswith(("you ", "you're ", "you’re ")) and not _SPEAKER.search(said)
    values = parse_values(said)
    return is_of_other and _LAUGHS.match(sentence) is not None and not (values.numbers or values.days or values.names)


def _is_talk(sentence: str, said: str, *, continues: bool) -> bool:
    """Return whether a sentence, or what it says behind its opening words, tells nothing lasting."""
    if _REMEMBER.match(said) or is_standing_wish(said) or _TOLD_BY_ASKING.match(said):
        return False
    if tells_only_when(said) and not FIRST_PERSON.search(said):
        return not continues
    if _laughs_at_other(sentence, said) or _is_quotation(said) or EXCLAIMED.match(sentence):
        return True
    if _REQUEST.match(said) or COMMAND_ABOUT_USER.match(said):
        aside = _ASIDE.search(said)
        return aside is None or is_small_talk(said[aside.start() + 1 :].strip(), continues=continues)
    return is_small_talk(said, continues=continues)


def _is_supposition(said: str) -> bool:
    """Return whether a sentence supposes something; "I wish I had known that my visa runs out in June" tells a day."""
    if _WISH.match(said):
        values = parse_values(said)
        return not (values.numbers or values.days or values.names)
    return _SUPPOSED.match(said) is not None


def _split(line: str) -> list[str]:
    """Return the sentences of a line; "on the 3. of May" and "DD.MM.YYYY" end none."""
    sentences: list[str] = []
    for each in (part for sentence in split_sentences(line) for part in _GAP.split(sentence)):
        before = sentences[-1][-20:] if sentences else ""
        if _ORDINAL.search(before) or (_DAY_NUMBER.search(before) and _MONTH.match(each)):
            gap = "" if f"{sentences[-1]}{each}" in line else " "
            sentences[-1] += gap + each
        else:
            sentences.append(each)
    return sentences


def _without_greeting(sentence: str) -> str:
    """Return a sentence without a greeting before what it tells of the user."""
    match = _SIGN_ON.match(sentence)
    return sentence[match.end()].upper() + sentence[match.end() + 1 :] if match else sentence
