"""`meve train-verifier`: trains a verifier and compares it with the one that it replaces."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._labelled_pairs import PairsFile, read_pairs
from meve.cli._render import print_line, print_message, print_table, progress_bar, table
from meve.cli._requirements import require_for_train

if TYPE_CHECKING:
    from meve.training import Verdict


def train_verifier(
    pairs: PairsFile,
    to: Annotated[Path, typer.Option(help="The folder for the model, where a run is resumed.", metavar="DIR")],
    base: Annotated[
        str | None,
        typer.Option(
            help="The model to fine-tune: meve-verifier-1 goes on from the built-in verifier; the bundled "
            "all-MiniLM-L6-v2, an encoder, by default.",
            metavar="NAME",
        ),
    ] = None,
    replaces: Annotated[
        str | None, typer.Option(help="The verifier to compare with; the built-in one by default.", metavar="NAME")
    ] = None,
    negatives: Annotated[int, typer.Option(min=0, help="Irrelevant passages per query; missing ones are mined.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the pairs.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs per training step.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="The highest learning rate.")] = 5e-5,
    max_length: Annotated[int, typer.Option(min=16, help="Maximum number of tokens of a pair.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order, the split and the intervals.")] = 42,
) -> None:
    """Train a cross-encoder on labelled pairs.

    Some queries are held out, to calibrate the model and to compare it with the verifier that it would replace. An
    interrupted run is resumed.
    """
    require_for_train(base, replaces)
    from meve.components.embedders.minilm import minilm_folder
    from meve.components.verifiers import load_verifier
    from meve.training import TrainingConfig, build_verifier

    labelled = read_pairs(pairs)
    old = load_verifier(replaces)
    config = TrainingConfig(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, max_length=max_length, seed=seed
    )
    with progress_bar() as advance:
        verdict = build_verifier(
            labelled,
            to,
            base=minilm_folder() if base is None else base,
            replaces=old,
            config=config,
            negatives=negatives,
            fitted_on=pairs.name,
            progress=advance,
        )
    print_comparison(verdict, old.name)
    print_line(f"saved: {to}; use it with --verifier {to}")


def print_comparison(verdict: "Verdict", old: str) -> None:
    """Print both verifiers' figures, and which is better."""
    grid = table("on held-out queries", "verifier", "AUC", "calibration error", right=("AUC",))
    for name, figures in (("the new one", verdict.new), (old, verdict.old)):
        auc = f"{figures.auc.value:.3f} [{figures.auc.low:.3f}, {figures.auc.high:.3f}]"
        grid.add_row(name, auc, f"{figures.error:.3f}")
    print_table(grid)
    gain = f"{verdict.gain.value:+.3f} [{verdict.gain.low:+.3f}, {verdict.gain.high:+.3f}]"
    if verdict.better:
        print_line(f"the new one is better: AUC {gain}")
    elif verdict.gain.high < 0:
        print_message("warning", f"the new one is worse than {old}: AUC {gain}; keep the old one, or label more pairs")
    else:
        print_message("warning", f"not significantly better than {old}: AUC {gain}; label more pairs")
