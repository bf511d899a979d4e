"""Finds whose words a question asks for: the user's, or what the assistant said."""

import re
from typing import Literal, TypeAlias

Teller: TypeAlias = Literal["chat_user", "chat_assistant", ""]
"""The source of the words; empty if a question doesn't tell."""

_ASSISTANT = re.compile(
    r"\b(?:(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|session)|did you|have you"
    r"|(?<!can )(?<!could )(?<!would )(?<!will )(?<!please )you (?:just |also |had |have |\w+ly )?(?:recommend|suggest"
    r"|mention|advise|propose|g[ia]ve|tell|told|s[ae]y|said|provide|list|explain|share|describe|talk|wr[io]te)\w*)\b",
    re.IGNORECASE,
)
_USER = re.compile(r"\b(?:i|my|me|mine|we|our)\b", re.IGNORECASE)


def find_teller(question: str) -> Teller:
    """Return whose words a question asks for.

    >>> find_teller("Which puppy did I adopt?"), find_teller("Which breed did you recommend to me?")
    ('chat_user', 'chat_assistant')
    """
    if _ASSISTANT.search(question):
        return "chat_assistant"
    return "chat_user" if _USER.search(question) else ""
