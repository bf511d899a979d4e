"""Counts tokens with any tokenizer of Hugging Face's `tokenizers`, the one that ships among them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from meve.errors import TokenizerUnavailableError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM = "all-MiniLM-L6-v2 (WordPiece)"
_AT_SPACES = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
_ALONE = (None, "BertNormalizer", "Lowercase")
"""Normalizers that look at a character without those beside it, or at an accent and its letter."""
_SHIPPED = Path(__file__).parents[1] / "verifiers" / "meve-verifier-1" / "tokenizer.json"


class HuggingFaceTokens:
    """A `TokenCounter` over a `tokenizers.Tokenizer`. Works on a copy that neither pads, cuts nor adds special tokens.

    A special token's text in a text ([SEP], say) counts as that one token, as the model would read it.

    Args:
        tokenizer: the tokenizer; it stays as it is.
        name: what context, trace and index call it.
    """

    def __init__(self, tokenizer: "Tokenizer", name: str) -> None:
        own = type(tokenizer).from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        self._tokenizer = own
        self.adds_up = _splits_at_spaces(json.loads(own.to_str()))
        self._name = name

    @classmethod
    def from_file(cls, path: str | Path, name: str | None = None) -> Self:
        """From a `tokenizer.json`, or a folder with one.

        Args:
            path: the file or folder.
            name: what to call it; None for the name of the file, or of its folder.

        Raises:
            TokenizerUnavailableError: no such file, or not a tokenizer.
        """
        from tokenizers import Tokenizer

        file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
        called = file.resolve().parent.name if file.stem == "tokenizer" else file.stem
        try:
            return cls(Tokenizer.from_file(str(file)), name or called)
        except Exception as cause:  # tokenizers raises Exception itself
            raise TokenizerUnavailableError(
                f"{file} can't be read as a tokenizer ({cause}): give the path of a tokenizer.json"
            ) from cause

    @classmethod
    def from_pretrained(cls, name: str) -> Self:
        """From a model of the Hugging Face hub: the local cache, or else the network.

        Raises:
            TokenizerUnavailableError: no such model, or no tokenizer.json, in reach.
        """
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_pretrained(name), name)
        except Exception as cause:  # tokenizers raises Exception itself
            raise TokenizerUnavailableError(
                f"no tokenizer of model {name!r} in reach ({cause}): give the path of its tokenizer.json, a tiktoken "
                "encoding, a function that counts, or None for the WordPiece that ships"
            ) from cause

    @property
    def name(self) -> str:
        """What the tokenizer is called."""
        return self._name

    def count(self, text: str) -> int:
        """The number of tokens of a text, without special tokens."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The same for many texts, on all cores, in the order given."""
        return [len(found) for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]


def _splits_at_spaces(settings: Mapping[str, Any]) -> bool:
    """Whether a tokenizer reads what stands on both sides of white space apart, and counts no space."""
    normalizer, splitter = (settings[name] and settings[name]["type"] for name in ("normalizer", "pre_tokenizer"))
    return normalizer in _ALONE and splitter in _AT_SPACES


def minilm_tokens() -> HuggingFaceTokens:
    """BERT's uncased WordPiece, as all-MiniLM-L6-v2 and the verifier that ships read it; no network, no torch.

    Raises:
        TokenizerUnavailableError: the file that ships is damaged or gone.
    """
    return HuggingFaceTokens.from_file(_SHIPPED, MINILM)
