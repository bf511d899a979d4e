"""The public face: a pipeline over a corpus. Add, remove, retrieve, save, load."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from meve._vectors import checked_vectors
from meve.calibration.fitting import CalibrationReport, calibrate
from meve.clock import Clock
from meve.components.dense import DenseKind, dense_class, make_dense
from meve.components.embedders import resolve_embedder
from meve.components.lexical import lexical_class, make_lexical
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import resolve_verifier
from meve.errors import EmptyCorpusError, IndexMismatchError, StorageError, ValidationError
from meve.filters import Where, check_where
from meve.pipeline._preparation import Progress, as_passages, checked, counted, embedded
from meve.pipeline.config import Overrides, RetrieverConfig, checked_config
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, Tokens, make_engine
from meve.pipeline.pipeline import check_query
from meve.pipeline.trace import Observer
from meve.ports import DenseIndex, Embedder, Estimator, LexicalIndex, Prior, Source, TokenCounter, Verifier
from meve.retrieval._corpus import Corpus
from meve.retrieval._persistence import check_embedder, load_corpus, save_corpus
from meve.retrieval._sources import DenseSource, LexicalSource
from meve.types import FloatArray, LabelledPair, LexicalKind, Passage, Query

RESERVED = "meve."
"""What names of extra data begin with that are MeVe's own."""


class Retriever(Engine):
    """Five-phase retrieval over passages of its own. Threads may share one.

    A retrieval sees one state of the corpus from beginning to end; a change waits for the retrievals under way, and
    the next one sees it whole.

    >>> from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
    >>> retriever = Retriever.from_texts(
    ...     ["The sky is blue.", "Grass is green."],
    ...     embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(),
    ... )
    >>> context = retriever.retrieve("blue sky")
    >>> context.text, context.tokens, context.sufficient
    ('The sky is blue.', 4, True)
    """

    def __init__(
        self,
        *,
        corpus: Corpus,
        embedder: Embedder,
        verifier: Verifier,
        tokens: TokenCounter,
        config: RetrieverConfig,
        extra: Mapping[str, Any] | None = None,
        estimator: Estimator | None = None,
        prior: Prior | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            embedder=embedder,
            verifier=verifier,
            tokens=tokens,
            config=config,
            estimator=estimator,
            prior=prior,
            clock=clock,
        )
        self.extra: dict[str, Any] = dict(extra or {})
        self._corpus = corpus
        self._origin: dict[Path, str] = {}
        self._saving = threading.Lock()

    @classmethod
    def empty(
        cls,
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        dense: DenseIndex | DenseKind = "auto",
        lexical: LexicalIndex | LexicalKind | None = None,
        tokens: Tokens | None = None,
    ) -> Self:
        """A retriever without passages, to `add` to.

        Args:
            config: how to decide; by default `RetrieverConfig()`.
            embedder: a part, the name or folder of a sentence-transformers model, `minilm` for the all-MiniLM-L6-v2 of
                the `offline` extra, or None for the static one that ships and needs no torch.
            verifier: a part, the name or folder of a cross-encoder, `cosine` for the calibrated cosine of `minilm`, or
                None for the cross-encoder that ships and needs no torch.
            dense: a part, or a kind of FAISS index; `auto` goes by how many passages come first.
            lexical: a part, or a kind of keyword index; by default what `config` names, or else `bm25`.
            tokens: a part, a tokenizer's name or file, a function from text to a number, or None for what `config`
                names, or else BERT's WordPiece, which ships.

        Raises:
            ConfigurationError: parts that can't work, or an extra that isn't installed.
            ModelError: a model or a tokenizer that can't be had.
        """
        made = make_engine(config=config, embedder=embedder, verifier=verifier, tokens=tokens)
        found, config = made.embedder, made.config
        auto = isinstance(dense, str) and dense == "auto"
        corpus = Corpus(
            dense=make_dense(dense, found.dimension, 0),
            lexical=make_lexical(config.lexical or "bm25" if lexical is None else lexical),
            choose=partial(make_dense, "auto", found.dimension) if auto else None,
        )
        if lexical is not None:  # a part that is given here is the retriever's own, whatever the configuration names
            config = config.override(lexical=None)
        return cls(corpus=corpus, embedder=found, verifier=made.verifier, tokens=made.tokens, config=config)

    @classmethod
    def from_passages(
        cls,
        passages: Iterable[Passage],
        *,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        dense: DenseIndex | DenseKind = "auto",
        lexical: LexicalIndex | LexicalKind | None = None,
        tokens: Tokens | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A retriever over these passages. The parts are those of `empty`.

        Raises:
            EmptyCorpusError: no passages; start with `empty` to add them later.
            ValidationError: ids given twice, blank texts, metadata that can't be saved.
            ConfigurationError: parts that can't work, or an extra that isn't installed.
            ModelError: a model or a tokenizer that can't be had, or that failed.
        """
        listed = list(passages)
        if not listed:
            raise EmptyCorpusError("there are no passages to retrieve from: give some, or use Retriever.empty()")
        retriever = cls.empty(
            config=config,
            embedder=embedder,
            verifier=verifier,
            dense=dense,
            lexical=lexical,
            tokens=tokens,
        )
        retriever.update(add=listed, progress=progress)
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        ids: Sequence[str] | None = None,
        titles: Sequence[str] | None = None,
        metadatas: Sequence[Mapping[str, Any] | None] | None = None,
        config: RetrieverConfig | None = None,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        dense: DenseIndex | DenseKind = "auto",
        lexical: LexicalIndex | LexicalKind | None = None,
        tokens: Tokens | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A retriever over these texts, a passage each, with the ids `p0000000`, `p0000001`, … unless some are given.

        Raises:
            ValidationError: as `from_passages`, or lists of different lengths.
        """
        return cls.from_passages(
            as_passages(texts, ids=ids, titles=titles, metadatas=metadatas),
            config=config,
            embedder=embedder,
            verifier=verifier,
            dense=dense,
            lexical=lexical,
            tokens=tokens,
            progress=progress,
        )

    def retrieve(
        self,
        query: str,
        *,
        config: RetrieverConfig | None = None,
        where: Where | None = None,
        vector: FloatArray | None = None,
        observer: Observer | None = None,
        **overrides: Unpack[Overrides],
    ) -> Context:
        """The verified context for a question, with the account of how it came about.

        Args:
            query: the question.
            config: instead of the retriever's own, for this call.
            where: metadata that a passage must have, in every phase: `{"lang": "en"}`, `{"lang": ["en", "de"]}`, or a
                function of the metadata.
            vector: shape (d,), what the retriever's embedder makes of the question, where that is known already, or of
                what stands for it; None to embed the question.
            observer: told of each phase while it happens.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: blank, not text, or longer than a model's window.
            VectorError: a vector of another dimension, or with NaN or infinity in it.
            ConfigurationError: an unknown option, a value out of range, or a filter that can't be used.
            EmptyCorpusError: there are no passages.
            ModelError: a model failed.
        """
        check_query(query)
        check_where(where)
        if vector is not None:
            vector = checked_vectors(vector, (self.embedder.dimension,), "the question")
        with self._corpus.reading() as corpus:
            settings = self.settings(config, overrides)
            if not len(corpus):
                raise EmptyCorpusError("the corpus is empty: add passages first")
            own = self._counters.named(settings.tokens) is self.tokens
            kind = settings.lexical or corpus.lexical_kinds[0]
            words = corpus.lexical(kind, lambda: make_lexical(settings.lexical or "bm25"))
            by_words = LexicalSource(corpus, words, counted=own)
            sources: dict[str, Source] = {"dense": DenseSource(corpus, counted=own), "lexical": by_words}
            chosen = list(sources.values()) if settings.sources == "hybrid" else [sources[settings.sources]]
            asked = Query(text=query, vector=vector, where=where)
            return self._run(asked, settings, chosen, fallback=by_words, observer=observer)

    def add(self, passages: Iterable[Passage | str], *, progress: Progress | None = None) -> list[str]:
        """Take in passages, or texts that get ids of their own; the very next retrieval finds them.

        Returns:
            Their ids.

        Raises:
            ValidationError: an id that is taken or given twice, a blank text; nothing was added.
        """
        if isinstance(passages, str | Passage):
            raise ValidationError(f"passages is a single {type(passages).__name__}: give a list")
        listed = list(passages)
        fresh = iter(self._corpus.new_ids(sum(isinstance(p, str) for p in listed)))
        named = [Passage(id=next(fresh), text=p) if isinstance(p, str) else p for p in listed]
        self.update(add=named, progress=progress)
        return [p.id for p in named]

    def remove(self, ids: Iterable[str]) -> None:
        """Forget passages; the very next retrieval doesn't find them.

        Raises:
            UnknownIdError: an id that isn't there; nothing was removed.
        """
        self.update(remove=[ids] if isinstance(ids, str) else _listed("ids", ids))

    def update(
        self, *, add: Sequence[Passage] = (), remove: Sequence[str] = (), progress: Progress | None = None
    ) -> None:
        """Remove and add in one step: a retrieval sees all of it or nothing. An id that is removed may be added again.

        Raises:
            ValidationError: ids that are taken, given twice or unknown, blank texts; nothing was changed.
            ModelError: the embedder or the tokenizer failed; nothing was changed.
        """
        add, remove = _listed("add", add), _listed("remove", remove)
        checked(add)
        with self._corpus.reading() as corpus:
            corpus.check(add, remove)
        vectors = embedded([p.content for p in add], self.embedder, progress)
        counts = counted([p.shown for p in add], self.tokens)
        self._corpus.change(add=add, vectors=vectors, tokens=counts, remove=remove)

    def get(self, passage_id: str) -> Passage:
        """The passage of that id.

        Raises:
            UnknownIdError: there is none.
        """
        with self._corpus.reading() as corpus:
            return corpus.get(passage_id)

    def passages(self) -> list[Passage]:
        """Every passage, in the order in which they were added."""
        with self._corpus.reading() as corpus:
            return list(corpus.passages())

    def __contains__(self, passage_id: object) -> bool:
        return passage_id in self._corpus.rows

    def __len__(self) -> int:
        return len(self._corpus)

    def calibrate(
        self,
        pairs: Sequence[LabelledPair],
        *,
        method: Literal["platt", "isotonic"] = "platt",
        precision: float | None = None,
        recall: float | None = None,
        progress: Progress | None = None,
    ) -> CalibrationReport:
        """Fit the verifier's probabilities on labelled pairs of your own, and the threshold for a target, and use them.

        Raises:
            CalibrationError: too few pairs, pairs of one label only, or a target that can't be reached.
        """
        report = calibrate(self.verifier, pairs, method=method, precision=precision, recall=recall, progress=progress)
        with self._corpus.lock.writing():
            self.verifier = self.verifier.with_calibration(report.calibration)
            self.config = self.config.override(threshold=report.threshold)
        return report

    def save(self, path: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write everything to a folder, atomically: whatever happens, it holds the old index or the new one.

        Args:
            path: the folder; made if it isn't there.
            extra: JSON data to keep with the index, replacing what it kept; read back as `extra`. Names that begin
                with `meve.` are MeVe's own, and stay.

        Raises:
            IndexBusyError: somebody else has saved there since this retriever was loaded from it or saved to it.
            StorageError: it can't be written there; what was there before is kept.
        """
        folder = _place(path)
        kept = self._extra_with(extra)
        with self._saving:
            self._corpus.settle()
            with self._corpus.reading() as corpus:
                replacing = self._origin.get(folder)
                generation = save_corpus(
                    folder,
                    corpus,
                    config=self.config,
                    embedder=self.embedder,
                    verifier=self.verifier,
                    tokens=self.tokens,
                    extra=kept,
                    clock=self._clock,
                    replacing=replacing,
                )
            self._origin[folder] = generation
            self.extra = kept

    def _extra_with(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        if extra is None:
            return dict(self.extra)
        if not isinstance(extra, Mapping):
            raise ValidationError(f"extra is {type(extra).__name__}: give a mapping from names to JSON data")
        own = {name: data for name, data in self.extra.items() if str(name).startswith(RESERVED)}
        return {**own, **extra}

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | str | None = None,
        verifier: Verifier | str | None = None,
        tokens: Tokens | None = None,
        config: RetrieverConfig | None = None,
        dense: Callable[[Path], DenseIndex] | None = None,
        lexical: Callable[[Path], LexicalIndex] | None = None,
    ) -> Self:
        """Read an index back, with the models that it was made with.

        Args:
            path: the folder.
            embedder: give the part if the index was made with one of your own; it must make the same vectors.
            verifier: another one than the index was made with, or one of your own, with its own calibration. The saved
                threshold stays; give a `config` for another.
            tokens: one of your own, of the same name as the one that the index was made with.
            config: instead of the saved one.
            dense: what reads the file of a dense index of your own, such as `MyIndex.load`.
            lexical: the same for a keyword index; for an analyzer of your own,
                `partial(Bm25Index.load, analyzer=mine)`.

        Raises:
            StorageError: no index there, or one that is damaged, or of another model or version.
            ModelError: a model that it was made with can't be had.
        """
        path = _place(path)
        saved = load_corpus(
            path,
            lambda kind, file: dense_class(kind).load(file) if dense is None else dense(file),
            lambda kind, file: lexical_class(kind).load(file) if lexical is None else lexical(file),
        )
        found = resolve_embedder(saved.embedder if embedder is None else embedder)
        check_embedder(path, saved, found)
        judge = resolve_verifier(saved.verifier if verifier is None else verifier, found)
        if judge.name == saved.verifier and (verifier is None or isinstance(verifier, str)):
            judge = judge.with_calibration(saved.calibration)
        counter = resolve_tokens(saved.tokens if tokens is None else tokens)
        if counter.name != saved.tokens:
            raise IndexMismatchError(
                f"the index at {path} counted its tokens with {saved.tokens!r}, not {counter.name!r}: "
                f"give that one, or override it for a call with tokens={counter.name!r}"
            )
        made = cls(
            corpus=saved.corpus,
            embedder=found,
            verifier=judge,
            tokens=counter,
            config=checked_config(config or saved.config),
            extra=saved.extra,
        )
        made._origin[path] = saved.generation
        return made

    def info(self) -> dict[str, Any]:
        """What it holds and what it decides with: JSON-ready."""
        return {
            "passages": len(self),
            "embedder": self.embedder.name,
            "dimension": self.embedder.dimension,
            "verifier": self.verifier.name,
            "calibration": self.verifier.calibration.to_dict(),
            "tokens": self.tokens.name,
            "dense": self._corpus.dense.kind,
            "lexical": self._corpus.lexical_kinds,
            "config": self.config.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Retriever({len(self)} passages, embedder={self.embedder.name!r}, verifier={self.verifier.name!r})"


def _place(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError) as cause:
        raise StorageError(f"{path!r:.200} is no place for an index: {cause}") from cause


def _listed(name: str, values: Any) -> list[Any]:  # noqa: ANN401 - anything that may have been given
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValidationError(f"{name} is {values!r:.60}: give a list")
    return list(values)
