"""Runs the memory experiments, all or some, and collects their figures."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import EvaluationError
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.experiments.memory.contradictions import run_contradictions
from meve.evaluation.experiments.memory.environment import Environment, Sizes
from meve.evaluation.experiments.memory.expiry import run_expiry
from meve.evaluation.experiments.memory.extraction import LABELLED_SETS, run_extraction
from meve.evaluation.experiments.memory.false_facts import run_false_facts
from meve.evaluation.experiments.memory.isolation import run_isolation
from meve.evaluation.experiments.memory.long_memories import NEEDED, run_long_memories
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.memory.prompt_size import run_prompt_size
from meve.evaluation.experiments.memory.sensitivity import run_sensitivity
from meve.evaluation.experiments.memory.stories import run_stories
from meve.evaluation.experiments.memory.updates import run_updates
from meve.evaluation.experiments.memory.user_facts import run_user_facts
from meve.evaluation.experiments.memory.wrong_tags import run_tags
from meve.evaluation.results import collect_versions
from meve.memory import Policy
from meve.types import StageProgress

EXPERIMENTS: Mapping[str, Callable[[Environment, StageProgress], Tally | list[Tally]]] = {
    "expiry": run_expiry,
    "isolation": run_isolation,
    "false-facts": run_false_facts,
    "tags": run_tags,
    "contradictions": run_contradictions,
    "updates": run_updates,
    "prompt-size": run_prompt_size,
    "sensitivity": run_sensitivity,
    "user-facts": run_user_facts,
    "stories": run_stories,
    "extraction": run_extraction,
    "long-memories": run_long_memories,
}
"""The experiments by the names that `--only` takes."""
NEED_DATA: Mapping[str, tuple[str, ...]] = {"extraction": LABELLED_SETS, "long-memories": NEEDED}
"""The files of the data folder that an experiment needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBenchOptions:
    """The options of the memory experiments."""

    only: tuple[str, ...] | None = None
    """The experiments to run; None for all, without those that need files which `data` lacks."""
    data: Path | None = None
    """The folder of evaluation sets."""
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = SEED
    embedder: str | None = None
    """A name as for a `Retriever`; None for the default of a memory."""


def run_memory(options: MemoryBenchOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Run the experiments, one after the other; the same options give the same figures.

    Args:
        options: which experiments, how large, and with which seed.
        progress: called with the experiment's name, how many of its steps are done, and how many there are.

    Raises:
        EvaluationError: an unknown experiment, none, or one that needs a data folder without one.
        DatasetError: a set is absent, or of another format.
        ModelError: an embedder that can't be loaded.
    """
    only = _runnable(options.data) if options.only is None else list(dict.fromkeys(options.only))
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown or not only:
        names = ", ".join(unknown) or "none"
        raise EvaluationError(f"unknown memory experiments: {names}; choose from {', '.join(EXPERIMENTS)}")
    environment = Environment(
        embedder=resolve_embedder(options.embedder, default=ACCURATE),
        tokens=resolve_tokens(None),
        sizes=options.sizes,
        seed=options.seed,
        data=options.data,
    )
    tallies: list[Tally] = []
    for name in only:
        result = EXPERIMENTS[name](environment, progress)
        tallies += result if isinstance(result, list) else [result]
        progress(name.replace("-", " "), 1, 1)
    settings = {
        "seed": options.seed,
        "only": only,
        "sizes": asdict(options.sizes),
        "embedder": environment.embedder.name,
        "tokens": environment.tokens.name,
        "policy": Policy().model_dump(mode="json"),
        "versions": collect_versions(),
    }
    return MemoryResults.from_tallies("memory", settings, tallies)


def _runnable(data: Path | None) -> list[str]:
    """Return the experiments that need no files, or whose files the data folder has."""
    folder = data or Path()
    return [
        name
        for name in EXPERIMENTS
        if name not in NEED_DATA or (data is not None and all((folder / each).exists() for each in NEED_DATA[name]))
    ]
