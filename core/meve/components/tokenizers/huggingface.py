"""Counts tokens with any tokenizer of Hugging Face's `tokenizers`, the bundled one included."""

import json
import re
import string
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from meve.components._bert_words import find_others
from meve.components._model_errors import find_cached_file
from meve.errors import TokenizerUnavailableError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM = "all-MiniLM-L6-v2 (WordPiece)"
_AT_SPACES = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
_ALONE = (None, "BertNormalizer", "Lowercase")
"""Normalizers that treat each character, or an accent and its letter, by itself."""
_WORD = re.compile("[0-9a-z]+")
_ALL_BUT_MARKS = dict.fromkeys(map(ord, string.ascii_lowercase + string.digits + " \t\r\n"))
_SHORT, _MOST_KNOWN = 20, 50_000
"""The most characters of a piece whose count is kept, and the most counts that are kept."""
_SHIPPED = Path(__file__).parents[1] / "verifiers" / "meve-verifier-1" / "tokenizer.json"


class HuggingFaceTokens:
    """A `TokenCounter` over a copy of a `tokenizers.Tokenizer` without padding, truncation and added special tokens.

    A special token's text within a text (such as [SEP]) counts as that one token, as the model would read it. If counts
    add up, those of short texts are kept, and of short pieces between white space, since most pieces of a text are
    common words. BERT's tokenizers also split at each punctuation mark, so pieces of ASCII texts are words there.

    Args:
        tokenizer: the tokenizer; it isn't changed.
        name: the name in context, trace and index.
    """

    def __init__(self, tokenizer: "Tokenizer", name: str) -> None:
        own = type(tokenizer).from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        self._tokenizer = own
        settings = json.loads(own.to_str())
        self.adds_up = _splits_at_spaces(settings)
        self._others = find_others(settings) if self.adds_up else None
        self.name = name
        self._known = {"": 0}

    @classmethod
    def from_file(cls, path: str | Path, name: str | None = None) -> Self:
        """Load a `tokenizer.json`, or a folder with one.

        Args:
            path: the file or folder.
            name: the counter's name; None for the name of the file or its folder.

        Raises:
            TokenizerUnavailableError: the file doesn't exist or isn't a tokenizer.
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
    def from_pretrained(cls, name: str, *, local_files_only: bool = False) -> Self:
        """Load the tokenizer of a Hugging Face model from the local cache, or else from the hub.

        Args:
            name: the model's name.
            local_files_only: whether to never contact a hub.

        Raises:
            TokenizerUnavailableError: no such model, or it has no tokenizer.json.
        """
        from tokenizers import Tokenizer

        try:
            if local_files_only:
                return cls(Tokenizer.from_file(str(find_cached_file(name, "tokenizer.json"))), name)
            return cls(Tokenizer.from_pretrained(name), name)
        except Exception as cause:  # tokenizers raises Exception itself
            raise TokenizerUnavailableError(
                f"no tokenizer found for model {name!r} ({cause}): give the path of its tokenizer.json, a tiktoken "
                "encoding, a function that counts, or None for the WordPiece that ships"
            ) from cause

    def vocabulary(self) -> dict[str, int]:
        """Return the numbers of the tokenizer's words and pieces of words."""
        return self._tokenizer.get_vocab()

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in the order given; uses all cores."""
        if not self.adds_up:
            return self._encode(list(texts))
        known = self._known
        try:
            return [known[text] for text in texts]
        except KeyError:
            return self._add_up(texts)

    def _add_up(self, texts: Sequence[str]) -> list[int]:
        """Return the sums of the counts of each text's pieces, of which those that aren't known are counted."""
        split, marks = zip(*map(self._split, texts), strict=True)
        known = self._known
        new = list(set[str]().union(*split).difference(known))
        counted = dict(zip(new, self._encode(new), strict=True)) if new else {}
        if len(known) + len(new) + len(texts) > _MOST_KNOWN:
            self._known = {"": 0}  # other threads may still read the former one
        counts = [count + self._sum(pieces, known, counted) for pieces, count in zip(split, marks, strict=True)]
        short = (*counted.items(), *zip(texts, counts, strict=True))
        self._known.update((piece, count) for piece, count in short if len(piece) <= _SHORT)
        return counts

    def _split(self, text: str) -> tuple[list[str], int]:
        """Return pieces whose counts add up, and the number of punctuation marks that are tokens beside them."""
        if self._others is None or self._others.search(text):
            return text.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" "), 0
        lower = text.lower()
        return _WORD.findall(lower), len(lower.translate(_ALL_BUT_MARKS))

    @staticmethod
    def _sum(pieces: Sequence[str], known: Mapping[str, int], counted: Mapping[str, int]) -> int:
        try:
            return sum(map(known.__getitem__, pieces))
        except KeyError:  # a long piece
            return sum(known[each] if each in known else counted[each] for each in pieces)

    def _encode(self, texts: list[str]) -> list[int]:
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def _splits_at_spaces(settings: Mapping[str, Any]) -> bool:
    """Return whether token counts of texts joined by white space add up."""
    normalizer, splitter = (settings[name] and settings[name]["type"] for name in ("normalizer", "pre_tokenizer"))
    has_spaces = any(token["content"].split() != [token["content"]] for token in settings["added_tokens"])
    return normalizer in _ALONE and splitter in _AT_SPACES and not has_spaces


@cache
def load_minilm_tokens() -> HuggingFaceTokens:
    """Load BERT's uncased WordPiece, as used by all-MiniLM-L6-v2 and the bundled verifier; no network, no torch.

    A process loads it once, and all callers share it.

    Raises:
        TokenizerUnavailableError: the installed file is damaged or missing.
    """
    return HuggingFaceTokens.from_file(_SHIPPED, MINILM)
