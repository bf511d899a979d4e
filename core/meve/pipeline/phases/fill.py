"""Fill the budget of an uncertain context with candidates that aren't verified."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from meve._formulas import cosines
from meve.pipeline.phases.prioritize import Relate
from meve.types import Candidate, Dropped, Query, Selection

FILL = "fill"
"""The origin of a passage that was added because the context was uncertain without it."""
NEAR, LEAST_COSINE = 0.2, 0.15
"""A candidate whose cosine with the question is below the first is added after the others, and below the second not at
all, unless the verifier's logit is positive, or it shares words. With 0.2 for both, 2,000 tokens held the answers of
only 57 instead of 60 of 60 questions on a new user's documents."""
GIVEN = "given"
"""The origin of a passage that the caller gives, in the order of another search."""
NEAREST = 5
"""The number of given passages that are kept, best first, where nothing is verified: another search chose them.
On small notes, the cosine alone leaves out some answers among them."""
UNRELATED = "unrelated"
"""The reason of a candidate that was left out since its cosine with the question is lower."""

SharesWords = Callable[[str, str], bool]
"""A function that tells whether a question and a text share the words that matter."""


def fill(
    packed: Sequence[Candidate],
    retrieved: Sequence[Candidate],
    judged: Mapping[str, Candidate],
    *,
    duplicates: Set[str] = frozenset(),
    repeats: Relate | None = None,
    query: Query | None = None,
    shares_words: SharesWords | None = None,
    by_score: bool = True,
) -> Selection:
    """Return the packed candidates, then the others of phase 1, as unverified ones of origin `fill`.

    The others are in the order of their scores; those without one follow in the order of phase 1. Candidates that
    hardly relate to the question come last. Left out are duplicates, a candidate that only repeats the text of one
    before it, and, as dropped, one that neither its vector nor its words nor the verifier's logit relate to the
    question. Where nothing is verified, the first given passages stay. Scores stay where phase 2 gave some.

    Args:
        packed: the context so far, in its order.
        retrieved: the candidates of phase 1, in its order.
        judged: every scored candidate, by id.
        duplicates: the ids that phase 2 or 4 dropped as duplicates or as contradicted.
        repeats: tells whether a passage repeats another one; None to add all.
        query: the question; candidates are taken for related if it or they have no vector, and without it.
        shares_words: tells whether a text's words relate it to a question; None if that isn't known.
        by_score: whether scores decide the order; False for that of phase 1.
    """
    related, doubtful, unrelated = [], [], []
    ids = {*duplicates, *(c.id for c in packed)}
    nearest = [] if any(c.verified for c in packed) else retrieved[:NEAREST]
    kept = {c.id for c in nearest if c.origin == GIVEN}
    for candidate in retrieved:
        known = judged.get(candidate.id, candidate)
        if known.id in ids:
            continue
        cosine = 1.0 if known.id in kept or _has_words(known, query, shares_words) else _find_cosine(known, query)
        if cosine >= NEAR:
            related.append(known)
        elif cosine >= LEAST_COSINE:
            doubtful.append(known)
        else:
            unrelated.append(Dropped(candidate=known, reason=UNRELATED))
    if by_score:
        related, doubtful = sorted(related, key=_by_score), sorted(doubtful, key=_by_score)
    chosen = list(packed)
    for candidate in (*related, *doubtful):
        if not _is_repeated(candidate, chosen, repeats):
            chosen.append(replace(candidate, origin=FILL, verified=False))
    return Selection(kept=chosen, dropped=unrelated)


def _by_score(candidate: Candidate) -> float:
    return float("inf") if candidate.score is None else -candidate.score


def _is_repeated(candidate: Candidate, chosen: Sequence[Candidate], repeats: Relate | None) -> bool:
    return repeats is not None and any(repeats(candidate.passage, c.passage) for c in chosen)


def _find_cosine(candidate: Candidate, query: Query | None) -> float:
    """Return the cosine of question and candidate; 1 if it isn't known, or if the verifier's logit is positive."""
    vector = None if query is None else query.vector
    if vector is None or candidate.vector is None or candidate.scores.get("logit", 0.0) > 0:
        return 1.0
    return float(cosines(vector, candidate.vector[np.newaxis])[0])


def _has_words(candidate: Candidate, query: Query | None, shares_words: SharesWords | None) -> bool:
    return query is not None and shares_words is not None and shares_words(query.text, candidate.passage.content)
