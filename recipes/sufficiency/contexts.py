"""Makes contexts labelled by whether they carry the answer: questions with their gold passages, and without."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from meve import Context, Retriever
from meve.components.embedders import resolve_embedder
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation.types import EvaluationSet, Question
from meve.ports import Embedder
from meve.types import ContextPassage, Passage

LabelledContext = tuple[str, Context, bool]
"""A question, its retrieved context, and whether the context carries the answer."""


class NoEstimator:
    """Replaces the estimator, which is still to be fitted."""

    name, threshold = "none", 0.5

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0


def retrieve_with_and_without_gold(
    chosen: EvaluationSet, questions: Sequence[Question], *, embedder: str | None, verifier: str | None, cache: Path
) -> Iterator[LabelledContext]:
    """Yield each question over the whole corpus, and over the corpus without its gold passages.

    A context carries the answer if it holds all gold passages. Passages are embedded once.
    """
    retriever = _retriever(chosen.passages, DiskCachedEmbedder(resolve_embedder(embedder), cache), verifier)
    for question in questions:
        yield _retrieve_labelled(retriever, question)
        gold = [retriever.get(i) for i in question.gold]
        retriever.update(remove=list(question.gold))
        yield _retrieve_labelled(retriever, question)
        retriever.update(add=gold)


def retrieve_from_pools(
    chosen: EvaluationSet, questions: Sequence[Question], *, embedder: str | None, verifier: str | None, cache: Path
) -> Iterator[LabelledContext]:
    """Yield each question over the passages that came with it, which may or may not suffice for its answer."""
    cached = DiskCachedEmbedder(resolve_embedder(embedder), cache)
    by_id = {p.id: p for p in chosen.passages}
    for question in questions:
        retriever = _retriever([by_id[i] for i in question.pool or ()], cached, verifier)
        yield question.text, retriever.retrieve(question.text), question.answerable


def _retriever(passages: Sequence[Passage], embedder: Embedder, verifier: str | None) -> Retriever:
    retriever = Retriever.from_passages(passages, embedder=embedder, verifier=verifier)
    retriever.engine = replace(retriever.engine, estimator=NoEstimator())
    return retriever


def _retrieve_labelled(retriever: Retriever, question: Question) -> LabelledContext:
    context = retriever.retrieve(question.text)
    return question.text, context, set(question.gold) <= {p.passage.id for p in context.passages}
