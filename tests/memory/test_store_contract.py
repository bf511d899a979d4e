"""The contract suite of memory stores, run on each store."""

from datetime import timedelta

import pytest

from meve.errors import ConfigurationError, StorageError
from meve.memory import GovernedMemory
from meve.memory.stores.postgresql.store import PostgresStore
from meve.memory.stores.sqlite.store import SqliteStore
from meve.testing.dict_memory_store import DictMemoryStore
from meve.testing.memory_store_contract import MemoryStoreContract
from tests.memories import KEY


class TestSqlite(MemoryStoreContract):
    @pytest.fixture
    def opened(self, tmp_path):
        stores = []

        def reopen():
            stores.append(SqliteStore.open(tmp_path / "memory.db"))
            return stores[-1]

        yield reopen
        for store in stores:
            store.close()


class TestPostgres(MemoryStoreContract):
    @pytest.fixture
    def opened(self, postgres_url, tmp_path):
        stores = []

        def reopen():
            stores.append(PostgresStore.open(postgres_url, key_file=tmp_path / "memory.keys"))
            return stores[-1]

        yield reopen
        for store in stores:
            store.close()


class TestPostgresWithKeysOnAnotherServer(MemoryStoreContract):
    @pytest.fixture
    def opened(self, postgres_url, keys_url):
        stores = []

        def reopen():
            stores.append(PostgresStore.open(postgres_url, key_file=keys_url))
            return stores[-1]

        yield reopen
        for store in stores:
            store.close()


class TestInMemory(MemoryStoreContract):
    @pytest.fixture
    def opened(self):
        store = DictMemoryStore()

        def reopen():
            store.is_closed = False
            return store

        return reopen


class SingleConnectionStore(DictMemoryStore):
    """Refuses to read beside a write of the same process: reads go through the transaction then."""

    def reading(self):
        assert not self._writers.locked(), "read outside the transaction that is open"
        return super().reading()


def test_memory_works_with_a_custom_store_of_one_connection(clock):
    store = SingleConnectionStore()
    with GovernedMemory.open(store=store, clock=clock, audit_key=KEY) as memory:
        assert memory.file is None
        memory.add("Tomatoes need six hours of sun.", user_id="alice", id="sun", source="doc", policy_class="factual")
        memory.add("Tomatoes need six hours of sun.", user_id="alice", id="twin", source="doc", policy_class="factual")
        memory.add("The code is 4711.", user_id="alice", id="code", ttl=timedelta(hours=1))
        memory.add_shared("The office opens at 9.", id="office")
        memory.items.put(("prefs",), "theme", {"dark": True}, user_id="alice")
        memory.messages.add("s", [{"text": "Hello."}], user_id="alice")
        recall = memory.search("What do tomatoes need?", user_id="alice")
        assert recall.records
        memory.reflect(recall, answer="Six hours of sun.")
        clock.advance(timedelta(hours=2))
        report = memory.maintain()
        assert report.expired == {"alice": ["code"]}
        assert report.counts()["merged"] == 1
        assert memory.items.get(("prefs",), "theme", user_id="alice").value == {"dark": True}
        assert [m.value for m in memory.messages.page("s", user_id="alice")] == [{"text": "Hello."}]
        assert len(memory.forget_user(user_id="alice").erased) == 4
        assert memory.list(user_id="alice", include_archived=True) == []
        assert [r.id for r in memory.search("When does the office open?", user_id="alice").records] == ["office"]
        assert memory.audit.verify().ok
    with pytest.raises(StorageError, match="closed"):
        store.reading().__enter__()


@pytest.mark.parametrize("arguments", [{}, {"file": "memory.db", "store": DictMemoryStore()}])
def test_open_needs_exactly_one_of_file_and_store(arguments):
    with pytest.raises(ConfigurationError, match="exactly one of file and store"):
        GovernedMemory.open(**arguments)


def test_open_with_a_path_as_store_names_the_file_argument(tmp_path):
    with pytest.raises(ConfigurationError, match="store must be a MemoryStore"):
        GovernedMemory.open(store=tmp_path / "memory.db")
