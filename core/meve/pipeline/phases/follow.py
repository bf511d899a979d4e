"""Search again with verified passages as part of the query (multi-hop retrieval, phase 2 with `hops` of 2 or more).

A question may need two passages of which the second can't be found by the question alone. So the sources are searched
with the question and the beginning of a verified passage, and new or rejected candidates are scored with both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from meve.pipeline._deadline import Deadline
from meve.pipeline.phases.cascade import DUPLICATE_OF, order_by_chance, split_unlikely
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import reaches, score_in_time
from meve.ports import Prior, Scorer, Source
from meve.types import Candidate, Dropped, Query, Selection, sort_best_first

FOLLOWED = "follow"
"""The name of a score with evidence, and the origin of a candidate from a further hop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowResult:
    """The result of a further hop."""

    selection: Selection
    """All accepted candidates, best first; and those that this hop rejected."""
    judged: Mapping[str, Candidate]
    """Every scored candidate so far, by id."""


def extend_query(question: str, evidence: Sequence[str], words: int) -> str:
    r"""Return the question followed by the beginning of each evidence passage.

    >>> extend_query("Where was its author born?", ["Emma is a novel by Jane Austen."], words=4)
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
    prior: Prior | None = None,
    unscored: Sequence[Dropped] = (),
    deadline: Deadline | None = None,
) -> FollowResult:
    """Search the sources with each evidence passage, and score candidates that aren't accepted yet.

    A candidate's score with evidence is its probability given the evidence times the probability of the evidence;
    else candidates found through wrong evidence would outrank the right ones. The best of a candidate's scores counts.

    Args:
        query: the question.
        accepted: the verified candidates so far.
        judged: every scored candidate so far, by id.
        evidence: verified candidates, each of which extends the query by itself.
        sources: the sources to search.
        scorer: the scorer of phase 2.
        embed: adds the vector to a query.
        k: the most candidates per source and evidence passage.
        threshold: τ in [0, 1].
        words: how many words of an evidence passage follow the question.
        prior: predicts which candidates need no score; None to score all.
        unscored: what phase 2 dropped without a score. Duplicates stay dropped; others are scored if found again, and
            keep their origin.
        deadline: ends the searches and the scoring; None for no end.

    Raises:
        QueryError: question and evidence exceed a model's window.
    """
    accepted_ids = {c.id for c in accepted}
    known = dict(judged)
    best: dict[str, Candidate] = {}
    duplicates = {d.candidate.id for d in unscored if d.reason.startswith(DUPLICATE_OF)}
    skipped: dict[str, Dropped] = {}
    origins = {d.candidate.id: d.candidate.origin for d in unscored}
    for piece in evidence:
        if deadline and not deadline.has_time_for(1):
            break
        extended = embed(Query(text=extend_query(query.text, [piece.passage.content], words), where=query.where))
        candidates = [c for c in retrieve(extended, sources, k) if c.id not in accepted_ids and c.id not in duplicates]
        fresh = [c.id for c in candidates if c.id not in known]
        found = [
            replace(known[c.id], keyword_share=c.keyword_share, source_rank=c.source_rank)
            if c.id in known
            else replace(c, origin=origins.get(c.id, FOLLOWED))
            for c in candidates
        ]
        ordered = order_by_chance(extended, found, prior)
        likely, unlikely = split_unlikely(ordered, prior.least if prior else 0.0)
        scored, late = score_in_time(extended, likely, scorer, deadline=deadline)
        skipped |= {d.candidate.id: d for d in (*unlikely, *late)}
        for candidate in scored:
            rated = _with_evidence_score(candidate, piece, known.get(candidate.id), scorer.name)
            before = best.get(candidate.id, rated)
            better = rated if (rated.score or 0.0) > (before.score or 0.0) else before
            best[candidate.id] = replace(better, read_with=tuple(dict.fromkeys((*before.read_with, *rated.read_with))))
        known |= {i: best[i] for i in fresh if i in best}
    verdicts = [replace(c, verified=reaches(c, threshold)) for c in best.values()]
    rejected = [c for c in sort_best_first(verdicts) if not c.verified]
    return FollowResult(
        selection=Selection(
            kept=sort_best_first([*accepted, *(c for c in verdicts if c.verified)]),
            dropped=[
                *(Dropped(candidate=c, reason="below_threshold") for c in rejected),
                *(d for i, d in skipped.items() if i not in known),
            ],
        ),
        judged={**judged, **{c.id: c for c in verdicts}},
    )


def _with_evidence_score(judged: Candidate, piece: Candidate, before: Candidate | None, name: str) -> Candidate:
    """Return the candidate with its score given the evidence; the better of all its scores decides its rank."""
    scores = dict(judged.scores)
    followed = scores.pop(name) * (piece.score or 0.0)
    read_with = (*judged.read_with, piece.id)
    if before is None:
        return replace(judged, scores={**scores, FOLLOWED: followed}, score=followed, read_with=read_with)
    followed = max(followed, before.scores.get(FOLLOWED, 0.0))  # an earlier hop may have said more
    scores = {**scores, **before.scores, FOLLOWED: followed}
    return replace(judged, scores=scores, score=max(before.score or 0.0, followed), read_with=read_with)
