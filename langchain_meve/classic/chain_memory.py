"""Governed memory for LangChain's older chains, which take a `BaseMemory`."""

import uuid
from collections.abc import Mapping
from typing import Any, Self

from langchain_classic.base_memory import BaseMemory
from langchain_classic.memory.utils import get_prompt_input_key
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, get_buffer_string
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from langchain_meve._messages import chain_text, messages_to_turns, visible_texts
from langchain_meve._retriever_options import PositiveInt
from langchain_meve.classic.chat_message_history import MeVeChatMessageHistory
from meve.conversation import Turn
from meve.errors import ConfigurationError
from meve.memory._recall.formatting import format_recall
from meve.memory._wrapper_support import (
    OnError,
    PendingRecalls,
    check_memory,
    check_rules,
    check_search,
    tolerate_failures,
)
from meve.memory.records import user_key
from meve.memory.turns import TurnRules, record_turns


class MeVeMemory(BaseMemory):
    """A chain's memory: facts from the user's earlier conversations, and the last turns of this one.

    Setup:
        `pip install 'meve[langchain-classic]'`

    Use within a chain:
        `ConversationChain(llm=model, memory=MeVeMemory(memory=memory, user_id="alice", session_id="monday"))`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: Any = Field(exclude=True, repr=False)
    """The `GovernedMemory`; shared by all copies."""
    user_id: Any
    """The user; a string or an int."""
    session_id: str = Field(default_factory=lambda: uuid.uuid4().hex, min_length=1)
    """The conversation; a new one by default."""
    memory_key: str = "history"
    """The prompt variable that the memory fills."""
    input_key: str | None = None
    """The chain input that holds the user's text; None if there is only one."""
    output_key: str | None = None
    """The chain output that holds the answer; None if there is only one, or one named `output`."""
    return_messages: bool = False
    """Whether the variable is a list of messages instead of a text."""
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    turns: PositiveInt = 4
    """The number of the conversation's last exchanges that are shown in full."""
    search: dict[str, Any] = Field(default_factory=dict)
    """Options of `GovernedMemory.search`."""
    remember: Any = Field(default_factory=TurnRules)
    """`TurnRules`: which turns are recorded, and as what; None for none."""
    on_error: OnError = "warn"
    """If the memory can't be read or written: go on with a `MemoryLostWarning`, or raise."""
    _pending: PendingRecalls = PrivateAttr(default_factory=PendingRecalls)

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        user_key(self.user_id)
        check_memory(self.memory)
        check_search(self.memory, self.search)
        check_rules(self.remember)
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a copy that shares the memory."""
        return self.model_copy()

    @property
    def history(self) -> MeVeChatMessageHistory:
        """The conversation's chat message history."""
        return MeVeChatMessageHistory(self.memory, self.user_id, self.session_id)

    @property
    def memory_variables(self) -> list[str]:
        """The prompt variable that the memory fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the facts recalled for the user's input and the last turns; without inputs only the turns.

        Raises:
            ConfigurationError: several inputs and no `input_key`.
        """
        recent: list[BaseMessage] = []
        facts = ""
        with tolerate_failures(self.on_error, "recalling from memory"):
            recent = self.history.messages[-2 * self.turns :]
            query = chain_text(self._input(inputs)) if inputs else ""
            facts = self._facts(query, recent) if query.strip() else ""
        if self.return_messages:
            return {self.memory_key: [*([SystemMessage(facts)] if facts else []), *recent]}
        transcript = get_buffer_string(recent, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
        return {self.memory_key: "\n\n".join(part for part in (facts, transcript) if part)}

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Store the exchange, record the user's statements, and score the recalled memories by the answer.

        Raises:
            ConfigurationError: several inputs or outputs and no key that selects one.
        """
        query, answer = chain_text(self._input(inputs)), chain_text(self._output(outputs))
        messages = [HumanMessage(query, id=uuid.uuid4().hex), AIMessage(answer, id=uuid.uuid4().hex)]
        rules = check_rules(self.remember)
        with tolerate_failures(self.on_error, "writing to memory"):
            before = messages_to_turns(self.history.messages) if rules.reads_context else []
            self.history.add_messages(messages)
            record_turns(
                self.memory,
                [Turn(id=str(messages[0].id), speaker="user", text=query)],
                user_id=self.user_id,
                session_id=self.session_id,
                recall=self._pending.pop(self._key(query)),
                answer=answer,
                rules=rules,
                before=before,
            )

    def clear(self) -> None:
        """Erase this conversation: its messages, the facts recorded from it, and what was derived from those.

        The user's other conversations stay; `memory.forget_user(user_id=…)` erases them all.
        """
        self.history.clear()

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Run `load_memory_variables` off the event loop."""
        return await self.memory.run_async(self.load_memory_variables, inputs)  # type: ignore[no-any-return]

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Run `save_context` off the event loop."""
        await self.memory.run_async(self.save_context, inputs, outputs)

    async def aclear(self) -> None:
        """Run `clear` off the event loop."""
        await self.memory.run_async(self.clear)

    def _key(self, query: str) -> tuple[str, str, str]:
        return (user_key(self.user_id), self.session_id, query)

    def _facts(self, query: str, recent: list[BaseMessage]) -> str:
        shown = (*visible_texts(recent), query)
        recall = self.memory.search(query, user_id=self.user_id, without=shown, **self.search)
        self._pending.put(self._key(query), recall)
        return format_recall(self.memory, recall)

    def _input(self, inputs: Mapping[str, Any]) -> Any:
        if self.input_key is None:
            try:
                return inputs[get_prompt_input_key(dict(inputs), self.memory_variables)]
            except ValueError as cause:
                raise ConfigurationError(f"input_key must be one of {sorted(inputs)}, got None: set it") from cause
        return _value(inputs, self.input_key, "input_key")

    def _output(self, outputs: Mapping[str, Any]) -> Any:
        if self.output_key is not None:
            return _value(outputs, self.output_key, "output_key")
        if len(outputs) == 1:
            return next(iter(outputs.values()))
        if "output" in outputs:
            return outputs["output"]
        raise ConfigurationError(f"output_key must be one of {sorted(outputs)}, got None: set it")


def _value(values: Mapping[str, Any], key: str, name: str) -> Any:
    if key not in values:
        raise ConfigurationError(f"{name} must be one of {sorted(values)}, got {key!r}")
    return values[key]
