"""LangGraph's own stores as tests and measurements make them, and the rules that each of them breaks."""

import sqlite3
from contextlib import closing, contextmanager

import aiosqlite
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from langchain_meve import MeVeEmbeddings
from meve.testing.fakes import WordEmbedder

DOTS = "a label with a dot is refused, so that a mail address can't be one"
INTS = "a label that is an int is refused"
UNCHECKED = "batch checks no namespace"
STALE = "the vectors of the old value stay"

IN_MEMORY_FAILS = {
    "a_ttl_holds_or_is_refused": "put refuses a TTL, and batch takes and forgets it",
    "indexing_can_be_ended": STALE,
    "pages_of_a_question_cover_everything_once": "each page begins anew with what has no score",
    "a_missing_value_is_neither_more_nor_less": "comparing a missing value raises TypeError",
    "operators_compare_texts": "comparing texts raises ValueError: both become floats",
    "what_cannot_be_compared_does_not_match": "comparing a text with a number raises ValueError",
    "labels_may_hold_dots": DOTS,
    "labels_may_be_ints": INTS,
    "a_batch_refuses_them_too": UNCHECKED,
    "labels_of_other_kinds_are_refused": UNCHECKED,
    "what_is_empty_is_not_listed": "an emptied namespace stays listed, and one that was only read is, too",
    "creation_stays_over_updates": "each update is a creation",
    "what_is_got_is_a_copy": "it is what is stored",
    "what_was_put_is_a_copy": "what lies in the value isn't copied",
}
BOTH_SQLITE_FAIL = {
    "indexing_can_be_ended": STALE,
    "filters_ask_for_values": "a nested value is taken for an operator",
    "what_cannot_be_compared_does_not_match": "a number is less than any text",
    "any_name_can_be_asked_for": "names may hold letters, digits and few signs, and a dot in one is a path",
    "labels_may_hold_dots": DOTS,
    "labels_may_be_ints": INTS,
    "a_batch_refuses_them_too": UNCHECKED,
    "moments_are_aware_and_true": "moments have no time zone",
    "creation_stays_over_updates": "each update is a creation",
}
SQLITE_FAILS = BOTH_SQLITE_FAIL | {
    "what_is_over_is_not_got": "what has expired is got until a sweep, with omit_expired too",
    "what_is_over_is_not_found": "what has expired is found until a sweep, with omit_expired too",
    "what_is_over_is_not_listed": "what has expired is listed until a sweep, with omit_expired too",
    "pages_are_full_beside_what_is_over": "what has expired fills pages until a sweep",
}
ASYNC_SQLITE_FAILS = BOTH_SQLITE_FAIL
"""It says that it supports no TTL."""


def index(embedder=None):
    embedder = embedder or WordEmbedder()
    return {"dims": embedder.dimension, "embed": MeVeEmbeddings(embedder)}


def in_memory(embedder=None):
    return InMemoryStore(index=index(embedder))


def connect(file):
    """A connection that can load vectors: not every Python's own can."""
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


async def opened_async(file, embedder=None, **options):
    connection = await aiosqlite.Connection(lambda: connect(file), 64)
    store = AsyncSqliteStore(connection, index=index(embedder), **options)
    await store.setup()
    return store


async def closed_async(store):
    store._task.cancel()
    await store.conn.close()


@contextmanager
def async_sqlite(runner, file, **options):
    store = runner.run(opened_async(file, **options))
    yield store
    runner.run(closed_async(store))
