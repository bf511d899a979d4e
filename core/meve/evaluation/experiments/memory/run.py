"""Runs the experiments on memory, all or some, and gathers what they found."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import EvaluationError
from meve.evaluation.experiments.common import SEED
from meve.evaluation.experiments.memory.contradictions import contradictions
from meve.evaluation.experiments.memory.environment import Sizes, Stage
from meve.evaluation.experiments.memory.expiry import expiry
from meve.evaluation.experiments.memory.false_facts import false_facts
from meve.evaluation.experiments.memory.growth import growth
from meve.evaluation.experiments.memory.isolation import isolation
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.memory.sensitivity import sensitivity
from meve.evaluation.experiments.memory.tags import tags
from meve.evaluation.results import versions
from meve.evaluation.run import Progress
from meve.memory import Policy

EXPERIMENTS: Mapping[str, Callable[[Stage, Progress], Tally | list[Tally]]] = {
    "expiry": expiry,
    "isolation": isolation,
    "false-facts": false_facts,
    "tags": tags,
    "contradictions": contradictions,
    "prompt-size": growth,
    "sensitivity": sensitivity,
}
"""By the name under which each is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What to measure."""

    only: tuple[str, ...] = tuple(EXPERIMENTS)
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = SEED
    embedder: str | None = None
    """A name as for a `Retriever`; None for the one that ships."""


def memory(wanted: Memory, progress: Progress = lambda *_: None) -> MemoryResults:
    """Run the experiments, one after the other.

    Args:
        wanted: which, how large, and with which seed; the same gives the same figures.
        progress: told of the experiment's name, how much of it is done, and of how much.

    Raises:
        EvaluationError: an experiment that isn't known, or none.
        ModelError: an embedder that can't be had.
    """
    unknown = [name for name in wanted.only if name not in EXPERIMENTS]
    if unknown or not wanted.only:
        named = ", ".join(unknown) or "none"
        raise EvaluationError(f"experiments on memory: {named} can't be run; there are {', '.join(EXPERIMENTS)}")
    stage = Stage(
        embedder=resolve_embedder(wanted.embedder), tokens=resolve_tokens(None), sizes=wanted.sizes, seed=wanted.seed
    )
    found: list[Tally] = []
    for name in dict.fromkeys(wanted.only):
        made = EXPERIMENTS[name](stage, progress)
        found += made if isinstance(made, list) else [made]
        progress(name.replace("-", " "), 1, 1)
    return MemoryResults(
        settings={
            "seed": wanted.seed,
            "only": list(wanted.only),
            "sizes": asdict(wanted.sizes),
            "embedder": stage.embedder.name,
            "tokens": stage.tokens.name,
            "policy": Policy().model_dump(mode="json"),
            "versions": versions(),
        },
        figures=tuple(figure for tally in found for figure in tally.figures()),
        curves=tuple(curve for tally in found for curve in tally.curves),
    )
