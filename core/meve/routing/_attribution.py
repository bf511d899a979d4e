"""Finds whom each sentence of a memory is about, by who told it and whether it says `I` or `you`."""

import re
from collections.abc import Sequence

from meve.components._sentence_splitter import split_sentences
from meve.conversation._speakers import find_named
from meve.types import Candidate

_SPEAKER = re.compile(r"([^\s:][^:\n]{0,29}): ")
_FIRST = re.compile(r"\b(?:i|i['\u2019](?:m|ve|d|ll)|my|me|mine|myself|we(?:['\u2019](?:re|ve|d|ll))?|us|our|ours)\b")
_SECOND = re.compile(r"\b(?:you(?:['\u2019](?:re|ve|d|ll))?|your|yours|yourself|u|ur)\b")


def find_speaker(candidate: Candidate) -> str:
    """Return the name with which a memory begins, as in `Ana: I moved.`; empty if it begins with none."""
    match = _SPEAKER.match(candidate.passage.text)
    return match[1] if match else ""


def find_person(question: str, speakers: Sequence[str]) -> str:
    """Return the one of the speakers whom a question names alone; empty if it names none or several."""
    named = {s for s, is_named in zip(speakers, find_named(question, speakers), strict=True) if is_named}
    return named.pop() if len(named) == 1 else ""


def split_by_person(candidate: Candidate, person: str) -> tuple[str, str]:
    """Return what a memory tells about a person, and what it tells about others; what is asked belongs to neither.

    Without a person, all belongs to the first.
    """
    if not person:
        return candidate.passage.text, ""
    speaker = find_speaker(candidate)
    body = candidate.passage.text[len(speaker) + 2 :] if speaker else candidate.passage.text
    own: list[str] = []
    others: list[str] = []
    for sentence in split_sentences(body):
        is_about = _is_about(sentence, person, is_teller=speaker == person)
        if is_about is not None:
            (own if is_about else others).append(sentence)
    return " ".join(own), " ".join(others)


def _is_about(sentence: str, person: str, *, is_teller: bool) -> bool | None:
    """Return whether a sentence is about a person; None if it asks."""
    lowered = sentence.lower()
    says_i, says_you = _FIRST.search(lowered) is not None, _SECOND.search(lowered) is not None
    asks = sentence.rstrip().endswith("?")
    if is_teller:
        if says_you and (asks or not says_i):
            return False
        return None if asks else True
    if asks:
        return None
    if says_i:
        return False
    return says_you or person.lower() in lowered
