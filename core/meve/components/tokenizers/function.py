"""Counts tokens with your own function."""

from collections.abc import Callable, Sequence
from numbers import Integral

from meve.errors import TokenizerUnavailableError


class FunctionTokens:
    """A `TokenCounter` over a function from a text to its number of tokens.

    Args:
        function: returns a whole number of at least 0. Called from several threads at once.
        name: the name in context, trace and index; None for the function's own name.

    >>> FunctionTokens(lambda text: len(text.split()), "words").count("the moon")
    2
    """

    def __init__(self, function: Callable[[str], int], name: str | None = None) -> None:
        self._function = function
        self.name = name or str(getattr(function, "__qualname__", type(function).__qualname__))

    def count(self, text: str) -> int:
        """Return the number of tokens of a text.

        Raises:
            TokenizerUnavailableError: the function didn't return a whole number of at least 0.
        """
        count = self._function(text)
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise TokenizerUnavailableError(
                f"token counter {self.name!r} must return a whole number of at least 0, got {count!r}"
            )
        return int(count)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in the order given."""
        return [self.count(text) for text in texts]
