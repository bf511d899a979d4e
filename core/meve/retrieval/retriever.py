"""Retrieve verified context from passages of your own: add, remove, retrieve, save, load."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack, overload

from meve._fork_safety import ForkSafeLock
from meve._not_picklable import NotPicklable
from meve._vectors import validate_vectors
from meve._warn_once import warn_once
from meve.calibration.fitting import CalibrationReport, calibrate
from meve.components.dense import DenseKind, dense_class, make_dense
from meve.components.lexical import lexical_class, make_lexical
from meve.errors import ConfigurationError, EmptyCorpusError, ValidationError
from meve.filters import Where, check_where
from meve.pipeline._preparation import make_passages
from meve.pipeline.config import Overrides, RetrieverConfig, check_keywords
from meve.pipeline.context import Context
from meve.pipeline.engine import Engine, EngineOptions, make_engine
from meve.pipeline.query_check import check_query
from meve.pipeline.trace import Observer
from meve.ports import DenseIndex, LexicalIndex
from meve.retrieval._corpus import Corpus
from meve.retrieval._editable_passages import EditablePassages, as_list
from meve.retrieval._evidence_scores import EvidenceScores, use_calibration
from meve.retrieval._persistence import load_corpus, load_engine, merge_extra, resolve_folder, save_corpus
from meve.retrieval._server_corpus import ServerCorpus
from meve.retrieval._server_corpus.opening import open_corpus
from meve.retrieval._shared_batches import retrieve_together
from meve.retrieval._sources import choose_sources
from meve.types import FloatArray, LabelledPair, LexicalKind, Passage, Progress, Query


class RetrieverOptions(EngineOptions, total=False):
    """The keyword arguments that choose a retriever's components and indexes."""

    dense: DenseIndex | DenseKind
    """A dense index, or the kind of a FAISS index; by default `auto`, chosen by the number of first passages."""
    lexical: LexicalIndex | LexicalKind | None
    """A keyword index or its kind; by default the kind that `config` names, else `bm25`."""


class Retriever(EditablePassages, NotPicklable):
    """Five-phase retrieval over passages of your own. Threads may share one.

    A retrieval sees one state of the corpus from beginning to end. A change waits for running retrievals, and is
    visible as a whole to the next one.

    >>> from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
    >>> retriever = Retriever.from_texts(
    ...     ["The sky is blue.", "Grass is green."],
    ...     embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(),
    ... )
    >>> context = retriever.retrieve("blue sky")
    >>> context.text, context.tokens, context.sufficient
    ('The sky is blue.', 4, True)
    """

    _instead = "for another process, call save(folder) here and Retriever.load(folder) there"

    @overload
    def __init__(self, *, engine: Engine, corpus: Corpus | ServerCorpus) -> None: ...

    @overload
    def __init__(self, *, engine: Engine, corpus: Corpus | ServerCorpus, extra: Mapping[str, Any] | None) -> None: ...

    def __init__(
        self,
        *given: object,
        engine: Engine | None = None,
        corpus: Corpus | ServerCorpus | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if given or engine is None or corpus is None:
            raise ConfigurationError(
                "a retriever is made by Retriever.from_texts(texts), from_passages(passages), empty(), load(path) or "
                f"over(url), got Retriever{given!r:.80}"
            )
        super().__init__(engine, corpus)
        self.extra: dict[str, Any] = dict(extra or {})
        self._generations: dict[Path, str] = {}
        self._saving = ForkSafeLock()

    @classmethod
    def empty(
        cls,
        *,
        dense: DenseIndex | DenseKind = "auto",
        lexical: LexicalIndex | LexicalKind | None = None,
        **options: Unpack[EngineOptions],
    ) -> Self:
        """Return a retriever without passages, to `add` to; `RetrieverOptions` lists the options.

        Raises:
            ConfigurationError: components that don't work together, or an extra that isn't installed.
            ModelError: a model or a tokenizer that isn't available.
        """
        check_keywords(cls.empty, options)
        engine = make_engine(**options)
        dimension = engine.embedder.dimension
        is_auto = isinstance(dense, str) and dense == "auto"
        corpus = Corpus(
            dense=make_dense(dense, dimension, 0),
            lexical=make_lexical(engine.config.lexical or "bm25" if lexical is None else lexical),
            choose=partial(make_dense, "auto", dimension) if is_auto else None,
        )
        if lexical is not None:  # a given index is the retriever's own, whatever the configuration names
            engine = replace(engine, config=engine.config.override(lexical=None))
        return cls(engine=engine, corpus=corpus)

    @classmethod
    def from_passages(
        cls, passages: Iterable[Passage], *, progress: Progress | None = None, **options: Unpack[RetrieverOptions]
    ) -> Self:
        """Return a retriever over these passages; `RetrieverOptions` lists the options.

        Raises:
            EmptyCorpusError: no passages; start with `empty` to add them later.
            ValidationError: repeated ids, blank texts, or metadata that can't be saved.
            ConfigurationError: components that don't work together, or an extra that isn't installed.
            ModelError: a model or a tokenizer that isn't available, or that failed.
        """
        check_keywords(cls.from_passages, options)
        if not isinstance(passages, Iterable):
            raise ValidationError(f"passages must be a list of passages, got {type(passages).__name__}")
        listed = list(passages)
        if not listed:
            raise EmptyCorpusError("passages must not be empty: give at least one, or use Retriever.empty()")
        retriever = cls.empty(**options)
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
        progress: Progress | None = None,
        **options: Unpack[RetrieverOptions],
    ) -> Self:
        """Return a retriever over these texts, one passage each; `RetrieverOptions` lists the options.

        Args:
            texts: the texts.
            ids: one per text; by default `p0000000`, `p0000001`, …
            titles: one per text; by default none.
            metadatas: one per text; by default none.
            progress: called with how many passages are embedded, and how many there are.

        Raises:
            ValidationError: as `from_passages`, or lists of different lengths.
        """
        check_keywords(cls.from_texts, options)
        passages = make_passages(texts, ids=ids, titles=titles, metadatas=metadatas)
        return cls.from_passages(passages, progress=progress, **options)

    @classmethod
    def over(cls, url: str, *, collection: str, **options: Unpack[EngineOptions]) -> Self:
        """Return a retriever over passages that a server keeps and searches, by vectors and by words.

        Nothing of the corpus is kept in this process. The collection is created if it doesn't exist.

        Args:
            url: `postgresql://user@host:port/database`, `qdrant://host:port`, or `qdrant:///folder` and
                `qdrant://:memory:` for Qdrant inside this process.
            collection: the name of the passages there; several retrievers and processes may share them.
            options: components and settings. The embedder and `tokens` must be those of the collection, which are
                the default. Settings and calibration aren't stored there.

        Raises:
            ConfigurationError: an invalid URL or name, or an extra that isn't installed.
            IndexMismatchError: a collection of another embedder or tokenizer.
            StorageError: the server can't be used, or the collection isn't one of MeVe's.
            ModelError: a model or a tokenizer that isn't available.
        """
        check_keywords(cls.over, options)
        engine, corpus = open_corpus(url, collection, options)
        return cls(engine=engine, corpus=corpus)

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
        """Return the verified context for a question, with its trace.

        Args:
            query: the question.
            config: replaces the retriever's own for this call.
            where: metadata that a passage must have, in every phase: `{"lang": "en"}`, `{"lang": ["en", "de"]}`,
                `{"year": {"$gte": 2000}}` (see `meve.filters`), or a function of the metadata.
            vector: the embedding of the question, shape (d,), if it is known already; None to embed the question.
            observer: called when a phase begins and ends.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            QueryError: a blank query, one that isn't text, or one of more than 4,096 tokens.
            VectorError: a vector of another dimension, or with NaN or infinity.
            ConfigurationError: an unknown option, a value out of range, or an invalid filter.
            EmptyCorpusError: there are no passages.
            StorageError: the server that keeps the passages failed.
            ModelError: a model failed.
        """
        check_keywords(self.retrieve, overrides)
        check_query(query)
        check_where(where)
        if vector is not None:
            vector = validate_vectors(vector, (self.embedder.dimension,), "the question")
        with self._corpus.lock.reading():
            settings = self._resolve(config, overrides)
            return self._run(self.engine, Query(text=query, vector=vector, where=where), settings, observer)

    async def aretrieve(
        self,
        query: str,
        *,
        config: RetrieverConfig | None = None,
        where: Where | None = None,
        vector: FloatArray | None = None,
        observer: Observer | None = None,
        **overrides: Unpack[Overrides],
    ) -> Context:
        """Run `retrieve` in a thread, without blocking the event loop; several questions may run at the same time."""
        run = partial(self.retrieve, query, config=config, where=where, vector=vector, observer=observer)
        return await asyncio.to_thread(run, **overrides)

    def retrieve_many(
        self,
        queries: Sequence[str],
        *,
        config: RetrieverConfig | None = None,
        where: Where | None = None,
        **overrides: Unpack[Overrides],
    ) -> list[Context]:
        """Return the contexts of several questions, in their order, over one state of the corpus.

        The questions run at the same time, up to 16 of them, and a cross-encoder reads the pairs of all in common
        batches. A `deadline` begins for each question when that question does. The first four passages of all questions
        are read in any case, and together, so each question may wait for those of others.

        Args:
            queries: the questions.
            config: as for `retrieve`, like `where` and the overrides, for all questions.
            where: as for `retrieve`.
            overrides: any value of `RetrieverConfig`, by name.

        Raises:
            ValidationError: `queries` is a single text.
            MeveError: as `retrieve`; the error of the first question that failed.
        """
        check_keywords(self.retrieve_many, overrides)
        listed = as_list("queries", queries)
        for query in listed:
            check_query(query)
        check_where(where)
        with self._corpus.lock.reading():
            settings = self._resolve(config, overrides)

            def run(engine: Engine, question: Query) -> Context:
                with self._corpus.lock.joining():
                    return self._run(engine, question, settings, None)

            return retrieve_together(self.engine, [Query(text=each, where=where) for each in listed], run)

    def _resolve(self, config: RetrieverConfig | None, overrides: Mapping[str, Any]) -> RetrieverConfig:
        settings = self.engine.resolve_config(config, overrides)
        if not len(self._corpus):
            raise EmptyCorpusError("the corpus is empty: add passages first")
        return settings

    def _run(self, engine: Engine, question: Query, settings: RetrieverConfig, observer: Observer | None) -> Context:
        dense, lexical = self._corpus.sources(settings, counted=engine.counter(settings) is engine.tokens)
        unknown = self._corpus.explain_unknown_names(question.where)
        for name, sentence in unknown.items():
            warn_once(f"where {name}", sentence)
        return engine.run(
            question,
            settings,
            choose_sources(dense, lexical, settings.sources),
            fallback=lexical,
            notes={"warnings": [*unknown.values()]} if unknown else None,
            observer=observer,
        )

    def calibrate(
        self,
        pairs: Sequence[LabelledPair],
        *,
        method: Literal["platt", "isotonic"] = "platt",
        precision: float | None = None,
        recall: float | None = None,
        progress: Progress | None = None,
    ) -> CalibrationReport:
        """Fit the probabilities and the threshold to labelled pairs, and use them from now on.

        Where evidence decides, as by default, its sums are calibrated, and its weights stay; a text that isn't among
        the results for its query counts without keywords. Elsewhere the verifier is calibrated. The estimate of
        sufficiency goes on reading the probabilities from before. `warnings` of the report says whether there were
        enough relevant pairs, and whether the threshold keeps them.

        Raises:
            CalibrationError: too few pairs, pairs of one label only, or an unreachable target.
        """
        combiner = self.engine.make_scorer().combiner
        judge = self.verifier if combiner is None else EvidenceScores(self.engine, combiner, self._corpus)
        report = calibrate(judge, pairs, method=method, precision=precision, recall=recall, progress=progress)
        with self._corpus.lock.writing():
            self.engine = use_calibration(self.engine, report)
        return report

    def save(self, path: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write everything to a folder atomically: after a crash it holds the old index or the new one.

        Args:
            path: the folder; created if missing.
            extra: JSON data to store with the index in place of the attribute `extra`; names that begin with `meve.`
                are reserved and stay.

        Raises:
            ConfigurationError: the passages are on a server.
            IndexBusyError: another process has saved there since this retriever last loaded or saved it.
            PassageError: models are sent another text of a passage than embedders; the old contents are kept.
            StorageError: the folder can't be written; its old contents are kept.
        """
        if isinstance(self._corpus, ServerCorpus):
            raise ConfigurationError(f"{self._corpus.server.name} keeps its passages itself: there is nothing to save")
        folder, extra = resolve_folder(path), merge_extra(self.extra, extra)
        with self._saving:
            self._corpus.finish_removals()
            with self._corpus.lock.reading():
                replacing = self._generations.get(folder)
                self._generations[folder] = save_corpus(
                    folder, self._corpus, self.engine, extra=extra, replacing=replacing
                )
            self.extra = extra

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        dense: Callable[[Path], DenseIndex] | None = None,
        lexical: Callable[[Path], LexicalIndex] | None = None,
        **options: Unpack[EngineOptions],
    ) -> Self:
        """Read an index from disk, with the models that it was saved with.

        Args:
            path: the folder.
            dense: reads the file of a dense index of your own, such as `MyIndex.load`.
            lexical: reads the file of a keyword index of your own; for your own analyzer,
                `partial(Bm25Index.load, analyzer=mine)`.
            options: components of your own, or others than the saved ones. The embedder must make the same
                vectors, and `tokens` must have the same name. Another verifier brings its own calibration, and so does
                an object with a fitted one, while the saved threshold stays unless `config` or `threshold` gives
                another.

        Raises:
            StorageError: no index there, or one that is damaged, or of another model or version.
            ModelError: a saved model isn't available.
        """
        check_keywords(cls.load, options)
        path = resolve_folder(path)
        saved = load_corpus(
            path,
            lambda kind, file: dense_class(kind).load(file) if dense is None else dense(file),
            lambda kind, file: lexical_class(kind).load(file) if lexical is None else lexical(file),
        )
        retriever = cls(engine=load_engine(path, saved, **options), corpus=saved.corpus, extra=saved.extra)
        retriever._generations[path] = saved.generation
        return retriever

    def info(self) -> dict[str, Any]:
        """Return counts, models and settings as JSON-ready data."""
        return {
            "passages": len(self),
            "embedder": self.embedder.name,
            "dimension": self.embedder.dimension,
            "verifier": self.verifier.name,
            "calibration": self.engine.make_scorer().calibration.to_dict(),
            "tokens": self.tokens.name,
            **self._corpus.describe(),
            "config": self.config.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Retriever({len(self)} passages, embedder={self.embedder.name!r}, verifier={self.verifier.name!r})"
