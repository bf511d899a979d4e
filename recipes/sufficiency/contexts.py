"""Contexts of which it is known whether they carry an answer: a question asked with its gold passages, and without."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from meve import Context, Retriever, RetrieverConfig
from meve.components.embedders import resolve_embedder
from meve.evaluation._embedding_cache import CachedEmbedder
from meve.evaluation.types import EvaluationSet, Question
from meve.types import ContextPassage

DialogueQuestion = tuple[str, Context, bool]
"""A question, what was retrieved for it, and whether that carries the answer."""
Progress = Callable[[int, int], None]


class Unasked:
    """In place of the estimate that is still to be fitted."""

    name, threshold = "unasked", 0.5

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:  # noqa: ARG002
        """Nothing."""
        return 0.0


def asked_twice(
    chosen: EvaluationSet,
    questions: Sequence[Question],
    *,
    embedder: str | None,
    verifier: str | None,
    cache: Path,
    config: RetrieverConfig | None = None,
    progress: Progress | None = None,
) -> Iterator[DialogueQuestion]:
    """Each question over the whole corpus, and over the corpus without its gold passages.

    What is retrieved carries the answer where all gold passages stand in it: a corpus that holds them is of no use to a
    reader whose context lacks them. Passages are embedded once.
    """
    kept = CachedEmbedder(resolve_embedder(embedder), cache)
    retriever = Retriever.from_passages(chosen.passages, embedder=kept, verifier=verifier, config=config)
    retriever.engine = replace(retriever.engine, estimator=Unasked())
    for done, question in enumerate(questions):
        yield _told(retriever, question)
        gold = [retriever.get(i) for i in question.gold]
        retriever.update(remove=list(question.gold))
        yield _told(retriever, question)
        retriever.update(add=gold)
        if progress:
            progress(done + 1, len(questions))


def asked_of_pools(
    chosen: EvaluationSet,
    questions: Sequence[Question],
    *,
    embedder: str | None,
    verifier: str | None,
    cache: Path,
    config: RetrieverConfig | None = None,
) -> Iterator[DialogueQuestion]:
    """Each question over the passages that came with it, which hold all that its answer needs, or don't."""
    kept = CachedEmbedder(resolve_embedder(embedder), cache)
    known = {p.id: p for p in chosen.passages}
    for question in questions:
        pool = [known[i] for i in question.pool or ()]
        retriever = Retriever.from_passages(pool, embedder=kept, verifier=verifier, config=config)
        retriever.engine = replace(retriever.engine, estimator=Unasked())
        context = retriever.retrieve(question.text)
        yield question.text, context, question.answerable


def _told(retriever: Retriever, question: Question) -> DialogueQuestion:
    context = retriever.retrieve(question.text)
    return question.text, context, set(question.gold) <= {p.passage.id for p in context.passages}
