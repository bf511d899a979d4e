"""Tags memories with the topics of the policy, by their words and by embeddings."""

from collections.abc import Iterable
from typing import Protocol

from meve._formulas import cosines
from meve._lazy_field import LazyField
from meve.components.lexical.analyzers import stemmed_words
from meve.memory.policy import Tagging
from meve.ports import Embedder
from meve.types import FloatArray


class Tagger(Protocol):
    """Chooses the tags of memories that are added without tags."""

    def tag(self, text: str) -> Iterable[str]:
        """Return the tags of a text."""
        ...


class PolicyTagger:
    """Gives a text each tag of which it contains a word or phrase, or to which its embedding is similar.

    Args:
        rule: the tags with their words and phrases; without tags, nothing is tagged.
        embedder: embeds texts and tags.
    """

    def __init__(self, rule: Tagging, embedder: Embedder) -> None:
        self._rule = rule
        self._embedder = embedder
        self._phrases = {
            tag: [stems for phrase in (tag, *about.split(",")) if (stems := tuple(stemmed_words(phrase)))]
            for tag, about in rule.tags.items()
        }

    @LazyField
    def _vectors(self) -> FloatArray:
        return self._embedder.embed_passages([f"{tag}: {about}" for tag, about in self._rule.tags.items()])

    def tag(self, text: str) -> Iterable[str]:
        """Return the tags of a text, in the order of the policy."""
        if not self._rule.tags:
            return ()
        stems = stemmed_words(text)
        similarities = cosines(self._embedder.embed_passages([text])[0], self._vectors).tolist()
        return [
            tag
            for tag, similarity in zip(self._phrases, similarities, strict=True)
            if similarity >= self._rule.similarity or any(_contains(stems, phrase) for phrase in self._phrases[tag])
        ]


def _contains(stems: list[str], phrase: tuple[str, ...]) -> bool:
    return any(tuple(stems[n : n + len(phrase)]) == phrase for n in range(len(stems) - len(phrase) + 1))
