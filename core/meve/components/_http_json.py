"""Posts JSON to an HTTP API, and repeats requests that failed for a while."""

import http.client
import json
import time
from collections.abc import Mapping
from logging import Logger
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from meve.errors import ConfigurationError, ModelError

RETRIED = (408, 425, 429, 500, 502, 503, 504, 529)
"""The statuses after which a request is sent again."""
LONGEST_PAUSE = 60.0
"""The most seconds before a retry, whatever the server asks for."""
LARGEST_ANSWER = 32_000_000
"""The most bytes that are read of an answer."""


class JsonClient:
    """Posts JSON to one address. Redirections aren't followed, since they would carry the key elsewhere.

    Args:
        url: the address.
        api_key: sent as a bearer token; None for none.
        headers: further headers.
        timeout: seconds without an answer after which a request has failed; above 0.
        retries: how often a failed request is repeated, at least 0: after no answer, and after the statuses 408, 425,
            429, 500, 502, 503, 504 and 529. The first pause is half a second, each next one twice as long, or what the
            server asks for in `Retry-After`, at most a minute.
        logger: gets a warning for each failed request that is repeated.
        noun: what a request is called in the log.

    Raises:
        ConfigurationError: an invalid address or number.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        timeout: float,
        retries: int,
        logger: Logger,
        noun: str,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ConfigurationError(f"url must be an http(s) address, got {url!r:.80}")
        if timeout <= 0 or retries < 0:
            raise ConfigurationError(f"timeout must be above 0 and retries at least 0, got {timeout} and {retries}")
        key = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **key, **(headers or {})}
        self.url, self._timeout, self._retries = url, timeout, retries
        self._logger, self._noun = logger, noun
        self._opener = build_opener(_NoRedirection)

    def post(self, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the parsed answer to a request.

        Raises:
            ModelError: no answer, an answer of an error, or one that isn't JSON.
        """
        data = json.dumps(body).encode()
        for attempt in range(self._retries + 1):
            request = Request(self.url, data=data, headers=self._headers, method="POST")
            asked = 0.0
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return json.loads(response.read(LARGEST_ANSWER))
            except HTTPError as error:
                cause = f"status {error.code}"
                failure = f"{self.url} answered {error.code} {error.reason}: {_read_error(error)}"
                if error.code not in RETRIED:
                    raise ModelError(failure) from None
                asked = _read_pause(error.headers.get("Retry-After"))
            except (URLError, OSError, http.client.HTTPException) as error:
                cause = type(error).__name__
                failure = f"{self.url} gave no answer: {error}"
            except ValueError as error:
                raise ModelError(f"{self.url} must answer in JSON: {error}") from error
            if attempt < self._retries:
                pause = min(max(asked, 0.5 * 2**attempt), LONGEST_PAUSE)
                self._logger.warning(
                    "%s request %d failed, next one in %.1f s: %s", self._noun, attempt + 1, pause, cause
                )
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
