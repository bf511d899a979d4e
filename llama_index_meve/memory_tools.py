"""Agent tools to remember, recall, update, forget and explain memories; the program sets the user, never the model."""

from collections.abc import Collection, Mapping
from typing import Any

import pydantic
from llama_index.core.tools import FunctionTool

from meve.errors import ValidationError
from meve.memory import GovernedMemory
from meve.memory._agent_tools import TOOL_INPUTS, TOOL_NAMES, MemoryTools, ToolCaller, describe_failure
from meve.memory._wrapper_support import check_memory
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import UserId, check_text, user_key
from meve.routing import RouterConfig
from meve.routing._wrapper_support import make_search


def create_memory_tools(
    memory: GovernedMemory,
    user_id: UserId,
    *,
    session_id: str | None = None,
    names: Collection[str] = TOOL_NAMES,
    search: Mapping[str, Any] | None = None,
    source: RecordSource = "chat_assistant",
    policy_class: PolicyClass = "factual",
    routing: RouterConfig | None = None,
    may_erase: bool = False,
) -> list[FunctionTool]:
    """Build memory tools of one user, for any agent that calls functions. They return text.

    Args:
        memory: the governed memory.
        user_id: the user; no tool takes one from the model.
        session_id: the conversation that new memories are from.
        names: which of `remember`, `recall`, `update`, `forget`, `explain`.
        search: options of `GovernedMemory.search`. Its filters hold for all tools, and what `remember` writes has its
            `agent_id` and `run_id`.
        source: the source of what the model writes.
        policy_class: the policy class of what the model writes.
        routing: how `recall` reads the memory by what each question needs (docs/routing.md); None for a plain search.
        may_erase: whether `forget` erases what the user said, too. By default it hides that, and
            `GovernedMemory.restore` takes it back.

    Raises:
        ConfigurationError: no memory, an unknown tool, or an invalid option.
        ValidationError: an invalid user or session.
    """
    tools = MemoryTools.make(
        memory, names, search, source, policy_class, make_search(check_memory(memory), search, routing),
        may_erase=may_erase,
    )  # fmt: skip
    user_key(user_id)
    caller = ToolCaller(user_id, None if session_id is None else check_text(session_id, "session_id"))
    return [_build(tools, caller, name) for name in TOOL_NAMES if name in names]


def _build(tools: MemoryTools, caller: ToolCaller, name: str) -> FunctionTool:
    schema, description = TOOL_INPUTS[name]

    def call(**arguments: Any) -> str:
        try:
            given = schema.model_validate(arguments)  # LlamaIndex doesn't check what the model passes
        except pydantic.ValidationError as cause:
            return describe_failure(ValidationError("; ".join(map(_describe, cause.errors(include_url=False)))))
        return tools.call(name, caller, *(getattr(given, field) for field in schema.model_fields))[0]

    async def acall(**arguments: Any) -> str:
        return await tools.memory.run_async(call, **arguments)

    return FunctionTool.from_defaults(fn=call, async_fn=acall, name=name, description=description, fn_schema=schema)


def _describe(problem: Mapping[str, Any]) -> str:
    place = ".".join(map(str, problem["loc"]))
    given = "" if problem["type"] == "missing" else f", got {problem['input']!r:.80}"
    return f"{place}: {problem['msg']}{given}"
