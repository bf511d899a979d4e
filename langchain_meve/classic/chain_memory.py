"""Governed memory for chains that take a `BaseMemory`."""

import uuid
from collections.abc import Mapping
from typing import Any, Self

from langchain_classic.base_memory import BaseMemory
from langchain_classic.memory.utils import get_prompt_input_key
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, get_buffer_string
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from langchain_meve._messages import text_of, window
from langchain_meve._options import Count
from langchain_meve.classic.chat_message_history import MeVeChatMessageHistory
from meve.conversation import Turn
from meve.errors import ConfigurationError
from meve.memory._integration import OnError, PendingRecalls, check_memory, check_rules, check_search, tolerate_failures
from meve.memory._recall.formatting import format_recall
from meve.memory.records import UserId, user_key
from meve.memory.turns import TurnRules, record_turns


class MeVeMemory(BaseMemory):
    """A user's governed memory as a chain's: what is remembered of earlier conversations, and this one's last turns.

    Setup:
        `pip install 'meve[langchain-classic]'`

    Use within a chain:
        `ConversationChain(llm=model, memory=MeVeMemory(memory=memory, user_id="alice", session_id="monday"))`
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: Any = Field(exclude=True, repr=False)
    """The `GovernedMemory`; shared by all copies."""
    user_id: Any
    """Whose; a string or an int."""
    session_id: str = Field(default_factory=lambda: uuid.uuid4().hex, min_length=1)
    """Which conversation; a new one by default."""
    memory_key: str = "history"
    """The variable that the prompt has for it."""
    input_key: str | None = None
    """Which of a chain's inputs is what the user said; None where there is but one."""
    output_key: str | None = None
    """Which of a chain's outputs is the answer; None where there is but one, or one named `output`."""
    return_messages: bool = False
    """Whether the variable is a list of messages, and not a text."""
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    turns: Count = 4
    """How many of the conversation's last exchanges are shown word for word."""
    search: dict[str, Any] = Field(default_factory=dict)
    """Options of `GovernedMemory.search`."""
    remember: Any = Field(default_factory=TurnRules)
    """`TurnRules`: which turns are remembered, and as what; None for none."""
    on_error: OnError = "warn"
    """Where the memory can't be read or written: go on with a `MemoryLostWarning`, or raise."""
    _held: PendingRecalls = PrivateAttr(default_factory=PendingRecalls)

    @field_validator("user_id", mode="before")
    @classmethod
    def _owner(cls, user_id: UserId) -> UserId:
        user_key(user_id)
        return user_id

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check_memory(self.memory)
        check_search(self.memory, self.search)
        check_rules(self.remember)
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy that shares the memory."""
        return self.model_copy()

    @property
    def history(self) -> MeVeChatMessageHistory:
        """The conversation's messages."""
        return MeVeChatMessageHistory(self.memory, self.user_id, self.session_id)

    @property
    def memory_variables(self) -> list[str]:
        """The variable that it fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What is remembered on what the user said, and the last turns. Without inputs, the last turns.

        Raises:
            ConfigurationError: several inputs, and no `input_key`.
        """
        recent: list[BaseMessage] = []
        facts = ""
        with tolerate_failures(self.on_error, "recalling from memory"):
            recent = self.history.messages[-2 * self.turns :]
            asked = text_of(self._input(inputs)) if inputs else ""
            facts = self._facts(asked, recent) if asked.strip() else ""
        if self.return_messages:
            return {self.memory_key: [*([SystemMessage(facts)] if facts else []), *recent]}
        spoken = get_buffer_string(recent, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
        return {self.memory_key: "\n\n".join(part for part in (facts, spoken) if part)}

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Keep the exchange, remember what the user stated, and judge what was recalled by the answer.

        Raises:
            ConfigurationError: several inputs or outputs, and no key that tells which.
        """
        asked, answered = text_of(self._input(inputs)), text_of(self._output(outputs))
        messages = [HumanMessage(asked, id=uuid.uuid4().hex), AIMessage(answered, id=uuid.uuid4().hex)]
        with tolerate_failures(self.on_error, "writing to memory"):
            self.history.add_messages(messages)
            record_turns(
                self.memory,
                [Turn(id=str(messages[0].id), speaker="user", text=asked)],
                user_id=self.user_id,
                session_id=self.session_id,
                recall=self._held.take(self._key(asked)),
                answer=answered,
                rules=check_rules(self.remember),
            )

    def clear(self) -> None:
        """Erase this conversation: its messages, what was remembered of it, and what was made from that.

        Other conversations of the user's stay: `memory.forget_user(user_id=…)` erases all.
        """
        self.history.clear()

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The same, off the event loop."""
        return await self.memory.run_async(self.load_memory_variables, inputs)  # type: ignore[no-any-return]

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.save_context, inputs, outputs)

    async def aclear(self) -> None:
        """The same, off the event loop."""
        await self.memory.run_async(self.clear)

    def _key(self, asked: str) -> tuple[str, str, str]:
        return (user_key(self.user_id), self.session_id, asked)

    def _facts(self, asked: str, recent: list[BaseMessage]) -> str:
        shown = (*window(recent), asked)
        recall = self.memory.search(asked, user_id=self.user_id, without=shown, **self.search)
        self._held.keep(self._key(asked), recall)
        return format_recall(self.memory, recall)

    def _input(self, inputs: Mapping[str, Any]) -> Any:
        if self.input_key is None:
            try:
                return inputs[get_prompt_input_key(dict(inputs), self.memory_variables)]
            except ValueError as cause:
                raise ConfigurationError(f"the inputs are {sorted(inputs)}: say which by input_key") from cause
        return _of(inputs, self.input_key, "input_key")

    def _output(self, outputs: Mapping[str, Any]) -> Any:
        if self.output_key is not None:
            return _of(outputs, self.output_key, "output_key")
        if len(outputs) == 1:
            return next(iter(outputs.values()))
        if "output" in outputs:
            return outputs["output"]
        raise ConfigurationError(f"the outputs are {sorted(outputs)}: say which is the answer by output_key")


def _of(values: Mapping[str, Any], key: str, name: str) -> Any:
    if key not in values:
        raise ConfigurationError(f"{name} is {key!r}, and there are {', '.join(sorted(values)) or 'none'}: name one")
    return values[key]
