"""How long items live: LangGraph counts minutes; lengths of time and moments are understood too."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from langgraph.store.base import TTLConfig

from meve.errors import ConfigurationError, ValidationError

Ttl: TypeAlias = float | timedelta | datetime | None
"""Minutes, a length of time, the moment at which it ends, or None: as long as its class lives."""


def life(ttl: Ttl) -> dict[str, Any]:
    """How long, or until when, as `memory.items` is told.

    Raises:
        ValidationError: neither, or not longer than nothing.

    >>> life(1.5)
    {'ttl': datetime.timedelta(seconds=90)}
    """
    if ttl is None:
        return {}
    if isinstance(ttl, datetime):
        return {"expires_at": ttl}
    length = ttl
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl not in (math.inf, -math.inf) and ttl == ttl:
        try:
            length = timedelta(minutes=ttl)
        except OverflowError:
            length = timedelta.max if ttl > 0 else timedelta(0)
    if not isinstance(length, timedelta) or length <= timedelta(0):
        raise ValidationError(f"ttl is {ttl!r:.80}: give minutes, a timedelta (longer than nothing), or a datetime")
    return {"ttl": length}


def configured(ttl: Mapping[str, Any] | None) -> TTLConfig:
    """LangGraph's settings, with its defaults; what is expired is left out of every read, whatever they say.

    Raises:
        ConfigurationError: a setting that isn't known, or can't be.
    """
    given = dict(ttl or {})
    unknown = given.keys() - {"refresh_on_read", "default_ttl", "omit_expired"}
    if unknown:
        raise ConfigurationError(
            f"ttl has {', '.join(sorted(map(str, unknown)))}: known are refresh_on_read, default_ttl and omit_expired. "
            "Nothing needs to be swept for what is expired not to be read; memory.maintain_every(seconds) erases it"
        )
    if given.get("omit_expired", True) is not True:
        raise ConfigurationError("ttl has omit_expired=False: what is expired is never handed out; leave it out")
    refresh = given.get("refresh_on_read", True)
    if not isinstance(refresh, bool):
        raise ConfigurationError(f"ttl has refresh_on_read={refresh!r:.40}: give True or False")
    default = given.get("default_ttl")
    if isinstance(default, datetime):
        raise ConfigurationError(f"ttl has default_ttl={default}: give minutes or a timedelta")
    life(default)
    return TTLConfig(refresh_on_read=refresh, default_ttl=default, omit_expired=True)
