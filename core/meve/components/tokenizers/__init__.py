"""Token counters: the WordPiece that ships, tiktoken's encodings, any Hugging Face tokenizer, your own function."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from meve.errors import ConfigurationError
from meve.ports import TokenCounter

__all__ = ["resolve_tokens"]


def resolve_tokens(spec: "TokenCounter | str | Path | Callable[[str], int] | None") -> TokenCounter:
    """The token counter that a setting means.

    Args:
        spec: None for BERT's WordPiece, which ships; a tiktoken encoding (`gpt2`, `cl100k_base`, `o200k_base`) or a
            model that reads with one (`gpt-4o`); the path of a tokenizer.json; the name of a Hugging Face model; a
            function from a text to its number of tokens; or a counter, which is returned as it is.

    Raises:
        TokenizerUnavailableError: no such tokenizer in reach, or its table isn't here.
        ConfigurationError: something else.
    """
    if spec is None:
        from meve.components.tokenizers.huggingface import minilm_tokens

        return minilm_tokens()
    if isinstance(spec, str | Path):
        return _named(spec)
    if all(hasattr(spec, part) for part in ("name", "count", "count_many")):
        return cast(TokenCounter, spec)
    if callable(spec):
        from meve.components.tokenizers.function import FunctionTokens

        return FunctionTokens(spec)
    raise ConfigurationError(f"tokens is {spec!r}: give a tokenizer's name or path, a function, a counter, or None")


def _named(spec: str | Path) -> TokenCounter:
    from meve.components.tokenizers.huggingface import MINILM, HuggingFaceTokens, minilm_tokens
    from meve.components.tokenizers.tiktoken import TiktokenTokens, encoding_of

    name = str(spec)
    if name == MINILM:
        return minilm_tokens()
    if isinstance(spec, str) and (encoding := encoding_of(name)):
        return TiktokenTokens(encoding)
    if isinstance(spec, Path) or name.endswith(".json") or Path(name).exists():
        return HuggingFaceTokens.from_file(spec)
    return HuggingFaceTokens.from_pretrained(name)
