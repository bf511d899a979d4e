"""Every access path through which a memory returns text."""

import json

from meve.memory import GovernedMemory


def read_by_question(memory: GovernedMemory, user: str, question: str) -> dict[str, str]:
    """Return the text that each path returns for a question, private memories included, by the path's name."""
    recall = memory.search(question, user_id=user, include_private=True, limit=None, max_tokens=100_000)
    explanations = memory.explain(question, user_id=user, limit=100)
    return {
        "search": recall.text,
        "prompt": memory.prompt(question, user_id=user, max_tokens=4_096, include_private=True).text,
        "explain": " ".join(each.record.text for each in explanations),
    }


def read_all(memory: GovernedMemory, user: str) -> dict[str, str]:
    """Return the text of the list, archived memories included, and of the export of a user."""
    return {
        "list": " ".join(record.text for record in memory.list(user_id=user, include_archived=True)),
        "export": json.dumps(memory.export(user_id=user), default=str, ensure_ascii=False),
    }
