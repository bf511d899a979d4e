"""Explain why a context isn't sufficient."""

from collections.abc import Mapping
from typing import Any, Never

from meve.errors import InsufficientContextError
from meve.pipeline._run_state import Run
from meve.pipeline.context import Context


def explain_insufficient(run: Run, account: Mapping[str, Any]) -> str:
    """Return why a packed context isn't sufficient, in one sentence.

    Args:
        run: the retrieval, whose candidates are the packed ones.
        account: the estimate and its threshold; empty without an estimator.
    """
    config = run.config
    if not run.includes("verify"):
        return f"mode {config.mode!r} verifies no passage"
    if any(c.verified for c in run.candidates):
        estimate, least = _format_apart(account["estimate"], account["threshold"])
        return f"the estimate {estimate} is below its threshold {least}"
    if any(c.verified for c in run.judged.values()):
        return f"no verified passage fits into max_tokens={config.max_tokens}"
    scores = [c.score for c in run.judged.values() if c.score is not None]
    if not scores:
        return "no passage was scored" if run.retrieved else "no passage was found"
    passes = account.get("estimate", 0.0) >= account.get("threshold", 1.0)
    also = "; without one, an estimate above its threshold doesn't count" if passes else ""
    if not run.candidates and "estimate" in account:
        also = "; the estimate of an empty context is 0"
    best, _ = _format_apart(max(scores), config.threshold)
    return f"no passage reaches the threshold {config.threshold:g}: the best probability is {best}{also}"


def _format_apart(lower: float, upper: float) -> tuple[str, str]:
    """Return two different numbers with as many decimals as tell them apart, at least two and at most six.

    >>> _format_apart(0.409, 0.41)
    ('0.409', '0.410')
    """
    pairs = [(f"{lower:.{n}f}", f"{upper:.{n}f}") for n in range(2, 7)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def raise_insufficient(context: Context) -> Never:
    """Raise the error of a context that isn't sufficient.

    Raises:
        InsufficientContextError: always.
    """
    raise InsufficientContextError(
        f"the context isn't sufficient: {context.trace.sufficiency['reason']}; read the error's `context`, or set "
        "when_insufficient to 'return', 'verified_only' or 'abstain'",
        context,
    )
