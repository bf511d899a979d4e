"""The report of the routing experiment: tables, and pictures like the MemFlow paper's figures 3 and 5."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from meve.evaluation.experiments.memory.memory_results import Figure, MemoryResults
from meve.evaluation.experiments.routing import scores
from meve.evaluation.experiments.routing.experiment import BUDGETS
from meve.evaluation.experiments.routing.systems import BASELINE, HISTORY, MEMORY, ORACLE, RANDOM, ROUTED
from meve.evaluation.report import write_report
from meve.evaluation.report.markdown import format_pictures, format_table, format_versions, join_parts, short_name
from meve.evaluation.report.memory_report import tabulate_figures
from meve.evaluation.report.plots import OURS, THEIRS, prepare_matplotlib, save_figure

TYPES_PICTURE, TOKENS_PICTURE = "routing-question-types.svg", "routing-recall-against-tokens.svg"
DESCRIPTIONS = {
    scores.EVIDENCE: "The share of questions with all evidence turns in the context, by token budget.",
    scores.ANY: "The share of questions with at least one evidence turn in the context.",
    scores.TOKENS: "Mean tokens of the context.",
    scores.DIFFERENCE: f"The share of questions with all evidence, minus that of {BASELINE}, over the same questions.",
    scores.TYPES: "`own` is the budget that the router chose.",
    scores.ROUTES: "Right: the tier of the question's type, by `cases.TIER_OF`. Below, the frequency of each tier.",
    scores.MISROUTED: "Questions that the router sends to another tier than their type's: what is found there, and in "
    f"the tier of their type (`{ORACLE}`).",
    scores.ABSTENTION: "Refused from the evidence alone, without a language model.",
}


def format_report(results: MemoryResults, command: str, pictures: Sequence[Path] = ()) -> str:
    """Return the report as Markdown."""
    parts = ["# Routing", f"    {command}", _about(results), *format_pictures(pictures)]
    for name in results.experiments:
        _, _, section = name.partition(": ")
        table = format_table(*tabulate_figures(results.of(name), intervals=True))
        parts += [f"## {name}", DESCRIPTIONS[section], table]
    return join_parts(parts)


def _about(results: MemoryResults) -> str:
    settings = results.settings
    return (
        "Each system sees the same turns. Flat searches print them as plain text, which costs the fewest tokens; the "
        "memory adds a date to each, and the router to each day. A turn that was shortened counts only if no word was "
        "lost that it shares with the answer. Choices were made on the tuning half. Intervals draw whole histories "
        "(LoCoMo: conversations; LongMemEval: the histories of its users; LongBench: its prompts), and for shares are "
        "Wilson's. "
        f"Questions per set and half: {settings['questions']}; seed {settings['seed']}; embedder "
        f"{settings['embedder']}; verifier {settings['verifier']}; tokens by {settings['tokens']}. "
        f"{format_versions(settings['versions'])}."
    )


def draw(results: MemoryResults, folder: Path) -> list[Path]:
    """Draw recall and tokens by question type, and recall against tokens, as SVG.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    prepare_matplotlib()
    names = [name.partition(": ")[0] for name in results.experiments if name.endswith(f": {scores.TYPES}")]
    return [_draw_types(results, names, folder / TYPES_PICTURE), _draw_tokens(results, names, folder / TOKENS_PICTURE)]


def _make_panels(count: int) -> tuple[Any, list[Any]]:
    """Return a figure of two panels a row, and its first `count` panels."""
    from matplotlib import pyplot as plt

    columns, rows = min(2, count), (count + 1) // 2
    figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, 4 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, list(axes.flat[:count])


def _draw_types(results: MemoryResults, names: Sequence[str], file: Path) -> Path:
    figure, axes = _make_panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        values = {(f.system, f.measure): f.interval.value for f in results.of(f"{name}: {scores.TYPES}")}
        types = list(dict.fromkeys(type for type, _ in values))
        axis.bar(types, [values[type, scores.OWN_TOKENS] for type in types], color=THEIRS)
        axis.set(title=name, ylabel="tokens of the context (bars)")
        axis.set_xticks(range(len(types)), types, rotation=30, ha="right")
        right = axis.twinx()
        for label, colour, shift in ((scores.OWN_RECALL, OURS, -0.12), (scores.FLAT_RECALL, "#b7791f", 0.12)):
            places = [place + shift for place in range(len(types))]
            right.plot(places, [values[type, label] for type in types], "o", ms=6, color=colour, label=label)
        right.set(ylim=(0, 1.05), ylabel="all evidence (marks)")
        right.legend(fontsize=7)
    return save_figure(figure, file)


def _draw_tokens(results: MemoryResults, names: Sequence[str], file: Path) -> Path:
    figure, axes = _make_panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        recall = results.of(f"{name}: {scores.EVIDENCE}")
        tokens = {_key(f): f.interval.value for f in results.of(f"{name}: {scores.TOKENS}")}
        for system in dict.fromkeys(f.system for f in recall):
            of_system = [f for f in recall if f.system == system and not f.measure.endswith("own")]
            points = sorted((tokens[_key(f)], f.interval.value) for f in of_system)
            if system in (RANDOM, HISTORY) or len(points) < 3:
                continue
            bold = 2.2 if system in (ROUTED, MEMORY) else 1.1
            axis.plot(
                *zip(*points, strict=True), "o-", ms=3, lw=bold, label=short_name(system) if ":" in system else system
            )
        axis.set(title=name, xscale="log", xlabel="tokens of the context", ylabel="all evidence", ylim=(0, 1.02))
        axis.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, loc="lower right")
    return save_figure(figure, file)


def _key(figure: Figure) -> tuple[str, str]:
    return figure.system, figure.measure.partition("@")[2]


write = partial(write_report, draw, format_report)
"""Writes the report of the routing experiment."""
