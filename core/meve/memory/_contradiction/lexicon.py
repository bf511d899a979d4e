"""Lists of English words that tell whom a statement is about, and whether it announces a change."""

import re

from meve.components.lexical.analyzers import stem


def _groups(text: str) -> dict[str, str]:
    """Return the stem of each word with the first word of its line."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {stem(word): words[0] for words in lines for word in words}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _sets(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(line.split()) for line in text.strip().splitlines())


class Phrases:
    """Phrases that are found in lower and upper case.

    Args:
        pattern: matches them in lower case.
    """

    def __init__(self, pattern: str) -> None:
        self._any_case, self._lower_case = re.compile(pattern, re.I), re.compile(pattern)

    def find_all(self, text: str) -> frozenset[str]:
        """Return all matches, in lower case."""
        pattern, text = self._prepare(text)
        return frozenset(match.group().lower() for match in pattern.finditer(text))

    def stand_in(self, text: str) -> bool:
        """Return whether there is a match."""
        pattern, text = self._prepare(text)
        return pattern.search(text) is not None

    def _prepare(self, text: str) -> tuple[re.Pattern[str], str]:
        if text.isascii():  # ignoring case takes four times as long
            return self._lower_case, text.lower()
        return self._any_case, text


def _alternatives(text: str) -> Phrases:
    """Return phrases, which are separated by a bar between spaces or by a line break."""
    alternatives = "|".join(re.split(r" \| |\n", text.strip()))
    return Phrases(rf"\b(?:{alternatives})(?!\w)")


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
grandmother grandma gran granny nana
grandfather grandpa grandad granddad
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
UNIQUE_KIN = _words("mother father husband wife girlfriend boyfriend fiancé")
"""Persons of whom the user has one at a time."""
ONE_NAME = _words("""
live lives lived living address reside resides settled based boss manager supervisor gp doctor dentist single married
divorced engaged name named called born capital landlord favourite favorite
""")
"""Words for a relation that has one name at a time: "I live in Berlin." """
ONE_NAME_PHRASE = re.compile(
    r"\breports? to\b|\b(?:home|house|flat) is\b|"
    r"\b(?i:answer|repl(?:y|ies)|respond|write|talk|speak)\b.{0,20}\bin [A-Z]"
)
"""Phrases for such a relation."""
TITLES = _words("mr mrs ms miss dr prof sir")
NAMING = _words("name named called")
MEASURES = _words("""
is are be open opens close closes leave leaves depart departs start starts begin begins end ends arrive arrives cost
costs last lasts weigh weighs need needs have has
""")
"""Verbs of which a thing has one value: the shop opens at 9."""
HEALTH = _words("""
allergic allergy allergies intolerant intolerance anaphylactic diabetic diabetes epileptic epilepsy coeliac celiac
asthma insulin pacemaker medication ms copd hiv cancer leukaemia leukemia lupus arthritis dementia hepatitis
parkinson's alzheimer's crohn's haemophilia hemophilia thrombosis transplant
""")
"""Words of facts that must not be lost: only a statement with the same words replaces them."""
FOREIGN = _words("""
der das ist ich und nicht mein meine meinen meiner einen eine einem einer wir sind habe bei nach seit jetzt
une avec dans chez suis nous habite
una tengo vivo está estoy soy trabajo
het een ik mijn niet woon sono abito lavoro della
""")
"""Words of German, French, Spanish, Dutch and Italian that are none in English."""
UNWELL = _words("""
ill sick unwell hurt hurts injured limps limping fever cold flu cough hospital vet vet's surgery operation pain broken
broke sprained asleep tired off bad sore worse bandage cast infection infected pneumonia fracture
""")
"""Words of an illness or an injury that passes."""
LIKED = frozenset(_groups("love loves like likes adore adores enjoy enjoys fan fond"))
DISLIKED = frozenset(_groups("hate hates dislike dislikes loathe loathes detest despise"))

ENDED = _alternatives(r"""
no longer | any ?more | no more | quit | stop(?:s|ped) \w+ing | g[ai]ve(?:n)? up | gave \w+(?: \w+)? (?:up|away)
dropped | cancel+ed | sold | abandoned | retired | resigned | died | passed away | broke up | split up | divorced
(?:i|we) separated | got rid of | called off | fell through | left (?:the|my|for|there) | fired | laid off | finished
completed | graduated | ended | expired | recovered | cured | (?:is|are|am) over
""")
"""Words that announce that something ended."""
CHANGED = _alternatives(r"""
moved | moving (?:to|out|in) | switch(?:ed|ing) | chang(?:ed|ing) | swapped | traded | replaced | transferred
relocated | migrated | renamed | promoted | pushed | postponed | delayed | brought forward | put (?:off|back)
rescheduled | shifted | upgraded | downgraded | taken over | took over | became | become | doubled | halved | raised
lowered | increased | reduced | extended | extension | shortened | (?:down|up|back) to | (?:is|are|am|been) back
got (?:married|engaged|divorced|hired|promoted) | (?:another|a new|a different|someone else) | decided | joined
hired | instead | rather than | actually | after all | from now on | going forward | correction | i was wrong
turns out | used to
""")
"""Words that announce that something changed or was wrong."""
CURRENT = _alternatives(r"""
now | nowadays | these days | currently | lately | at the moment | since | new(?! year) | by now | today | meanwhile
latest | recently | finally | again | this (?:morning|week|month) | last (?:week|month) | yesterday | as of
from (?:mon|tues|wednes|thurs|fri|satur|sun)day | from next
from (?:january|february|march|april|may|june|july|august|september|october|november|december)
bought | started
""")
"""Words that say that something holds now, perhaps unlike before."""
ADDED = _alternatives(r"""
too | also | as well | another one | my other | besides | additionally | in addition | on top of that | second
keeps? | still | sometimes | now and then | occasionally | both
""")
"""Words that add to what holds already."""
PASSING = _alternatives(r"""
tomorrow | tonight | next (?:week|month|weekend|year)
this (?:summer|winter|spring|autumn|fall|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day) | on holiday
just (?:for|this) | for (?:once|a few|the holidays) | planning to | going to | (?:i'll|we'll)
""")
"""Words of a plan or an exception, which leave a habit as it is."""
_FUTURE = (
    r"next (?:month|year|spring|summer|autumn|fall|winter)|soon|in (?:the )?(?:spring|summer|autumn|fall|winter|"
    r"january|february|march|april|may|june|july|august|september|october|november|december)|(?:on )?\d\d-\d\d"
)
PLANNED = Phrases(rf"\b(?:(?:am|is|are)(?: \w+)? \w+ing|(?:i|we|he|she|they) starts?)\b.*\b(?:{_FUTURE})\b")
"""Words of a future that isn't there yet."""
DATED = Phrases(rf"\b(?:{_FUTURE})\b")
"""Words for a time of the year."""
PAST = Phrases(
    r"^\W*(?:before|back (?:in|then)|when i was|as a (?:child|kid|teenager)|years ago)\b|\b(?:used to|formerly|"
    r"in the past|back in|in my (?:teens|twenties|thirties|forties|youth|childhood)|my first|my old|my former|my ex|"
    r"from \d{4} to \d{4})\b"
)
"""Words that say that a statement tells of the past."""
INTRODUCED = re.compile(r"\b(?:have|has|had|got|there is|am on) an? ", re.I)
"""Words that introduce a thing that no other statement has named."""
UNCHANGED = Phrases(
    r"\b(?:(?:stay|stays|stayed|remain|remains|remained|is|are) (?:\w+ly |still )?the same(?! \w+ as)|unchanged|"
    r"(?:has|have) not changed|as (?:before|always|ever))\b"
)
"""Words that say that all is as before."""
UNBEARABLE = re.compile(r"\b(?:cannot|can not|could not) (?:stand|bear)\b", re.I)
"""Words of a dislike."""
PART = re.compile(
    r"^\W*(?:\d+|one|some|half|most|several|many|a few|a couple) of "
    r"(?:my|our|the|his|her|their|these|those|them|us)\b", re.I
)  # fmt: skip
"""The beginning of a statement about a part of a group: the rest may go on."""
FURTHER = re.compile(r"\ba (?:second|[234](?:nd|rd|th)|further)\b", re.I)
"""Words for one more of a kind."""
TIED = _words("flatmate neighbour colleague")
"""Persons who are close to the user by a home or by work, which they may leave."""
HABIT = re.compile(
    r"\b(?:always|usually|normally|mostly|regularly|generally|every|on \w+days|(?:once|twice|times) an? \w+)\b", re.I
)
"""Words of a habit."""
PAST_VERBS = _words("was were had did ran went got took made came saw met gave bought sold won lost broke began")
IRREGULAR_PASTS = _words("""
ate bent blew bought bound broke brought built burnt caught chose dealt drank drew drove dug fed fell felt flew forgot
fought found froze grew heard held hid hung kept knew laid learnt lent lit lost made met paid rang rode rose sang sat
sent shook shot slept spent spilt spoke stole stood stuck swam swept taught threw told took tore understood woke wore
wrote
""")
"""Irregular verbs in the past tense that are no present tense."""
UNMARKED_PASTS = _words("bit cut hit hurt left let put ran read set shut")
"""Those that may be a present tense or another word."""
_PAST_TENSES = """
take:took drive:drove eat:ate drink:drank run:ran read:read leave:left teach:taught write:wrote sleep:slept begin:began
give:gave wear:wore pay:paid meet:met swim:swam ride:rode sing:sang
"""
PAST_TENSES = dict(pair.split(":") for pair in _PAST_TENSES.split())
"""Verbs by which a habit is told, with their irregular past tense."""
EXPERIENCE = re.compile(
    r"\b(?:have|has) (?:(?:just|only|already|once|twice) )?"
    r"(?:been to|visited|seen|met|flown|climbed|travelled|hiked|arrived|"
    r"been (?:delivered|shipped|sent|posted|paid|refunded|returned|collected))\b|"
    r"\bis (?:already )?(?:paid|delivered)\W{0,3}$",
    re.I,
)
"""Words for what somebody did before: "I have been to Japan"."""
NO_EVENTS = _words("""
bed red need needs indeed shed feed seed speed weed based called named located married allergic retired interested used
supposed allowed closed led opened born tired kept held allied advanced hundred sacred naked wicked required limited
painted reserved parked stored divorced engaged employed unemployed owned scheduled planned signed registered stationed
""")
"""Words in "ed" that are no verbs in the past tense, or may be none."""

CONTRASTS = _sets("""
left right
front rear back
upper lower
inner outer
top bottom
east west north south
older younger eldest youngest oldest
first 1st second 2nd 3rd 4th last
start end
private personal work home
spring summer autumn winter
import export
more less
upload download
outbound return
driver passenger
take pick
drop pick
to from
into from
with without
min max minimum maximum
""")
"""Words that tell two things of a kind or two directions apart."""
TIMES_OF_DAY = _sets("""
morning noon afternoon evening night
breakfast lunch dinner
before after
""")
"""Words that tell two times apart."""
QUALIFIERS = _words("ex other another middle maiden")
"""Words that make a thing another one, if only one statement has them."""
VERBS = _words("""
answer answers reply respond am is are was were be been being has have had do does did will would can could shall should
may might must need needs want wants like likes love loves hate hates prefer prefers live lives work works go goes get
gets take takes drive drives play plays study studies speak speaks eat eats drink drinks smoke smokes weigh weighs run
runs read reads use uses open opens close closes start starts leave leaves cost costs keep keeps stay stays own owns
teach teaches rent rents report reports plan plans watch watches write writes sleep sleeps call calls lasts grow grows
quit stopped moved switched changed got gave took died bought sold went ran hope expect visit visits cycle cycles walk
walks pay pays earn earns know knows think manage manages see sees meet meets arrive arrives begin begins end ends give
gives put contain contains hold holds allow allows help helps wear wears make makes come comes
""")
"""Common verbs; what stands before the first is the subject."""
COPULAS = _words("am is are was be been became")
MONTHS = _words("january february march april may june july august september october november december")
WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
"""A pattern of the days of the week."""
CALENDAR = MONTHS | _words("monday tuesday wednesday thursday friday saturday sunday morning evening afternoon night")
