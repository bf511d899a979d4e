"""The systems of the routing experiment: flat searches, the memory without a router, and routed tiers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from random import Random
from typing import TypeAlias

from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.errors import ConfigurationError
from meve.evaluation.experiments.memory.recall import FUSED, MemoryPeer, MemorySearch, make_baselines, open_filled
from meve.evaluation.experiments.routing.cases import RoutingCase, RoutingSet
from meve.evaluation.types import Evidence, SystemOutput
from meve.memory import GovernedMemory
from meve.memory._recall.memory_passage import MemoryPassage
from meve.pipeline.context import Context
from meve.pipeline.phases.budget import budget
from meve.ports import Embedder, TokenCounter, Verifier
from meve.routing import MemoryRouter, RoutePlan, Tier
from meve.types import Candidate, Passage

DEPTH = 200
"""The turns that a flat search ranks: more than the largest budget holds."""
RECALLS = 32
"""The recalls that the memory caches, since a question is asked of several tiers and with several budgets."""
BASELINE, DENSE, RANDOM, HISTORY, FULL, MEMORY = (
    "flat hybrid",
    "flat dense",
    "random turns",
    "history, newest",
    "full history",
    "memory.search",
)
ROUTED, ORACLE, RANDOM_TIER = "router", "oracle tier", "random tier"
FIXED: Mapping[str, Tier] = {f"always {tier}": tier for tier in Tier}
OWN = None
"""The budget of a router that chooses its own."""

RoutingSystem: TypeAlias = Callable[[RoutingCase, int | None], SystemOutput]
"""A function from a case and a token budget to the evidence; None for a budget of its own."""


@dataclass(slots=True)
class CaseClock:
    """A clock that shows when the current question is asked."""

    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        """Return the time of the current question."""
        return self.moment

    def elapsed(self) -> float:
        """Return the seconds of the monotonic performance counter."""
        return time.perf_counter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that all systems share."""

    embedder: Embedder
    verifier: Verifier
    tokens: TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSystems:
    """The systems over one set, and the router's plans."""

    by_name: Mapping[str, RoutingSystem]
    plan: Callable[[RoutingCase], RoutePlan]


@contextmanager
def open_systems(
    data: RoutingSet, models: Models, peers: Mapping[str, MemoryPeer], *, seed: int
) -> Iterator[OpenSystems]:
    """Open all systems over the conversations of a set, by name. They are closed and deleted afterwards.

    Args:
        data: the set.
        models: what the systems share.
        peers: foreign memories, by name.
        seed: seed of the random turns and tiers.
    """
    flat = make_baselines(data.turns, models.embedder, DEPTH)
    orders: dict[str, MemorySearch] = {
        RANDOM: lambda user, question: _shuffle([t.id for t in data.turns[user]], f"{seed} {question}"),
        HISTORY: lambda user, _: [turn.id for turn in reversed(data.turns[user])],
        "flat bm25": flat["bm25"],
        "flat dense": flat["vectors"],
        BASELINE: flat[FUSED],
        **{name: peer(data.turns) for name, peer in peers.items()},
    }
    clock = CaseClock()
    with open_filled(
        data.turns, models.embedder, verifier=models.verifier, tokens=models.tokens, clock=clock,
        cached_recalls=RECALLS,
    ) as memory:  # fmt: skip
        routed = _Routed(memory=memory, clock=clock)
        systems: dict[str, RoutingSystem] = {
            **{name: _flat_system(data, search, models.tokens) for name, search in orders.items()},
            FULL: _full_system(data, models.tokens),
            MEMORY: routed.search,
            ROUTED: routed.recall,
            ORACLE: lambda case, most: routed.recall(case, most, case.tier),
            RANDOM_TIER: lambda case, most: routed.recall(case, most, Random(f"{seed} {case.id}").choice(list(Tier))),
            **{name: _fixed_system(routed, tier) for name, tier in FIXED.items()},
        }
        yield OpenSystems(by_name=systems, plan=routed.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Routed:
    memory: GovernedMemory
    clock: CaseClock

    def search(self, case: RoutingCase, most: int | None) -> SystemOutput:
        """Return what the memory finds without a router."""
        self.clock.moment = case.at
        if most is None:
            raise ConfigurationError("a search has no budget of its own: give one")
        return _output(case, self.memory.search(case.text, user_id=case.user, limit=None, max_tokens=most))

    def plan(self, case: RoutingCase) -> RoutePlan:
        """Return how the router reads the memory for a question."""
        self.clock.moment = case.at
        return MemoryRouter(self.memory, user_id=case.user).plan(case.text)

    def recall(self, case: RoutingCase, most: int | None, tier: Tier | None = None) -> SystemOutput:
        """Return the evidence of a tier, by default of the one that the router chooses."""
        self.clock.moment = case.at
        recall = MemoryRouter(self.memory, user_id=case.user).recall(case.text, tier=tier, max_tokens=most)
        return _output(case, recall)


def _fixed_system(routed: _Routed, tier: Tier) -> RoutingSystem:
    return lambda case, most: routed.recall(case, most, tier)


def _full_system(data: RoutingSet, tokens: TokenCounter) -> RoutingSystem:
    """Return a system that shows all turns of the user. Its output lists only the evidence."""
    count = cache(lambda user: tokens.count("\n".join(turn.text for turn in data.turns[user])))

    return lambda case, _: _make_output(
        [turn.id for turn in data.turns[case.user] if turn.id in case.evidence], count(case.user)
    )


def _flat_system(data: RoutingSet, search: MemorySearch, tokens: TokenCounter) -> RoutingSystem:
    """Return a system that packs turns in the order of a search, as their plain text: no system has less to show."""
    candidates = {
        user: {
            turn.id: Candidate(passage=Passage(id=turn.id, text=turn.text), origin="given", tokens=count)
            for turn, count in zip(turns, tokens.count_many([turn.text for turn in turns]), strict=True)
        }
        for user, turns in data.turns.items()
    }

    search_once = lru_cache(maxsize=1)(search)  # all budgets of a question in turn

    def system(case: RoutingCase, most: int | None) -> SystemOutput:
        if most is None:
            raise ConfigurationError("a search has no budget of its own: give one")
        ordered = [candidates[case.user][id] for id in search_once(case.user, case.text)]
        packed = budget(ordered, tokens, max_tokens=most, separator="\n")
        return _make_output([c.id for c in packed.selection.kept], packed.tokens)

    return system


def _output(case: RoutingCase, context: Context) -> SystemOutput:
    scores = {} if context.sufficiency is None else {"sufficiency": context.sufficiency}
    ids = [p.passage.id for p in context.passages if holds_evidence(case, p.passage)]
    return _make_output(ids, context.tokens, sufficient=context.sufficient, probabilities=scores)


def holds_evidence(case: RoutingCase, passage: Passage) -> bool:
    """Return whether a passage is whole, or was shortened without loss of a word that it shares with the answer."""
    whole = passage.record.text if isinstance(passage, MemoryPassage) else passage.text
    if passage.text == whole:
        return True
    answer = {word for text in case.answers for word in words(text) if word not in FUNCTION_WORDS}
    shared = answer.intersection(words(whole))
    return bool(shared) and shared <= set(words(passage.text))


def _make_output(
    ids: Sequence[str],
    tokens: int,
    *,
    sufficient: bool | None = None,
    probabilities: Mapping[str, float] | None = None,
) -> SystemOutput:
    """Return the ids of the turns in the evidence, without their texts, which would fill the journal."""
    return SystemOutput(
        passages=tuple(Evidence(id=id, text="") for id in ids), ranked=(), text="", tokens=tokens,
        sufficient=sufficient, probabilities=probabilities or {},
    )  # fmt: skip


def _shuffle(ids: list[str], seed: str) -> list[str]:
    Random(seed).shuffle(ids)
    return ids
