"""Detects contradictions by rules, for English: statements about the same subject with different values."""

from typing import Protocol

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.statements import Statement, parse_statement

_SUBJECT_SHARE = 0.6
"""Minimum share of the subject of the shorter statement that must be in the subject of the longer one."""
_COMMON_VERBS = """
need want give take get have keep use make do go come put let like require ask tell say hold stay should must can may
"""
_VERBS = frozenset(map(stem, _COMMON_VERBS.split()))
"""Words that don't distinguish subjects."""


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
        'number: 9 / 10'
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
        sun" and "fennel needs shade". A missed contradiction does less harm than a false one. A different name is a
        contradiction only if nothing else differs; otherwise it means different subjects.
        """
        first, second = one.subject, other.subject
        if not have_same_subject(one, other) or (first - second - _VERBS and second - first - _VERBS):
            return ""
        mine, theirs = one.values, other.values
        pairs = (
            ("number", mine.numbers, theirs.numbers),
            ("day", mine.days, theirs.days),
            ("name", mine.names, theirs.names),
        )
        differences = [(kind, a - b, b - a) for kind, a, b in pairs if a - b and b - a]
        kinds = ["denial"] * (mine.negated != theirs.negated) + [kind for kind, _, _ in differences]
        if not kinds or ("name" in kinds and len(kinds) > 1):
            return ""
        if kinds[0] == "denial":
            return "denial"
        kind, before, after = differences[0]
        return f"{kind}: {', '.join(sorted(before))} / {', '.join(sorted(after))}"


def have_same_subject(one: Statement, other: Statement) -> bool:
    """Check that the statements share most subject words of the shorter one: at least two, or all it has."""
    shorter, longer = sorted((one.subject, other.subject), key=len)
    shared = len(shorter & longer)
    return bool(shorter) and shared >= min(2, len(shorter)) and shared >= _SUBJECT_SHARE * len(shorter)
