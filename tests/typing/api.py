"""Type-check code as users write it; this file is never run."""

from collections.abc import Sequence
from typing import assert_type

import meve
from meve.components.dense.flat import FlatIndex
from meve.components.dense.hnsw import HnswIndex
from meve.components.dense.ivf import IvfIndex
from meve.components.dense.rabitq import RabitqIndex
from meve.components.embedders.minilm import load_minilm
from meve.components.entities.composite import CompositeEntities
from meve.components.entities.dates import DateEntities
from meve.components.entities.patterns import PatternEntities
from meve.components.entities.spacy import SpacyEntities
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers.cosine import CosineVerifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.conversation import Turn
from meve.dialogue import Dialogue, build_small_context
from meve.memory import GovernedMemory, Recall
from meve.memory.turns import RecordedTurns, record_turns
from meve.pipeline._scorers import SimilarityScorer, VerifierScorer
from meve.ports import (
    DenseIndex,
    Embedder,
    EntityDetector,
    LexicalIndex,
    PairVerifier,
    Scorer,
    SentenceVerifier,
    Source,
    TokenCounter,
    VectorVerifier,
    Verifier,
)
from meve.retrieval._sources import DenseSource, LexicalSource
from meve.routing import MemoryRouter, RoutedAnswer, RoutedRecall, RouterConfig, Tier
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def check_components_fit_their_protocols(dense: DenseSource, lexical: LexicalSource) -> None:
    embedders: Sequence[Embedder] = [WordEmbedder(), load_minilm()]
    cosine = CosineVerifier.for_minilm(embedders[1])
    verifiers: Sequence[Verifier] = [OverlapVerifier(), cosine, CrossEncoderVerifier.from_name("name")]
    by_vectors: VectorVerifier = cosine
    by_pairs: PairVerifier = CrossEncoderVerifier.from_name("name")
    by_sentences: SentenceVerifier = CrossEncoderVerifier.from_name("name")
    tokens: Sequence[TokenCounter] = [WordCounter(), resolve_tokens("gpt2"), resolve_tokens(len)]
    indexes: Sequence[DenseIndex] = [FlatIndex(2), HnswIndex(2), IvfIndex(2), RabitqIndex(2)]
    words: Sequence[LexicalIndex] = [Bm25Index(), RankBm25Index()]
    sources: Sequence[Source] = [dense, lexical]
    scorers: Sequence[Scorer] = [SimilarityScorer(), VerifierScorer(verifiers[0])]
    entities: Sequence[EntityDetector] = [PatternEntities(), DateEntities(), SpacyEntities.from_rules()]
    assert CompositeEntities(entities)
    assert by_vectors, (by_pairs, by_sentences, tokens, indexes, words, sources, scorers)


def check_retriever() -> None:
    retriever = meve.Retriever.from_texts(["a text"], embedder=WordEmbedder(), tokens=len, dense="flat")
    context = retriever.retrieve("question", max_tokens=100, mode="no_fallback", where={"lang": ["en"]})
    assert_type(context.text, str)
    assert_type(context.sufficient, bool)
    assert_type(context.passages[0].passage.id, str)
    assert_type(context.passages[0].score, float | None)
    retriever.retrieve("question", thresold=0.4)  # type: ignore[call-arg]
    retriever.retrieve("question", mode="fuller")  # type: ignore[arg-type]


async def check_async_memory(memory: GovernedMemory) -> None:
    recall = await memory.run_async(memory.search, "question", user_id="ann", without=["shown"])
    assert_type(recall, Recall)
    turns = [Turn(id="m1", speaker="user", text="I like tea.")]
    assert_type(
        await memory.run_async(record_turns, memory, turns, user_id="ann", recall=recall, answer="Tea."), RecordedTurns
    )
    assert_type(await memory.asearch("question", user_id="ann", limit=3), Recall)
    await memory.asearch("question")  # type: ignore[call-arg]
    await memory.run_async(memory.search, "question")  # type: ignore[call-arg]


def check_small_context() -> None:
    dialogue = Dialogue.from_turns([{"speaker": "A", "text": "…", "time": None}, ("B", "…"), "…"], entities="patterns")
    context = build_small_context(dialogue, "When?", max_tokens=2048)
    assert_type(context.text, str)
    assert_type(context.trace.anchors, tuple[int, ...])
    assert_type(context.trace.dropped[0].reason, str)
    build_small_context(dialogue, "When?", windows=3)  # type: ignore[call-arg]


async def check_router(memory: GovernedMemory) -> None:
    router = MemoryRouter(memory, user_id="ann", llm=lambda prompt: prompt, config=RouterConfig(hops=1))
    assert_type(router.plan("question").tier, Tier)
    assert_type(router.recall("question", tier="deep"), RoutedRecall)
    assert_type(await router.aanswer("question"), RoutedAnswer)
    router.recall("question", tiers="deep")  # type: ignore[call-arg]
    RouterConfig(grounding="magic")  # type: ignore[arg-type]
