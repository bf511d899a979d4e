"""Score labelled texts by the evidence that a retrieval from a corpus has for them."""

from collections.abc import Sequence
from dataclasses import replace

from meve.calibration.fitting import CalibrationReport
from meve.pipeline._candidate_vectors import with_query_vector, with_vectors
from meve.pipeline.engine import Engine
from meve.pipeline.phases.retrieve import retrieve
from meve.ports import Calibration, EvidenceCombiner
from meve.retrieval._corpus import Corpus
from meve.retrieval._server_corpus import ServerCorpus
from meve.retrieval._sources import choose_sources
from meve.types import Candidate, FloatArray, Passage, Query


class EvidenceScores:
    """An engine's verdicts before calibration: the weighted sums of logit, cosine and keyword share.

    A text that the search finds has the vector and the keyword share that a retrieval would use, and its title. Others
    are embedded, and have no keyword share.

    Args:
        engine: scores the texts.
        evidence: weighs the inputs.
        corpus: the passages that are searched.
    """

    def __init__(self, engine: Engine, evidence: EvidenceCombiner, corpus: Corpus | ServerCorpus) -> None:
        self._engine, self._evidence, self._corpus = engine, evidence, corpus
        dense, lexical = corpus.sources(engine.config, counted=False)
        self._sources = choose_sources(dense, lexical, engine.config.sources)
        self._scorer = engine.make_scorer()

    @property
    def calibration(self) -> Calibration:
        """The calibration of the evidence model."""
        return self._evidence.calibration

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the weighted sums, shape (n,), in the order given.

        Raises:
            QueryError: a query of more than 4,096 tokens.
            ModelError: a model failed.
        """
        asked = with_query_vector(Query(text=query), self._engine.embedder)
        with self._corpus.lock.reading():
            hits = retrieve(asked, self._sources, self._engine.config.candidates)
        found = {c.passage.text: c for c in hits} | {c.passage.content: c for c in hits}
        given = [
            found.get(text) or Candidate(passage=Passage(id=f"pair {n}", text=text), origin="pairs")
            for n, text in enumerate(passages)
        ]
        return self._scorer.sum_evidence(asked, with_vectors(given, self._engine.embedder))


def use_calibration(engine: Engine, report: CalibrationReport) -> Engine:
    """Return the engine with a new threshold and calibration, of the evidence model in use or else of the verifier."""
    config, combiner = engine.config.override(threshold=report.threshold), engine.make_scorer().combiner
    if combiner is None:
        return replace(engine, verifier=engine.verifier.with_calibration(report.calibration), config=config)
    return replace(engine, evidence=combiner.with_calibration(report.calibration), config=config)
