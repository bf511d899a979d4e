"""Judges how a newer statement relates to an older one: says the same, replaces it, or tells of something else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.claims import (
    Claim,
    concern_different_things,
    find_people,
    have_different_times,
    have_equal_words,
)
from meve.memory._contradiction.lexicon import (
    ACTIVITIES,
    ATTRIBUTES,
    HEALTH,
    HINTS,
    MEASURED,
    MONTHS,
    OF_THINGS,
    SINGLE_VALUED,
)
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.statements import Statement, parse_statement

UpdateRelation: TypeAlias = Literal["same", "replaces", "different"]
SHARE = 1 / 3
"""Minimum share of the older statement's topics that a newer one has that ends or changes what it tells."""
SIMPLE = 5
"""The most topics of a statement that tells of one attribute, and little else."""
_COPULAS = frozenset(("am", "is", "are", "be", "been", "became", "got"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVerdict:
    """The relation of a newer statement to an older one."""

    relation: UpdateRelation
    reason: str = ""
    """A word for the rule that decided, such as `number` or `change`, without text of the statements."""


class UpdateJudge(Protocol):
    """Judges two statements of one user that may be about the same."""

    def judge(self, older: str, newer: str) -> UpdateVerdict:
        """Return whether the newer statement says the `same`, `replaces` the older one, or is `different`.

        Return `different` where in doubt; then both are kept.
        """
        ...


DIFFERENT = UpdateVerdict(relation="different")
SAME = UpdateVerdict(relation="same", reason="words")


class RuleUpdateJudge:
    """Judges by rules, for English.

    Two statements say the same if their words, values and signs are equal, but for articles and the form of values. A
    newer one replaces an older one if both are about the same person and thing and either contradict each other, or the
    newer one announces a change: "now", "no longer", "moved", "instead".

    Args:
        contradiction: detects contradictions; `RuleContradiction` if None, or for example `NliContradiction`.
    """

    def __init__(self, contradiction: Contradiction | None = None) -> None:
        self._contradiction = contradiction or RuleContradiction()

    def judge(self, older: str, newer: str) -> UpdateVerdict:
        """Return the relation of the newer statement to the older one.

        >>> RuleUpdateJudge().judge("I live in Berlin.", "I live in Hamburg.").relation
        'replaces'
        >>> RuleUpdateJudge().judge("Call at quarter to eight.", "Call at 7:45.").relation
        'same'
        >>> RuleUpdateJudge().judge("My son is allergic to milk.", "My daughter is allergic to milk.").relation
        'different'
        """
        return self.compare_statements(parse_statement(older), parse_statement(newer))

    def compare_statements(self, older: Statement, newer: Statement) -> UpdateVerdict:
        """Return the relation of parsed statements, as `judge` does."""
        old, new = older.claim, newer.claim
        if have_equal_words(old, new):
            return SAME
        if concern_different_things(old, new) or (new.added and not new.changed):
            return DIFFERENT
        reason = self._find_difference(older, newer).partition(":")[0] or _find_change(old, new)
        return UpdateVerdict(relation="replaces", reason=reason) if reason else DIFFERENT

    def _find_difference(self, older: Statement, newer: Statement) -> str:
        if isinstance(self._contradiction, RuleContradiction):
            return self._contradiction.compare_statements(older, newer)
        return self._contradiction.find_difference(older.text, newer.text)


@dataclass(frozen=True, slots=True)
class _Pair:
    """An older and a newer statement, and what they have in common."""

    old: Claim
    new: Claim

    @property
    def shared(self) -> frozenset[str]:
        return self.old.topics & self.new.topics

    @property
    def is_update(self) -> bool:
        return bool(self.new.cues - self.old.cues)

    @property
    def is_close(self) -> bool:
        """Whether the newer statement has enough of the older one's topics to tell about all of it."""
        return bool(self.shared) and len(self.shared) >= SHARE * len(self.old.topics)

    @property
    def has_head(self) -> bool:
        """Whether the newer statement names the whole subject of the older one."""
        return bool(self.old.head) and self.old.head <= self.new.topics

    @property
    def single(self) -> frozenset[str]:
        """The attributes of one value that both tell of."""
        new = self.new
        told = new.attributes | new.hints if new.changed or new.acquired else new.attributes
        return self.old.attributes & told & SINGLE_VALUED


def _find_change(old: Claim, new: Claim) -> str:
    """Return the rule by which the newer statement replaces the older one; empty if none does."""
    if old.past or old.is_event or (new.passing and not new.changed):
        return ""
    if not HEALTH.intersection(old.words) <= set(new.words) or not find_people(new.change) <= old.people:
        return ""
    pair = _Pair(old, new)
    return next((name for name, applies in _RULES if applies(pair)), "")


def _denies(pair: _Pair) -> bool:
    """Return whether what one statement denies, the other affirms."""
    old, new = pair.old, pair.new
    flipped = any((topic in old.denied) != (topic in new.denied) for topic in pair.shared)
    if flipped and (pair.is_update or (old.topics <= new.topics and not old.liked)):
        return True
    told = old.denied_attributes & (new.attributes | new.hints)
    return pair.is_update and not new.negated and bool(told - OF_THINGS)


def _is_at_another_time(pair: _Pair) -> bool:
    return have_different_times(pair.old, pair.new) and not pair.new.changed


def _likes_otherwise(pair: _Pair) -> bool:
    is_general = pair.is_update or pair.new.topics == pair.old.topics
    return is_general and bool(pair.shared) and pair.old.liked * pair.new.liked < 0


def _has_other_favourite(pair: _Pair) -> bool:
    return "favourite" in pair.single and bool(pair.old.head) and pair.old.head == pair.new.head


def _takes_its_place(pair: _Pair) -> bool:
    return pair.is_update and pair.has_head and (pair.new.succeeded or pair.old.head <= pair.new.reset)


def _has_new_value(pair: _Pair) -> bool:
    """Return whether both give the same thing another value of one kind, such as a day."""
    old, new = pair.old, pair.new
    if not _give_other_value(old, new):
        return False
    is_same_thing = (pair.is_close and old.head <= new.topics) or ACTIVITIES.intersection(old.words, new.words)
    return bool(
        (pair.is_update and is_same_thing) or (pair.single & MEASURED and pair.is_close and old.head <= new.topics)
    )


def _has_new_attribute(pair: _Pair) -> bool:
    """Return whether an attribute of one value got another one."""
    is_simple = len(pair.old.topics) <= SIMPLE
    is_same_owner = pair.has_head or (not pair.old.head and is_simple and not pair.single <= OF_THINGS)
    return pair.is_update and is_same_owner and bool(pair.single) and _tells_attribute(pair.new, pair.single)


def _changes_what_was_told(pair: _Pair) -> bool:
    """Return whether what the older statement tells ended or changed."""
    old, new = pair.old, pair.new
    return (
        new.changed
        and pair.is_update
        and pair.is_close
        and not old.liked
        and not old.predicate.isdisjoint(new.topics & new.change_stems)
        and _has_same_subject(old, new)
    )


_RULES: tuple[tuple[str, Callable[[_Pair], bool]], ...] = (
    ("denial", _denies),
    ("", _is_at_another_time),
    ("liking", _likes_otherwise),
    ("favourite", _has_other_favourite),
    ("change", _takes_its_place),
    ("value", _has_new_value),
    ("change", _has_new_attribute),
    ("change", _changes_what_was_told),
)
"""The rules in their order, with the reason that each gives; an empty one keeps both statements."""


def _give_other_value(old: Claim, new: Claim) -> bool:
    """Return whether both give values of one kind, share none, and don't name different things."""
    if old.names.difference(new.words) and new.names.difference(old.words):
        return False
    mine, theirs = set(map(_kind, old.values)), set(map(_kind, new.values))
    are_alike = mine & theirs or (mine and new.targets)
    return old.values.isdisjoint(new.values) and bool(are_alike)


def _kind(value: str) -> str:
    """Return the unit of a number, or what else tells its kind; empty for a bare number."""
    if value.isalpha():
        return "month" if value in MONTHS else "day"
    unit = value.lstrip("+-0123456789.:")
    return "th" if unit in ("st", "nd", "rd") else unit or (":" if ":" in value else "-" if "-" in value else "")


def _tells_attribute(new: Claim, attributes: frozenset[str]) -> bool:
    """Return whether a statement gives the attribute a value, rather than something else about what has it."""
    is_subject = any({ATTRIBUTES.get(word), HINTS.get(word)} & attributes for word in new.subject)
    return not new.first_verb or new.first_verb in _COPULAS or not is_subject


def _has_same_subject(old: Claim, new: Claim) -> bool:
    """Return whether what changed is the user, unstated, or as in the older statement, or a topic of it ended."""
    subject = {stem(word) for word in new.change} & new.topics
    if not subject or not {"i", "we"}.isdisjoint(new.change):
        return True
    return not subject.isdisjoint(old.topics if new.ended else old.head)
