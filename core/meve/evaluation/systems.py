"""The systems that are measured: dense, BM25 and hybrid retrieval, and the five phases with their ablations."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeAlias, TypeVar, Unpack

import numpy as np

from meve.components.lexical.bm25 import Bm25Index
from meve.evaluation.types import Evidence, SharedComponents, System, SystemOutput
from meve.pipeline.config import Overrides, RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.phases.budget import budget
from meve.pipeline.phases.follow import FOLLOWED
from meve.retrieval.retriever import Retriever
from meve.types import Candidate, Passage, Progress

_Item = TypeVar("_Item", int, str)
RRF_K = 60
"""The constant of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (2009)."""


def build_bm25(texts: Sequence[str]) -> Bm25Index:
    """Return a keyword index of texts, whose rows are their positions."""
    index = Bm25Index()
    index.add(np.arange(len(texts)), list(texts))
    return index


@dataclass(eq=False)
class IndexedPassages:
    """Passages with the indexes that all systems share; `prepare` builds them."""

    passages: Sequence[Passage]
    components: SharedComponents
    progress: Progress | None = None
    _token_counts: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> Self:
        """Build all indexes and count each passage's tokens, so that neither is timed; returns self."""
        self._bm25  # noqa: B018 - built on first use
        self._token_counts.update((p.content, self.components.tokens.count(p.content)) for p in self.passages)
        self.retriever  # noqa: B018
        return self

    @cached_property
    def by_id(self) -> Mapping[str, Passage]:
        """The passages by id."""
        return {p.id: p for p in self.passages}

    @cached_property
    def retriever(self) -> Retriever:
        """MeVe's retriever over the passages."""
        components = self.components
        return Retriever.from_passages(
            list(self.passages),
            config=components.config,
            embedder=components.embedder,
            verifier=components.verifier,
            tokens=components.tokens,
            progress=self.progress,
        )

    def search_keywords(self, question: str, k: int) -> list[str]:
        """Return the ids of the k best passages by BM25."""
        rows, _ = self._bm25.search(question, k)
        return [self.passages[row].id for row in rows.tolist()]

    @cached_property
    def _bm25(self) -> Bm25Index:
        return build_bm25([p.content for p in self.passages])

    def with_config(self, config: RetrieverConfig) -> Self:
        """Return the same indexes with other settings."""
        other = copy(self)
        other.components = replace(self.components, config=config)
        other.__dict__.update({name: getattr(self, name) for name in ("by_id", "_bm25", "retriever")})
        return other

    def fill_budget(self, ids: Sequence[str]) -> SystemOutput:
        """Return as many of the passages, in the order of their ids, as fit into the budget."""
        components = self.components
        candidates = [
            Candidate(passage=self.by_id[i], origin="given", tokens=self._token_counts.get(self.by_id[i].content))
            for i in ids
        ]
        composed = budget(
            candidates,
            components.tokens,
            max_tokens=components.config.max_tokens,
            separator=components.config.separator,
        )
        return SystemOutput(
            passages=tuple(Evidence(id=c.id, text=c.passage.content) for c in composed.selection.kept),
            ranked=tuple(ids),
            text=composed.text,
            tokens=composed.tokens,
        )


SystemFactory: TypeAlias = Callable[[IndexedPassages], System]
"""Builds a system over indexed passages."""


def output_from_context(context: Context) -> SystemOutput:
    """Return a retrieval's output, with the ranking before the budget and every probability, from its trace."""
    verified = context.trace.mode in ("full", "no_fallback")
    deciding = ("verifier", FOLLOWED) if verified else ("similarity",)
    scores = {c.id: max(c.scores[n] for n in deciding if n in c.scores) for c in context.trace.candidates
              if not c.scores.keys().isdisjoint(deciding)}  # fmt: skip
    ranked = [c for c in context.trace.candidates if c.fate == "kept" or c.reason in ("over_budget", "over_limit")]
    ranked.sort(key=lambda c: (not c.verified, -scores.get(c.id, float("-inf")), c.id))
    return SystemOutput(
        passages=tuple(
            Evidence(id=p.passage.id, text=p.passage.content, score=p.score if verified else None, verified=p.verified)
            for p in context.passages
        ),
        ranked=tuple(c.id for c in ranked),
        text=context.text,
        tokens=context.tokens,
        sufficient=context.sufficient if verified else None,
        probabilities=scores if verified else {},
    )


def pipeline_system(**overrides: Unpack[Overrides]) -> SystemFactory:
    """Return the factory of a system that runs the five phases, with these settings changed."""

    def build(indexed: IndexedPassages) -> System:
        retriever, config = indexed.retriever, indexed.components.config.override(**overrides)
        return lambda question: output_from_context(retriever.retrieve(question, config=config))

    return build


def bm25_system(indexed: IndexedPassages) -> System:
    """Return BM25 search alone, followed by the budget."""
    return lambda question: indexed.fill_budget(indexed.search_keywords(question, indexed.components.config.candidates))


def fuse_ranks(*rankings: Sequence[_Item]) -> list[_Item]:
    """Return the items of all rankings by reciprocal rank fusion, best first; ties are in the items' order."""
    scores: defaultdict[_Item, float] = defaultdict(float)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] += 1.0 / (RRF_K + rank)
    return sorted(scores, key=lambda item: (-scores[item], item))


def hybrid_system(indexed: IndexedPassages) -> System:
    """Return dense and BM25 search, fused by reciprocal ranks and followed by the budget."""
    k = indexed.components.config.candidates
    # limit=1: only the ranking of the dense search is used
    ranking = indexed.components.config.override(mode="standard_rag", sources="dense", limit=1)

    def system(question: str) -> SystemOutput:
        dense = output_from_context(indexed.retriever.retrieve(question, config=ranking)).ranked
        return indexed.fill_budget(fuse_ranks(dense, indexed.search_keywords(question, k))[:k])

    return system


SYSTEMS: dict[str, SystemFactory] = {
    "dense": pipeline_system(mode="standard_rag", sources="dense"),
    "bm25": bm25_system,
    "hybrid": hybrid_system,
    "no_verification": pipeline_system(mode="no_verification"),
    "no_fallback": pipeline_system(mode="no_fallback"),
    "full": pipeline_system(),
    "second_hop": pipeline_system(hops=2),
    "sentences": pipeline_system(packing="sentences"),
}
"""The systems that are always measured: three baselines, two ablations, all five phases, and two variants of them."""

SINGLE_PASSAGE_SETS = frozenset({"nq_open", "nfcorpus", "scifact", "rgb"})
"""Sets whose questions never need several passages together, so that a second hop has nothing to find."""


def select_systems(set_name: str) -> Mapping[str, SystemFactory]:
    """Return the systems that are measured on a set."""
    return {
        name: factory
        for name, factory in SYSTEMS.items()
        if name != "second_hop" or set_name not in SINGLE_PASSAGE_SETS
    }
