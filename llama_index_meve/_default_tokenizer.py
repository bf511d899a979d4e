"""Count tokens with LlamaIndex's global tokenizer unless the user names another."""

import os
from functools import cache, partial
from typing import Any

from llama_index.core.utils import get_tokenizer

from meve.components.tokenizers import resolve_tokens
from meve.components.tokenizers.function import FunctionTokens
from meve.errors import warn
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import TokenCounterLike
from meve.ports import TokenCounter

_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"


def resolve_token_counter(tokens: TokenCounterLike | None, config: RetrieverConfig | None) -> TokenCounterLike | None:
    """Return the given token counter, else None if the configuration names one, else LlamaIndex's tokenizer."""
    if tokens is not None or (isinstance(config, RetrieverConfig) and config.tokens is not None):
        return tokens
    return global_token_counter()


def global_token_counter() -> TokenCounter:
    """Return LlamaIndex's current global tokenizer (`Settings.tokenizer`, by default cl100k_base) as a token counter.

    If its table can't be loaded (not in `TIKTOKEN_CACHE_DIR`, and no network), warn once and return MeVe's own
    WordPiece tokenizer.
    """
    before = os.environ.get(_CACHE_VARIABLE)
    try:
        encode = get_tokenizer()
    except Exception as cause:  # whatever tiktoken's HTTP library raises
        _warn_once(f"{type(cause).__name__}: {cause}")
        return resolve_tokens(None)
    finally:
        if before is None:
            os.environ.pop(_CACHE_VARIABLE, None)  # LlamaIndex leaves it set when it fails
    return FunctionTokens(lambda text: len(encode(text)), _tokenizer_name(encode))


def _tokenizer_name(encode: Any) -> str:
    function = encode.func if isinstance(encode, partial) else encode
    encoding = getattr(function, "__self__", None)
    return str(getattr(encoding, "name", None) or getattr(function, "__qualname__", type(function).__qualname__))


@cache
def _warn_once(why: str) -> None:
    warn(
        f"LlamaIndex's tokenizer can't be loaded ({why:.200}), so MeVe's WordPiece tokenizer counts tokens: set "
        f"{_CACHE_VARIABLE} to a folder with the tokenizer's table, call set_global_tokenizer, or give tokens=…",
        UserWarning,
        stacklevel=5,
    )
