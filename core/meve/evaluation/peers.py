"""Anybody's own retriever beside ours: a function that is named on the command line."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from meve.components.verifiers.cosine import CosineVerifier
from meve.errors import ConfigurationError, EvaluationError
from meve.evaluation._embedding_cache import Once
from meve.evaluation.systems import Build, Workbench
from meve.evaluation.types import Evidence, Handed, Parts, Peer, System
from meve.types import Passage


def peer(name: str) -> Build:
    """Somebody else's retriever, given as `module:function`.

    Raises:
        ConfigurationError: no such module or function.
    """
    made: Peer = named(name, option="--peer", example="benchmarks.peers.langchain_stock:hybrid")

    def build(bench: Workbench) -> System:
        once = Once(bench.parts.embedder)
        parts = replace(bench.parts, embedder=once)
        if isinstance(parts.verifier, CosineVerifier):
            parts = replace(parts, verifier=CosineVerifier(once, parts.verifier.calibration))
        asked = made(bench.passages, parts)

        def system(question: str) -> Handed:
            once.forget()
            return _from_peer(name, asked(question), parts)

        return system

    return build


def named(name: str, *, option: str, example: str) -> Any:  # noqa: ANN401 - whatever somebody's module holds
    """What `module:function` names.

    Args:
        name: the two.
        option: what it was given for, and
        example: such a name, for messages.

    Raises:
        ConfigurationError: no such module or function.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigurationError(f"{option} {name!r}: give module:function, such as {example}")
    try:
        return getattr(import_module(module), function)
    except Exception as cause:  # whatever somebody's module does when it's imported
        raise ConfigurationError(f"{option} {name!r} can't be had: {type(cause).__name__}: {cause}") from cause


def peer_code(name: str) -> str:
    """A hash of the file that a peer's function stands in, that file alone; empty where there is none to read."""
    try:
        found = find_spec(name.partition(":")[0])
    except (ValueError, ImportError):  # a module that was made by hand, or is the script itself
        return ""
    file = Path(found.origin) if found is not None and found.origin is not None else None
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file is not None and file.is_file() else ""


def _from_peer(name: str, given: Iterable[Passage] | None, parts: Parts) -> Handed:
    if given is None:
        raise EvaluationError(f"peer {name!r} returned None: a peer returns passages, an empty list for none")
    found = tuple(given)
    wrong = next((p for p in found if not isinstance(p, Passage)), None)
    if wrong is not None:
        raise EvaluationError(f"peer {name!r} returned {type(wrong).__name__}: a peer returns passages")
    text = parts.separator.join(p.content for p in found)
    return Handed(
        passages=tuple(Evidence(id=p.id, text=p.content) for p in found),
        ranked=tuple(p.id for p in found),
        text=text,
        tokens=parts.tokens.count(text) if found else 0,
    )
