"""Agent tools to remember, recall, forget and explain memories; the program sets the user, never the model."""

import hashlib
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_meve._user_id import resolve_session_id, resolve_user_id
from meve.errors import ConfigurationError, DuplicateIdError, HoldError, PassageError, QueryError, UnknownIdError
from meve.memory import GovernedMemory
from meve.memory._recall.formatting import format_recall, quote_line, quote_texts
from meve.memory._wrapper_support import check_memory, check_search
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import MemoryRecord, UserId

TOOL_NAMES = ("remember", "recall", "forget", "explain")
NO_MEMORY_MESSAGE = "Nothing is remembered about this."
_MODEL_ERRORS = (QueryError, PassageError, UnknownIdError, HoldError)
"""Errors that the model can react to: they are returned to it instead of raised."""

ToolResult = tuple[str, dict[str, Any]]
"""The tool's content and artifact."""


class ToolCaller(NamedTuple):
    """The user and session of a tool call."""

    user_id: UserId
    session_id: str | None


ToolFunction = Callable[[ToolCaller, str], ToolResult]


class RememberInput(BaseModel):
    """The arguments that the model passes."""

    text: str = Field(description="one fact about the user, as a full sentence")


class QueryInput(BaseModel):
    """The arguments that the model passes."""

    query: str = Field(description="what to look for, as the user would ask it, such as: Where do I live?")


class ForgetInput(BaseModel):
    """The arguments that the model passes."""

    id: str = Field(description="the id of the memory, as `recall` or `explain` names it")


def create_memory_tools(
    memory: GovernedMemory,
    user_id: UserId | None = None,
    *,
    names: Collection[str] = TOOL_NAMES,
    search: Mapping[str, Any] | None = None,
    source: RecordSource = "chat_assistant",
    policy_class: PolicyClass = "factual",
) -> list[BaseTool]:
    """Build memory tools with content and artifact, for any agent.

    The user is `user_id`, or else that of the runtime context or of `config["configurable"]`; without one, or with two
    that differ, a call fails. No tool takes a user from the model.

    Args:
        memory: the governed memory.
        user_id: the only user; None to resolve the user of each call.
        names: which of `remember`, `recall`, `forget`, `explain`.
        search: options of `GovernedMemory.search`.
        source: the source of what the model writes.
        policy_class: the policy class of what the model writes.

    Raises:
        ConfigurationError: no memory, an unknown tool, or an invalid option.
    """
    check_memory(memory)
    unknown = [names] if isinstance(names, str) else sorted(set(names) - set(TOOL_NAMES))
    if unknown:
        raise ConfigurationError(f"names must be a list of {', '.join(TOOL_NAMES)}, got {', '.join(unknown)}")
    tools = _MemoryTools(memory, user_id, check_search(memory, search), source, policy_class)
    return [tools.build(name) for name in TOOL_NAMES if name in names]


@dataclass(frozen=True)
class _MemoryTools:
    memory: GovernedMemory
    user_id: UserId | None
    search: dict[str, Any]
    source: RecordSource
    policy_class: PolicyClass

    def build(self, name: str) -> BaseTool:
        tools: dict[str, tuple[ToolFunction, type[BaseModel], str]] = {
            "remember": (self._remember, RememberInput, "Remembers a fact about the user for later conversations."),
            "recall": (self._recall, QueryInput, "Recalls what is remembered about the user, with ids."),
            "forget": (self._forget, ForgetInput, "Erases a memory for good, when the user asks for it."),
            "explain": (self._explain, QueryInput, "Tells what is remembered about something, since when, and why."),
        }
        function, schema, description = tools[name]

        def call(config: RunnableConfig, **arguments: str) -> ToolResult:
            return _run_tool(function, self._caller(config), *arguments.values())

        async def acall(config: RunnableConfig, **arguments: str) -> ToolResult:
            return await self.memory.run_async(_run_tool, function, self._caller(config), *arguments.values())

        return StructuredTool.from_function(
            call, acall, name, description, args_schema=schema, response_format="content_and_artifact"
        )

    def _caller(self, config: RunnableConfig) -> ToolCaller:
        return ToolCaller(resolve_user_id(self.user_id, _runtime_context(), config), resolve_session_id(config))

    def _remember(self, caller: ToolCaller, text: str) -> ToolResult:
        day = self.memory.clock.now().date().isoformat()
        record_id = f"fact-{hashlib.sha256(f'{day} {_normalize(text)}'.encode(errors='replace')).hexdigest()[:16]}"
        try:
            record = self._add(caller, text, record_id)
        except DuplicateIdError:
            if self._is_current(caller, text):
                return "This is remembered already.", {"id": record_id, "added": False}
            record = self._add(caller, text, None)
        until = "" if record.expires_at is None else f" until {record.expires_at:%Y-%m-%d}"
        return f"Remembered{until} (id {record.id}).", {"id": record.id, "added": True}

    def _add(self, caller: ToolCaller, text: str, record_id: str | None) -> MemoryRecord:
        return self.memory.add(
            text, user_id=caller.user_id, id=record_id, session_id=caller.session_id, source=self.source,
            policy_class=self.policy_class, reason="a model asked for it",
        )  # fmt: skip

    def _is_current(self, caller: ToolCaller, text: str) -> bool:
        """Return whether a recall would return the text: nothing newer and no answer contradicts it."""
        records = (each.record for each in self.memory.explain(text, user_id=caller.user_id))
        return any(_normalize(record.text) == _normalize(text) and not record.flagged for record in records)

    def _recall(self, caller: ToolCaller, query: str) -> ToolResult:
        recall = self.memory.search(query, user_id=caller.user_id, **self.search)
        return format_recall(self.memory, recall, ids=True, standing=False) or NO_MEMORY_MESSAGE, recall.to_dict()

    def _forget(self, caller: ToolCaller, record_id: str) -> ToolResult:
        result = self.memory.delete(record_id, user_id=caller.user_id, reason="a model asked for it")
        if record_id in result.held:
            raise HoldError(f"memory {record_id!r:.80} is on hold ({result.held[record_id]}) and can't be erased")
        return f"Erased: {quote_line(', '.join(result.erased))}.", {
            "erased": list(result.erased),
            "held": dict(result.held),
        }

    def _explain(self, caller: ToolCaller, query: str) -> ToolResult:
        explained = self.memory.explain(query, user_id=caller.user_id)
        visible = [each for each in explained if each.record.policy_class in self._visible_classes]
        lines = [f"{each.record.text} (id {each.record.id}): {each.why}" for each in visible]
        account = [
            {"id": each.record.id, "why": each.why, "events": [event.to_dict() for event in each.events]}
            for each in visible
        ]
        return quote_texts(lines) or NO_MEMORY_MESSAGE, {"explained": account}

    @property
    def _visible_classes(self) -> Collection[str]:
        """The policy classes that the tools may show; private ones only if `search` includes them."""
        policy = self.memory.policy
        classes = self.search.get("classes") or policy.classes
        include_private = self.search.get("include_private", False)
        return [name for name in classes if include_private or not policy.rule(name).on_request]


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def _run_tool(function: ToolFunction, caller: ToolCaller, text: str) -> ToolResult:
    try:
        return function(caller, text)
    except _MODEL_ERRORS as error:
        return f"The call failed: {error}", {}


def _runtime_context() -> object:
    """Return the runtime context of the agent that calls the tool; None outside of an agent."""
    runtime = sys.modules.get("langgraph.runtime")
    if runtime is None:
        return None
    try:
        return getattr(runtime.get_runtime(), "context", None)
    except (RuntimeError, KeyError):
        return None
