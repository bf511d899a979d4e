"""Conversations for tests."""

from meve.conversation import Conversation
from meve.testing.fakes import WordCounter, WordEmbedder

DEBUGGING = [
    ("1", None, "user", "Help me debug the auth system"),
    ("2", "1", "assistant", "The login endpoint returns 401"),
    ("3", "2", "assistant", "Check if JWT is expired"),
    ("4", "3", "user", "Token expires in 1 hour"),
    ("5", "2", "assistant", "Check if user exists"),
    ("6", "5", "user", "User exists in database"),
    ("7", "1", "user", "Actually, let me check CORS first"),
    ("8", "7", "assistant", "CORS is configured correctly"),
    ("9", "6", "user", "Why is login failing?"),
]
"""The nine turns with which the RAG++ paper begins; it leaves open where the ninth stands, here after the sixth."""


def records(rows=DEBUGGING):
    return [{"id": id, "parent": parent, "role": role, "text": text} for id, parent, role, text in rows]


def make_conversation(messages=None, **options):
    options = {"embedder": WordEmbedder(), "tokens": WordCounter(), **options}
    return Conversation.from_messages(records() if messages is None else messages, **options)


def line(count):
    return [{"id": f"t{n}", "text": f"word{n} is here"} for n in range(count)]
