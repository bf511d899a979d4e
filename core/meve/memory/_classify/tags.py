"""What is a memory about? Tags that a policy names, told by words and by embeddings."""

from collections.abc import Iterable
from functools import cached_property
from typing import Protocol

from meve._formulas import cosines
from meve.components.lexical.analyzers import stemmed_words
from meve.memory.policy import Tagging
from meve.ports import Embedder
from meve.types import FloatArray


class Tagger(Protocol):
    """Tells what a memory is about, where the caller doesn't."""

    def tags(self, text: str) -> Iterable[str]:
        """Its tags."""
        ...


class PolicyTagger:
    """A tag fits where the text holds one of the words that the policy gives for it, or is like them all together.

    Args:
        rule: the tags and their words; without any, nothing is tagged.
        embedder: makes the vectors that are compared.
    """

    def __init__(self, rule: Tagging, embedder: Embedder) -> None:
        self._rule = rule
        self._embedder = embedder
        self._phrases = {
            tag: [stemmed for phrase in (tag, *about.split(",")) if (stemmed := tuple(stemmed_words(phrase)))]
            for tag, about in rule.tags.items()
        }

    @cached_property
    def _vectors(self) -> FloatArray:
        return self._embedder.embed_passages([f"{tag}: {about}" for tag, about in self._rule.tags.items()])

    def tags(self, text: str) -> Iterable[str]:
        """Those that fit, in the policy's order."""
        if not self._rule.tags:
            return ()
        said = stemmed_words(text)
        near = cosines(self._embedder.embed_passages([text])[0], self._vectors)
        return [
            tag
            for tag, likeness in zip(self._phrases, near.tolist(), strict=True)
            if likeness >= self._rule.likeness or any(_holds(said, phrase) for phrase in self._phrases[tag])
        ]


def _holds(said: list[str], phrase: tuple[str, ...]) -> bool:
    return any(tuple(said[n : n + len(phrase)]) == phrase for n in range(len(said) - len(phrase) + 1))
