"""Counts a text's tokens and splits texts that exceed a model's window, so that nothing is truncated."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, wrap_errors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Spans = Sequence[tuple[int, int]]
"""The start and end of each token in the text, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A part of a text that fits a model's window."""

    text: str
    tokens: int
    """The number of its tokens without special ones; at least 1, so that it can serve as a weight."""


class TextSplitter:
    """Counts a text's tokens and splits it where it has too many. Threads may share it.

    Args:
        tokenizer: a `tokenizers.Tokenizer` without truncation and padding; never changed.
    """

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self.tokenizer = tokenizer

    @classmethod
    def from_tokenizer(cls, tokenizer: object) -> Self:
        """Make a splitter from a copy of a `transformers` or `tokenizers` tokenizer, without truncation and padding.

        Raises:
            ModelError: the tokenizer can't report the position of its tokens in the text.
        """
        from tokenizers import Tokenizer

        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not isinstance(backend, Tokenizer):
            raise ModelError(
                f"the tokenizer {type(tokenizer).__name__} can't report token positions, so long texts "
                "would be truncated: use a model with a tokenizer.json (a 'fast' tokenizer)"
            )
        with wrap_errors(ModelError, f"copying the tokenizer {type(tokenizer).__name__}"):
            copy = Tokenizer.from_str(backend.to_str())
        copy.no_truncation()
        copy.no_padding()
        return cls(copy)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Make a splitter from the tokenizer.json in a model's folder.

        Raises:
            ModelNotFoundError: the folder has no tokenizer.json.
            ModelError: the file can't be read.
        """
        from tokenizers import Tokenizer

        file = folder / "tokenizer.json"
        if not file.is_file():
            raise ModelNotFoundError(f"{folder} holds no tokenizer: put the model's tokenizer.json there")
        with wrap_errors(ModelError, f"reading {file}"):
            return cls.from_tokenizer(Tokenizer.from_file(str(file)))

    def count_special(self, *, pair: bool = False) -> int:
        """Return how many special tokens the model adds to a text, or to a pair of texts."""
        return int(self.tokenizer.num_special_tokens_to_add(pair))

    def find_spans(self, text: str) -> Spans:
        """Return the start and end of each token in the text."""
        offsets: Spans = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def count(self, text: str) -> int:
        """Return the number of tokens, without special ones."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones, in the order given."""
        return [len(e.ids) for e in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def split(self, text: str, limit: int, overlap: int = 0) -> list[TextPiece]:
        """Split a text into pieces of at most `limit` tokens, between words where that costs less than half a piece.

        Together the pieces hold every word of the text. Tokens are counted per piece, since a tokenizer may split a
        piece differently from the whole text.

        Args:
            text: the text; one that fits is returned unchanged as one piece.
            limit: the maximum number of tokens of a piece, without special ones; at least 1.
            overlap: about how many tokens a piece repeats from the one before; less than half of `limit`.

        Raises:
            ConfigurationError: `limit` or `overlap` is out of range.
        """
        if limit < 1 or not 0 <= 2 * overlap < max(limit, 1):
            raise ConfigurationError(
                f"limit must be at least 1 and overlap less than half of it, got {limit} and {overlap}"
            )
        token_spans = self.find_spans(text)
        if len(token_spans) <= limit:
            return [TextPiece(text=text, tokens=max(len(token_spans), 1))]
        pieces: list[TextPiece] = []
        first = 0
        while first < len(token_spans):
            last, window = self._next_piece(text, token_spans, first, limit)
            pieces.append(window)
            if last >= len(token_spans):
                break
            first = max(_find_word_start(token_spans, last - overlap, first + 1) if overlap else last, first + 1)
        return pieces

    def split_all(self, texts: Sequence[str], limit: int, overlap: int = 0) -> tuple[list[str], list[int], list[int]]:
        """Split texts as `split` does; return all pieces, the tokens of each, and where each text's pieces start."""
        pieces: list[str] = []
        tokens: list[int] = []
        starts: list[int] = []
        for text, count in zip(texts, self.count_many(texts), strict=True):
            starts.append(len(pieces))
            parts = self.split(text, limit, overlap) if count > limit else []
            pieces += [part.text for part in parts] or [text]
            tokens += [part.tokens for part in parts] or [count]
        return pieces, tokens, starts

    def _next_piece(self, text: str, token_spans: Spans, first: int, limit: int) -> tuple[int, TextPiece]:
        """Return the longest piece from token `first` on that fits, and the token after it."""
        last = min(first + limit, len(token_spans))
        while True:
            if last < len(token_spans):
                last = _find_word_start(token_spans, last, first + max((last - first + 1) // 2, 1))
            piece = text[token_spans[first][0] : max(end for _, end in token_spans[first:last])]
            tokens = self.count(piece)
            if tokens <= limit or last == first + 1:
                return last, TextPiece(text=piece, tokens=max(tokens, 1))
            last = max(last - (tokens - limit), first + 1)


def _find_word_start(token_spans: Spans, token: int, least: int) -> int:
    """Return the last token from `token` back to `least` that starts a word; `token` if none does."""
    for at in range(token, least - 1, -1):
        if token_spans[at][0] > token_spans[at - 1][1]:
            return at
    return token


def read_window(folder: Path) -> int:
    """Return how many tokens a model reads at once, special ones included, from its configuration files.

    Raises:
        ModelError: a file can't be read, or neither states the length.
    """
    config, tokenizer = read_json(folder / "config.json"), read_json(folder / "tokenizer_config.json")
    return find_window(config, tokenizer.get("model_max_length"), str(folder))


def find_window(config: dict[str, Any], tokenizer_length: object, name: str) -> int:
    """Return the smaller of what the model's positions and its tokenizer allow.

    Raises:
        ModelError: neither states a length.
    """
    sizes = []
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 0:
        offset = "roberta" in str(config.get("model_type")) or config.get("model_type") in ("camembert", "mpnet")
        sizes.append(positions - (int(config.get("pad_token_id") or 0) + 1) if offset else positions)
    if isinstance(tokenizer_length, int | float) and 0 < tokenizer_length < 1_000_000:
        sizes.append(int(tokenizer_length))
    if not sizes:
        raise ModelError(f"{name} doesn't state how many tokens it reads at once: give max_length")
    return min(sizes)


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file doesn't exist.

    Raises:
        ModelError: the file can't be read, or holds no JSON object.
    """
    if not file.is_file():
        return {}
    with wrap_errors(ModelError, f"reading {file}"):
        data = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ModelError(f"{file} holds no JSON object: put the model's own file there")
    return data
