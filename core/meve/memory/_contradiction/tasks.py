"""Tells that a task is done, by rules for English: "I have to renew my passport" and "I renewed my passport"."""

import re
from typing import Literal

from meve.components.lexical.analyzers import FUNCTION_WORDS, stem
from meve.memory._contradiction.claims import Claim
from meve.memory._contradiction.lexicon import MONTHS, PAST_TENSES, WEEKDAY

_DATE = rf"(?:(?:\d{{4}}-)?\d\d-\d\d|\d\d:\d\d|(?:the )?(?:next |this )?{WEEKDAY}|{'|'.join(sorted(MONTHS))})"
_WHEN = re.compile(
    rf",? (?:(?:on|by|at|before|until|till|from|in|of) (?:(?:the )?(?:morning|afternoon|evening|weekend|week) of )?"
    rf"{_DATE}(?: (?:morning|afternoon|evening|night))?|(?:this|next) {WEEKDAY}|today|tomorrow|tonight|yesterday"
    rf"|this (?:morning|afternoon|evening|week))\b(?!['’-])"
)
"""When something is done, with the space before it."""
_BEGINNING = (
    r"(?:(?:i|we) (?:still )?(?:have|need|want|must|should)(?: to)?|(?:please )?remind me to"
    r"|do not (?:let me )?forget to) "
)
_TASK = re.compile(rf"{_BEGINNING}([a-z]{{1,30}}) ([\w'’-]{{1,30}}(?: [\w'’-]{{1,30}}){{0,7}})\W{{0,3}}$")
"""A task with its verb and its object."""
_TASK_BEGINS = re.compile(_BEGINNING)
_CHORES = frozenset(("take", "give", "feed", "walk", "water", "clean", "do", "wash"))
"""Verbs of tasks that come again: "I need to take two tablets"."""
_MATTER = re.compile(r"\b(?:about|for|regarding|to|with)\b")
"""Begins what a task is about, behind its object."""
_DONE = re.compile(r"\b(?:(?:is|are) (?!called\b)|has been |have been )\w+(?:ed|d|t|n)\b")
_OF_PEOPLE = frozenset(
    ["ask", "call", "contact", "email", "meet", "message", "phone", "remind", "tell", "text", "visit"]
)
"""Verbs of what a person does to another: "Dentist called" tells of no task."""
_WORD = re.compile(r"[\w'’-]+")
_PART = re.compile(r" (an? |(?:\w+ ){1,3}of )")
"""Before one of something, or a part of it: "I read a page of Ulysses", "I painted half of the kitchen"."""
_OBJECT = r"(?:the|an?|my|our|some|his|her|their) (\w+)"
_PRESENTS = {past: present for present, past in PAST_TENSES.items()} | {
    "bought": "buy", "found": "find", "sold": "sell", "sent": "send", "did": "do", "made": "make", "got": "get",
    "told": "tell", "brought": "bring", "fetched": "fetch",
}  # fmt: skip
"""Irregular past tenses, with their verbs."""


def find_done(old: Claim, new: Claim) -> Literal["", "object", "task"]:
    """Return whether the older statement is a task, and the newer one tells that it is done, on whatever day.

    It is `task` if the newer one has all words of it: "I have to renew my passport by 4 May" and "I renewed my
    passport", or "I need to book the hotel" and "the hotel is booked". It is `object` if the newer one leaves out what
    it is about: "Remind me to email the landlord about the boiler" and "I emailed the landlord". A chore, or a task
    that names an illness, isn't over because it was done once.
    """
    if _TASK_BEGINS.match(old.plain) is None:
        return ""
    task = _TASK.match(without_days(old))
    if task is None or task[1] in _CHORES or old.illnesses or new.is_negative or new.people - old.people:
        return ""
    verb, done = stem(task[1]), without_days(new)
    thing, *about = _MATTER.split(task[2], maxsplit=1)
    things, matter = _stems(thing), _stems(" ".join(about))
    names = {*map(stem, old.names | new.names), *old.people}
    is_own = new.subject[:1] in (("i",), ("we",)) or _DONE.search(done) is not None
    begins = _stems(" ".join(_WORD.findall(done)[: len(things)]))  # "Passport renewed", but not "The gym renewed"
    is_own = is_own or (begins == things and things.isdisjoint(names) and task[1] not in _OF_PEOPLE)
    said = {*map(stem, new.words), *_stems(done)}
    ends = (each.end() for each in _WORD.finditer(done) if _present(each[0]) == verb)
    is_whole = all(task[2].startswith(part[1]) for part in (_PART.match(done, end) for end in ends) if part)
    if not (is_own and is_whole and verb in map(_present, new.words) and things and things <= said):
        return ""
    if matter <= said:
        return "task"
    others = [_stems(each) for each in _MATTER.split(re.split(r"[,.;:!?]", done, maxsplit=1)[0])[1:]]
    return "object" if all(other <= things | matter for other in others) else ""


def does_another(old: Claim, new: Claim) -> bool:
    """Return whether the older statement is a task, and the newer one tells that the same was done to another thing.

    "I have to finish the report" and "I finished the book".
    """
    if _TASK_BEGINS.match(old.plain) is None or (task := _TASK.match(without_days(old))) is None:
        return False
    things, verb = _stems(task[2]), stem(task[1])
    done = re.match(rf"(?:i|we) (?:\w+ )??(\w+) {_OBJECT}", new.plain)
    return done is not None and _present(done[1]) == verb and things.isdisjoint(_stems(new.plain))


def without_days(claim: Claim) -> str:
    """Return what a statement says, in lower case, without the days and times at which something is done."""
    return _WHEN.sub("", claim.plain)


def _present(word: str) -> str:
    """Return the stem of the verb of a past tense; that of an empty word for others."""
    return stem(_PRESENTS.get(word, word if word.endswith(("ed", "t", "n")) else ""))


def _stems(text: str) -> set[str]:
    return {stem(word) for word in _WORD.findall(text) if word not in FUNCTION_WORDS}
