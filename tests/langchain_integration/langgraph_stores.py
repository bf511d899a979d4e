"""LangGraph's own stores as the tests open them, and the contract rules that each of them breaks."""

import sqlite3
from contextlib import closing, contextmanager

import aiosqlite
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from langchain_meve import MeVeEmbeddings
from meve.testing.fakes import WordEmbedder

DOTS = "a label with a dot is refused, so no e-mail address is a label"
INTS = "an int label is refused"
UNCHECKED = "batch doesn't check namespaces"
STALE = "the old value's vectors stay"

IN_MEMORY_FAILS = {
    "ttl_is_applied_or_refused": "put refuses a TTL, and batch ignores it",
    "put_with_index_false_ends_indexing": STALE,
    "query_pages_cover_each_item_once": "each page starts again with the items without a score",
    "missing_value_matches_no_comparison": "comparing a missing value raises TypeError",
    "operators_compare_strings": "comparing strings raises ValueError: both are converted to floats",
    "different_types_match_no_comparison": "comparing a string with a number raises ValueError",
    "label_with_dot_is_accepted": DOTS,
    "int_label_is_returned_as_int": INTS,
    "batch_refuses_empty_or_reserved_namespace": UNCHECKED,
    "label_of_other_type_is_refused": UNCHECKED,
    "emptied_namespace_is_not_listed": "a namespace that was emptied, or only read, is listed",
    "update_keeps_created_at": "an update resets created_at",
    "changed_returned_value_is_not_stored": "the stored value itself is returned",
    "changed_put_value_is_not_stored": "nested values aren't copied",
}
BOTH_SQLITE_FAIL = {
    "put_with_index_false_ends_indexing": STALE,
    "filter_matches_values": "a nested mapping is read as operators",
    "different_types_match_no_comparison": "a number is less than any string",
    "any_name_can_be_filtered": "only letters, digits and few other signs are allowed, and a dot is read as a path",
    "label_with_dot_is_accepted": DOTS,
    "int_label_is_returned_as_int": INTS,
    "batch_refuses_empty_or_reserved_namespace": UNCHECKED,
    "timestamps_are_aware_and_current": "timestamps have no time zone",
    "update_keeps_created_at": "an update resets created_at",
}
SQLITE_FAILS = BOTH_SQLITE_FAIL | {
    "expired_item_is_not_returned_by_get": "expired items are returned until a sweep, despite omit_expired",
    "expired_item_is_not_returned_by_search": "expired items are returned until a sweep, despite omit_expired",
    "namespace_of_expired_items_is_not_listed": "expired items are listed until a sweep, despite omit_expired",
    "expired_items_take_no_place_in_pages": "expired items take places until a sweep",
}
ASYNC_SQLITE_FAILS = BOTH_SQLITE_FAIL
"""AsyncSqliteStore declares no TTL support, so the TTL rules don't run on it."""


def index(embedder=None):
    embedder = embedder or WordEmbedder()
    return {"dims": embedder.dimension, "embed": MeVeEmbeddings(embedder)}


def in_memory(embedder=None):
    return InMemoryStore(index=index(embedder))


def connect(file):
    """Open a connection that can load sqlite-vec; the sqlite3 of some Python builds can't."""
    driver = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3 as driver
    return driver.connect(str(file), check_same_thread=False, isolation_level=None)


@contextmanager
def sqlite(file, embedder=None, **options):
    with closing(connect(file)) as connection:
        store = SqliteStore(connection, index=index(embedder), **options)
        store.setup()
        yield store


async def open_async(file, embedder=None, **options):
    connection = await aiosqlite.Connection(lambda: connect(file), 64)
    store = AsyncSqliteStore(connection, index=index(embedder), **options)
    await store.setup()
    return store


async def close_async(store):
    store._task.cancel()
    await store.conn.close()


@contextmanager
def async_sqlite(runner, file, **options):
    store = runner.run(open_async(file, **options))
    yield store
    runner.run(close_async(store))
