"""The routing experiment: evidence per token of routed tiers beside flat searches, and the router's own accuracy."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.errors import ConfigurationError
from meve.evaluation._journal import Journal
from meve.evaluation._model_caches import (
    DiskCachedEmbedder,
    DiskCachedSentenceVerifier,
    QueryCachingEmbedder,
    SharedVerifier,
)
from meve.evaluation._set_runner import ask_system
from meve.evaluation.experiments._experiment import CACHE, SCORES, SEED
from meve.evaluation.experiments.memory.memory_results import Curve, Figure, MemoryResults
from meve.evaluation.experiments.memory.recall import MemoryPeer
from meve.evaluation.experiments.routing.cases import (
    HALVES,
    RoutingCase,
    RoutingSet,
    read_locomo_cases,
    read_longmemeval_cases,
)
from meve.evaluation.experiments.routing.longbench import read_longbench_cases
from meve.evaluation.experiments.routing.scores import COMPARED, Scores
from meve.evaluation.experiments.routing.systems import (
    FIXED,
    FULL,
    MEMORY,
    ORACLE,
    OWN,
    RANDOM_TIER,
    ROUTED,
    Models,
    RoutingSystem,
    open_systems,
)
from meve.evaluation.peers import import_function
from meve.evaluation.results import collect_versions
from meve.evaluation.types import Question, System
from meve.routing import RouterConfig
from meve.types import StageProgress

SETS: Mapping[str, Callable[[Path], RoutingSet]] = {
    "locomo": read_locomo_cases,
    "longmemeval": read_longmemeval_cases,
    "longbench": read_longbench_cases,
}
"""The sets, and the functions that read them from the folder with all sets."""
BUDGETS = (150, 250, COMPARED, 1_000, 2_000)
"""The token budgets; 250 is half of the budget at which systems are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingOptions:
    """The options of the routing experiment."""

    data: Path
    """The folder with the folders `locomo`, `longmemeval` and `longbench_mini`."""
    to: Path
    """The folder of the outcomes; an interrupted run resumes there."""
    cache: Path
    """The folder that caches the embeddings of turns and the verifier's scores."""
    sets: tuple[str, ...] = tuple(SETS)
    questions: int | None = None
    """Questions of each set and half; None for all. A smaller sample is the beginning of a larger one."""
    peers: tuple[str, ...] = ()
    """Foreign memories, each as `module:function`, a `MemoryPeer`."""
    embedder: str | None = None
    seed: int = SEED


def run_routing(options: RoutingOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Ask every system every question, or resume an interrupted run, and compute the results.

    Raises:
        ConfigurationError: no set has that name, or a peer can't be imported.
        DatasetError: a set is absent, truncated or of another format.
        EvaluationError: the folder holds a run with other settings.
    """
    if unknown := sorted(set(options.sets) - SETS.keys()):
        raise ConfigurationError(f"unknown set {unknown[0]!r}: choose from {', '.join(map(repr, SETS))}")
    peers: dict[str, MemoryPeer] = {
        name: import_function(name, option="--peer", example="benchmarks.peers.mem0_memory:mem0_routing")
        for name in options.peers
    }
    embedder = QueryCachingEmbedder(
        DiskCachedEmbedder(resolve_embedder(options.embedder, default=ACCURATE), options.cache / CACHE)
    )
    verifier = SharedVerifier(DiskCachedSentenceVerifier(resolve_verifier(None, embedder), options.cache / SCORES))
    models = Models(embedder=embedder, verifier=verifier, tokens=resolve_tokens(None))
    sets = [SETS[name](options.data) for name in options.sets]
    settings = {
        "experiment": "routing",
        "sets": {each.name: _fingerprint(each) for each in sets},
        "seed": options.seed,
        "questions": options.questions or "all",
        "peers": list(options.peers),
        "budgets": list(BUDGETS),
        "router": asdict(RouterConfig()),
        "embedder": embedder.name,
        "verifier": models.verifier.name,
        "tokens": models.tokens.name,
        "cores": os.cpu_count(),
        "versions": collect_versions(),
    }
    figures: list[Figure] = []
    curves: list[Curve] = []
    with closing(Journal(options.to, settings)) as journal:
        for data in sets:
            cases = sample_cases(data.cases, options.questions, options.seed)
            with open_systems(data, models, peers, seed=options.seed) as systems:
                _ask(data.name, cases, systems.by_name, journal, progress, verifier)
                plans = {case.id: systems.plan(case) for case in cases}
            find = partial(journal.get, data.name)
            for half in HALVES:
                of_half = [case for case in cases if case.half == half]
                scores = Scores(f"{data.name}, {half} half", of_half, find, seed=options.seed)
                scores.score_evidence([label for name in systems.by_name for label, _ in list_runs(name)])
                scores.score_types()
                scores.score_routes(plans)
                scores.score_misrouted(plans)
                scores.score_abstention(plans)
                figures += scores.figures
                curves += scores.curves
    return MemoryResults(experiment="routing", settings=settings, figures=tuple(figures), curves=tuple(curves))


def sample_cases(cases: Sequence[RoutingCase], count: int | None, seed: int) -> list[RoutingCase]:
    """Return at most `count` cases of each half, drawn by a hash of their ids; None for all."""
    kept: list[RoutingCase] = []
    for half in HALVES:  # the table half first, so that an interrupted run has it
        of_half = [case for case in cases if case.half == half]
        of_half.sort(key=lambda case: sha256(f"{seed} {case.id}".encode()).digest())
        kept += of_half[:count]
    return kept


def list_runs(system: str) -> list[tuple[str, int | None]]:
    """Return the label and the budget of each run of a system."""
    budgets: tuple[int | None, ...] = BUDGETS
    if system in (ORACLE, RANDOM_TIER, *FIXED):
        budgets = (COMPARED, OWN)
    elif system == ROUTED:
        budgets = (*BUDGETS, OWN)
    elif system == FULL:
        budgets = (OWN,)
    return [(f"{system} @ {'own' if each is None else each}", each) for each in budgets]


def _ask(
    name: str,
    cases: Sequence[RoutingCase],
    systems: Mapping[str, RoutingSystem],
    journal: Journal,
    progress: StageProgress,
    verifier: SharedVerifier,
) -> None:
    """Ask every system what it hasn't answered yet, question by question, so that load slows all of them alike."""
    for done, case in enumerate(cases):
        progress(name, done, len(cases))
        for system, ask in systems.items():
            if not case.evidence and system not in (ROUTED, MEMORY):
                continue
            for label, most in list_runs(system):
                known = journal.get(name, label, case.id)
                if known is None or known.error:
                    question = Question(id=case.id, text=case.text)
                    journal.put(name, label, ask_system(_limit(ask, case, most), question, verifier))
        verifier.clear()
    progress(name, len(cases), len(cases))


def _limit(system: RoutingSystem, case: RoutingCase, most: int | None) -> System:
    """Return the system for one case and budget."""
    return lambda _: system(case, most)


def _fingerprint(data: RoutingSet) -> str:
    """Return a hash of a set's turns, questions and labels."""
    digest = sha256()
    for user, turns in data.turns.items():
        digest.update(repr((user, *turns)).encode())
    for case in data.cases:
        digest.update(repr((case.id, case.user, case.type, case.text, sorted(case.evidence), case.at)).encode())
    return digest.hexdigest()[:16]
