"""The report of the memory experiments: one table each, pictures of the curves, and the same numbers as JSON."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from meve.evaluation.experiments.memory import (
    contradictions,
    expiry,
    extraction,
    false_facts,
    isolation,
    long_memories,
    memory_speed,
    prompt_size,
    recall,
    sensitivity,
    stories,
    updates,
    user_facts,
    wrong_tags,
)
from meve.evaluation.experiments.memory.memory_results import Curve, Figure, MemoryResults
from meve.evaluation.experiments.small_context import dialogue_speed
from meve.evaluation.experiments.trajectory import experiment as trajectory
from meve.evaluation.report import write_report
from meve.evaluation.report.markdown import format_pictures, format_table, format_versions, join_parts
from meve.evaluation.report.plots import prepare_matplotlib, save_figure

OVER_TIME_PICTURE, SIZE_PICTURE = "memory-over-time.svg", "memory-prompt-size.svg"
DESCRIPTIONS = {
    expiry.NAME: "Each secret is asked for by every access path, a second before it expires and when it does, before "
    "any maintenance.",
    isolation.NAME: "Users ask what only another user knows, and what they know themselves.",
    false_facts.NAME: "A false fact is added a day after the right one. Rounds of questions follow, answered by rule, "
    "then one round of maintenance. Flagged: contradicted by an answer; nobody asked about the others.",
    false_facts.BY_KIND: "The same for right sentences, after maintenance.",
    wrong_tags.NAME: "How often the right memory is among five.",
    contradictions.NAME: "Every fact changes once a week; the questions follow the last change.",
    contradictions.BY_KIND: "The same by what changes, and whether the wording stays the same.",
    stories.NAME: "Two weeks of correct answers, each of them feedback, with maintenance each day.",
    updates.NAME: "A user says two statements a day apart; after maintenance each is searched for by its own text.",
    prompt_size.NAME: "At each turn, a question about a fact of the first twenty; the whole conversation is in memory.",
    sensitivity.NAME: "The same history for each setting. A star marks a paired difference to the default; of so many "
    "comparisons, one in twenty does by chance.",
    user_facts.NAME: "Ten users told 20 facts each; 300 questions, worded unlike the facts. Among five: the mean share "
    "of a question's facts. The ranking was tuned on five of the users.",
    extraction.NAME: "300 turns labelled by hand, half of which served to write the rules. Cases are sentences.",
    extraction.SECRETS: "Shares of texts in which the detector sees a secret; none of them was picked for one.",
    long_memories.NAME: "What the speakers of LoCoMo tell, by the rules of extraction; hardly any of it ends another.",
    recall.NAME: "LoCoMo: the mean share of a question's evidence among ten memories, and milliseconds a question. A "
    "star marks a paired difference to the memory. The default weights were chosen on these questions.",
    memory_speed.NAME: "Milliseconds without those of the models, which are stated separately. Users of "
    "10,000 memories.",
    **trajectory.DESCRIPTIONS,
    dialogue_speed.NAME: "The first question reads all turns of the dialogue.",
}


def format_report(results: MemoryResults, command: str, pictures: Sequence[Path] = ()) -> str:
    """Return the report as Markdown."""
    title = results.experiment.replace("-", " ").capitalize()
    return join_parts(
        [f"# {title}", f"    {command}", _about(results), *format_sections(results), *format_pictures(pictures)]
    )


def format_sections(results: MemoryResults) -> list[str]:
    """Return each experiment's heading, description and table."""
    parts = []
    for name in results.experiments:
        table = format_table(*tabulate_figures(results.of(name), intervals=True))
        parts += [f"## {name[0].upper()}{name[1:]}", DESCRIPTIONS.get(name, ""), table]
    return parts


def _about(results: MemoryResults) -> str:
    settings = dict(results.settings)
    versions = format_versions(settings.pop("versions"))
    intervals = "Each figure has its 95 % interval and the number of cases"
    if "sizes" not in settings:
        values = "; ".join(f"{name}: {value}" for name, value in settings.items())
        return f"{intervals}, by the bootstrap. {values}. {versions}."
    sizes = ", ".join(f"{name} {value}" for name, value in settings["sizes"].items())
    return (
        "Governed memory under its default policy, beside plain stores with the same embedder. Users, facts and "
        f"conversations are synthetic; answers follow rules. {intervals}: Wilson's for shares, a bootstrap's for "
        "means. Cases of one user share a store, so that intervals are a little too narrow. Seed "
        f"{settings['seed']}; {sizes}; embedder {settings['embedder']}; tokens by {settings['tokens']}. {versions}."
    )


def tabulate_figures(figures: Sequence[Figure], *, intervals: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of one experiment's table; the longer list, systems or measures, becomes the rows.

    Args:
        figures: the figures of one experiment.
        intervals: whether each value comes with its interval and its n.
    """
    by_name = {(f.system, f.measure): f for f in figures}
    systems = list(dict.fromkeys(f.system for f in figures))
    measures = list(dict.fromkeys(f.measure for f in figures))
    down, across = (systems, measures) if len(systems) > len(measures) else (measures, systems)
    corner = "setting" if down is systems else ""
    rows = []
    for row in down:
        cells = [by_name.get((row, column) if down is systems else (column, row)) for column in across]
        rows.append([row, *("" if f is None else format_figure(f, intervals=intervals) for f in cells)])
    return [corner, *across], rows


def format_figure(figure: Figure, *, intervals: bool = False) -> str:
    """Return a value as tables show it: shares with three digits, large means with none; a star marks a difference."""
    i = figure.interval
    digits = 3 if figure.share or abs(i.value) < 1 else 0 if abs(i.value) >= 20 else 1
    star = "*" if figure.moved else ""
    if not intervals:
        return f"{i.value:.{digits}f}{star}"
    return f"{i.value:.{digits}f}{star} [{i.low:.{digits}f}, {i.high:.{digits}f}] ({i.n})"


def draw(results: MemoryResults, folder: Path) -> list[Path]:
    """Draw the curves as SVG: shares over rounds and changes in one picture, tokens over turns in another.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    if not results.curves:
        return []
    prepare_matplotlib()
    over_time = [c for c in results.curves if c.along != "turn"]
    sizes = [c for c in results.curves if c.along == "turn"]
    pictures = ((over_time, OVER_TIME_PICTURE), (sizes, SIZE_PICTURE))
    return [_draw_panels(curves, folder / name) for curves, name in pictures if curves]


def _draw_panels(curves: Sequence[Curve], file: Path) -> Path:
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(c.experiment for c in curves))
    figure, axes = plt.subplots(1, len(names), figsize=(5.2 * len(names) + 1, 3.6), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names, strict=True):
        panel = [c for c in curves if c.experiment == name]
        turns = panel[0].along == "turn"
        for curve in panel:
            axis.plot(curve.x, curve.y, "-" if turns else "o-", ms=3, lw=1.3, label=curve.system)
        axis.set(title=name, xlabel=panel[0].along, ylabel=panel[0].measure, yscale="log" if turns else "linear")
        axis.xaxis.get_major_locator().set_params(integer=True)
        if not turns:
            axis.set_ylim(-0.02, 1.02)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    return save_figure(figure, file)


write = partial(write_report, draw, format_report)
"""Writes the report of an experiment on memory or dialogue."""
