"""Run the chat store contract on MeVeChatStore and on LlamaIndex's own stores."""

import gc

import pytest
from llama_index.core.storage.chat_store import SimpleChatStore

from llama_index_meve import MeVeChatStore
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration import stock_chat_stores
from tests.llama_index_integration.chat_store_contract.contract import ChatStoreContract


class TestMeVeChatStore(ChatStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with GovernedMemory.open(tmp_path / "memory.db", embedder=WordEmbedder(), tokens=WordCounter()) as memory:
            yield MeVeChatStore(memory, user_id="alice")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestSQLAlchemyChatStore(ChatStoreContract):
    expected_failures = stock_chat_stores.SQLALCHEMY_FAILS

    @pytest.fixture
    def store(self, run):
        stock = stock_chat_stores.sqlalchemy()
        yield stock
        run(stock_chat_stores.dispose(stock))
        gc.collect()  # close leaked connections here, so that no later test gets their warnings


class TestSimpleChatStore(ChatStoreContract):
    expected_failures = stock_chat_stores.SIMPLE_FAILS
    archives = False

    @pytest.fixture
    def store(self):
        return stock_chat_stores.AsyncSimpleChatStore(inner=SimpleChatStore())
