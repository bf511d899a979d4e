"""`meve demo`: the five phases at work on the Python language reference."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._render import progress_bar, rule, say, show_table, show_trace, show_verdict, table, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meve.cli._language_reference import Question
    from meve.pipeline.context import Context

MOST = 3
"""So many candidates that were dropped for one reason are shown."""


def demo(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Keep the index in this folder: a new one, or that of an earlier demo, which is not made again. "
            "Otherwise it lies in a temporary folder, and goes at the end.",
            metavar="DIR",
        ),
    ] = None,
) -> None:
    """Show the five phases at work.

    Indexes the Python language reference, which CPython carries, and asks it five questions, one of which it can't
    answer. Of each you see the context that would enter a prompt, or that there is none; what each phase did; and what
    became of the candidates, with scores and reasons. A table of all five ends it.

    Takes some seconds, with the models that ship; needs no network and no key. Writes the index (2 MB), and nothing
    else. "meve ask … --index DIR" goes on with the one that --to kept.
    """
    if to is not None:
        _run(to)
        return
    with TemporaryDirectory(prefix="meve-demo-") as folder:
        _run(Path(folder) / "index")


def _run(folder: Path) -> None:
    from meve.cli._language_reference import EDITION, QUESTIONS, demo_retriever

    say(f"Indexing the language reference of {EDITION} …", "bold")
    with progress_bar() as advance:
        retriever = demo_retriever(folder, lambda done, total: advance("embedding passages", done, total))
    say(f"{len(retriever)} passages, embedder {retriever.embedder.name}, verifier {retriever.verifier.name}\n")
    contexts = [retriever.retrieve(question.text) for question in QUESTIONS]
    for number, (question, context) in enumerate(zip(QUESTIONS, contexts, strict=True), start=1):
        show(number, question, context)
    show_summary(QUESTIONS, contexts)


def show(number: int, question: "Question", context: "Context") -> None:
    """Print a question, what may enter a prompt for it, and why."""
    rule(f"question {number}", "cyan")
    say(question.text, "bold cyan")
    say("")
    if context.sufficient:
        rule("context for the prompt")
        write(f"{context.text}\n")
        rule()
    else:
        say(abstention(question, context), "bold yellow")
        say("")
    show_verdict(context)
    say("")
    show_trace(context, most=MOST)
    say("")


def abstention(question: "Question", context: "Context") -> str:
    """What is said where a question has no verified context."""
    told = "No verified context: an application says that it doesn't know."
    if not question.answered:
        told += " That is right: the language reference says nothing of it."
    else:
        told += " That is wrong: the language reference answers it, and the verifier didn't see that."
    if context.passages:
        ids = ", ".join(each.passage.id for each in context.passages)
        told += f" Not shown: {len(context.passages)} passages that weren't verified ({ids})."
    return told


def show_summary(questions: "Sequence[Question]", contexts: "Sequence[Context]") -> None:
    """Print all questions, and what came of them."""
    made = table(
        "summary", "question", "verified", "tokens", "ms", "sufficient", right=("verified", "tokens", "ms"),
        fold=("question",),
    )  # fmt: skip
    for question, context in zip(questions, contexts, strict=True):
        verified = f"{sum(each.verified for each in context.passages)} of {len(context.passages)}"
        made.add_row(
            question.text,
            verified if context.passages else "none",
            str(context.tokens),
            f"{context.trace.ms:.0f}",
            "yes" if context.sufficient else "no",
            style="green" if context.sufficient else "yellow",
        )
    show_table(made)
    say("The same of your own texts: meve index FOLDER --to INDEX, then meve ask QUESTION --index INDEX --trace", "dim")
