"""The `meve` application with its commands."""

import os
from typing import Annotated

import typer

from meve._version import __version__
from meve.cli._error_handling import Command, escape_unencodable_output, handle_errors
from meve.cli._render import write_output
from meve.cli.ask import ask
from meve.cli.bench import bench_app
from meve.cli.calibrate import calibrate_command
from meve.cli.demo import demo
from meve.cli.index import index
from meve.cli.info import info
from meve.cli.kernel import kernel_app
from meve.cli.memory import memory_app
from meve.cli.serve import serve_app
from meve.cli.train_verifier import train_verifier

app = typer.Typer(
    name="meve",
    help="Verified retrieval and governed memory for language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("index", cls=Command)(handle_errors(index))
app.command("ask", cls=Command)(handle_errors(ask))
app.command("calibrate")(handle_errors(calibrate_command))
app.command("train-verifier")(handle_errors(train_verifier))
app.command("info")(handle_errors(info))
app.command("demo")(handle_errors(demo))
app.add_typer(bench_app)
app.add_typer(memory_app)
app.add_typer(kernel_app)
app.add_typer(serve_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        write_output(f"meve {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the `meve` command."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # progress bars of model libraries would mix with ours
    escape_unencodable_output()
    app()
