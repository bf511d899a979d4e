"""The memory-recall experiment: evidence among ten memories, beside BM25, vectors and both fused by ranks.

Each conversation is a user, each turn a memory of its session; `talks` describes the kinds of conversations. All
systems read the same text; `bm25, dated` and the memory read the date as well. Times include the question's embedding
and, for the memory, the entry in the audit log. The weights of relevance were chosen on the users at even places, and
the other half is shown apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from meve.clock import Clock
from meve.components.embedders import ACCURATE, resolve_embedder
from meve.components.lexical.bm25 import Bm25Index
from meve.errors import ConfigurationError, EvaluationError
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.experiments.memory.talks import KINDS, EvidenceQuestion, Talk, Turns
from meve.evaluation.peers import import_function
from meve.evaluation.results import collect_versions
from meve.evaluation.systems import build_bm25, fuse_ranks
from meve.memory import GovernedMemory, Policy
from meve.memory._runtime import VERIFY_THRESHOLD
from meve.memory._write.record_factory import make_record
from meve.memory.records import user_key
from meve.ports import Embedder, TokenCounter, Verifier
from meve.types import StageProgress

NAME = "memory recall"
"""The name of the figures about LoCoMo; those of another kind have its name in brackets."""
K, FUSED_DEPTH = 10, 200
"""Memories a question; the depth of the rankings that are fused."""
MEMORY, FUSED = "memory", "both, by reciprocal rank"
RECALL, MS = f"recall@{K}", "ms"
HALVES = ("half for tuning", "other half")
BUDGET = 50_000
"""Tokens of a recall, more than ten of the longest turns have."""
GRID = {"words": (2.0, 4.0, 6.0, 8.0), "before": (0.0, 0.2, 0.4, 0.6), "after": (0.0, 0.3, 0.6)}
"""The weights of relevance that cross-validation chooses from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """The options of the memory-recall experiment."""

    data: Path
    """The folder with the folders `locomo`, `longmemeval` and `mtrag_un`; `own` needs none."""
    kinds: tuple[str, ...] = ("locomo",)
    """The kinds of conversations, of `talks.KINDS`."""
    verify: bool = False
    """Whether to measure the memory with the verifier too, which takes seconds per question."""
    held_out: bool = False
    """Whether to measure weights of relevance that were chosen on the other conversations, which takes minutes."""
    peers: tuple[str, ...] = ()
    """The peers, each as `module:function`, a `MemoryPeer`."""
    embedder: str | None = None
    """A name as for a `Retriever`; None for the default of a memory."""
    seed: int = SEED


MemorySearch: TypeAlias = Callable[[str, str], Sequence[str]]
"""A function from a user and a question to the ids of turns, best first."""

MemoryPeer: TypeAlias = Callable[[Turns], MemorySearch]
"""A foreign memory: a function that stores the turns and returns a search for `K` of them."""


def run_memory_recall(options: RecallOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Ask every system every question about every kind of conversation.

    Raises:
        ConfigurationError: an unknown kind, or a peer that can't be imported.
        DatasetError: a set is absent, truncated or of another format.
        EvaluationError: no question with evidence, or only one conversation for `held_out`.
    """
    if unknown := sorted(set(options.kinds) - KINDS.keys()):
        raise ConfigurationError(f"unknown kind {unknown[0]!r}: choose from {', '.join(map(repr, KINDS))}")
    peers = {
        name: import_function(name, option="--peer", example="benchmarks.peers.mem0_memory:mem0")
        for name in options.peers
    }
    embedder = resolve_embedder(options.embedder, default=ACCURATE)
    settings: dict[str, Any] = {"seed": options.seed, "embedder": embedder.name, "versions": collect_versions()}
    tallies = []
    for kind in options.kinds:
        talk = KINDS[kind](options.data)
        name = NAME if kind == "locomo" else f"{NAME} ({kind})"
        tallies.append(_ask(talk, name, options, embedder, peers, progress))
        settings[kind] = {
            "turns": sum(map(len, talk.turns.values())),
            "users": len(talk.turns),
            "questions": len(talk.questions),
        }
    return MemoryResults.from_tallies("memory-recall", settings, tallies)


def _ask(
    talk: Talk,
    name: str,
    options: RecallOptions,
    embedder: Embedder,
    peers: Mapping[str, MemoryPeer],
    progress: StageProgress,
) -> Tally:
    """Ask every system every question about one kind of conversation."""
    turns, questions = talk.turns, talk.questions
    if options.held_out and len({q.user for q in questions}) < 2:
        raise EvaluationError("held_out needs questions about at least two conversations, got one")
    tally = Tally(name, options.seed, against=MEMORY)
    with open_filled(turns, embedder) as memory:
        searches = {
            **make_baselines(turns, embedder),
            MEMORY: _memory_search(memory),
            **{name: peer(turns) for name, peer in peers.items()},
            **({"memory, verified": _memory_search(memory, verify=True)} if options.verify else {}),
        }
        for system, search in searches.items():
            recalls = []
            for n, question in enumerate(questions):
                progress(system, n, len(questions))
                ids = tally.time(system, MS, lambda: search(question.user, question.text))  # noqa: B023 - called at once
                recalls.append(_evidence_share(question, ids))
            _tally_recalls(tally, system, talk, recalls)
        if options.held_out:
            _cross_validate(memory, talk, tally, progress)
    return tally


def make_baselines(turns: Turns, embedder: Embedder, k: int = K) -> dict[str, MemorySearch]:
    """Return plain searches of the k best turns, by name: BM25, vectors, and both fused by reciprocal ranks."""
    plain = {user: build_bm25([t.text for t in own]) for user, own in turns.items()}
    dated = {user: build_bm25([f"{t.text} {t.at:%d %B %Y}" for t in own]) for user, own in turns.items()}
    vectors = {user: np.asarray(embedder.embed_passages([t.text for t in own])) for user, own in turns.items()}

    def by_words(indexes: Mapping[str, Bm25Index], user: str, question: str, k: int) -> list[int]:
        rows: list[int] = indexes[user].search(question, k)[0].tolist()
        return rows

    def by_vectors(user: str, question: str, k: int) -> list[int]:
        rows: list[int] = np.argsort(-(vectors[user] @ embedder.embed_query(question)), kind="stable")[:k].tolist()
        return rows

    def fused(user: str, question: str) -> list[int]:
        rankings = by_words(plain, user, question, FUSED_DEPTH), by_vectors(user, question, FUSED_DEPTH)
        return fuse_ranks(*rankings)[:k]

    def search(rows: Callable[[str, str], Sequence[int]]) -> MemorySearch:
        return lambda user, question: [turns[user][row].id for row in rows(user, question)]

    return {
        "bm25": search(lambda user, question: by_words(plain, user, question, k)),
        "bm25, dated": search(lambda user, question: by_words(dated, user, question, k)),
        "vectors": search(lambda user, question: by_vectors(user, question, k)),
        FUSED: search(fused),
    }


@contextmanager
def open_filled(
    turns: Turns,
    embedder: Embedder,
    *,
    verifier: Verifier | str | None = None,
    tokens: TokenCounter | None = None,
    clock: Clock | None = None,
    cached_recalls: int = 0,
    verify_threshold: float = VERIFY_THRESHOLD,
) -> Iterator[GovernedMemory]:
    """Open a new memory that holds each turn as a memory of its session, and is deleted afterwards."""
    policy = _policy({}, cached_recalls=cached_recalls)
    with (
        TemporaryDirectory() as folder,
        GovernedMemory.open(
            Path(folder) / "memory.db",
            policy=policy,
            embedder=embedder,
            verifier=verifier,
            tokens=tokens,
            clock=clock,
            verify_threshold=verify_threshold,
        ) as memory,
    ):
        runtime = memory._runtime
        for user, own in turns.items():
            with runtime.store.writing() as transaction:
                for turn in own:
                    record = make_record(
                        turn.text, user_id=user, source=turn.source, policy_class="canonical", id=turn.id,
                        session_id=turn.session, policy=policy, now=turn.at, classifier=runtime.classifier,
                        tagger=runtime.tagger,
                    )  # fmt: skip
                    transaction.insert(user_key(user), runtime.stored(record))
        yield memory


def _policy(relevance: Mapping[str, float], *, cached_recalls: int = 0) -> Policy:
    # most experiments ask each question once, so a cache would only take memory
    limits = {"recalls": cached_recalls}
    return Policy.from_dict({"limits": limits, "chat_ttl": None, "relevance": relevance})


def _memory_search(memory: GovernedMemory, *, verify: bool = False) -> MemorySearch:
    def search(user: str, question: str) -> list[str]:
        recall = memory.search(question, user_id=user, limit=K, max_tokens=BUDGET, verify=verify)
        return [record.id for record in recall.records]

    return search


def _cross_validate(memory: GovernedMemory, talk: Talk, tally: Tally, progress: StageProgress) -> None:
    """Tally each conversation's recall, with the weights of `GRID` that are best on the other conversations."""
    questions = talk.questions
    combinations = list(product(*GRID.values()))
    recalls: dict[tuple[float, ...], np.ndarray] = {}
    for n, weights in enumerate(combinations):
        progress("weights", n, len(combinations))
        policy = _policy(dict(zip(GRID, weights, strict=True)))
        with GovernedMemory.open(memory.file, policy=policy, embedder=memory._runtime.embedder) as other:
            search = _memory_search(other)
            recalls[weights] = np.array([_evidence_share(q, search(q.user, q.text)) for q in questions])
    users = np.array([q.user for q in questions])
    held_out = []
    for n, question in enumerate(questions):
        others = users != question.user
        best = max(recalls, key=lambda weights: float(recalls[weights][others].mean()))
        held_out.append(float(recalls[best][n]))
    _tally_recalls(tally, "memory, weights of other conversations", talk, held_out)


def _evidence_share(question: EvidenceQuestion, ids: Sequence[str]) -> float:
    return len(question.evidence & set(ids)) / len(question.evidence)


def _tally_recalls(tally: Tally, system: str, talk: Talk, recalls: Sequence[float]) -> None:
    users = list(talk.turns)
    for question, recall in zip(talk.questions, recalls, strict=True):
        tally.add(system, RECALL, recall)
        tally.add(system, f"{RECALL}, {HALVES[users.index(question.user) % 2]}", recall)
    for question, recall in sorted(zip(talk.questions, recalls, strict=True), key=lambda pair: pair[0].category):
        if question.category:
            tally.add(system, f"{RECALL}, category {question.category}", recall)
