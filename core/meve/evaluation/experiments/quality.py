"""The quality experiment: systems, ablations and peers on public sets."""

from collections.abc import Sequence
from dataclasses import dataclass

from meve.errors import EvaluationError
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import SETS, read_set
from meve.evaluation.experiments._experiment import PEER_QUESTIONS, RetrievalOptions, load_components, run_experiment
from meve.evaluation.experiments._recall_curve import measure_curve
from meve.evaluation.peers import hash_peer_code, load_peer
from meve.evaluation.results import CurvePoint, Results
from meve.evaluation.systems import SystemFactory, select_systems
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig
from meve.types import StageProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityOptions(RetrievalOptions):
    """The options of the quality experiment."""

    sets: tuple[str, ...] = tuple(SETS)
    peers: tuple[str, ...] = ()
    """The peers, each as `module:function`."""
    peer_questions: int | None = PEER_QUESTIONS
    peer_weights: str | None = None
    """The verifier's weights, for peers that load them into another runtime."""
    tokens: str | None = None
    curves: bool = True


def run_quality(options: QualityOptions, progress: StageProgress = lambda *_: None) -> Results:
    """Run the experiment, or resume it.

    Raises:
        DatasetError: a set that is absent, truncated or of another format; before anything is run.
        EvaluationError: the folder holds a run with other settings.
        ModelError: a model that can't be loaded.
    """
    datasets = [read_set(name, options.data) for name in options.sets]
    return run_quality_on(datasets, options, progress)


def run_quality_on(
    datasets: Sequence[EvaluationSet], options: QualityOptions, progress: StageProgress = lambda *_: None
) -> Results:
    """Run the experiment on these sets, whatever `options.sets` names; see `run_quality`."""
    if not datasets:
        raise EvaluationError("sets is empty: name at least one set")
    peers = {name: load_peer(name) for name in options.peers}
    components = load_components(options, RetrieverConfig(), tokens=options.tokens, peer_weights=options.peer_weights)

    def select(dataset: EvaluationSet) -> dict[str, tuple[SystemFactory, list[Question]]]:
        questions = sample_questions(dataset.questions, options.questions, options.seed)
        for_peers = questions if options.peer_questions is None else questions[: options.peer_questions]
        return {
            name: (factory, for_peers if name in options.peers else questions)
            for name, factory in {**select_systems(dataset.name), **peers}.items()
        }

    def points(dataset: EvaluationSet) -> list[CurvePoint]:
        if not options.curves:
            return []
        questions = sample_questions(dataset.questions, options.questions, options.seed)
        return measure_curve(dataset, questions, components, options.to, progress)

    return run_experiment(
        "quality",
        datasets,
        select,
        components,
        options,
        settings={
            "peers": list(options.peers),
            "peer_code": {name: hash_peer_code(name) for name in options.peers},
            "questions": options.questions,
            "peer_questions": options.peer_questions,
            "peer_weights": options.peer_weights,
        },
        against="full",
        points=points,
        progress=progress,
    )
