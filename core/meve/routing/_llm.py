"""Calls of the language model, within a time limit."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from meve.errors import ModelError, wrap_errors
from meve.ports import LanguageModel


def ask(llm: LanguageModel, prompt: str, *, seconds: float, doing: str) -> str:
    """Return the model's answer to a prompt, stripped.

    A call that takes too long goes on in its thread, since it can't be stopped, and its answer is dropped.

    Args:
        llm: the model.
        prompt: the prompt.
        seconds: the time limit.
        doing: what the call is for, for the error.

    Raises:
        ModelError: the model failed, took too long, or returned no text.
    """
    outcome: list[Any] = []
    context = contextvars.copy_context()  # callbacks of frameworks read it

    def run() -> None:
        try:
            outcome.append((context.run(llm, prompt), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, name="meve-llm", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise ModelError(
            f"{doing}: the language model gave no answer in {seconds:g} s: raise llm_timeout, or see to it"
        )
    answer, error = outcome[0]
    return _check(answer, error, doing)


def _check(answer: object, error: BaseException | None, doing: str) -> str:
    with wrap_errors(ModelError, f"{doing} with the language model"):
        if error is not None:
            raise error
    if not isinstance(answer, str):
        raise ModelError(f"{doing}: the language model must return text, got {type(answer).__name__}")
    return answer.strip()


def try_to_ask(call: Callable[[], str]) -> tuple[str, str]:
    """Return the answer of a call and an empty text, or an empty answer and why it failed."""
    try:
        return call(), ""
    except ModelError as error:
        return "", str(error)
