"""Counts tokens with tiktoken's encodings, from local tables; nothing is downloaded unless allowed."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from meve.errors import TokenizerUnavailableError

_HEX = frozenset("0123456789abcdef")


class TiktokenTokens:
    """A `TokenCounter` over one of tiktoken's encodings. Special tokens in a text count as plain text.

    Args:
        encoding: `gpt2`, `cl100k_base`, `o200k_base`, …
        allow_download: whether tiktoken may fetch a table that isn't in its cache folder.

    Raises:
        TokenizerUnavailableError: no such encoding, or its table isn't on this machine.
    """

    def __init__(self, encoding: str, *, allow_download: bool = False) -> None:
        import tiktoken
        from tiktoken import registry

        self.name = encoding
        known = tiktoken.list_encoding_names()
        if encoding not in known:
            raise TokenizerUnavailableError(f"tiktoken has no encoding {encoding!r}: choose one of {', '.join(known)}")
        constructors = registry.ENCODING_CONSTRUCTORS or {}
        lacking = [] if encoding in registry.ENCODINGS else list(find_missing_tables(constructors[encoding]))
        if lacking and not allow_download:
            raise TokenizerUnavailableError(_advice(encoding, lacking))
        try:
            self._encoding = tiktoken.get_encoding(encoding)
        except Exception as cause:  # from its HTTP library, or a broken table
            raise TokenizerUnavailableError(
                f"tiktoken couldn't load encoding {encoding!r} ({type(cause).__name__}: {cause}); {_ADVICE}"
            ) from cause

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(self._encoding.encode_ordinary(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in the order given; uses several threads."""
        threads = min(len(texts), os.cpu_count() or 1)
        if threads < 2:
            return [self.count(text) for text in texts]
        return [len(ids) for ids in self._encoding.encode_ordinary_batch(list(texts), num_threads=threads)]


def find_encoding(name: str) -> str | None:
    """Return the encoding of that name, or that the model of that name uses (gpt-4o); None if neither is known."""
    import tiktoken

    if name in tiktoken.list_encoding_names():
        return name
    try:
        return tiktoken.encoding_name_for_model(name)
    except KeyError:
        return None


def get_cache_folder() -> Path | None:
    """Return tiktoken's cache folder; None where an empty `TIKTOKEN_CACHE_DIR` disables caching."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def find_missing_tables(constructor: Callable[[], dict[str, Any]]) -> Iterator[str]:
    """Yield the cache files that an encoding needs and that are missing or have the wrong SHA-256.

    tiktoken doesn't report which files it needs, and downloads a file anew if its digest is wrong. So the addresses and
    SHA-256 digests are read from the constants of the encoding's constructor and of the functions it calls in its
    module.
    """
    constants = set(_constants(constructor))
    published = {text for text in constants if len(text) == 64 and set(text) <= _HEX}
    folder = get_cache_folder()
    for address in sorted(text for text in constants if "://" in text):
        key = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
        file = folder / key if folder else None
        if file is None or not file.is_file() or (published and _sha256(file) not in published):
            yield key


def _constants(function: Callable[..., Any]) -> Iterator[str]:
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return
    scope = getattr(function, "__globals__", {})
    for constant in code.co_consts:
        parts = constant if isinstance(constant, tuple) else (constant,)
        yield from (part for part in parts if isinstance(part, str))
    for name in code.co_names:
        called = scope.get(name)
        if callable(called) and called is not function and getattr(called, "__module__", None) == function.__module__:
            yield from _constants(called)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _advice(encoding: str, keys: Sequence[str]) -> str:
    folder = get_cache_folder()
    where = f"isn't in {folder}" if folder else "can't be kept, since TIKTOKEN_CACHE_DIR is empty"
    return (
        f"the table of tiktoken's {encoding!r} {where} (file {', '.join(keys)}), and MeVe doesn't download: {_ADVICE}"
    )


_ADVICE = (
    "set TIKTOKEN_CACHE_DIR to a folder that holds it, or allow_download=True to fetch it once; or count with None "
    "(the WordPiece that ships), a tokenizer.json, a Hugging Face model's name or your own function"
)
