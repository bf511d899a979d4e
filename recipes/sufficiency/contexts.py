"""Makes contexts labelled by whether they carry the answer: questions with their gold passages, and without."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

from meve import Context, Retriever
from meve.components.embedders import resolve_embedder
from meve.components.verifiers import load_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder, DiskCachedVerifier
from meve.evaluation.experiments._experiment import CACHE, SCORES
from meve.evaluation.types import EvaluationSet, Question
from meve.ports import Embedder, Verifier
from meve.types import ContextPassage, Passage

LabelledContext = tuple[str, Context, bool]
"""A question, its retrieved context, and whether the context carries the answer."""
Asked = Sequence[tuple[str, Set[str]]]
"""Questions, each with the ids of its gold passages."""


class NoEstimator:
    """Replaces the estimator, which is still to be fitted."""

    name, threshold = "none", 0.5

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0


def retrieve_with_and_without_gold(
    passages: Sequence[Passage], asked: Asked, *, embedder: str | None, verifier: str | None, cache: Path
) -> Iterator[LabelledContext]:
    """Yield each question over all passages, and over the passages without its gold ones.

    A context carries the answer if it holds all gold passages. Passages are embedded once.
    """
    retriever = _retriever(passages, _open(embedder, verifier, cache))
    for question, gold in asked:
        yield _retrieve_labelled(retriever, question, gold)
        removed = [retriever.get(i) for i in gold]
        retriever.update(remove=[p.id for p in removed])
        yield _retrieve_labelled(retriever, question, gold)
        retriever.update(add=removed)


def retrieve_answered_or_not(
    passages: Sequence[Passage], asked: Asked, *, embedder: str | None, verifier: str | None, cache: Path
) -> Iterator[LabelledContext]:
    """Yield each question over all passages; a context carries the answer if the question has a gold passage."""
    retriever = _retriever(passages, _open(embedder, verifier, cache))
    for question, gold in asked:
        yield question, retriever.retrieve(question, fill=False), bool(gold)


def retrieve_from_pools(
    chosen: EvaluationSet, questions: Sequence[Question], *, embedder: str | None, verifier: str | None, cache: Path
) -> Iterator[LabelledContext]:
    """Yield each question over the passages that came with it, which may or may not suffice for its answer."""
    models = _open(embedder, verifier, cache)
    by_id = {p.id: p for p in chosen.passages}
    for question in questions:
        retriever = _retriever([by_id[i] for i in question.pool or ()], models)
        yield question.text, retriever.retrieve(question.text, fill=False), question.answerable


def _open(embedder: str | None, verifier: str | None, cache: Path) -> tuple[Embedder, Verifier]:
    return (
        DiskCachedEmbedder(resolve_embedder(embedder), cache / CACHE),
        DiskCachedVerifier(load_verifier(verifier), cache / SCORES),
    )


def _retriever(passages: Sequence[Passage], models: tuple[Embedder, Verifier]) -> Retriever:
    retriever = Retriever.from_passages(passages, embedder=models[0], verifier=models[1])
    retriever.engine = replace(retriever.engine, estimator=NoEstimator())
    return retriever


def _retrieve_labelled(retriever: Retriever, question: str, gold: Set[str]) -> LabelledContext:
    context = retriever.retrieve(question, fill=False)
    return question, context, gold <= {p.passage.id for p in context.passages}
