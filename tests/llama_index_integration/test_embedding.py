"""MeVeEmbedding: the shipped embedder as a LlamaIndex embedding model."""

import copy
import pickle

import pytest

from llama_index_meve import MeVeEmbedding
from meve.errors import ModelNotFoundError
from meve.testing.fakes import WordEmbedder

TEXTS = ["Tomatoes want sun.", "Bread is baked."]


async def test_sync_and_async_embeddings_equal_the_embedders():
    embedding, bare = MeVeEmbedding(WordEmbedder()), WordEmbedder()
    query, passages = bare.embed_query(TEXTS[0]).tolist(), bare.embed_passages(TEXTS).tolist()
    assert embedding.get_query_embedding(TEXTS[0]) == await embedding.aget_query_embedding(TEXTS[0]) == query
    assert embedding.get_text_embedding(TEXTS[0]) == await embedding.aget_text_embedding(TEXTS[0]) == passages[0]
    assert embedding.get_text_embedding_batch(TEXTS) == await embedding.aget_text_embedding_batch(TEXTS) == passages


def test_serialized_pickled_and_copied_embedding_is_equivalent():
    embedding = MeVeEmbedding()
    for again in (
        MeVeEmbedding.from_dict(embedding.to_dict()),
        pickle.loads(pickle.dumps(embedding)),
        copy.deepcopy(embedding),
    ):
        assert again.get_query_embedding(TEXTS[0]) == embedding.get_query_embedding(TEXTS[0])


def test_options_survive_copying_and_pickling():
    embedding = MeVeEmbedding("static", embed_batch_size=77, num_workers=3)
    for again in (
        MeVeEmbedding.from_dict(embedding.to_dict()),
        pickle.loads(pickle.dumps(embedding)),
        copy.deepcopy(embedding),
    ):
        assert (again.embed_batch_size, again.num_workers) == (77, 3)


def test_missing_model_is_named():
    with pytest.raises(ModelNotFoundError, match="no/such-model"):
        MeVeEmbedding("no/such-model")
