"""Contexts of which it is known whether they carry an answer: questions asked with their gold passages, and without."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from meve import Context, Retriever, RetrieverConfig
from meve.evaluation.cache import CachedEmbedder
from meve.evaluation.types import EvaluationSet, Question
from meve.parts.embedders import resolve_embedder
from meve.types import ContextPassage


class Told(NamedTuple):
    """What became of a question."""

    question: str
    context: Context
    carried: bool
    """Whether all gold passages stand in the context."""
    held: bool
    """Whether they stood in the corpus."""


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
    partly: bool = False,
) -> Iterator[Told]:
    """Each question over the whole corpus, and over the corpus without its gold passages.

    With `partly`, a question of several gold passages is also asked of the corpus without each one of them: what is
    left is near, and not enough. Passages are embedded once.
    """
    kept = CachedEmbedder(resolve_embedder(embedder), cache)
    retriever = Retriever.from_passages(chosen.passages, embedder=kept, verifier=verifier, config=config)
    retriever.estimator = Unasked()
    for done, question in enumerate(questions):
        yield _told(retriever, question, held=True)
        every = sorted(question.gold)
        single = [[i] for i in every] if partly and len(every) > 1 else []
        for lacking in (every, *single):
            gold = [retriever.get(i) for i in lacking]
            retriever.update(remove=lacking)
            yield _told(retriever, question, held=False)
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
) -> Iterator[Told]:
    """Each question over the passages that came with it, which hold all that its answer needs, or don't."""
    kept = CachedEmbedder(resolve_embedder(embedder), cache)
    known = {p.id: p for p in chosen.passages}
    for question in questions:
        pool = [known[i] for i in question.pool or ()]
        retriever = Retriever.from_passages(pool, embedder=kept, verifier=verifier, config=config)
        retriever.estimator = Unasked()
        context = retriever.retrieve(question.text)
        yield Told(question.text, context, question.answerable, question.answerable)


def _told(retriever: Retriever, question: Question, *, held: bool) -> Told:
    context = retriever.retrieve(question.text)
    return Told(question.text, context, set(question.gold) <= {p.passage.id for p in context.passages}, held)
