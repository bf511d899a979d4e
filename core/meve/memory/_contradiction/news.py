"""Tells news that end nothing from changes, by rules for English: one day's exception, a new thing of another kind."""

import re
from itertools import pairwise, takewhile

from meve.components.lexical.analyzers import FUNCTION_WORDS, stem
from meve.memory._contradiction.claims import Claim
from meve.memory._contradiction.lexicon import (
    CALENDAR,
    CHANGED,
    COPULAS,
    DATED,
    DISLIKED,
    IRREGULAR_PASTS,
    LIKED,
    NAMING,
    PAST_TENSES,
    UNMARKED_PASTS,
    UNWELL,
    VERBS,
)

ONE_DAY = re.compile(
    r"\b(?:today|yesterday|tonight|this (?:morning|afternoon|evening)|for (?:once|change)|"
    r"last (?:night|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b"
)
_ON_DATE = re.compile(r"\bon \d{4}-\d\d-\d\d\b")
"""A day as it is stored in place of "today" and "yesterday"."""
_ON_WEEKDAY = re.compile(r"\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
_ONE_PLANNED_DAY = re.compile(
    r"\b(?:(?:on|of) \d{4}-\d\d-\d\d|(?:this|next) (?:week|weekend|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|"
    r"tomorrow|tonight)\b"
)
_PLANNING = frozenset(
    ("am", "is", "are", "will", "starts", "start", "leave", "leaves", "arrive", "arrives", "come", "comes")
)
"""Verbs of a plan, besides having one."""
_CALLS_OFF = re.compile(
    r"\b(?:cancel+(?:ed|ing)|call(?:ed|ing) off|(?:am|is|are) off|fell through|postponed|rescheduled|delayed|put off|"
    r"brought forward|not happening|changed my mind|finished|completed|over|done)\b"
)
"""Words by which a plan ends before its day, or was carried out."""
_PARTED = re.compile(
    r"\b(?:(?:broke|broken|split) up|separated|divorced|left (?:me|us)|died|dead|passed away|fell out|"
    r"(?:no longer|not) (?:together|friends))\b"
)
_OWN_NAME = re.compile(r"(?:my (?:\w+ )?name is|i am called) |i am [^\W\d]+, an? ")
_ROLE = re.compile(r"\w+ is (?:now )?my ")
_RENAMED = re.compile(r"\b(?:name|surname|named|called|renamed|call me|goe?s? by|known as)\b")
_GIVEN_AWAY = re.compile(r"\b(?:died|passed away|ran away|sold|got rid of|gave .{1,30} away)\b")
_SKILLS = frozenset(("teach", "teaches", "study", "studies", "learn", "learns", "play", "plays"))
"""Verbs of what somebody can do or does without owning the thing."""
_WELL_AGAIN = re.compile(r"\b(?:fine|well|healthy|sound|fit|awake|better|okay) again\b")
_TRIP = re.compile(r"^(?:\w+ and )?(?:i|we) (?:just )?(?:went (?:to|on)|visited|flew|spent|camped|hiked|toured)\b")
_PASTIME_ENDED = re.compile(r"\b(?:gave up|given up|stopped|quit) (?!working|doing)\w{1,40}ing\b")
_AROUND_WORK, _WAY_TO_WORK = re.compile(r"\b(?:before|after) work\b"), re.compile(r"\b(?:to|from|before|after) work\b")
_MILESTONE = re.compile(r"\b(?:got|was|been) (?:married|engaged|divorced|hired|promoted)\b|\b(?:became|turned)\b")
_WEEKDAY = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b")
_DAYS = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days? (?:to|till|until|through) \w+day|\bweekdays\b")
_OPENS = re.compile(r"\b(?:opens?|closed?|closes)\b")
_FOR_GOOD = re.compile(r"\b(?:last (?!night|\w+day)|final|finally|anymore|any more|longer|now|for good)\b")
_LOST = frozenset(
    ("lost", "stolen", "gone", "missing", "broken", "unemployed", "jobless", "homeless", "without", "out")
)
_HAD_TO = re.compile(
    r"^(?:\w+ ){1,3}had to "
    r"(?:(?:cut|end|finish|stop|start) (?:\w+ ){1,4}(?:short|early|late)|leave early|skip|miss|wait|rush)\b"
)
"""The beginning of a statement that something had to be done once: "we had to leave early"."""
_IS_AT = re.compile(r"\b(?P<thing>[\w'’-]{1,30}) (?:sits?|stands?|lies?|hangs?) (?:at|in|on|under)\b")
_IRREGULAR = IRREGULAR_PASTS | UNMARKED_PASTS
_CHANGES_THING = re.compile(
    r"\b(\w+) (?:(?:has|have|had|just|already) )?"
    r"(extended|raised|lowered|increased|reduced|shortened|doubled|halved|moved|changed|replaced|upgraded|postponed"
    r"|delayed|rescheduled|pushed|cancell?ed|finished|completed|renamed|swapped|sold|dropped) "
    r"(?:my|our|the|his|her|their|an?) (?!job|work|team|company|firm|lab\b|position)"
)
"""Words of a change of a thing, which isn't somebody's work."""
_PICTURES = frozenset(["pic", "pics", "photo", "photos", "picture", "pictures", "snap", "snaps", "image", "images"])
_INSTEAD = frozenset(("instead", "rather than"))
_NEW = frozenset(("new", "another", "different"))
_ONLY_NEW = frozenset(("new", "a new", "another", "a different"))
_MOVED = frozenset(("moved", "changed", "replaced", "upgraded"))
_WISHES = frozenset(("want", "wants", "prefer", "prefers", "would", "hope", "hopes"))
MINE = frozenset(("i", "me", "my", "we", "us", "our"))
_THEY = (("he",), ("she",), ("they",))
_LISTED = re.compile(r"\b([\w'’-]{1,40})(?: and|, some) (?:(?:1|a|an|at|bit|of|on|some|the) ){0,3}([\w'’-]{1,40})")


def shows_picture(claim: Claim) -> bool:
    """Return whether somebody shows a picture, which nothing ends: "here's a photo of our dinner"."""
    return claim.words[:1] == ("here",) and not _PICTURES.isdisjoint(claim.words)


def is_scrap(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement is a phrase that shares no word with the older one, and tells nothing itself.

    "Over my dead body" and "when pigs fly" have no verb that is known, no value, no name and no word of a change.
    """
    is_bare = not (new.cues or new.names or new.first_verb) and old.content.isdisjoint(new.content)
    is_verb = (word for word in new.words if word.endswith(("ed", "ing")) or word in _IRREGULAR or word[0].isdigit())
    return is_bare and CALENDAR.isdisjoint(new.words) and not any(is_verb)


def changes_thing_of_person(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells what somebody changed, and the older one only who that person is.

    "My advisor is Rosa Vidal" and "Rosa extended my contract".
    """
    if old.first_verb not in COPULAS or old.names.isdisjoint(new.words):
        return False
    changed = _CHANGES_THING.search(new.plain)
    is_of_person = changed is not None and changed[1] in old.names and new.cues - old.cues <= {changed[2]}
    return is_of_person and old.content & new.content <= set(map(stem, old.names))


def is_exception(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells what happened on one day, and the older one a habit or a liking.

    "I take the tram to work" and "the tram was cancelled today so I took a taxi", "I usually get up at 6" and "I got up
    at 9 on 13 March 2026", or "I can't stand coriander" and "I tried coriander yesterday".
    """
    text = " ".join(new.words)
    is_one_day = ONE_DAY.search(text) or _ON_DATE.search(text)
    if not new.is_event or old.is_event or not is_one_day or _FOR_GOOD.search(text):
        return False
    if PAST_TENSES.get(stem(old.first_verb)) in new.word_set:
        return True
    is_lasting = old.is_habit or (old.liked != 0 and old.liked * new.liked >= 0)
    return is_lasting and not new.ended and CHANGED.find_all(text) <= _INSTEAD


def happened_once(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells what happened on a date or once more, and announces no change.

    "I have three apple trees" and "I cut back the apple trees on Saturday", or "I need reading glasses" and "I found my
    glasses again".
    """
    text = " ".join(new.words)
    is_event = new.is_event or not _IRREGULAR.isdisjoint(new.words[1:3])
    is_once = "again" in new.words or _ON_DATE.search(text) or _ON_WEEKDAY.search(text)
    return is_event and bool(is_once) and not (_is_lost(old) or old.is_event or new.changed or _FOR_GOOD.search(text))


def was_cut_short(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells what somebody had to do once, and the older one what lasts.

    "We rehearse on Sundays in a basement" and "we had to cut rehearsal short because the basement flooded".
    """
    is_once = not (old.is_event or new.cues or _FOR_GOOD.search(new.plain))
    return is_once and _HAD_TO.search(new.plain) is not None


def calls_off_another(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement calls something off, and the older one tells of a lack of something else.

    "We haven't had a vacation in ages" and "Outer Banks fell through".
    """
    return old.is_negative and old.content.isdisjoint(new.content) and _CALLS_OFF.search(new.plain) is not None


def places_another_thing(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells where a thing is now, and the older one of another thing.

    "The seedlings are up in the greenhouse" and "the seeds sit in the fridge these days", or "my passport lies in the
    drawer" and "the photos lie in the drawer now".
    """
    match = _IS_AT.search(new.plain)
    if match is None or new.changed or old.people or new.people:
        return False
    if (before := _IS_AT.search(old.plain)) is not None:
        return stem(before["thing"]) != stem(match["thing"])
    are_things = bool(old.head and new.head) and old.head.isdisjoint(new.head)
    return are_things and old.content.isdisjoint(new.content)


def only_renames(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells that something was renamed, and the older one more than its name.

    "I play bass in a band called Wet Paint" and "we renamed the band".
    """
    return "renamed" in new.word_set and old.first_verb not in COPULAS


def is_trip(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells of a trip, and the older one of what somebody does or has.

    "I live in Porto with Rui" and "Rui and I went to Madeira in April".
    """
    is_lasting = old.first_verb in VERBS and old.first_verb not in COPULAS | _WISHES | {"plan", "plans"}
    return is_lasting and not (old.is_negative or new.changed) and _TRIP.search(" ".join(new.words)) is not None


def keeps_plan(old: Claim, new: Claim) -> bool:
    """Return whether the older statement is a plan for a certain day, which the newer one neither calls off nor moves.

    Such a plan ends by its day: "I'm going to Vienna to see Salma this weekend" and "Salma and I broke up".
    """
    before, after = " ".join(old.words), " ".join(new.words)
    is_own = not MINE.isdisjoint(old.subject[:1]) and len(old.subject) == 1  # "yoga is on Monday" tells of each Monday
    is_dated = _ONE_PLANNED_DAY.search(before) or ((is_own or old.introduces) and _ON_WEEKDAY.search(before))
    if not is_dated or not (old.first_verb in _PLANNING or old.introduces) or _CALLS_OFF.search(after):
        return False
    names_day = _ONE_PLANNED_DAY.search(after) or _WEEKDAY.search(after)
    shared = old.content & new.content
    if names_day:
        return not shared
    return new.ended or not shared.difference(map(stem, old.names | new.names))


def has_lost(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells that the user parted from a person, or gave away or lost a thing.

    "My girlfriend is called Salma" and "Salma and I broke up".
    """
    text, is_called = " ".join(new.words), not NAMING.isdisjoint(old.words)
    if is_called and _PARTED.search(text) and not old.names.isdisjoint(new.subject or new.words):
        return True
    return not (is_called and old.people) and _GIVEN_AWAY.search(text) is not None


def keeps_person(old: Claim, new: Claim) -> bool:
    """Return whether the older statement tells how a person is called, and the newer one not that they parted.

    "My wife is called Irina. She works at the hospital." and "Irina quit the hospital". Only
    another name ends how the user is called and what is told with it: "My name is Nina and I paint" stays after "I gave
    up the studio".
    """
    if _OWN_NAME.match(old.plain):
        text = " ".join(new.words)
        tells_more = "," in old.plain or " and " in old.plain
        return not _RENAMED.search(text) and (tells_more or bool(new.people) or _ROLE.match(text) is not None)
    if _does_together(old, new):
        return True
    if NAMING.isdisjoint(old.words):
        return False
    return bool(old.people) and not new.people and NAMING.isdisjoint(new.words) and not has_lost(old, new)


def _does_together(old: Claim, new: Claim) -> bool:
    """Return whether a person whom the older statement names by a role does something with the user.

    "My supervisor is Annika" and "Annika and I meet weekly from now on".
    """
    is_role = old.first_verb in COPULAS and not MINE.isdisjoint(old.subject[:1]) and bool(old.names)
    text = " ".join(new.words)
    together = any(f"{name} and i " in text or f"i and {name} " in text for name in old.names)
    return is_role and together and not (new.ended or _PARTED.search(text))


def only_recovers(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells that somebody is well again, and the older one of no illness or lack.

    "The cat is scared of thunder" and "the cat is fine again".
    """
    is_well = new.first_verb in ("is", "am", "feels", "feel") and _WELL_AGAIN.search(" ".join(new.words))
    return bool(is_well) and not (_is_lost(old) or UNWELL.intersection(old.words))


def keeps_skill(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement parts with a thing, and the older one tells what somebody does with such.

    "I teach piano" and "I sold the piano".
    """
    return old.first_verb in _SKILLS and _GIVEN_AWAY.search(" ".join(new.words)) is not None


def _is_lost(old: Claim) -> bool:
    """Return whether a statement tells a lack or a loss, which finding the thing again ends."""
    return old.is_negative or not _LOST.isdisjoint(old.words)


def moves_another_thing(old: Claim, new: Claim) -> bool:
    """Return whether all that announces a change is a thing that was moved, and the older statement doesn't name it.

    "I keep bees" and "I've moved the hives".
    """
    things = new.changed_things
    return bool(things) and new.cues - old.cues <= _MOVED and things.isdisjoint(map(stem, old.words))


def begins_to_do(old: Claim, new: Claim) -> bool:
    """Return whether one statement introduces a thing, and the other what somebody began to do with it.

    "We have a dog called Rufus" and "we've started taking Rufus to puppy school".
    """
    begins = any(word in ("started", "began") and after.endswith("ing") for word, after in pairwise(new.words))
    return begins and old.introduces and not new.changed and not old.topics.isdisjoint(new.topics)


def is_new_of_another_kind(old: Claim, new: Claim) -> bool:
    """Return whether all that announces a change is a thing, new or changed, which the older statement doesn't name.

    "I'm learning Spanish" and "I have a new Spanish teacher", "I keep bees" and "I've moved the hives", or "I drink my
    coffee black" and "I bought a new coffee machine".
    """
    cues = new.cues - old.cues
    known = set(map(stem, old.words))
    phrases = [_noun_phrase(new, n + 1) for n, word in enumerate(new.words) if word in _NEW]
    kinds = {word for phrase in phrases for word in phrase} | new.changed_things
    if cues <= _ONLY_NEW | _MOVED and kinds and kinds.isdisjoint(known):
        return True
    qualified = [phrase for phrase in phrases if not known.isdisjoint(phrase[:-1]) and phrase[-1] not in known]
    return bool(qualified) and cues <= _ONLY_NEW | _MOVED | {"bought"}


def _noun_phrase(claim: Claim, place: int) -> list[str]:
    """Return the stems of the words from a place to the next function word or verb, without names."""
    words = takewhile(lambda word: word not in FUNCTION_WORDS and word not in VERBS, claim.words[place:])
    return [stem(word) for word in words if word not in claim.names]


def is_milestone_of_another(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells what became of a person, and the older one what the user does with him.

    "I work with Ben" and "Ben got promoted".
    """
    named = old.names.difference(old.subject)  # "my wife Eva is a nurse" tells of Eva herself
    is_of_person = not named.isdisjoint(new.subject) and not MINE.isdisjoint(old.subject)
    return is_of_person and MINE.isdisjoint(new.words) and _MILESTONE.search(" ".join(new.words)) is not None


def speaks_of_work_otherwise(old: Claim, new: Claim) -> bool:
    """Return whether one statement tells of work, and the other of something else that only sounds like it.

    They share only the word "work", in one of them for a time or a place, or the newer one ends a pastime:
    "I swim before work" and "I work days now" or "I cycle to work now", "I work days" and "I cycle to work now", or "I
    work as a sailmaker" and "I gave up sailing".
    """
    if old.words[1:3] == ("work", "as") and old.content.isdisjoint(new.content):
        return _PASTIME_ENDED.search(" ".join(new.words)) is not None
    if old.content & new.content != {"work"} or "home" in old.word_set:
        return False
    before, after = " ".join(old.words), " ".join(new.words)
    if _AROUND_WORK.search(before):
        return not _AROUND_WORK.search(after)
    return bool(_WAY_TO_WORK.search(after)) and not _WAY_TO_WORK.search(before)


def is_still_planned(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells of a future, which ends nothing yet, or doesn't name that of the older.

    "My girlfriend lives in Bremen" and "she is moving in with me in June", but not "we're getting married in June" and
    "we are getting married in July".
    """
    if old.is_planned:
        return not (old.content & new.content).difference(map(stem, old.subject))
    return new.is_planned and not DATED.stand_in(" ".join(old.words))


def holds_in_part(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement ends only one of two things that the older one lists.

    "I run on Tuesdays and Thursdays" and "I no longer run on Tuesdays", or "I applied at Delft and one at Ghent" and
    "Delft turned me down".
    """
    named = {*new.words, *map(stem, new.words)}
    pairs = [set(pair) - FUNCTION_WORDS for pair in _LISTED.findall(old.plain)]
    partly = [pair for pair in pairs if len(pair) == 2 and len({*map(stem, pair)} - named) == 1]
    return any(new.ended or new.given_up or pair <= old.names for pair in partly)


def joins_group(old: Claim, new: Claim) -> bool:
    """Return whether the older statement names several persons, and the newer one a further one of their kind.

    "My flatmates are Aino and Matteo" and "our new flatmate is Yusuf".
    """
    is_group = old.first_verb == "are" and len(old.names) > 1
    return is_group and "new" in new.words and new.first_verb == "is" and old.names.isdisjoint(new.words)


def changes_one_day(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells of fewer weekdays than the older one, or of opening on other ones.

    "We open Tuesday to Saturday, 7:30 to 14:00" and "we now close at 15:00 on Saturdays", or "on Sundays we open at 9"
    and "we open on Tuesdays again".
    """
    before, after = (" ".join(claim.words) for claim in (old, new))
    days, known = set(_WEEKDAY.findall(after)), set(_WEEKDAY.findall(before))
    if days and known and days.isdisjoint(known) and _OPENS.search(before) and _OPENS.search(after) and not new.changed:
        return True
    return bool(days) and not _DAYS.search(after) and (bool(_DAYS.search(before)) or days < known)


def leaves_out_person(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement names another person, not who likes or wants something, or not what is liked.

    "Jonas wants a second cat" and "the cat is called Moritz now", or "I like my steak rare" and "I'm no vegan now".
    """
    if old.people and new.people and old.people.isdisjoint(new.people):
        return True
    if old.liked and (old.content - LIKED - DISLIKED).isdisjoint(new.content):
        return True
    is_others = old.first_verb in _WISHES and "me" not in old.actors
    if not (old.liked or is_others) or not old.actors or new.words[:1] in _THEY:
        return False
    named = new.content if MINE.isdisjoint(new.words) else new.content | {"me"}
    return named.isdisjoint({*map(stem, old.actors), *old.subject_people})
