"""Detects contradictions by rules, for English: statements about the same subject with different values."""

from typing import Protocol

from meve.memory._contradiction import places
from meve.memory._contradiction.claims import Claim
from meve.memory._contradiction.differences import concern_different_things, have_different_times
from meve.memory._contradiction.lexicon import IRREGULAR_PASTS, MONTHS, NAMING, NO_EVENTS, TITLES, VERBS
from meve.memory._contradiction.statements import Statement, parse_statement

_SUBJECT_SHARE = 0.6
"""Minimum share of the subject of the shorter statement that must be in the subject of the longer one."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Contradiction(Protocol):
    """Decides whether two statements contradict each other."""

    def find_difference(self, one: str, other: str) -> str:
        """Return how the statements differ, in a few words; empty if they don't or have different subjects."""
        ...


class RuleContradiction:
    """Compares numbers, days, names and negation of statements about the same subject."""

    def find_difference(self, one: str, other: str) -> str:
        """Return `number: 2 / 5`, `day: …`, `name: …` or `denial`; empty if there is no contradiction.

        >>> RuleContradiction().find_difference("The shop opens at 9.", "The shop opens at 10.")
        'number: 09:00 / 10:00'
        >>> RuleContradiction().find_difference("Alice eats meat.", "Alice doesn't eat meat.")
        'denial'
        >>> RuleContradiction().find_difference("The shop opens at 9.", "Tomatoes need 6 hours of sun.")
        ''
        >>> RuleContradiction().find_difference("The ferry to Oslo leaves at 9.", "The ferry to Bergen leaves at 10.")
        ''
        """
        return self.compare_statements(parse_statement(one), parse_statement(other))

    def compare_statements(self, one: Statement, other: Statement) -> str:
        """Compare parsed statements, as `find_difference` does.

        If each statement has a word, other than common verbs, that the other lacks, their subjects differ: "basil needs
        sun" and "fennel needs shade". So they do if two kinds of values differ. A missed contradiction does less harm
        than a false one. `other` is the later statement.
        """
        if not _may_differ(one, other) or _each_has_own(one.kernel, other.kernel) or not have_same_subject(one, other):
            return ""
        difference = self._compare_values(one, other)
        return "" if difference and _differ_in_subject(one, other) else difference

    def _compare_values(self, one: Statement, other: Statement) -> str:
        mine, theirs = one.values, other.values
        pairs = (
            ("number", mine.numbers, theirs.numbers),
            ("day", mine.days, theirs.days),
            ("name", mine.names - other.claim.word_set, theirs.names - one.claim.word_set),
        )
        differences = [(kind, a - b, b - a) for kind, a, b in pairs if a - b and b - a]
        if mine.negated != theirs.negated:
            is_narrower = one.kernel != other.kernel and (one.claim.liked or other.claim.liked)
            return "" if differences or is_narrower else "denial"
        if len(differences) != 1 or not _is_exclusive(one, other, *differences[0]):
            return ""
        kind, before, after = differences[0]
        return f"{kind}: {', '.join(sorted(before))} / {', '.join(sorted(after))}"


def _may_differ(one: Statement, other: Statement) -> bool:
    """Return whether both statements tell values or names of which one holds, or one is negated.

    Without that there is no difference, and this takes a fraction of the time of parsing subjects and values.
    """
    mine, theirs = one.claim, other.claim
    return (
        (mine.gives_value and theirs.gives_value)
        or (mine.gives_name and theirs.gives_name)
        or one.is_negated != other.is_negated
    )


def _differ_in_subject(one: Statement, other: Statement) -> bool:
    """Return whether the statements are about different things, or one of them adds to the other."""
    mine, theirs = one.claim, other.claim
    return (
        concern_different_things(mine, theirs)
        or have_different_times(mine, theirs)
        or mine.added != theirs.added
        or (mine.introduces and theirs.introduces)
    )


def _each_has_own(one: frozenset[str], other: frozenset[str]) -> bool:
    return not (one <= other or other <= one)


def _is_exclusive(one: Statement, other: Statement, kind: str, before: frozenset[str], after: frozenset[str]) -> bool:
    """Return whether only one of two values can hold."""
    if kind == "name":
        are_single = _is_one_name(one.claim, before) and _is_one_name(other.claim, after)
        return are_single and not _may_both_name_it(one, other, before, after)
    if not (_is_one_value(one.claim, before) and _is_one_value(other.claim, after)):
        return False
    if _each_has_own(one.subject | one.values.names, other.subject | other.values.names):
        return False
    if kind == "day" and bool(before & MONTHS) != bool(after & MONTHS):
        return False
    if kind == "day" and not (_follows_verb(one.claim, before) and _follows_verb(other.claim, after)):
        return False  # "I have lunch duty on Monday" and another day may both hold
    if kind == "number" and _have_unclear_units(before, after):
        return False
    is_other_period = one.values.numbers.isdisjoint(other.values.numbers) and min(len(before), len(after)) > 1
    return kind != "number" or not is_other_period  # such as "from 9 to 12"


def _have_unclear_units(before: frozenset[str], after: frozenset[str]) -> bool:
    """Return whether equal numbers have a unit that may be the same: "1 m", "1m" and "1 minute"."""
    numbers = [{number.rstrip(_LETTERS) for number in values} for values in (before, after)]
    is_unclear = any(number[-1].isdigit() or number[-1] == "m" for number in before | after)
    return is_unclear and numbers[0] == numbers[1]


def _is_one_value(claim: Claim, values: frozenset[str]) -> bool:
    """Return whether a statement gives these numbers or days as a value, and not for its subject."""
    return claim.gives_value and not _is_perfect(claim) and values.isdisjoint(claim.subject)


def _is_perfect(claim: Claim) -> bool:
    """Return whether the first verbs are "have" and a participle, of what was done: "I have bought two chairs"."""
    follows = claim.words[len(claim.subject) + 1 :][:1] if claim.first_verb in ("have", "has") else ()
    return any(w in IRREGULAR_PASTS or (w.endswith("ed") and w not in NO_EVENTS) for w in follows)


def _follows_verb(claim: Claim, values: frozenset[str]) -> bool:
    """Return whether a value stands right after the first verb, but for one word."""
    after = claim.words[claim.words.index(claim.first_verb) + 1 :][:2] if claim.first_verb else ()
    return not values.isdisjoint(after)


def _is_one_name(claim: Claim, names: frozenset[str]) -> bool:
    """Return whether a statement gives one name for a relation that has one name at a time."""
    if not claim.gives_name:
        return False
    if not NAMING.isdisjoint(claim.words) and claim.people:
        return False  # there may be several: "My son is called Tom."
    places = [n for n, word in enumerate(claim.words) if word in names]
    follows = claim.words[places[-1] + 1 : places[-1] + 2] if places else ()
    is_one = bool(places) and places[-1] - places[0] == len(places) - 1
    return is_one and VERBS.isdisjoint(follows)


def _may_both_name_it(one: Statement, other: Statement, before: frozenset[str], after: frozenset[str]) -> bool:
    """Return whether one place may be part of the other, or both may name one person: "Germany" and "Berlin".

    Places are told apart only if the later statement has a word of change, or both are known to be of one kind.
    """
    if not places.WORDS.isdisjoint({*one.claim.words, *other.claim.words}):
        return not (other.claim.cues - one.claim.cues) and not places.are_of_one_kind(before, after)
    if before.isdisjoint(TITLES) != after.isdisjoint(TITLES):
        return True  # "Markus" and "Mr Weber"
    shared = (one.values.names & other.values.names) - TITLES
    return any(
        not shared.isdisjoint(_neighbours(claim, names)) for claim, names in ((one.claim, before), (other.claim, after))
    )


def _neighbours(claim: Claim, names: frozenset[str]) -> set[str]:
    """Return the words right before and after a name."""
    found = [n for n, word in enumerate(claim.words) if word in names]
    return {*claim.words[max(0, found[0] - 1) : found[0]], *claim.words[found[-1] + 1 :][:1]}


def have_same_subject(one: Statement, other: Statement) -> bool:
    """Check that the statements share most subject words of the shorter one: at least two, or all it has."""
    shorter, longer = sorted((one.subject, other.subject), key=len)
    shared = len(shorter & longer)
    return bool(shorter) and shared >= min(2, len(shorter)) and shared >= _SUBJECT_SHARE * len(shorter)
