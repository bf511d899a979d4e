"""Experiments on memory, for reading: a table each, two pictures, and the same numbers as JSON."""

from collections.abc import Sequence
from pathlib import Path

from meve.evaluation.experiments.memory import contradictions, expiry, false_facts, growth, isolation, sensitivity, tags
from meve.evaluation.experiments.memory.memory_results import Curve, Figure, MemoryResults
from meve.evaluation.report.markdown import table
from meve.evaluation.report.plots import save, using_matplotlib

PICTURE, SIZES = "memory-over-time.svg", "memory-prompt-size.svg"
_SAID = {
    expiry.NAME: "Secrets, asked for a second before their end and at it, by every way in. No maintenance has been by.",
    isolation.NAME: "Users are asked what only another one knows, and what they know themselves.",
    false_facts.NAME: "A false fact is put in a day after the right one. Rounds of questions, answered by rule; then "
    "one round of maintenance. Flagged is what an answer is said to contradict; nobody asked about the others.",
    false_facts.BY_KIND: "The same, of right sentences, after maintenance.",
    tags.NAME: "How often the right memory is among five.",
    contradictions.NAME: "Every fact changes once a week; asked for after the last change.",
    contradictions.BY_KIND: "The same, by what changes, and whether it is said in the same words.",
    growth.NAME: "A question at each turn about a fact of the first twenty; the whole talk is in memory.",
    sensitivity.NAME: "One story for each setting. A star marks what differs from the default, the same cases "
    "compared in pairs; of so many comparisons one in twenty does so by chance.",
}


def write(results: MemoryResults, folder: Path, command: str) -> Path:
    """Write `results.json`, `report.md` and the pictures; returns the report's file.

    Raises:
        MissingExtraError: matplotlib isn't installed; the numbers are written all the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results.save(folder / "results.json")
    pictures = draw(results, folder)
    file = folder / "report.md"
    file.write_text(text(results, command, pictures), encoding="utf-8")
    return file


def text(results: MemoryResults, command: str, pictures: Sequence[Path] = ()) -> str:
    """The report as Markdown."""
    settings = results.settings
    named = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    sizes = ", ".join(f"{name} {value}" for name, value in settings["sizes"].items())
    said = (
        "Governed memory under its default policy, beside plain stores with the same embedder. Invented users, facts "
        "and talks; answers by rule. Each figure with its 95 % interval and the number of cases: Wilson's for shares, "
        "a bootstrap's for means. Cases of one user share a store, so that intervals are a little too narrow. Seed "
        f"{settings['seed']}; {sizes}; embedder {settings['embedder']}; tokens by {settings['tokens']}. {named}."
    )
    parts = ["# Memory", f"    {command}", said]
    for name in results.experiments:
        head, rows = grid(results.of(name), intervals=True)
        parts += [f"## {name[0].upper()}{name[1:]}", _SAID.get(name, ""), table(head, rows)]
    parts += [f"![{p.stem.replace('-', ' ')}]({p.name})" for p in pictures]
    return "\n\n".join(part for part in parts if part) + "\n"


def grid(figures: Sequence[Figure], *, intervals: bool = False) -> tuple[list[str], list[list[str]]]:
    """One experiment's table, head and rows; what there is more of, systems or measures, goes down.

    Args:
        figures: of one experiment.
        intervals: whether each value comes with its interval and its n.
    """
    found = {(f.system, f.measure): f for f in figures}
    systems = list(dict.fromkeys(f.system for f in figures))
    measures = list(dict.fromkeys(f.measure for f in figures))
    down, across = (systems, measures) if len(systems) > len(measures) else (measures, systems)
    corner = "setting" if down is systems else ""
    rows = []
    for row in down:
        mine = [found.get((row, column) if down is systems else (column, row)) for column in across]
        rows.append([row, *("" if f is None else shown(f, intervals=intervals) for f in mine)])
    return [corner, *across], rows


def shown(figure: Figure, *, intervals: bool = False) -> str:
    """A value as tables show it: a share in three digits, a large mean in none; a star if it moved."""
    i = figure.interval
    digits = 3 if figure.share or abs(i.value) < 1 else 0 if abs(i.value) >= 20 else 1
    star = "*" if figure.moved else ""
    if not intervals:
        return f"{i.value:.{digits}f}{star}"
    return f"{i.value:.{digits}f}{star} [{i.low:.{digits}f}, {i.high:.{digits}f}] ({i.n})"


def draw(results: MemoryResults, folder: Path) -> list[Path]:
    """The curves as SVG: shares over rounds and changes in one picture, tokens over turns in another.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    using_matplotlib()
    over_time = [c for c in results.curves if c.along != "turn"]
    sizes = [c for c in results.curves if c.along == "turn"]
    return [_panels(curves, folder / name) for curves, name in ((over_time, PICTURE), (sizes, SIZES)) if curves]


def _panels(curves: Sequence[Curve], file: Path) -> Path:
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(c.experiment for c in curves))
    figure, axes = plt.subplots(1, len(names), figsize=(5.2 * len(names) + 1, 3.6), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names, strict=True):
        mine = [c for c in curves if c.experiment == name]
        turns = mine[0].along == "turn"
        for curve in mine:
            axis.plot(curve.x, curve.y, "-" if turns else "o-", ms=3, lw=1.3, label=curve.system)
        axis.set(title=name, xlabel=mine[0].along, ylabel=mine[0].measure, yscale="log" if turns else "linear")
        axis.xaxis.get_major_locator().set_params(integer=True)
        if not turns:
            axis.set_ylim(-0.02, 1.02)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    return save(figure, file)
