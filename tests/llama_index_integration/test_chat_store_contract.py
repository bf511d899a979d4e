"""The rules of chat stores, on ours, by itself and opened again each time, and on LlamaIndex's own."""

import gc

import pytest
from llama_index.core.storage.chat_store import SimpleChatStore

from llama_index_meve import MeVeChatStore
from llama_index_meve.testing import ChatStoreContract
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration import chat_stores


class TestMeVeChatStore(ChatStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with GovernedMemory.open(tmp_path / "memory.db", embedder=WordEmbedder(), tokens=WordCounter()) as memory:
            yield MeVeChatStore(memory, user_id="alice")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestSQLAlchemyChatStore(ChatStoreContract):
    fails = chat_stores.SQLALCHEMY_FAILS

    @pytest.fixture
    def store(self, run):
        made = chat_stores.sqlalchemy()
        yield made
        run(chat_stores.dispose(made))
        gc.collect()  # connections that it lost, here, and not in another test


class TestSimpleChatStore(ChatStoreContract):
    fails = chat_stores.SIMPLE_FAILS
    archives = False

    @pytest.fixture
    def store(self):
        return chat_stores.OldStore(old=SimpleChatStore())
