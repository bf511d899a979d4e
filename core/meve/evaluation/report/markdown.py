"""Results as Markdown: tables for each set, with intervals and significant differences from the full pipeline."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import numpy as np

from meve.evaluation.experiments.paper import PUBLISHED, describe_stand_ins
from meve.evaluation.measures import MEASURES, SetMeasure
from meve.evaluation.results import Cell, CurvePoint, Results, compare_cells, set_measure_interval
from meve.evaluation.statistics import Interval, mean_interval

MAIN = (
    "supporting recall",
    "supporting precision",
    "any gold",
    "all gold",
    "answer in context",
    "wrong answer in context",
    "tokens",
    "p50 ms",
)
"""The columns of a set's first table, about the prompt."""
RANKING = ("MRR@10", "recall@5", "recall@20", "NDCG@10", "sentence recall", "fact recovery", "context token recall")
DECIDING = (
    "answering precision",
    "answering recall",
    "abstention precision",
    "abstention recall",
    "calibration error",
    "empty",
    "mean ms",
)
ALL = (MAIN, RANKING, DECIDING)
BASELINES = ("dense", "bm25", "hybrid")
PROXIES = {"proxy: derived from context", "proxy: potentially relevant"}
MEASURED_AS = {"tokens": "tokens", "seconds": "mean ms"}
"""The measure of each quantity in the paper."""


def format_report(results: Results, command: str, pictures: Sequence[Path]) -> str:
    """Return the report."""
    parts = [f"# {results.experiment.capitalize()}", _about(results, command)]
    if results.experiment == "paper":
        parts += [_paper(results)]
    for name in results.sets:
        parts += _set(results, name)
    parts.append(_equal_tokens(results))
    return join_parts([*parts, *format_pictures(pictures), _oddities(results), _failures(results), _meanings(results)])


def join_parts(parts: Sequence[str]) -> str:
    """Return a report of these parts; empty ones are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def format_pictures(files: Sequence[Path]) -> list[str]:
    """Return the line of Markdown that shows each picture."""
    return [f"![{file.stem.replace('-', ' ')}]({file.name})" for file in files]


def format_versions(versions: Mapping[str, str]) -> str:
    """Return names and versions as text."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are right-aligned."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def format_value(measure: str, value: float) -> str:
    """Return a value as tables show it.

    >>> format_value("tokens", 188.84), format_value("supporting recall", 0.51234), format_value("p50 ms", 7.123)
    ('189', '0.512', '7.1')
    """
    if measure == "tokens":
        return f"{value:.0f}"
    return f"{value:.1f}" if measure.endswith(" ms") or measure == "passages" else f"{value:.3f}"


def short_name(system: str) -> str:
    """Return a system's name without the packages of a peer's module.

    >>> short_name("benchmarks.peers.langchain_stock:hybrid")
    'langchain_stock:hybrid'
    """
    module, colon, function = system.partition(":")
    return f"{module.rpartition('.')[2]}{colon}{function}"


def _about(results: Results, command: str) -> str:
    settings = results.settings
    config = ", ".join(f"{name} {value}" for name, value in settings["config"].items() if value is not None)
    return (
        f"    {command}\n\n"
        f"Embedder {settings['embedder']}, verifier {settings['verifier']} (weights {settings['weights']}), tokens of "
        f"{settings['tokens']}, seed {settings['seed']}; {settings['cores']} cores, threads {settings['threads']}. "
        f"Configuration: {config.replace(chr(10), chr(92) + 'n')}. {format_versions(settings['versions'])}.\n\n"
        "Brackets hold 95 % intervals by the bootstrap over questions. A star marks a paired difference to "
        f"`{_against(results)}` whose interval excludes zero. With so many comparisons, one in twenty does so by "
        "chance. A question without a result counts as zero, and so does one for which a system raised an error. Where "
        "less is better, this flatters the system."
    )


def _against(results: Results) -> str:
    return results.differences[0].against if results.differences else "full"


def _set(results: Results, name: str) -> list[str]:
    about = results.sets[name]
    pool = "each question has passages of its own" if about["closed"] else "all questions share the passages"
    parts = [
        f"## {name}",
        f"{about['questions']:,} of {about['of']:,} questions ({about['answerable']:,} answerable), "
        f"{about['passages']:,} passages; {pool}. Data {about['fingerprint']}.",
    ]
    systems = results.systems(name)
    peers = [system for system in systems if len(_question_ids(results, name, system)) < about["questions"]]
    parts += [_cell_table(results, name, columns, [s for s in systems if s not in peers]) for columns in ALL]
    if peers:
        shared = set.intersection(*(_question_ids(results, name, system) for system in systems))
        parts.append(f"The peers were asked fewer questions; all systems on those {len(shared)}:")
        parts.append(_cell_table(results, name, (*MAIN, "NDCG@10"), systems, shared))
    return parts


def _cell_table(
    results: Results, name: str, columns: Sequence[str], systems: Sequence[str], only: Set[str] | None = None
) -> str:
    intervals = {
        (c.system, c.measure): _interval(c, only, results.settings["seed"])
        for c in results.cells
        if c.set == name and c.measure in columns
    }
    significant = _significant(results, name, only)
    shown = [m for m in columns if any(intervals.get((system, m)) for system in systems)]
    if not shown:
        return ""

    def cell(system: str, measure: str) -> str:
        interval = intervals.get((system, measure))
        if interval is None:
            return ""
        star = "*" if (system, measure) in significant else ""
        low, high = format_value(measure, interval.low), format_value(measure, interval.high)
        return f"{format_value(measure, interval.value)}{star} [{low}, {high}]"

    raised = Counter(f.system for f in results.failures if f.set == name)
    rows = [
        [f"{short_name(system)}{f' ({n} raised)' if (n := raised[system]) else ''}", *(cell(system, m) for m in shown)]
        for system in systems
    ]
    return format_table(["system", *(f"{m} (n={_count_range(intervals, systems, m)})" for m in shown)], rows)


def _count_range(intervals: Mapping[tuple[str, str], Interval | None], systems: Sequence[str], measure: str) -> str:
    counts = {i.n for system in systems if (i := intervals.get((system, measure))) is not None}
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def _significant(results: Results, name: str, only: Set[str] | None) -> set[tuple[str, str]]:
    """Return the systems and measures whose difference from the full pipeline excludes zero, over these questions."""
    if only is None:
        return {(d.system, d.measure) for d in results.differences if d.set == name and d.interval.excludes_zero}
    cells = [c for c in results.cells if c.set == name]
    base = {c.measure: c for c in cells if c.system == _against(results)}
    ids, seed = sorted(only), results.settings["seed"]
    return {
        (c.system, c.measure)
        for c in cells
        if c.measure in base
        and (difference := compare_cells(base[c.measure], c, ids, seed=seed)) is not None
        and difference.excludes_zero
    }


def _interval(cell: Cell, only: Set[str] | None, seed: int) -> Interval | None:
    """Return the cell's interval, over all of its questions or only some."""
    if only is None:
        return cell.interval
    measure = MEASURES.get(cell.measure)
    if isinstance(measure, SetMeasure):
        return set_measure_interval(measure, [p for question, p in cell.parts.items() if question in only], seed=seed)
    values = [value for question, value in cell.values.items() if question in only]
    return mean_interval(values, seed=seed) if values else None


def _question_ids(results: Results, name: str, system: str) -> set[str]:
    return {i for c in results.cells if c.set == name and c.system == system for i in c.values}


def _paper(results: Results) -> str:
    rows = []
    for (name, mode, quantity), published in PUBLISHED.items():
        ours = results.value(name, mode, MEASURED_AS[quantity])
        if ours is not None:
            shown = f"{ours.value:.1f}" if quantity == "tokens" else f"{ours.value / 1000:.3f}"
            rows.append([name, mode, quantity, f"{published:g}", shown])
    stand_ins = "\n".join(f"- {line}" for line in describe_stand_ins(results))
    claims = "\n".join(
        _claim(results, name, share, measure)
        for name, share, measure in (
            ("wikipedia", 57.7, "any gold"),
            ("wikipedia", 57.7, "supporting recall"),
            ("hotpotqa", 75.0, "supporting recall"),
        )
    )
    return (
        "## Published and measured\n\nThe table shows means. The paper's seconds were measured on another machine, "
        "with a GPU.\n\n"
        + format_table(["set", "mode", "quantity", "published", "here"], rows)
        + f"\n\nIn all tables and figures, these substitutes stand for what the paper used:\n\n{stand_ins}\n\n"
        + f"### What the saving costs\n\nThe paper reports no recall.\n\n{claims}"
    )


def _claim(results: Results, name: str, published: float, measure: str) -> str:
    full, rag = (results.value(name, mode, "tokens") for mode in ("full", "standard_rag"))
    recall, before = (results.value(name, mode, measure) for mode in ("full", "standard_rag"))
    change = next(
        (d.interval for d in results.differences if (d.set, d.system, d.measure) == (name, "full", measure)), None
    )
    if full is None or rag is None or recall is None or before is None or change is None or not rag.value:
        return f"- {name}: not measured"
    saved = 100 * (1 - full.value / rag.value)
    return (
        f"- {name}: {saved:.1f} % fewer tokens than standard RAG (published: {published} %); {measure} goes from "
        f"{before.value:.3f} to {recall.value:.3f}, a change of {change.value:+.3f} [{change.low:+.3f}, "
        f"{change.high:+.3f}] over {change.n} questions with an answer"
    )


def _equal_tokens(results: Results) -> str:
    """Return the baselines' recall at the full pipeline's number of tokens, interpolated on their curves."""
    config, rows = results.settings["config"], []
    default = ("full", config["threshold"], config["max_tokens"])
    for name in results.sets:
        points = [p for p in results.curve if p.set == name]
        whole = next((p for p in points if (p.system, p.threshold, p.max_tokens) == default), None)
        if whole is not None:
            baselines = [_recall_at(whole.tokens, [p for p in points if p.system == s]) for s in BASELINES]
            rows.append([name, f"{whole.tokens:.0f}", f"{whole.recall:.3f}", *baselines])
    if not rows:
        return ""
    note = "Supporting recall with as many tokens as `full` used; baselines are interpolated linearly between budgets."
    return f"## At equal tokens\n\n{note}\n\n" + format_table(["set", "tokens", "full", *BASELINES], rows)


def _recall_at(tokens: float, points: Sequence[CurvePoint]) -> str:
    """Return a curve's recall at a number of tokens; empty beyond its ends."""
    ordered = sorted((p.tokens, p.recall) for p in points)
    if not ordered or not ordered[0][0] <= tokens <= ordered[-1][0]:
        return ""
    return f"{float(np.interp(tokens, [t for t, _ in ordered], [r for _, r in ordered])):.3f}"


def _oddities(results: Results) -> str:
    lines = "\n".join(f"- {line}" for line in results.oddities)
    return f"## Anomalies\n\n{lines}" if lines else ""


def _failures(results: Results) -> str:
    if not results.failures:
        return ""
    messages: dict[tuple[str, str], list[str]] = {}
    for f in results.failures:
        messages.setdefault((f.set, f.system), []).append(f"{f.question}: {f.error}")
    lines = [
        f"- {name}, {system}: {len(errors)} questions raised and count as zero; the first, {errors[0]}"
        for (name, system), errors in messages.items()
    ]
    return "## Failures\n\n" + "\n".join(lines)


def _meanings(results: Results) -> str:
    used = {c.measure for c in results.cells}
    shown = {m for columns in ALL for m in columns} | (PROXIES if results.experiment == "paper" else set())
    lines = [
        f"- **{m.name}**: {m.meaning} ({m.source})" for m in MEASURES.values() if m.name in used and m.name in shown
    ]
    return "## What the measures mean\n\n" + "\n".join(lines)
