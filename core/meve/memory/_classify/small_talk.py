"""Tells small talk, commands and scraps from statements, by rules for English.

A reaction, such as "I'm so glad …" or "Sorry …", is dropped only where nothing behind it tells a number, a day, a name
or anything of the speaker.
"""

import re

from meve.components.lexical.analyzers import content_words, words
from meve.memory._classify.exclamations import is_exclamation
from meve.memory._contradiction.lexicon import CALENDAR, IRREGULAR_PASTS, NO_EVENTS, PAST_VERBS, UNMARKED_PASTS
from meve.memory._contradiction.statements import parse_values

LAUGHTER = r"(?:ha|he)(?:h?[ae])*+h?|lo+l|lmao|rofl|omg|u+gh|phew|whew|oops|whoops"
FIRST_PERSON = re.compile(r"\b(?:i|im|ive|my|mine|me|myself|we|our|ours)\b", re.I)
_PLEASANTRIES = """
hi hello hey dear thanks thank ok okay yes yeah no sure great good fine bye goodbye please sorry cool nice perfect well
morning evening afternoon day night welcome lot much right alright awesome got understood wow oh haha lol exactly indeed
agreed thx ty tysm ta k kk np nvm yup yep nope brb gtg ttyl gn8 cheers excited
danke vielen dank dir schön guten morgen gute nacht abend tag hallo tschüss alles klar super bitte bis merci beaucoup
bonjour salut gracias hola ciao grazie
"""
POLITE_WORDS = frozenset(_PLEASANTRIES.split())
_POINTERS = """
he she it they this that these those his her hers its their theirs him them there and but so because which then also
both neither either such except
"""
BACK_REFERENCES = frozenset(_POINTERS.split())
_IT = r"(?:it|that|this|them|these|those|so)"
_GOOD = r"(?:good|great|nice|fine|perfect|fun)"
_REACTION = re.compile(
    rf"""(?:(?:but|and|so|also|because)\s++)?(?:
      (?:good|best\s+of)\s+luck\b.*
    | (?:(?:i'm|i\s+am)\s+)?(?:so\s+)?(?:glad|happy|sorry|good|great|awesome)\s+
      (?:to\s+(?:hear|see|know)|about)\b(?!.*\bmy\b).*
    | (?:i|we)(?:'m|\s+am|\s+was|'ve|\s+have)?\s+(?:(?:\w+ly|just|so|also|can|do|too)\s+)*(?:
        (?:see|know|guess|agree|understand)\W*$
        | (?:see|know|think|guess|hope|believe|bet|agree|understand|feel)\s+
          (?:what|that's|that\s+is|so|it|it's|this|you|your|with|how|in\s+it)\b
        | (?:appreciate|excited|proud|lucky|grateful|thankful|pumped|sure|glad|sorry|happy\s+(?:to\s+(?:hear|see)|for)
            |here\s+(?:for|if)|(?:fine|ok|okay|good)\s+with\s+(?:that|it)|can't\s+(?:wait|believe|imagine)
            |love\s+(?:that|it|this|how)|don't\s+know|bet|will\s+always\s+be|got\s+{_IT}\W*$)\b
      )
    | (?:i|we)'ll\s+(?:(?:always|just|definitely|give)\s+)*(?:be\s+(?:here|there)
      |(?:let\s+you\s+know|keep\s+you)\b(?!\s+that\b).*|keep\s+\w+ing
      |(?:do|keep|try|take|use|go|make)\s+(?:{_IT}|with|you|on|at|up|going|doing|trying|my\s+best|our\s+best)\b
      |stay\s+(?:positive|strong|tuned|in\s+touch))
    | we(?:'ll|\s+(?:can|will|should|could))\s+(?:(?:always|also|totally|definitely|really|all|just|both)\s+)*
      (?:(?:do|try|make|get|have|see|talk|work|go|fix|start|keep)\s+(?:{_IT}|on|there|through|together|later|up|fun|doing|going
        |(?:some|an?|the)\s+(?:\w+\s+)?(?:difference|change|blast|time))
      |achieve|encourage|enjoy|grow|inspire|learn|motivate|spread|support)\b
    | we\s+should\b(?!\s+(?:be|have)\b)
    | i'd\s+love\s+(?:that|it|to)\W*$
    | that(?:'s|\s+is|\s+was|\s+will\s+be)\s+(?:all|it|everything)(?:\s+for\s+(?:now|today|tonight))?\W*$
    | me\s+(?:too|neither)\b | same(?:\s+here)?\W*$ | no\s+(?:problem|worries)\b | my\s+pleasure\b
    | (?:thanks|thank\s+you|(?:glad|happy|sorry)\b(?!\s+to\s+(?:say|tell|report)\b)|bummer|excited
        |congrat\w*|awesome|great|good|nice|cool|amazing|appreciate
        |well\s+done|hopefully,?\s+(?:it|that|this|they|you|he|she|there|something)|long\s+time|can't\s+wait)\b
    | (?:a\s+lot|lots|so\s+much|much)(?:'s|\s+has)\s+(?:happened|changed|been\s+going\s+on)\b
    | (?:(?:i|we)\s+)?(?:haven't|have\s+not|hasn't)\s+(?:talked|spoken|chatted|seen\s+you|heard\s+from\s+you)\b
    | (?:the|that|this|it|your)\s+(?:\w+\s+){{0,3}}(?:sounds|looks)\s+(?:\w+\s+)?{_GOOD}\W*$
    | (?:sounds|looks)\s+{_GOOD}\b
    | (?:the|that|this)\s+(?:\w+\s+)?\w+\s+you\s+(?:gave|sent|wrote|showed|suggested|made|posted|shared)\b
      (?:\s+(?:me|us)\b)?
    | (?:[^,;]*\b)?i'm\s+(?:always\s+)?here\s+for\s+you\b
    | (?:it\s+)?means\s+a\s+lot\b | your\s+\w+(?:\s+and\s+\w+)?\s+(?:really\s+)?means?\b
    | (?:it|this|that)(?:'s|\s+is|\s+was)\s+(?:(?:so|such|just|an?|\w+ly)\s+)*+
      (?:amazing|awesome|incredible|moments|tough|hard|like)\b
    | (?:i\s+(?:\w+\s+){{0,2}})?the\s+(?:first|second|third|last|next|other|wrong|same)\s+
      (?:one|version|option|paragraph|sentence|step|line|file|part|answer|code)\b
    | not\s+(?:\w+\s+)?what\s+i\s+(?:meant|wanted|asked)\b
    | (?:tell|let|excuse|give|show|help|remind|send|get|find|count)\s+me\b
    | (?:(?:i(?:'ve)?|we)\s+)?(?:got(?:ta|\s+to)|have\s+to)\s+(?:go|run)(?:\s+now)?\W*$ | way\s+to\s+go\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""The beginnings of acknowledgements, thanks and reactions."""
_OWN = re.compile(
    r".*\b(?:i|im|ive|we|(?:my|our)(?!\s+(?:best|mind|heart|pleasure|opinion|thoughts?|feelings?|dreams?|goals?|way|corner|side|life)\b))\b",
    re.IGNORECASE | re.DOTALL,
)
"""The part of a clause up to the word for the speaker, such as `I` or `my`."""
_POINTS = re.compile(
    r"\b(?:you|your|yours|u|it|them|this)\b|(?:['’]d|\bwould)\s+(?:like|love)\b|\b(?:need|want)\s+(?:to|some)\b",
    re.IGNORECASE,
)
"""Words of what the speaker says of the other one or of what was said before, or asks for."""
_OF_THE_TALK = frozenset(
    ("help", "ask", "asked", "talk", "talked", "spoke", "spoken", "chat", "chatted", "last", "share", "know", "see")
)
"""Words of "glad I could help" and "since we last spoke"."""
_GENERAL = re.compile(r"(?:i\s+think\s+)?(?:it|this|that)['\s].*\b(?:we|our)\b", re.IGNORECASE)
"""Leads to what is everybody's: "It's amazing how our minds work"."""
_TO_OTHER = re.compile(r"(?:(?:whenever|when|if)\s+)?you\b", re.IGNORECASE)
_OTHERS_NEWS = re.compile(r"(?:(?:and|but|because|since)\s+)?(?:the|an?|he|she|he's|she's|his|her)\b", re.IGNORECASE)
"""Begins a clause after a reaction that tells of others: "Sorry, the baby was ill"."""
_WHEN = "later|soon|tomorrow|again|next\\s+(?:time|week)|around|on\\s+\\w+day|tonight|then"
_BANTER = re.compile(
    rf"""(?:(?:{LAUGHTER}|but|and|so|well|seriously|honestly|really|just|thanks|sorry|man|dude)\s+)*+(?:
      never\s?mind(?:\s+(?:that|me|then))? | good\s+one | fair\s+enough | touch[eé] | stop(?:\s+it)?
    | i\s+(?:could|might)\s+(?:just\s+)?(?:cry|scream|explode|die) | i\s+hate\s+(?:people|everyone|everybody|everything)
    | i\s+give\s+up | (?:{LAUGHTER}) | (?:that\s+)?makes\s+sense(?:\s+now)?
    | i\s+get\s+it(?:\s+now)? | no\s+(?:idea|luck)
    | (?:interesting|good|great|nice)(?:\s+(?:point|idea|question|thought|one))?
    | (?:(?:it's|that's|that\s+was)\s+)?my\s+(?:bad|mistake|fault)
    | forget\s+(?:(?:that\s+)?i\s+(?:asked|said\s+\w+)|it|that|about\s+it)
    | (?:i(?:'m|\s+am|m|\s+was)\s+)?(?:(?:just|only|totally|literally|so)\s+)*+(?:kidding|joking|teasing
      |messing\s+with\s+you|dead|speechless|screaming|laughing(?:\s+so\s+hard)?|in\s+stitches|rolling|blushing
      |back|confused|stuck|ready|not\s+sure)
      (?:\s+(?:here|now|again))*+
    | i\s+(?:can't|cannot|cant)\s+(?:even|stop\s+laughing|deal|with\s+(?:you|this|that))
    | i\s+(?:so\s+)?owe\s+you(?:\s+(?:one|big|big\s+time|a\s+(?:drink|beer|coffee)))?
    | i\s+(?:figured|worked|sorted|found)\s+it\s+out | i\s+tried\s+(?:that|it|this)(?:\s+(?:already|too|again))?
    | i\s+(?:totally\s+)?(?:walked|fell)\s+(?:right\s+)?(?:into|for)\s+that(?:\s+one)?
    | i\s+(?:just\s+)?knew\s+(?:it|that|you(?:'d|\s+would)\s+say\s+(?:that|so|it))
    | (?:you|that|this|it)(?:'re|\s+are|'s)?\s+(?:(?:always|really|just|totally|so)\s+)*+
      (?:made\s+my\s+(?:day|week|morning|evening)|saved\s+(?:me|my\s+(?:life|day))
      |(?:crack(?:s|ed)?|cheer(?:s|ed)?)\s+me\s+up|kill(?:s|ing|ed)?\s+me|got\s+me(?:\s+there)?|read\s+my\s+mind)
    | (?:i'll\s+)?(?:see|catch|talk(?:\s+to)?|speak(?:\s+to)?|chat(?:\s+with)?|write)(?:\s++(?:you|ya|{_WHEN}))++
    | bye(?:\s+(?:bye|for\s+now|then))? | have\s+a\s+(?:\w+\s+)?(?:one|day|night|evening|time|trip|week|weekend)
    | happy\s+\w+day | (?:one|just\s+a)\s+(?:sec|second|moment|minute) | long\s+day | continue | go\s+on | carry\s+on
    | (?:still\s+)?(?:the\s+)?same\s+(?:error|result|problem|issue|thing)(?:\s+(?:again|here))? | still\s+doesn't\s+work
    )(?:\s+(?:{LAUGHTER}))*+""",
    re.IGNORECASE | re.VERBOSE,
)
"""Whole clauses of small talk."""
_COMMAND = re.compile(
    r"(?:(?:now|then|and|just|also|ok),?\s+)*+(?:(?:please|kindly)\b"
    r"|(?:search|check|look|book|reserve|play|send|schedule|set|put|order|buy|cancel|change|add|show|do|redo|undo|rename"
    r"|replace|sort|shorten|fix|move|merge|split|format|convert|insert|remove|drop|rerun"
    r"|find|get|give|go|make|take|let|let's|lets|try|keep|stay|hope|enjoy|consider|tell|read|open|close|stop|start|turn"
    r"|use|see|ask|wait|note|stand|rest|hang|take\s+care|how\s+about|what\s+about|any|more"
    r"|(?:don't|do\s+not)\b(?!\s+(?:have|own|like|need|want|eat|drink|smoke|live|drive|speak|even|really)\b))\b)",
    re.IGNORECASE,
)
"""Commands and encouragement; statements only if they speak of the user."""
COMMAND_ABOUT_USER = re.compile(
    r"(?:(?:just|now|then|also|i\s+mean),?\s+)*(?:please\b|i\s+want\s+you\s+to\b|(?:add|book|buy|cancel|change"
    r"|check|close|find|get|give|look"
    r"|open|order|play|reserve|schedule|search|send|show|turn)(?:\s+(?:at|for|off|on|out|up))?"
    r"\s+(?:my|me|our|us|the|an?|this|that|it|all|some)\b(?!.*\b(?:every|each)\s)(?!\s+\w+\s+(?:off|done)\b))",
    re.IGNORECASE | re.DOTALL,
)
"""A command that names the user, such as `Cancel my order.`, but no habit, and not `Book club meets at my house.`"""
_OF_OTHERS = re.compile(
    r"(?!it\s+(?:needs|should|has\s+to)\b)(?:that|that's|this|it|it's|its|those|these|they|they're|there|there's"
    r"|what|such|sounds?|looks?|seems?|must|you|you're"
    r"|you've|you'll|your|yours|here|here's|having|seeing|being|by\s+\w+ing"
    r"|(?:the|attached)\s+(?:\w+\s+)?(?:one|paragraph|sentence|version|output|answer|error|code|script|link|file|table"
    r"|column|row|line|step|intro|title))\b|.*\b(?:you|your|you're)\b"
    r"|\w+ing\b.*\b(?:is|are|must|can|makes?)\b",
    re.IGNORECASE,
)
"""Sentences that react to another one or generalise, unless they speak of the user or name a number, day or name."""
_SPEAKER = re.compile(r"\b(?:i|im|ive|my|mine|me|myself)\b", re.IGNORECASE)
_TRUTH = re.compile(
    r"\b(?:is|are)\s+(?:so\s+|\w+ly\s+)?(?:essential|key|crucial|vital|important)(?:\W*$|\s+(?:to\s+(?:\w+ing|be|have"
    r"|keep|stay|take)|for\s+\w+ing)\b)|\bthe\s+important\s+thing\s+is\s+to\b"
    r"|\bmakes?\s+(?:an?|all\s+the|such\s+an?)\s+(?:\w+\s+)?(?:difference|impact)\b",
    re.IGNORECASE,
)
"""Words of general truths."""
_OF_IT = re.compile(
    r"\w+(?:\s+(?:up|on|off|out|in|to|with|for|at|about))?\s+(?:it|that|this|them|there)\b(?!['’])", re.IGNORECASE
)
"""A verb without a subject, and a pronoun: "working on it"."""
_LITTLE_WORDS = """
yet really finally already again always anymore soon later maybe probably actually though almost quite totally same
absolutely ever still just hopefully obviously apparently honestly seriously any more up off out away down over back
"""
_ADVERBS = frozenset(_LITTLE_WORDS.split())
_TOLD_ALONE = frozenset(("graduated", "promoted", "hired", "fired", "diagnosed", "vaccinated", "separated", "widowed"))
"""Words that tell a fact by themselves: "Graduated!"."""
_BARE_PASTS = PAST_VERBS | IRREGULAR_PASTS | UNMARKED_PASTS | {"done", "gone", "quit"}
EXCLAIMED = re.compile(
    r"(?:so+|super|truly|very|such|definitely|simply)\s+(?:an?\s+)?[\w-]++(?:\s+(?:and\s+[\w-]++|stuff|of\s+it))?\W*$",
    re.IGNORECASE,
)
"""An exclamation that tells an opinion and no fact: "So cute!"."""
_AROUND = ' \t\n\r"()[]*_~-'
_CLAUSES = re.compile(r"[,.!?;:\u2026\u2013\u2014](?!\d)|\s-+\s")
_PREPOSITION = re.compile(r"(?:(?:but|and)\s+)?(?:on|at|around|about|by)\b", re.IGNORECASE)
_TIMES = (
    CALENDAR | {f"{day}s" for day in CALENDAR} | {"half", "past", "quarter", "clock", "pm", "now", "fourth", "works"}
)
_PERSON = re.compile(r"(?:he|she|they|his|her|hers|their|theirs|both|it\s+is\s+called|it's\s+called)\b", re.IGNORECASE)


_BIRTH = re.compile(
    r"(?:it['’]s|it\s+is|they['’]re|they\s+are)\s+(?:(?:going\s+to\s+be|an?|baby|healthy|little)\s+)*(?:boys?|girls?|twins)\b"
    r"|(?:he|she|they)\s+(?:just\s+|finally\s+)?had\s+(?:an?|her|their|the)\s+(?:\w+\s+)?(?:baby|boy|girl|son|daughter)\b",
    re.IGNORECASE,
)
"""Begins a sentence that tells of a birth."""


def is_small_talk(said: str, *, continues: bool) -> bool:
    """Return whether a sentence, without its opening words, reacts or commands, and tells nothing lasting.

    One that `continues` a statement may speak of others: "He is called Rex."

    >>> [is_small_talk(each, continues=False) for each in ("I'm so glad!", "I'm so glad I sold the house.")]
    [True, False]
    """
    if _BIRTH.match(said):
        return False
    if _reacts(said) or _has_no_content(said):
        return True
    if _TRUTH.search(said) and not _SPEAKER.search(said):
        return True
    if FIRST_PERSON.search(said):
        return said.lower().startswith("kindly ")
    if _COMMAND.match(said) or words(said)[-1] == "please":
        return True
    if _has_values(said) or (continues and _PERSON.match(said)):
        return False
    return bool(_OF_OTHERS.match(said))


def tells_only_when(said: str) -> bool:
    """Return whether a sentence tells a day, a time or a preposition's object, and nothing of it: "On Friday at 7."."""
    begin = _PREPOSITION.match(said)
    if begin is None:
        return False
    left = set(content_words(said[begin.end() :])) - _TIMES - POLITE_WORDS
    return not any(word for word in left if not word[0].isdigit()) or said[begin.end() :].lower().startswith(" to ")


def _reacts(said: str) -> bool:
    """Return whether the clauses of a sentence are small talk, or the first one reacts and none tells anything."""
    parts = (clause.strip(_AROUND) for clause in _CLAUSES.split(said.replace("’", "'")))
    clauses = [clause for clause in parts if clause]
    if not clauses:
        return False
    if all(_is_talk(clause) for clause in clauses):
        return True
    first = clauses[1 if _TO_OTHER.match(clauses[0]) and len(clauses) > 1 else 0]
    begins = _REACTION.match(first) is not None
    return begins and all(_is_talk(each) or not (_tells(each) or _OTHERS_NEWS.match(each)) for each in clauses)


def _is_talk(clause: str) -> bool:
    """Return whether a clause is small talk."""
    if _BANTER.fullmatch(clause) or is_exclamation(clause) or POLITE_WORDS.issuperset(content_words(clause)):
        return True
    reaction = _REACTION.match(clause)
    general = _GENERAL.match(clause)
    begin = max(each.end() for each in (reaction, general) if each) if reaction else 0
    return reaction is not None and not _tells(clause[begin:].strip())


def _tells(clause: str) -> bool:
    """Return whether a clause tells a number, a day, a name or something of the speaker."""
    values = parse_values(clause)
    if values.days or values.names or any(map(str.isdigit, clause)):
        return True
    own = _OWN.match(clause)
    if own is None or _POINTS.search(clause, own.end()):
        return False
    return not _ADVERBS.union(POLITE_WORDS, _OF_THE_TALK).issuperset(content_words(clause[own.end() :]))


def _has_values(said: str) -> bool:
    values = parse_values(said)
    return bool(values.numbers or values.days or values.names)


def _has_no_content(said: str) -> bool:
    """Return whether a sentence needs another one to say anything: "Loved it.", "Moved!", "Not yet." or "Friday."."""
    content = set(content_words(said)) - POLITE_WORDS
    told = content - _ADVERBS
    if not content or len(told) > 1 or FIRST_PERSON.search(said):
        return not content
    if _has_values(said):
        return False
    has_subject = words(said)[0] in BACK_REFERENCES
    return not told or _OF_IT.match(said) is not None or (not has_subject and _is_bare_past(*told))


def _is_bare_past(word: str) -> bool:
    """Return whether a word is a verb in the past tense, but for those that tell what somebody is now: "retired"."""
    is_past = word in _BARE_PASTS or (word.endswith("ed") and len(word) > 4)
    return is_past and word not in NO_EVENTS | _TOLD_ALONE
