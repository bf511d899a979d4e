"""Results as pictures: recall against tokens, and the paper's figures drawn again."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from meve.errors import missing_extra
from meve.evaluation.experiments.paper import MODES, PUBLISHED, stand_ins
from meve.evaluation.results import Results

OURS, THEIRS = "#2b6cb0", "#b8c4ce"
COLOURS = {"dense": "#4a5568", "bm25": "#b7791f", "hybrid": "#2f855a", "full": OURS}


def draw(results: Results, folder: Path) -> list[Path]:
    """Every picture of a report, as SVG.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    using_matplotlib()
    made = []
    if results.curve:
        made.append(_curves(results, folder / "recall-against-tokens.svg"))
    if results.experiment == "paper":
        made += _figures(results, folder)
    return made


def using_matplotlib() -> None:
    """Get matplotlib ready to draw into files, the same bytes from the same numbers.

    Raises:
        MissingExtraError: it isn't installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as cause:
        raise missing_extra("matplotlib", "bench", "drawing a report") from cause
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "meve"


def save(figure: Any, file: Path) -> Path:  # noqa: ANN401 - matplotlib's
    """Write a figure, and let go of it."""
    from matplotlib import pyplot as plt

    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
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
            mine = [p for p in points if p.system == system]
            axis.plot([p.tokens for p in mine], [p.recall for p in mine], "o-", ms=3, lw=1, color=COLOURS[system])
        budgets = sorted({p.max_tokens for p in points})
        for n, budget in enumerate(budgets):
            mine = [p for p in points if p.system == "full" and p.max_tokens == budget]
            alpha = 0.3 + 0.7 * (n + 1) / len(budgets)
            axis.plot([p.tokens for p in mine], [p.recall for p in mine], "s-", ms=3, lw=1.3, color=OURS, alpha=alpha)
        axis.set(title=name, xlabel="tokens handed over (mean)", ylabel="supporting recall", ylim=(0, 1.02))
        axis.grid(alpha=0.3)
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker="s" if system == "full" else "o", ms=4)
        for system, colour in COLOURS.items()
    ]
    figure.legend(
        handles, [*list(COLOURS)[:3], "full (thresholds; darker: larger budget)"], loc="outside upper center", ncols=4
    )
    return save(figure, file)


def _figures(results: Results, folder: Path) -> list[Path]:
    short = ("no_rag", "standard_rag", "full")
    every = tuple(MODES)
    made = [
        _bars(results, "wikipedia", short, ("tokens",), folder / "figure-2-context-size.svg"),
        _bars(results, "wikipedia", short, ("seconds",), folder / "figure-3-retrieval-time.svg"),
        _bars(results, "wikipedia", every, ("tokens", "seconds"), folder / "figure-4-ablation.svg"),
        _proxy(results, every, folder / "figure-5-grounding-proxy.svg"),
        _bars(results, "hotpotqa", every, ("tokens",), folder / "figure-6-hotpotqa-context-size.svg"),
        _bars(results, "hotpotqa", every, ("seconds",), folder / "figure-7-hotpotqa-retrieval-time.svg"),
    ]
    return [file for file in made if file is not None]


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
        here = [_quantity(results, name, m, quantity) for m in modes]
        axis.bar([p - 0.2 for p in places], published, 0.4, color=THEIRS, label="published")
        bars = axis.bar([p + 0.2 for p in places], here, 0.4, color=OURS, label="here")
        axis.bar_label(bars, fmt="%.0f" if quantity == "tokens" else "%.3f", fontsize=8)
        for place, value in zip(places, published, strict=True):
            shown = "not given" if value != value else f"{value:g}"
            given = value == value
            axis.annotate(
                shown,
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
    _stand_ins(results, name, figure)
    return save(figure, file)


def _stand_ins(results: Results, name: str, figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """Below a figure, what stands in for what the paper used."""
    width = int(24 * figure.get_figwidth())
    lines = [line for said in stand_ins(results, name) for line in wrap(said, width, subsequent_indent="   ")]
    figure.set_figheight(figure.get_figheight() + 0.13 * (len(lines) + 1))
    figure.supxlabel("\n".join(["stand-ins, here:", *lines]), fontsize=6, x=0.02, ha="left", multialignment="left")


def _quantity(results: Results, name: str, mode: str, quantity: str) -> float:
    found = results.value(name, mode, "tokens" if quantity == "tokens" else "mean ms")
    if found is None:
        return float("nan")
    return found.value if quantity == "tokens" else found.value / 1000


def _proxy(results: Results, modes: Sequence[str], file: Path) -> Path | None:
    from matplotlib import pyplot as plt

    if "wikipedia" not in results.sets:
        return None
    figure, axis = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
    relevant = [_share(results, m, "proxy: potentially relevant") for m in modes]
    derived = [_share(results, m, "proxy: derived from context") for m in modes]
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
    _stand_ins(results, "wikipedia", figure)
    return save(figure, file)


def _share(results: Results, mode: str, measure: str) -> float:
    found = results.value("wikipedia", mode, measure)
    return found.value if found is not None else float("nan")
