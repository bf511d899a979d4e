"""A stored message, and the options for reading a page of messages."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict


@dataclass(slots=True)
class Message:
    """A message of a session. It is a copy: changing it changes nothing in the store."""

    id: str
    session_id: str
    value: dict[str, Any]
    place: int
    """A number that rises with each added message, and never changes."""
    archived: bool
    added_at: datetime
    expires_at: datetime | None
    """The moment of expiry: from then on it is never returned. None means that it doesn't expire."""


class PageOptions(TypedDict, total=False):
    """The options for reading messages of a session."""

    archived: bool | None
    """Whether to return archived messages or the others; None for both. False by default."""
    limit: int | None
    """The maximum number of messages; None for all."""
    offset: int | None
    """The number of messages to skip; None for 0."""
    after: int | None
    """Only messages of a place above this one."""
    before: int | None
    """Only messages of a place below this one."""
    newest: bool
    """Whether limit and offset count from the newest message back."""
