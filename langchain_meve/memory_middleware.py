"""Governed memory for agents: recalled before the model answers, written and judged after."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, TracePolicy
from langchain.agents.middleware.types import omit_payload
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime

from langchain_meve._messages import answer, last_turn, window, with_memory
from langchain_meve._turn_state import State, noted, spoken
from langchain_meve._user_id import session_of, user_of
from meve.conversation import Turn
from meve.memory import GovernedMemory
from meve.memory._integration import (
    OnError,
    PendingRecalls,
    check_memory,
    check_on_error,
    check_rules,
    check_search,
    tolerate_failures,
)
from meve.memory._recall.formatting import format_recall
from meve.memory._recall.searcher import Recall
from meve.memory.records import UserId, user_key
from meve.memory.turns import TurnRules, record_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What a user said, and to whom it belongs."""

    user_id: UserId
    session_id: str | None
    said: list[Turn]
    """What the turn holds so far, in its order."""

    @property
    def text(self) -> str:
        """What is answered; empty where nothing was said in words."""
        return "" if self._asked is None else self._asked.text

    @property
    def key(self) -> tuple[Any, ...]:
        return (user_key(self.user_id), self.session_id, "" if self._asked is None else self._asked.id, self.text)

    @property
    def _asked(self) -> Turn | None:
        return next((each for each in reversed(self.said) if each.speaker == "user" and each.text.strip()), None)


class MeVeMemoryMiddleware(AgentMiddleware[State, Any, Any]):
    """Memory over conversations for `create_agent`.

    Before the model answers, what the user's memory holds on the question stands at the end of the system message,
    marked as data; it is never written into the messages. After the agent's answer, what the user stated is remembered,
    and the scores of what was recalled move by whether the answer used it. One recall for each turn, however many tools
    are called in it; what the conversation shows anyway isn't recalled.

    Whose memory: `user_id` of the runtime's context, then of `config["configurable"]`. Without, or with two that
    differ, nothing is read, and the call fails. The conversation is the thread.

    Args:
        memory: remembers.
        user_id: the only user, for an agent that has but one.
        search: options of `GovernedMemory.search` for each recall: `limit`, `max_tokens`, `tags`, `classes`, …
        remember: which turns are remembered, and as what; None for none.
        on_error: where the memory can't be read or written: `warn` (a `MemoryLostWarning`, and the conversation goes
            on) or `raise`. What would mix up users raises in any case.
        trace_payloads: whether the hooks' inputs and outputs stand in traces.

    Raises:
        ConfigurationError: no memory, or an option that can't be.

    Setup:
        `pip install 'meve[langchain-agents]'`

    Use with an agent:
        `create_agent(model, tools, middleware=[MeVeMemoryMiddleware(memory)])`
    """

    state_schema = State

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId | None = None,
        search: Mapping[str, Any] | None = None,
        remember: TurnRules | None = TurnRules(),  # noqa: B008 (frozen)
        on_error: OnError = "warn",
        trace_payloads: bool = False,
    ) -> None:
        super().__init__()
        self.memory = check_memory(memory)
        self._user_id = user_id
        self._search = check_search(memory, search)
        self._rules = check_rules(remember)
        self._on_error = check_on_error(on_error)
        self._held = PendingRecalls()
        hidden = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)
        self.trace_policy = None if trace_payloads else hidden

    def before_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note what the user said, and that it was this user."""
        return noted(state, user_key(self._user(runtime)))

    async def abefore_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Let the model see what is remembered."""
        turn = self._turn(request.state, request.messages, request.runtime)
        text = self._told(turn, window(request.messages)) if turn.text else ""
        return handler(request.override(system_message=with_memory(request.system_message, text)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same, off the event loop."""
        turn = self._turn(request.state, request.messages, request.runtime)
        text = await self.memory.run_async(self._told, turn, window(request.messages)) if turn.text else ""
        return await handler(request.override(system_message=with_memory(request.system_message, text)))

    def after_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember what was said, and judge what was recalled."""
        self._write(self._turn(state, state["messages"], runtime), _answer(state))
        return None

    async def aafter_agent(self, state: State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same, off the event loop."""
        await self.memory.run_async(self._write, self._turn(state, state["messages"], runtime), _answer(state))
        return None

    def _user(self, runtime: Runtime[Any] | None) -> UserId:
        """Whose turn it is.

        Raises:
            ValidationError: nobody's.
        """
        return user_of(self._user_id, getattr(runtime, "context", None), ensure_config())

    def _turn(
        self, state: Mapping[str, Any] | None, messages: Sequence[BaseMessage], runtime: Runtime[Any] | None
    ) -> _Turn:
        user = self._user(runtime)
        said = spoken(state or {}, messages, user_key(user))
        return _Turn(user_id=user, session_id=session_of(ensure_config()), said=said)

    def _told(self, turn: _Turn, shown: tuple[str, ...]) -> str:
        with tolerate_failures(self._on_error, "recalling from memory"):
            return format_recall(self.memory, self._recall(turn, shown))
        return ""

    def _recall(self, turn: _Turn, shown: tuple[str, ...]) -> Recall:
        found = self._held.find(turn.key)
        if found is None:
            found = self.memory.search(turn.text, user_id=turn.user_id, without=shown, **self._search)
            self._held.keep(turn.key, found)
        return found

    def _write(self, turn: _Turn, answered: str) -> None:
        with tolerate_failures(self._on_error, "writing to memory"):
            record_turns(
                self.memory,
                turn.said,
                user_id=turn.user_id,
                session_id=turn.session_id,
                recall=self._held.take(turn.key),
                answer=answered,
                rules=self._rules,
            )


def _answer(state: State) -> str:
    structured = state.get("structured_response")
    return answer(last_turn(state["messages"])) or ("" if structured is None else str(structured))
