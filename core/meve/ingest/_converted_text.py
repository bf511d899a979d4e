"""Defines the text that is made from a file which isn't plain text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedText:
    """The text made from a file."""

    text: str
    title: str = ""
    """The title of the page or mail; may be empty."""
    is_markdown: bool = True
    """It is Markdown; otherwise plain text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of each passage, such as the headers of a mail."""
    complaints: tuple[str, ...] = ()
    """Sentences on what was left out, such as attachments."""
