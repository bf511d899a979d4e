"""Finds whose words a question asks for: the user's, or what the assistant said."""

import re
from typing import Literal, TypeAlias

Teller: TypeAlias = Literal["chat_user", "chat_assistant", ""]
"""The source of the words; empty if a question doesn't tell."""

_SAYING = (
    r"(?:recommend|suggest|mention|advise|propose|g[ia]v|tell|told|s[ae]y|said|provid|list|explain|shar|describ|talk"
    r"|wr[io]t|found|c[ao]me up|pick|chose)\w*"
)
_ASSISTANT = re.compile(
    rf"""\b(?:(?:our|the)\ (?:previous|last|earlier|past)\ (?:conversation|chat|discussion|session) | did\ you
    | (?:have|had)\ you\ (?:(?:just|also|ever|\w+ly)\ )?{_SAYING}
    | (?<!can\ )(?<!could\ )(?<!would\ )(?<!will\ )(?<!please\ )you\ (?:(?:just|also|had|have|were|\w+ly)\ )?{_SAYING}
    | your\ (?:advice|recommendations?|suggestions?|answers?|explanations?|list|ideas?|opinion|tips?)
    | the\ (?:assistant|(?:chat)?bot) | (?:recommended|suggested)\ to\ (?:me|us)
    | (?:have|did|had)\ we\ (?:discuss|talk)\w*
    )\b""",
    re.IGNORECASE | re.VERBOSE,
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
