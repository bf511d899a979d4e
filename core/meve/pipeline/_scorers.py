"""Score candidates by a verifier, or by cosine similarity in modes that verify nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from meve._formulas import cosines, log_odds
from meve._vectors import validate_scores
from meve.errors import ModelError, wrap_errors
from meve.pipeline._candidate_vectors import stack_vectors, with_vectors
from meve.pipeline.phases.condense import SplitSentences, find_spans
from meve.ports import Calibration, Embedder, EvidenceCombiner, SentenceVerifier, VectorVerifier, Verifier
from meve.types import Candidate, FloatArray, Query, TextSpans

LONG = 1_200
"""The characters from which a passage exceeds the window of an embedder, of some 250 tokens."""
PROMISING = 0.12
"""The least probability of a passage whose best sentence is embedded too, by the uncalibrated sum of its evidence.
Below, hardly any cosine lifts it to 0.5."""
CHANCE = 0.05
"""How much higher the cosine of a sentence must be to count: of several sentences, one is closer by chance."""
PASSAGE_COSINE = "passage_cosine"
"""The name in the trace for the cosine of a passage that was judged by that of a sentence."""
UNREAD = "unread_windows"
"""The name in the trace for the windows of a very long passage that its verifier left unread."""


class VerifierScorer:
    """The probabilities of a verifier.

    An evidence model, if given, judges by the verifier's logits together with keyword scores and, if it was fitted to
    the embedder, cosines. The cosine of a passage that may answer is at least that of its best sentence, since the
    vector of several topics resembles none of them. A verifier that judges by embeddings uses the stored vectors.

    Args:
        verifier: reads query and passages.
        embedder: the one that made the candidates' vectors; None if that is unknown.
        evidence: combines the verifier's logits with other evidence; None for the verifier alone.
        split: splits a passage into sentences; None to judge passages by their own vectors only.
    """

    name = "verifier"

    def __init__(
        self,
        verifier: Verifier,
        embedder: Embedder | None = None,
        *,
        evidence: EvidenceCombiner | None = None,
        split: SplitSentences | None = None,
    ) -> None:
        self.verifier = verifier
        self._embedder = embedder
        self._split = split
        self._vectors = (
            verifier
            if embedder is not None and isinstance(verifier, VectorVerifier) and _is_same(verifier.embedder, embedder)
            else None
        )
        of_embedder = None if embedder is None else embedder.name
        matches = (
            evidence is not None and evidence.verifier == verifier.name and evidence.embedder in {None, of_embedder}
        )
        self.combiner = evidence if matches else None

    @property
    def reads_vectors(self) -> bool:
        """Whether scores are computed from the candidates' vectors."""
        return self._vectors is not None or (self.combiner is not None and self.combiner.embedder is not None)

    @property
    def evidence(self) -> str:
        """The name of the evidence model in use; empty for none."""
        return "" if self.combiner is None else self.combiner.name

    @property
    def calibration(self) -> Calibration:
        """The calibration of the evidence model in use, else that of the verifier."""
        return self.verifier.calibration if self.combiner is None else self.combiner.calibration

    @property
    def most_windows(self) -> int | None:
        """The most windows of a passage that the verifier reads; None if it has no such limit."""
        most: int | None = getattr(self.verifier, "most_readings", None)
        return most

    @property
    def scores_sentences(self) -> bool:
        """Whether the verifier can rate the sentences of a passage that it has scored, without reading it again."""
        return isinstance(self.verifier, SentenceVerifier) and self.verifier.scores_sentences

    def score_sentences(
        self, query: Query, candidates: Sequence[Candidate], sentences: Sequence[TextSpans]
    ) -> list[FloatArray]:
        """Return for each candidate the probabilities in [0, 1] of its sentences, given as spans of its content.

        Raises:
            ModelError: the verifier can't score sentences, or failed.
        """
        if not isinstance(self.verifier, SentenceVerifier):
            raise ModelError(f"verifier {self.verifier.name!r} can't score sentences: check `scores_sentences` first")
        with wrap_errors(ModelError, f"scoring sentences with {self.verifier.name!r}"):
            answer = self.verifier.score_sentences(query.text, [c.passage.content for c in candidates], sentences)
            rated = [np.asarray(scores, dtype=np.float32).ravel() for scores in answer]
        wanted, given = [len(spans) for spans in sentences], [len(scores) for scores in rated]
        values = np.concatenate([np.zeros(0), *rated])
        if wanted != given or not ((values >= 0) & (values <= 1)).all():
            raise ModelError(
                f"verifier {self.verifier.name!r} must give each sentence a probability in [0, 1]: expected "
                f"{wanted!r:.60} sentences, got {given!r:.60} scores, {int((~((values >= 0) & (values <= 1))).sum())} "
                "of them out of range"
            )
        return rated

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return probabilities in [0, 1], shape (n,).

        Raises:
            ModelError: the verifier failed, or returned a score outside [0, 1].
        """
        return self.judge(query, candidates)[0]

    def has_read(self, query: Query, candidates: Sequence[Candidate]) -> list[bool]:
        """Return for each candidate whether the verifier has its score in a cache; False if it doesn't tell."""
        has_read = getattr(self.verifier, "has_read", None)
        return has_read(query.text, [c.passage.content for c in candidates]) if has_read else [False] * len(candidates)

    def judge(self, query: Query, candidates: Sequence[Candidate]) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """Return probabilities in [0, 1], shape (n,), and by name the inputs of these scores, each of shape (n,).

        An input is NaN where it is unknown.

        Raises:
            ModelError: the verifier failed, or returned a score outside [0, 1].
        """
        inputs = self._find_evidence(query, candidates)
        with wrap_errors(ModelError, f"verifying with {self.verifier.name!r}"):
            if self.combiner is not None and inputs:
                sums, inputs = self._weigh(self.combiner, inputs, query, candidates)
                scores = self.combiner.calibration.apply(sums)
            else:
                scores = validate_scores(self._scores(query, candidates), len(candidates), self.verifier.name)
        if scores.size and (scores.min() < 0 or scores.max() > 1):
            raise ModelError(
                f"scores of verifier {self.verifier.name!r} must be between 0 and 1, got {scores.min():.3g} to "
                f"{scores.max():.3g}: give the verifier a calibration"
            )
        unread = self._count_unread(query, candidates)
        return scores, inputs if unread is None else {**inputs, UNREAD: unread}

    def sum_evidence(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return the evidence model's sums, shape (n,), whose calibration gives the probabilities of `judge`.

        Raises:
            ModelError: no evidence model is in use, a candidate has no vector that it needs, or the verifier failed.
        """
        inputs = self._find_evidence(query, candidates)
        if self.combiner is None or not inputs:
            raise ModelError("evidence can't be weighed: it takes an evidence model, and vectors that it reads")
        with wrap_errors(ModelError, f"verifying with {self.verifier.name!r}"):
            return self._weigh(self.combiner, inputs, query, candidates)[0]

    def _weigh(
        self,
        combiner: EvidenceCombiner,
        inputs: Mapping[str, FloatArray],
        query: Query,
        candidates: Sequence[Candidate],
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the sums of the evidence, shape (n,), and all inputs by name; no calibration changes a sum."""
        logits = self.verifier.raw_scores(query.text, [c.passage.content for c in candidates])
        known = {**inputs, "logit": validate_scores(logits, len(candidates), self.verifier.name)}
        sums = combiner.sums(known)
        if combiner.embedder is None:
            return sums, known
        if raised := self._raise_cosines(query, candidates, sums, known["cosine"]):
            known |= raised
            sums = combiner.sums(known)
        return self._without_understated(candidates, sums, known["logit"]), known

    def _raise_cosines(
        self, query: Query, candidates: Sequence[Candidate], sums: FloatArray, known: FloatArray
    ) -> dict[str, FloatArray]:
        """Return new cosines, each at least that of the passage's best sentence less 0.05, and the former ones.

        The result is empty if none rises. The former cosines are NaN where nothing rose. Passages of low sums are left
        out. The verifier's reading of a passage tells its best sentence.
        """
        if self._split is None or query.vector is None or not self.scores_sentences:
            return {}
        promising = np.nonzero(sums >= log_odds(PROMISING))[0].tolist()
        parts = {n: self._split(candidates[n].passage.text) for n in promising}
        parts = {n: sentences for n, sentences in parts.items() if len(sentences) > 1}
        if not parts:
            return {}
        chosen, places = [candidates[n] for n in parts], list(parts)
        spans = [find_spans(c.passage, parts[n]) for n, c in zip(places, chosen, strict=True)]
        rated = self.score_sentences(query, chosen, spans)
        best = [
            Candidate(passage=replace(c.passage.with_text(parts[n][int(np.argmax(own))]), id=str(n)), origin="sentence")
            for n, c, own in zip(places, chosen, rated, strict=True)
        ]
        vectors = stack_vectors(with_vectors(best, self._embedder))
        raised = known.copy()
        raised[places] = np.maximum(raised[places], cosines(query.vector, vectors) - CHANCE)
        if not (raised > known).any():
            return {}
        return {"cosine": raised, PASSAGE_COSINE: np.where(raised > known, known, np.float32(np.nan))}

    def _without_understated(self, candidates: Sequence[Candidate], sums: FloatArray, logits: FloatArray) -> FloatArray:
        """Return the sums, those of long passages at least the log-odds of the verifier's own probability.

        The vector of a long passage is the mean of its windows, so the cosine says little about the one that answers.
        """
        is_long = np.array([len(c.passage.content) > LONG for c in candidates], dtype=bool)
        if not is_long.any():
            return sums
        return np.where(is_long, np.maximum(sums, log_odds(self.verifier.calibration.apply(logits))), sums)

    def _count_unread(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray | None:
        """Return how many windows of each passage the verifier left unread, NaN for none; None if it read all."""
        count = getattr(self.verifier, "count_unread", None)
        unread = count(query.text, [c.passage.content for c in candidates]) if count else []
        return np.array([n or np.nan for n in unread], dtype=np.float32) if any(unread) else None

    def _find_evidence(self, query: Query, candidates: Sequence[Candidate]) -> dict[str, FloatArray]:
        """Return the keyword shares, and the cosines if the combiner reads them.

        Nothing if it reads them and not all candidates have vectors, as sentences don't.
        """
        if self.combiner is None:
            return {}
        shares = [np.nan if c.keyword_share is None else c.keyword_share for c in candidates]
        words = {"keywords": np.array(shares, dtype=np.float32)}
        if self.combiner.embedder is None:
            return words
        vectors = [c.vector for c in candidates if c.vector is not None]
        if query.vector is None or not vectors or len(vectors) < len(candidates):
            return {}
        return {"cosine": cosines(query.vector, np.array(vectors)), **words}

    def _scores(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        stored = [c.vector for c in candidates if c.vector is not None]
        if self._vectors is not None and query.vector is not None and len(stored) == len(candidates):
            return self._vectors.score_vectors(query.vector, np.array(stored))
        return self.verifier.score(query.text, [c.passage.content for c in candidates])


class SimilarityScorer:
    """The cosine of query and passage, for modes that verify nothing."""

    name = "similarity"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return cosines in [-1, 1], shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if query.vector is None or len(vectors) != len(candidates):
            raise ModelError("similarity needs vectors of query and candidates: give the pipeline an embedder")
        return cosines(query.vector, np.array(vectors)) if vectors else np.zeros(0, dtype=np.float32)


def _is_same(one: Embedder, other: Embedder) -> bool:
    return one is other or (one.name == other.name and one.dimension == other.dimension)
