"""`meve train-verifier`: a verifier of one's own, and whether it beats what it replaces."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._labelled_pairs import read_pairs
from meve.cli._render import complain, progress_bar, say, show_table, table
from meve.cli._requirements import train_needs

if TYPE_CHECKING:
    from meve.training import Verdict


def train_verifier(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS.jsonl", help='Rows {"query": …, "passage": …, "relevant": true or false}.')
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder for the model, and to go on in.", metavar="DIR")],
    base: Annotated[
        str | None,
        typer.Option(
            "--base", help="The model to begin with; the bundled all-MiniLM-L6-v2 by default.", metavar="NAME"
        ),
    ] = None,
    replaces: Annotated[
        str | None,
        typer.Option("--replaces", help="The verifier to beat; by default the one that ships.", metavar="NAME"),
    ] = None,
    negatives: Annotated[
        int, typer.Option("--negatives", min=0, help="A query's passages that don't answer; those missing are mined.")
    ] = 3,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the pairs.")] = 2,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Pairs learned from at once.")] = 32,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="At its highest.")] = 5e-5,
    max_length: Annotated[int, typer.Option("--max-length", min=16, help="Tokens of a pair that are read.")] = 256,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the order, the split and the intervals.")] = 42,
) -> None:
    """Train a cross-encoder on labelled pairs of your own.

    A part of the queries is set aside, to calibrate it and to hold it against the verifier that it would replace. Run
    again after an interruption, it goes on.
    """
    train_needs(base, replaces)
    from meve.components.embedders.minilm import minilm_folder
    from meve.components.verifiers import load_verifier
    from meve.training import TrainingConfig, build_verifier

    listed = read_pairs(pairs)
    for complaint in listed.complaints:
        complain("warning", f"{pairs}: {complaint}")
    old = load_verifier(replaces)
    config = TrainingConfig(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, max_length=max_length, seed=seed
    )
    with progress_bar() as advance:
        verdict = build_verifier(
            listed.pairs,
            to,
            base=minilm_folder() if base is None else base,
            replaces=old,
            config=config,
            negatives=negatives,
            fitted_on=pairs.name,
            progress=advance,
        )
    show_verdict(verdict, old.name)
    say(f"saved: {to}; use it with --verifier {to}")


def show_verdict(verdict: "Verdict", old: str) -> None:
    """Print both, and which is better."""
    made = table("on queries kept out of the training", "verifier", "AUC", "calibration error", right=("AUC",))
    for name, found in (("the new one", verdict.new), (old, verdict.old)):
        auc = f"{found.auc.value:.3f} [{found.auc.low:.3f}, {found.auc.high:.3f}]"
        made.add_row(name, auc, f"{found.error:.3f}")
    show_table(made)
    gain = f"{verdict.gain.value:+.3f} [{verdict.gain.low:+.3f}, {verdict.gain.high:+.3f}]"
    if verdict.better:
        say(f"the new one is better: AUC {gain}")
    elif verdict.gain.high < 0:
        complain("warning", f"the new one is worse than {old}: AUC {gain}; keep the old one, or label more pairs")
    else:
        complain("warning", f"not surely better than {old}: AUC {gain}; label more pairs to know")
