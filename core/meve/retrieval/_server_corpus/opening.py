"""Open a collection on a server with the models that it was made with."""

from typing import Any

from meve.components.embedders import find_prompts, resolve_embedder
from meve.components.lexical.analyzers import resolve_analyzer
from meve.components.tokenizers import resolve_tokens
from meve.pipeline.engine import Engine, EngineOptions, make_engine
from meve.retrieval._persistence import check_embedder_name, check_name, check_tokens_name, check_weights
from meve.retrieval._server_corpus import open_server
from meve.retrieval._server_corpus.corpus import ServerCorpus
from meve.retrieval._server_corpus.records import About


def open_corpus(url: str, collection: str, options: EngineOptions) -> tuple[Engine, ServerCorpus]:
    """Return an engine and the corpus of a collection, which is created if it doesn't exist.

    The models that only the collection names are never downloaded.

    Raises:
        MeveError: as `Retriever.over`.
    """
    server = open_server(url, collection)
    try:
        about = server.about()
        if about is None:
            engine = make_engine(**options)
            embedder = engine.embedder
            about = server.create(
                About(
                    embedder=embedder.name,
                    dimension=embedder.dimension,
                    similarity=embedder.similarity,
                    tokens=engine.tokens.name,
                    prompts=find_prompts(embedder),
                )
            )
        else:
            engine = make_engine(**_complete(options, about))
        check_embedder_name(server.name, about.embedder, about.dimension, engine.embedder)
        check_tokens_name(server.name, about.tokens, engine.tokens)
        if sample := server.sample():
            check_weights(server.name, sample.passage.content, sample.vector, engine.embedder)
        analyzer = resolve_analyzer(about.analyzer, None, server.name)
    except BaseException:
        server.close()
        raise
    return engine, ServerCorpus(server, analyzer)


def _complete(options: EngineOptions, about: About) -> EngineOptions:
    """Return the options with the collection's embedder and token counter, where they name none."""
    chosen: dict[str, Any] = dict(options)
    if chosen.get("embedder") is None:
        check_name(about.embedder, "embedder")
        chosen["embedder"] = resolve_embedder(about.embedder, local_files_only=True, prompts=about.prompts)
    if chosen.get("tokens") is None:
        check_name(about.tokens, "tokens")
        chosen["tokens"] = resolve_tokens(about.tokens, local_files_only=True)
    return chosen  # type: ignore[return-value]
