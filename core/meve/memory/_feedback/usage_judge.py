"""Judges which of the recalled memories an answer used, and which it contradicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from meve._formulas import cosines
from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import FUNCTION_WORDS, content_words
from meve.memory._contradiction.rules import Contradiction
from meve.memory._contradiction.statements import NUMBER, parse_statement, parse_values
from meve.memory.policy import Reflection
from meve.ports import Embedder
from meve.types import FloatArray

UsageOutcome: TypeAlias = Literal["used", "unused", "contradicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageVerdict:
    """The use of a memory by an answer."""

    outcome: UsageOutcome
    reason: str
    """A few words, without text of the memory or the answer."""


class UsageJudge(Protocol):
    """Judges how an answer used the memories that were recalled for it."""

    def judge(self, query: str, answer: str, memories: Sequence[str], vectors: FloatArray) -> list[UsageVerdict]:
        """Return a verdict for each memory.

        Args:
            query: the question.
            answer: the answer.
            memories: texts of the memories.
            vectors: their embeddings, shape (n, d).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUsageJudge:
    """Judges by distinctive words that answer and memory share, and by the most similar sentence of the answer.

    A word is distinctive if the question lacks it and not every memory contains it. A memory that contains all that the
    answer adds to the question is used, even if that is one word ("Tomatoes."). If several do, those with most of the
    question's words are.
    """

    embedder: Embedder
    contradiction: Contradiction
    word_share: float = 0.5
    """Minimum share of a memory's distinctive words in the answer; at least two words, if there are two."""
    similarity: float = 0.8
    """Minimum cosine with a sentence of the answer."""

    def judge(self, query: str, answer: str, memories: Sequence[str], vectors: FloatArray) -> list[UsageVerdict]:
        """Return a verdict for each memory; "contradicted" takes precedence over "used"."""
        answer_sentences = [sentence for sentence in split_sentences(answer) if sentence.strip()]
        if not answer_sentences:
            return [UsageVerdict(outcome="unused", reason="the answer is empty") for _ in memories]
        sentence_vectors = self.embedder.embed_passages(answer_sentences)
        statements = [_complete(query, sentence) for sentence in answer_sentences]
        query_words, answer_words = set(content_words(query)), set(content_words(answer))
        memory_words = [set(content_words(text)) for text in memories]
        common = set.intersection(*memory_words) if len(memory_words) > 1 else set()
        negated = parse_values(answer).negated
        complete = _find_complete(query_words, answer_words - query_words, memory_words)
        verdicts = []
        for n, (text, own_words, vector) in enumerate(zip(memories, memory_words, np.asarray(vectors), strict=True)):
            distinctive = own_words - query_words - common or own_words
            is_complete = n in complete and parse_values(text).negated == negated
            similarity = cosines(vector, sentence_vectors).max()
            verdicts.append(self._judge_one(text, statements, distinctive, answer_words, similarity, is_complete))
        return verdicts

    def _judge_one(
        self,
        text: str,
        statements: Sequence[tuple[str, bool]],
        distinctive: set[str],
        answer_words: set[str],
        similarity: float,
        is_complete: bool,
    ) -> UsageVerdict:
        for statement, has_own_names in statements:
            kind = self.contradiction.find_difference(text, statement).partition(":")[0]
            if kind and (has_own_names or kind != "name"):  # another name that is the question's is another subject
                return UsageVerdict(outcome="contradicted", reason=f"another {kind}")
        if is_complete:
            return UsageVerdict(outcome="used", reason="it holds all that the answer says")
        total, shared = len(distinctive), len(distinctive & answer_words)
        if total and shared >= min(2, total) and shared >= self.word_share * total:
            return UsageVerdict(outcome="used", reason=f"{shared} of {total} distinctive words")
        if similarity >= self.similarity:
            return UsageVerdict(outcome="used", reason=f"a sentence of cosine {similarity:.2f}")
        return UsageVerdict(outcome="unused", reason=f"{shared} of {total} distinctive words, cosine {similarity:.2f}")


def _complete(query: str, sentence: str) -> tuple[str, bool]:
    """Return a sentence as a statement, joined to the question if it is only a value; and whether it has own names."""
    first = sentence.partition(" ")[0]
    suffix = f", {first.lower() if first.lower() in FUNCTION_WORDS else first}{sentence.removeprefix(first)}"
    statement = parse_statement(suffix)
    if statement.subject:
        return sentence, True
    return f"{NUMBER.sub('', query).rstrip(' ?')}{suffix}", bool(statement.values.names)


def _find_complete(query_words: set[str], new_words: set[str], memory_words: Sequence[set[str]]) -> list[int]:
    """Return the memories that contain all new words of the answer; of these, those with most words of the question.

    Returns none if there are no new words, or if no memory contains a word of the question.
    """
    shared = {n: len(query_words & own) for n, own in enumerate(memory_words) if new_words and new_words <= own}
    most = max(shared.values(), default=0)
    return [n for n, count in shared.items() if count == most and (count or not query_words)]


def adjust_score(score: float, outcome: UsageOutcome, rules: Reflection) -> float:
    """Return a reflection score after an answer, from 0 to 100.

    >>> [adjust_score(50, outcome, Reflection()) for outcome in ("used", "unused", "contradicted")]
    [60.0, 45.0, 20.0]

    Source: MemoryArchitect, section D.
    """
    if outcome == "used":
        return rules.raise_score(score)
    return float(max(0.0, score - (rules.unused if outcome == "unused" else rules.contradicted)))
