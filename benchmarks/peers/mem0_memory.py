"""mem0's local store as a peer of `meve bench memory-recall` and `routing`, with the same embedder.

No model rewrites texts. It is no part of any extra: `pip install mem0ai` into an environment of its own. Prints how
long adding takes.
"""

import atexit
import os
import shutil
import statistics
import tempfile
import time
from functools import partial

from langchain_meve import MeVeEmbeddings
from meve.evaluation.experiments.memory.recall import K, MemorySearch
from meve.evaluation.experiments.memory.talks import Turns
from meve.evaluation.experiments.routing.systems import DEPTH
from meve.ports import Embedder

DIMENSION, DIMENSION_OF_MINILM = 256, 384
"""The dimensions of MeVe's built-in embedder, and of MiniLM."""


class PassageEmbeddings(MeVeEmbeddings):
    """Embeds every text as a passage: mem0 embeds what it stores as queries, which may not be long."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]


def mem0(
    turns: Turns, *, k: int = K, embedder: Embedder | str | None = None, dimension: int = DIMENSION
) -> MemorySearch:
    """Store the turns without inference; return the search for the best k of a user."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ |= {"MEM0_DIR": folder, "MEM0_TELEMETRY": "False"}
    from mem0 import Memory

    store = {"path": f"{folder}/qdrant", "embedding_model_dims": dimension, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "langchain", "config": {"model": PassageEmbeddings(embedder)}},
            "llm": {"provider": "openai", "config": {"api_key": "none: it is never asked"}},
        }
    )
    times = []
    for user, user_turns in turns.items():
        for turn in user_turns:
            start = time.perf_counter()
            memory.add(turn.text, user_id=user, infer=False, metadata={"turn": turn.id})
            times.append(1_000 * (time.perf_counter() - start))
    first, last = statistics.median(times[:300]), statistics.median(times[-300:])
    print(f"mem0 add, p50: {first:.1f} ms for the first 300 turns, {last:.1f} ms for the last 300")

    def search(user: str, question: str) -> list[str]:
        results = memory.search(question, filters={"user_id": user}, top_k=k)["results"]
        return [each["metadata"]["turn"] for each in results]

    return search


mem0_routing = partial(mem0, k=DEPTH, embedder="minilm", dimension=DIMENSION_OF_MINILM)
"""The same with MiniLM and as many turns as the budgets of `meve bench routing` may need."""
