"""Phase 2 once more: what completes the evidence that is verified so far?

A question may need two passages of which the second can't be told from the question alone. So the sources are asked
again, with the question and the beginning of a verified passage, and what they bring, be it new or turned down by
phase 2, is judged by both. What they don't bring keeps its verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from meve.pipeline.phases.cascade import DUPLICATE_OF
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import score_candidates, reaches
from meve.ports import Scorer, Source
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

FOLLOWED = "follow"
"""The name of the score that a candidate got with evidence, and the origin of one that only then was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What a further hop came to."""

    selection: Selection
    """All that is accepted now, best first; and what was found now, and turned down."""
    judged: Mapping[str, Candidate]
    """Every verdict so far, by id."""


def with_evidence(question: str, evidence: Sequence[str], words: int) -> str:
    r"""The question, then the beginning of each passage that is verified: what a verifier reads in a further hop.

    >>> with_evidence("Where was its author born?", ["Emma is a novel by Jane Austen."], words=4)
    'Where was its author born?\nEmma is a novel'
    """
    return "\n".join([question, *(" ".join(text.split()[:words]) for text in evidence)])


def follow(
    query: Query,
    accepted: Sequence[Candidate],
    judged: Mapping[str, Candidate],
    evidence: Sequence[Candidate],
    *,
    sources: Sequence[Source],
    scorer: Scorer,
    embed: Callable[[Query], Query],
    k: int,
    threshold: float,
    words: int,
    spared: Sequence[Dropped] = (),
) -> Followed:
    """Ask the sources again beside each piece of evidence, and judge what isn't accepted by question and evidence.

    With a piece, a candidate is as probable as both together: its probability beside the piece, times the piece's own.
    Otherwise whatever goes with a passage that is on the wrong track would outrank the right ones. Of several scores,
    with one of the pieces or without any, a candidate's best counts.

    Args:
        query: the question.
        accepted: what is verified so far.
        judged: every verdict so far, by id.
        evidence: verified candidates to go on from, each by itself.
        sources: where to look.
        scorer: the one that phase 2 used.
        embed: gives a query its vector.
        k: how many candidates a source may bring for each piece.
        threshold: τ.
        words: how many words of a piece stand beside the question.
        spared: what phase 2 left unscored. Copies stay out; what else of it is found again is judged now, and its
            origin is that of its first finding.

    Raises:
        QueryError: question and evidence are longer than a model's window.
    """
    have = {c.id for c in accepted}
    known = dict(judged)
    best: dict[str, Candidate] = {}
    copies = {d.candidate.id for d in spared if d.reason.startswith(DUPLICATE_OF)}
    origins = {d.candidate.id: d.candidate.origin for d in spared}
    for piece in evidence:
        asked = embed(Query(text=with_evidence(query.text, [piece.passage.content], words), where=query.where))
        found = [c for c in retrieve(asked, sources, k) if c.id not in have and c.id not in copies]
        again = [known[c.id] for c in found if c.id in known]
        fresh = [replace(c, origin=origins.get(c.id, FOLLOWED)) for c in found if c.id not in known]
        for candidate in score_candidates(asked, [*again, *fresh], scorer):
            rated = _with(candidate, piece, known.get(candidate.id), scorer.name)
            if candidate.id not in best or (rated.score or 0.0) > (best[candidate.id].score or 0.0):
                best[candidate.id] = rated
        known |= {c.id: best[c.id] for c in fresh}
    verdicts = [replace(c, verified=reaches(c, threshold)) for c in best.values()]
    return Followed(
        selection=Selection(
            kept=sort_best_first([*accepted, *(c for c in verdicts if c.verified)]),
            dropped=[Dropped(candidate=c, reason="below_threshold") for c in sort_best_first(verdicts) if not c.verified],
        ),
        judged={**judged, **{c.id: c for c in verdicts}},
    )


def _with(judged: Candidate, piece: Candidate, before: Candidate | None, name: str) -> Candidate:
    """The candidate with the score that evidence gave it, beside the one from before; the better one orders it."""
    scores = dict(judged.scores)
    followed = scores.pop(name) * (piece.score or 0.0)
    if before is None:
        return replace(judged, scores={**scores, FOLLOWED: followed}, score=followed)
    followed = max(followed, before.scores.get(FOLLOWED, 0.0))  # an earlier hop may have said more
    scores = {**scores, **before.scores, FOLLOWED: followed}
    return replace(judged, scores=scores, score=max(before.score or 0.0, followed))
