"""Draw what `benchmarks.growth` measured: time to index, room, and time to search, by the number of passages."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meve.evaluation.report.plots import prepare_matplotlib, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {"embed_s": "embedding", "count_s": "counting tokens", "words_s": "words", "vectors_s": "vectors"}


def draw_growth(results: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the CPU time of indexing and of searches, and the room on disk and in memory, as SVG."""
    prepare_matplotlib()
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    rows = sorted(results, key=lambda row: int(row["size"]))
    built = [row for row in rows if row["what"] == "build"]
    searched = [row for row in rows if row["what"] == "embedded"]
    figure, (indexing, room, searching) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    total = dict.fromkeys(("cpu_s", *PARTS), 0.0)
    sums = []
    for row in built:
        total = {name: value + row[name] for name, value in total.items()}
        sums.append({"size": row["size"], **total})
    _plot(indexing, sums, "cpu_s", "all", "o-")
    for name, label in PARTS.items():
        _plot(indexing, sums, name, label, "s--")
    mebibytes = [{**row, "mib": row["bytes"] / 2**20} for row in rows if "bytes" in row]
    _plot(room, [row for row in mebibytes if row["what"] == "build"], "mib", "on disk", "o-")
    _plot(room, [row for row in mebibytes if row["what"] == "postgresql"], "mib", "on disk, PostgreSQL", "o--")
    _plot(room, built, "peak_mib", "in memory while adding", "s-")
    _plot(room, searched, "anonymous_mib", "in memory while searching", "s--")
    _plot(searching, searched, "dense_p50", "passages, by vectors", "o-")
    _plot(searching, searched, "lexical_p50", "passages, by words", "s-")
    for what in dict.fromkeys(row["what"] for row in rows if row["what"].endswith(" vectors")):
        _plot(searching, [row for row in rows if row["what"] == what], "dense_p50", f"synthetic, {what}", "^--")
    for axis, title in (
        (indexing, "CPU time of indexing, s"),
        (room, "MiB"),
        (searching, "CPU time of a search, ms (median)"),
    ):
        axis.set(xscale="log", yscale="log", xlabel="passages or vectors", title=title)
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for each in (axis.xaxis, axis.yaxis):
            each.set_major_formatter("{x:,.10g}")
            each.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    save_figure(figure, file)


def _plot(axis: "Axes", rows: Sequence[dict[str, Any]], name: str, label: str, style: str) -> None:
    points = [(row["size"], row[name]) for row in rows if name in row]
    if points:
        axis.plot(*zip(*points, strict=True), style, ms=3, lw=1, label=label)
