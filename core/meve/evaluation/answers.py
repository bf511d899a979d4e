"""When are two answers the same? Texts as the SQuAD metrics compare them."""

import re
import sys
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = {
    n: " " for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n))[0] == "P" or chr(n) in "$+<=>^`|~"
}
"""Of every script, with the ASCII signs that SQuAD takes for punctuation."""


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
