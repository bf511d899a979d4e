"""Counts tokens with a function of your own."""

from collections.abc import Callable, Sequence
from numbers import Integral

from meve.errors import TokenizerUnavailableError


class FunctionTokens:
    """A `TokenCounter` over a function from a text to its number of tokens.

    Args:
        function: counts; a whole number, not negative. Called from several threads at once.
        name: what context, trace and index call it; None for the function's own name.

    >>> FunctionTokens(lambda text: len(text.split()), "words").count("the moon")
    2
    """

    def __init__(self, function: Callable[[str], int], name: str | None = None) -> None:
        self._function = function
        self._name = name or str(getattr(function, "__qualname__", type(function).__qualname__))

    @property
    def name(self) -> str:
        """What the tokenizer is called."""
        return self._name

    def count(self, text: str) -> int:
        """The number of tokens of a text.

        Raises:
            TokenizerUnavailableError: the function returned something else than a whole number of at least 0.
        """
        found = self._function(text)
        if isinstance(found, bool) or not isinstance(found, Integral) or found < 0:
            raise TokenizerUnavailableError(
                f"token counter {self._name!r} returned {found!r}: it must return a whole number of at least 0"
            )
        return int(found)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The same for many texts, in the order given."""
        return [self.count(text) for text in texts]
