"""Overhead of the integrations over direct calls, and of importing them.

    python benchmarks/wrapper_overhead.py

Wrapper and direct call answer the same question in turn, with components of almost no cost. Figures are medians of
1,000, in milliseconds, without and with a listener, and on an event loop. Imports run in fresh processes in turn; their
figures are medians of 9, in seconds of processor time, beyond the framework's own import.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from timing import time_in_turn

from langchain_meve import MeVeRetriever
from llama_index_meve import MeVePostprocessor
from llama_index_meve import MeVeRetriever as NodeRetriever
from meve import Passage
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

CALLS, PROCESSES = 1_000, 9
QUESTION = "blue sky"


class SilentHandler(BaseCallbackHandler):
    """A callback handler that does nothing."""


def main() -> None:
    """Time wrappers and direct calls in turn."""
    texts = [f"a blue sky over field number {n}" for n in range(200)]
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    retriever = MeVeRetriever.from_texts(texts, **parts)
    unwrapped, listener = retriever.retriever, {"callbacks": [SilentHandler()]}
    nodes = [TextNode(text=text, metadata={"source": "fields.txt", "page": 3, "title": "Of fields"}) for text in texts]
    over_nodes = NodeRetriever.from_nodes(nodes, **parts)
    scored_nodes = [NodeWithScore(node=node) for node in nodes[:20]]
    passages = [Passage(id=node.node_id, text=node.get_content(MetadataMode.EMBED)) for node in nodes[:20]]
    last = MeVePostprocessor.make(**parts)

    later: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "ainvoke": lambda: retriever.ainvoke(QUESTION),
        "aretrieve (nodes)": lambda: over_nodes.aretrieve(QUESTION),
        "apostprocess_nodes": lambda: last.apostprocess_nodes(scored_nodes, query_str=QUESTION),
    }
    ways: dict[str, Callable[[], object]] = {
        "meve": lambda: unwrapped.retrieve(QUESTION),
        "meve (nodes)": lambda: over_nodes.retriever.retrieve(QUESTION),
        "invoke": lambda: retriever.invoke(QUESTION),
        "invoke, one listener": lambda: retriever.invoke(QUESTION, listener),
        "retrieve (nodes)": lambda: over_nodes.retrieve(QUESTION),
        "meve.select": lambda: last.engine.select(QUESTION, passages),
        "postprocess_nodes": lambda: last.postprocess_nodes(scored_nodes, query_str=QUESTION),
    }
    medians = {name: statistics.median(values) for name, values in time_in_turn(ways, later, CALLS).items()}
    for name, value in medians.items():
        than = "meve.select" if "postprocess" in name else "meve (nodes)" if "(nodes)" in name else "meve"
        print(f"{name:22} {value:6.3f} ms, {value - medians[than]:+.3f} over {than}")
    base, package, named = import_times(
        "import langchain_core.retrievers",
        "import langchain_core.retrievers, langchain_meve",
        "import langchain_core.retrievers; from langchain_meve import MeVeRetriever",
    )
    print(f"import langchain_meve adds {package - base:+.3f} s to {base:.3f} s, its retriever {named - base:+.3f} s")


def import_times(*codes: str) -> list[float]:
    """Return seconds of processor time for each code: medians of fresh processes, in turn."""
    times: list[list[float]] = [[] for _ in codes]
    for _ in range(PROCESSES):
        for code, taken in zip(codes, times, strict=True):
            script = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
            run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            taken.append(float(run.stdout))
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    main()
