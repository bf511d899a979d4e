"""What budgets are counted with unless a counter is given: the tokenizer that LlamaIndex itself counts with."""

import os
import warnings
from functools import cache, partial
from typing import Any

from llama_index.core.utils import get_tokenizer

from meve.components.tokenizers import resolve_tokens
from meve.components.tokenizers.function import FunctionTokens
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.engine import Tokens
from meve.ports import TokenCounter

_CACHE = "TIKTOKEN_CACHE_DIR"


def tokens_for(tokens: Tokens | None, config: RetrieverConfig | None) -> Tokens | None:
    """What to count with: the counter that is given, the one that a configuration names, or LlamaIndex's.

    Args:
        tokens: as for `meve.Retriever`.
        config: may name a tokenizer.

    Returns:
        None where the configuration decides.
    """
    if tokens is not None or (isinstance(config, RetrieverConfig) and config.tokens is not None):
        return tokens
    return global_tokens()


def global_tokens() -> TokenCounter:
    """LlamaIndex's global tokenizer, as it is now, as a counter: `Settings.tokenizer`, cl100k_base by default.

    Where its table can't be had (a `TIKTOKEN_CACHE_DIR` that lacks it, and no network), the WordPiece that comes with
    MeVe counts, and a warning says so once.
    """
    before = os.environ.get(_CACHE)
    try:
        encode = get_tokenizer()
    except Exception as cause:  # whatever tiktoken's HTTP library raises
        _warned(f"{type(cause).__name__}: {cause}")
        return resolve_tokens(None)
    finally:
        if before is None:
            os.environ.pop(_CACHE, None)  # LlamaIndex leaves it set when it fails
    return FunctionTokens(lambda text: len(encode(text)), _name(encode))


def _name(encode: Any) -> str:
    """The encoding's name, of a tiktoken encoding; else the function's."""
    made = encode.func if isinstance(encode, partial) else encode
    encoding = getattr(made, "__self__", None)
    return str(getattr(encoding, "name", None) or getattr(made, "__qualname__", type(made).__qualname__))


@cache
def _warned(why: str) -> None:
    warnings.warn(
        f"LlamaIndex's tokenizer can't be had here ({why:.200}), so budgets are counted with the WordPiece that comes "
        f"with MeVe: set {_CACHE} to a folder that holds its table, call set_global_tokenizer, or give tokens=…",
        UserWarning,
        stacklevel=5,
    )
