"""Governed memory for agents: recalled before the model answers, written and judged after."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, TracePolicy
from langchain.agents.middleware.types import omit_payload
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime

from langchain_meve.messages import answer, last_turn, message_id, question, said, window, with_memory
from langchain_meve.users import session_of, user_of
from meve.memory import GovernedMemory
from meve.memory.records import UserId, user_key
from meve.memory.search import Recall
from meve.memory.skins import (
    Held,
    OnError,
    checked_memory,
    checked_on_error,
    checked_rules,
    checked_search,
    forgiving,
)
from meve.memory.telling import told
from meve.memory.turns import Said, TurnRules, conversed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What a user said, and to whom it belongs."""

    user_id: UserId
    session_id: str | None
    id: str
    """Of the message that is answered; empty where nothing was said in words."""
    text: str

    @property
    def key(self) -> tuple[Any, ...]:
        return (user_key(self.user_id), self.session_id, self.id)


class MeVeMemoryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
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
        self.memory = checked_memory(memory)
        self._user_id = user_id
        self._search = checked_search(memory, search)
        self._rules = checked_rules(remember)
        self._on_error = checked_on_error(on_error)
        self._held = Held()
        hidden = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)
        self.trace_policy = None if trace_payloads else hidden

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Let the model see what is remembered."""
        turn = self._turn(request.messages, request.runtime)
        text = self._told(turn, window(request.messages)) if turn.id else ""
        return handler(request.override(system_message=with_memory(request.system_message, text)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The same, off the event loop."""
        turn = self._turn(request.messages, request.runtime)
        text = await self.memory.aside(self._told, turn, window(request.messages)) if turn.id else ""
        return await handler(request.override(system_message=with_memory(request.system_message, text)))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember what was said, and judge what was recalled."""
        turn, new = self._turn(state["messages"], runtime), last_turn(state["messages"])
        self._write(turn, said(new), _answer(new, state))
        return None

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same, off the event loop."""
        turn, new = self._turn(state["messages"], runtime), last_turn(state["messages"])
        await self.memory.aside(self._write, turn, said(new), _answer(new, state))
        return None

    def _turn(self, messages: Sequence[BaseMessage], runtime: Runtime[Any] | None) -> _Turn:
        """Whose turn it is.

        Raises:
            ValidationError: nobody's.
        """
        config = ensure_config()
        asked = question(messages)
        return _Turn(
            user_id=user_of(self._user_id, getattr(runtime, "context", None), config),
            session_id=session_of(config),
            id=message_id(asked) if asked else "",
            text=str(asked.text) if asked else "",
        )

    def _told(self, turn: _Turn, shown: tuple[str, ...]) -> str:
        with forgiving(self._on_error, "recalling from memory"):
            return told(self.memory, self._recall(turn, shown))
        return ""

    def _recall(self, turn: _Turn, shown: tuple[str, ...]) -> Recall:
        found = self._held.find(turn.key)
        if found is None:
            found = self.memory.search(turn.text, user_id=turn.user_id, without=shown, **self._search)
            self._held.keep(turn.key, found)
        return found

    def _write(self, turn: _Turn, turns: list[Said], answered: str) -> None:
        with forgiving(self._on_error, "writing to memory"):
            conversed(
                self.memory,
                turns,
                user_id=turn.user_id,
                session_id=turn.session_id,
                recall=self._held.take(turn.key),
                answer=answered,
                rules=self._rules,
            )


def _answer(new: Sequence[BaseMessage], state: AgentState[Any]) -> str:
    structured = state.get("structured_response")
    return answer(new) or ("" if structured is None else str(structured))
