"""Show the examples of docstrings as code in the API reference: a Griffe extension."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1(?! *$).+)*", re.M)


def fence_examples(text: str) -> str:
    r"""Return a docstring with a code fence around each example.

    >>> print(fence_examples("Add.\n\n>>> 1 + 1\n2"))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return _EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", text)


class DoctestFences(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401
        """Change the docstring of an object that was read."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
