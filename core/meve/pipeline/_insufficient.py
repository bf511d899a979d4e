"""Explain why a context isn't sufficient."""

from collections.abc import Mapping, Sequence
from typing import Any, Never

from meve.errors import InsufficientContextError
from meve.pipeline._run_state import Run
from meve.pipeline.context import Context
from meve.types import Candidate


def explain_insufficient(run: Run, packed: Sequence[Candidate], account: Mapping[str, Any], *, is_filled: bool) -> str:
    """Return why a packed context isn't sufficient, in one sentence.

    Args:
        run: the retrieval.
        packed: the candidates for which the estimate was made.
        account: the estimate and its threshold; empty without an estimator.
        is_filled: whether the context holds a passage in the end.
    """
    config = run.config
    if not run.includes("verify"):
        return f"mode {config.mode!r} verifies no passage"
    if any(c.verified for c in packed):
        estimate, least = _format_apart(account["estimate"], account["threshold"])
        return f"the estimate {estimate} is below its threshold {least}"
    if any(c.verified for c in run.judged.values()):
        return f"no verified passage fits into max_tokens={config.max_tokens}"
    scores = [c.score for c in run.judged.values() if c.score is not None]
    if not scores:
        found = "no passage that matches the filter was found" if run.query.where else "no passage was found"
        return "no passage was scored" if run.retrieved else found
    passes = account.get("estimate", 0.0) >= account.get("threshold", 1.0)
    also = "; without one, an estimate above its threshold doesn't count" if passes else ""
    if not packed and "estimate" in account:
        before = "the estimate is 0, since no passage was kept before the context was filled"
        also = f"; {before if is_filled else 'the estimate of an empty context is 0'}"
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
