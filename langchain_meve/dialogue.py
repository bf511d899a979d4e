"""LangChain's messages as a dialogue, and what a small model needs of it as a runnable."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_meve._messages import role_of
from meve.dialogue import Dialogue, DialogueCache, SmallContext, Turn, build_small_context
from meve.dialogue import SmallContextOptions
from meve.errors import ValidationError
from meve.pipeline.config import check_names


def dialogue_of(messages: Sequence[BaseMessage], **parts: Any) -> Dialogue:
    """A dialogue of messages: their text, spoken by whoever is named, or by their role; not system messages.

    Args:
        messages: in their order.
        parts: of `Dialogue.from_turns`: embedder, entities, tokens.

    Raises:
        ValidationError: something that is no message.

    >>> from langchain_core.messages import AIMessage, HumanMessage
    >>> dialogue_of([HumanMessage("I live in Oslo."), AIMessage("Noted.")]).turns[0].label
    'user: '
    """
    return Dialogue.from_turns(_turns(messages), **parts)


class MeVeSmallContext(Runnable[Any, str]):
    """From `{"question": …, "history": [messages]}` to what goes into a small model's prompt, as text.

    A history that goes on is not read anew. `context` gives the whole account.

    Args:
        question_key: where the question stands.
        history_key: where the messages before it stand; none if it is absent.
        most: how many histories are remembered, as for `meve.dialogue.DialogueCache`: as many as go on at a time.
        embedder: as for `meve.dialogue.Dialogue`, and so are
        entities: what finds entities, and
        tokens: what counts.
        options: of `meve.dialogue.build_small_context`: max_tokens, window, threshold, words, recent, candidates.

    Raises:
        ConfigurationError: an option that there isn't, or a value out of range.

    >>> from langchain_core.messages import HumanMessage
    >>> small = MeVeSmallContext(max_tokens=60, recent=0)
    >>> print(small.invoke({"question": "Where do I live?", "history": [HumanMessage("I live in Oslo.")]}))
    Where do I live?
    <BLANKLINE>
    Said before:
    user: I live in Oslo.
    """

    def __init__(
        self,
        *,
        question_key: str = "question",
        history_key: str = "history",
        most: int = 16,
        embedder: Any = None,
        entities: Any = None,
        tokens: Any = None,
        **options: Any,
    ) -> None:
        check_names(options, [f.name for f in fields(SmallContextOptions)], "a small context")
        SmallContextOptions(**options)
        self._question, self._history, self._options = question_key, history_key, options
        self._kept = DialogueCache(most, embedder=embedder, entities=entities, tokens=tokens)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """The text.

        Raises:
            ValidationError: no mapping with a question, or something among the messages that is none.
            MeveError: as `meve.dialogue.build_small_context`.
        """
        return self._call_with_config(lambda given: self.context(given).text, input, config, **kwargs)

    def context(self, input: Mapping[str, Any]) -> SmallContext:
        """The text with its account.

        Raises:
            ValidationError: no mapping with a question, or something among the messages that is none.
            MeveError: as `meve.dialogue.build_small_context`.
        """
        if not isinstance(input, Mapping) or self._question not in input:
            raise ValidationError(f"the input is {input!r:.80}: give {{{self._question!r}: …, {self._history!r}: […]}}")
        dialogue = self._kept.get(_turns(input.get(self._history) or []))
        return build_small_context(dialogue, input[self._question], **self._options)


def _turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    wrong = next((m for m in messages if not isinstance(m, BaseMessage)), None)
    if wrong is not None:
        raise ValidationError(f"among the messages is {wrong!r:.80}: give LangChain's messages")
    return [Turn(text=str(m.text), speaker=m.name or role_of(m)) for m in messages if role_of(m) != "system"]
