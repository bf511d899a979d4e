"""`meve bench`: measures retrieval and memory, and compares results with earlier ones."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from meve.cli._bench_arguments import add_working_directory, check_data_folder, parse_sizes, split_names
from meve.cli._bench_tables import print_changes, print_failures, print_memory_results, print_results
from meve.cli._error_handling import handle_errors
from meve.cli._render import print_line, progress_bar
from meve.cli._requirements import require_for_bench

if TYPE_CHECKING:
    from meve.evaluation.experiments._experiment import RetrievalOptions
    from meve.evaluation.experiments.memory.memory_results import MemoryResults
    from meve.evaluation.results import Results
    from meve.types import StageProgress

_T = TypeVar("_T")
_Options = TypeVar("_Options", bound="RetrievalOptions")

HOME = Path("meve-bench")
"""The default folder for results."""

bench_app = typer.Typer(
    name="bench",
    help="Measure quality, speed and memory, and compare the results with earlier ones.",
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Data = Annotated[
    Path | None, typer.Option(envvar="MEVE_DATA", help="The folder with a subfolder for each data set.", metavar="DIR")
]
To = Annotated[Path | None, typer.Option(help=f"The folder for results; {HOME}/EXPERIMENT by default.", metavar="DIR")]
Cache = Annotated[Path, typer.Option(help="The folder that caches embeddings.", metavar="DIR")]
Questions = Annotated[int, typer.Option(min=1, help="Number of questions per set, drawn at random.")]
Full = Annotated[bool, typer.Option("--full", help="Ask all questions of each set.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random samples and intervals.")]
EmbedderName = Annotated[str | None, typer.Option(help="A model's name or folder.", metavar="NAME")]
VerifierName = Annotated[str | None, typer.Option(help="A cross-encoder, or 'cosine'.", metavar="NAME")]
Peers = Annotated[
    list[str] | None,
    typer.Option("--peer", help="Another system to measure too; may be repeated.", metavar="MODULE:FUNC"),
]
Compare = Annotated[Path | None, typer.Option(help="Compare with these earlier results.", metavar="OLD.json")]


@bench_app.callback()
def _group(
    context: typer.Context,
    compare: Annotated[Path | None, typer.Option(help="Compare these results with --new.", metavar="OLD.json")] = None,
    new: Annotated[
        Path | None, typer.Option(help=f"The newer results; those in {HOME}/EXPERIMENT by default.", metavar="NEW.json")
    ] = None,
) -> None:
    if context.invoked_subcommand is not None:
        if compare is not None or new is not None:
            command = context.invoked_subcommand
            raise typer.BadParameter(f"put --compare after {command}, and use --new without a command")
    elif compare is not None:
        handle_errors(_compare)(compare, new)
    else:
        raise typer.BadParameter("--new needs --compare OLD.json")


def _compare(old: Path, new: Path | None) -> None:
    from meve.evaluation.report import RESULTS
    from meve.evaluation.results import Results

    before = Results.load(old)
    print_changes(before, Results.load(new or HOME / before.experiment / RESULTS))


def quality(
    data: Data = None,
    to: To = None,
    cache: Cache = HOME / "cache",
    sets: Annotated[
        str | None, typer.Option(help="Comma-separated names; all public sets by default.", metavar="A,B")
    ] = None,
    peers: Peers = None,
    questions: Questions = 150,
    peer_questions: Annotated[int, typer.Option(min=1, help="Number of questions per set for peers.")] = 60,
    peer_weights: Annotated[
        str | None, typer.Option(help="The verifier for peers that load it themselves.", metavar="NAME")
    ] = None,
    full: Full = False,
    seed: Seed = 42,
    embedder: EmbedderName = None,
    verifier: VerifierName = None,
    tokens: Annotated[str | None, typer.Option(help="The tokenizer that counts the budget.", metavar="NAME")] = None,
    curves: Annotated[bool, typer.Option(help="Also measure recall against tokens.")] = True,
    compare: Compare = None,
) -> None:
    """Measure recall, precision and tokens on public sets. Resumes an interrupted run."""
    require_for_bench("quality", embedder=embedder, verifier=verifier)
    from meve.evaluation.datasets import SETS
    from meve.evaluation.experiments.quality import QualityOptions, run_quality

    add_working_directory(peers)
    names = tuple(SETS) if sets is None else split_names(sets)
    options = QualityOptions(
        data=check_data_folder(data, names, "; --sets own needs none"),
        to=to or HOME / "quality",
        cache=cache,
        sets=names,
        peers=tuple(dict.fromkeys(peers or ())),
        questions=None if full else questions,
        peer_questions=None if full else peer_questions,
        peer_weights=peer_weights,
        seed=seed,
        embedder=embedder,
        verifier=verifier,
        tokens=tokens,
        curves=curves,
    )
    _measure_retrieval(run_quality, options, compare)


def paper(
    data: Data = None,
    to: To = None,
    cache: Cache = HOME / "cache",
    questions: Annotated[int, typer.Option(min=1, help="Questions of HotpotQA; all 50 on Wikipedia are asked.")] = 150,
    full: Full = False,
    seed: Seed = 42,
    embedder: EmbedderName = None,
    verifier: VerifierName = None,
    compare: Compare = None,
) -> None:
    """Repeat the MeVe paper's tables and figures. Resumes an interrupted run."""
    require_for_bench("paper", embedder=embedder, verifier=verifier)
    from meve.evaluation.experiments._experiment import RetrievalOptions
    from meve.evaluation.experiments.paper import run_paper

    data = check_data_folder(data, ("wikipedia", "hotpotqa"))
    tables = data / "tokenizers" / "tiktoken_cache"
    if tables.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    options = RetrievalOptions(
        data=data,
        to=to or HOME / "paper",
        cache=cache,
        questions=None if full else questions,
        seed=seed,
        embedder=embedder,
        verifier=verifier,
    )
    _measure_retrieval(run_paper, options, compare)


def speed(
    to: To = None,
    sizes: Annotated[
        str, typer.Option(help="Comma-separated numbers of passages.", metavar="N,N")
    ] = "10000,30000,100000",
    ivf: Annotated[str, typer.Option(help="Sizes for an inverted file.", metavar="N,N")] = "",
) -> None:
    """Measure latency and memory use by corpus size. Uses no models, and resumes an interrupted run."""
    require_for_bench("speed")
    from meve.evaluation.experiments.retrieval_speed import SpeedOptions, run_speed
    from meve.evaluation.report.speed_report import format_report, write

    folder = to or HOME / "speed"
    with progress_bar() as advance:
        results = run_speed(SpeedOptions(to=folder, sizes=parse_sizes(sizes), ivf=parse_sizes(ivf)), advance)
    print_line(format_report(results, _command()))
    print_line(f"report: {write(results, folder, _command())}")


def memory(
    data: Data = None,
    to: To = None,
    only: Annotated[
        str | None, typer.Option(help="Comma-separated experiments; all by default.", metavar="A,B")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases and wide intervals, for a quick check.")] = False,
    seed: Seed = 42,
    embedder: EmbedderName = None,
) -> None:
    """Measure governed memory: what it keeps, finds, hides and forgets.

    Covers expiry, isolation, false facts, tags, contradictions, updates, prompts, users' facts and stories. With LoCoMo
    and sgd_memory in the data folder, it also covers extraction and long memories.
    """
    require_for_bench("memory", embedder=embedder)
    from meve.evaluation.experiments.memory.environment import QUICK, Sizes
    from meve.evaluation.experiments.memory.suite import MemoryBenchOptions, run_memory

    names, sizes = None if only is None else split_names(only), QUICK if quick else Sizes()
    options = MemoryBenchOptions(only=names, data=data, sizes=sizes, seed=seed, embedder=embedder)
    _measure_memory(run_memory, options, to)


def memory_recall(
    data: Data = None,
    to: To = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also measure the memory with the verifier: seconds per question.")
    ] = False,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Also measure weights chosen on other conversations: minutes.")
    ] = False,
    peers: Peers = None,
    seed: Seed = 42,
    embedder: EmbedderName = None,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Kinds of conversations, separated by commas, or all.", metavar="KINDS")
    ] = "locomo",
) -> None:
    """Measure recall of governed memory on LoCoMo and others. Compares it with BM25, vectors, both fused, and peers."""
    require_for_bench("memory-recall", embedder=embedder)
    from meve.evaluation.experiments.memory.recall import RecallOptions, run_memory_recall
    from meve.evaluation.experiments.memory.talks import KINDS

    chosen = tuple(KINDS) if kinds == "all" else split_names(kinds)
    add_working_directory(peers)
    options = RecallOptions(
        data=check_data_folder(data, chosen, "; --kinds own needs none"),
        kinds=chosen,
        verify=verify,
        held_out=held_out,
        peers=tuple(dict.fromkeys(peers or ())),
        embedder=embedder,
        seed=seed,
    )
    _measure_memory(run_memory_recall, options, to)


def memory_speed(
    data: Data = None,
    to: To = None,
    large: Annotated[
        bool, typer.Option("--large", help="Also measure a file of 1,000,000 memories: 3 GB, minutes.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where to create the files; a temporary folder by default.")
    ] = None,
    seed: Seed = 42,
) -> None:
    """Measure latency of searches and adds. The memory holds 10,000 records of a user."""
    require_for_bench("memory-speed")
    from meve.evaluation.experiments.memory.memory_speed import MemorySpeedOptions, run_memory_speed

    options = MemorySpeedOptions(data=check_data_folder(data, ("locomo",)), large=large, folder=folder, seed=seed)
    _measure_memory(run_memory_speed, options, to)


def dialogue_speed(
    data: Data = None,
    to: To = None,
    turns: Annotated[int, typer.Option(min=1, help="Turns of the dialogue.")] = 50_000,
    seed: Seed = 42,
) -> None:
    """Measure latency of questions to a long dialogue. The first question reads all turns."""
    require_for_bench("dialogue-speed")
    from meve.evaluation.experiments.small_context.dialogue_speed import DialogueSpeedOptions, run_dialogue_speed

    options = DialogueSpeedOptions(data=check_data_folder(data, ("irc",)), turns=turns, seed=seed)
    _measure_memory(run_dialogue_speed, options, to)


def small_context(
    data: Data = None,
    to: To = None,
    questions: Questions = 150,
    full: Full = False,
    skip: Annotated[int, typer.Option(min=0, help="Skip 2Wiki's first questions, to choose settings on others.")] = 0,
    chat: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of chit-chat among the turns.")] = 0.9,
    seed: Seed = 42,
    embedder: EmbedderName = None,
    entities: Annotated[
        str | None,
        typer.Option(help="Entity detector: patterns, dates, spacy-rules, or a spaCy model.", metavar="NAME"),
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="A function from question and context to an answer.", metavar="MODULE:FUNC")
    ] = None,
) -> None:
    """Repeat the query-aware memory paper's tables, on small context windows."""
    require_for_bench("small-context", embedder=embedder, entities=entities)
    from meve.evaluation.experiments.small_context.experiment import SmallContextBenchOptions, run_small_context

    add_working_directory(reader)
    options = SmallContextBenchOptions(
        data=check_data_folder(data, ("2wiki", "irc", "locomo")), questions=None if full else questions, skip=skip,
        chat=chat, seed=seed, embedder=embedder, entities=entities, reader=reader,
    )  # fmt: skip
    _measure_memory(run_small_context, options, to)


def trajectory(
    data: Data = None,
    to: To = None,
    sets: Annotated[str, typer.Option(help="Comma-separated sets.", metavar="A,B")] = "irc,molweni,oasst,locomo",
    cases: Annotated[int, typer.Option(min=10, help="Cases per half of a set, drawn at random.")] = 400,
    seed: Seed = 42,
    embedder: EmbedderName = None,
) -> None:
    """Measure which features of a conversation find the turn that a reply answers, its replies, and evidence."""
    require_for_bench("trajectory", embedder=embedder)
    from meve.evaluation.experiments.trajectory.experiment import TrajectoryOptions, run_trajectory

    names = split_names(sets)
    options = TrajectoryOptions(
        data=check_data_folder(data, names), sets=names, cases=cases, seed=seed, embedder=embedder
    )
    _measure_memory(run_trajectory, options, to)


def routing(
    data: Data = None,
    to: To = None,
    cache: Cache = HOME / "cache",
    sets: Annotated[str, typer.Option(help="Comma-separated sets.", metavar="A,B")] = "locomo,longmemeval,longbench",
    peers: Peers = None,
    questions: Annotated[int, typer.Option(min=1, help="Number of questions per set and half.")] = 100,
    full: Full = False,
    seed: Seed = 42,
    embedder: EmbedderName = None,
) -> None:
    """Measure the evidence that routed tiers find per token, the router's accuracy, and abstention. Resumes a run."""
    require_for_bench("routing", embedder=embedder)
    from meve.evaluation.experiments.routing.experiment import RoutingOptions, run_routing

    add_working_directory(peers)
    names = split_names(sets)
    options = RoutingOptions(
        data=check_data_folder(data, names), to=to or HOME / "routing", cache=cache, sets=names,
        peers=tuple(dict.fromkeys(peers or ())), questions=None if full else questions, embedder=embedder, seed=seed,
    )  # fmt: skip
    _measure_memory(run_routing, options, to)


def _command() -> str:
    return shlex.join(["meve", *sys.argv[1:]])


def _measure_memory(run: Callable[[_T, "StageProgress"], "MemoryResults"], options: _T, to: Path | None) -> None:
    from meve.evaluation.report import memory_report, routing_report, small_context_report

    with progress_bar() as advance:
        results = run(options, advance)
    print_memory_results(results)
    writers = {"small-context": small_context_report.write, "routing": routing_report.write}
    write = writers.get(results.experiment, memory_report.write)
    print_line(f"report: {write(results, to or HOME / results.experiment, _command())}")


def _measure_retrieval(
    run: Callable[[_Options, "StageProgress"], "Results"], options: _Options, compare: Path | None
) -> None:
    from meve.evaluation.report import write
    from meve.evaluation.results import Results

    old = None if compare is None else Results.load(compare)
    with progress_bar() as advance:
        results = run(replace(options, since=old), advance)
    report = write(results, options.to, _command())
    print_results(results)
    print_failures(results)
    print_line(f"report: {report}")
    if old is not None:
        print_changes(old, results)


for _experiment in (
    quality,
    paper,
    speed,
    memory,
    memory_recall,
    memory_speed,
    small_context,
    dialogue_speed,
    trajectory,
    routing,
):
    bench_app.command()(handle_errors(_experiment))
