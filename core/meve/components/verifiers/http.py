"""A verifier behind HTTP: rerank APIs of the common shape, of a vendor or of your own server."""

from collections.abc import Mapping, Sequence
from logging import getLogger
from typing import Any

from meve.components._http_json import JsonClient
from meve.components.verifiers.own import Scale, ScoreVerifier
from meve.errors import ConfigurationError, ModelError

logger = getLogger("meve.verifiers")


class HttpReranker(ScoreVerifier):
    """Scores by a rerank API: `POST url` with `model`, `query` and `documents`.

    The answer must hold `results` (or `data`) with an `index` and a `relevance_score` (or `score`) for each document.
    Redirections aren't followed, since they would carry the key elsewhere.

    Args:
        url: the address of the API, such as `http://localhost:8000/v1/rerank`.
        model: the model's name there.
        api_key: sent as a bearer token; None for none.
        headers: further headers.
        extra: further fields of each request.
        timeout: seconds without an answer after which a request has failed; above 0.
        retries: how often a failed request is repeated, at least 0: after no answer, and after the statuses 408, 425,
            429, 500, 502, 503, 504 and 529. The first pause is half a second, each next one twice as long, or what the
            server asks for in `Retry-After`, at most a minute.
        batch_size: the most documents in a request.
        scale: the scale of the scores.
        name: the verifier's name; None for the model's.

    Raises:
        ConfigurationError: an invalid address or option.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        batch_size: int = 64,
        scale: Scale = "probabilities",
        name: str | None = None,
    ) -> None:
        self._client = JsonClient(
            url, api_key=api_key, headers=headers, timeout=timeout, retries=retries, logger=logger, noun="rerank"
        )
        if batch_size < 1:
            raise ConfigurationError(f"batch_size must be at least 1, got {batch_size}")
        super().__init__(self._rerank, name=name or model, scale=scale)
        self._url, self._model, self._extra, self._batch_size = url, model, dict(extra or {}), batch_size

    def __repr__(self) -> str:
        return f"HttpReranker({self._url!r}, model={self._model!r})"

    def _rerank(self, query: str, passages: list[str]) -> list[float]:
        batches = [passages[at : at + self._batch_size] for at in range(0, len(passages), self._batch_size)]
        return [score for batch in batches for score in self._score_batch(query, batch)]

    def _score_batch(self, query: str, documents: Sequence[str]) -> list[float]:
        answer = self._client.post({"model": self._model, "query": query, "documents": documents, **self._extra})
        results = answer.get("results", answer.get("data")) if isinstance(answer, Mapping) else answer
        try:
            scores = {int(each["index"]): float(each.get("relevance_score", each.get("score"))) for each in results}
        except (TypeError, ValueError, KeyError, AttributeError) as cause:
            raise ModelError(
                f"{self._url} must answer with results that have an index and a relevance_score: {cause!r:.80}"
            ) from cause
        if sorted(scores) != list(range(len(documents))):
            raise ModelError(
                f"{self._url} must score each of {len(documents)} documents, got {len(scores)} scores: let it return "
                "all, without a top_n"
            )
        return [scores[n] for n in range(len(documents))]
