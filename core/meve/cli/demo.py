"""`meve demo`: the five phases at work on the Python language reference."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli.render import out, progress_bar, say, show_trace, show_verdict, write

if TYPE_CHECKING:
    from meve.context import Context
    from meve.demo import Question


def demo(
    to: Annotated[
        Path | None, typer.Option("--to", help="Keep the index in this folder; else it is thrown away.", metavar="DIR")
    ] = None,
) -> None:
    """Show the five phases at work.

    Indexes the Python language reference, and asks it five questions, one of which it can't answer.
    """
    if to is not None:
        _run(to)
        return
    with TemporaryDirectory(prefix="meve-demo-") as folder:
        _run(Path(folder) / "index")


def _run(folder: Path) -> None:
    from meve.demo import EDITION, QUESTIONS, demo_retriever

    say(f"Indexing the language reference of {EDITION} …", "bold")
    with progress_bar() as advance:
        retriever = demo_retriever(folder, lambda done, total: advance("embedding passages", done, total))
    say(f"{len(retriever)} passages, embedder {retriever.embedder.name}, verifier {retriever.verifier.name}\n")
    for number, question in enumerate(QUESTIONS, start=1):
        show(number, question, retriever.retrieve(question.text))


def show(number: int, question: "Question", context: "Context") -> None:
    """Print a question, what may enter a prompt for it, and why."""
    out().rule(f"question {number}", style="cyan", align="left")
    say(question.text, "bold cyan")
    say("")
    if context.sufficient:
        write(f"{context.text}\n\n")
    elif context.passages:
        ids = ", ".join(each.passage.id for each in context.passages)
        say(
            f"(left out here: {len(context.passages)} unverified passages that merely share words with it: {ids})\n",
            "dim",
        )
    show_verdict(context)
    if not context.sufficient and not question.answered:
        say("That is right: the language reference says nothing of it. An application abstains here.", "yellow")
    say("")
    show_trace(context)
    say("")
