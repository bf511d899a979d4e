"""Extracts the facts that a turn of a conversation states, by rules for English."""

import re

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import content_words, words
from meve.memory._classify.pasted_text import remove_pasted_text
from meve.memory._classify.standing_wishes import cut_opener, is_standing_wish
from meve.memory._contradiction.lexicon import IRREGULAR_PASTS, NO_EVENTS, PAST_VERBS, UNMARKED_PASTS
from meve.memory._contradiction.statements import parse_values

_PLEASANTRIES = """
hi hello hey dear thanks thank ok okay yes yeah no sure great good fine bye goodbye please sorry cool nice perfect well
morning evening afternoon day night welcome lot much right alright awesome got understood wow oh
haha lol exactly indeed agreed
"""
_POLITE_WORDS = frozenset(_PLEASANTRIES.split())
_POINTERS = """
he she it they this that these those his her hers its their theirs him them there and but so because which then also
both neither either such
"""
_BACK_REFERENCES = frozenset(_POINTERS.split())
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
_LAUGHTER = r"(?:ha|he)(?:h?[ae])*+h?|lo+l|lmao|rofl|omg|u+gh|phew|whew|oops|whoops"
_OPENER = re.compile(
    rf"(?:(?:(?:(?:a+w+|a+h+|oh?|wow|whoa|woah|hey|hi|hello|yeah|yes|yep|yea|yup|nope|nah|ok|okay|sure|so|and|but|oof"
    rf"|{_LAUGHTER}|h+m+|m+|actually|absolutely|totally|definitely|exactly|true|maybe|not\s+now|as\s+for\s+me|same)\b"
    r"|(?:(?:(?:more|some|the)\s+)?(?:good|great|bad|sad|big|better|best|more|other|happy|wonderful|terrible)\s+news|news"
    r"|update)(?=\s*[:!.\u2013\u2014-])"
    r"|(?:no|well|right|cool|great|good|nice|fine|alright|perfect|sorry|thanks|thank\s+you)(?:\s+(?:so\s+much"
    r"|a\s+lot|again|(?-i:[A-Z]\w+)))?(?=[,.!-]))"
    r"(?:\s+(?:there|all|everyone)\b)?(?:,?\s+(?-i:[A-Z]\w+)(?=[,!.-]))?|(?-i:[A-Z]\w+)(?=,\s+(?:that|you|it|i"
    r"|i'm)\b))[\s,.:!\u2013\u2014-]+)+",
    re.IGNORECASE,
)
"""Words before what a sentence says."""
_ADDRESSED = re.compile(r",\s+[A-Z]\w+(?=[!,.?])")
"""A name of the one who is spoken to."""
_FIRST_PERSON = re.compile(r"\b(?:i|im|ive|my|mine|me|myself|we|our|ours)\b", re.I)
_COMMAND = re.compile(
    r"(?:please|kindly)\b|(?:search|check|look|book|reserve|play|send|schedule|set|put|order|buy|cancel|change|add|show"
    r"|find|get|give|go|make|take|let|let's|lets|try|keep|stay|hope|enjoy|consider|tell|read|open|close|stop|start|turn"
    r"|use|see|ask|wait|note|stand|rest|hang|take\s+care|good\s+(?:luck|night|job|point|idea)|well\s+done"
    r"|congrat\w*|hopefully|glad|happy|sorry|awesome|great|good|nice|cool|amazing|appreciate|long\s+time"
    r"|can't\s+wait|don't|do\s+not|any|how\s+about|what\s+about|more)\b",
    re.IGNORECASE,
)
"""Commands, encouragement and reactions; statements only if they speak of the user."""
_COMMAND_ABOUT_USER = re.compile(
    r"(?:(?:just|now|then|also|i\s+mean),?\s+)*(?:please\b|i\s+want\s+you\s+to\b|(?:add|book|buy|cancel|change"
    r"|check|close|find|get|give|look"
    r"|open|order|play|reserve|schedule|search|send|show|turn)(?:\s+(?:at|for|off|on|out|up))?"
    r"\s+(?:my|me|our|us|the|an?|this|that|it|all|some)\b)",
    re.IGNORECASE,
)
"""A command that names the user, such as `Cancel my order.`, but not `Book club meets at my house.`"""
_OF_OTHERS = re.compile(
    r"(?!it\s+(?:needs|should|has\s+to)\b)(?:that|that's|this|it|it's|its|those|these|they|they're|there|there's"
    r"|what|such|sounds?|looks?|seems?|must|you|you're"
    r"|you've|you'll|your|yours|having|seeing|being)\b|.*\b(?:you|your|you're)\b"
    r"|\w+ing\b.*\b(?:is|are|must|can|makes?)\b",
    re.IGNORECASE,
)
"""Sentences that react to another one or generalise, unless they speak of the user or name a number, day or name."""
_REACTION = re.compile(
    r"""(?:i|we)(?:'m|\s+am|\s+was|'ve|\s+have)?\s+(?:(?:\w+ly|just|so|also|can|do|too)\s+)*(?:
        (?:see|know|guess|agree|understand)\W*$
        | (?:see|know|think|guess|hope|believe|bet|agree|understand|feel)\s+
          (?:what|that's|that\s+is|so|it|it's|this|you|your|with|how|in\s+it)\b
        | (?:appreciate|excited|proud|lucky|grateful|thankful|pumped|sure|glad|sorry|happy\s+(?:to\s+hear|for)
            |here\s+(?:for|if)|(?:fine|ok|okay|good)\s+with\s+(?:that|it)|can't\s+(?:wait|believe|imagine)
                |love\s+(?:that|it|this|how)|don't\s+know|bet|will\s+always\s+be|got\s+(?:it|this))\b
      )
    | (?:i|we)'ll\s+(?:always\s+be|be\s+here|let\s+you\s+know|keep|stay|try)\b
    | we(?:'ll|'ve)?\s+(?:got|can|will|should|could)\b | i'd\s+love\s+(?:that|it|to)\W*$
    | that(?:'s|\s+is|\s+was|\s+will\s+be)\s+(?:all|it|everything)(?:\s+for\s+(?:now|today|tonight))?\W*$
    | me\s+(?:too|neither)\b | same(?:\s+here)?\W*$ | no\s+(?:problem|worries)\b | my\s+pleasure\b
    | (?:thanks|thank\s+you|glad|sorry|bummer)\b
    | (?:a\s+lot|lots|so\s+much|much)(?:'s|\s+has)\s+(?:happened|changed|been\s+going\s+on)\b
    | (?:(?:i|we)\s+)?(?:haven't|have\s+not|hasn't)\s+(?:talked|spoken|chatted|seen\s+you|heard\s+from\s+you)\b
    | (?:the|that|this|it|your)\s+(?:\w+\s+){0,3}(?:sounds|looks)\s+(?:\w+\s+)?(?:good|great|nice|fine|perfect|fun)\W*$
    | (?:.*\b)?i'm\s+(?:always\s+)?here\s+for\s+you\b
    | (?:it\s+)?means\s+a\s+lot\b | your\s+\w+(?:\s+and\s+\w+)?\s+(?:really\s+)?means?\b
    | (?:it|this|that)(?:'s|\s+is|\s+was)\s+(?:(?:so|such|just|an?|\w+ly)\s+)*+
      (?:amazing|awesome|incredible|moments|tough|hard|like)\b
    | (?:tell|let|excuse|give|show|help|remind|send|get|find|count)\s+me\b
    | (?:i(?:'ve)?\s+)?got(?:ta|\s+to)\s+(?:go|run)\W*$ | way\s+to\s+go\b
    | (?:.*\b)?(?:talk|speak|chat)\s+(?:to|with)\s+you\s+(?:later|soon|tomorrow|again|next\s+time)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Acknowledgements, thanks and reactions, which tell nothing of the user."""
_BANTER = re.compile(
    rf"""(?:(?:{_LAUGHTER}|but|and|so|well|seriously|honestly|really|just|thanks|sorry|man|dude)\s+)*+(?:
      never\s?mind(?:\s+(?:that|me|then))? | good\s+one | fair\s+enough | touch[eé] | stop(?:\s+it)?
    | i\s+give\s+up | (?:{_LAUGHTER}) | (?:that\s+)?makes\s+sense(?:\s+now)? | i\s+get\s+it(?:\s+now)? | no\s+idea
    | (?:interesting|good|great|nice)(?:\s+(?:point|idea|question|thought|one))?
    | (?:(?:it's|that's|that\s+was)\s+)?my\s+(?:bad|mistake|fault)
    | forget\s+(?:(?:that\s+)?i\s+(?:asked|said\s+\w+)|it|that|about\s+it)
    | (?:i(?:'m|\s+am|m|\s+was)\s+)?(?:(?:just|only|totally|literally|so)\s+)*+(?:kidding|joking|teasing
      |messing\s+with\s+you|dead|speechless|screaming|laughing(?:\s+so\s+hard)?|in\s+stitches|rolling|blushing)
      (?:\s+(?:here|now|again))*+
    | i\s+(?:can't|cannot|cant)\s+(?:even|stop\s+laughing|deal|with\s+(?:you|this|that))
    | i\s+(?:so\s+)?owe\s+you(?:\s+(?:one|big|big\s+time|a\s+(?:drink|beer|coffee)))?
    | i\s+(?:figured|worked|sorted|found)\s+it\s+out
    | i\s+(?:totally\s+)?(?:walked|fell)\s+(?:right\s+)?(?:into|for)\s+that(?:\s+one)?
    | i\s+(?:just\s+)?knew\s+(?:it|that|you(?:'d|\s+would)\s+say\s+(?:that|so|it))
    | (?:you|that|this|it)(?:'re|\s+are|'s)?\s+(?:(?:always|really|just|totally|so)\s+)*+
      (?:made\s+my\s+(?:day|week|morning|evening)|saved\s+(?:me|my\s+(?:life|day))
      |(?:crack(?:s|ed)?|cheer(?:s|ed)?)\s+me\s+up|kill(?:s|ing|ed)?\s+me|got\s+me(?:\s+there)?|read\s+my\s+mind)
    )(?:\s+(?:{_LAUGHTER}))*+""",
    re.IGNORECASE | re.VERBOSE,
)
"""Small talk that names the user and tells nothing lasting, if no other clause stands beside it."""
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
_LAUGHS = re.compile(rf"(?:{_LAUGHTER})\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:i|im|ive|my|mine|we|our|ours)\b", re.IGNORECASE)
_AROUND = ' \t\n\r"()[]*_~-'
_CLAUSES = re.compile(r"[,.!?;:\u2026\u2013\u2014]|\s-+\s")
_SUPPOSED = re.compile(
    r"(?:(?:let's|let\s+us)\s+(?:say|suppose|imagine|assume|pretend)|suppose|supposing|imagine|assume|assuming"
    r"|pretend|what\s+if"
    r"|unless\b[^,]*$|(?:unless|provided(?:\s+that)?|were)\s+(?:i|we|my\s+\w+)\b|had\s+(?:i|we)\b|hypothetically|say\s+(?:i|we|my)\b|if\s+only|i\s+wish\s+(?:i|we|my)\b)"
    r"|.*\bif\s+(?:i|we|my\s+\w+)\s+(?:were|was|had|lived|did|could|would|ever|got|went|moved|owned|became|worked"
    r"|won|knew|found|bought|sold|lost|met|quit|\w{3,}ed)\b"
    r"|(?=.*\bif\b)(?=.*\b(?:would|could|might)\b)(?!.*\b(?:would|'d)\s+(?:like|love|prefer)\b)",
    re.IGNORECASE | re.DOTALL,
)
_SUPPOSED_FURTHER = re.compile(
    r"(?:then\b|.*\b(?:would|could|might|wouldn't|couldn't)\b|.*\w'd\b)", re.IGNORECASE | re.DOTALL
)
_WHEN_ALONE = re.compile(r"(?:on|at|around|about|by)\b", re.IGNORECASE)
_PERSON = re.compile(r"(?:he|she|they|his|her|hers|their|theirs|both|it\s+is\s+called|it's\s+called)\b", re.IGNORECASE)
_TOLD_FIRST = re.compile(
    r"((?:(?:so|well|hi|hey|hello|ok|okay|yes|no)\b[\s,.!]*)*(?:i|i'm|i've|i'd|my|we|we're|we've|our)\b[^?]*?[,;:-]\s*)"
    r"(?:(?:so|and|but|then)\s+)?(?:can|could|would|will|do|does|did|is|are|what|where|when|which|who|how|should"
    r"|may|any)\b"
    r"[^?]*\?\W*$",
    re.IGNORECASE,
)
"""A statement, and a question after it."""
_OPENING_QUOTES, _CLOSING_QUOTES = '"“„«', '"”“»'


def extract_statements(text: str) -> list[str]:
    """Return the statements of a user in a text.

    Questions, requests, pleasantries, reactions to the other speaker, suppositions, code, tracebacks and quotations are
    left out. Each sentence is a statement, together with following sentences that refer back to it.

    >>> extract_statements("Hi! I have a dog. He is called Rex. What does he eat?")
    ['I have a dog. He is called Rex.']
    >>> extract_statements("Please remember that I eat no meat.")
    ['Please remember that I eat no meat.']
    >>> extract_statements("I see. If I lived in Lyon, I would eat out.")
    []
    """
    statements: list[str] = []
    continues = is_supposed = False
    lines = remove_pasted_text(text).splitlines()
    for sentence in (_told_first(each) for line in lines for each in split_sentences(_BULLET.sub("", line))):
        said = _skip_opening(sentence)
        goes_on = is_supposed and not _REMEMBER.match(said) and bool(_SUPPOSED_FURTHER.match(said))
        is_supposed = bool(_SUPPOSED.match(said) or _SUPPOSED.match(sentence)) or goes_on
        is_talk = _laughs_at_other(sentence, said) or _is_reaction(said, continues=continues)
        if is_supposed or not is_statement(sentence) or is_talk:
            continues = False
        elif continues and words(sentence)[0] in _BACK_REFERENCES:
            statements[-1] = f"{statements[-1]} {sentence}"
        else:
            statements.append(cut_opener(sentence) if is_standing_wish(sentence) else sentence)
            continues = True
    own = [each for each in statements if _FIRST_PERSON.search(each)]
    return own if len(statements) >= _PASTED_FROM and 2 * len(own) < len(statements) else statements


def is_statement(sentence: str) -> bool:
    """Check that a sentence states something that may be worth remembering, or is a standing wish.

    >>> [is_statement(each) for each in ("I live in Oslo.", "Where do I live?", "Tell me a joke.", "Thanks a lot!")]
    [True, False, False, False]
    """
    if not set(content_words(sentence)) - _POLITE_WORDS or _GREETING.match(sentence):
        return False
    if _REMEMBER.match(sentence) or is_standing_wish(sentence):
        return True
    return not (_is_question(sentence) or _REQUEST.match(sentence))


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
    return match[1].rstrip(" ,;:-") + "." if match else sentence


def _is_banter(said: str) -> bool:
    """Return whether each clause of a sentence is small talk."""
    parts = (clause.strip(_AROUND) for clause in _CLAUSES.split(said.replace("’", "'")))
    clauses = [clause for clause in parts if clause]
    return bool(clauses) and all(_BANTER.fullmatch(clause) for clause in clauses)


def _has_no_content(said: str) -> bool:
    """Return whether a sentence needs another one to say anything: "Loved it.", "Moved!" or "Not yet."."""
    content = set(content_words(said)) - _POLITE_WORDS
    told = content - _ADVERBS
    if not content or len(told) > 1 or _FIRST_PERSON.search(said):
        return not content
    values = parse_values(said)
    if values.numbers or values.days or values.names:
        return False
    has_subject = words(said)[0] in _BACK_REFERENCES
    return not told or _OF_IT.match(said) is not None or (not has_subject and _is_bare_past(*told))


def _is_bare_past(word: str) -> bool:
    """Return whether a word is a verb in the past tense, but for those that tell what somebody is now: "retired"."""
    is_past = word in _BARE_PASTS or (word.endswith("ed") and len(word) > 4)
    return is_past and word not in NO_EVENTS | _TOLD_ALONE


def _laughs_at_other(sentence: str, said: str) -> bool:
    """Return whether a sentence opens with laughter and speaks of the other speaker: "Haha, you know me too well"."""
    is_of_other = said.lower().startswith(("you ", "you're ", "you’re ")) and not _SPEAKER.search(said)
    values = parse_values(said)
    return is_of_other and _LAUGHS.match(sentence) is not None and not (values.numbers or values.days or values.names)


def _is_reaction(said: str, *, continues: bool) -> bool:
    """Return whether a sentence, without its opening words, reacts, commands or quotes, and tells nothing lasting.

    One that `continues` a statement may speak of others: "He is called Rex."
    """
    if _REMEMBER.match(said) or is_standing_wish(said):
        return False
    if _REACTION.match(said) or _is_banter(said) or _is_quotation(said) or _has_no_content(said):
        return True
    if _COMMAND_ABOUT_USER.match(said) or _REQUEST.match(said):
        return True
    if _FIRST_PERSON.search(said):
        return said.lower().startswith("kindly ")
    values = parse_values(said)
    if _COMMAND.match(said) or _WHEN_ALONE.match(said):
        return True
    if values.numbers or values.days or values.names or (continues and _PERSON.match(said)):
        return False
    return bool(_OF_OTHERS.match(said))
