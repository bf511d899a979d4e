"""Searches one user's memory for a router, and logs only what is handed out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from meve._telemetry import count
from meve.errors import QueryError
from meve.memory import GovernedMemory, Recall
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.query import CANDIDATES, make_query
from meve.memory.records import SHARED, MemoryRecord, UserId, user_key
from meve.pipeline._retrieval_report import UNLIMITED
from meve.pipeline._scorers import VerifierScorer
from meve.types import Candidate, FloatArray, Query, TextSpans

_LONGEST = 2_000
"""The last characters of a question that are verified if all are too many for the verifier."""


def passage_of(candidate: Candidate) -> MemoryPassage:
    """Return a memory that was found."""
    assert isinstance(candidate.passage, MemoryPassage)
    return candidate.passage


def record_of(candidate: Candidate) -> MemoryRecord:
    """Return the record of a memory that was found."""
    return passage_of(candidate).record


def time_of(candidate: Candidate) -> datetime:
    """Return since when a memory holds, or else when it was added."""
    record = record_of(candidate)
    return record.valid_from or record.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one search found, best first."""

    recall: Recall
    candidates: tuple[Candidate, ...]
    """Each with its scores by the policy and by similarity."""
    readable: int
    """The number of records that were searched: the user's own and shared ones that the filters admit."""
    ranked: int
    """The number of those that were compared with the text, the nearest ones."""
    shed: bool = False
    """Whether fewer were compared because too many searches are running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReader:
    """Reads the memory of one user, who can't be changed."""

    memory: GovernedMemory
    user_id: UserId
    search: Mapping[str, Any]
    """The options of every search."""
    without: Collection[str] = ()
    """Content that the reader of the evidence has seen: ids of memories, or texts."""

    def look(
        self,
        text: str,
        *,
        candidates: int = CANDIDATES,
        since: datetime | None = None,
        until: datetime | None = None,
        history: bool = False,
    ) -> Found:
        """Return what a search finds, without logging it.

        Args:
            text: what to search for.
            candidates: the maximum number of memories that are ranked.
            since: leave out memories that were added before this moment.
            until: leave out memories that were added at this moment or later.
            history: whether memories that another one replaced may be found; not archived ones, which a tool's `forget`
                may have hidden.

        Raises:
            QueryError: the text is blank.
            ModelError: the embedder failed.
        """
        memory = self.memory
        options: dict[str, Any] = {**self.search, "without": self.without, "limit": None, "max_tokens": UNLIMITED}
        options |= {name: moment for name, moment in (("since", since), ("until", until)) if moment is not None}
        if history:
            options["include_superseded"] = True
        searcher, runtime = memory._searcher, memory._runtime
        query = make_query(
            text, self.user_id, policy=memory.policy, now=memory.clock.now(), cache=memory._sentences, **options
        )
        with searcher.load.one_more() as heavy:
            if heavy:
                count("meve.shed", {"meve.shed.kind": "search"})
            most = min(candidates, runtime.policy.limits.busy_candidates) if heavy else candidates
            recall = searcher.look(replace(query, candidates=most))
        scores = {each.id: each.scores for each in recall.trace.candidates}
        return Found(
            recall=recall,
            shed=heavy,
            readable=max(searcher.count(query), len(recall.passages)),  # the archive isn't counted
            ranked=recall.trace.phases[0].returned,
            candidates=tuple(
                Candidate(
                    passage=p.passage, origin=p.origin, scores=scores[p.passage.id], score=p.score, tokens=p.tokens
                )
                for p in recall.passages
                if not (isinstance(p.passage, MemoryPassage) and p.passage.record.archived)
            ),
        )

    def verify(self, question: str, candidates: list[Candidate]) -> FloatArray:
        """Return the probability that each memory answers a question, by the memory's verifier, shape (n,).

        Raises:
            ModelError: the verifier failed.
        """
        scorer = VerifierScorer(self.memory._runtime.verifier)
        try:
            return scorer.score(Query(text=question), candidates)
        except QueryError:  # longer than the verifier's limit
            return scorer.score(Query(text=question[-_LONGEST:]), candidates)

    def rate(self, question: str, candidate: Candidate, spans: TextSpans) -> list[float]:
        """Return the verifier's probability of each part of a memory; empty if the verifier can't rate parts.

        Args:
            question: the question.
            candidate: the memory.
            spans: the start and end of each part in the memory's text, in characters.

        Raises:
            ModelError: the verifier failed.
        """
        scorer = VerifierScorer(self.memory._runtime.verifier)
        if not scorer.scores_sentences:
            return []
        shift = len(candidate.passage.content) - len(candidate.passage.text)
        shifted = [(start + shift, end + shift) for start, end in spans]
        try:
            rated = scorer.score_sentences(Query(text=question), [candidate], [shifted])
        except QueryError:  # longer than the verifier's limit
            rated = scorer.score_sentences(Query(text=question[-_LONGEST:]), [candidate], [shifted])
        return list(map(float, rated[0]))

    def find_standing(self, question: str) -> list[MemoryRecord]:
        """Return the memories that stand in every prompt, the oldest first."""
        memory = self.memory
        query = make_query(question, self.user_id, policy=memory.policy, now=memory.clock.now(), **self.search)
        return memory._searcher.find_standing(query)

    def versions(self) -> list[int]:
        """Return the versions of the user's and of the shared records."""
        return self.memory._runtime.store.versions(user_key(self.user_id), SHARED)

    def hand_out(self, recall: Recall, versions: Sequence[int]) -> bool:
        """Log that the memories of a recall are handed out; if one was erased meanwhile, log nothing, return False.

        Args:
            recall: the memories.
            versions: of the records, before the memories were read.
        """
        query = make_query(recall.query, self.user_id, policy=self.memory.policy, now=self.memory.clock.now())
        return self.memory._searcher.log(query, recall, versions)

    def has_expired(self, recall: Recall) -> bool:
        """Return whether a memory of a recall has expired meanwhile."""
        return recall.has_expired(self.memory.clock.now())
