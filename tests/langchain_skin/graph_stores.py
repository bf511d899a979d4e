"""LangGraph's own stores as tests and measurements make them, and the rules that each of them breaks."""

import sqlite3
from contextlib import closing, contextmanager

from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langchain_meve import MeVeEmbeddings
from meve.testing.fakes import WordEmbedder

IN_MEMORY_FAILS = {}
SQLITE_FAILS = {}


def index(embedder=None):
    embedder = embedder or WordEmbedder()
    return {"dims": embedder.dimension, "embed": MeVeEmbeddings(embedder)}


def in_memory(embedder=None):
    return InMemoryStore(index=index(embedder))


@contextmanager
def sqlite(file=":memory:", embedder=None, **options):
    """SqliteStore with vectors, on a connection that can load them: not every Python's can."""
    driver = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3 as driver
    with closing(driver.connect(file, check_same_thread=False, isolation_level=None)) as connection:
        store = SqliteStore(connection, index=index(embedder), **options)
        store.setup()
        yield store
