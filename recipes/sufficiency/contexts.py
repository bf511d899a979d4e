"""Makes contexts labelled by whether they carry the answer: questions with their gold passages, and without."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from meve import Context, Retriever, RetrieverConfig
from meve.components.embedders import resolve_embedder
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation.types import EvaluationSet, Question
from meve.types import ContextPassage, Progress

LabelledContext = tuple[str, Context, bool]
"""A question, its retrieved context, and whether the context carries the answer."""


class NoEstimator:
    """Replaces the estimator, which is still to be fitted."""

    name, threshold = "none", 0.5

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0


def retrieve_with_and_without_gold(
    chosen: EvaluationSet,
    questions: Sequence[Question],
    *,
    embedder: str | None,
    verifier: str | None,
    cache: Path,
    config: RetrieverConfig | None = None,
    progress: Progress | None = None,
) -> Iterator[LabelledContext]:
    """Yield each question over the whole corpus, and over the corpus without its gold passages.

    A context carries the answer if it holds all gold passages. Passages are embedded once.
    """
    embedder_with_cache = DiskCachedEmbedder(resolve_embedder(embedder), cache)
    retriever = Retriever.from_passages(chosen.passages, embedder=embedder_with_cache, verifier=verifier, config=config)
    retriever.engine = replace(retriever.engine, estimator=NoEstimator())
    for number, question in enumerate(questions):
        yield _retrieve_labelled(retriever, question)
        gold = [retriever.get(i) for i in question.gold]
        retriever.update(remove=list(question.gold))
        yield _retrieve_labelled(retriever, question)
        retriever.update(add=gold)
        if progress:
            progress(number + 1, len(questions))


def retrieve_from_pools(
    chosen: EvaluationSet,
    questions: Sequence[Question],
    *,
    embedder: str | None,
    verifier: str | None,
    cache: Path,
    config: RetrieverConfig | None = None,
) -> Iterator[LabelledContext]:
    """Yield each question over the passages that came with it, which may or may not suffice for its answer."""
    embedder_with_cache = DiskCachedEmbedder(resolve_embedder(embedder), cache)
    by_id = {p.id: p for p in chosen.passages}
    for question in questions:
        pool = [by_id[i] for i in question.pool or ()]
        retriever = Retriever.from_passages(pool, embedder=embedder_with_cache, verifier=verifier, config=config)
        retriever.engine = replace(retriever.engine, estimator=NoEstimator())
        context = retriever.retrieve(question.text)
        yield question.text, context, question.answerable


def _retrieve_labelled(retriever: Retriever, question: Question) -> LabelledContext:
    context = retriever.retrieve(question.text)
    return question.text, context, set(question.gold) <= {p.passage.id for p in context.passages}
