"""Judges updates by rules and by a model that ships with the package, for English."""

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from cachetools import LRUCache

from meve._fork_safety import ForkSafeLock
from meve.components.lexical.analyzers import stem
from meve.components.verifiers.update_model import load_update_model
from meve.errors import ConfigurationError, ModelError, QueryError, wrap_errors
from meve.memory._contradiction.claims import Claim, parse_claim
from meve.memory._contradiction.corrections import find_correction
from meve.memory._contradiction.differences import name_contrasts
from meve.memory._contradiction.lexicon import COPULAS, FOREIGN, NAMING, VERBS, WEEKDAY
from meve.memory._contradiction.news import has_lost, is_new_of_another_kind, is_scrap, moves_another_thing
from meve.memory._contradiction.rules import Contradiction
from meve.memory._contradiction.statements import Statement
from meve.memory._contradiction.tasks import find_done, without_days
from meve.memory._contradiction.updates import (
    CORRECTION,
    DIFFERENT,
    DONE,
    UNREAD,
    WISH,
    RuleUpdateJudge,
    UpdateVerdict,
    tell_of_a_move,
    tells_more_of_a_role,
    tells_of_another,
)
from meve.memory._contradiction.wishes import concern_different_wishes, revoke_wish

logger = logging.getLogger("meve")
ALONE = 0.75
"""The least probability at which the model alone decides that a newer statement replaces an older one."""
LEAST_SIMILAR = 0.2
"""The least cosine of statements that the model reads if no rule finds a change."""
UNANNOUNCED = 0.92
"""The least probability at which the model alone decides if the newer statement has no word of a change."""
EACH_CLAUSE = 0.5
"""The least probability of each clause of an older statement that the model alone replaces."""
AGREED = 0.4
"""The least probability at which a verdict of the rules holds."""
NEAR = 2
"""The number of words in which two statements may differ and yet be judged by the rules alone: "class 2b" and "2c"."""
SIMPLE = 12
"""The most words, without articles, of an older statement that the model alone replaces: a longer one tells more."""
_BEGINNINGS = VERBS | {"i", "we", "he", "she", "it", "they", "my", "our", "his", "her", "their", "the"}
"""Words with which a clause begins after "and"."""
_CLAUSE_MARK = re.compile(
    r"[,;:(\u2013](?!\d)|\)| - |(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\b\w)[.!?]\s|"
    rf"\b(?:and|but)\s(?=(?:{'|'.join(sorted(_BEGINNINGS))})\b)",
    re.I,
)
"""Separators of clauses."""
_LABEL = re.compile(r"^((?:[\w'’-]+ ){0,2}[\w'’-]+): ")
"""A label before a value: "savings goal: 5000"."""
_DETAIL = re.compile(
    r"(?:I think|it|who|which|when|where|because|as|\w+(?:ed|ing))\b|"
    r"(?:(?:just|mostly|only|right|usually) )?"
    r"(?:above|after|at|before|behind|from|in|near|next to|on|opposite|since|till|under|until|"
    r"\w+ (?:days|hours|minutes|times) a)\b(?!.* (?:i|we|he|she|they)\b)",
    re.I,
)
"""The beginning of a clause that only adds to another: "right behind the station", "three days a week"."""
_CALLED = re.compile(r"\b(?:an?|my|our) ((?:[\w-]+ ){1,2})(?:called|named) (\w[\w-]*)")
"""A person or a thing with its name, which the rest of a statement may outlast: "a tutor called Ann"."""
_OF_INTRODUCED = re.compile(r"(?:he|she|it|they|his|her|its|their)\b", re.I)
"""The beginning of a clause about who or what an earlier one introduces."""
_PASSING = re.compile(
    r"\b(?:for (?:\w+ ){0,3}(?:days?|weeks?|months?|years?|summer|winter|semesters?)|until|till|when|while|"
    r"in (?:19|20)\d\d)\b",
    re.I,
)
"""Words of a move that may be over, or long ago: "for a year", "in 2015", "when I was six"."""
_THERE = re.compile(r"\bthere\b(?! (?:is|are|was|were|will|has|have)\b)")
"""A place that another statement names."""
_LEFT = re.compile(r"\b(?:left|leaves?|leaving|moved|moving|quit|gone)\b")
"""Words that end being at a place."""
_KIND = re.compile(r"\b(?:is|are) an? ")
_ENDS_KIND = re.compile(
    r"\b(?:work\w*|jobs?|career|retire[ds]?|quit|hired|fired|laid off|promoted|train\w*|stud(?:y|ies|ied|ying)|degree"
    r"|graduated|finished|passed|died|dead|gone|left|lost|sold|gave|stopped|no longer|anymore|dropped out"
    r"|(?:is|are|became|become|turned|as) (?:now )?an?)\b"
)
"""Words that may end what somebody or something is."""
_RETIRES = re.compile(r"(?<!\ba )\bretire[ds]?\b")
_WORK = re.compile(
    r"\b(?:accountant|architect|baker|banker|builder|butcher|carpenter|chef|cleaner|clerk|line cook|cop|dentist|doctor"
    r"|driver|electrician|engineer|farmer|fire ?fighter|gardener|hairdresser|judge|lawyer|librarian|manager|mechanic"
    r"|miner|nurse|officer|paramedic|pharmacist|pilot|plumber|policeman|professor|programmer|sailor|secretary|soldier|surgeon"
    r"|teacher|technician|trainer|vet|waiter|waitress)\b"
)
"""Work, from which one retires. Nobody retires from being a widower."""
_WEEKDAY = re.compile(rf"\b{WEEKDAY}s?\b")
_VALUE = re.compile(rf"\d[\d:.,]*|{WEEKDAY}s?|noon|midnight")
"""A number, a time or a weekday, as one word of a statement."""
_NEWS = re.compile(
    r"^\W*(?:(?:finally )?(?:some |more )?(?:good|great|bad|sad|big|better|best|happy|wonderful|terrible) news"
    r"|(?:finally )?some (?:good )?luck|(?:you know|guess) what)(?: for (?:once|a change)| at last)?"
    r"[,.:!\u2013\u2014-]+ ",
    re.I,
)
"""An opener that says that there are news."""
_CACHED = 200_000


class TrainedUpdateJudge(RuleUpdateJudge):
    """Judges by rules and by the bundled model, which estimates whether a newer statement ends what an older one tells.

    Rules alone decide whether two statements say the same. A newer one replaces an older one if the model is sure of
    it, or if the rules say so and the model finds it likely. Where the two share no content word, the model must be
    surer, as where they share only somebody's name; where they share only the subject, it must be as sure as alone.
    Only what the rules find counts of statements that differ in a word or two, since the model takes other things of a
    kind for changes there; of a home and a move; and of an older one that is long, or tells of an event, an allergy or
    a chronic illness. So it does if the newer one only describes what the older one introduced, or is free of what the
    older one avoids. Of an older one with several clauses, the model must also find it likely that each of them no
    longer holds, but for details; "my brother Paul" counts as a clause that says who Paul is. Each pair is read once.

    Args:
        contradiction: detects contradictions for the rules; `RuleContradiction` if None.
        alone: the least probability at which the model decides alone, in [0, 1].
        agreed: the least probability at which a verdict of the rules holds, in [0, 1]; at most `alone`.

    Raises:
        ConfigurationError: a probability is out of range.
    """

    def __init__(
        self, contradiction: Contradiction | None = None, *, alone: float = ALONE, agreed: float = AGREED
    ) -> None:
        if not 0 <= agreed <= alone <= 1:
            raise ConfigurationError(
                f"agreed and alone must be in [0, 1], agreed not above alone; got {agreed!r} and {alone!r}"
            )
        super().__init__(contradiction)
        self._alone, self._agreed = alone, agreed
        self._known: LRUCache[bytes, float] = LRUCache(_CACHED)
        self._lock = ForkSafeLock()

    def _compare(self, older: Statement, newer: Statement, similarity: float = 1.0) -> UpdateVerdict:
        """Return the relation of parsed statements; the model reads none that are hardly similar.

        Raises:
            ModelError: the model failed.
        """
        verdict = super()._compare(older, newer, similarity)
        if verdict.relation == "different" and (reason := self._find_likely(older, newer)):
            return UpdateVerdict(relation="replaces", reason=reason, probability=self._estimate(older.text, newer.text))
        is_found = verdict.relation == "replaces"
        may_decide = similarity >= LEAST_SIMILAR and _may_decide(older.claim, newer.claim)
        may_decide = may_decide and not concern_different_wishes(older, newer)
        if verdict.relation == "same" or _decide_rules(older, newer, verdict) or not (is_found or may_decide):
            return verdict
        probability = self._estimate(older.text, newer.text)
        if not self._accepts(older, newer, verdict, probability):
            return DIFFERENT
        return UpdateVerdict(relation="replaces", reason=verdict.reason or "claim", probability=probability)

    def _find_likely(self, older: Statement, newer: Statement) -> str:
        """Return the reason if a task is done in part or a value is likely corrected, and the model is sure of it."""
        old, new = older.claim, newer.claim
        if find_done(old, new):
            texts = ((older.text, newer.text), (without_days(old), without_days(new)))
            return DONE if any(self._estimate(*each) >= self._alone for each in texts) else ""
        if find_correction(old, new) and self._estimate(older.text, newer.text) >= self._alone:
            return CORRECTION if self._ends_clauses(_find_clauses(older.text), newer) else ""
        return ""

    def compare_in_search(self, older: Statement, newer: Statement) -> UpdateVerdict:
        """Return what the rules find, if the model finds it likely; the model reads nothing else in a search.

        If the model fails, both memories are shown.
        """
        verdict = super().compare_in_search(older, newer)
        if verdict.relation != "replaces" or _decide_rules(older, newer, verdict):
            return verdict
        try:
            probability = self._estimate(older.text, newer.text)
            is_likely = self._accepts(older, newer, verdict, probability)
        except ModelError as error:
            why = type(error.__cause__ or error).__name__  # the error itself may quote what was said
            logger.warning("a search shows both of two memories, since the model of updates failed: %s", why)
            return UNREAD
        return replace(verdict, probability=probability) if is_likely else DIFFERENT

    def _accepts(self, older: Statement, newer: Statement, verdict: UpdateVerdict, probability: float) -> bool:
        """Return whether a probability suffices; the less the statements share, the larger it must be.

        A change that the rules find of a shared subject alone counts only if the model finds it, too.
        """
        if revoke_wish(older, newer):
            return probability >= self._alone
        shared = older.claim.content & newer.claim.content
        is_bare = verdict.reason == "change" and not shared.difference(map(stem, older.claim.subject))
        if verdict.reason and not is_bare:
            least = self._agreed
        else:
            is_of_person = _shares_only_name(older.claim, shared)
            if is_of_person and newer.claim.has_happened and not newer.claim.cues:
                return False
            least = self._alone if is_bare or (shared and not is_of_person) else (1 + self._alone) / 2
            if not newer.claim.cues:
                least = max(least, UNANNOUNCED)
        return probability >= least and self._ends_each(older, newer)

    def _ends_each(self, older: Statement, newer: Statement) -> bool:
        """Return whether the newer statement is likely to end each clause of the older one, if that has several."""
        clauses = _find_clauses(older.text)
        if has_lost(older.claim, newer.claim):  # what tells more of who or what is gone goes with it
            clauses = [part for part in clauses if not _OF_INTRODUCED.match(part)]
        *person, name = older.claim.subject or ("",)
        if name in older.claim.names and older.claim.subject_people - newer.claim.people:  # "my brother Paul"
            clauses.append(f"I have a {' '.join(person[1:])} called {name.title()}")
        clauses += [
            f"I have a {thing}called {name}" for thing, name in _CALLED.findall(older.text) if name[0].isupper()
        ]
        return self._ends_clauses(clauses, newer)

    def _ends_clauses(self, clauses: list[str], newer: Statement) -> bool:
        """Return whether the newer statement is likely to end each of several clauses."""
        return len(clauses) < 2 or all(self._ends(clause, newer) for clause in clauses)

    def _ends(self, clause: str, newer: Statement) -> bool:
        """Return whether the newer statement is likely to end a clause, which isn't just another name: "I'm Alice"."""
        claim = parse_claim(clause.strip())
        is_name = claim.content.issubset(map(stem, claim.names)) and claim.content.isdisjoint(newer.claim.content)
        return not is_name and self._estimate(clause, newer.text) >= EACH_CLAUSE

    def _estimate(self, older: str, newer: str) -> float:
        """Return the probability that the newer statement ends the older one; 0 for one too long to be read."""
        key = hashlib.sha256(json.dumps([older, newer]).encode()).digest()  # no text outlives its erasure
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        with wrap_errors(ModelError, "reading two memories with the model of updates"):
            try:
                probability = float(
                    load_update_model().score(_write_as_sentence(older), [_write_as_sentence(_NEWS.sub("", newer))])[0]
                )
            except QueryError:
                probability = 0.0
        with self._lock:
            self._known[key] = probability
        return probability


def _find_clauses(text: str) -> list[str]:
    """Return the clauses of a statement that tell something of their own."""
    parts = [part.strip() for part in _CLAUSE_MARK.split(_LABEL.sub(r"\1 ", text))]
    return [part for part in parts if len(part.split()) > 1 and not _adds_only(part)]


def _write_as_sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop, as those have that the model was trained on."""
    text = text.strip()
    return text[:1].upper() + text[1:] + "." * (text[-1:].isalnum())


def _may_decide(old: Claim, new: Claim) -> bool:
    """Return whether the model alone may find that one statement replaces another."""
    if _adds_detail(old, new) or _tells_more(old, new) or tells_of_another(old, new) or name_contrasts(old, new):
        return False
    if (
        moves_another_thing(old, new)
        or _keeps_kind(old, new)
        or is_new_of_another_kind(old, new)
        or _ends_another(old, new)
        or is_scrap(old, new)
    ):
        return False
    if not FOREIGN.isdisjoint(old.word_set | new.word_set):
        return False  # the model reads English
    if old.is_negative and new.free_of.intersection(map(stem, old.words)):
        return False  # "no alcohol" and "alcohol-free beer"
    return len(old.words) <= SIMPLE and not old.illnesses and not old.has_happened


def _shares_only_name(old: Claim, shared: frozenset[str]) -> bool:
    """Return whether the older statement is about somebody with a name, and all that the two share is who it is."""
    return bool(old.subject_names) and bool(shared) and not shared.difference(map(stem, old.subject))


def _keeps_kind(old: Claim, new: Claim) -> bool:
    """Return whether the older statement says what somebody with a name is, and the newer one nothing of that kind.

    "My husband Reggie is a line cook" and "Reggie switched to the breakfast shift".
    """
    is_kind = bool(old.subject_names) and _KIND.search(old.plain) is not None
    retires = _RETIRES.search(new.plain) is not None and not _WORK.search(old.plain)
    ends = not retires and _ENDS_KIND.search(new.plain) is not None
    return is_kind and not ends and _shares_only_name(old, old.content & new.content)


def _ends_another(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement ends what the older one tells with another name.

    "I work at Siemens" and "I no longer work at Bosch".
    """
    is_same_kind = not old.content.isdisjoint(map(stem, VERBS & new.word_set))
    return new.ended and is_same_kind and bool(old.names and new.names) and old.names.isdisjoint(new.names)


def _adds_detail(old: Claim, new: Claim) -> bool:
    """Return whether one statement introduces a thing or a person, and the other tells more of it.

    "I have a dog" and "my dog is a vizsla", "I live with two flatmates" and "my flatmates are Ida and Per", or "my boss
    is Tom" and "my boss has a new office".
    """
    if old.first_verb in COPULAS and tells_more_of_a_role(old, new):
        return not (new.ended or new.names)
    is_described = bool(new.head & old.topics) and old.head.isdisjoint(new.head) and new.first_verb in COPULAS
    names_several = new.first_verb == "are" and len(new.names) > 1
    return is_described and not new.cues and (old.introduces or names_several)


def _tells_more(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement announces no change, and tells more of a place, a name, a weekday or a role.

    "I work at a bakery" and "I started there in 2019", "I work from home on Fridays" or "my boss is Anna", or "the dog
    is called Rex" and "Rex hates fireworks".
    """
    before, after = " ".join(old.words), " ".join(new.words)
    is_named = not NAMING.isdisjoint(old.words) and not old.names.isdisjoint(new.subject)
    if _THERE.search(after) and not new.changed and not _LEFT.search(after):
        return True
    if new.cues:
        return False
    if is_named:
        return True
    names_role = _names_role(old) or _names_role(new)
    is_weekly = bool(_WEEKDAY.search(before)) != bool(_WEEKDAY.search(after))
    return (is_weekly and old.first_verb == new.first_verb) or (names_role and old.content.isdisjoint(new.content))


def _names_role(claim: Claim) -> bool:
    """Return whether a statement says who somebody is to the user: "my boss is Anna"."""
    return claim.first_verb in COPULAS and not claim.relations.isdisjoint(claim.subject)


def _decide_rules(older: Statement, newer: Statement, verdict: UpdateVerdict) -> bool:
    """Return whether the rules alone decide.

    They do of near statements, of a task that is done, of a home and a lasting move of the same person, of what names
    what no longer holds, of another name or language that the user wishes, and of a liking that turned into a dislike
    or back.
    """
    if verdict.reason in (CORRECTION, DONE, WISH) or (
        verdict.reason == "denial" and older.claim.liked * newer.claim.liked < 0
    ):
        return True
    is_move = verdict.relation == "replaces" and tell_of_a_move(older.claim, newer.claim)
    return (is_move and not _PASSING.search(newer.text)) or _are_near(older, newer)


def _adds_only(part: str) -> bool:
    """Return whether part of a statement only adds to the rest: "three days a week" or "mint green", but no list."""
    first, *others = part.split()
    is_phrase = not first[0].isupper() and not _BEGINNINGS.intersection((first, *others)) and "and" not in others
    return is_phrase or _DETAIL.match(part) is not None


def _are_near(older: Statement, newer: Statement) -> bool:
    """Return whether two statements have the same words in the same order, but for one or two.

    Those that announce a change must have most words in common: "I'm married" and "I got divorced" are not near.
    """
    old, new = older.claim, newer.claim
    if old.words[:-1] == new.words[:-1] and len(old.words) > NEAR:
        return True  # as below, in no time: only the last word differs
    words = tuple(word for word in new.words if word != "now") if "now" not in old.words else new.words
    if len(words) < len(new.words) and _gives_another_value(old.words, words):
        return False  # "the shop opens at 9" and "the shop now opens at 10": the change is announced
    blocks = SequenceMatcher(None, old.words, new.words, autojunk=False).get_opcodes()
    differing = sum(max(b - a, d - c) for kind, a, b, c, d in blocks if kind != "equal")
    shared = sum(b - a for kind, a, b, _, _ in blocks if kind == "equal")
    return differing <= NEAR and (shared > differing or old.changed or not new.changed)


def _gives_another_value(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether one word differs, and is a number or a weekday: "16 GB" and "32 GB"."""
    differing = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
    return len(old) == len(new) and len(differing) == 1 and all(map(_VALUE.fullmatch, differing[0]))
