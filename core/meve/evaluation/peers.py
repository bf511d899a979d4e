"""Peers: other people's retrievers, named on the command line as `module:function`."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from meve.components.verifiers.cosine import CosineVerifier
from meve.errors import ConfigurationError, EvaluationError
from meve.evaluation._model_caches import QueryCachingEmbedder
from meve.evaluation.systems import IndexedPassages, SystemFactory
from meve.evaluation.types import Evidence, Peer, SharedComponents, System, SystemOutput
from meve.types import Passage


def load_peer(name: str) -> SystemFactory:
    """Return the factory of a peer's system.

    Args:
        name: `module:function`, where the function is a `Peer`.

    Raises:
        ConfigurationError: no such module or function.
    """
    peer: Peer = import_function(name, option="--peer", example="benchmarks.peers.langchain_stock:hybrid")

    def build(indexed: IndexedPassages) -> System:
        embedder = QueryCachingEmbedder(indexed.components.embedder)
        components = replace(indexed.components, embedder=embedder)
        if isinstance(components.verifier, CosineVerifier):
            components = replace(components, verifier=CosineVerifier(embedder, components.verifier.calibration))
        retrieve = peer(indexed.passages, components)

        def system(question: str) -> SystemOutput:
            embedder.clear()
            return _output_from_peer(name, retrieve(question), components)

        return system

    return build


def import_function(name: str, *, option: str, example: str) -> Any:  # noqa: ANN401 - whatever the module holds
    """Return the function that `module:function` names.

    Args:
        name: `module:function`.
        option: the command line's option, for messages.
        example: a valid name, for messages.

    Raises:
        ConfigurationError: no such module or function.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigurationError(f"{option} must be module:function, such as {example}, got {name!r}")
    try:
        return getattr(import_module(module), function)
    except Exception as cause:  # importing foreign code can raise anything
        raise ConfigurationError(f"{option} {name!r} can't be imported: {type(cause).__name__}: {cause}") from cause


def hash_peer_code(name: str) -> str:
    """Return a hash of the file that defines a peer's function; empty if there is no such file."""
    try:
        spec = find_spec(name.partition(":")[0])
    except (ValueError, ImportError):  # the module was made by hand, or is the script itself
        return ""
    file = Path(spec.origin) if spec is not None and spec.origin is not None else None
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file is not None and file.is_file() else ""


def _output_from_peer(name: str, returned: Iterable[Passage] | None, components: SharedComponents) -> SystemOutput:
    if returned is None:
        raise EvaluationError(f"peer {name!r} returned None: return passages, or an empty list for none")
    passages = tuple(returned)
    wrong = next((p for p in passages if not isinstance(p, Passage)), None)
    if wrong is not None:
        raise EvaluationError(f"peer {name!r} returned {type(wrong).__name__}: return meve.Passage values")
    text = components.config.separator.join(p.content for p in passages)
    return SystemOutput(
        passages=tuple(Evidence(id=p.id, text=p.content) for p in passages),
        ranked=tuple(p.id for p in passages),
        text=text,
        tokens=components.tokens.count(text) if passages else 0,
    )
