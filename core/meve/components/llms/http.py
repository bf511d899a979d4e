"""A language model behind HTTP: servers with the chat API of OpenAI, such as vLLM or Ollama, and llama.cpp's own."""

from collections.abc import Mapping
from logging import getLogger
from typing import Any

from meve.components._http_json import JsonClient
from meve.errors import ConfigurationError, ModelError

logger = getLogger("meve.llms")
_CHAT, _COMPLETION = "/chat/completions", "/completion"


class HttpLanguageModel:
    """Completes prompts by a chat API: `POST url/chat/completions` with one message of the user.

    An address that ends with `/completion` is one of llama.cpp's own API, which completes the prompt without a chat
    template.

    Redirections aren't followed, since they would carry the key elsewhere.

    Args:
        url: the address of the API, such as `http://localhost:8080/v1`, or `http://localhost:8080/completion`.
        model: the model's name there; None where the server has one.
        api_key: sent as a bearer token; None for none.
        headers: further headers.
        max_tokens: the most tokens of an answer, at least 1.
        temperature: 0 for the likeliest answer.
        extra: further fields of each request.
        timeout: seconds without an answer after which a request has failed; above 0.
        retries: how often a failed request is repeated, at least 0, as for `HttpReranker`.

    Raises:
        ConfigurationError: an invalid address or option.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        max_tokens: int = 256,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        retries: int = 2,
    ) -> None:
        if max_tokens < 1:
            raise ConfigurationError(f"max_tokens must be at least 1, got {max_tokens}")
        trimmed = url.rstrip("/")
        self._is_chat = not trimmed.endswith(_COMPLETION)
        self._client = JsonClient(
            trimmed if not self._is_chat or trimmed.endswith(_CHAT) else trimmed + _CHAT,
            api_key=api_key, headers=headers, timeout=timeout, retries=retries, logger=logger, noun="completion",
        )  # fmt: skip
        named = {} if model is None else {"model": model}
        limit = "max_tokens" if self._is_chat else "n_predict"
        self._fields = {**named, limit: max_tokens, "temperature": temperature, **(extra or {})}

    def __repr__(self) -> str:
        return f"HttpLanguageModel({self._client.url!r}, model={self._fields.get('model')!r})"

    def __call__(self, prompt: str, /) -> str:
        """Return the model's answer.

        Raises:
            ModelError: no answer, or one of another form.
        """
        asked = {"messages": [{"role": "user", "content": prompt}]} if self._is_chat else {"prompt": prompt}
        answer = self._client.post({**asked, **self._fields})
        try:
            content = answer["choices"][0]["message"]["content"] if self._is_chat else answer["content"]
        except (TypeError, KeyError, IndexError) as cause:
            expected = "choices that hold a message" if self._is_chat else "content"
            raise ModelError(f"{self._client.url} must answer with {expected}: {cause!r:.80}") from cause
        if content is not None and not isinstance(content, str):
            raise ModelError(f"{self._client.url} must answer with text, got {content!r:.80}")
        return content or ""
