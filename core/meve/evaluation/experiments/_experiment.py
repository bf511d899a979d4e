"""Shared code of retrieval experiments: components from names, a run over sets, and results from its journal."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import SHIPPED_VERIFIER, resolve_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._comparison import check_comparable
from meve.evaluation._journal import Journal
from meve.evaluation._model_caches import PROBE_TEXT, DiskCachedEmbedder, SharedVerifier
from meve.evaluation._set_runner import fingerprint_set, run_set
from meve.evaluation.measures import JudgedQuestion
from meve.evaluation.results import (
    Cell,
    CurvePoint,
    Difference,
    Failure,
    Results,
    collect_versions,
    compute_cells,
    compute_differences,
)
from meve.evaluation.systems import SystemFactory
from meve.evaluation.types import EvaluationSet, Question, SharedComponents
from meve.pipeline.config import RetrieverConfig
from meve.ports import Verifier
from meve.types import StageProgress

SEED = 42
QUESTIONS = 150
"""Questions per set, unless all are requested."""
PEER_QUESTIONS = 60
CACHE, SCORES = "embeddings.sqlite", "scores.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """The options of every experiment on retrieval."""

    data: Path
    """The folder with a folder for each set."""
    to: Path
    """The folder for results; a run with the same settings in it is resumed."""
    cache: Path
    """The folder for embeddings, shared by runs."""
    questions: int | None = QUESTIONS
    """Questions per set; None for all."""
    seed: int = SEED
    embedder: str | None = None
    verifier: str | None = None
    since: Results | None = None
    """Earlier results that these will be compared with; those of other data are refused before the run."""


def load_components(
    options: RetrievalOptions, config: RetrieverConfig, *, tokens: str | None = None, peer_weights: str | None = None
) -> SharedComponents:
    """Load the components that the options name; None for the bundled ones.

    Args:
        options: the options, with the names of embedder and verifier.
        config: the retrieval settings.
        tokens: the tokenizer's name.
        peer_weights: the verifier's weights for peers that load them into another runtime; by default those of a named
            verifier, and none for the bundled one.

    Raises:
        ModelError: a model that can't be loaded.
        ConfigurationError: an unknown name, or no calibration for that embedder's cosine.
    """
    cached = DiskCachedEmbedder(resolve_embedder(options.embedder), options.cache / CACHE)
    model: Verifier = resolve_verifier(options.verifier, cached)
    if isinstance(model, CrossEncoderVerifier):
        model = SharedVerifier(model.with_cache(0))  # a cached score must not make a later system look faster
    return SharedComponents(
        embedder=cached,
        verifier=model,
        tokens=resolve_tokens(tokens),
        verifier_model=peer_weights or (None if model.name in ("cosine", SHIPPED_VERIFIER) else model.name),
        config=config,
    )


def run_experiment(
    experiment: str,
    datasets: Sequence[EvaluationSet],
    select: Callable[[EvaluationSet], Mapping[str, tuple[SystemFactory, Sequence[Question]]]],
    components: SharedComponents,
    options: RetrievalOptions,
    *,
    settings: Mapping[str, Any],
    against: str,
    points: Callable[[EvaluationSet], Sequence[CurvePoint]] = lambda _: (),
    progress: StageProgress = lambda *_: None,
) -> Results:
    """Run every system on its questions, or resume an interrupted run, and compute the results.

    Args:
        experiment: the experiment's name.
        datasets: the sets.
        select: returns a set's system factories and their questions, by the system's name.
        components: what the systems share.
        options: the folder for outcomes, the seed of the intervals, and the earlier results.
        settings: further settings that decide the results.
        against: the system that the others are compared with.
        points: returns the points of a set's curve.
        progress: called for each question.

    Raises:
        EvaluationError: the folder holds a run with other settings, or the earlier results are of other data. Raised
            before any question is asked.
    """
    fingerprints = {s.name: fingerprint_set(s) for s in datasets}
    seed = options.seed
    if options.since is not None:
        check_comparable(options.since, experiment, fingerprints)
    all_settings = {
        "experiment": experiment,
        "sets": fingerprints,
        "seed": seed,
        **settings,
        "embedder": components.embedder.name,
        "verifier": components.verifier.name,
        "calibration": components.verifier.calibration.to_dict(),
        "tokens": components.tokens.name,
        "config": components.config.to_dict(),
        "weights": _hash_weights(components),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", "as many as cores"),
        "versions": collect_versions(),
    }
    cells: list[Cell] = []
    differences: list[Difference] = []
    failures: list[Failure] = []
    curve: list[CurvePoint] = []
    oddities: list[str] = []
    descriptions: dict[str, Mapping[str, Any]] = {}
    with closing(Journal(options.to, all_settings)) as journal:
        for dataset in datasets:
            systems = select(dataset)
            run_set(dataset, systems, components, journal, progress)
            passage_ids = {p.id for p in dataset.passages}
            set_cells: list[Cell] = []
            for system, (_, questions) in systems.items():
                answers = [(q, o) for q in questions if (o := journal.get(dataset.name, system, q.id)) is not None]
                set_cells += compute_cells(dataset.name, system, answers, seed=seed)
                failures += [
                    Failure(set=dataset.name, system=system, question=q.id, error=" ".join(o.error.split())[:200])
                    for q, o in answers
                    if o.error
                ]
                oddities += _find_oddities(dataset.name, system, answers, passage_ids, components.config.max_tokens)
            cells += set_cells
            differences += compute_differences(set_cells, against, seed=seed)
            curve += (set_points := points(dataset))
            oddities += [
                f"{dataset.name}, curve of {system}: {raised} queries raised, and count as empty prompts"
                for system in dict.fromkeys(p.system for p in set_points)
                if (raised := sum(p.raised for p in set_points if p.system == system))
            ]
            most = max((questions for _, questions in systems.values()), key=len)
            descriptions[dataset.name] = {
                "passages": len(dataset.passages),
                "questions": len(most),
                "of": len(dataset.questions),
                "answerable": sum(q.answerable for q in most),
                "closed": dataset.has_pools,
                "fingerprint": fingerprints[dataset.name],
            }
    return Results(
        experiment=experiment,
        settings=all_settings,
        sets=descriptions,
        cells=tuple(cells),
        differences=tuple(differences),
        failures=tuple(failures),
        curve=tuple(curve),
        oddities=tuple(oddities),
    )


def _find_oddities(
    set_name: str, system: str, judged: Sequence[JudgedQuestion], known: Set[str], max_tokens: int
) -> list[str]:
    overrun = sum(o.output.tokens > max_tokens for _, o in judged)
    unknown = sum(any(i not in known for i in o.ids) for _, o in judged)
    duplicates = sum(len(set(o.ids)) < len(o.ids) for _, o in judged)
    counts = (
        (overrun, f"more than {max_tokens} tokens"),
        (unknown, "passages with ids that the set doesn't have, which count as misses"),
        (duplicates, "the same passage more than once"),
    )
    return [f"{set_name}, {system}: for {count} of {len(judged)} questions {what}" for count, what in counts if count]


def _hash_weights(components: SharedComponents) -> str:
    """Return a hash of the models' output for a fixed text, to detect other weights under the same name."""
    vector = components.embedder.embed_query(PROBE_TEXT)[:8].tolist()
    values = [*vector, *components.verifier.raw_scores(PROBE_TEXT, [PROBE_TEXT]).tolist()]
    return hashlib.sha256(repr([round(value, 3) for value in values]).encode()).hexdigest()[:16]
