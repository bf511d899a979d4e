"""Resolve the user and session of a call from the runtime context and the configuration, never from a model."""

import sys
from collections.abc import Mapping
from typing import Any

from meve.errors import ValidationError
from meve.memory.records import UserId, user_key

MISSING_USER = (
    "user_id is missing: pass it in the agent's context (context={'user_id': …}) or in "
    "config={'configurable': {'user_id': …}}"
)


def resolve_user_id(bound: UserId | None, context: object, config: Mapping[str, Any]) -> UserId:
    """Return the user of a call: the bound one, that of the runtime context, or that of the configuration.

    Args:
        bound: the only user that the caller serves; None for any.
        context: the runtime context: a mapping, an object with attributes, or None.
        config: LangChain's configuration.

    Raises:
        ValidationError: no user, an invalid one, or two different ones.
    """
    user_id = find_user_id(bound, context, config)
    if user_id is None:
        raise ValidationError(MISSING_USER)
    return user_id


def find_user_id(bound: UserId | None, context: object, config: Mapping[str, Any]) -> UserId | None:
    """Return the user of a call, as `resolve_user_id` does; None if there is none.

    Raises:
        ValidationError: an invalid user, or two different ones.
    """
    from_context = context.get("user_id") if isinstance(context, Mapping) else getattr(context, "user_id", None)
    from_config = (config.get("configurable") or {}).get("user_id")
    sources = {"bound": bound, "context": from_context, "configurable": from_config}
    users: dict[str, UserId] = {source: user for source, user in sources.items() if user is not None}
    if len({user_key(user) for user in users.values()}) > 1:
        listed = ", ".join(f"{source}: {user!r:.40}" for source, user in users.items())
        raise ValidationError(f"user_id must be given once, got different ones ({listed}): pass only one")
    return next(iter(users.values()), None)


def runtime_context() -> object:
    """Return the runtime context of the agent that makes the call; None outside of an agent."""
    runtime = sys.modules.get("langgraph.runtime")
    if runtime is None:
        return None
    try:
        return getattr(runtime.get_runtime(), "context", None)
    except (RuntimeError, KeyError):
        return None


def resolve_session_id(config: Mapping[str, Any]) -> str | None:
    """Return the session of a call: LangGraph's thread id, or None."""
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None or not str(thread).strip() else str(thread)
