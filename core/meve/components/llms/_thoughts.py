"""Removes the thoughts that a reasoning model writes before its answer."""

import re
from dataclasses import dataclass

from meve.ports import LanguageModel

_THOUGHTS = re.compile(r".*</think(?:ing)?>\s*|\s*<think(?:ing)?>.*", re.DOTALL)
"""All up to the last closing tag, since templates of chats may write the opening one; or thoughts without an end."""


@dataclass(frozen=True, slots=True)
class WithoutThoughts:
    """A language model whose answers begin after its thoughts, `<think>…</think>`.

    Thoughts without an end, as of a model that ran out of tokens, leave an empty answer.
    """

    model: LanguageModel

    def __call__(self, prompt: str, /) -> str:
        """Return the model's answer."""
        answer = self.model(prompt)
        given: object = answer  # another type is for the caller to name
        thoughts = _THOUGHTS.match(answer) if isinstance(given, str) else None
        return answer[thoughts.end() :] if thoughts else answer
