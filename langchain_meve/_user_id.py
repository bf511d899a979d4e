"""Whose memory is meant: told by the program, never by a model; without a user nothing is read or written."""

from collections.abc import Mapping
from typing import Any

from meve.errors import ValidationError
from meve.memory.records import UserId, user_key

NOBODY = (
    "whose memory is meant? No user_id was given: put it into the agent's context (context={'user_id': …}), or into "
    "config={'configurable': {'user_id': …}}"
)


def user_of(bound: UserId | None, context: object, config: Mapping[str, Any]) -> UserId:
    """The user that a call is for: the bound one, that of the runtime's context, that of the configuration.

    Args:
        bound: the one user that something was made for; None for many.
        context: a mapping, or an object with attributes; None for none.
        config: LangChain's.

    Raises:
        ValidationError: no user, one that can't be, or two different ones.
    """
    found = context.get("user_id") if isinstance(context, Mapping) else getattr(context, "user_id", None)
    configured = (config.get("configurable") or {}).get("user_id")
    given = {"bound": bound, "context": found, "configurable": configured}
    named: dict[str, UserId] = {where: user for where, user in given.items() if user is not None}
    if not named:
        raise ValidationError(NOBODY)
    if len({user_key(user) for user in named.values()}) > 1:
        told = ", ".join(f"{where}: {user!r:.40}" for where, user in named.items())
        raise ValidationError(f"two users are named ({told}): name one, since one mustn't read what is another's")
    return next(iter(named.values()))


def session_of(config: Mapping[str, Any]) -> str | None:
    """The conversation that a call is part of: LangGraph's thread."""
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None or not str(thread).strip() else str(thread)
