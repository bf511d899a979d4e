"""Small contexts, for reading: the paper's two tables beside what came out, its curve, and a table an experiment."""

from collections.abc import Sequence
from pathlib import Path

from meve.errors import EvaluationError
from meve.evaluation.experiments.memory.memory_results import MemoryResults
from meve.evaluation.experiments.small_context import run
from meve.evaluation.experiments.small_context.published import LIMIT, SPENT, TABLE_1, TABLE_2
from meve.evaluation.experiments.small_context.systems import SUMMARY_TOKENS
from meve.evaluation.report.markdown import table
from meve.evaluation.report.memory import grid
from meve.evaluation.report.plots import OURS, THEIRS, save, using_matplotlib

PICTURE = "small-context-thresholds.svg"
CHOSEN_ON = 100
PEAK = 0.30
"""Where the paper's curve has its peak."""


def write(results: MemoryResults, folder: Path, command: str) -> Path:
    """Write `results.json`, `report.md` and the picture; returns the report's file.

    Raises:
        MissingExtraError: matplotlib isn't installed; the numbers are written all the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results.save(folder / "results.json")
    picture = draw(results, folder / PICTURE)
    file = folder / "report.md"
    file.write_text(text(results, command, picture), encoding="utf-8")
    return file


def text(results: MemoryResults, command: str, picture: Path | None = None) -> str:
    """The report as Markdown."""
    parts = ["# Small contexts", f"    {command}", _about(results), "## Beside the paper's tables", _said(results)]
    parts += [table(*paper_table(results, n)) for n in (1, 2)]
    if picture is not None:
        parts.append(f"![thresholds]({picture.name})")
    for name in results.experiments:
        head, rows = grid(results.of(name), intervals=True)
        parts += [f"## {name[0].upper()}{name[1:]}", table(head, rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def paper_table(results: MemoryResults, number: int) -> tuple[list[str], list[list[str]]]:
    """The paper's table I or II: what it published, and what came out under its limit and under what it spent.

    Args:
        results: of a run.
        number: 1 or 2.
    """
    token = run.ANSWERED if results.settings["reader"] else run.IN_CONTEXT
    head = [f"table {'I' * number}"]
    head += [f"published: {each}" for each in ("token recall", "fact recovery", *(["tokens"] if number == 1 else []))]
    for most in (LIMIT, SPENT):
        here = token if most == LIMIT else run.IN_CONTEXT
        head += [f"{each}, {most:,}" for each in (here, run.RECOVERY, run.TOKENS)]
    rows = []
    published = TABLE_1 if number == 1 else TABLE_2
    for system, values in published.items():
        row = [system, *("" if v is None else f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in values)]
        for most in (LIMIT, SPENT):
            here = token if most == LIMIT else run.IN_CONTEXT
            row += [_value(results, most, system, measure) for measure in (here, run.RECOVERY, run.TOKENS)]
        rows.append(row)
    return head, rows


def _value(results: MemoryResults, most: int, system: str, measure: str) -> str:
    try:
        found = results.value(f"{run.WIKI}, {most:,} tokens", system, measure).value
    except EvaluationError:
        return ""
    return f"{found:.0f}" if measure == run.TOKENS else f"{found:.3f}"


def _about(results: MemoryResults) -> str:
    s = results.settings
    turns = "; ".join(
        f"{name}: {t['turns']:.0f} turns, {t['chit-chat']:.0f} of them chit-chat" for name, t in s["turns"].items()
    )
    named = ", ".join(f"{name} {version}" for name, version in s["versions"].items())
    return (
        "2WikiMultihopQA: the ten paragraphs of each question told a sentence a turn, among stretches of a public chat "
        f"room of Ubuntu's users (IRC), {s['chat']:.0%} of the turns. LoCoMo: whole conversations, as they are. Mean "
        f"length of a dialogue: {turns}. {s['questions'][run.WIKI]} and {s['questions'][run.LOCOMO]} questions, seed "
        f"{s['seed']}; the first {s['aside']} of 2Wiki's passed over. Window, threshold and limit are the paper's; "
        f"what words weigh was chosen on the last {CHOSEN_ON} of 2Wiki's in the order of seed 42, and on LoCoMo's "
        f"after the first 150, none of which is asked by default. Tokens are those of the whole text, question and "
        f"headings included. "
        f"Embedder {s['embedder']}; entities by {s['entities']}; tokens by {s['tokens']}; reader "
        f"{s['reader'] or 'none'}. A star marks what differs from `both`, the same questions compared in pairs. "
        f"{named}."
    )


def _said(results: MemoryResults) -> str:
    reader = (
        "Token recall is of the reader's answers under the first limit, and of the context itself under the second. "
        "SLM only is the reader with the question alone; the paper doesn't say what its model alone was given. The "
        "paper's own models are Gemma2 and Llama2; here every row is the reader's."
        if results.settings["reader"]
        else "Token recall is of the context itself, no model having answered; the paper's is of a model's answers. "
        "The row of a model alone stays empty: --reader takes one of yours."
    )
    return (
        f"Each strategy under the paper's limit ({LIMIT:,} tokens) and under what its method spent ({SPENT}). "
        f"The paper doesn't say how passages were told, nor how long the dialogues were. {reader} The summary is of "
        f"the turns nearest to what all say, in {SUMMARY_TOKENS} tokens at most."
    )


def draw(results: MemoryResults, file: Path) -> Path:
    """Fact recovery and tokens over thresholds, as SVG.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    using_matplotlib()
    from matplotlib import pyplot as plt

    curves = [c for c in results.curves if c.experiment == run.SWEEP]
    measures: Sequence[str] = (run.RECOVERY, run.TOKENS)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for axis, measure in zip(axes, measures, strict=True):
        for curve, colour in zip([c for c in curves if c.measure == measure], (OURS, "#b7791f"), strict=False):
            axis.plot(curve.x, curve.y, "o-", ms=3, lw=1.3, color=colour, label=f"limit {curve.system}")
        axis.axvline(PEAK, color=THEIRS, lw=4, zorder=0, label="the paper's peak")
        axis.set(title=f"{run.WIKI}: {measure}", xlabel="threshold")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    return save(figure, file)
