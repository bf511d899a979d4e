"""Results as Markdown: a table a set, with intervals, and what is surely different from the whole."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from meve.evaluation.experiments.paper import PUBLISHED, stand_ins
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Results
from meve.evaluation.statistics import Interval

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
"""Columns of a set's first table: what stands in the prompt."""
RANKING = ("MRR@10", "recall@5", "recall@20", "NDCG@10", "sentence recall", "fact recovery", "context token recall")
DECIDING = (
    "answering precision",
    "answering recall",
    "abstention precision",
    "abstention recall",
    "calibration error",
    "empty",
)


def text(results: Results, command: str, pictures: Sequence[Path]) -> str:
    """The whole report."""
    parts = [f"# {results.experiment.capitalize()}", _about(results, command)]
    if results.experiment == "paper":
        parts += [_paper(results)]
    for name in results.sets:
        parts += _set(results, name)
    parts += [f"![{p.stem.replace('-', ' ')}]({p.name})" for p in pictures]
    parts += [_failures(results), _meanings(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, all columns but the first to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def number(measure: str, value: float) -> str:
    """A value as tables show it.

    >>> number("tokens", 188.84), number("supporting recall", 0.51234), number("p50 ms", 7.123)
    ('189', '0.512', '7.1')
    """
    if measure == "tokens":
        return f"{value:.0f}"
    return f"{value:.1f}" if measure.endswith(" ms") or measure == "passages" else f"{value:.3f}"


def _about(results: Results, command: str) -> str:
    settings = results.settings
    versions = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    return (
        f"    {command}\n\n"
        f"Embedder {settings['embedder']}, verifier {settings['verifier']}, tokens of {settings['tokens']}, "
        f"seed {settings['seed']}. {versions}.\n\n"
        "In brackets: 95 % intervals by the bootstrap over questions. A star: the paired difference to "
        f"`{_against(results)}` excludes zero. A question without a result counts as zero; one that raised too."
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
    for columns in (MAIN, RANKING, DECIDING):
        made = _cells(results, name, columns)
        if made:
            parts.append(made)
    return parts


def _cells(results: Results, name: str, columns: Sequence[str]) -> str:
    found: Mapping[tuple[str, str], Interval] = {
        (c.system, c.measure): c.interval for c in results.cells if c.set == name
    }
    sure = {(d.system, d.measure) for d in results.differences if d.set == name and d.interval.excludes_zero}
    shown = [m for m in columns if any((system, m) in found for system in results.systems(name))]
    if not shown:
        return ""

    def cell(system: str, measure: str) -> str:
        if (system, measure) not in found:
            return ""
        it = found[(system, measure)]
        star = "*" if (system, measure) in sure else ""
        return (
            f"{number(measure, it.value)}{star} [{number(measure, it.low)}, {number(measure, it.high)}]"
            if it.n > 1
            else f"{number(measure, it.value)}"
        )

    rows = [
        [f"{system} (n={_n(results, name, system)})", *(cell(system, m) for m in shown)]
        for system in results.systems(name)
    ]
    return table(["system", *shown], rows)


def _n(results: Results, name: str, system: str) -> int:
    return max(c.interval.n for c in results.cells if c.set == name and c.system == system)


def _paper(results: Results) -> str:
    rows = []
    for (name, mode, quantity), published in PUBLISHED.items():
        measure = "tokens" if quantity == "tokens" else "p50 ms"
        ours = results.value(name, mode, measure)
        if ours is not None:
            value = ours.value if quantity == "tokens" else ours.value / 1000
            shown = f"{value:.1f}" if quantity == "tokens" else f"{value:.3f}"
            rows.append([name, mode, quantity, f"{published:g}", shown])
    said = "\n".join(f"- {line}" for line in stand_ins(results))
    claims = "\n".join(_claim(results, name, share) for name, share in (("wikipedia", 57.7), ("hotpotqa", 75.0)))
    return (
        "## Published, and measured again\n\n"
        + table(["set", "mode", "quantity", "published (mean)", "here (tokens: mean, seconds: median)"], rows)
        + f"\n\nStand-ins, where the paper's own can't be had:\n\n{said}\n\n"
        + f"### What the saving costs\n\nThe paper reports no recall.\n\n{claims}"
    )


def _claim(results: Results, name: str, published: float) -> str:
    full, rag = (results.value(name, mode, "tokens") for mode in ("full", "standard_rag"))
    lost = next(
        (
            d.interval
            for d in results.differences
            if (d.set, d.system, d.measure) == (name, "full", "supporting recall")
        ),
        None,
    )
    if full is None or rag is None or lost is None or not rag.value:
        return f"- {name}: not measured"
    saved = 100 * (1 - full.value / rag.value)
    return (
        f"- {name}: {saved:.1f} % fewer tokens than standard RAG (published: {published} %), and supporting recall "
        f"{lost.value:+.3f} [{lost.low:+.3f}, {lost.high:+.3f}] of it"
    )


def _failures(results: Results) -> str:
    if not results.failures:
        return ""
    counted: dict[tuple[str, str], list[str]] = {}
    for f in results.failures:
        counted.setdefault((f.set, f.system), []).append(f"{f.question}: {f.error}")
    lines = [
        f"- {name}, {system}: {len(said)} questions raised and count as zero; the first, {said[0]}"
        for (name, system), said in counted.items()
    ]
    return "## Failures\n\n" + "\n".join(lines)


def _meanings(results: Results) -> str:
    used = {c.measure for c in results.cells}
    wanted: Callable[[str], bool] = used.__contains__
    lines = [f"- **{m.name}**: {m.meaning}" for m in MEASURES.values() if wanted(m.name)]
    return "## What the measures mean\n\n" + "\n".join(lines)
