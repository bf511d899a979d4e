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
    made, bare = MeVeEmbedding(WordEmbedder()), WordEmbedder()
    assert made.get_query_embedding(TEXTS[0]) == bare.embed_query(TEXTS[0]).tolist()
    assert made.get_text_embedding_batch(TEXTS) == bare.embed_passages(TEXTS).tolist()

    async def later():
        return (
            await made.aget_query_embedding(TEXTS[0]),
            await made.aget_text_embedding(TEXTS[0]),
            await made.aget_text_embedding_batch(TEXTS),
        )

    assert asyncio.run(later()) == (
        made.get_query_embedding(TEXTS[0]),
        made.get_text_embedding(TEXTS[0]),
        made.get_text_embedding_batch(TEXTS),
    )


def test_serialized_pickled_and_copied_embedding_is_equivalent():
    made = MeVeEmbedding()
    for again in (MeVeEmbedding.from_dict(made.to_dict()), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again.get_query_embedding(TEXTS[0]) == made.get_query_embedding(TEXTS[0])


def test_missing_model_is_named():
    with pytest.raises(ModelNotFoundError, match="no/such-model"):
        MeVeEmbedding("no/such-model")
