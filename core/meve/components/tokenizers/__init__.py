"""Token counters: the bundled WordPiece, tiktoken's encodings, any Hugging Face tokenizer, or your own function."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from meve.errors import ConfigurationError
from meve.ports import TokenCounter

__all__ = ["resolve_tokens"]


def resolve_tokens(
    spec: "TokenCounter | str | Path | Callable[[str], int] | None", *, local_files_only: bool = False
) -> TokenCounter:
    """Return the token counter for a setting.

    Args:
        spec: None for BERT's WordPiece, which ships; a tiktoken encoding (`gpt2`, `cl100k_base`, `o200k_base`) or a
            model that uses one (`gpt-4o`); the path of a tokenizer.json; the name of a Hugging Face model; a function
            from a text to its number of tokens; or a counter, which is returned unchanged.
        local_files_only: whether to never contact a hub.

    Raises:
        TokenizerUnavailableError: no such tokenizer, or its table isn't on this machine.
        ConfigurationError: another value.
    """
    if spec is None or isinstance(spec, str | Path):
        return _load_by_name(spec, local_files_only)
    if all(hasattr(spec, part) for part in ("name", "count", "count_many")):
        return cast(TokenCounter, spec)
    if callable(spec):
        from meve.components.tokenizers.function import FunctionTokens

        return FunctionTokens(spec)
    raise ConfigurationError(f"tokens must be a tokenizer's name or path, a function, a counter or None, got {spec!r}")


def _load_by_name(spec: str | Path | None, local_files_only: bool) -> TokenCounter:
    from meve.components.tokenizers.huggingface import MINILM, HuggingFaceTokens, load_minilm_tokens
    from meve.components.tokenizers.tiktoken import TiktokenTokens, find_encoding

    if spec is None or spec == MINILM:
        return load_minilm_tokens()
    name = str(spec)
    if isinstance(spec, str) and (encoding := find_encoding(name)):
        return TiktokenTokens(encoding)
    if isinstance(spec, Path) or name.endswith(".json") or Path(name).exists():
        return HuggingFaceTokens.from_file(spec)
    return HuggingFaceTokens.from_pretrained(name, local_files_only=local_files_only)
