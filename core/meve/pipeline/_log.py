"""Log what a retrieval did: counts and times, and ids on the level DEBUG; never text of questions or passages."""

import logging
from collections import Counter

from meve.pipeline.context import Context

SLOW = 2.0
"""The seconds from which a phase is logged as slow."""

logger = logging.getLogger("meve.retrieval")


def log_context(context: Context) -> None:
    """Log a retrieval: slow phases as warnings, its result, fallbacks and what was skipped as information."""
    trace = context.trace
    if not logger.isEnabledFor(logging.WARNING):
        return
    for phase in trace.phases:
        if phase.ms >= 1000 * SLOW:
            logger.warning(
                "phase %s took %.1f s; %d candidates before, %d after",
                phase.name, phase.ms / 1000, phase.received, phase.returned,
            )  # fmt: skip
    if not logger.isEnabledFor(logging.INFO):
        return
    verified = sum(passage.verified for passage in context.passages)
    logger.info(
        "%d passages, %d verified, of %d candidates; %d of %d tokens; %s; %.0f ms",
        len(context.passages), verified, len(trace.candidates), context.tokens, context.max_tokens,
        "sufficient" if context.sufficient else "not sufficient", trace.ms,
    )  # fmt: skip
    for phase in trace.phases:
        if phase.name in ("fallback", "fill") and not phase.skipped:
            logger.info("%s: %d candidates before, %d after", phase.name, phase.received, phase.returned)
    if left_out := Counter(c.reason.partition(":")[0] for c in trace.candidates if c.fate == "dropped"):
        logger.info("left out: %s", ", ".join(f"{n} {reason}" for reason, n in sorted(left_out.items())))
    for candidate in trace.candidates if logger.isEnabledFor(logging.DEBUG) else ():
        logger.debug("%s %r in %s: %s", candidate.fate, candidate.id, candidate.phase, candidate.reason)
