"""Parses what a statement claims, by rules for English: of whom and what, and whether it announces a change."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from meve.components._repeated_text import expand_contractions, join_words
from meve.components.lexical.analyzers import FUNCTION_WORDS, stem
from meve.memory._contradiction import lexicon
from meve.memory._contradiction.values import normalise_values

_TOKEN = re.compile(r"[-+]?\d(?:[\w.:/-]*\w|%)?%?|[^\W\d_](?:\w|['’](?=\w)|(?<=\w)[+#])*", re.UNICODE)
_OWNER = re.compile(r"\b(?!(?:It|That|There|He|She|What|Here|Who|Let)['’])([A-Z][\w-]{1,50})['’]s\b")
NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]+")
_CLAUSE = re.compile(r"[.,;!?]|\b(?:so|because|but)\b|\band (?=(?:the|my|our|they|he|she|it)\b)")
_LITTLE = frozenset(("a", "an", "the", "please"))
_DETERMINERS = frozenset(("a", "an", "the", "my", "our", "your", "his", "her", "its", "their"))
_PREPOSITIONS = frozenset(("at", "in", "on", "since", "after", "from", "for", "during", "by"))
_BEGINNINGS = frozenset(("my", "our", "his", "her", "their", "i", "we", "he", "she", "they"))
_NEGATIONS = frozenset(("not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "hardly"))
_NO_ROLES = FUNCTION_WORDS - {"me"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The parsed content of a statement. Words are in lower case; numbers, times and dates have one form each."""

    words: tuple[str, ...]
    """All words except articles, in their order."""
    said: str
    """All that counts in comparing texts: its words and signs, joined."""
    is_question: bool
    subject: tuple[str, ...]
    """The words before the first verb."""
    first_verb: str
    """Empty if it has none."""
    topics: frozenset[str]
    """Stems of nouns and other content words, without values, common verbs and words of liking."""
    people: frozenset[str]
    """Persons close to the user: `mother`, `son` and so on."""
    names: frozenset[str]
    """Capitalised words, except the first of a sentence."""
    owners: frozenset[str]
    """Names in the possessive, such as "Lena's"."""
    denied: frozenset[str]
    """The topics that follow a negation."""
    relations: frozenset[str]
    """Words for a relation that has one name at a time, such as "live" and "boss"."""
    liked: int
    """1 for liking, -1 for disliking, 0 for neither."""
    cues: frozenset[str]
    """The words by which it announces a change, or that something holds now."""
    changed: bool
    """It says that something changed or ended."""
    ended: bool
    """It says that something ended."""
    changed_people: frozenset[str]
    """The persons of whom it says so."""
    introduces: bool
    """It introduces a thing: "I have a meeting"."""
    added: bool
    """It adds to what holds already."""
    passing: bool
    """It tells of a plan or of an exception."""
    past: bool
    """It tells of the past."""
    is_event: bool
    """Its first verb is in the past tense."""
    has_one_name: bool
    """It tells of such a relation."""

    @property
    def subject_names(self) -> frozenset[str]:
        """The names in the subject."""
        return self.names.intersection(self.subject)

    @property
    def head(self) -> frozenset[str]:
        """The topics in the subject."""
        return frozenset(map(stem, self.subject)) & self.topics


def parse_claim(text: str) -> Claim:
    """Return what a statement claims."""
    plain = expand_contractions(normalise_values(text))
    tokens = [word.lower() for word in _TOKEN.findall(plain)]
    words = tuple(word for word in tokens if word not in _LITTLE)
    first_verb, verb = _find_verb(tokens)
    stems = {word: stem(word) for word in words}
    liking = (not lexicon.LIKED.isdisjoint(stems.values())) - (not lexicon.DISLIKED.isdisjoint(stems.values()))
    nouns = {word for before, word in pairwise(tokens) if before in _DETERMINERS}
    marked = (lexicon.VERBS - nouns) | lexicon.PAST_VERBS | lexicon.CALENDAR | FUNCTION_WORDS
    content = frozenset(stems[word] for word in words if word not in marked and word[0].isalpha())
    topics = content - lexicon.LIKED - lexicon.DISLIKED
    return Claim(
        words=words,
        said=join_words(plain),
        is_question=text.rstrip().endswith("?"),
        subject=_skip_phrase(words[:first_verb]),
        first_verb=verb,
        topics=topics,
        people=find_people(words),
        names=frozenset(name.lower() for name in NAME.findall(plain)) - lexicon.CALENDAR,
        owners=frozenset(name.lower() for name in _OWNER.findall(text)),
        denied=frozenset(map(stem, _find_denied(plain))) & topics,
        liked=liking if _NEGATIONS.isdisjoint(words) else -liking,
        cues=frozenset(
            match.group().lower()
            for pattern in (lexicon.ENDED, lexicon.CHANGED, lexicon.CURRENT)
            for match in pattern.finditer(plain)
        ),
        changed=(lexicon.ENDED.search(plain) or lexicon.CHANGED.search(plain)) is not None,
        ended=lexicon.ENDED.search(plain) is not None,
        changed_people=_find_changed_people(plain),
        introduces=lexicon.INTRODUCED.search(plain) is not None,
        added=lexicon.ADDED.search(plain) is not None,
        passing=lexicon.PASSING.search(plain) is not None,
        past=lexicon.PAST.search(plain) is not None,
        is_event=_is_event(words),
        relations=lexicon.ONE_NAME.intersection(words),
        has_one_name=not lexicon.ONE_NAME.isdisjoint(words) or lexicon.ONE_NAME_PHRASE.search(plain) is not None,
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


def _find_changed_people(text: str) -> frozenset[str]:
    """Return the persons in the subject of the first clause that says that something changed."""
    announcing = next(
        (
            clause
            for clause in _CLAUSE.split(text.lower())
            if lexicon.ENDED.search(clause) or lexicon.CHANGED.search(clause)
        ),
        "",
    )
    tokens = _TOKEN.findall(announcing)
    return find_people([word for word in tokens if word not in _LITTLE][: _find_verb(tokens)[0]])


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
    return bool(one.said) and one.said == other.said


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
        or any(one.words.count(word) != other.words.count(word) for word in mine & theirs if _is_role(word))
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
    return word in lexicon.ONE_NAME or stem(word) in lexicon.KIN


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
