"""The options that name an index: a folder, or a server's URL and a collection."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.cli._memory_options import refuse_password
from meve.errors import ConfigurationError, IndexNotFoundError

if TYPE_CHECKING:
    from meve.retrieval._server_corpus.records import About, PassageServer
    from meve.retrieval.retriever import Retriever

IndexPlace = Annotated[
    str,
    typer.Option(
        help="The index's folder, or the URL of a server.",
        metavar="DIR|URL",
        envvar="MEVE_INDEX",
        callback=refuse_password,
    ),
]
Collection = Annotated[str | None, typer.Option(help="The name of the passages on a server.", show_default=False)]


def is_on_server(place: str, collection: str | None) -> bool:
    """Return whether a place is the URL of a server.

    Raises:
        ConfigurationError: a URL without a collection, or a folder with one.
    """
    if "://" not in place and collection is not None:
        raise ConfigurationError(f"--collection must be left out for a folder, got {collection!r}")
    if "://" in place and collection is None:
        raise ConfigurationError("the URL of a server needs --collection NAME")
    return collection is not None


@contextmanager
def open_collection(url: str, collection: str) -> Iterator[tuple["PassageServer", "About"]]:
    """Open a collection that exists; yield it with the models that it was made with.

    Raises:
        IndexNotFoundError: the server has no such collection.
        MeveError: as `Retriever.over`.
    """
    from meve.retrieval._server_corpus import open_server

    server = open_server(url, collection)
    try:
        about = server.about()
        if about is None:
            raise IndexNotFoundError(
                f"there is no collection {collection!r} on the server: make one with 'meve index PATH --to URL "
                f"--collection {collection}'"
            )
        yield server, about
    finally:
        server.close()


def load_index(place: str, collection: str | None) -> "Retriever":
    """Load an index that exists.

    Raises:
        MeveError: as `Retriever.load` or `open_collection`.
    """
    from meve.retrieval.retriever import Retriever

    if not is_on_server(place, collection):
        return Retriever.load(Path(place))
    with open_collection(place, str(collection)):
        pass
    return Retriever.over(place, collection=str(collection))
