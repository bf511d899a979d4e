"""MeVeEmbedding: the shipped embedder as a LlamaIndex embedding model."""

import asyncio
import copy
import pickle

import pytest

from llama_index_meve import MeVeEmbedding
from meve.errors import ModelNotFoundError
from meve.testing.fakes import WordEmbedder

TEXTS = ["Tomatoes want sun.", "Bread is baked."]


def test_sync_and_async_embeddings_equal_the_embedders():
    embedding, bare = MeVeEmbedding(WordEmbedder()), WordEmbedder()
    assert embedding.get_query_embedding(TEXTS[0]) == bare.embed_query(TEXTS[0]).tolist()
    assert embedding.get_text_embedding_batch(TEXTS) == bare.embed_passages(TEXTS).tolist()

    async def later():
        return (
            await embedding.aget_query_embedding(TEXTS[0]),
            await embedding.aget_text_embedding(TEXTS[0]),
            await embedding.aget_text_embedding_batch(TEXTS),
        )

    assert asyncio.run(later()) == (
        embedding.get_query_embedding(TEXTS[0]),
        embedding.get_text_embedding(TEXTS[0]),
        embedding.get_text_embedding_batch(TEXTS),
    )


def test_serialized_pickled_and_copied_embedding_is_equivalent():
    embedding = MeVeEmbedding()
    for again in (
        MeVeEmbedding.from_dict(embedding.to_dict()),
        pickle.loads(pickle.dumps(embedding)),
        copy.deepcopy(embedding),
    ):
        assert again.get_query_embedding(TEXTS[0]) == embedding.get_query_embedding(TEXTS[0])


def test_missing_model_is_named():
    with pytest.raises(ModelNotFoundError, match="no/such-model"):
        MeVeEmbedding("no/such-model")
