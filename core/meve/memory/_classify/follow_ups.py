"""Names whom or what a sentence tells more of, in place of its pronoun, by rules for English.

"My sister Tonya lives in Akron. She's a nurse." are two facts, of which one may end without the other. They are told
apart only where the first sentence has a known form, in which nobody and nothing else can be meant.
"""

import re
from typing import NamedTuple

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.comments import is_comment
from meve.memory._contradiction.lexicon import CALENDAR, KIN, VERBS

_WORDS_FOR_WOMEN = """
mother daughter sister wife girlfriend grandmother aunt niece stepdaughter granddaughter landlady
"""
_WORDS_FOR_MEN = """
father son brother husband boyfriend grandfather uncle nephew stepson grandson landlord
"""
_FEMALE, _MALE = frozenset(_WORDS_FOR_WOMEN.split()), frozenset(_WORDS_FOR_MEN.split())
_NOT_MEANT = {"he": _FEMALE, "she": _MALE}
"""Pronouns of one person, and whom they don't mean."""
_OF = {"his": "he", "her": "she"}
_WORDS_FOR_OTHERS = """
assistant babysitter baby boss boy cat child cleaner coach dentist doctor dog girl gp granddaughter grandson hamster
horse intern kid kitten landlady landlord man manager nanny neighbour partner pony professor puppy rabbit supervisor
teacher therapist trainer tutor vet woman
"""
_OTHERS = frozenset(_WORDS_FOR_OTHERS.split())
"""Persons and pets, besides relatives."""
_OWNERS = frozenset(("My", "Our"))
_MOST_NOUNS = 5
_FURTHER = re.compile(r"(he|she|it|his|her)((?:['’](?:s|ll))?)\s+(?!and\b|or\b)", re.IGNORECASE)
_HAS = re.compile(
    r"(?:always|never|just|already|also|since|only|recently|finally|been|got|had|become|done|gone|taken|\w+(?:ed|en|wn))\b"
)
"""Words before which "'s" may be "has": "She's got", "She's never liked dogs"."""
_OF_THING = re.compile(
    r"it(?:['’]s|\s+is)\s+(?:due|from|in|at|insured|registered)\b|it\s+(?:belongs|weighs|measures|holds|seats)\b"
    r"|it\s+(?:has|needs)\s+(?:an?|no|new|\d)",
    re.IGNORECASE,
)
"""Sentences about a thing. "It cost me 200 euros" may be about what happened."""
_REFERS = re.compile(
    r"\b(?:it|that|this|these|those|there|then|so|too|either|neither|same|others?|another|instead|though|they|them|theirs?"
    r"|him|hers?(?!\s+\w)|ones?(?=\s+(?:of|that|who|which)\b|\W*$))\b"
    r"|\b(?:before|after|later|earlier|stop|start|continue|quit|not)\W*$"
    r"|\bthe\s+(?:place|job|thing|rest|company|town|city|house|team|next|whole|first|last|day|week|month|year)\b"
    r"|\b(?:is|was|has|had|does|did|can|could|(?-i:may)|might|must|will|would|should)(?:n['’]t)?\W*$|^has\s+since\b"
    r"|^(?:does|did|can|could|will|would|stopped|started|began|quit|finished|opened|closed|learn(?:ed|t)|failed)(?:n['’]t)?"
    r"\b\W*(?:in|on|at|since|last|when|because|yesterday|again|\d|$)"
    r"|^(?:(?:his|her|\w+\s+(?:his|her))\s+)?(?:first|second|next|last|other|best|worst)\b"
    r"|^(?!(?:be|is|was|turn(?:s|ed)?)\b)\w+\s+\d+\W*$",
    re.IGNORECASE,
)
"""Words that need more of the sentence before than its subject: "He started there in May", "She stopped in May"."""
_OTHER_GENDER = {"he": re.compile(r"\b(?:she|hers?)\b"), "she": re.compile(r"\b(?:he|his)\b")}
_DAY = "|".join(sorted(day.title() for day in CALENDAR))
_ONCE = re.compile(
    r"\b(?:if|when|while|unless|until|till|today|tonight|tomorrow|yesterday|next (?:week|month|year)|last|this|ago"
    rf"|(?:on|in|since) (?:{_DAY}|\d{{4}}))\b"
)
"""Words of a time or a condition that may hold for the further sentence, too."""
_NAME = r"[A-Z][\w-]*(?:\s+[A-Z][\w-]*)?"
_AT_PLACE = (
    rf"(?:in|at|from)\s+(?:{_NAME}|year\s+\d+|school|college|university|home"
    rf"|(?:an?|the)\s+(?!(?:{'|'.join(sorted(_OTHERS))}|relationship|affair|fight|lawsuit|marriage|wedding|party"
    r"|funeral)\b)(?:[a-z-]+\s+)?[a-z-]+)"
    rf"(?:\s+in\s+{_NAME})?"
)
_STAYS = "is|lives|lived|works|worked|studies|studied|sleeps|stays|cooks|volunteers|teaches|plays|sings"
_FORM = re.compile(
    rf"(?:is|was)\s+an?(?:\s+(?!(?:of|for|to|from|with|by|like|than|and|or|in|at|on)\b)[\w-]+){{1,3}}(?:\s+{_AT_PLACE})?"
    rf"|(?:{_STAYS})\s+(?:(?:based|born|stabled|registered)\s+)?{_AT_PLACE}"
    rf"|(?:drives|rides)\s+an?\s+{_NAME}"
    r"|(?:runs|has|owns|drives|rides)\s+an?\s+(?:bakery|bar|bike|boat|bus|business|café|car|company|farm|firm|flat|garden"
    rf"|hotel|house|motorbike|restaurant|salon|shop|taxi|truck|van)(?:\s+(?:in|near)\s+{_NAME})?"
)
"""The verb, and what else a sentence says, if it certainly names nobody else."""
_NOBODY = re.compile(
    r"\b(?:on\s+\w+days|\w+\s+(?:times\s+)?an?\s+(?:day|week|month|year)|next\s+to\s+(?:me|us)|with\s+(?:me|us)"
    r"|to\s+(?:kindergarten|nursery|school|college|church|work)|from\s+home)\b"
)
_WORDS_BEFORE_OTHERS = """
a an the my our your his her its their this that these those some any no each every all both another other such several
many few two three he she it they him them who whom someone somebody everyone everybody anyone and or with for of to
from by like than about against on at in after under near behind beside engaged married dating called met told asked
saw knows adores admires follows
"""
_BEFORE_OTHERS = frozenset(_WORDS_BEFORE_OTHERS.split())
"""Words that may stand for or before another person."""
_THING = re.compile(
    r"(?:is|was)\s+an?(?:\s+(?!(?:of|for|to|from|with|by|in|at)\b)[\w-]+){1,3}|has\s+\d+ \w+(?:\s+of\s+\w+)?"
)
_GIVEN_NAME = re.compile(
    r"(?:is|was)\s+(?:now\s+|still\s+)?(?:(?:called|named)\s+(?=[A-Z])|(?=(?:Mr|Mrs|Ms|Dr|Prof)\b))"
    r"([A-Z][\w-]*(?:\.?\s+[A-Z][\w-]*){0,2})"
)
"""A name that a sentence gives, and no nation or faith: "My boss is German."."""


class _Subject(NamedTuple):
    """Whom or what a sentence is about."""

    text: str
    head: str
    """A relation such as `sister`, another person, or a thing."""
    is_person: bool
    told: str
    """The verb and what follows it; empty after a name that it gives."""


def tell_apart(sentences: list[str]) -> list[str]:
    """Return a sentence and those that refer back to it as statements: one, unless each certainly has the same subject.

    >>> tell_apart(["My sister Tonya lives in Akron.", "She's a nurse."])
    ['My sister Tonya lives in Akron.', 'My sister Tonya is a nurse.']
    >>> tell_apart(["My sister lives with our mother.", "She's a nurse."])
    ["My sister lives with our mother. She's a nurse."]
    """
    follows = [_FURTHER.match(each) for each in sentences[1:]]
    pronouns = {_OF.get(each[1].lower(), each[1].lower()) if each else "" for each in follows}
    told = sentences[:1]
    for match in follows:
        named = _name_referent(told[-1], match, *pronouns) if match and len(pronouns) == 1 else ""
        if not named:
            return [" ".join(sentences)]
        told.append(named)
    return told


def _name_referent(first: str, follows: re.Match[str], pronoun: str) -> str:
    """Return a sentence with the subject of the first one in place of its pronoun; empty if that isn't certain."""
    subject, ending, said = _read_subject(first), follows[2][1:], follows.string[follows.end() :]
    if subject is None or is_comment(follows.string) or _REFERS.search(said):
        return ""
    if pronoun == "it":
        is_meant = not subject.is_person and bool(_THING.fullmatch(subject.told) and _OF_THING.match(follows.string))
    else:
        is_meant = _is_person_meant(subject, pronoun) and not _OTHER_GENDER[pronoun].search(said)
    if not is_meant:
        return ""
    if follows[1].lower() in _OF:
        owned = said.split(maxsplit=1)[0]
        return f"{subject.text}'s {said}" if stem(owned) in KIN or owned in ("name", "birthday") else ""
    if ending == "s" and _HAS.match(said):
        return f"{subject.text}'s {said}"
    return " ".join(filter(None, (subject.text, {"s": "is", "ll": "will"}.get(ending, ""), said)))


def _read_subject(sentence: str) -> _Subject | None:
    """Return the subject of a sentence that begins with the user's person or thing, before the first verb."""
    words = sentence.rstrip(".!").split()
    if words[:1] == [] or words[0] not in _OWNERS:
        return None
    place = next((n for n in range(2, min(len(words), _MOST_NOUNS + 3)) if _is_verb(words[n], words[n - 1])), 0)
    nouns = words[1:place]
    common = [word for word in nouns if word[0].islower()]
    if not common or not all(word.isalpha() or "-" in word for word in nouns) or {"and", "or"} & set(nouns):
        return None
    head = KIN.get(stem(common[-1]), common[-1])
    if common[-1].endswith("s") and common[-1] != "boss":
        return None
    is_person, told = head in KIN.values() or head in _OTHERS, " ".join(words[place:])
    given = _GIVEN_NAME.fullmatch(told) if is_person and common == nouns else None
    if given:
        return _Subject(given[1], head, True, "")
    return _Subject(" ".join(words[:place]), head, is_person or common != nouns, told)


def _is_verb(word: str, before: str) -> bool:
    is_after_person = before[0].isupper() or stem(before) in KIN or before in _OTHERS
    return word in VERBS or (is_after_person and word.islower() and word.endswith(("s", "ed")))


def _is_person_meant(subject: _Subject, pronoun: str) -> bool:
    """Return whether "he" or "she" can mean the subject, and nobody else that the sentence may name."""
    if not subject.is_person or subject.head in _NOT_MEANT[pronoun] or _ONCE.search(subject.told):
        return False
    if _FORM.fullmatch(subject.told):
        return True
    words = re.split(r"['’\s]+", _NOBODY.sub("", subject.told))
    return not any(
        word in _BEFORE_OTHERS or word in _OTHERS or stem(word) in KIN or word[:1].isupper() for word in words
    )
