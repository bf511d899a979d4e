"""Nomination: which records a judge compares because they are about the same subject or attribute."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from meve.memory._contradiction.claims import Claim
from meve.memory._contradiction.lexicon import ACTIVITIES
from meve.memory._contradiction.statements import Statement
from meve.memory.records import MemoryRecord

PREDECESSORS = 8
"""The number of earlier records of one subject or attribute with which each record is compared."""
_RAREST = 3
"""The number of topics of a record, the rarest first, by which it is nominated; its attributes count besides."""


def find_related_pairs(
    records: Sequence[MemoryRecord], parse: Callable[[MemoryRecord], Statement]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of ids of records that share a rare topic or an attribute; of each record, with the latest before it.

    Args:
        records: the records of one user.
        parse: returns the statement of a record.
    """
    ordered = sorted(records, key=lambda record: (record.created_at, record.id))
    keys = {record.id: _find_keys(parse(record).claim) for record in ordered}
    counts = Counter(topic for topics, _ in keys.values() for topic in topics)
    earlier: dict[str, list[str]] = {}
    """By topic or attribute: the ids of the records so far."""
    for record in ordered:
        topics, attributes = keys[record.id]
        common = sorted((topic for topic in topics if counts[topic] > 1), key=lambda topic: (counts[topic], topic))
        for key in (*common[:_RAREST], *sorted(attributes)):
            for other in earlier.get(key, ())[-PREDECESSORS:]:
                yield min(other, record.id), max(other, record.id)
        for key in (*common, *attributes):
            earlier.setdefault(key, []).append(record.id)


def _find_keys(claim: Claim) -> tuple[frozenset[str], frozenset[str]]:
    """Return the topics of a statement, and its attributes, which are written so that no topic is equal."""
    attributes = claim.attributes | claim.hints | ACTIVITIES.intersection(claim.words)
    return claim.topics, frozenset(f":{name}" for name in attributes)
