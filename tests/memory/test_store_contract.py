"""The contract of stores, on each that there is."""

import pytest

from meve.memory.stores.sqlite.store import SqliteStore
from meve.testing.memory_store_contract import MemoryStoreContract


class TestSqlite(MemoryStoreContract):
    @pytest.fixture
    def opened(self, tmp_path):
        stores = []

        def again():
            stores.append(SqliteStore.open(tmp_path / "memory.db"))
            return stores[-1]

        yield again
        for store in stores:
            store.close()
