"""Measures of answers in the prompt's text; they need no language model and no gold passages.

Answers are compared with texts as the SQuAD metrics do it.
"""

import re
import unicodedata
from collections.abc import Sequence

from meve.components.lexical.analyzers import content_words
from meve.evaluation.measures._measure import Measure, each
from meve.evaluation.types import Question, QuestionOutcome

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_PROXY_SOURCE = "MeVe (Ottem 2025), appendix A.5 and figure 5"
_UNSEARCHABLE = {"yes", "no", "noanswer"}
"""Answers that can't be found by searching a text for them."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")


class _PunctuationToSpace(dict[int, int | str]):
    """A table for `str.translate`: punctuation of every script, and the ASCII signs of SQuAD, become spaces."""

    def __missing__(self, n: int) -> int | str:
        sign = chr(n)
        self[n] = " " if unicodedata.category(sign)[0] == "P" or sign in "$+<=>^`|~" else n
        return self[n]


_PUNCTUATION = _PunctuationToSpace()


def normalize_answer(text: str) -> str:
    """Return the text in lower case, without punctuation, articles and superfluous white space.

    SQuAD deletes ASCII punctuation. Here all punctuation becomes a space, so that `New York-based` contains `New York`.
    Answers made of common words (The Who, US) are found in texts that don't mean them.

    Source: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text (2016), section 6.1.

    >>> normalize_answer("The Eiffel Tower (1889), Paris.")
    'eiffel tower 1889 paris'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def contains_answer(text: str, answer: str) -> bool:
    """Return whether a normalized text contains the words of the answer in a row.

    >>> contains_answer(normalize_answer("It opened in May 1889."), "May, 1889")
    True
    >>> contains_answer(normalize_answer("Norwegian"), "Norway")
    False
    """
    words = normalize_answer(answer)
    return bool(words) and f" {words} " in f" {text} "


def searchable_answers(answers: Sequence[str]) -> Sequence[str]:
    """Return the answers that have words; none if one of them is yes or no.

    >>> searchable_answers(["Oslo", "?!"]), searchable_answers(["Yes."])
    (['Oslo'], [])
    """
    with_words = [a for a in answers if normalize_answer(a)]
    return [] if any(normalize_answer(a) in _UNSEARCHABLE for a in with_words) else with_words


def share_of_words(answers: Sequence[str], text: str) -> float:
    """Return the share of an answer's distinct words that the text contains: the largest of all answers.

    Args:
        answers: at least one, each with words, as `searchable_answers` returns them.
        text: any text; it needn't be normalized.
    """
    known = set(normalize_answer(text).split())
    return max(len(words & known) / len(words) for words in (set(normalize_answer(a).split()) for a in answers))


def has_searchable_answer(question: Question) -> bool:
    """Return whether the question is answerable, and some accepted answer can be searched for; not for yes and no."""
    return question.answerable and bool(searchable_answers(question.answers))


def has_misleading_answer(question: Question) -> bool:
    """Return whether a wrong answer is known that has words."""
    return any(map(normalize_answer, question.misleading))


def contains_any(text: str, answers: Sequence[str]) -> float:
    """Return 1 if the words of one of the answers stand in a text in a row, otherwise 0."""
    normalized = normalize_answer(text)
    return float(any(contains_answer(normalized, answer) for answer in answers))


def token_recall(question: Question, outcome: QuestionOutcome) -> float:
    """Return the largest share of an accepted answer's distinct words in the prompt."""
    return share_of_words(searchable_answers(question.answers), outcome.output.text)


def shared_keywords(question: Question, outcome: QuestionOutcome) -> float:
    """Return the share of the question's keywords in the prompt's best-matching sentence, in [0, 1].

    The MeVe paper calls that sentence derived from the context if it shares enough keywords, but publishes no number.
    Here one keyword is enough for "derived" and half of them for "potentially relevant". The proxy can't tell right
    from wrong answers, and is kept for comparison only.
    """
    keywords = set(content_words(question.text))
    if not keywords:
        return 0.0
    sentences = _SENTENCE.split(outcome.output.text)
    return max(len(keywords & set(content_words(sentence))) for sentence in sentences) / len(keywords)


MEASURES = (
    Measure(
        name="answer in context",
        meaning="share of the questions whose answer's words stand in the prompt in a row",
        source="Karpukhin et al., Dense Passage Retrieval (2020), section 5; answers compared as Rajpurkar et al., "
        "SQuAD (2016), section 6.1",
        values=each(
            lambda question, outcome: contains_any(outcome.output.text, searchable_answers(question.answers)),
            has_searchable_answer,
        ),
    ),
    Measure(
        name="context token recall",
        meaning="share of the answer's words that are in the prompt; no reader has answered",
        source="token recall of the query-aware memory paper, which takes it of a generated answer",
        values=each(token_recall, has_searchable_answer),
    ),
    Measure(
        name="wrong answer in context",
        meaning="share of the questions with a false answer in the prompt, where some passage gives one",
        source="the counterfactual passages of Chen et al., Benchmarking Large Language Models in Retrieval-Augmented "
        "Generation (2024), section 3; here of the prompt, no reader having answered",
        better="lower",
        values=each(
            lambda question, outcome: contains_any(outcome.output.text, question.misleading), has_misleading_answer
        ),
    ),
)
PROXIES = (
    Measure(
        name="proxy: derived from context",
        meaning="share of the questions with a keyword in common with a sentence of the context",
        source=_PROXY_SOURCE,
        better="neither",
        values=each(lambda question, outcome: float(shared_keywords(question, outcome) > 0)),
    ),
    Measure(
        name="proxy: potentially relevant",
        meaning="share of the questions with half of their keywords in one sentence of the context",
        source=_PROXY_SOURCE,
        better="neither",
        values=each(lambda question, outcome: float(shared_keywords(question, outcome) >= 0.5)),
    ),
)
