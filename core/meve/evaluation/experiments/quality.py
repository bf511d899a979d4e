"""How good is what stands in the prompt, and at how many tokens? Public sets, baselines, ablations, peers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from meve.errors import EvaluationError
from meve.evaluation.datasets import SETS, read_set
from meve.evaluation.experiments.common import PEER_QUESTIONS, QUESTIONS, SEED, conduct, made_parts
from meve.evaluation.experiments.curve import curve
from meve.evaluation.peers import peer, peer_code
from meve.evaluation.results import Point, Results
from meve.evaluation.run import Progress, sample
from meve.evaluation.systems import Build, systems_for
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What to measure, and where the results go."""

    data: Path
    """The folder with a folder a set."""
    to: Path
    """Where the results go, and what a later run resumes."""
    cache: Path
    """Where embeddings are kept between runs."""
    sets: tuple[str, ...] = tuple(SETS)
    peers: tuple[str, ...] = ()
    """Each `module:function`."""
    questions: int | None = QUESTIONS
    """A set; None for all."""
    peer_questions: int | None = PEER_QUESTIONS
    peer_weights: str | None = None
    """The verifier's weights, for peers that load them into a runtime of their own."""
    seed: int = SEED
    embedder: str | None = None
    verifier: str | None = None
    tokens: str | None = None
    curves: bool = True
    since: Results | None = None
    """Earlier results that these are going to be compared with: refused at once if of other data."""


def quality(wanted: Quality, progress: Progress | None = None) -> Results:
    """Run it, or go on with it.

    Raises:
        DatasetError: a set that is absent, cut short or of another format; before anything is run.
        EvaluationError: the folder holds a run with other settings.
        ModelError: a model that can't be had.
    """
    sets = [read_set(name, wanted.data) for name in wanted.sets]
    return measured(sets, wanted, progress)


def measured(sets: Sequence[EvaluationSet], wanted: Quality, progress: Progress | None = None) -> Results:
    """The same over sets that are read already."""
    if not sets:
        raise EvaluationError("no set is named: give at least one")
    peers = {name: peer(name) for name in wanted.peers}
    parts = made_parts(
        embedder=wanted.embedder,
        verifier=wanted.verifier,
        tokens=wanted.tokens,
        config=RetrieverConfig(),
        cache=wanted.cache,
        peer_weights=wanted.peer_weights,
    )

    def asked(chosen: EvaluationSet) -> dict[str, tuple[Build, list[Question]]]:
        all_of_it = sample(chosen.questions, wanted.questions, wanted.seed)
        fewer = all_of_it if wanted.peer_questions is None else all_of_it[: wanted.peer_questions]
        return {
            name: (build, fewer if name in wanted.peers else all_of_it)
            for name, build in {**systems_for(chosen.name), **peers}.items()
        }

    def points(chosen: EvaluationSet) -> list[Point]:
        if not wanted.curves:
            return []
        return curve(chosen, sample(chosen.questions, wanted.questions, wanted.seed), parts, wanted.to, progress)

    return conduct(
        "quality",
        sets,
        asked,
        parts,
        to=wanted.to,
        seed=wanted.seed,
        settings={
            "peers": list(wanted.peers),
            "peer_code": {name: peer_code(name) for name in wanted.peers},
            "questions": wanted.questions,
            "peer_questions": wanted.peer_questions,
            "peer_weights": wanted.peer_weights,
        },
        against="full",
        points=points,
        since=wanted.since,
        progress=progress,
    )
