"""Which commands are there?"""

import os
from typing import Annotated

import typer

from meve._version import __version__
from meve.cli._error_handling import any_text_can_be_written, guarded
from meve.cli._render import write
from meve.cli.ask import ask
from meve.cli.bench import bench
from meve.cli.calibrate import calibrate
from meve.cli.demo import demo
from meve.cli.index import index
from meve.cli.info import info
from meve.cli.memory import memory
from meve.cli.train_verifier import train_verifier

app = typer.Typer(
    name="meve",
    help="Decides what text may enter a language model's prompt, and accounts for every decision.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (index, ask, calibrate, train_verifier, info, demo):
    app.command()(guarded(command))
app.add_typer(bench)
app.add_typer(memory)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"meve {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    """Decides what text may enter a language model's prompt, and accounts for every decision."""


def main() -> None:
    """The entry point of the `meve` command."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # model libraries draw bars of their own, in the midst of ours
    any_text_can_be_written()
    app()
