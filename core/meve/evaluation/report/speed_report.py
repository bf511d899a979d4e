"""The report of the speed experiment: tables, a picture, and the same numbers as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from meve.evaluation.experiments.retrieval_speed import SpeedResult
from meve.evaluation.report.markdown import format_table, format_versions, join_parts
from meve.evaluation.report.plots import prepare_matplotlib, save_figure
from meve.evaluation.results import collect_versions

PICTURE = "speed.svg"
_MARKERS = {"flat": "s", "hnsw": "o", "ivf": "D"}


def write(measured: Sequence[SpeedResult], folder: Path, command: str) -> Path:
    """Write `results.json`, `report.md` and `speed.svg`; return the report's file.

    Raises:
        MissingExtraError: matplotlib isn't installed; `results.json` is written nevertheless.
    """
    data = {
        "experiment": "speed",
        "seeds": {"words": 42, "passages": 1, "queries": 2},
        "versions": collect_versions(),
        "measured": [asdict(m) for m in measured],
    }
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    _draw(measured, folder / PICTURE)
    file = folder / "report.md"
    file.write_text(format_report(measured, command), encoding="utf-8")
    return file


def format_report(measured: Sequence[SpeedResult], command: str) -> str:
    """Return the report as Markdown."""
    sizes = format_table(
        ["index", "passages", "p50 ms", "p95 ms", "p99 ms", "dense built in s", "words in s", "GiB", "recall@20"],
        [
            [
                m.kind,
                f"{m.passages:,}",
                *(f"{v:.1f}" for v in m.ms["all"]),
                f"{m.dense_s:.1f}",
                f"{m.lexical_s:.1f}",
                f"{m.memory_gib:.2f}",
                f"{m.recall_at_20:.3f}",
            ]
            for m in measured
        ],
    )
    phases = [name for name in measured[0].ms if name != "all"]
    parts = format_table(
        ["index", "passages", *phases],
        [[m.kind, f"{m.passages:,}", *(" / ".join(f"{v:.2f}" for v in m.ms[p]) for p in phases)] for m in measured],
    )
    note = (
        "The five phases without the models: all together, and p50 / p95 / p99 in ms of each. Synthetic passages "
        f"and queries, seeds 42, 1 and 2. {format_versions(collect_versions())}."
    )
    return join_parts(["# Speed", f"    {command}", note, sizes, parts, f"![Speed against size]({PICTURE})"])


def _draw(measured: Sequence[SpeedResult], file: Path) -> None:
    prepare_matplotlib()
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogFormatter

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for kind, marker in _MARKERS.items():
        rows = sorted((m for m in measured if m.kind == kind), key=lambda m: m.passages)
        if not rows:
            continue
        sizes = [m.passages for m in rows]
        axes[0].plot(sizes, [m.ms["all"][0] for m in rows], marker=marker, label=f"{kind} p50")
        axes[1].plot(sizes, [m.dense_s for m in rows], marker=marker, label=kind)
        axes[2].plot(sizes, [m.memory_gib for m in rows], marker=marker, label=kind)
    axes[0].axhline(5, color="grey", linestyle=":", linewidth=1)
    titles = ("Five phases without models, ms", "Building the dense index, s", "Memory, passages included, GiB")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xscale="log", yscale="log", xlabel="passages", title=title)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
        axis.tick_params(axis="y", which="minor", labelsize=7)
        axis.grid(alpha=0.3)
        axis.legend()
    save_figure(figure, file)
