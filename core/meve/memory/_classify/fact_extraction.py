"""What is stated in a turn of a conversation, and worth remembering: told by rules, for English."""

import re

from meve.components._sentences import sentences
from meve.components.lexical.analyzers import content_words, words

_PLEASANTRIES = """
hi hello hey dear thanks thank ok okay yes yeah no sure great good fine bye goodbye please sorry cool nice perfect well
morning evening afternoon day night welcome lot much right alright awesome got understood wow oh
"""
_PLEASANT = frozenset(_PLEASANTRIES.split())
_POINTING = """
he she it they this that these those his her hers its their theirs him them there and but so because which then also
both neither either such
"""
_BACKWARDS = frozenset(_POINTING.split())
_POLITE = r"(?:(?:please|(?:can|could|would|will)\s+you)\s+)*"
_KEEP = re.compile(
    rf"{_POLITE}(?:remember|note|keep\s+in\s+mind|(?:don't|do\s+not|never)\s+forget)\b(?!\s+(?:when|how|what|where|who|why)\b)",
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
_QUESTION = re.compile("[?\uff1f\u061f\u037e]\\W*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def statements(text: str) -> list[str]:
    """The statements of a text: no questions, no requests, no pleasantries.

    Each sentence is one; a sentence that points back to the one before stays with it.

    >>> statements("Hi! I have a dog. He is called Rex. What does he eat?")
    ['I have a dog. He is called Rex.']
    >>> statements("Please remember that I eat no meat.")
    ['Please remember that I eat no meat.']
    """
    made: list[str] = []
    joins = False
    for sentence in (each for line in text.splitlines() for each in sentences(_BULLET.sub("", line))):
        if not states(sentence):
            joins = False
        elif joins and words(sentence)[0] in _BACKWARDS:
            made[-1] = f"{made[-1]} {sentence}"
        else:
            made.append(sentence)
            joins = True
    return made


def states(sentence: str) -> bool:
    """Whether a sentence tells something that may be worth remembering.

    >>> [states(each) for each in ("I live in Oslo.", "Where do I live?", "Tell me a joke.", "Thanks a lot!")]
    [True, False, False, False]
    """
    if not set(content_words(sentence)) - _PLEASANT:
        return False
    return bool(_KEEP.match(sentence)) or not (_QUESTION.search(sentence) or _REQUEST.match(sentence))
