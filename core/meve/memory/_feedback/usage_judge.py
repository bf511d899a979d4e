"""After the answer: which of the recalled memories were used, which weren't, which does it contradict?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from meve._formulas import cosines
from meve.components._sentences import sentences
from meve.components.lexical.analyzers import FUNCTION_WORDS, content_words
from meve.memory._contradiction.rules import NUMBER, Contradiction, taken_apart, values_of
from meve.memory.policy import Reflection
from meve.ports import Embedder
from meve.types import FloatArray

Outcome: TypeAlias = Literal["used", "unused", "contradicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an answer made of a memory."""

    outcome: Outcome
    because: str
    """In a few words, without the memory's or the answer's."""


class UsageJudge(Protocol):
    """Tells what an answer made of the memories that were recalled for it."""

    def judge(self, query: str, answer: str, memories: Sequence[str], vectors: FloatArray) -> list[Judged]:
        """One verdict for each memory.

        Args:
            query: what was asked.
            answer: what was answered.
            memories: their texts.
            vectors: their embeddings, shape (n, d).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUsageJudge:
    """By distinctive words that memory and answer share and the question lacks, and by the likest sentence.

    Distinctive is a word that not every one of the memories holds. Where a memory holds all that an answer says beyond
    the question, it was used however little that is ("Tomatoes."); of several such ones, those that hold most of the
    question.
    """

    embedder: Embedder
    contradiction: Contradiction
    words: float = 0.5
    """The share of a memory's distinctive words that the answer must hold; two at least, if it has two."""
    likeness: float = 0.8
    """The cosine with a sentence of the answer from which on a memory counts as used."""

    def judge(self, query: str, answer: str, memories: Sequence[str], vectors: FloatArray) -> list[Judged]:
        """One verdict for each memory: contradicted goes before used."""
        said = [sentence for sentence in sentences(answer) if sentence.strip()]
        if not said:
            return [Judged(outcome="unused", because="the answer is empty") for _ in memories]
        spoken = self.embedder.embed_passages(said)
        stated = [_stated(query, sentence) for sentence in said]
        known, heard = set(content_words(query)), set(content_words(answer))
        held = [set(content_words(text)) for text in memories]
        common = set.intersection(*held) if len(held) > 1 else set()
        denied = values_of(answer).denies
        whole = [n for n in _whole(known, heard - known, held) if values_of(memories[n]).denies == denied]
        return [
            self._one(text, stated, own - known - common or own, heard, cosines(vector, spoken), whole=n in whole)
            for n, (text, own, vector) in enumerate(zip(memories, held, np.asarray(vectors), strict=True))
        ]

    def _one(
        self,
        text: str,
        stated: Sequence[tuple[str, bool]],
        own: set[str],
        heard: set[str],
        near: FloatArray,
        *,
        whole: bool,
    ) -> Judged:
        for sentence, named in stated:
            kind = self.contradiction.between(text, sentence).partition(":")[0]
            if kind and (named or kind != "name"):  # another name that the question says is another subject
                return Judged(outcome="contradicted", because=f"another {kind}")
        if whole:
            return Judged(outcome="used", because="it holds all that the answer says")
        shared = len(own & heard)
        if own and shared >= min(2, len(own)) and shared >= self.words * len(own):
            return Judged(outcome="used", because=f"{shared} of {len(own)} distinctive words")
        if near.max() >= self.likeness:
            return Judged(outcome="used", because=f"a sentence of cosine {near.max():.2f}")
        return Judged(outcome="unused", because=f"{shared} of {len(own)} distinctive words, cosine {near.max():.2f}")


def _stated(query: str, sentence: str) -> tuple[str, bool]:
    """What a sentence of an answer states, of what was asked if it's but a value; and whether the names are its own."""
    first = sentence.partition(" ")[0]
    said = f", {first.lower() if first.lower() in FUNCTION_WORDS else first}{sentence.removeprefix(first)}"
    alone = taken_apart(said)
    if alone.about:
        return sentence, True
    return f"{NUMBER.sub('', query).rstrip(' ?')}{said}", bool(alone.values.names)


def _whole(known: set[str], said: set[str], held: Sequence[set[str]]) -> list[int]:
    """Which of some memories hold all that is said beyond the question; of these, those that hold most of it.

    None where nothing is said beyond it, or where they hold nothing of it.
    """
    able = {n: len(known & own) for n, own in enumerate(held) if said and said <= own}
    most = max(able.values(), default=0)
    return [n for n, shared in able.items() if shared == most and (shared or not known)]


def moved(score: float, outcome: Outcome, rules: Reflection) -> float:
    """A reflection score after an answer, from 0 to 100.

    >>> [moved(50, outcome, Reflection()) for outcome in ("used", "unused", "contradicted")]
    [60.0, 45.0, 20.0]

    Source: MemoryArchitect, section D.
    """
    if outcome == "used":
        return rules.used(score)
    return float(max(0.0, score - (rules.unused if outcome == "unused" else rules.contradicted)))
