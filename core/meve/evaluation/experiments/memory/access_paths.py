"""Every way in which a memory hands out text: what stands behind each of them for one user?"""

import json

from meve.memory import GovernedMemory


def asked(memory: GovernedMemory, user: str, question: str) -> dict[str, str]:
    """What a question brings out, private memories too, by the way in which it is asked; as much as there is."""
    found = memory.search(question, user_id=user, include_private=True, limit=None, max_tokens=100_000)
    explained = memory.explain(question, user_id=user, limit=100)
    return {
        "search": found.text,
        "prompt": memory.prompt(question, user_id=user, max_tokens=4_096, include_private=True).text,
        "explain": " ".join(each.record.text for each in explained),
    }


def all_of(memory: GovernedMemory, user: str) -> dict[str, str]:
    """What there is of a user without a question: the list, archived memories among them, and the export."""
    return {
        "list": " ".join(record.text for record in memory.list(user_id=user, include_archived=True)),
        "export": json.dumps(memory.export(user_id=user), default=str, ensure_ascii=False),
    }
