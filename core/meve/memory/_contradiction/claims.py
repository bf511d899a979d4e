"""Parses what a statement claims, by rules for English: of whom, which attribute, and whether it announces a change."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from meve.components.lexical.analyzers import FUNCTION_WORDS, stem
from meve.memory._contradiction import lexicon
from meve.memory._contradiction.values import normalise_values

_TOKEN = re.compile(r"[-+]?\d(?:[\w.:/-]*\w|%)?%?|[^\W\d_](?:\w|['’](?=\w)|(?<=\w)[+#])*", re.UNICODE)
_OWNER = re.compile(r"\b(?!(?:It|That|There|He|She|What|Here|Who|Let)['’])([A-Z][\w-]+)['’]s\b")
NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]+")
_CLAUSE = re.compile(r"[.,;!?]|\b(?:so|because|but)\b|\band (?=(?:the|my|our|they|he|she|it)\b)")
_USER_CLAUSE = re.compile(r"\W*(?:i|we)\b")
_TARGET = re.compile(r"\bto (\d+)\b(?![:-]|\.\d)")
_SYMBOL = re.compile(r"[^\w\s.,;:!?'’\"“”„()/&-]")
_CONTRACTIONS = (
    (re.compile(r"\b(ca)n['’]t\b", re.I), r"can not"), (re.compile(r"\bwon['’]t\b", re.I), "will not"),
    (re.compile(r"\bcannot\b", re.I), "can not"), (re.compile(r"n['’]t\b", re.I), " not"),
    (re.compile(r"\b(i)['’]?m\b", re.I), r"\1 am"), (re.compile(r"['’]re\b", re.I), " are"),
    (re.compile(r"['’]ve\b", re.I), " have"), (re.compile(r"['’]ll\b", re.I), " will"),
    (re.compile(r"\b(it|that|there|he|she|what)['’]s\b", re.I), r"\1 is"), (re.compile(r"['’]s\b", re.I), ""),
)  # fmt: skip
_LITTLE = frozenset(("a", "an", "the", "please"))
_DETERMINERS = frozenset(("a", "an", "the", "my", "our", "your", "his", "her", "its", "their"))
_PREPOSITIONS = frozenset(("at", "in", "on", "since", "after", "from", "for", "during", "by"))
_BEGINNINGS = frozenset(("my", "our", "his", "her", "their", "i", "we", "he", "she", "they"))
_NEGATIONS = frozenset(("not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "hardly"))
_NO_ROLES = FUNCTION_WORDS - {"me"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a statement claims. Words are in lower case, values in one form."""

    words: tuple[str, ...]
    """All words except articles, in their order."""
    symbols: str
    """Signs other than punctuation, and a question mark."""
    subject: tuple[str, ...]
    """The words before the first verb."""
    topics: frozenset[str]
    """Stems of content words, without values and words of change."""
    attributes: frozenset[str]
    hints: frozenset[str]
    """Attributes that it may tell about."""
    values: frozenset[str]
    """Numbers, times, days and months, in one form."""
    people: frozenset[str]
    """Persons close to the user: `mother`, `son` and so on."""
    names: frozenset[str]
    """Capitalised words, except the first of a sentence."""
    owners: frozenset[str]
    """Names in the possessive ("Lena's") and names that begin the statement."""
    negated: bool
    denied: frozenset[str]
    """The topics that follow a negation."""
    denied_attributes: frozenset[str]
    """The attributes that it may tell about and that follow a negation."""
    liked: int
    """1 for liking, -1 for disliking, 0 for neither."""
    targets: frozenset[str]
    """Numbers after "to", as in "moved to 10"."""
    change: frozenset[str]
    """The words of the subject of the clause that says that something changed or ended."""
    change_stems: frozenset[str]
    """The stems of all words that tell of the change."""
    cues: frozenset[str]
    """The words by which it announces a change, something new, or that something holds now."""
    changed: bool
    """It says that something changed or ended."""
    ended: bool
    """It says that something ended."""
    acquired: bool
    """It says that something is new."""
    reset: frozenset[str]
    """The stems of what it gives another value."""
    succeeded: bool
    """It says that something took the place of another."""
    current: bool
    """It says that something holds now."""
    introduces: bool
    """It introduces a thing: "I have a meeting"."""
    first_verb: str
    """Empty if it has none."""
    added: bool
    """It adds to what holds already."""
    passing: bool
    """It tells of a plan or of an exception."""
    past: bool
    """It tells of the past."""
    is_event: bool
    """Its first verb is in the past tense."""

    @property
    def subject_names(self) -> frozenset[str]:
        """The names in the subject."""
        return self.names.intersection(self.subject)

    @property
    def predicate(self) -> frozenset[str]:
        """The topics that aren't in the subject."""
        return self.topics.difference(map(stem, self.subject))

    @property
    def head(self) -> frozenset[str]:
        """The topics in the subject, except words for an attribute."""
        named = (word for word in self.subject if word not in lexicon.ATTRIBUTES and word not in lexicon.HINTS)
        return frozenset(map(stem, named)) & self.topics


def parse_claim(text: str) -> Claim:
    """Return what a statement claims."""
    plain = normalise_values(text)
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    tokens = [word.lower() for word in _TOKEN.findall(plain)]
    words = tuple(word for word in tokens if word not in _LITTLE)
    first_verb, verb = _find_verb(tokens)
    stems = {word: stem(word) for word in words}
    liking = (not lexicon.LIKED.isdisjoint(stems.values())) - (not lexicon.DISLIKED.isdisjoint(stems.values()))
    negated = not _NEGATIONS.isdisjoint(words)
    if lexicon.WEARY.search(plain):
        liking, negated = -1, False
    nouns = {word for before, word in pairwise(tokens) if before in _DETERMINERS}
    marked = lexicon.MARKED - (nouns & lexicon.VERBS)
    content = {
        stems[word] for word in words
        if word not in FUNCTION_WORDS and not word[0].isdigit() and word[0] not in "+-" and word not in marked
    }  # fmt: skip
    subject = _skip_phrase(words[:first_verb])
    denied = _find_denied(plain)
    change, change_stems = _find_change(plain)
    return Claim(
        words=words,
        symbols="".join(_SYMBOL.findall(plain)) + "?" * text.rstrip().endswith("?"),
        subject=subject,
        topics=frozenset(content - lexicon.LIKED - lexicon.DISLIKED),
        attributes=_find_attributes(words, subject, plain),
        hints=frozenset(lexicon.HINTS[word] for word in words if word in lexicon.HINTS),
        values=frozenset(_numbers(words) | lexicon.DAYS.intersection(words)),
        people=find_people(words),
        names=frozenset(name.lower() for name in NAME.findall(plain)) - lexicon.DAYS,
        owners=frozenset(name.lower() for name in _OWNER.findall(text)),
        negated=negated,
        denied=frozenset(map(stem, denied)) & content,
        denied_attributes=frozenset(
            kind[word] for word in denied for kind in (lexicon.ATTRIBUTES, lexicon.HINTS) if word in kind
        ),
        liked=-liking if negated else liking,
        targets=frozenset(_TARGET.findall(plain)),
        change=change,
        change_stems=change_stems,
        cues=frozenset(
            match.group().lower()
            for pattern in (lexicon.CHANGED, lexicon.CURRENT, lexicon.ACQUIRED)
            for match in pattern.finditer(plain)
        ),
        changed=lexicon.CHANGED.search(plain) is not None,
        ended=lexicon.ENDED.search(plain) is not None,
        acquired=lexicon.ACQUIRED.search(plain) is not None,
        reset=frozenset(stem(word) for match in lexicon.RESET.findall(plain) for word in match.lower().split()),
        succeeded=lexicon.SUCCEEDED.search(plain) is not None,
        current=lexicon.CURRENT.search(plain) is not None,
        introduces=lexicon.INDEFINITE.search(plain) is not None,
        first_verb=verb,
        added=lexicon.ADDED.search(plain) is not None,
        passing=lexicon.PASSING.search(plain) is not None,
        past=lexicon.PAST.search(plain) is not None,
        is_event=_is_event(words),
    )


def _find_verb(tokens: Sequence[str]) -> tuple[int, str]:
    """Return the first verb and its place among the words other than articles; if there is none, the fourth place."""
    place = 0
    for before, word in zip(("", *tokens), tokens, strict=False):
        if word in lexicon.VERBS and before not in _DETERMINERS:
            return place, word
        place += word not in _LITTLE
    return min(place, 3), ""


def _skip_phrase(subject: tuple[str, ...]) -> tuple[str, ...]:
    """Return a subject without a phrase before it: "at table my cousin"."""
    places = [n for n, word in enumerate(subject) if word in _BEGINNINGS]
    return subject[places[-1] :] if places and subject[0] in _PREPOSITIONS else subject


def _find_change(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the subject of the first clause that announces a change, and the stems of all that tell of the change."""
    clauses = _CLAUSE.split(text.lower())
    announcing = [clause for clause in clauses if lexicon.CHANGED.search(clause)]
    if not announcing:
        return frozenset(), frozenset()
    told = [
        c
        for c in clauses
        if c in announcing or _USER_CLAUSE.match(c) or lexicon.CURRENT.search(c) or lexicon.REVISED.search(text)
    ]
    stems = frozenset(stem(word) for clause in told for word in _TOKEN.findall(clause))
    tokens = _TOKEN.findall(announcing[0])
    words = [word for word in tokens if word not in _LITTLE]
    if not {"me", "us"}.isdisjoint(words):
        return frozenset("i"), stems
    return frozenset(words[: _find_verb(tokens)[0]]), stems


def _find_attributes(words: Sequence[str], subject: Sequence[str], text: str) -> frozenset[str]:
    found = {lexicon.ATTRIBUTES[word] for word in words if word in lexicon.ATTRIBUTES}
    found |= {lexicon.HINTS[word] for word in subject if word in lexicon.HINTS}
    found |= {name for name, pattern in lexicon.PHRASES.items() if pattern.search(text)}
    return frozenset(found | ({"place"} if lexicon.PLACE.search(text) else set()))


def _find_denied(text: str) -> set[str]:
    """Return the words that follow a negation in its clause."""
    denied: set[str] = set()
    for clause in re.split(r"[,.;:!?]| (?:but|and|although|so|because|since|until|after|before|during) ", text.lower()):
        words = _TOKEN.findall(clause)
        first = next((n for n, word in enumerate(words) if word in _NEGATIONS), len(words))
        denied.update(words[first + 1 :])
    return denied


def have_equal_words(one: Claim, other: Claim) -> bool:
    """Return whether two statements say the same in the same words, values and signs."""
    return one.words == other.words and one.symbols == other.symbols


def have_shared_topic(one: Claim, other: Claim) -> bool:
    """Return whether the statements share a topic or an attribute."""
    mine, theirs = one.attributes | one.hints, other.attributes | other.hints
    return not (one.topics.isdisjoint(other.topics) and mine.isdisjoint(theirs))


def concern_different_things(one: Claim, other: Claim) -> bool:
    """Return whether the statements are about different persons, things or directions, or swap two roles."""
    mine, theirs = set(one.words), set(other.words)
    return (
        bool(one.people and other.people and one.people.isdisjoint(other.people))
        or bool(find_people(one.subject) - other.people or find_people(other.subject) - one.people)
        or bool(one.owners - theirs and other.owners - mine)
        or bool(mine & lexicon.QUALIFIERS) != bool(theirs & lexicon.QUALIFIERS)
        or bool(one.subject_names - theirs and other.subject_names - mine)
        or _have_contrast(lexicon.CONTRASTS, mine, theirs)
        or _swap_roles(one, other)
        or _have_other_numbers(one.subject, other.subject)
        or _is_narrower(one, other)
        or _is_narrower(other, one)
        or any(one.words.count(w) != other.words.count(w) for w in mine & theirs if _is_role(w))
    )


def have_different_times(one: Claim, other: Claim) -> bool:
    """Return whether the statements name different times of the day."""
    return _have_contrast(lexicon.TIMES_OF_DAY, set(one.words), set(other.words))


def _have_contrast(groups: Iterable[frozenset[str]], mine: set[str], theirs: set[str]) -> bool:
    return any((group & mine) - theirs and (group & theirs) - mine for group in groups)


def _is_narrower(one: Claim, other: Claim) -> bool:
    """Return whether the subject of one statement has all topics of the other's and more, besides names."""
    mine, theirs = (claim.head.difference(map(stem, claim.names)) for claim in (one, other))
    return bool(theirs) and theirs < mine


def _is_role(word: str) -> bool:
    return word in lexicon.ATTRIBUTES or stem(word) in lexicon.KIN


def _have_other_numbers(one: Sequence[str], other: Sequence[str]) -> bool:
    mine, theirs = _numbers(one), _numbers(other)
    return bool(mine and theirs) and mine != theirs


def _numbers(words: Iterable[str]) -> set[str]:
    return {word for word in words if any(letter.isdigit() for letter in word)}


def _swap_roles(one: Claim, other: Claim) -> bool:
    """Return whether the subject of each is an object of the other, or the words are the same in another order."""
    if sorted(one.words) == sorted(other.words) and one.words != other.words:
        return True
    a, b = ({"me" if word in ("i", "we") else word for word in claim.subject} - _NO_ROLES for claim in (one, other))
    mine, theirs = (
        {"me" if word == "us" else word for word in claim.words[len(claim.subject) :]} for claim in (one, other)
    )
    return bool(a and b) and a.isdisjoint(b) and a <= theirs and b <= mine


def find_people(words: Iterable[str]) -> frozenset[str]:
    """Return the persons close to the user among some words: `mother`, `son` and so on."""
    return frozenset(lexicon.KIN[s] for s in map(stem, words) if s in lexicon.KIN)


def _is_event(words: tuple[str, ...]) -> bool:
    """Return whether the first verb is in the past tense, so that the statement tells of one event."""
    if "born" in words:
        return False
    for word in words:
        if word in lexicon.PAST_VERBS or (word.endswith("ed") and len(word) > 4 and word not in lexicon.NO_EVENTS):
            return True
        if word in lexicon.VERBS:
            return False
    return False
