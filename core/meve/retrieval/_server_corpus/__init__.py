"""A corpus that a database server keeps and searches, by vectors and by words."""

from meve._postgres import is_postgres_url
from meve.errors import ConfigurationError
from meve.retrieval._server_corpus.corpus import ServerCorpus
from meve.retrieval._server_corpus.records import PassageServer

__all__ = ["ServerCorpus", "open_server"]

LONGEST_NAME = 200
"""The most characters of a collection's name."""


def open_server(url: object, collection: object) -> PassageServer:
    """Return the server behind a URL, without creating the collection.

    Raises:
        ConfigurationError: an unknown kind of URL, or an invalid name of a collection.
        MissingExtraError: the server's client isn't installed.
        StorageError: the server can't be reached, or the collection isn't one of MeVe's.
    """
    if not isinstance(collection, str) or not collection.strip() or len(collection) > LONGEST_NAME:
        raise ConfigurationError(f"collection must be a name of 1 to {LONGEST_NAME} characters, got {collection!r:.80}")
    if is_postgres_url(url):
        from meve.retrieval._server_corpus.postgres import PostgresServer

        return PostgresServer(str(url), collection)
    if isinstance(url, str) and url.startswith("qdrant://"):
        from meve.retrieval._server_corpus.qdrant import QdrantServer

        return QdrantServer(url, collection)
    raise ConfigurationError(
        "url must begin with qdrant:// or postgresql://, "
        f"got {str(url).partition('://')[0]!r:.40}: for an index in a folder, use Retriever.load(folder)"
    )
