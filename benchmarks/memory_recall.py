"""Does a memory recall the turns that hold the answer? LoCoMo's evidence, beside BM25, vectors, and both by rank.

    python benchmarks/memory_recall.py --data DATA [--verify] [--held-out] [--mem0]

Each conversation is a user, each turn a memory of its session; the questions of categories 1 to 4 whose evidence is
known. Recall@10 is the mean share of a question's evidence among ten memories. All systems read the same text: speaker,
words and picture caption; `bm25, dated` that and the day, as the memory does. Latency is that of one question after the
other, its embedding and the entry in the audit log included; `verified` is the same with the verifier.

The weights of likeness were chosen on these very questions. `--held-out` chooses them anew for each conversation, from
a grid and by the questions of the others, and asks it with those.

`--mem0` measures mem0 beside it, with the same embedder, its local store, and no model to rewrite what it is told
(`infer=False`). It is no part of any extra: `pip install mem0ai` into an environment of its own.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.components.lexical.bm25 import Bm25Index
from meve.memory import GovernedMemory, Policy
from meve.memory._write.record_factory import drafted
from meve.memory.records import user_key

K, RANKED, DAMPING, DIMENSION = 10, 200, 60, 256
"""Memories asked for; how deep rankings are that are fused; the constant of reciprocal rank fusion; of the embedder."""
GRID = {"words": (1.0, 2.0, 3.0, 4.0), "before": (0.0, 0.2, 0.4, 0.6), "after": (0.0, 0.3, 0.6)}
"""Weights of likeness that are tried."""


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation."""

    id: str
    session: str
    text: str
    at: datetime


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--verify", action="store_true", help="a row with the verifier too: seconds a question")
    parser.add_argument("--held-out", action="store_true", help="a row with weights from other conversations: minutes")
    parser.add_argument("--mem0", action="store_true", help="mem0 too: minutes to fill it")
    given = parser.parse_args()
    turns, questions = read(given.data / "locomo")
    print(f"{sum(map(len, turns.values())):,} turns of {len(turns)} users, {len(questions)} questions")
    print("| system | recall@10 | by category, 1 to 4 | p50 ms | p95 ms |\n|---|---:|---|---:|---:|")
    for name, rank in systems(turns).items():
        show(name, questions, rank)
    with remembered(turns) as memory:
        show("memory", questions, recalling(memory, verify=False))
        if given.held_out:
            held_out(memory, questions)
        if given.mem0:
            beside_mem0(memory, turns, questions)
        if given.verify:
            show("memory, verified", questions, recalling(memory, verify=True))


def read(folder: Path) -> tuple[dict[str, list[Turn]], list[dict[str, Any]]]:
    """Turns by conversation, and the questions whose evidence is known."""
    turns: dict[str, list[Turn]] = {}
    for line in (folder / "conversations.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        turns[row["conversation_id"]] = [
            Turn(
                id=turn["dia_id"],
                session=str(session["session_id"]),
                text=" ".join(filter(None, [f"{turn['speaker']}: {turn['text']}", turn.get("image_caption")])),
                at=datetime.fromisoformat(session["timestamp"]).replace(tzinfo=UTC),
            )
            for session in row["sessions"]
            for turn in session["turns"]
        ]
    rows = map(json.loads, (folder / "questions.jsonl").read_text("utf-8").splitlines())
    known = [q for q in rows if q["category"] in (1, 2, 3, 4) and q["evidence"] and not q.get("evidence_unresolved")]
    return turns, known


Rank = Callable[[str, str], Sequence[str]]
"""From a user and a question to the ids of what is found, best first."""


def systems(turns: Mapping[str, Sequence[Turn]]) -> dict[str, Rank]:
    """What memories are held against."""
    embedder = resolve_embedder()
    plain = {user: index([t.text for t in mine]) for user, mine in turns.items()}
    dated = {user: index([f"{t.text} {t.at:%d %B %Y}" for t in mine]) for user, mine in turns.items()}
    vectors = {user: np.asarray(embedder.embed_passages([t.text for t in mine])) for user, mine in turns.items()}

    def words(held: Mapping[str, Bm25Index], user: str, question: str, k: int) -> list[int]:
        return held[user].search(question, k)[0].tolist()

    def near(user: str, question: str, k: int) -> list[int]:
        return np.argsort(-(vectors[user] @ embedder.embed_query(question)), kind="stable")[:k].tolist()

    def fused(user: str, question: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for ranking in (words(plain, user, question, RANKED), near(user, question, RANKED)):
            for place, row in enumerate(ranking, start=1):
                scores[row] += 1 / (DAMPING + place)
        return sorted(scores, key=lambda row: (-scores[row], row))[:K]

    def named(rank: Callable[[str, str], Sequence[int]]) -> Rank:
        return lambda user, question: [turns[user][row].id for row in rank(user, question)]

    return {
        "bm25": named(lambda user, question: words(plain, user, question, K)),
        "bm25, dated": named(lambda user, question: words(dated, user, question, K)),
        "vectors": named(lambda user, question: near(user, question, K)),
        "both, by reciprocal rank": named(fused),
    }


def index(texts: Sequence[str]) -> Bm25Index:
    """BM25 over texts."""
    made = Bm25Index()
    made.add(np.arange(len(texts)), list(texts))
    return made


@contextmanager
def remembered(turns: Mapping[str, Sequence[Turn]]) -> Iterator[GovernedMemory]:
    """A memory of all turns."""
    policy = policy_of({})
    with (
        tempfile.TemporaryDirectory() as folder,
        GovernedMemory.open(Path(folder) / "memory.db", policy=policy) as memory,
    ):
        kit = memory._kit
        for user, mine in turns.items():
            with kit.store.writing() as transaction:
                for turn in mine:
                    record = drafted(
                        turn.text, user_id=user, source="chat_user", policy_class="canonical", id=turn.id,
                        session_id=turn.session, policy=policy, now=turn.at, classifier=kit.classifier,
                        tagger=kit.tagger,
                    )  # fmt: skip
                    transaction.insert(user_key(user), kit.stored(record))
        yield memory


def recalling(memory: GovernedMemory, *, verify: bool) -> Rank:
    """A memory's own search."""

    def rank(user: str, question: str) -> list[str]:
        found = memory.search(question, user_id=user, limit=K, max_tokens=4_000, verify=verify)
        return [record.id for record in found.records]

    return rank


def held_out(memory: GovernedMemory, questions: Sequence[dict[str, Any]]) -> None:
    """A row: each conversation with the weights that found most in the others."""
    shares = {}
    for chosen in product(*GRID.values()):
        likeness = dict(zip(GRID, chosen, strict=True))
        with GovernedMemory.open(memory.file, policy=policy_of(likeness)) as other:
            rank = recalling(other, verify=False)
            shares[chosen] = [share(q, rank(q["conversation_id"], q["question"])) for q in questions]
    found: dict[int, list[float]] = defaultdict(list)
    for user in {q["conversation_id"]: None for q in questions}:
        mine = [n for n, q in enumerate(questions) if q["conversation_id"] == user]
        others = sorted(set(range(len(questions))) - set(mine))
        best = max(shares, key=lambda chosen: statistics.fmean(shares[chosen][n] for n in others))
        for n in mine:
            found[questions[n]["category"]].append(shares[best][n])
    print_row("memory, weights of other conversations", found, None)


def policy_of(likeness: Mapping[str, float]) -> Policy:
    """With these weights; recalls aren't cached, since each question is asked once."""
    return Policy.from_dict({"limits": {"recalls": 0}, "chat_ttl": None, "likeness": likeness})


def beside_mem0(
    memory: GovernedMemory, turns: Mapping[str, Sequence[Turn]], questions: Sequence[dict[str, Any]]
) -> None:
    """mem0's row, and how long both take to add a turn."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"MEM0_DIR": folder, "MEM0_TELEMETRY": "False"}
        from mem0 import Memory

        from langchain_meve import MeVeEmbeddings

        store = {"path": f"{folder}/qdrant", "embedding_model_dims": DIMENSION, "on_disk": True}
        theirs = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "langchain", "config": {"model": MeVeEmbeddings()}},
                "llm": {"provider": "openai", "config": {"api_key": "none: nothing is asked of it"}},
            }
        )
        took = []
        for user, mine in turns.items():
            for turn in mine:
                began = time.perf_counter()
                theirs.add(turn.text, user_id=user, infer=False, metadata={"turn": turn.id})
                took.append(1_000 * (time.perf_counter() - began))

        def rank(user: str, question: str) -> list[str]:
            found = theirs.search(question, filters={"user_id": user}, top_k=K)["results"]
            return [each["metadata"]["turn"] for each in found]

        show("mem0, infer=False", questions, rank)
    ours = []
    for turn in [turn for mine in turns.values() for turn in mine][:300]:
        began = time.perf_counter()
        memory.add(turn.text, user_id="one more")
        ours.append(1_000 * (time.perf_counter() - began))
    first, last = statistics.median(took[:300]), statistics.median(took[-300:])
    print(f"add, p50: memory {statistics.median(ours):.1f} ms; mem0 {first:.1f} ms, the last 300 {last:.1f} ms")


def show(name: str, questions: Sequence[dict[str, Any]], rank: Rank) -> None:
    """A row."""
    found: dict[int, list[float]] = defaultdict(list)
    took: list[float] = []
    for question in questions:
        started = time.perf_counter()
        ids = set(rank(question["conversation_id"], question["question"]))
        took.append(1_000 * (time.perf_counter() - started))
        found[question["category"]].append(share(question, ids))
    print_row(name, found, took)


def share(question: dict[str, Any], ids: Collection[str]) -> float:
    """Of a question's evidence, what is among those found."""
    return len(set(ids) & set(question["evidence"])) / len(question["evidence"])


def print_row(name: str, found: Mapping[int, Sequence[float]], took: Sequence[float] | None) -> None:
    """By category, with latencies in milliseconds if they were taken."""
    every = statistics.fmean(value for values in found.values() for value in values)
    parts = ", ".join(f"{statistics.fmean(found[category]):.3f}" for category in sorted(found))
    times = f"{statistics.median(took):.1f} | {statistics.quantiles(took, n=20)[-1]:.1f}" if took else "|"
    print(f"| {name} | {every:.3f} | {parts} | {times} |", flush=True)


if __name__ == "__main__":
    main()
