"""What the experiments share: parts made from names, a run over sets, results gathered from its journal."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from pathlib import Path
from typing import Any

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import SHIPPED, resolve_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._embedding_cache import PROBE, CachedEmbedder
from meve.evaluation.compare import comparable
from meve.evaluation.journal import Journal
from meve.evaluation.measures import Judged
from meve.evaluation.results import Cell, Difference, Failure, Point, Results, cells, differences, versions
from meve.evaluation.run import Progress, fingerprint, run_set
from meve.evaluation.scores import ReadOnce
from meve.evaluation.systems import Build
from meve.evaluation.types import EvaluationSet, Parts, Question
from meve.pipeline.config import RetrieverConfig
from meve.ports import Verifier

SEED = 42
QUESTIONS = 150
"""Questions a set, unless all are asked for."""
PEER_QUESTIONS = 60
CACHE = "embeddings.sqlite"


def made_parts(
    *,
    embedder: str | None,
    verifier: str | None,
    tokens: str | None,
    config: RetrieverConfig,
    cache: Path,
    peer_weights: str | None = None,
) -> Parts:
    """Parts from names, as the command line takes them; None for those that ship. Embeddings are kept in `cache`.

    `peer_weights` are the verifier's in the form in which peers load them into a runtime of their own; None for those
    of a verifier that is named, and none for the one that ships.

    Raises:
        ModelError: a model that can't be had.
        ConfigurationError: a name that means nothing, or no calibration for that embedder's cosine.
    """
    kept = CachedEmbedder(resolve_embedder(embedder), cache / CACHE)
    judge: Verifier = resolve_verifier(verifier, kept)
    if isinstance(judge, CrossEncoderVerifier):
        judge = ReadOnce(judge.with_cache(0))  # no system is to profit from what another one had it read
    return Parts(
        embedder=kept,
        verifier=judge,
        tokens=resolve_tokens(tokens),
        verifier_model=peer_weights or (None if judge.name in ("cosine", SHIPPED) else judge.name),
        config=config,
    )


def conduct(
    experiment: str,
    sets: Sequence[EvaluationSet],
    asked: Callable[[EvaluationSet], Mapping[str, tuple[Build, Sequence[Question]]]],
    parts: Parts,
    *,
    to: Path,
    seed: int,
    settings: Mapping[str, Any],
    against: str,
    points: Callable[[EvaluationSet], Sequence[Point]] = lambda _: (),
    since: Results | None = None,
    progress: Progress | None = None,
) -> Results:
    """Ask every system, or go on with it, and compute what came out.

    Args:
        experiment: its name.
        sets: what to ask over.
        asked: for a set, the systems by name, how each is made, and which questions it gets.
        parts: what the systems share.
        to: where outcomes go, and where those of an interrupted run with the same settings lie.
        seed: of the intervals.
        settings: what else decides what comes out.
        against: the system that the others are compared with.
        points: for a set, the points of its curve.
        since: earlier results that these are going to be compared with.
        progress: told of each question.

    Raises:
        EvaluationError: the folder holds a run with other settings, or the earlier results are of other data; before
            anything is asked.
    """
    prints = {s.name: fingerprint(s) for s in sets}
    if since is not None:
        comparable(since, experiment, prints)
    whole = {
        "experiment": experiment,
        "sets": prints,
        "seed": seed,
        **settings,
        "embedder": parts.embedder.name,
        "verifier": parts.verifier.name,
        "calibration": parts.verifier.calibration.to_dict(),
        "tokens": parts.tokens.name,
        "config": parts.config.to_dict(),
        "weights": _weights(parts),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "as many as cores"),
        "versions": versions(),
    }
    found: list[Cell] = []
    gaps: list[Difference] = []
    failures: list[Failure] = []
    curve: list[Point] = []
    odd: list[str] = []
    about: dict[str, Mapping[str, Any]] = {}
    with closing(Journal(to, whole)) as journal:
        for chosen in sets:
            systems = asked(chosen)
            run_set(chosen, systems, parts, journal, progress)
            judged = _judged(journal, chosen, systems)
            for name, mine in judged.items():
                found += cells(chosen.name, name, mine, seed=seed)
                failures += _failures(chosen.name, name, mine)
                odd += _oddities(chosen.name, name, mine, {p.id for p in chosen.passages}, parts.config.max_tokens)
            gaps += differences(chosen.name, judged, against, seed=seed)
            curve += (drawn := points(chosen))
            odd += [
                f"{chosen.name}, curve of {system}: {raised} queries raised, and count as nothing handed over"
                for system in dict.fromkeys(p.system for p in drawn)
                if (raised := sum(p.raised for p in drawn if p.system == system))
            ]
            most = max((questions for _, questions in systems.values()), key=len)
            about[chosen.name] = _described(chosen, most, prints[chosen.name])
    return Results(
        experiment=experiment,
        settings=whole,
        sets=about,
        cells=tuple(found),
        differences=tuple(gaps),
        failures=tuple(failures),
        curve=tuple(curve),
        oddities=tuple(odd),
    )


def _judged(
    journal: Journal, chosen: EvaluationSet, systems: Mapping[str, tuple[Build, Sequence[Question]]]
) -> dict[str, list[Judged]]:
    return {
        name: [(q, outcome) for q in questions if (outcome := journal.get(chosen.name, name, q.id)) is not None]
        for name, (_, questions) in systems.items()
    }


def _failures(set_name: str, system: str, judged: Sequence[Judged]) -> list[Failure]:
    return [
        Failure(set=set_name, system=system, question=q.id, error=" ".join(o.error.split())[:200])
        for q, o in judged
        if o.error
    ]


def _oddities(set_name: str, system: str, judged: Sequence[Judged], known: Set[str], max_tokens: int) -> list[str]:
    """What a reader of the figures must know of a system: budgets overrun, passages of unknown ids, copies."""
    over = sum(o.handed.tokens > max_tokens for _, o in judged)
    unknown = sum(any(i not in known for i in o.ids) for _, o in judged)
    twice = sum(len(set(o.ids)) < len(o.ids) for _, o in judged)
    said = (
        (over, f"more than {max_tokens} tokens"),
        (unknown, "passages under ids that the set doesn't have, which count as misses"),
        (twice, "the same passage more than once"),
    )
    return [f"{set_name}, {system}: for {count} of {len(judged)} questions {what}" for count, what in said if count]


def _weights(parts: Parts) -> str:
    """What tells other weights under the same names: a hash of what the models make of a fixed text."""
    made = [*parts.embedder.embed_query(PROBE)[:8].tolist(), *parts.verifier.raw_scores(PROBE, [PROBE]).tolist()]
    return hashlib.sha256(repr([round(value, 3) for value in made]).encode()).hexdigest()[:16]


def _described(chosen: EvaluationSet, questions: Sequence[Question], fingerprint: str) -> dict[str, Any]:
    return {
        "passages": len(chosen.passages),
        "questions": len(questions),
        "of": len(chosen.questions),
        "answerable": sum(q.answerable for q in questions),
        "closed": chosen.closed,
        "fingerprint": fingerprint,
    }
