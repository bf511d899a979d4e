"""`meve demo`: runs the five phases on the Python language reference."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._render import (
    print_line,
    print_passages,
    print_separator,
    print_table,
    print_trace,
    print_verdict,
    progress_bar,
    table,
    write_output,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meve.cli.language_reference import DemoQuestion
    from meve.pipeline.context import Context

MAX_DROPPED = 3
"""The most candidates dropped for one reason that are shown."""


def demo(
    to: Annotated[
        Path | None,
        typer.Option(
            help="Keep the index in this folder: a new one, or an earlier demo's, which is reused. By default, a "
            "temporary folder that is deleted at the end.",
            metavar="DIR",
        ),
    ] = None,
) -> None:
    """Show the five phases at work.

    Indexes the Python language reference, which is part of CPython, and asks it five questions, one of which it can't
    answer. For each question it prints the context for a prompt, or that there is none, what each phase did, and what
    became of the candidates, with scores and reasons. A table of all five questions follows.

    Takes up to some minutes with the built-in models, without network and keys. Writes only the index (2 MB). With
    --to DIR the index is kept, for "meve ask … --index DIR".
    """
    with TemporaryDirectory(prefix="meve-demo-") as folder:
        _show_demo(to or Path(folder) / "index")


def _show_demo(folder: Path) -> None:
    from meve.cli.language_reference import DEMO_QUESTIONS, EDITION, open_demo_index

    print_line(f"Indexing the language reference of {EDITION} …", "bold")
    with progress_bar() as advance:
        retriever = open_demo_index(folder, partial(advance, "embedding passages"))
    print_line(f"{len(retriever)} passages, embedder {retriever.embedder.name}, verifier {retriever.verifier.name}\n")
    contexts = [retriever.retrieve(question.text) for question in DEMO_QUESTIONS]
    for number, (question, context) in enumerate(zip(DEMO_QUESTIONS, contexts, strict=True), start=1):
        print_answer(number, question, context)
    print_summary(DEMO_QUESTIONS, contexts)


def print_answer(number: int, question: "DemoQuestion", context: "Context") -> None:
    """Print a question with its context, its verdict and its trace."""
    print_separator(f"question {number}", "cyan")
    print_line(question.text, "bold cyan")
    print_line("")
    if context.sufficient:
        print_separator("context for the prompt")
        write_output(f"{context.text}\n")
        print_separator()
    else:
        print_line(explain_abstention(question, context), "bold yellow")
        print_line("")
    print_verdict(context)
    if context.sufficient:
        print_passages(context)
    print_line("")
    print_trace(context, most=MAX_DROPPED)
    print_line("")


def explain_abstention(question: "DemoQuestion", context: "Context") -> str:
    """Return a message for a question without a verified context."""
    message = "No verified context: an application should say that it doesn't know."
    if not question.answerable:
        message += " That is right: the language reference doesn't answer it."
    else:
        message += " That is wrong: the language reference answers it, but the verifier missed it."
    if context.passages:
        ids = ", ".join(each.passage.id for each in context.passages)
        message += f" Not shown: {len(context.passages)} passages that weren't verified ({ids})."
    return message


def print_summary(questions: "Sequence[DemoQuestion]", contexts: "Sequence[Context]") -> None:
    """Print a table of all questions with their results."""
    grid = table(
        "summary", "question", "verified", "tokens", "ms", "sufficient", right=("verified", "tokens", "ms"),
        fold=("question",),
    )  # fmt: skip
    for question, context in zip(questions, contexts, strict=True):
        verified = f"{sum(each.verified for each in context.passages)} of {len(context.passages)}"
        grid.add_row(
            question.text,
            verified if context.passages else "none",
            str(context.tokens),
            f"{context.trace.ms:.0f}",
            "yes" if context.sufficient else "no",
            style="green" if context.sufficient else "yellow",
        )
    print_table(grid)
    print_line("For your own texts: meve index FOLDER --to INDEX, then meve ask QUESTION --index INDEX --trace", "dim")
