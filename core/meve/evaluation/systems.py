"""Who is measured: plain similarity, keywords, both fused, and the five phases with each ablation."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias, Unpack

import numpy as np

from meve.components.lexical.bm25 import Bm25Index
from meve.evaluation.types import Evidence, Handed, Parts, System
from meve.pipeline.config import Overrides, RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.phases import budget
from meve.retrieval.retriever import Retriever
from meve.types import Candidate, Passage

RRF_K = 60
"""Of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (2009)."""


class Workbench:
    """Passages, indexed once for all systems that search them."""

    def __init__(
        self, passages: Sequence[Passage], parts: Parts, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Holds them; `prepare` indexes them."""
        self.passages = passages
        self.parts = parts
        self._progress = progress

    def prepare(self) -> "Workbench":
        """Index them for every system, and count each passage's tokens, before anything is timed."""
        self._bm25  # noqa: B018 - made on first use
        self._counts.update((p.content, self.parts.tokens.count(p.content)) for p in self.passages)
        self.retriever  # noqa: B018
        return self

    @cached_property
    def by_id(self) -> Mapping[str, Passage]:
        """The passages by id."""
        return {p.id: p for p in self.passages}

    @cached_property
    def retriever(self) -> Retriever:
        """MeVe over them."""
        parts = self.parts
        return Retriever.from_passages(
            list(self.passages),
            config=parts.config,
            embedder=parts.embedder,
            verifier=parts.verifier,
            tokens=parts.tokens,
            progress=self._progress,
        )

    def keywords(self, question: str, k: int) -> list[str]:
        """The ids of the k best by BM25."""
        rows, _ = self._bm25.search(question, k)
        return [self.passages[row].id for row in rows.tolist()]

    @cached_property
    def _counts(self) -> dict[str, int]:
        """Tokens of each passage, as MeVe stores them too."""
        return {}

    @cached_property
    def _bm25(self) -> Bm25Index:
        index = Bm25Index()
        index.add(np.arange(len(self.passages)), [p.content for p in self.passages])
        return index

    def with_config(self, config: RetrieverConfig) -> "Workbench":
        """The same indexes, with other settings."""
        other = copy(self)
        other.parts = replace(self.parts, config=config)
        other.__dict__.update({name: getattr(self, name) for name in ("by_id", "_bm25", "_counts", "retriever")})
        return other

    def packed(self, ids: Sequence[str]) -> Handed:
        """These passages in this order, as many as fit."""
        parts = self.parts
        candidates = [
            Candidate(passage=self.by_id[i], origin="given", tokens=self._counts.get(self.by_id[i].content))
            for i in ids
        ]
        composed = budget(candidates, parts.tokens, max_tokens=parts.max_tokens, separator=parts.separator)
        kept = composed.selection.kept
        return Handed(
            passages=tuple(Evidence(id=c.id, text=c.passage.content) for c in kept),
            ranked=tuple(ids),
            text=composed.text,
            tokens=composed.tokens,
        )


Build: TypeAlias = Callable[[Workbench], System]
"""Makes a system over a workbench."""


def from_context(context: Context) -> Handed:
    """What a retrieval hands over, with its ranking before the budget and every probability, from its trace."""
    verified = context.trace.mode in ("full", "no_fallback")
    score = "verifier" if verified else "similarity"
    going = [c for c in context.trace.candidates if c.fate == "kept" or c.reason in ("over_budget", "over_limit")]
    going.sort(key=lambda c: (not c.verified, -c.scores.get(score, float("-inf")), c.id))
    return Handed(
        passages=tuple(
            Evidence(id=p.passage.id, text=p.passage.content, score=p.score if verified else None, verified=p.verified)
            for p in context.passages
        ),
        ranked=tuple(c.id for c in going),
        text=context.text,
        tokens=context.tokens,
        sufficient=context.sufficient if verified else None,
        judged={c.id: c.scores[score] for c in context.trace.candidates if score in c.scores} if verified else {},
    )


def phases(**overrides: Unpack[Overrides]) -> Build:
    """The five phases, with some settings of their own."""

    def build(bench: Workbench) -> System:
        retriever, config = bench.retriever, bench.parts.config.override(**overrides)
        return lambda question: from_context(retriever.retrieve(question, config=config))

    return build


def keyword_search(bench: Workbench) -> System:
    """BM25 alone, straight into the budget."""
    return lambda question: bench.packed(bench.keywords(question, bench.parts.candidates))


def hybrid(bench: Workbench) -> System:
    """Plain similarity and BM25, fused by reciprocal ranks, straight into the budget."""
    k = bench.parts.candidates
    # nothing is cut in the first of the two: it only ranks
    ranking = bench.parts.config.override(mode="standard_rag", sources="dense", limit=1)

    def system(question: str) -> Handed:
        points: dict[str, float] = {}
        dense = from_context(bench.retriever.retrieve(question, config=ranking)).ranked
        for ranked in (dense, bench.keywords(question, k)):
            for rank, passage_id in enumerate(ranked, start=1):
                points[passage_id] = points.get(passage_id, 0.0) + 1.0 / (RRF_K + rank)
        return bench.packed(sorted(points, key=lambda i: (-points[i], i))[:k])

    return system


SYSTEMS: dict[str, Build] = {
    "dense": phases(mode="standard_rag", sources="dense"),
    "bm25": keyword_search,
    "hybrid": hybrid,
    "no_verification": phases(mode="no_verification"),
    "no_fallback": phases(mode="no_fallback"),
    "full": phases(),
    "second_hop": phases(hops=2),
    "sentences": phases(packing="sentences"),
}
"""Those that are always measured: standard RAG, two baselines more, each ablation, all five phases as they are set, and
with a second hop or packed by sentences."""

ONE_PASSAGE = frozenset({"nq_open", "nfcorpus", "scifact", "rgb"})
"""Sets of which no question needs several passages together: a second hop has nothing to find there."""


def systems_for(set_name: str) -> Mapping[str, Build]:
    """Those that are measured on a set."""
    return {name: build for name, build in SYSTEMS.items() if name != "second_hop" or set_name not in ONE_PASSAGE}
