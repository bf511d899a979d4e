"""A user's memory as tools: remember, recall, forget, explain. Whose it is the program says, and never the model."""

import hashlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_meve._user_id import session_of, user_of
from meve.errors import ConfigurationError, DuplicateIdError, HoldError, PassageError, QueryError, UnknownIdError
from meve.memory import GovernedMemory
from meve.memory._integration import check_memory, check_search
from meve.memory._recall.formatting import format_recall, quote_texts
from meve.memory.policy import PolicyClass, Source
from meve.memory.records import MemoryRecord, UserId

NAMES = ("remember", "recall", "forget", "explain")
NOTHING = "Nothing is remembered about this."
_TOLD = (QueryError, PassageError, UnknownIdError, HoldError)
"""Errors that a model can do something about."""

Answer = tuple[str, dict[str, Any]]


class Caller(NamedTuple):
    """Whom a call is for."""

    user_id: UserId
    session_id: str | None


Work = Callable[[Caller, str], Answer]


class Statement(BaseModel):
    """What the model gives."""

    text: str = Field(description="one fact about the user, as a full sentence")


class About(BaseModel):
    """What the model gives."""

    query: str = Field(description="what to look for, as the user would ask it, such as: Where do I live?")


class Named(BaseModel):
    """What the model gives."""

    id: str = Field(description="the id of the memory, as `recall` or `explain` names it")


def create_memory_tools(
    memory: GovernedMemory,
    user_id: UserId | None = None,
    *,
    names: Collection[str] = NAMES,
    search: Mapping[str, Any] | None = None,
    source: Source = "chat_assistant",
    policy_class: PolicyClass = "factual",
) -> list[BaseTool]:
    """Tools with content and artifact, for any agent.

    The user is the bound one, or `user_id` of the runtime's context or of `config["configurable"]`; without one, or
    with two that differ, a call fails. No tool takes a user from the model.

    Args:
        memory: remembers.
        user_id: the only user; None for the one that each call is for.
        names: which of `remember`, `recall`, `forget`, `explain`.
        search: options of `GovernedMemory.search`.
        source: where what the model writes is from.
        policy_class: how it is governed.

    Raises:
        ConfigurationError: no memory, an unknown tool, or an option that can't be.
    """
    check_memory(memory)
    unknown = sorted(set(names) - set(NAMES))
    if isinstance(names, str) or unknown:
        raise ConfigurationError(f"no tool {names if isinstance(names, str) else unknown!r}: of {', '.join(NAMES)}")
    work = _Tools(memory, user_id, check_search(memory, search), source, policy_class)
    return [work.tool(name) for name in NAMES if name in names]


class _Tools:
    """What the tools do."""

    def __init__(
        self,
        memory: GovernedMemory,
        bound: UserId | None,
        search: dict[str, Any],
        source: Source,
        policy_class: PolicyClass,
    ) -> None:
        self.memory = memory
        self._bound = bound
        self._search = search
        self._source: Source = source
        self._class: PolicyClass = policy_class

    def tool(self, name: str) -> BaseTool:
        """One of them."""
        tools: dict[str, tuple[Work, type[BaseModel], str]] = {
            "remember": (self._remember, Statement, "Remembers a fact about the user for later conversations."),
            "recall": (self._recall, About, "Recalls what is remembered about the user, with ids."),
            "forget": (self._forget, Named, "Erases a memory for good, when the user asks for it."),
            "explain": (self._explain, About, "Tells what is remembered about something, since when, and why."),
        }
        work, schema, description = tools[name]

        def call(config: RunnableConfig, **given: str) -> Answer:
            return _done(work, self._caller(config), *given.values())

        async def acall(config: RunnableConfig, **given: str) -> Answer:
            return await self.memory.run_async(_done, work, self._caller(config), *given.values())

        return StructuredTool.from_function(
            func=call,
            coroutine=acall,
            name=name,
            description=description,
            args_schema=schema,
            response_format="content_and_artifact",
        )

    def _caller(self, config: RunnableConfig) -> Caller:
        return Caller(user_of(self._bound, _context(), config), session_of(config))

    def _remember(self, who: Caller, text: str) -> Answer:
        day = self.memory.clock.now().date().isoformat()
        record_id = f"told-{hashlib.sha256(f'{day} {_said(text)}'.encode(errors='replace')).hexdigest()[:16]}"
        try:
            made = self._added(who, text, record_id)
        except DuplicateIdError:
            if self._stands(who, text):
                return "This is remembered already.", {"id": record_id, "added": False}
            made = self._added(who, text, None)
        until = "" if made.expires_at is None else f" until {made.expires_at:%Y-%m-%d}"
        return f"Remembered{until} (id {made.id}).", {"id": made.id, "added": True}

    def _added(self, who: Caller, text: str, record_id: str | None) -> MemoryRecord:
        return self.memory.add(
            text, user_id=who.user_id, id=record_id, session_id=who.session_id, source=self._source,
            policy_class=self._class, reason="a model asked for it",
        )  # fmt: skip

    def _stands(self, who: Caller, text: str) -> bool:
        """Whether a recall would say it: nothing newer says otherwise, and no answer contradicted it."""
        found = (each.record for each in self.memory.explain(text, user_id=who.user_id))
        return any(_said(record.text) == _said(text) and not record.flagged for record in found)

    def _recall(self, who: Caller, query: str) -> Answer:
        recall = self.memory.search(query, user_id=who.user_id, **self._search)
        return format_recall(self.memory, recall, ids=True) or NOTHING, recall.to_dict()

    def _forget(self, who: Caller, record_id: str) -> Answer:
        done = self.memory.delete(record_id, user_id=who.user_id, reason="a model asked for it")
        if record_id in done.held:
            raise HoldError(f"memory {record_id!r:.80} is on hold ({done.held[record_id]}), and stays")
        return f"Erased: {', '.join(done.erased)}.", {"erased": list(done.erased), "held": dict(done.held)}

    def _explain(self, who: Caller, query: str) -> Answer:
        found = [
            each
            for each in self.memory.explain(query, user_id=who.user_id)
            if each.record.policy_class in self._classes
        ]
        lines = [f"{each.record.text} (id {each.record.id}): {each.why}" for each in found]
        account = [
            {"id": each.record.id, "why": each.why, "events": [event.to_dict() for event in each.events]}
            for each in found
        ]
        return quote_texts(lines) or NOTHING, {"explained": account}

    @property
    def _classes(self) -> Collection[str]:
        """What these tools may speak of: private memories only where the program lets them."""
        rules = self.memory.policy
        every = self._search.get("classes") or rules.classes
        private = self._search.get("include_private", False)
        return [name for name in every if private or not rules.rule(name).on_request]


def _said(text: str) -> str:
    return " ".join(text.casefold().split())


def _done(work: Work, who: Caller, text: str) -> Answer:
    try:
        return work(who, text)
    except _TOLD as error:
        return f"That can't be done: {error}", {}


def _context() -> object:
    """The context of the agent that a tool runs in; None outside of one."""
    runtime = sys.modules.get("langgraph.runtime")
    if runtime is None:
        return None
    try:
        return getattr(runtime.get_runtime(), "context", None)
    except (RuntimeError, KeyError):
        return None
