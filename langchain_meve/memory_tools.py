"""Agent tools to remember, recall, update, forget and explain memories; the program sets the user, never the model."""

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from langchain_meve._user_id import resolve_session_id, resolve_user_id, runtime_context
from meve.memory import GovernedMemory
from meve.memory._agent_tools import TOOL_INPUTS, TOOL_NAMES, MemoryTools, ToolCaller, ToolResult
from meve.memory._wrapper_support import check_memory
from meve.memory.policy import PolicyClass, RecordSource
from meve.memory.records import UserId
from meve.routing import RouterConfig
from meve.routing._wrapper_support import make_search


def create_memory_tools(
    memory: GovernedMemory,
    user_id: UserId | None = None,
    *,
    names: Collection[str] = TOOL_NAMES,
    search: Mapping[str, Any] | None = None,
    source: RecordSource = "chat_assistant",
    policy_class: PolicyClass = "factual",
    routing: RouterConfig | None = None,
    may_erase: bool = False,
) -> list[BaseTool]:
    """Build memory tools with content and artifact, for any agent.

    The user is `user_id`, or else that of the runtime context or of `config["configurable"]`; without one, or with two
    that differ, a call fails. No tool takes a user from the model.

    Args:
        memory: the governed memory.
        user_id: the only user; None to resolve the user of each call.
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
    """
    tools = MemoryTools.make(
        memory, names, search, source, policy_class, make_search(check_memory(memory), search, routing),
        may_erase=may_erase,
    )  # fmt: skip
    return [_build(tools, user_id, name) for name in TOOL_NAMES if name in names]


def _build(tools: MemoryTools, user_id: UserId | None, name: str) -> BaseTool:
    schema, description = TOOL_INPUTS[name]

    def find_caller(config: RunnableConfig) -> ToolCaller:
        return ToolCaller(resolve_user_id(user_id, runtime_context(), config), resolve_session_id(config))

    def call(config: RunnableConfig, **arguments: str) -> ToolResult:
        return tools.call(name, find_caller(config), *arguments.values())

    async def acall(config: RunnableConfig, **arguments: str) -> ToolResult:
        return await tools.memory.run_async(tools.call, name, find_caller(config), *arguments.values())

    return StructuredTool.from_function(
        call, acall, name, description, args_schema=schema, response_format="content_and_artifact"
    )
