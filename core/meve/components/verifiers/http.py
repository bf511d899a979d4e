"""A verifier behind HTTP: rerank APIs of the common shape, of a vendor or of your own server."""

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from logging import getLogger
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from meve.components.verifiers.own import Scale, ScoreVerifier
from meve.errors import ConfigurationError, ModelError

RETRIED = (408, 425, 429, 500, 502, 503, 504, 529)
"""The statuses after which a request is sent again."""
LONGEST_PAUSE = 60.0
"""The most seconds before a retry, whatever the server asks for."""
LARGEST_ANSWER = 32_000_000
"""The most bytes that are read of an answer."""

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
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ConfigurationError(f"url must be an http(s) address, got {url!r:.80}")
        if timeout <= 0 or retries < 0 or batch_size < 1:
            raise ConfigurationError(
                "timeout must be above 0, retries at least 0 and batch_size at least 1, got "
                f"{timeout}, {retries} and {batch_size}"
            )
        super().__init__(self._rerank, name=name or model, scale=scale)
        key = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **key, **(headers or {})}
        self._url, self._model, self._extra = url, model, dict(extra or {})
        self._timeout, self._retries, self._batch_size = timeout, retries, batch_size
        self._opener = build_opener(_NoRedirection)

    def __repr__(self) -> str:
        return f"HttpReranker({self._url!r}, model={self._model!r})"

    def _rerank(self, query: str, passages: list[str]) -> list[float]:
        batches = [passages[at : at + self._batch_size] for at in range(0, len(passages), self._batch_size)]
        return [score for batch in batches for score in self._score_batch(query, batch)]

    def _score_batch(self, query: str, documents: Sequence[str]) -> list[float]:
        answer = self._post({"model": self._model, "query": query, "documents": documents, **self._extra})
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

    def _post(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        data = json.dumps(body).encode()
        for attempt in range(self._retries + 1):
            request = Request(self._url, data=data, headers=self._headers, method="POST")
            asked = 0.0
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return json.loads(response.read(LARGEST_ANSWER))
            except HTTPError as error:
                cause = f"status {error.code}"
                failure = f"{self._url} answered {error.code} {error.reason}: {_read_error(error)}"
                if error.code not in RETRIED:
                    raise ModelError(failure) from None
                asked = _read_pause(error.headers.get("Retry-After"))
            except (URLError, OSError, http.client.HTTPException) as error:
                cause = type(error).__name__
                failure = f"{self._url} gave no answer: {error}"
            except ValueError as error:
                raise ModelError(f"{self._url} must answer in JSON: {error}") from error
            if attempt < self._retries:
                pause = min(max(asked, 0.5 * 2**attempt), LONGEST_PAUSE)
                logger.warning("rerank request %d failed, next one in %.1f s: %s", attempt + 1, pause, cause)
                time.sleep(pause)
        raise ModelError(f"{failure} ({self._retries + 1} requests)")


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Return None, so that the redirection is an error."""


def _read_pause(asked: str | None) -> float:
    return float(asked) if asked and asked.isdecimal() else 0.0


def _read_error(error: HTTPError) -> str:
    try:
        return error.read(200).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException):
        return ""
