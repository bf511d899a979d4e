"""Find who names whom in a conversation, as evidence of which turn answers which."""

import re
from collections.abc import Sequence

import numpy as np

from meve.types import FloatArray

_ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai", "developer", "function"})
"""Speakers that are roles and no names."""


def find_named(text: str, speakers: Sequence[str]) -> FloatArray:
    """Return for each speaker 1 if the text names them, else 0; shape (n,).

    >>> find_named("Ana: did you reboot?", ["Ana", "Bo", ""]).tolist()
    [1.0, 0.0, 0.0]
    """
    folded = text.casefold()
    named = {speaker: _names(folded, speaker) for speaker in set(speakers)}
    return np.array([named[speaker] for speaker in speakers], dtype=np.float32)


def find_naming(texts: Sequence[str], speaker: str) -> FloatArray:
    """Return for each text 1 if it names the speaker, else 0; shape (n,)."""
    return np.array([_names(text.casefold(), speaker) for text in texts], dtype=np.float32)


def find_own(speakers: Sequence[str], speaker: str) -> FloatArray:
    """Return for each speaker 1 if it is this one, else 0; all 0 for an unknown speaker; shape (n,)."""
    folded = speaker.casefold()
    return np.array([bool(folded) and each.casefold() == folded for each in speakers], dtype=np.float32)


def _names(folded: str, speaker: str) -> bool:
    name = speaker.strip().casefold()
    if len(name) < 2 or name in _ROLES or name not in folded:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None
