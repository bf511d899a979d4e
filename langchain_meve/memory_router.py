"""A runnable that answers from a user's memory, with routing and checks."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config

from langchain_meve._user_id import resolve_user_id, runtime_context
from meve.components.llms import LanguageModelLike, resolve_llm
from meve.errors import ValidationError
from meve.memory import GovernedMemory
from meve.memory._wrapper_support import check_memory
from meve.memory.records import UserId
from meve.routing import MemoryRouter, RoutedAnswer, RouterConfig
from meve.routing._follow_ups import join_follow_up
from meve.routing._own_thread import run_in_own_thread

_MESSAGES = "messages"
"""The key of the messages in a graph's state."""


class MeVeMemoryRouter(Runnable[Any, Any]):
    """A runnable from a question to an answer from the user's memory; `meve.routing.MemoryRouter` describes it.

    The input is one of a chat model: a text, a prompt, a message, or messages, of which the last one of the user is the
    question. A follow-up such as `And my brother?` is joined with the question before it; other earlier messages aren't
    read. The answer is a message, whose `response_metadata` holds the tier, the verdicts, whether the router abstained,
    and the ids of the memories.

    As a node of a graph it takes the state, `{"messages": […]}`, and returns `{"messages": [answer]}`. An answer is
    streamed once it has passed its checks, not token by token.

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

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the answer to a question as a message, or for the state of a graph, the state's update.

        Raises:
            ValidationError: no question, or no user.
            MeveError: as `MemoryRouter.answer`.
        """

        def run(given: Any) -> Any:
            message = _to_message(self.answer(given, config))
            return {_MESSAGES: [message]} if isinstance(given, Mapping) else message

        return self._call_with_config(run, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run `invoke` in a thread of its own, without blocking the event loop."""
        return await run_in_own_thread(self.invoke, input, config, **kwargs)

    def answer(self, input: Any, config: RunnableConfig | None = None) -> RoutedAnswer:
        """Return the answer with its evidence and all steps. Raises as `invoke`."""
        user_id = resolve_user_id(self._user_id, runtime_context(), ensure_config(config))
        return MemoryRouter(self.memory, user_id=user_id, **self._options).answer(_question(input))


def _question(given: Any) -> str:
    messages = _to_messages(given.get(_MESSAGES) if isinstance(given, Mapping) else given)
    asked = [str(each.text) for each in messages if isinstance(each, HumanMessage)]
    if not asked:
        raise ValidationError(
            f"input must be a question, messages with one of the user, or a state with such messages, got {given!r:.80}"
        )
    return join_follow_up(asked)


def _to_messages(given: Any) -> list[BaseMessage]:
    """Return an input of a chat model as messages; none for anything else."""
    if isinstance(given, PromptValue):
        return given.to_messages()
    messages = given if isinstance(given, list | tuple) else [given]
    try:
        return convert_to_messages(messages) if all(messages) else []
    except (ValueError, NotImplementedError):
        return []


def _to_message(answer: RoutedAnswer) -> AIMessage:
    return AIMessage(answer.text, response_metadata=answer.summary())
