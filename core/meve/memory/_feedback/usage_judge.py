"""Judges which of the recalled memories an answer used, and which it contradicts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from meve._formulas import cosines
from meve.components._sentence_splitter import split_sentences
from meve.components.lexical.analyzers import FUNCTION_WORDS, content_words, words
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.statements import NUMBER, Statement, StatementValues, parse_statement, parse_values
from meve.memory._contradiction.values import normalise_values
from meve.memory._feedback.agreement import may_be_same_days, may_be_same_numbers
from meve.memory.policy import Reflection
from meve.ports import Embedder
from meve.types import FloatArray

UsageOutcome: TypeAlias = Literal["used", "unmentioned", "unused", "contradicted"]
"""`unmentioned`: the answer doesn't show whether it used the memory, which it may have obeyed. `unused`: it didn't."""

_OPENINGS = """
sure|sure thing|certainly|absolutely|definitely|exactly|correct|indeed|of course|gladly|perfect|great|great question
good|good question|good point|nice|lovely|wonderful|fine|right|ok|okay|alright|yes|yeah|yep|no|nope|thanks|thank you
sorry|hello|hi|hey|ah|oh|well|so|got it|noted|understood|no problem|no worries|happy to help|you're welcome
as you said|as you told me|if i remember right|if i remember correctly
"""
_OPENING = re.compile(rf"(?:\s*\b(?:{'|'.join(_OPENINGS.split(chr(10))[1:-1])})\b[\s,.!:;–—-]*)+", re.IGNORECASE)
"""What an answer may begin with and that says nothing."""
_SUPPOSITION = re.compile(r"\?\s*$|\b(?:if|unless|whether|would|could|might|suppose|imagine)\b", re.IGNORECASE)
"""A sentence that claims nothing: a question or a supposition."""
_PRONOUN_ONE = re.compile(r"(?<=\w )ones?\b(?!\s+\w)", re.IGNORECASE)
"""As in "the green one", which is no number."""
_NOT_SUBJECT = re.compile(rf"{NUMBER.pattern}|\bhow (?:many|much|long|often|old|far|big)\b", re.IGNORECASE)
"""What a question asks for, and its own numbers."""
_MOST_CLAIMS = 100
"""The sentences of an answer that are compared with each memory; later ones contradict nothing."""
_MOST_EMBEDDED = 100
"""The distinct sentences of an answer that are embedded: those that share most words with the memories."""
_JOINED = 200
"""The last characters of a question that are joined to each value of an answer."""
_NO_VALUES = parse_values("")
_DENIAL = re.compile(r"(?:no|nope|nah)\W*", re.IGNORECASE)


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
            return [UsageVerdict(outcome="unmentioned", reason="the answer is empty") for _ in memories]
        claimed = islice(filter(None, map(_find_claim, answer_sentences)), _MOST_CLAIMS)
        claims = [_complete(query, claim) for claim in claimed]
        said = parse_values(answer)
        query_words, answer_words, *memory_words = (
            set(content_words(normalise_values(text))) for text in (query, answer, *memories)
        )
        sentence_vectors = self.embedder.embed_passages(_choose_sentences(answer_sentences, memory_words))
        common = set.intersection(*memory_words) if len(memory_words) > 1 else set()
        complete = _find_complete(query_words, answer_words - query_words, memory_words)
        verdicts = []
        for n, (text, own_words, vector) in enumerate(zip(memories, memory_words, np.asarray(vectors), strict=True)):
            distinctive = own_words - query_words - common or own_words
            is_complete = n in complete and parse_values(text).negated == said.negated
            similarity = cosines(vector, sentence_vectors).max()
            difference = self._find_contradiction(text, claims, said)
            if difference:
                verdicts.append(UsageVerdict(outcome="contradicted", reason=f"another {difference}"))
            else:
                verdicts.append(self._judge_use(distinctive, answer_words, similarity, is_complete))
        return verdicts

    def _find_contradiction(self, text: str, claims: Sequence["_Claim"], said: StatementValues) -> str:
        """Return in what an answer contradicts a memory: `number`, `day`, `name` and so on; empty if it doesn't.

        A missed contradiction does less harm than a false one: an answer that also says the memory's value agrees with
        it, and a claim with a name or a word that the memory lacks may be about something else.
        """
        own = parse_statement(text)
        agreed = {
            "number": own.values.numbers & said.numbers,
            "day": own.values.days & said.days,
            "name": {name for name in own.values.names if name in said.names},
        }
        for claim in claims:
            statement = claim.statement
            kind = self._find_difference(own, statement).partition(":")[0]
            if not kind or agreed.get(kind) or (kind == "name" and not claim.has_own_names):
                continue  # another name that is the question's is another subject
            if (kind == "number" and may_be_same_numbers(own, statement)) or (
                kind == "day" and may_be_same_days(own.values.days, statement.values.days)
            ):
                continue
            has_foreign_words = statement.subject - own.subject
            is_elsewhere = has_foreign_words and (claim.is_joined or kind in ("denial", "name"))
            if is_elsewhere or (kind != "name" and statement.values.names - own.values.names):
                continue
            return kind
        return ""

    def _find_difference(self, memory: Statement, claim: Statement) -> str:
        if isinstance(self.contradiction, RuleContradiction):
            return self.contradiction.compare_statements(memory, claim)  # without parsing them again
        return self.contradiction.find_difference(memory.text, claim.text)

    def _judge_use(
        self, distinctive: set[str], answer_words: set[str], similarity: float, is_complete: bool
    ) -> UsageVerdict:
        if is_complete:
            return UsageVerdict(outcome="used", reason="it holds all that the answer says")
        total, shared = len(distinctive), len(distinctive & answer_words)
        if total and shared >= min(2, total) and shared >= self.word_share * total:
            return UsageVerdict(outcome="used", reason=f"{shared} of {total} distinctive words")
        if similarity >= self.similarity:
            return UsageVerdict(outcome="used", reason=f"a sentence of cosine {similarity:.2f}")
        reason = f"{shared} of {total} distinctive words, cosine {similarity:.2f}"
        return UsageVerdict(outcome="unmentioned", reason=reason)


def _choose_sentences(sentences: Sequence[str], memory_words: Sequence[set[str]]) -> list[str]:
    """Return the distinct sentences, of very many those that share most words with the memories."""
    distinct = list(dict.fromkeys(sentences))
    if len(distinct) <= _MOST_EMBEDDED:
        return distinct
    known = set().union(*memory_words)
    shared = {sentence: len(known.intersection(content_words(normalise_values(sentence)))) for sentence in distinct}
    return sorted(distinct, key=shared.__getitem__, reverse=True)[:_MOST_EMBEDDED]


def _find_claim(sentence: str) -> str:
    """Return what a sentence of an answer claims, without its opening; empty for questions and suppositions."""
    if _SUPPOSITION.search(sentence):
        return ""
    opening = _OPENING.match(sentence)
    claim = sentence[opening.end() :] if opening else sentence
    return _PRONOUN_ONE.sub("", claim if claim.strip() or not _DENIAL.fullmatch(sentence.strip()) else sentence).strip()


class _Claim(NamedTuple):
    """A sentence of an answer as a statement."""

    statement: Statement
    has_own_names: bool
    is_joined: bool
    """Whether it is only a value, to which the question was joined."""


def _complete(query: str, sentence: str) -> _Claim:
    """Return a sentence as a statement, joined to the question if it is only a value."""
    first = sentence.partition(" ")[0]
    is_name = first.lower() not in FUNCTION_WORDS and parse_values(first.lower()) == _NO_VALUES
    suffix = f", {first if is_name else first.lower()}{sentence.removeprefix(first)}"
    statement = parse_statement(suffix)
    is_amount = statement.values.numbers and FUNCTION_WORDS.isdisjoint(words(sentence))  # "900 euros."
    if statement.subject and not is_amount:
        return _Claim(parse_statement(sentence), has_own_names=True, is_joined=False)
    joined = f"{_NOT_SUBJECT.sub('', query[-_JOINED:]).rstrip(' ?')}{suffix}"
    return _Claim(parse_statement(joined), has_own_names=bool(statement.values.names), is_joined=True)


def _find_complete(query_words: set[str], new_words: set[str], memory_words: Sequence[set[str]]) -> list[int]:
    """Return the memories that contain all new words of the answer; of these, those with most words of the question.

    Returns none if there are no new words, or if no memory contains a word of the question.
    """
    shared = {n: len(query_words & own) for n, own in enumerate(memory_words) if new_words and new_words <= own}
    most = max(shared.values(), default=0)
    return [n for n, count in shared.items() if count == most and (count or not query_words)]


def adjust_score(score: float, outcome: UsageOutcome, rules: Reflection) -> float:
    """Return a reflection score after an answer, from 0 to 100.

    >>> [adjust_score(50, outcome, Reflection()) for outcome in ("used", "unmentioned", "contradicted")]
    [60.0, 50.0, 20.0]

    Source: MemoryArchitect, section D.
    """
    if outcome == "used":
        return rules.raise_score(score)
    return float(max(0.0, score - (rules.contradicted if outcome == "contradicted" else rules.unused)))
