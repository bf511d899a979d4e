"""Agent middleware that recalls memories before the model call and records the turn after the answer."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, TracePolicy
from langchain.agents.middleware.types import omit_payload
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime

from langchain_meve._messages import append_to_system_message, last_answer, last_turn, visible_texts
from langchain_meve._turn_state import MemoryAgentState, earlier_turns, note_user_messages, open_turn
from langchain_meve._user_id import resolve_session_id, resolve_user_id
from meve.conversation import Turn
from meve.integrations._option_names import explain_unknown_options
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import format_recall
from meve.memory._recall.searcher import Recall
from meve.memory._wrapper_support import (
    OnError,
    PendingRecalls,
    check_memory,
    check_on_error,
    check_rules,
    tolerate_failures,
)
from meve.memory._write.told_turns import is_role
from meve.memory.records import UserId, user_key
from meve.memory.turns import TurnRules, record_turns
from meve.routing import RouterConfig
from meve.routing._wrapper_support import make_search


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenTurn:
    """The turn that the agent is answering, with its user and session."""

    user_id: UserId
    session_id: str | None
    messages: list[Turn]
    """The turn's messages so far, in order."""
    before: list[Turn]
    """The user's conversation before the turn; empty if another user may have written in it."""

    @property
    def query(self) -> str:
        """The text of the last user message; empty if there is none."""
        return "" if self._question is None else self._question.text

    @property
    def key(self) -> tuple[Any, ...]:
        question_id = "" if self._question is None else self._question.id
        return (user_key(self.user_id), self.session_id, question_id, self.query)

    @property
    def _question(self) -> Turn | None:
        return next((each for each in reversed(self.messages) if each.speaker == "user" and each.text.strip()), None)


class MeVeMemoryMiddleware(AgentMiddleware[MemoryAgentState, Any, Any]):
    """Long-term memory for `create_agent`.

    Before each model call, the user's memories that match the question are appended to the system message, marked as
    data; the messages stay as they are. After the answer, the user's statements are recorded, and recalled memories
    gain or lose score by whether the answer used them. Each turn recalls once, however many tools it calls, and leaves
    out what the conversation already shows.

    The user is `user_id` of the runtime context or of `config["configurable"]`; without one, or with two that differ,
    the call fails. The session is the thread.

    Args:
        memory: the governed memory; the caller closes it.
        user_id: the only user, for an agent that serves one.
        search: options of `GovernedMemory.search` for each recall: `limit`, `max_tokens`, `tags`, `classes`, …
        remember: which turns are recorded, and as what; None for none.
        routing: how the memory is read by what each question needs (docs/routing.md); None for a plain search.
        on_error: if the memory can't be read or written: `warn` (a `MemoryLostWarning`) and go on, or `raise`. Errors
            that could mix up users are always raised.
        trace_payloads: whether traces hold the hooks' inputs and outputs.

    Raises:
        ConfigurationError: `memory` is no `GovernedMemory`, or an option is invalid.

    Setup:
        `pip install 'meve[langchain-agents]'`

    Use with an agent:
        `create_agent(model, tools, middleware=[MeVeMemoryMiddleware(memory)])`
    """

    state_schema = MemoryAgentState

    @explain_unknown_options
    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId | None = None,
        search: Mapping[str, Any] | None = None,
        remember: TurnRules | None = TurnRules(),  # noqa: B008 (frozen)
        routing: RouterConfig | None = None,
        on_error: OnError = "warn",
        trace_payloads: bool = False,
    ) -> None:
        super().__init__()
        self.memory = check_memory(memory)
        self._user_id = user_id
        self._search = make_search(memory, search, routing)
        self._rules = check_rules(remember)
        self._on_error = check_on_error(on_error)
        self._pending = PendingRecalls()
        hidden = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)
        self.trace_policy = None if trace_payloads else hidden

    def before_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note the user's messages of this turn in the agent's state."""
        return note_user_messages(state, user_key(self._user(runtime)))

    async def abefore_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Call `before_agent`, which does no I/O."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Append the recalled memories to the system message."""
        turn = self._turn(request.state, request.messages, request.runtime)
        text = self._memory_text(turn, visible_texts(request.messages)) if turn.query else ""
        return handler(request.override(system_message=append_to_system_message(request.system_message, text)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Run `wrap_model_call` off the event loop."""
        turn, text = self._turn(request.state, request.messages, request.runtime), ""
        if turn.query:
            text = await self.memory.run_async(self._memory_text, turn, visible_texts(request.messages))
        return await handler(request.override(system_message=append_to_system_message(request.system_message, text)))

    def after_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Record the turn and score the recalled memories by the answer."""
        self._record(self._turn(state, state["messages"], runtime), _answer(state))
        return None

    async def aafter_agent(self, state: MemoryAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Run `after_agent` off the event loop."""
        await self.memory.run_async(self._record, self._turn(state, state["messages"], runtime), _answer(state))
        return None

    def _user(self, runtime: Runtime[Any] | None) -> UserId:
        return resolve_user_id(self._user_id, getattr(runtime, "context", None), ensure_config())

    def _turn(
        self, state: Mapping[str, Any] | None, messages: Sequence[BaseMessage], runtime: Runtime[Any] | None
    ) -> _OpenTurn:
        user = self._user(runtime)
        turns = open_turn(state or {}, messages, user_key(user))
        before = earlier_turns(state or {}, messages, user_key(user)) if self._rules.reads_context else []
        return _OpenTurn(user_id=user, session_id=resolve_session_id(ensure_config()), messages=turns, before=before)

    def _memory_text(self, turn: _OpenTurn, shown: tuple[str, ...]) -> str:
        with tolerate_failures(self._on_error, "recalling from memory"):
            return format_recall(self.memory, self._recall(turn, shown))
        return ""

    def _recall(self, turn: _OpenTurn, shown: tuple[str, ...]) -> Recall:
        recall = self._pending.get(turn.key)
        if recall is None:
            recall = self._search(turn.query, user_id=turn.user_id, without=shown)
            self._pending.put(turn.key, recall)
        return recall

    def _record(self, turn: _OpenTurn, answer: str) -> None:
        with tolerate_failures(self._on_error, "writing to memory"):
            record_turns(
                self.memory,
                [each for each in turn.messages if is_role(each.speaker, self._rules.sources)],
                user_id=turn.user_id,
                session_id=turn.session_id,
                recall=self._pending.pop(turn.key),
                answer=answer,
                rules=self._rules,
                before=turn.before,
            )


def _answer(state: MemoryAgentState) -> str:
    structured = state.get("structured_response")
    return last_answer(last_turn(state["messages"])) or ("" if structured is None else str(structured))
