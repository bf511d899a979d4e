"""Add, remove and look up the passages of a retriever."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from meve.errors import ValidationError
from meve.filters import Where
from meve.pipeline._preparation import check_passages, count_tokens, embed_texts
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import Engine
from meve.ports import Embedder, TokenCounter, Verifier
from meve.retrieval._corpus import Corpus
from meve.retrieval._server_corpus import ServerCorpus
from meve.types import Passage, Progress


class EditablePassages:
    """Passages that are embedded and counted by the engine as they are added.

    Args:
        engine: the models and settings.
        corpus: the passages and their indexes, in this process or on a server.
    """

    def __init__(self, engine: Engine, corpus: Corpus | ServerCorpus) -> None:
        self.engine = engine
        self._corpus = corpus

    @property
    def embedder(self) -> Embedder:
        """The embedder of the engine."""
        return self.engine.embedder

    @property
    def verifier(self) -> Verifier:
        """The verifier of the engine."""
        return self.engine.verifier

    @property
    def tokens(self) -> TokenCounter:
        """The token counter of the engine."""
        return self.engine.tokens

    @property
    def config(self) -> RetrieverConfig:
        """The settings of the engine."""
        return self.engine.config

    def add(self, passages: Iterable[Passage | str], *, progress: Progress | None = None) -> list[str]:
        """Add passages, or texts that get generated ids; the next retrieval finds them.

        Returns:
            The ids.

        Raises:
            ValidationError: a taken or repeated id, or a blank text; nothing was added.
        """
        if isinstance(passages, str | Passage):
            raise ValidationError(f"passages must be a list, got a single {type(passages).__name__}")
        listed = list(passages)
        fresh = iter(self._corpus.new_ids(sum(isinstance(p, str) for p in listed)))
        named = [Passage(id=next(fresh), text=p) if isinstance(p, str) else p for p in listed]
        self.update(add=named, progress=progress)
        return [p.id for p in named]

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; the next retrieval doesn't find them.

        Raises:
            UnknownIdError: an id that isn't there; nothing was removed.
        """
        self.update(remove=[ids] if isinstance(ids, str) else as_list("ids", ids))

    def update(
        self, *, add: Sequence[Passage] = (), remove: Sequence[str] = (), progress: Progress | None = None
    ) -> None:
        """Remove and add in one step: a retrieval sees all of it or nothing. A removed id may be added again.

        In Qdrant, a long change takes several steps, and a retrieval may see some of them.

        Raises:
            ValidationError: taken, repeated or unknown ids, or blank texts; nothing was changed.
            ModelError: the embedder or the tokenizer failed; nothing was changed.
            StorageError: the server that keeps the passages failed.
        """
        add, remove = as_list("add", add), as_list("remove", remove)
        check_passages(add)
        with self._corpus.lock.reading():
            self._corpus.check(add, remove)
        vectors = embed_texts([p.content for p in add], self.embedder, progress)
        counts = count_tokens([p.prompt_text for p in add], self.tokens)
        self._corpus.change(add=add, vectors=vectors, tokens=counts, remove=remove)

    def get(self, passage_id: str) -> Passage:
        """Return the passage of that id.

        Raises:
            UnknownIdError: no passage has that id.
        """
        with self._corpus.lock.reading():
            return self._corpus.get(passage_id)

    def passages(self) -> list[Passage]:
        """Return every passage, in the order in which they were added."""
        with self._corpus.lock.reading():
            return list(self._corpus.passages())

    def iterate(self, where: Where | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits, one after the other; those on a server are read page by page.

        Raises:
            ConfigurationError: an invalid filter, or a function over a server.
        """
        return self._corpus.passages(where)

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that passages have."""
        return self._corpus.known(ids)

    @property
    def is_on_server(self) -> bool:
        """Whether a server keeps the passages."""
        return isinstance(self._corpus, ServerCorpus)

    def close(self) -> None:
        """Close the connections to a server; passages in this process stay as they are."""
        self._corpus.close()

    def __contains__(self, passage_id: object) -> bool:
        return passage_id in self._corpus

    def __len__(self) -> int:
        return len(self._corpus)


def as_list(name: str, values: Any) -> list[Any]:  # noqa: ANN401 - anything that may have been given
    """Return an argument as a list.

    Raises:
        ValidationError: a single text, or no collection.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(f"{name} must be a list, got {values!r:.60}")
    return list(values)
