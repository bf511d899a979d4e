"""The report of the small-context experiment: the paper's tables I and II beside the results, more tables, curves."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from meve.errors import EvaluationError
from meve.evaluation.experiments.memory.memory_results import MemoryResults
from meve.evaluation.experiments.small_context import experiment
from meve.evaluation.experiments.small_context.strategies import (
    ALONE,
    FULL,
    LIMIT,
    NO_EMBEDDING,
    NO_IMPORTANCE,
    SPENT,
    SUMMARY,
    SUMMARY_TOKENS,
    TRUNCATION,
)  # fmt: skip
from meve.evaluation.report import write_report
from meve.evaluation.report.markdown import format_table, format_versions, join_parts
from meve.evaluation.report.memory_report import format_sections
from meve.evaluation.report.plots import OURS, THEIRS, prepare_matplotlib, save_figure

PICTURE = "small-context-thresholds.svg"
CHOSEN_ON = 100
PEAK = 0.30
"""The threshold at the peak of the paper's curve, figure 2, which has no numbers."""
TABLE_1: Mapping[str, tuple[float | None, float | None, int | None]] = {
    TRUNCATION: (0.2661, 0.1167, 1_260),
    SUMMARY: (0.2515, 0.0917, 396),
    ALONE: (0.5845, 0.4267, 316),
    FULL: (0.7578, 0.7200, 273),
    "proposed (Llama2)": (0.7652, None, None),
}
"""Token recall of the model's answer, fact recovery, tokens; N = 500. Source: Kim et al., tables I and II."""

TABLE_2: Mapping[str, tuple[float, float]] = {
    FULL: (0.6832, 0.6117),
    NO_EMBEDDING: (0.5784, 0.4367),
    NO_IMPORTANCE: (0.4218, 0.4117),
    TRUNCATION: (0.2066, 0.0867),
}
"""Token recall and fact recovery of the ablation; N = 100. Without both parts it is truncation."""


def format_report(results: MemoryResults, command: str, pictures: Sequence[Path] = ()) -> str:
    """Return the report as Markdown."""
    parts = ["# Small contexts", f"    {command}", _about(results), "## Beside the paper's tables", _notes(results)]
    parts += [format_table(*paper_table(results, n)) for n in (1, 2)]
    parts += [f"![thresholds]({picture.name})" for picture in pictures]
    parts += format_sections(results)
    return join_parts(parts)


def paper_table(results: MemoryResults, number: int) -> tuple[list[str], list[list[str]]]:
    """Return the paper's table I or II beside the results, under the paper's token limit and under the tokens it used.

    Args:
        results: the results of the experiment.
        number: 1 or 2.
    """
    token = experiment.ANSWERED if results.settings["reader"] else experiment.IN_CONTEXT
    head = [f"table {'I' * number}"]
    head += [f"published: {each}" for each in ("token recall", "fact recovery", *(["tokens"] if number == 1 else []))]
    for limit in (LIMIT, SPENT):
        here = token if limit == LIMIT else experiment.IN_CONTEXT
        head += [f"{each}, {limit:,}" for each in (here, experiment.RECOVERY, experiment.TOKENS)]
    rows = []
    published = TABLE_1 if number == 1 else TABLE_2
    for system, values in published.items():
        row = [system, *("" if v is None else f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in values)]
        for limit in (LIMIT, SPENT):
            here = token if limit == LIMIT else experiment.IN_CONTEXT
            row += [
                _value(results, limit, system, measure) for measure in (here, experiment.RECOVERY, experiment.TOKENS)
            ]
        rows.append(row)
    return head, rows


def _value(results: MemoryResults, limit: int, system: str, measure: str) -> str:
    try:
        value = results.value(f"{experiment.WIKI}, {limit:,} tokens", system, measure).value
    except EvaluationError:
        return ""
    return f"{value:.0f}" if measure == experiment.TOKENS else f"{value:.3f}"


def _about(results: MemoryResults) -> str:
    s = results.settings
    turns = "; ".join(
        f"{name}: {t['turns']:.0f} turns, {t['chit-chat']:.0f} of them chit-chat" for name, t in s["turns"].items()
    )
    return (
        "2WikiMultihopQA: the ten paragraphs of each question, one sentence a turn, among messages of a public chat "
        f"room of Ubuntu's users (IRC), {s['chat']:.0%} of the turns. LoCoMo: whole conversations, unchanged. Mean "
        f"length of a dialogue: {turns}. {s['questions'][experiment.WIKI]} and "
        f"{s['questions'][experiment.LOCOMO]} questions, seed {s['seed']}; the first {s['skip']} of 2Wiki's are "
        "skipped. Window, threshold and limit are the paper's. "
        f"The weight of words was chosen on the last {CHOSEN_ON} of 2Wiki's in the order of seed 42, and on LoCoMo's "
        f"after the first 150; by default none of these is asked. Tokens are those of the whole text, question and "
        f"headings included. "
        f"Embedder {s['embedder']}; entities by {s['entities']}; tokens by {s['tokens']}; reader "
        f"{s['reader'] or 'none'}. A star marks a paired difference to `both`. "
        f"{format_versions(s['versions'])}."
    )


def _notes(results: MemoryResults) -> str:
    reader = (
        "Token recall is of the reader's answers under the first limit, and of the context itself under the second. "
        "SLM only is the reader with the question alone; the paper doesn't say what its model alone was given. The "
        "paper's own models are Gemma2 and Llama2; here every row is the reader's."
        if results.settings["reader"]
        else "Token recall is of the context itself, no model having answered; the paper's is of a model's answers. "
        "The row of a model alone is empty without --reader."
    )
    return (
        f"Each strategy under the paper's limit ({LIMIT:,} tokens) and under what its method spent ({SPENT}). "
        f"The paper states neither how passages became dialogues nor how long these were. {reader} The summary has the "
        f"turns nearest to the mean of all, in {SUMMARY_TOKENS} tokens at most."
    )


def draw(results: MemoryResults, folder: Path) -> list[Path]:
    """Draw fact recovery and tokens over thresholds, as SVG.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    prepare_matplotlib()
    from matplotlib import pyplot as plt

    curves = [c for c in results.curves if c.experiment == experiment.SWEEP]
    measures = (experiment.RECOVERY, experiment.TOKENS)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for axis, measure in zip(axes, measures, strict=True):
        for curve, colour in zip([c for c in curves if c.measure == measure], (OURS, "#b7791f"), strict=False):
            axis.plot(curve.x, curve.y, "o-", ms=3, lw=1.3, color=colour, label=f"limit {curve.system}")
        axis.axvline(PEAK, color=THEIRS, lw=4, zorder=0, label="the paper's peak")
        axis.set(title=f"{experiment.WIKI}: {measure}", xlabel="threshold")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    return [save_figure(figure, folder / PICTURE)]


write = partial(write_report, draw, format_report)
"""Writes the report of the small-context experiment."""
