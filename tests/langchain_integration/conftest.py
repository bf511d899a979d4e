"""Sample documents, and a retriever and a memory with fast, deterministic components."""

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document

from langchain_meve import MeVeRetriever
from meve import RetrieverConfig
from meve.memory import GovernedMemory, Policy
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from tests.memories import KEY


@pytest.fixture
def documents():
    return [
        Document("A blue sky today.", id="sky", metadata={"lang": "en", "source": "a.txt"}),
        Document("The wide sea is blue.", id="sea", metadata={"lang": "en", "source": "b.txt"}),
        Document("Zebra facts for you.", id="zebra", metadata={"lang": "de", "source": "c.txt"}),
        Document("Grass under an open sky.", id="grass", metadata={"lang": "en", "source": "d.txt"}),
    ]


@pytest.fixture
def parts():
    config = RetrieverConfig(redundancy=1.0)
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "config": config}


@pytest.fixture
def retriever(documents, parts):
    return MeVeRetriever.from_documents(documents, **parts)


@pytest.fixture
def memory(file, clock):
    """Return a memory in which what a user says lives for a week."""
    with GovernedMemory.open(file, clock=clock, audit_key=KEY, policy=Policy.from_dict({"user_ttl": "7d"})) as opened:
        yield opened


@pytest.fixture
def word_memory(file, clock):
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "clock": clock}
    with GovernedMemory.open(file, **parts) as opened:
        yield opened
