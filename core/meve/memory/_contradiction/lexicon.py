"""Lists of English words that tell whom a statement is about, which attribute, and whether it announces a change."""

import re

from meve.components.lexical.analyzers import stem


def _groups(text: str) -> dict[str, str]:
    """Return the stem of each word with the first word of its line."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {stem(word): words[0] for words in lines for word in words}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, text.split()))


KIN = _groups("""
mother mum mom mamma mama mummy
father dad papa daddy
son
daughter
brother
sister
husband
wife
girlfriend
boyfriend
fiancé fiance fiancée
grandmother grandma gran granny oma nana
grandfather grandpa grandad granddad opa
aunt auntie
uncle
cousin
niece
nephew
twin twins
flatmate roommate housemate
neighbour neighbor neighbours
friend mate
colleague coworker
stepson
stepdaughter
""")
"""For the stem of a word for a person close to the user: one word for all its synonyms."""

_ATTRIBUTES = """
residence: live lives lived address reside settled based moored | home house flat
    apartment bungalow cottage dorm halls hotel
job: work works job jobs employed freelance freelancing hired position employer unemployed career | office started
shift: shift shifts nights
manager: boss manager supervisor lead led leads leader
doctor: gp doctor surgery physician
dentist: dentist
relationship: dating girlfriend boyfriend fiancé single married divorced engaged remarried widow widower
waking: alarm wake wakes
name: name named called rename renamed rebranded
contact: email phone mobile
transport: drive drives commute commuting | car bike bus tram train
diet: vegetarian vegan pescatarian diet | meat
smoking: smoke smokes smoker smoking | cigarettes cigarette vape
drinking: drink drinks alcohol sober teetotal | beer wine
weight: weigh weighs weight
height: tall height
deadline: due deadline
goal: goal target budget limit
pregnancy: pregnant expecting | baby
pet: pet pets | dog cat kitten puppy hamster
internet: internet wifi broadband starlink
licence: licence license permit
study: study studies studying student degree | graduated
"""
ATTRIBUTES: dict[str, str] = {}
"""For a word that tells of an attribute of a person or thing: the attribute."""
HINTS: dict[str, str] = {}
"""For a word that tells of an attribute only as a subject, or beside a word of change: the attribute."""
for _line in re.sub(r"\n +", " ", _ATTRIBUTES).strip().splitlines():
    _name, _, _listed = _line.partition(":")
    _plain, _, _hints = _listed.partition("|")
    ATTRIBUTES.update(dict.fromkeys(_plain.split(), _name))
    HINTS.update(dict.fromkeys(_hints.split(), _name))
SINGLE_VALUED = _words(
    "residence job shift manager doctor dentist relationship waking name smoking drinking weight height deadline goal "
    "study diet licence pregnancy favourite place answers"
)
"""Attributes that mostly have one value at a time."""
OF_THINGS = _words("name contact place deadline goal height weight favourite")
"""Attributes that things have, too, so that both statements must name the same one."""
PHRASES = {
    "manager": re.compile(r"\breports? to\b", re.I),
    "residence": re.compile(
        r"\b(?:i|we|he|she|they) rents?\b|\b(?:living|staying) (?:in|at|on|with|out)\b|"
        r"\bmov(?:ed?|ing)\b(?: (?:to|out|in|"
        r"into|back|away|house|again)\b|\W*$|[,.;!])",
        re.I,
    ),
    "waking": re.compile(r"\b(?:get|gets|got|wake|wakes|woke) up\b", re.I),
    "answers": re.compile(r"\b(?i:answer|repl(?:y|ies)|respond|write|talk|speak)\b.{0,20}\bin [A-Z]"),
    "favourite": re.compile(r"\bfavou?rite\b", re.I),
}
"""Phrases that tell of an attribute."""
INDEFINITE = re.compile(r"\b(?:have|has|had|got|there is) an? ", re.I)
"""Words that introduce a thing that no other statement has named."""
PLACE = re.compile(
    r"\b(?:is|are|kept|hangs?|stored|go(?:es)?|lives?) (?:in|on|at|next to|under|behind|above|inside)\b|"
    r"\b(?:moved|transferred|relocated|migrated)\b", re.I
)  # fmt: skip
"""Words that tell where a thing is."""
SUCCEEDED = re.compile(r"\b(?:taken over|took over|(?:is|was|been|got) replaced|succeed(?:s|ed)?)\b", re.I)
"""Words that say that one person or thing took the place of another."""
ACTIVITIES = _words("""
sleep work weigh run earn pay read drink eat study drive cycle walk smoke train practise
""")
"""Verbs with a quantity that tells of a person."""
HEALTH = _words("""
allergic allergy allergies intolerant intolerance anaphylactic diabetic diabetes epileptic epilepsy coeliac celiac
asthma insulin pacemaker medication
""")
"""Words of facts that must not be lost: only a statement with one of the same words replaces them."""

LIKED = _stems("love loves like likes adore adores enjoy enjoys fan fond convert")
DISLIKED = _stems("hate hates dislike dislikes loathe loathes detest despise")
WEARY = re.compile(
    r"\b(?:can|could) not (?:stand|bear)\b|\b(?:am|is|are) over\b|"
    r"\b(?:gone off|bored (?:of|with)|tired of|sick of|fed up)\b",
    re.I,
)
"""Words of disliking, some of which are negations."""

_ENDING = r"""
no longer|any ?more|quit|stopped|stop(?:s)? (?:\w+ing)|g[ai]ven? up|gave \w+(?: \w+)? (?:up|away)|dropped|
cancel+ed|sold|scrapped|shelved|abandoned|retired|died|passed away|broke up|split up|divorced|turned \w+ down|
got rid of|thr[eo]wn?|ripped out|called off|fell through|moved out|(?:is|are|am) over|no more|deleted|done with|put off|
gone off|outgrown|outgrew|(?:i|he|she|we|they|has|have) left|ended|resigned|fired|laid off|finished|completed|graduated
"""
_TRANSITION = r"""
moved|switch(?:ed)?|changed|swapped|traded|replaced|transferred|relocated|migrated|renamed|rebranded|remarried|
promoted|pushed|postponed|brought forward|rescheduled|shifted|upgraded|taken over|took over|became|(?:come|grown) to|
(?:made|sent) me|doubled|halved|raised|lowered|increased|reduced|extension|extended|
(?:down|up) to(?= \d)|(?:is|are|am) back|
been back|got (?:married|engaged|divorced|hired|promoted)|(?:has|have) (?:another|a new|a different)|someone else|
total convert|decided|passed|had (?:the|a|his|her) baby|hired
"""
_REVISION = r"""
instead|rather than|actually|after all|from now on|going forward|correction|i was wrong|rather|turns out|
used to|(?:haven't|hasn't|have not|has not|don't|doesn't|not) .*\bsince
"""
ENDED = re.compile(rf"\b(?:{_ENDING.replace(chr(10), '')})(?!\w)", re.I)
"""Words that announce that something ended."""
REVISED = re.compile(rf"\b(?:{_REVISION.replace(chr(10), '')})(?!\w)", re.I)
"""Words that announce that something holds instead of what was told."""
CHANGED = re.compile(rf"\b(?:{''.join(f'{_ENDING}|{_TRANSITION}|{_REVISION}'.split(chr(10)))})(?!\w)", re.I)
"""Words that announce that something ended, changed or was wrong."""
CURRENT = re.compile(
    r"\b(?:now|nowadays|these days|currently|lately|at the moment|since|new|by now|today|by then|meanwhile|the latest|"
    r"recently|finally|again|this morning|this week)\b", re.I
)  # fmt: skip
"""Words that say that something holds now, perhaps unlike before."""
ACQUIRED = re.compile(r"\b(?:bought|got|started|joined)\b", re.I)
"""Words that announce something new."""
RESET = re.compile(r"\b(?:i|we|they|he|she)(?: have| has)? (?:changed|reset|renamed|updated) (.*?) to\b", re.I)
"""Words that give what they name another value."""
MEASURES = _words(
    "is are be open opens close closes leave leaves depart departs start starts begin begins end ends arrive "
    "arrives cost costs last lasts weigh weighs need needs have has"
)
"""Verbs of which a thing has one value: the shop opens at 9."""
EXCLUSIVE = _words("residence manager doctor dentist relationship name answers favourite")
"""Attributes of which a person has one name at a time."""
MEASURED = _words("deadline goal weight height")
"""Attributes that are a number or a day."""
UNIQUE_KIN = _words("mother father husband wife girlfriend boyfriend fiancé")
"""Persons of whom the user has one at a time."""
ADDED = re.compile(
    r"\b(?:too|also|as well|another one|my other|other job|besides|additionally|in addition|on top of that|second|"
    r"keeps?|still|sometimes|now and then|occasionally|both)\b", re.I
)  # fmt: skip
"""Words that add to what holds already."""
PASSING = re.compile(
    r"\b(?:tomorrow|tonight|next (?:week|month|weekend|year)|this (?:summer|winter|spring|autumn|fall|weekend|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|on holiday|just (?:for|this) |for (?:once|a few|the holidays)|"
    r"planning to|going to|(?:i'll|we'll))\b", re.I
)  # fmt: skip
"""Words of a plan or an exception, which leave a habit as it is."""
PAST = re.compile(
    r"^(?:\W*)(?:before|back (?:in|then)|when i was|as a (?:child|kid|teenager)|years ago|in my (?:teens|twenties|"
    r"thirties|forties|youth|childhood))\b|\b(?:used to|formerly|in the past|back in|in my (?:teens|twenties|thirties|"
    r"forties|youth|childhood)|my first|my old|my former|my ex)\b", re.I
)  # fmt: skip
"""Words that say that a statement tells of the past."""
PAST_VERBS = _words("""
was were had did ran went got took made came saw met gave bought sold won lost broke began flew drove wrote
""")
NO_EVENTS = _words("""
bed red need needs indeed shed feed seed speed weed based called named located married allergic retired interested
used supposed allowed closed led opened born tired kept held allied advanced hundred sacred naked wicked required
limited painted reserved parked stored divorced engaged employed owned scheduled planned signed registered
""")


def _pairs(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(line.split()) for line in text.strip().splitlines())


CONTRASTS = _pairs("""
left right
front rear back
upper lower
inner outer
top bottom
east west north south
older younger eldest youngest oldest
first second third fourth last
start end
private personal work home
spring summer autumn winter
import export
more less
upload download
outbound return
driver passenger
to from
into from
with without
min max minimum maximum
""")
"""Words that tell two things of a kind or two directions apart."""
TIMES_OF_DAY = _pairs("""
morning noon afternoon evening night
breakfast lunch dinner
before after
""")
"""Words that tell two times apart, unless a statement says that the time changed."""
QUALIFIERS = _words("ex other another middle maiden")
"""Words that make a thing another one, if only one statement has them."""

VERBS = _words("""
answer answers reply respond am is are was were be been being has have had do does did will would can could shall
should may might must need needs want wants like likes love loves hate hates prefer prefers live lives work works go
goes get gets take takes drive drives play plays study studies speak speaks eat eats drink drinks smoke smokes weigh
weighs run runs read reads use uses open opens close closes start starts leave leaves cost costs keep keeps stay stays
own owns teach teaches rent rents rehearse rehearses hang hangs report reports plan plans intend intends watch watches
write writes sleep sleeps call calls lasts grow grows led freelance quit stopped moved switched changed got gave took
died bought sold went ran hope expect visit visits cycle cycles walk walks pay pays earn earns know knows think manage
manages see sees seeing reach collect collects translate deliver meet meets arrive arrives begin begins end ends
measure measures give gives show tell send put address contain contains hold holds allow allows help helps mentor
mentors wear wears make makes
""")
"""Common verbs; what stands before the first is the subject."""
MARKED = (
    VERBS
    | PAST_VERBS
    | _words("""
come comes coming up down out off away put everything something anything everyone everybody someone together between
before after over under during until till around near behind give gave made let tell favourite favorite now new old
since currently moved changed switched instead rather longer more anymore back days day week month year time still
already just really actually quite very too also well good first last next one two thing things way lot bit yet ever
today tomorrow yesterday morning evening afternoon night monday tuesday wednesday thursday friday saturday sunday
january february march april june july august september october november december every each all any some many much
""")
)
"""Words that no two statements have in common just because both contain them."""
MONTHS = _words("""
january february march april may june july august september october november december
""")
DAYS = MONTHS - {"may", "march"} | _words("monday tuesday wednesday thursday friday saturday sunday")
