"""Fill the budget of a context that isn't sufficient with the next candidates of phase 1."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from meve.pipeline.phases.prioritize import Relate
from meve.types import Candidate

FILL = "fill"
"""The origin of a passage that was added because the context wasn't sufficient without it."""


def fill(
    packed: Sequence[Candidate],
    retrieved: Sequence[Candidate],
    judged: Mapping[str, Candidate],
    *,
    duplicates: Set[str] = frozenset(),
    repeats: Relate | None = None,
) -> list[Candidate]:
    """Return the packed candidates, then the others of phase 1 in its order, as unverified ones of origin `fill`.

    Duplicates are left out, and a candidate that only repeats the text of one before it. Scores stay where phase 2 gave
    some.

    Args:
        packed: the context so far, in its order.
        retrieved: the candidates of phase 1, in its order.
        judged: every scored candidate, by id.
        duplicates: the ids that phase 2 or 4 dropped as duplicates or as contradicted.
        repeats: tells whether a passage repeats another one; None to add all.
    """
    chosen = list(packed)
    ids = {*duplicates, *(c.id for c in packed)}
    for candidate in retrieved:
        if candidate.id not in ids and not _is_repeated(candidate, chosen, repeats):
            known = judged.get(candidate.id, candidate)
            chosen.append(replace(known, origin=FILL, verified=False))
    return chosen


def _is_repeated(candidate: Candidate, chosen: Sequence[Candidate], repeats: Relate | None) -> bool:
    return repeats is not None and any(repeats(candidate.passage, c.passage) for c in chosen)
