"""`meve bench`: measure retrieval, on public sets and against other retrievers; memory; and see what has moved."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._error_handling import guarded
from meve.cli._render import complain, counted, out, progress_bar, say, show_table, table
from meve.cli._requirements import bench_needs
from meve.errors import EvaluationError

if TYPE_CHECKING:
    from meve.evaluation.compare import Move
    from meve.evaluation.experiments.memory.memory_results import MemoryResults
    from meve.evaluation.results import Failure, Results
    from meve.evaluation.run import Progress

TELLING = ("supporting recall", "tokens", "supporting precision", "p50 ms", "all gold")
"""Columns that stay longest where a terminal is narrow; the report has all."""

SHOWN = 10
"""Failures that are named one by one; the report names the first of each system."""

HOME = Path("meve-bench")
"""Where results go unless told otherwise."""

bench = typer.Typer(
    name="bench",
    help="Measure quality, speed, memory and small contexts. See what moved since earlier results.",
    invoke_without_command=True,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Data = Annotated[
    Path | None,
    typer.Option("--data", envvar="MEVE_DATA", help="The folder with a folder for each set.", metavar="DIR"),
]
To = Annotated[
    Path | None,
    typer.Option("--to", help=f"Where results go, and where to go on; {HOME}/EXPERIMENT by default.", metavar="DIR"),
]
Cache = Annotated[Path, typer.Option("--cache", help="Where embeddings are kept between runs.", metavar="DIR")]
Questions = Annotated[int, typer.Option("--questions", min=1, help="How many a set, drawn with the seed.")]
Full = Annotated[bool, typer.Option("--full", help="Every question of every set.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the samples and the intervals.")]
Embedder = Annotated[str | None, typer.Option("--embedder", help="A model's name or folder.", metavar="NAME")]
Verifier = Annotated[str | None, typer.Option("--verifier", help="A cross-encoder, or 'cosine'.", metavar="NAME")]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="Say what moved since these results.", metavar="OLD.json")
]


@bench.callback()
def _group(
    context: typer.Context,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", help="Say what moved between these results and --new.", metavar="OLD.json"),
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new", help=f"The newer results; else those in {HOME}/EXPERIMENT.", metavar="NEW.json"),
    ] = None,
) -> None:
    """Measure retrieval."""
    if context.invoked_subcommand is not None:
        if compare is not None or new is not None:
            raise typer.BadParameter(f"give --compare after {context.invoked_subcommand}, and --new without a command")
    elif compare is not None:
        guarded(_compared)(compare, new)
    else:
        raise typer.BadParameter("--new goes with --compare OLD.json")


def _compared(old: Path, new: Path | None) -> None:
    from meve.evaluation.report import RESULTS
    from meve.evaluation.results import Results

    before = Results.load(old)
    judge(before, Results.load(new or HOME / before.experiment / RESULTS))


def quality(
    data: Data = None,
    to: To = None,
    cache: Cache = HOME / "cache",
    sets: Annotated[
        str | None, typer.Option("--sets", help="Names with commas; all public ones by default.", metavar="A,B")
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", help="Somebody's retriever to measure as well; may be repeated.", metavar="MODULE:FUNC"),
    ] = None,
    questions: Questions = 150,
    peer_questions: Annotated[int, typer.Option("--peer-questions", min=1, help="How many a set for peers.")] = 60,
    peer_weights: Annotated[
        str | None,
        typer.Option("--peer-weights", help="The verifier, for peers with a runtime of theirs.", metavar="NAME"),
    ] = None,
    full: Full = False,
    seed: Seed = 42,
    embedder: Embedder = None,
    verifier: Verifier = None,
    tokens: Annotated[str | None, typer.Option("--tokens", help="What counts the budget.", metavar="NAME")] = None,
    curves: Annotated[bool, typer.Option(help="Also recall against tokens over thresholds and budgets.")] = True,
    compare: Compare = None,
) -> None:
    """Recall, precision and tokens on public sets. Beside baselines, ablations and peers."""
    bench_needs("quality", embedder=embedder, verifier=verifier)
    from meve.evaluation.datasets import SETS
    from meve.evaluation.experiments.quality import Quality
    from meve.evaluation.experiments.quality import quality as run

    if peers:
        sys.path.insert(0, os.getcwd())
    folder = to or HOME / "quality"
    names = tuple(SETS) if sets is None else tuple(dict.fromkeys(name.strip() for name in sets.split(",")))
    wanted = Quality(
        data=_folder(data, names, "; --sets own needs none"),
        to=folder,
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
    _measured(lambda progress, since: run(replace(wanted, since=since), progress), folder, compare)


def paper(
    data: Data = None,
    to: To = None,
    cache: Cache = HOME / "cache",
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="How many of HotpotQA; Wikipedia's 50 are all asked.")
    ] = 150,
    full: Full = False,
    seed: Seed = 42,
    embedder: Embedder = None,
    verifier: Verifier = None,
    compare: Compare = None,
) -> None:
    """The MeVe paper's modes, tables and figures again. Beside what it published."""
    bench_needs("paper", embedder=embedder, verifier=verifier)
    from meve.evaluation.experiments.paper import Paper
    from meve.evaluation.experiments.paper import paper as run

    data = _folder(data, ("wikipedia", "hotpotqa"))
    tables = data / "tokenizers" / "tiktoken_cache"
    if tables.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    folder = to or HOME / "paper"
    wanted = Paper(
        data=data,
        to=folder,
        cache=cache,
        questions=None if full else questions,
        seed=seed,
        embedder=embedder,
        verifier=verifier,
    )
    _measured(lambda progress, since: run(replace(wanted, since=since), progress), folder, compare)


def speed(
    to: To = None,
    sizes: Annotated[str, typer.Option("--sizes", help="Passages, with commas.")] = "10000,30000,100000",
    ivf: Annotated[str, typer.Option("--ivf", help="Sizes to measure with an inverted file.")] = "",
) -> None:
    """The five phases without models, against corpus size. With the memory used."""
    bench_needs("speed")
    from meve.evaluation.experiments.speed import Speed
    from meve.evaluation.experiments.speed import speed as run
    from meve.evaluation.report.speed import text, write

    folder = to or HOME / "speed"
    with progress_bar() as advance:
        found = run(Speed(to=folder, sizes=_sizes(sizes), ivf=_sizes(ivf)), advance)
    command = shlex.join(["meve", *sys.argv[1:]])
    say(text(found, command))
    say(f"report: {write(found, folder, command)}")


def memory(
    to: To = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Names of experiments with commas; all by default.", metavar="A,B")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases, to see that it runs; wide intervals.")] = False,
    seed: Seed = 42,
    embedder: Embedder = None,
) -> None:
    """What memory must not hand out, and what reflection does. Also tags, contradictions, prompt size."""
    bench_needs("memory", embedder=embedder)
    from meve.evaluation.experiments.memory.environment import QUICK, Sizes
    from meve.evaluation.experiments.memory.run import EXPERIMENTS, Memory
    from meve.evaluation.experiments.memory.run import memory as run
    from meve.evaluation.report.memory import write

    names = tuple(EXPERIMENTS) if only is None else tuple(name.strip() for name in only.split(",") if name.strip())
    wanted = Memory(only=names, sizes=QUICK if quick else Sizes(), seed=seed, embedder=embedder)
    with progress_bar() as advance:
        found = run(wanted, lambda stage, done, total: advance(stage, done, total))
    _show_memory(found)
    say(f"report: {write(found, to or HOME / 'memory', shlex.join(['meve', *sys.argv[1:]]))}")


def small_context(
    data: Data = None,
    to: To = None,
    questions: Questions = 150,
    full: Full = False,
    aside: Annotated[
        int, typer.Option("--aside", min=0, help="Of 2Wiki's, pass over so many: to choose settings on others.")
    ] = 0,
    chat: Annotated[float, typer.Option("--chat", min=0.0, max=0.99, help="Share of chit-chat among the turns.")] = 0.9,
    seed: Seed = 42,
    embedder: Embedder = None,
    entities: Annotated[
        str | None,
        typer.Option(
            "--entities", help="What finds entities: patterns, dates, spacy-rules, a spaCy model.", metavar="NAME"
        ),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option("--reader", help="A function from question and context to an answer.", metavar="MODULE:FUNC"),
    ] = None,
) -> None:
    """What a small window holds of a long dialogue. The query-aware memory paper's tables again."""
    bench_needs("small-context", embedder=embedder, entities=entities)
    from meve.evaluation.experiments.small_context.run import SmallContexts, small_contexts
    from meve.evaluation.report.small import write

    if reader is not None:
        sys.path.insert(0, os.getcwd())
    wanted = SmallContexts(
        data=_folder(data, ("2wiki", "irc", "locomo")), questions=None if full else questions, aside=aside, chat=chat,
        seed=seed, embedder=embedder, entities=entities, reader=reader,
    )  # fmt: skip
    with progress_bar() as advance:
        found = small_contexts(wanted, lambda stage, done, total: advance(stage, done, total))
    _show_memory(found)
    say(f"report: {write(found, to or HOME / 'small-context', shlex.join(['meve', *sys.argv[1:]]))}")


def _show_memory(found: "MemoryResults") -> None:
    from meve.evaluation.report.memory import grid

    for name in found.experiments:
        head, rows = grid(found.of(name))
        made = table(name, *head, right=head[1:], fold=head)
        for row in rows:
            made.add_row(*row)
        show_table(made)


def _folder(data: Path | None, sets: Sequence[str], but: str = "") -> Path:
    """Where the sets lie; the one that comes with the package lies nowhere else."""
    if data is None and set(sets) != {"own"}:
        raise typer.BadParameter(f"--data DIR is missing: the folder with a folder for each set{but}")
    return data or Path()


def _sizes(listed: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in listed.replace("_", "").split(",") if size.strip())
    except ValueError as cause:
        raise typer.BadParameter(f"{listed!r} is no list of sizes: give whole numbers with commas") from cause


def _measured(run: Callable[["Progress", "Results | None"], "Results"], folder: Path, compare: Path | None) -> None:
    from meve.evaluation.report import write
    from meve.evaluation.results import Results

    old = None if compare is None else Results.load(compare)
    with progress_bar() as advance:
        results = run(lambda stage, done, total: advance(stage, done, total), old)
    report = write(results, folder, shlex.join(["meve", *sys.argv[1:]]))
    show(results)
    for failure in islice(_first_of_each(results), SHOWN):
        complain("warning", f"{failure.set}, {failure.system}, question {failure.question}: {failure.error}")
    if results.failures:
        complain("warning", f"{len(results.failures)} questions raised; each counts as nothing handed over")
    say(f"report: {report}")
    if old is not None:
        judge(old, results)


def _first_of_each(results: "Results") -> Iterator["Failure"]:
    """Failures, the first of each system before the others."""
    seen: dict[tuple[str, str], Failure] = {}
    rest = [f for f in results.failures if seen.setdefault((f.set, f.system), f) is not f]
    yield from (*seen.values(), *rest)


def show(results: "Results") -> None:
    """Print the main measures, a row a system; as many columns as fit."""
    from meve.evaluation.report.markdown import MAIN, number, short

    for name in results.sets:
        asked = {s: results.value(name, s, "tokens") for s in results.systems(name)}
        most = results.sets[name]["questions"]
        rows = {s: short(s) + (f" (of {n.n})" if n and n.n < most else "") for s, n in asked.items()}
        known = [m for m in MAIN if any(results.value(name, s, m) for s in rows)]
        columns = _fitting(known, max(map(len, rows.values())), out().width)
        made = table(f"{name}: {counted(most, 'question', 'questions')}", "system", *columns, right=columns)
        for system, label in rows.items():
            found = [results.value(name, system, m) for m in columns]
            made.add_row(label, *("" if v is None else number(m, v.value) for m, v in zip(columns, found, strict=True)))
        show_table(made)


def _fitting(columns: Sequence[str], names: int, width: int) -> list[str]:
    """Those that fit beside the names, the most telling ones first; in their own order."""
    kept: list[str] = []
    room = width - names - 1
    for column in sorted(columns, key=lambda c: TELLING.index(c) if c in TELLING else len(TELLING)):
        if len(column) + 1 <= room:
            kept.append(column)
            room -= len(column) + 1
    return [column for column in columns if column in kept]


def judge(old: "Results", new: "Results") -> None:
    """Print what moved, and fail if something dropped.

    Raises:
        EvaluationError: something is worse than it was.
    """
    from meve.evaluation.compare import changed, moves

    other = changed(old, new)
    if other:
        complain("warning", f"the two runs differ in their {', '.join(other)}")
    found = moves(old, new)
    if not found:
        say("nothing moved beyond its interval")
        return
    made = table("moved beyond its interval", "set", "system", "measure", "old", "new", "change", right=("old", "new"))
    for move in found:
        made.add_row(*_row(move))
    show_table(made)
    drops = [m for m in found if m.a_drop]
    if drops:
        raise EvaluationError(f"{len(drops)} of {len(found)} moves are for the worse: see the table")


def _row(move: "Move") -> tuple[str, ...]:
    from meve.evaluation.compare import EVERY
    from meve.evaluation.report.markdown import number

    if move.measure == EVERY:
        return move.set, move.system, move.measure, "", "", move.verdict
    new = "" if move.new is None else number(move.measure, move.new)
    change = f"{move.verdict} [{number(move.measure, move.low)}, {number(move.measure, move.high)}]"
    return move.set, move.system, move.measure, number(move.measure, move.old), new, change


for command in (quality, paper, speed, memory, small_context):
    bench.command()(guarded(command))
