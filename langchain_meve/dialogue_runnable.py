"""Convert LangChain messages to a dialogue, and build small contexts of it in a runnable."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_meve._messages import message_role
from meve.dialogue import Dialogue, DialogueCache, SmallContext, SmallContextOptions, Turn, build_small_context
from meve.errors import ValidationError
from meve.pipeline.config import check_option_names


def dialogue_from_messages(messages: Sequence[BaseMessage], **parts: Any) -> Dialogue:
    """Convert messages, without system messages, to a dialogue; the speaker is a message's name or its role.

    Args:
        messages: LangChain's messages, in order.
        parts: options of `Dialogue.from_turns`: embedder, entities, tokens.

    Raises:
        ValidationError: something that is no message.

    >>> from langchain_core.messages import AIMessage, HumanMessage
    >>> dialogue_from_messages([HumanMessage("I live in Oslo."), AIMessage("Noted.")]).turns[0].label
    'user: '
    """
    return Dialogue.from_turns(_turns(messages), **parts)


class MeVeSmallContext(Runnable[Any, str]):
    """A runnable from `{"question": …, "history": [messages]}` to the prompt text for a small model.

    A history that grows is not read again. `context` returns the text with its trace.

    Args:
        question_key: the input's key of the question.
        history_key: the input's key of the earlier messages, which may be absent.
        max_dialogues: how many histories are cached, at least 1; set it to the number of concurrent conversations.
        embedder: as for `meve.dialogue.Dialogue`, like entities and tokens.
        entities: finds entities.
        tokens: counts tokens.
        options: of `meve.dialogue.build_small_context`: max_tokens, window, threshold, words, recent, candidates.

    Raises:
        ConfigurationError: an unknown option, or a value out of range.

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
        max_dialogues: int = 16,
        embedder: Any = None,
        entities: Any = None,
        tokens: Any = None,
        **options: Any,
    ) -> None:
        check_option_names(options, [f.name for f in fields(SmallContextOptions)], "a small context")
        SmallContextOptions(**options)
        self._question, self._history, self._options = question_key, history_key, options
        self._dialogues = DialogueCache(max_dialogues, embedder=embedder, entities=entities, tokens=tokens)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Return the context's text for a mapping with a question and a history.

        Raises:
            MeveError: as `context`.
        """
        return self._call_with_config(lambda given: self.context(given).text, input, config, **kwargs)

    def context(self, input: Mapping[str, Any]) -> SmallContext:
        """Return the context with its trace.

        Raises:
            ValidationError: `input` has no question, or its history holds something that is no message.
            MeveError: as `meve.dialogue.build_small_context`.
        """
        if not isinstance(input, Mapping) or self._question not in input:
            expected = f"{{{self._question!r}: …, {self._history!r}: […]}}"
            raise ValidationError(f"input must be like {expected}, got {input!r:.80}")
        dialogue = self._dialogues.get(_turns(input.get(self._history) or []))
        return build_small_context(dialogue, input[self._question], **self._options)


def _turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    invalid = next((m for m in messages if not isinstance(m, BaseMessage)), None)
    if invalid is not None:
        raise ValidationError(f"messages must be LangChain's messages, got {invalid!r:.80}")
    return [Turn(text=str(m.text), speaker=m.name or message_role(m)) for m in messages if message_role(m) != "system"]
