"""Judges how a newer statement relates to an older one: says the same, replaces it, or tells of something else."""

import re
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.claims import Claim, have_equal_words
from meve.memory._contradiction.comments import without_comments
from meve.memory._contradiction.corrections import corrects_another, find_correction, have_other_amount, names_former
from meve.memory._contradiction.differences import concern_different_things
from meve.memory._contradiction.lexicon import COPULAS, NAMING, TIED, TIMES_OF_DAY
from meve.memory._contradiction.news import (
    MINE,
    begins_to_do,
    calls_off_another,
    changes_one_day,
    changes_thing_of_person,
    happened_once,
    holds_in_part,
    is_exception,
    is_milestone_of_another,
    is_new_of_another_kind,
    is_still_planned,
    is_trip,
    joins_group,
    keeps_person,
    keeps_plan,
    keeps_skill,
    leaves_out_person,
    only_recovers,
    only_renames,
    places_another_thing,
    shows_picture,
    speaks_of_work_otherwise,
    was_cut_short,
)
from meve.memory._contradiction.outline import Outline
from meve.memory._contradiction.places import move_between_places
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.statements import Statement, parse_statement
from meve.memory._contradiction.tasks import does_another, find_done
from meve.memory._contradiction.wishes import concern_different_wishes, wish_otherwise

UpdateRelation: TypeAlias = Literal["same", "replaces", "different"]
SIMILAR = 0.4
"""The least cosine of statements of which one may end the other by an announced change."""
SIMPLE = (10, 14)
"""The most words of an older and of a newer statement that tell of one thing; longer ones may tell of several."""


DONE, WISH = "done", "wish"
"""The reasons of verdicts on a task that is done, and on a wish for something else."""
CORRECTION = "correction"
"""The reason of a verdict on a statement that names what no longer holds: "15 rather than 12"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVerdict:
    """The relation of a newer statement to an older one."""

    relation: UpdateRelation
    reason: str = ""
    """A word for the rule that decided, such as `number` or `change`, without text of the statements."""
    probability: float | None = None
    """A model's probability, in [0, 1], that the older statement no longer holds; None if no model was asked."""


class UpdateJudge(Protocol):
    """Judges two statements of one user with similar embeddings or with a rare word in common."""

    def judge(self, older: str, newer: str) -> UpdateVerdict:
        """Return whether the newer statement says the `same`, `replaces` the older one, or is `different`.

        Return `different` where in doubt; then both are kept.
        """
        ...


_THEIR = frozenset(("his", "her", "their"))
_US = frozenset(("i", "we"))
_RENTS_HOME = re.compile(r"\brents? (?:(?:our )?(?:flat|apartment|house|room) )?in\b")
_LEFT_THERE = re.compile(r"\b(?:left there|moved away)\b")
_DAY_TIMES = frozenset().union(*TIMES_OF_DAY)
_PRONOUNS = MINE | {"he", "she", "it", "they", "you", "this", "that", "everybody", "nobody"}
DIFFERENT = UpdateVerdict(relation="different")
UNREAD = UpdateVerdict(relation="different", reason="unread")
"""That of statements which a model should have read, and failed."""
SAME = UpdateVerdict(relation="same", reason="words")


class RuleUpdateJudge:
    """Judges by rules, for English.

    Two statements say the same if their words, values and signs are equal, but for articles and the form of values. A
    newer one replaces an older one if both are about the same person and thing and contradict each other. If both are
    short, it also replaces one that it denies, or of which it announces a change: "now", "no longer" or "moved".

    Args:
        contradiction: detects contradictions; `RuleContradiction` if None, or for example `NliContradiction`.
    """

    def __init__(self, contradiction: Contradiction | None = None) -> None:
        self._contradiction = contradiction or RuleContradiction()

    def judge(self, older: str, newer: str) -> UpdateVerdict:
        """Return the relation of the newer statement to the older one, which has a similar embedding.

        >>> RuleUpdateJudge().judge("I live in Berlin.", "I live in Hamburg.").relation
        'replaces'
        >>> RuleUpdateJudge().judge("Call at quarter to eight.", "Call at 7:45.").relation
        'same'
        >>> RuleUpdateJudge().judge("My son is allergic to milk.", "My daughter is allergic to milk.").relation
        'different'
        """
        return self.compare_statements(parse_statement(older), parse_statement(newer))

    def compare_statements(self, older: Statement, newer: Statement, *, similarity: float = 1.0) -> UpdateVerdict:
        """Return the relation of parsed statements; a change can replace only a statement with a similar embedding.

        Sentences of the older one that only comment on it end with it: "I go climbing. It's good for my head."

        Args:
            older: what the user said first.
            newer: what the user said later.
            similarity: the cosine of their embeddings.
        """
        verdict = self._compare(older, newer, similarity)
        if verdict.relation == "different" and (told := without_comments(older.text)) != older.text:
            again = self._compare(parse_statement(told), newer, similarity)
            return again if again.relation == "replaces" else verdict
        return verdict

    def _compare(self, older: Statement, newer: Statement, similarity: float = 1.0) -> UpdateVerdict:
        """Return the relation of parsed statements, of which each counts as a whole."""
        old, new = older.claim, newer.claim
        if have_equal_words(old, new):
            return SAME
        if wish_otherwise(older, newer):
            return UpdateVerdict(relation="replaces", reason=WISH)
        if find_done(old, new) == "task":
            return UpdateVerdict(relation="replaces", reason=DONE)
        if find_correction(old, new) == "sure":
            return UpdateVerdict(relation="replaces", reason=CORRECTION)
        if have_other_amount(old, new):
            return UpdateVerdict(relation="replaces", reason="number")
        if not isinstance(self._contradiction, RuleContradiction) and _may_both_hold(old, new):
            return DIFFERENT  # before a model is asked
        reason = self._find_reason(older, newer, are_similar=similarity >= SIMILAR)
        if not reason or _may_both_hold(old, new) or concern_different_wishes(older, newer):
            return DIFFERENT
        return UpdateVerdict(relation="replaces", reason=reason)

    def compare_in_search(self, older: Statement, newer: Statement) -> UpdateVerdict:
        """Return the relation of two memories of a recall, without hiding one that maintenance would keep."""
        if type(self._contradiction) is RuleContradiction and _are_apart(older.outline, newer.outline):
            return DIFFERENT  # as below, without parsing them
        return RuleUpdateJudge._compare(self, older, newer)

    def _find_reason(self, older: Statement, newer: Statement, *, are_similar: bool) -> str:
        """Return a word for what tells that the newer statement replaces the older one; empty for nothing."""
        reason = self._find_difference(older, newer).partition(":")[0]
        if reason:
            return "" if reason == "denial" and not _tell_of_the_same(older, newer) else reason
        if not _may_end(older.claim, newer.claim):
            return ""
        if _denies(older, newer):
            return "denial"
        if names_former(older.claim, newer.claim):
            return CORRECTION
        if tell_of_a_move(older.claim, newer.claim) and (
            _LEFT_THERE.search(newer.claim.plain) or move_between_places(older.text, newer.text)
        ):
            return "change"
        return "change" if are_similar and _announces_change(older.claim, newer.claim) else ""

    def _find_difference(self, older: Statement, newer: Statement) -> str:
        if isinstance(self._contradiction, RuleContradiction):
            return self._contradiction.compare_statements(older, newer)
        return self._contradiction.find_difference(older.text, newer.text)


def _are_apart(old: Outline | None, new: Outline | None) -> bool:
    """Return whether outlines tell that a newer statement says neither the same as the older one nor replaces it."""
    if old is None or new is None or old.letters == new.letters or not (old.letters and new.letters):
        return False
    may_differ = (
        (old.gives_value and new.gives_value) or (old.gives_name and new.gives_name) or old.is_negated != new.is_negated
    )
    return not may_differ and not _are_simple(old.words, new.words)


def _are_simple(old_words: int, new_words: int) -> bool:
    return old_words <= SIMPLE[0] and new_words <= SIMPLE[1]


def _may_both_hold(old: Claim, new: Claim) -> bool:
    """Return whether two statements tell of different things, or the newer one of no change that lasts."""
    if (new.added and not new.changed) or _may_be_two(old, new) or tells_of_another(old, new):
        return True
    if new.is_question or ((old.is_event or new.is_event or new.passing) and not new.changed):
        return True  # a question, an event of the past, or a plan
    if old.illnesses and _content(old) != _content(new):
        return True  # "allergic to nuts" and "not allergic to pine nuts"
    return concern_different_things(old, new)


def _may_be_two(old: Claim, new: Claim) -> bool:
    """Return whether there may be two such things: "my meeting with Paul" and another, or dogs called Rex and Luna."""
    has_other_name = bool(old.head & new.head) and old.subject_names != new.subject_names
    return has_other_name or (_is_called(old) and _is_called(new))


def _is_called(claim: Claim) -> bool:
    """Return whether a statement says how somebody or something is called, of which there may be several."""
    return not NAMING.isdisjoint(claim.words) and "name" not in claim.words and not claim.changed


def tells_of_another(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement tells of a part, of one more of a kind, or of somebody or something else.

    "I manage a team of five" and "two of my team are on leave now", "I have a tattoo" and "I decided against a second
    tattoo", "I like cardamom in my coffee" and "the café stopped serving it", "my best friend is Amira" and "Amira
    quit her job", "my husband Erik is a nurse" and "Jonas changed his mind", or "the shop opens at 9" and "the shop
    will be blue, not green".
    """
    known = set(map(stem, old.words))
    if any(former and former.isdisjoint(known) for former in (new.former, new.given_up)):
        return True
    if _names_another_person(old, new):
        return True
    if new.is_partial or (new.names_further and not old.names_further) or new.is_unchanged:
        return True
    if (
        happened_once(old, new)
        or is_exception(old, new)
        or begins_to_do(old, new)
        or shows_picture(old)
        or speaks_of_work_otherwise(old, new)
    ):
        return True
    if (
        leaves_out_person(old, new)
        or is_milestone_of_another(old, new)
        or is_still_planned(old, new)
        or holds_in_part(old, new)
        or changes_one_day(old, new)
        or keeps_plan(old, new)
        or is_trip(old, new)
        or keeps_person(old, new)
        or keeps_skill(old, new)
        or joins_group(old, new)
        or only_recovers(old, new)
        or only_renames(old, new)
        or was_cut_short(old, new)
        or calls_off_another(old, new)
        or places_another_thing(old, new)
        or corrects_another(old, new)
        or does_another(old, new)
        or changes_thing_of_person(old, new)
    ):
        return True
    is_close = old.first_verb in COPULAS and bool(old.people) and old.people.isdisjoint(TIED)
    is_of_friend = is_close and not new.people and bool(new.subject) and old.names.issuperset(new.subject)
    return is_of_friend and not _THEIR.isdisjoint(new.words) and MINE.isdisjoint(new.words)


def _names_another_person(old: Claim, new: Claim) -> bool:
    """Return whether one statement is about a person with a name, and the other about somebody with another name."""
    is_named = len(new.subject) == 1 and not new.people and _PRONOUNS.isdisjoint(new.subject)
    is_other = bool(old.subject_names) and old.word_set.isdisjoint(new.subject)
    return is_named and is_other and not _THEIR.isdisjoint(new.words)


def _may_end(old: Claim, new: Claim) -> bool:
    """Return whether what a short statement tells can end, and a newer one is about the same persons and illnesses."""
    if (
        not _are_simple(len(old.words), len(new.words))
        or old.past
        or old.has_happened
        or (new.passing and not new.changed)
    ):
        return False
    return old.illnesses <= new.word_set and new.changed_people <= old.people


def tell_of_a_move(old: Claim, new: Claim) -> bool:
    """Return whether one statement tells where somebody lives, and the other where the same person moved."""
    is_same = new.subject[: len(old.subject)] == old.subject or _US.issuperset((*old.subject, *new.subject))
    words = new.words
    is_home = is_same and (old.first_verb in ("live", "lives") or _RENTS_HOME.search(" ".join(old.words)) is not None)
    moves = any(words[n - 2 : n] == ("moved", "to") for n, word in enumerate(words) if word in new.names)
    return is_home and (moves or _LEFT_THERE.search(new.plain) is not None)


def _announces_change(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement announces a change, and not of a part of what the older one tells."""
    if not new.cues - old.cues or (new.ended and not old.topics <= new.topics) or is_new_of_another_kind(old, new):
        return False
    is_part = new.head & old.topics and old.head.isdisjoint(new.head) and {"i", "we"}.isdisjoint(new.words)
    if is_part and not new.ended:
        return False  # "I have a dog" and "my dog now sleeps in my bed"
    if len(old.head & new.topics) > 1 and not old.head <= new.topics:
        return False  # "the review of the bridge project" and "the review of the harbour project"
    return not tells_more_of_a_role(old, new)


def tells_more_of_a_role(old: Claim, new: Claim) -> bool:
    """Return whether one statement says who somebody is, and the other what he does: "my boss has a new office"."""
    is_role = not old.relations.isdisjoint(old.subject) and not old.relations.isdisjoint(new.subject)
    return is_role and new.first_verb not in COPULAS


def _denies(older: Statement, newer: Statement) -> bool:
    """Return whether what one statement denies, the other affirms, or one likes what the other dislikes."""
    old, new = older.claim, newer.claim
    if not _tell_of_the_same(older, newer):
        return False
    return old.denied != new.denied or old.liked * new.liked < 0


def _tell_of_the_same(older: Statement, newer: Statement) -> bool:
    """Return whether two statements have the same content words and values, so that no condition sets them apart."""
    same_values = older.values._replace(negated=False) == newer.values._replace(negated=False)
    times = [_DAY_TIMES & statement.claim.word_set for statement in (older, newer)]  # "I like tea", but not "at night"
    content = _content(older.claim)
    return bool(content) and content == _content(newer.claim) and same_values and times[0] == times[1]


def _content(claim: Claim) -> frozenset[str]:
    """Return the topics without the words that announce a change."""
    return claim.topics.difference(stem(word) for cue in claim.cues for word in cue.split())
