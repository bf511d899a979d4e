"""A runnable that answers from a user's memory, with routing and checks."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor

from langchain_meve._user_id import resolve_user_id, runtime_context
from meve.components.llms import LanguageModelLike, resolve_llm
from meve.errors import ValidationError
from meve.memory import GovernedMemory
from meve.memory._wrapper_support import check_memory
from meve.memory.records import UserId
from meve.routing import MemoryRouter, RoutedAnswer, RouterConfig


class MeVeMemoryRouter(Runnable[Any, AIMessage]):
    """A runnable from a question to an answer from the user's memory; `meve.routing.MemoryRouter` describes it.

    The input is one of a chat model: a text, a prompt, a message, or messages, of which the last one of the user is the
    question; what was said before isn't part of it. The answer's `response_metadata` holds the tier, the verdicts,
    whether the router abstained, and the ids of the memories.

    The user is `user_id`, or else that of the runtime context or of `config["configurable"]`; without one, or with two
    that differ, a call fails.

    Args:
        memory: the governed memory; the caller closes it.
        llm: the chat model that answers, or another language model as for `MemoryRouter`.
        user_id: the only user; None to resolve the user of each call.
        routing: the settings of the router.
        search: filters of each search, as for `GovernedMemory.search`.

    Raises:
        ConfigurationError: no memory, no language model, or an invalid option.
    """

    def __init__(
        self,
        memory: GovernedMemory,
        llm: LanguageModelLike,
        *,
        user_id: UserId | None = None,
        routing: RouterConfig | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        self.memory, self._user_id = check_memory(memory), user_id
        self._options: dict[str, Any] = {"llm": resolve_llm(llm), "config": routing, "search": search}
        MemoryRouter(memory, user_id="anybody", **self._options)  # checks them

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Return the answer to a question.

        Raises:
            ValidationError: no question, or no user.
            MeveError: as `MemoryRouter.answer`.
        """
        return self._call_with_config(lambda given: _to_message(self.answer(given, config)), input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Run `invoke` in a thread, without blocking the event loop."""
        return await run_in_executor(config, self.invoke, input, config, **kwargs)

    def answer(self, input: Any, config: RunnableConfig | None = None) -> RoutedAnswer:
        """Return the answer with its evidence and all steps. Raises as `invoke`."""
        user_id = resolve_user_id(self._user_id, runtime_context(), ensure_config(config))
        return MemoryRouter(self.memory, user_id=user_id, **self._options).answer(_question(input))


def _question(given: Any) -> str:
    for each in reversed(_to_messages(given)):
        if isinstance(each, HumanMessage):
            return str(each.text)
    raise ValidationError(f"input must be a question or messages with one of the user, got {given!r:.80}")


def _to_messages(given: Any) -> list[BaseMessage]:
    """Return an input of a chat model as messages; none for anything else."""
    if isinstance(given, PromptValue):
        return given.to_messages()
    messages = given if isinstance(given, list | tuple) else [given]
    try:
        return convert_to_messages(messages) if all(messages) and not isinstance(given, Mapping) else []
    except (ValueError, NotImplementedError):
        return []


def _to_message(answer: RoutedAnswer) -> AIMessage:
    return AIMessage(answer.text, response_metadata=answer.summary())
