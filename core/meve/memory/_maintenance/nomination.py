"""Nomination: which records a judge compares because they share a rare word or a relation."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from meve.memory._contradiction.statements import Statement
from meve.memory.records import MemoryRecord

PREDECESSORS = 8
"""The number of earlier records with one word with which each record is compared."""
_WISH = "standing wish"
_RAREST = 3
"""The number of topics of a record, the rarest first, by which it is nominated; its relations count besides."""


def find_related_pairs(
    records: Sequence[MemoryRecord], parse: Callable[[MemoryRecord], Statement]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of ids of records that share a rare topic or a relation: each record with the latest before it.

    Standing wishes count as sharing a relation: "English is fine again" has no word of "Answer in Portuguese".

    Args:
        records: the records of one user.
        parse: returns the statement of a record.
    """
    ordered = sorted(records, key=lambda record: (record.created_at, record.id))
    claims = {record.id: parse(record).claim for record in ordered}
    counts = Counter(topic for claim in claims.values() for topic in claim.topics)
    earlier: dict[str, list[str]] = {}
    """By topic or relation: the ids of the records so far."""
    for record in ordered:
        claim = claims[record.id]
        shared = sorted((topic for topic in claim.topics if counts[topic] > 1), key=lambda t: (counts[t], t))
        relations = sorted(claim.relations) + [_WISH] * record.is_standing
        for key in dict.fromkeys((*shared[:_RAREST], *relations)):
            for other in earlier.get(key, ())[-PREDECESSORS:]:
                yield min(other, record.id), max(other, record.id)
        for key in {*shared, *relations}:
            earlier.setdefault(key, []).append(record.id)
