"""Parse the TTL of items, in LangGraph's minutes, as a timedelta or as a datetime, and the store's TTL settings."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from langgraph.store.base import TTLConfig

from meve.errors import ConfigurationError, ValidationError

Ttl: TypeAlias = float | timedelta | datetime | None
"""Minutes, a duration, a time of expiry, or None for the TTL of the policy class."""


def ttl_options(ttl: Ttl) -> dict[str, Any]:
    """Return a TTL as the `ttl` or `expires_at` argument of `memory.items`.

    Raises:
        ValidationError: `ttl` is of another type, or not positive.

    >>> ttl_options(1.5)
    {'ttl': datetime.timedelta(seconds=90)}
    """
    if ttl is None:
        return {}
    if isinstance(ttl, datetime):
        return {"expires_at": ttl}
    duration = ttl
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl not in (math.inf, -math.inf) and ttl == ttl:
        try:
            duration = timedelta(minutes=ttl)
        except OverflowError:
            duration = timedelta.max if ttl > 0 else timedelta(0)
    if not isinstance(duration, timedelta) or duration <= timedelta(0):
        raise ValidationError(f"ttl must be positive minutes, a positive timedelta or a datetime, got {ttl!r:.80}")
    return {"ttl": duration}


def parse_ttl_config(ttl: Mapping[str, Any] | None) -> TTLConfig:
    """Return LangGraph's TTL settings with their defaults; no read returns expired items, so `omit_expired` is fixed.

    Raises:
        ConfigurationError: an unknown setting or an invalid value.
    """
    settings = dict(ttl or {})
    unknown = settings.keys() - {"refresh_on_read", "default_ttl", "omit_expired"}
    if unknown:
        raise ConfigurationError(
            f"ttl may hold refresh_on_read, default_ttl and omit_expired, got {', '.join(sorted(map(str, unknown)))}: "
            "reads leave out expired items without a sweep, and memory.maintain_every(seconds) erases them"
        )
    if settings.get("omit_expired", True) is not True:
        raise ConfigurationError("ttl['omit_expired'] must be True: expired items are never returned; leave it out")
    refresh = settings.get("refresh_on_read", True)
    if not isinstance(refresh, bool):
        raise ConfigurationError(f"ttl['refresh_on_read'] must be True or False, got {refresh!r:.40}")
    default = settings.get("default_ttl")
    if isinstance(default, datetime):
        raise ConfigurationError(f"ttl['default_ttl'] must be minutes or a timedelta, got {default}")
    ttl_options(default)
    return TTLConfig(refresh_on_read=refresh, default_ttl=default, omit_expired=True)
