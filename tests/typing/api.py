"""Code as users write it; never run, only type-checked, strictly."""

from collections.abc import Sequence
from typing import assert_type

import meve
from meve.components.dense.flat import FlatIndex
from meve.components.dense.hnsw import HnswIndex
from meve.components.dense.ivf import IvfIndex
from meve.components.embedders.minilm import minilm
from meve.components.entities.composite import SeveralEntities
from meve.components.entities.dates import DateEntities
from meve.components.entities.patterns import PatternEntities
from meve.components.entities.spacy import SpacyEntities
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers.cosine import CosineVerifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.dialogue import Dialogue, small_context
from meve.memory import GovernedMemory, Recall
from meve.memory.conversation.turns import Conversed, Said, conversed
from meve.pipeline._scorers import SimilarityScorer, VerifierScorer
from meve.ports import (
    DenseIndex,
    Embedder,
    EntityDetector,
    LexicalIndex,
    Scorer,
    Source,
    TokenCounter,
    VectorVerifier,
    Verifier,
)
from meve.retrieval._sources import DenseSource, LexicalSource
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


def every_part_fits_its_port(dense: DenseSource, lexical: LexicalSource) -> None:
    """Protocols hold without inheritance."""
    embedders: Sequence[Embedder] = [WordEmbedder(), minilm()]
    cosine = CosineVerifier.minilm(embedders[1])
    verifiers: Sequence[Verifier] = [OverlapVerifier(), cosine, CrossEncoderVerifier.from_name("name")]
    by_vectors: VectorVerifier = cosine
    tokens: Sequence[TokenCounter] = [WordCounter(), resolve_tokens("gpt2"), resolve_tokens(len)]
    indexes: Sequence[DenseIndex] = [FlatIndex(2), HnswIndex(2), IvfIndex(2)]
    words: Sequence[LexicalIndex] = [Bm25Index(), RankBm25Index()]
    sources: Sequence[Source] = [dense, lexical]
    scorers: Sequence[Scorer] = [SimilarityScorer(), VerifierScorer(verifiers[0])]
    entities: Sequence[EntityDetector] = [PatternEntities(), DateEntities(), SpacyEntities.from_rules()]
    assert SeveralEntities(entities)
    assert by_vectors, (tokens, indexes, words, sources, scorers)


def a_retriever_as_users_write_it() -> None:
    """Names, defaults and results have types."""
    retriever = meve.Retriever.from_texts(["a text"], embedder=WordEmbedder(), tokens=len, dense="flat")
    context = retriever.retrieve("question", max_tokens=100, mode="no_fallback", where={"lang": ["en"]})
    assert_type(context.text, str)
    assert_type(context.sufficient, bool)
    assert_type(context.passages[0].passage.id, str)
    assert_type(context.passages[0].score, float | None)
    retriever.retrieve("question", thresold=0.4)  # type: ignore[call-arg]
    retriever.retrieve("question", mode="fuller")  # type: ignore[arg-type]


async def a_memory_as_async_callers_use_it(memory: GovernedMemory) -> None:
    """What works aside keeps its types."""
    recall = await memory.aside(memory.search, "question", user_id="ann", without=["shown"])
    assert_type(recall, Recall)
    turns = [Said(id="m1", role="user", text="I like tea.")]
    assert_type(await memory.aside(conversed, memory, turns, user_id="ann", recall=recall, answer="Tea."), Conversed)
    await memory.aside(memory.search, "question")  # type: ignore[call-arg]


def a_small_context_as_users_write_it() -> None:
    """Records of every kind; the context and its account have types."""
    dialogue = Dialogue.from_turns([{"speaker": "A", "text": "…", "time": None}, ("B", "…"), "…"], entities="patterns")
    context = small_context(dialogue, "When?", max_tokens=2048)
    assert_type(context.text, str)
    assert_type(context.trace.anchors, tuple[int, ...])
    assert_type(context.trace.dropped[0].reason, str)
    small_context(dialogue, "When?", windows=3)  # type: ignore[call-arg]
