"""Results as pictures: recall against tokens, and the paper's figures."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.experiments.paper import MODES, PUBLISHED, describe_stand_ins
from meve.evaluation.results import Results

OURS, THEIRS = "#2b6cb0", "#b8c4ce"
COLOURS = {"dense": "#4a5568", "bm25": "#b7791f", "hybrid": "#2f855a", "full": OURS}

_DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.9) hue-rotate(180deg) } }</style>"
"""On dark pages, dark and light are exchanged, and hues stay."""


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw every picture of a report, as SVG; return their files.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    prepare_matplotlib()
    files = []
    if results.curve:
        files.append(_curves(results, folder / "recall-against-tokens.svg"))
    if results.experiment == "paper":
        files += _draw_paper_figures(results, folder)
    return files


def prepare_matplotlib() -> None:
    """Set matplotlib up to write files, the same bytes for the same numbers.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as cause:
        raise missing_extra("matplotlib", "bench", "drawing a report") from cause
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "meve"


def save_figure(figure: Any, file: Path) -> Path:  # noqa: ANN401 - matplotlib's
    """Write a figure to a file and close it."""
    from matplotlib import pyplot as plt

    figure.savefig(file, metadata={"Date": None}, transparent=True)
    plt.close(figure)
    file.write_text(file.read_text(encoding="utf-8").replace("</defs>", f"</defs>{_DARK}", 1), encoding="utf-8")
    return file


def _curves(results: Results, file: Path) -> Path:
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(p.set for p in results.curve))
    columns = min(len(names), 4)
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(max(4 * columns, 7), 3.6 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names, strict=False):
        points = [p for p in results.curve if p.set == name]
        for system in ("dense", "bm25", "hybrid"):
            curve = [p for p in points if p.system == system]
            axis.plot([p.tokens for p in curve], [p.recall for p in curve], "o-", ms=3, lw=1, color=COLOURS[system])
        budgets = sorted({p.max_tokens for p in points})
        for n, budget in enumerate(budgets):
            curve = [p for p in points if p.system == "full" and p.max_tokens == budget]
            alpha = 0.3 + 0.7 * (n + 1) / len(budgets)
            axis.plot([p.tokens for p in curve], [p.recall for p in curve], "s-", ms=3, lw=1.3, color=OURS, alpha=alpha)
        axis.set(title=name, xlabel="tokens in the prompt (mean)", ylabel="supporting recall", ylim=(0, 1.02))
        axis.grid(alpha=0.3)
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker="s" if system == "full" else "o", ms=4)
        for system, colour in COLOURS.items()
    ]
    figure.legend(
        handles, [*list(COLOURS)[:3], "full (thresholds; darker: larger budget)"], loc="outside upper center", ncols=4
    )
    return save_figure(figure, file)


def _draw_paper_figures(results: Results, folder: Path) -> list[Path]:
    main_modes = ("no_rag", "standard_rag", "full")
    all_modes = tuple(MODES)
    figures = [
        _bars(results, "wikipedia", main_modes, ("tokens",), folder / "figure-2-context-size.svg"),
        _bars(results, "wikipedia", main_modes, ("seconds",), folder / "figure-3-retrieval-time.svg"),
        _bars(results, "wikipedia", all_modes, ("tokens", "seconds"), folder / "figure-4-ablation.svg"),
        _proxy(results, all_modes, folder / "figure-5-grounding-proxy.svg"),
        _bars(results, "hotpotqa", all_modes, ("tokens",), folder / "figure-6-hotpotqa-context-size.svg"),
        _bars(results, "hotpotqa", all_modes, ("seconds",), folder / "figure-7-hotpotqa-retrieval-time.svg"),
    ]
    return [file for file in figures if file is not None]


def _bars(results: Results, name: str, modes: Sequence[str], quantities: Sequence[str], file: Path) -> Path | None:
    from matplotlib import pyplot as plt

    if name not in results.sets:
        return None
    figure, axes = plt.subplots(
        1, len(quantities), figsize=(5.5 * len(quantities), 3.4), squeeze=False, layout="constrained"
    )
    for axis, quantity in zip(axes[0], quantities, strict=True):
        places = range(len(modes))
        published = [PUBLISHED.get((name, m, quantity), float("nan")) for m in modes]
        measure, scale = ("tokens", 1) if quantity == "tokens" else ("mean ms", 1000)
        here = [_mean(results, name, m, measure) / scale for m in modes]
        axis.bar([p - 0.2 for p in places], published, 0.4, color=THEIRS, label="published")
        bars = axis.bar([p + 0.2 for p in places], here, 0.4, color=OURS, label="here")
        axis.bar_label(bars, fmt="%.0f" if quantity == "tokens" else "%.3f", fontsize=8)
        for place, value in zip(places, published, strict=True):
            given = value == value
            axis.annotate(
                f"{value:g}" if given else "not given",
                (place - 0.2, value if given else 0),
                xytext=(0, 0 if given else 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                rotation=0 if given else 90,
                fontsize=8 if given else 7,
            )
        axis.set_xticks(list(places), [m.replace("_", "\n", 1) for m in modes], fontsize=8)
        axis.set(title=f"{name}: mean {'tokens of the context' if quantity == 'tokens' else 'seconds a retrieval'}")
        axis.margins(y=0.15)
        axis.legend(fontsize=8)
    _add_stand_ins(results, name, figure)
    return save_figure(figure, file)


def _add_stand_ins(results: Results, name: str, figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """Note below the figure which models and data replace the paper's."""
    width = int(24 * figure.get_figwidth())
    lines = [line for text in describe_stand_ins(results, name) for line in wrap(text, width, subsequent_indent="   ")]
    figure.set_figheight(figure.get_figheight() + 0.13 * (len(lines) + 1))
    figure.supxlabel("\n".join(["substitutes, here:", *lines]), fontsize=6, x=0.02, ha="left", multialignment="left")


def _mean(results: Results, name: str, mode: str, measure: str) -> float:
    interval = results.value(name, mode, measure)
    return float("nan") if interval is None else interval.value


def _proxy(results: Results, modes: Sequence[str], file: Path) -> Path | None:
    from matplotlib import pyplot as plt

    if "wikipedia" not in results.sets:
        return None
    figure, axis = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
    relevant = [_mean(results, "wikipedia", m, "proxy: potentially relevant") for m in modes]
    derived = [_mean(results, "wikipedia", m, "proxy: derived from context") for m in modes]
    places = list(range(len(modes)))
    axis.bar(places, relevant, color=OURS, label="half of the question's keywords in one sentence")
    rest = [d - r for d, r in zip(derived, relevant, strict=True)]
    axis.bar(places, rest, bottom=relevant, color=THEIRS, label="derived from context (a keyword in common)")
    none = [1 - d for d in derived]
    axis.bar(places, none, bottom=derived, color="#f4d9d0", label="nothing in common")
    axis.set_xticks(places, [m.replace("_", "\n", 1) for m in modes], fontsize=8)
    axis.set(title="wikipedia: the grounding proxy, which can't tell right from wrong", ylabel="share of questions")
    axis.set_xlabel("the rule for half of the keywords is ours: the paper gives none", fontsize=7)
    figure.legend(fontsize=8, loc="outside upper center")
    _add_stand_ins(results, "wikipedia", figure)
    return save_figure(figure, file)
