"""Comparison of answers with texts, as the SQuAD metrics do it."""

import re
import unicodedata
from collections.abc import Sequence

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
    """Whether a normalized text has the words of the answer in a row.

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
