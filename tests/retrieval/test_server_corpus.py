"""Test corpora that a server keeps: PostgreSQL and Qdrant."""

import os
import uuid

import pytest

from meve import Retriever
from meve.testing.corpus_contract import CorpusContract


class TestEmbedded(CorpusContract):
    @pytest.fixture
    def make_empty(self):
        return Retriever.empty


@pytest.fixture
def make_over():
    """Return a function that opens a new collection, or a given one; they are closed afterwards."""
    opened = []

    def make(url, collection=None, **components):
        opened.append(Retriever.over(url, collection=collection or f"test {uuid.uuid4()}", **components))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


class TestPostgres(CorpusContract):
    calls_filters = False

    @pytest.fixture
    def make_empty(self, postgres_url, make_over):
        return lambda **components: make_over(postgres_url, **components)


class TestQdrant(CorpusContract):
    calls_filters = counts_mean_length = False

    @pytest.fixture
    def make_empty(self, make_over):
        pytest.importorskip("qdrant_client")
        return lambda **components: make_over("qdrant://:memory:", **components)


class TestQdrantServer(TestQdrant):
    @pytest.fixture
    def make_empty(self, make_over):
        if "MEVE_QDRANT_URL" not in os.environ:
            pytest.skip("NOT TESTED: a Qdrant server; set MEVE_QDRANT_URL to qdrant://host:port")
        return lambda **components: make_over(os.environ["MEVE_QDRANT_URL"], **components)
