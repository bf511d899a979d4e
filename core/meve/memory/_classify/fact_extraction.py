"""Extracts the facts that a turn of a conversation states, by rules for English."""

import re

from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import content_words, words

_PLEASANTRIES = """
hi hello hey dear thanks thank ok okay yes yeah no sure great good fine bye goodbye please sorry cool nice perfect well
morning evening afternoon day night welcome lot much right alright awesome got understood wow oh
"""
_POLITE_WORDS = frozenset(_PLEASANTRIES.split())
_POINTERS = """
he she it they this that these those his her hers its their theirs him them there and but so because which then also
both neither either such
"""
_BACK_REFERENCES = frozenset(_POINTERS.split())
_PLEASE = r"(?:(?:please|(?:can|could|would|will)\s+you)\s+)*"
_REMEMBER = re.compile(
    rf"{_PLEASE}(?:remember|note|keep\s+in\s+mind|(?:don't|do\s+not|never)\s+forget)\b(?!\s+(?:when|how|what|where|who|why)\b)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(?:please\s+)?(?:(?:can|could|would|will|do)\s+you\b|(?:tell|show|give|help|remind|let|make)\s+(?:me|us)\b|let's\b"
    r"|(?:explain|write|list|find|search|summari[sz]e|translate|describe|forget|delete|compare|suggest|recommend)\b"
    r"|i\s+want\s+you\s+to\b|i\s+wonder\b"
    r"|(?:what|how|why|who|where|when|which)(?:'s|\s+(?:is|are|was|were|do|does|did|can|could|should|would|will|many|much"
    r"|often|long|about|to))\b)",
    re.IGNORECASE,
)
_QUESTION_MARKS = "?\uff1f\u061f\u037e"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def extract_statements(text: str) -> list[str]:
    """Return the statements in a text, without questions, requests and pleasantries.

    Each sentence is a statement, together with following sentences that refer back to it.

    >>> extract_statements("Hi! I have a dog. He is called Rex. What does he eat?")
    ['I have a dog. He is called Rex.']
    >>> extract_statements("Please remember that I eat no meat.")
    ['Please remember that I eat no meat.']
    """
    statements: list[str] = []
    continues = False
    for sentence in (each for line in text.splitlines() for each in split_sentences(_BULLET.sub("", line))):
        if not is_statement(sentence):
            continues = False
        elif continues and words(sentence)[0] in _BACK_REFERENCES:
            statements[-1] = f"{statements[-1]} {sentence}"
        else:
            statements.append(sentence)
            continues = True
    return statements


def is_statement(sentence: str) -> bool:
    """Check that a sentence states something that may be worth remembering.

    >>> [is_statement(each) for each in ("I live in Oslo.", "Where do I live?", "Tell me a joke.", "Thanks a lot!")]
    [True, False, False, False]
    """
    if not set(content_words(sentence)) - _POLITE_WORDS:
        return False
    return bool(_REMEMBER.match(sentence)) or not (_is_question(sentence) or _REQUEST.match(sentence))


def _is_question(sentence: str) -> bool:
    """Return whether a question mark stands after the last word."""
    for sign in reversed(sentence):
        if sign in _QUESTION_MARKS or sign.isalnum() or sign == "_":
            return sign in _QUESTION_MARKS
    return False
