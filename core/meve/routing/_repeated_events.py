"""Finds memories that searches leave out, and that counts and lists need: repeated events, and former values.

Of memories that say the same on different days, searches show one, and maintenance merges those that it doesn't take
for events. A count of events must count each.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from meve.memory._recall.memory_passage import in_zone
from meve.memory.records import MemoryRecord, is_part
from meve.routing._reader import Found, passage_of, record_of

_REDUNDANT = "redundant_with:"
"""The beginning of the reason of a memory that a search left out since another one says the same."""


def find_repeated(first: Found, everything: Found) -> Found:
    """Return what says the same as a memory that was found, on another day.

    Args:
        first: the memories that a search found, of each fact one.
        everything: the same search with duplicates and with memories that another one replaced.
    """
    kept = {c.id: record_of(c) for c in first.candidates}
    survivors = {
        each.id: each.reason.removeprefix(_REDUNDANT)
        for each in first.recall.trace.candidates
        if each.reason.startswith(_REDUNDANT)
    }
    days: dict[str, set[date]] = defaultdict(set)
    repeated = []
    for candidate in sorted(everything.candidates, key=lambda c: record_of(c).created_at):
        survivor = kept.get(_survivor(record_of(candidate), survivors, kept))
        if survivor is None or candidate.id in kept:
            continue
        zone = passage_of(candidate).zone
        day, known = (in_zone(record.created_at, zone).date() for record in (record_of(candidate), survivor))
        if day != known and day not in days[survivor.id]:
            days[survivor.id].add(day)
            repeated.append(candidate)
    return replace(everything, candidates=tuple(repeated))


def find_former(everything: Found) -> Found:
    """Return what no longer holds, without copies and parts of what replaced them.

    Args:
        everything: a search with memories that another one replaced.
    """
    distinct = drop_parts(everything)
    return replace(distinct, candidates=tuple(c for c in distinct.candidates if record_of(c).is_closed))


def drop_parts(everything: Found) -> Found:
    """Return what a search with replaced memories found, without copies and parts of what replaced them."""
    records = {candidate.id: record_of(candidate) for candidate in everything.candidates}

    def is_other(record: MemoryRecord) -> bool:
        by = records.get(record.superseded_by or "")
        return by is None or not is_part(record, by)

    return replace(everything, candidates=tuple(c for c in everything.candidates if is_other(records[c.id])))


def _survivor(record: MemoryRecord, survivors: Mapping[str, str], kept: Mapping[str, MemoryRecord]) -> str:
    """Return the id of the memory that stands for another one; empty if none does."""
    if record.id in survivors:
        return survivors[record.id]
    by = kept.get(record.superseded_by or "")
    return by.id if by is not None and is_part(record, by) and by.kind != "summary" else ""
