"""Parses what a statement claims, by rules for English: of whom and what, and whether it announces a change."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

from meve._lazy_field import LazyField
from meve.components._repeated_text import expand_contractions, find_letters, join_words
from meve.components.lexical.analyzers import FUNCTION_WORDS, content_words, stem
from meve.memory._contradiction import lexicon
from meve.memory._contradiction.values import normalise_values

_TOKEN = re.compile(r"[^\W\d_]\w*(?:(?:['’](?=\w)|(?<=\w)[+#])\w*)*|[-+]?\d(?:[\w.:/-]*\w|%)?%?")
_OWNER = re.compile(r"\b(?!(?:It|That|There|He|She|What|Here|Who|Let)['’])([A-Z][\w-]{1,50})['’]s\b")
NAME = re.compile(r"[A-Z](?<=\b[A-Z])(?<![.!?:]\s[A-Z])(?<!^[A-Z])[\w'’-]+")
"""A capitalised word, except the first of a sentence; begins with the letter, by which it is found fastest."""
_CLAUSE = re.compile(r"[.,;!?]|\b(?:so|because|but)\b|\band (?=(?:the|my|our|they|he|she|it)\b)")
_SCLEROSIS = re.compile(r"\b(?:MS|ms)\b")
_FREE = re.compile(r"\b(\w+)-free\b|\bfree (?:of|from) (\w+)|\bnon-(\w+?)(?:ic)?\b")
_FORMER = re.compile(r"(?:, not|\binstead of|\brather than) ([^\W\d][\w'’-]*(?: [^\W\d][\w'’-]*){0,3})")
_GIVEN_UP = re.compile(
    r"\b(?:(?:switched|changed|moved) from|done with|"
    r"(?:replaced|swapped|traded)(?! (?:at|by|for|in|last|on|this|to|today|with|yesterday)\b)) "
    r"([^\W\d][\w'’-]*(?: (?!to\b|for\b|with\b|by\b)[^\W\d][\w'’-]*){0,3})"
)
_THINGS = re.compile(r"\b(?:moved|changed|replaced|upgraded) (?:the|my|our) ([\w-]+(?: [\w-]+)?)", re.I)
_LITTLE = frozenset(("a", "an", "the", "please"))
_DETERMINERS = frozenset(("a", "an", "the", "my", "our", "your", "his", "her", "its", "their"))
_PREPOSITIONS = frozenset(("at", "in", "on", "since", "after", "from", "for", "during", "by"))
_BEGINNINGS = frozenset(("my", "our", "his", "her", "their", "i", "we", "he", "she", "they"))
_NEGATIONS = frozenset(("not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "hardly"))
_LASTING = frozenset(("since", "for"))
_AVOIDING = frozenset(("avoid", "avoids"))
_NO_ROLES = FUNCTION_WORDS - {"me"}
_CONTRASTING = frozenset().union(*lexicon.CONTRASTS, *lexicon.TIMES_OF_DAY)
_NO_CONTENT = lexicon.CALENDAR | {"", "now", "get", "gets", "got"}
_DIGITS = "0123456789.,"
_NO_TOPICS = lexicon.PAST_VERBS | lexicon.CALENDAR | FUNCTION_WORDS


class Claim:
    """The parsed content of a statement; each field is parsed when it is first read.

    Words are in lower case; numbers, times and dates have one form each.

    Args:
        text: the statement.
        plain: the same with normalised values.
    """

    def __init__(self, text: str, plain: str) -> None:
        self._text = text
        self._plain = expand_contractions(plain)

    @LazyField
    def plain(self) -> str:
        """The text in lower case, with its punctuation."""
        return self._plain.lower()

    @LazyField
    def words(self) -> tuple[str, ...]:
        """All words except articles, in their order."""
        return tuple(word for word in self._tokens if word not in _LITTLE)

    @LazyField
    def word_set(self) -> frozenset[str]:
        """The words, without their order."""
        return frozenset(self.words)

    @LazyField
    def said(self) -> str:
        """All that counts in comparing texts: its words and signs, joined."""
        return join_words(self._plain)

    @LazyField
    def letters(self) -> bytes | None:
        """Letters and digits that tell most texts of other words apart, without joining these."""
        return find_letters(self._plain)

    @LazyField
    def is_question(self) -> bool:
        """It ends with a question mark."""
        return self._text.rstrip().endswith("?")

    @LazyField
    def subject(self) -> tuple[str, ...]:
        """The words before the first verb."""
        return _skip_phrase(self.words[: self._first[0]])

    @LazyField
    def first_verb(self) -> str:
        """Empty if it has none."""
        return self._first[1]

    @LazyField
    def topics(self) -> frozenset[str]:
        """Stems of nouns and other content words, without values, common verbs and words of liking."""
        nouns = {word for before, word in pairwise(self._tokens) if before in _DETERMINERS}
        content = {
            stem(word)
            for word in self.words
            if word not in _NO_TOPICS and word[0].isalpha() and (word in nouns or word not in lexicon.VERBS)
        }
        return frozenset(content - lexicon.LIKED - lexicon.DISLIKED)

    @LazyField
    def content(self) -> frozenset[str]:
        """Stems of its words, units and persons, by which two statements may share a topic or an attribute."""
        words = {word.lstrip(_DIGITS) for word in content_words(self._plain)} - _NO_CONTENT
        return frozenset(lexicon.KIN.get(s, s) for s in map(stem, words))

    @LazyField
    def people(self) -> frozenset[str]:
        """Persons close to the user: `mother`, `son` and so on."""
        return find_people(self.words)

    @LazyField
    def names(self) -> frozenset[str]:
        """Capitalised words, except the first of a sentence."""
        return frozenset(name.lower() for name in NAME.findall(self._plain)) - lexicon.CALENDAR

    @LazyField
    def owners(self) -> frozenset[str]:
        """Names in the possessive, such as "Lena's"."""
        return frozenset(name.lower() for name in _OWNER.findall(self._text))

    @LazyField
    def denied(self) -> frozenset[str]:
        """The topics that follow a negation."""
        return frozenset(map(stem, _find_denied(self._plain))) & self.topics

    @LazyField
    def is_negative(self) -> bool:
        """It says what somebody doesn't do or avoids."""
        return not _NEGATIONS.isdisjoint(self.words) or not _AVOIDING.isdisjoint(self.words)

    @LazyField
    def free_of(self) -> frozenset[str]:
        """The stems of what something is without: "alcohol" in "alcohol-free" and in "non-alcoholic"."""
        return frozenset(stem(word) for match in _FREE.finditer(self._plain.lower()) for word in match.groups() if word)

    @LazyField
    def former(self) -> frozenset[str]:
        """The stems of what it names as no longer true: "green" in "blue, not green" and in "blue instead of green"."""
        return _find_objects(_FORMER, self._plain)

    @LazyField
    def given_up(self) -> frozenset[str]:
        """The stems of what it tells to have given up: "vim" in "I switched from vim to Helix"."""
        return _find_objects(_GIVEN_UP, self._plain)

    @LazyField
    def relations(self) -> frozenset[str]:
        """Words for a relation that has one name at a time, such as "live" and "boss"."""
        return lexicon.ONE_NAME.intersection(self.words)

    @LazyField
    def liked(self) -> int:
        """1 for liking, -1 for disliking, 0 for neither."""
        if lexicon.UNBEARABLE.search(self._plain):
            return -1
        stems = set(map(stem, self.words))
        liking = (not lexicon.LIKED.isdisjoint(stems)) - (not lexicon.DISLIKED.isdisjoint(stems))
        return liking if _NEGATIONS.isdisjoint(self.words) else -liking

    @LazyField
    def illnesses(self) -> frozenset[str]:
        """The words for allergies and chronic illnesses; the title "Ms" is none."""
        illnesses = lexicon.HEALTH & self.word_set
        return illnesses if _SCLEROSIS.search(self._text) else illnesses - {"ms"}

    @LazyField
    def cues(self) -> frozenset[str]:
        """The words by which it announces a change, or that something holds now."""
        return self._ending | self._changing | lexicon.CURRENT.find_all(self._plain)

    @LazyField
    def changed(self) -> bool:
        """It says that something changed or ended."""
        return bool(self._ending or self._changing)

    @LazyField
    def ended(self) -> bool:
        """It says that something ended."""
        return bool(self._ending)

    @LazyField
    def changed_people(self) -> frozenset[str]:
        """The persons of whom it says so."""
        return _find_changed_people(self._plain)

    @LazyField
    def changed_things(self) -> frozenset[str]:
        """The stems of the things that somebody moved or changed."""
        words = {word for things in _THINGS.findall(self._plain) for word in things.lower().split()}
        return frozenset(map(stem, words - FUNCTION_WORDS))

    @LazyField
    def introduces(self) -> bool:
        """It introduces a thing: "I have a meeting"."""
        return lexicon.INTRODUCED.search(self._plain) is not None

    @LazyField
    def added(self) -> bool:
        """It adds to what holds already."""
        return lexicon.ADDED.stand_in(self._plain)

    @LazyField
    def is_partial(self) -> bool:
        """It tells of a part of a group."""
        return lexicon.PART.search(self._plain) is not None

    @LazyField
    def is_unchanged(self) -> bool:
        """It says that something is as before."""
        return lexicon.UNCHANGED.stand_in(self._plain)

    @LazyField
    def names_further(self) -> bool:
        """It tells of one more of a kind: "a second tattoo"."""
        return lexicon.FURTHER.search(self._plain) is not None

    @LazyField
    def passing(self) -> bool:
        """It tells of a plan or of an exception."""
        return lexicon.PASSING.stand_in(self._plain)

    @LazyField
    def is_planned(self) -> bool:
        """It tells of a future that isn't there yet: "we are moving in June"."""
        return lexicon.PLANNED.stand_in(self._plain)

    @LazyField
    def is_habit(self) -> bool:
        """It tells what somebody does again and again."""
        return lexicon.HABIT.search(self._text) is not None

    @LazyField
    def past(self) -> bool:
        """It tells of the past."""
        return lexicon.PAST.stand_in(self._plain)

    @LazyField
    def is_event(self) -> bool:
        """Its first verb is in the past tense."""
        return _is_event(self.words)

    @LazyField
    def has_happened(self) -> bool:
        """It tells of an event or an experience of the past, which nothing ends: "we spent ten days in Spain"."""
        lasts = self.is_negative or not _LASTING.isdisjoint(self.words)
        if self.is_event or (not lasts and lexicon.EXPERIENCE.search(self._plain)):
            return True
        return any(word in lexicon.IRREGULAR_PASTS for word in takewhile(lambda w: w not in lexicon.VERBS, self.words))

    @LazyField
    def has_one_name(self) -> bool:
        """It tells of such a relation."""
        return bool(self.relations) or lexicon.ONE_NAME_PHRASE.search(self._plain) is not None

    @LazyField
    def gives_value(self) -> bool:
        """It has a verb of which a thing has one value, and tells neither of an event nor of one of several persons."""
        verbs = self.words if self.first_verb in ("do", "does") else (self.first_verb,)  # a question with its answer
        return not (lexicon.MEASURES.isdisjoint(verbs) or self.is_event) and self.is_identified

    @LazyField
    def gives_name(self) -> bool:
        """It tells of a relation that has one name at a time, and neither of the past nor of one of several persons."""
        return self.has_one_name and not self.past and self.is_identified

    @LazyField
    def is_identified(self) -> bool:
        """It is about no person of whom there may be several, such as "my brother"."""
        return self.people <= lexicon.UNIQUE_KIN or not self.names.isdisjoint(self.subject)

    @LazyField
    def subject_names(self) -> frozenset[str]:
        """The names in the subject."""
        return self.names.intersection(self.subject)

    @LazyField
    def head(self) -> frozenset[str]:
        """The topics in the subject."""
        return frozenset(map(stem, self.subject)) & self.topics

    @LazyField
    def bare_head(self) -> frozenset[str]:
        """The topics in the subject, without names and without "new", which tells no other thing."""
        return self.head.difference(map(stem, self.names)) - {"new"}

    @LazyField
    def subject_people(self) -> frozenset[str]:
        """The persons close to the user in the subject."""
        return find_people(self.subject)

    @LazyField
    def subject_numbers(self) -> frozenset[str]:
        """The words with a digit in the subject."""
        return frozenset(word for word in self.subject if any(letter.isdigit() for letter in word))

    @LazyField
    def actors(self) -> frozenset[str]:
        """The words of the subject that may be objects of another statement."""
        return frozenset("me" if word in ("i", "we", "i'd", "we'd") else word for word in self.subject) - _NO_ROLES

    @LazyField
    def objects(self) -> frozenset[str]:
        """The words after the subject."""
        return frozenset("me" if word == "us" else word for word in self.words[len(self.subject) :])

    @LazyField
    def roles(self) -> Counter[str]:
        """How often it names each relation and each person close to the user."""
        return Counter(word for word in self.words if word in lexicon.ONE_NAME or stem(word) in lexicon.KIN)

    @LazyField
    def contrasts(self) -> frozenset[str]:
        """The words that tell two things, directions or times of the day apart."""
        return _CONTRASTING & self.word_set

    @LazyField
    def _tokens(self) -> list[str]:
        return [word.lower() for word in _TOKEN.findall(self._plain)]

    @LazyField
    def _first(self) -> tuple[int, str]:
        return _find_verb(self._tokens)

    @LazyField
    def _ending(self) -> frozenset[str]:
        return lexicon.ENDED.find_all(self._plain)

    @LazyField
    def _changing(self) -> frozenset[str]:
        return lexicon.CHANGED.find_all(self._plain)


def parse_claim(text: str) -> Claim:
    """Return what a statement claims."""
    return Claim(text, normalise_values(text))


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
            if lexicon.ENDED.stand_in(clause) or lexicon.CHANGED.stand_in(clause)
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
    if one.letters != other.letters and one.letters is not None and other.letters is not None:
        return False
    return bool(one.said) and one.said == other.said


def find_people(words: Iterable[str]) -> frozenset[str]:
    """Return the persons close to the user among some words: `mother`, `son` and so on."""
    return frozenset(lexicon.KIN[s] for s in map(stem, words) if s in lexicon.KIN)


def _find_objects(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    """Return the stems of the words that a pattern captures, without function words."""
    words = (word for match in pattern.finditer(text.lower()) for word in match[1].split())
    return frozenset(stem(word) for word in words if word not in FUNCTION_WORDS)


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
