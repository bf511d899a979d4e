"""When are two answers the same? Texts as the SQuAD metrics compare them."""

import re
import unicodedata
from collections.abc import Sequence

_UNFINDABLE = {"yes", "no", "noanswer"}
"""Answers that a text doesn't show by holding them."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")


class _Spaces(dict[int, int | str]):
    """For `str.translate`: a space for punctuation of every script, and for the ASCII signs that SQuAD takes for it."""

    def __missing__(self, n: int) -> int | str:
        sign = chr(n)
        self[n] = " " if unicodedata.category(sign)[0] == "P" or sign in "$+<=>^`|~" else n
        return self[n]


_PUNCTUATION = _Spaces()


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous white space.

    SQuAD deletes ASCII punctuation; here all of it becomes a space, so that `New York-based` holds `New York`, and
    typographic signs count like plain ones. An answer of common words (The Who, US) is found where it isn't meant.

    Source: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text (2016), section 6.1.

    >>> normalised("The Eiffel Tower (1889), Paris.")
    'eiffel tower 1889 paris'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def words(text: str) -> list[str]:
    """The words of a text as answers are compared."""
    return normalised(text).split()


def holds(text: str, answer: str) -> bool:
    """Whether a text, normalised already, has the words of the answer in a row.

    >>> holds(normalised("It opened in May 1889."), "May, 1889"), holds(normalised("Norwegian"), "Norway")
    (True, False)
    """
    wanted = normalised(answer)
    return bool(wanted) and f" {wanted} " in f" {text} "


def findable(answers: Sequence[str]) -> Sequence[str]:
    """Those answers that have words; none where yes or no is one of them, which a text doesn't show by holding it.

    >>> findable(["Oslo", "?!"]), findable(["Yes."])
    (['Oslo'], [])
    """
    found = [a for a in answers if normalised(a)]
    return [] if any(normalised(a) in _UNFINDABLE for a in found) else found
