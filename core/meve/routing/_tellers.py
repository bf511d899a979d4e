"""Prefers memories told by the one whom a question is about: a named speaker, the user, or the assistant."""

import re
from collections.abc import Sequence
from dataclasses import replace

from meve.conversation._speakers import find_named
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.tellers import find_teller
from meve.types import Candidate

BONUS = 0.15
"""Added to the score of a preferred memory, which is at most about 1. Chosen on half of LoCoMo and LongMemEval."""
_SPEAKER = re.compile(r"([^\s:][^:\n]{0,29}): ")


def prefer_teller(question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with a bonus for those told by whom the question is about, in the same order.

    People mostly tell about themselves. A question that names one of two speakers is about that one. One that says `I`
    is about the user, and one about what `you said` about the assistant.
    """
    speakers = [_find_speaker(candidate) for candidate in candidates]
    named = {s for s, is_named in zip(speakers, find_named(question, speakers), strict=True) if is_named}
    if len(named) == 1:
        preferred = [speaker in named for speaker in speakers]
    elif named or not (wanted := find_teller(question)):
        return list(candidates)
    else:
        preferred = [_get_source(candidate) == wanted for candidate in candidates]
    return [
        replace(candidate, score=(candidate.score or 0.0) + BONUS) if is_preferred else candidate
        for candidate, is_preferred in zip(candidates, preferred, strict=True)
    ]


def choose_told(question: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates told by the user for `I`, by the assistant for what `you said`, and all for others."""
    wanted = find_teller(question)
    return [candidate for candidate in candidates if wanted in ("", _get_source(candidate))]


def _find_speaker(candidate: Candidate) -> str:
    match = _SPEAKER.match(candidate.passage.text)
    return match[1] if match else ""


def _get_source(candidate: Candidate) -> str:
    return candidate.passage.record.source if isinstance(candidate.passage, MemoryPassage) else ""
