"""Joins a question that needs the one before it, such as `And my brother?`."""

import re
from collections.abc import Sequence

from meve.routing._topic import topic_stems

_OPENING = re.compile(
    r"\W*(?:and|or|but|also|then|(?:and |so )?(?:what|how) about|what else|who else|where else|anything else|why"
    r"|since when|until when|how so|which one|when(?= exactly\W*$|\W*$))\b",
    re.IGNORECASE,
)
_REFERRING = re.compile(
    r"\b(?:he|him|his|she|hers?|it|its|they|them|their|that|those|this|these|there|then|one|ones|same|other)\b",
    re.IGNORECASE,
)
_MOST_WORDS, _MOST_TOPIC = 12, 1
"""The most words of a follow-up question, and the most distinctive ones of one that refers to another one."""
_MOST = 500
"""The last characters of the question before that are joined."""


def join_follow_up(messages: Sequence[str]) -> str:
    """Return the last message of a user, after the one before it if it can't be understood alone.

    >>> join_follow_up(["Where does my sister work?", "And my brother?"])
    'Where does my sister work? And my brother?'
    >>> join_follow_up(["Where does my sister work?", "What is my name?"])
    'What is my name?'
    """
    question = ""
    for message in messages:
        question = f"{question[-_MOST:]} {message}".strip() if question and _is_follow_up(message) else message
    return question


def _is_follow_up(message: str) -> bool:
    if len(message) > _MOST or len(message.split()) > _MOST_WORDS or "?" not in message:
        return False
    refers = _REFERRING.search(message) is not None and len(topic_stems(message)) <= _MOST_TOPIC
    return refers or _OPENING.match(message) is not None
