"""Reads what takes a standing wish back: "You can drop the Portuguese", "I don't need DOIs any more"."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import stem, words
from meve.memory._classify.standing_wishes import CONDITION, OPENER, REASON, VERBS, is_standing_wish
from meve.memory._classify.wish_aspects import find_aspects, take_ways

Ending: TypeAlias = Literal["release", "instead", ""]
"""A `release` says no more than that a wish has ended; `instead` also says how to answer from now on."""
_LONGEST = 300
"""The most characters of a wish, and of what takes it back; longer texts say more than that."""
_LEAD = re.compile(r"(?:(?:please|just|also|now|you know|from now on|bitte)\b[ ,:]*)+")
_QUOTED = re.compile(r"(?:(?:i|he|she|they|we|my \w+) )?(?:said|says|told|shouted)\b")
"""Words that follow a quotation: what it says isn't said to the assistant."""
_MAY = (
    r"(?:you (?:can|could|may|should|might)|(?:can|could|would|will) you|feel free to|let's"
    r"|it(?:'s| is) (?:fine|ok(?:ay)?|all right) (?:to|if you)|du (?:kannst|darfst))(?: (?:now|just|please|also|again"
    r"|wieder|ruhig|jetzt))*"
)
_STOP = (
    r"(?:stop|quit|drop|skip|cut|ditch|scrap|lay off|leave off|knock off|give up|do without|get rid of|forget)"
    r"(?: (?:with|on|about|out))*"
)
_RELEASE = re.compile(
    rf"(?:{_MAY} {_STOP}|(?:there(?:'s| is) )?no (?:more |longer any )?need (?:for|to)"
    r"|you (?:(?:(?:don't|do not)(?: really)?|no longer) (?:have|need) to|needn't)"
    r"|i (?:(?:don't|do not) (?:need|want|expect)|no longer (?:need|want)) you to|forget(?: about)?"
    r"|du (?:brauchst|musst) (?:mir )?nicht (?:mehr|länger)) "
)
_UNNEEDED = re.compile(r"i (?:(?:(?:don't|do not)(?: really)?|no longer) (?:need|want|require)) ")
"""The beginning of a sentence about a wish or about any other thing: "I don't need the car any more"."""
_FORBID = re.compile(rf"(?:{_STOP}|no more|(?:(?:that's|that is) )?enough(?: (?:with|of))?) ")
_ALLOW = re.compile(rf"(?:(?:{_MAY} )?(?:go|switch|come) back to|{_MAY}|i don't mind|i'm (?:fine|ok(?:ay)?) with) ")
_FINE = re.compile(
    r" (?:(?:is|are|ist|sind|sei) (?:\w+ )?(?:fine|ok(?:ay)?|welcome|allowed|good|all right|in ordnung)"
    r"|(?:(?:don't|doesn't) bother|no longer bothers?) me)\b"
)
_UNNEEDED_NOW = re.compile(
    r" (?:(?:is|are) (?:no longer|not)|isn't|aren't|ist nicht mehr|sind nicht mehr)"
    r" (?:needed|necessary|required|wanted|nötig)\b"
)
_WHY = re.compile(
    r"(?:[,;]| [\u2013\u2014-])(?= (?:i|i'm|i've|i'd|i'll|my|we|we're|our|it|it's|they|they're|he|she|that|so i)\b)"
    r"| because "
)
_ONCE = re.compile(r"\b(?:an?|this|that|it|one|once|ein\w{0,2})\b")
_LASTING = re.compile(r"\b(?:again|from now on|anymore|always|wieder)\b")
_TAIL = re.compile(r"(?: (?:again|now|too|also|any ?more|with me|for me|by me|wieder|jetzt|from now on|for now))*")
_CLAUSE = re.compile(r"[,;:.!?\u2013\u2014]| (?:because|but|since|as i|weil) ")
_JOINED = re.compile(
    r"(?:,? (?:and|but|or) |[,;] )(?:and |but |also )?"
    rf"(?=(?:(?:please|also|always|never|don't|do not) ){{0,3}}{VERBS}\b)"
)
_NEGATION = re.compile(
    r"\b(?:never|not|don't|no|without|avoid(?:ing)?|skip(?:ping)?|omit(?:ting)?|leav(?:e|ing) (?:out|off)"
    r"|instead of|rather than|stop|nie|nicht|kein\w*|ohne)\b"
)
_OF_WHAT = re.compile(r" (?:of|for|in|with|without|when\w*|if|about|from|at|to|as|on|every|after|before) ")
_GENERIC = frozenset(
    words("""
    a about again all always an and answer answering answers any anymore are as at be bother business do each every
    everything explanation explanations for from get give gives giving habit i in is it just keep keeping language make
    making me messages more much now of on out part please put putting reply replies replying respond response responses
    rule say saying sentence show so speak stuff style talk talking tell telling term terms that the these thing things
    this those to too use using way with word words write writing you your yours
    antworte antworten auf bitte das die der du immer jetzt mich mir mit schreib schreibe schreiben sprich sprechen
    wieder zu
""")
)
"""Words that tell of no way of answering."""


def read_ending(text: str, wish: str) -> Ending:
    """Return whether a text takes a standing wish back, and whether it says how to answer instead; empty if not.

    It does if it is said to the assistant, and what it names is all of what the wish asks for, or excludes it.

    >>> read_ending("I don't need DOIs any more.", "Always give me the DOI of a paper.")
    'release'
    >>> read_ending("You can write long answers now.", "Keep your answers short.")
    'instead'
    >>> read_ending("I don't need the car any more.", "Always give me the DOI of a paper.")
    ''
    """
    if len(wish) > _LONGEST or not (frame := _read_frame(text)):
        return ""
    how, named, ending, more = frame
    says_more = bool(take_ways(more)[0]) or any(map(is_standing_wish, re.split(r" and |[,;:.!?] ", more)))
    release: Ending = "instead" if says_more else "release"
    clauses = [_Clause.of(each) for each in _split(wish)]
    if how == "allow":
        endings = {each.allow(named) for each in clauses}
        return "" if "" in endings else "instead" if "instead" in endings else release
    is_taken = bool(clauses) and all(each.take_back(named, is_object=how == "object") for each in clauses)
    return "" if not is_taken else release if ending == "release" else ending


def ends_allowance(wish: str, allowance: str) -> bool:
    """Return whether a wish asks for what excludes all that an earlier text allowed.

    >>> ends_allowance("Always answer in French.", "You can answer in English again.")
    True
    """
    frame = _read_frame(allowance)
    allowed, others = _take_apart("" if frame is None or frame[0] != "allow" else frame[1])
    if others or not allowed:
        return False
    asked = frozenset[tuple[int, str]]().union(*(take_ways(_Clause.of(each).asked)[0] for each in _split(wish)))
    numbers = {number for number, _ in asked}
    return asked.isdisjoint(allowed) and all(number in numbers for number, _ in allowed)


def may_end_wish(text: str) -> bool:
    """Return whether a sentence of a text is worded like what takes a wish back."""
    return any(map(_read_frame, split_sentences(text)))


def ends_wish(text: str, wishes: Iterable[str]) -> bool:
    """Return whether a text takes one of some standing wishes back."""
    return any(read_ending(text, wish) for wish in wishes)


_How: TypeAlias = Literal["take", "object", "allow"]
_BEGINNINGS: tuple[tuple[re.Pattern[str], _How, Ending], ...] = (
    (_RELEASE, "take", "release"),
    (_UNNEEDED, "object", "release"),
    (_FORBID, "take", "instead"),
    (_ALLOW, "allow", ""),
)


def _read_frame(text: str) -> tuple[_How, str, Ending, str] | None:
    """Return how a text may take something back, what it names, what it is then, and what follows.

    None if it says something else.
    """
    if len(text) > _LONGEST:
        return None
    plain = _lower(text)
    for pattern in (OPENER, _LEAD):
        plain = plain[lead.end() :] if (lead := pattern.match(plain)) else plain
    first = _CLAUSE.split(plain, maxsplit=1)[0]
    said, more = first.strip().replace("any longer", "anymore"), plain[len(first) :].lstrip(" ,;:.!?\u2013\u2014")
    if _QUOTED.match(more):
        return None
    if (end := _UNNEEDED_NOW.search(said)) and _TAIL.fullmatch(said, end.end()):
        return "take", said[: end.start()], "release", more
    if (end := _FINE.search(said)) and _TAIL.fullmatch(said, end.end()):
        return "allow", said[: end.start()], "", more
    for pattern, how, ending in _BEGINNINGS:
        if begin := pattern.match(said):
            is_request = how == "allow" and (text.rstrip().endswith("?") or _ONCE.search(said))
            if is_request and not _LASTING.search(said):
                return None  # "You can make it longer", "Can you give me longer answers?"
            return how, said[begin.end() :], ending, more
    return None


class _Clause(NamedTuple):
    """One clause of a standing wish, in lower case: what it asks for, and what it excludes."""

    asked: str
    excluded: str

    @classmethod
    def of(cls, text: str) -> "_Clause":
        """Return a clause of a wish in its two parts."""
        before, *after = _NEGATION.split(_WHY.split(text, maxsplit=1)[0], maxsplit=1)
        return cls(before.strip(), _CLAUSE.split(after[0], maxsplit=1)[0] if after else "")

    def take_back(self, named: str, *, is_object: bool) -> bool:
        """Return whether what is no longer wished names all that this asks for; an object must be what it asks for."""
        target = self.excluded if _NEGATION.search(named) else self.asked
        (ways, words_left), (wished, rest) = _take_apart(named), _take_apart(target)
        if not (ways or words_left) or ways != wished or not words_left <= rest or not self._covers(named, target):
            return False
        if not is_object or any(number >= 0 for number, _ in ways):
            return True
        object_ = _take_apart(_OF_WHAT.split(f"{target} ", maxsplit=1)[0])[1]
        return not ways and bool(words_left) and words_left <= object_

    def allow(self, named: str) -> Ending:
        """Return what allowing something says: `release` if this excludes it, `instead` if it asks otherwise."""
        if not self._covers(named, self.asked):
            return ""
        (ways, words_left), (asked, rest) = _take_apart(named), _take_apart(self.asked)
        excluded, never = _take_apart(self.excluded)
        if (ways or words_left) and ways <= excluded and words_left <= never | rest:
            return "" if not ways and not words_left & never else "release"
        numbers = {number for number, _ in asked}
        is_other = bool(ways) and ways.isdisjoint(asked) and numbers == {number for number, _ in ways}
        return "instead" if is_other and words_left <= rest | never else ""

    @staticmethod
    def _covers(named: str, wished: str) -> bool:
        """Return whether all aspects of answers that a wish names are named."""
        return find_aspects(wished) <= find_aspects(named)


def _take_apart(text: str) -> tuple[frozenset[tuple[int, str]], frozenset[str]]:
    """Return the ways of answering that a text names, and the stems of its other words but general ones."""
    ways, rest = take_ways(text)
    return ways, frozenset(stem(word) for word in words(_NEGATION.sub(" ", rest)) if word not in _GENERIC)


def _split(wish: str) -> list[str]:
    """Return the clauses of a wish in lower case, without reasons, conditions and what leads to it."""
    clauses = []
    for sentence in map(_lower, split_sentences(wish)):
        for pattern in (OPENER, REASON, _LEAD, CONDITION, _LEAD):
            if match := pattern.match(sentence):
                sentence = sentence[match.end() :].lstrip(" ,")
        clauses += [each.strip() for each in _JOINED.split(sentence)]
    return clauses


def _lower(text: str) -> str:
    """Return a text in lower case, with plain apostrophes and single spaces."""
    return " ".join(text.casefold().replace("\u2019", "'").split())
