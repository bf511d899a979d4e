"""Make the components of a retriever with predictable results."""

from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def make_components(**changed):
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), **changed}
