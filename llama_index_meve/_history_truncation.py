"""Cut a conversation's history to the token limit: turns from its end, tool calls first."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory.memory import InsertMethod

from llama_index_meve._message_content import (
    INSTRUCTION_ROLES,
    TOOL_RESULT_ROLES,
    answered_call_id,
    last_user_index,
    role_of,
    tool_call_ids,
)
from llama_index_meve._message_counter import MessageCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """The part of a conversation that the model sees."""

    system: ChatMessage | None = None
    """All instructions in one message."""
    turns: tuple[ChatMessage, ...] = ()
    """Begins with a user message; tool results follow their calls."""
    tokens: int = 0
    question: str = ""
    """The user's last text."""
    is_overlong: bool = False
    """True if there is a message of the user, and no part of the last one fits the limit."""

    def with_memory(self, text: str, method: InsertMethod = InsertMethod.SYSTEM) -> list[ChatMessage]:
        """Return the messages for the model, with the recalled text at the end of the instructions.

        With `InsertMethod.USER` it stands at the beginning of the user's last message.
        """
        system, turns = self.system, list(self.turns)
        memory = [TextBlock(text=text)] if text else []
        if method is InsertMethod.SYSTEM:
            blocks = [*(system.blocks if system else ()), *memory]
            system = (system or ChatMessage(role="system")).model_copy(update={"blocks": blocks}) if blocks else None
        elif memory and (last := last_user_index(turns)) is not None:
            turns[last] = turns[last].model_copy(update={"blocks": [*memory, *turns[last].blocks]})
        elif memory:
            turns = [ChatMessage(role="user", blocks=memory)]
        return [system, *turns] if system else turns

    def has_place_for_memory(self, method: InsertMethod) -> bool:
        """Return whether recalled text can join an existing message."""
        return bool(self.turns) if method is InsertMethod.USER else self.system is not None


def truncate_history(
    messages: Sequence[ChatMessage],
    counter: MessageCounter,
    limit: int,
    reserve: int = 0,
    pinned: Sequence[ChatMessage] = (),
) -> HistoryWindow:
    """Return as much of the end of a conversation as fits the token limit.

    Instructions come first, then the user's last message, the reserve, the newest steps since it, and older turns.
    Instructions and a last turn that are too long are shortened. The first older turn that doesn't fit keeps the user's
    message and its newest steps; it is left out if its answer doesn't fit. Instructions leave half of the limit to the
    last turn, and more if nothing of the user's message fits in half, for example an image.

    Args:
        messages: the end of the conversation, oldest first.
        counter: counts tokens.
        limit: tokens that are never exceeded.
        reserve: tokens that tool calls and older turns leave free, at most half of what instructions leave.
        pinned: instructions from before these messages.
    """
    turns = _group_turns([m for m in messages if m.role not in INSTRUCTION_ROLES])
    last = _count_tokens(turns[-1], counter) if turns else 0
    instructions = [*pinned, *(m for m in messages if m.role in INSTRUCTION_ROLES)]
    system = _merge_instructions(instructions, counter, limit - min(last, limit // 2))
    used = counter.count_message(system) if system else 0
    if not turns:
        return HistoryWindow(system=system, tokens=used)
    end = _fit_turn(turns[-1], counter, limit - used, reserve)
    if not end and system:
        least = _least_limit(turns[-1][0], counter, limit)
        system = _merge_instructions(instructions, counter, limit - least)
        used = counter.count_message(system) if system else 0
        end = _fit_turn(turns[-1], counter, limit - used, reserve)
    used += last if end is turns[-1] else _count_tokens(end, counter)
    kept = [*end]
    for turn in reversed(turns[:-1]) if end is turns[-1] else ():
        part = _drop_oldest_steps(turn, counter, limit - reserve - used)
        kept, used = [*part, *kept], used + _count_tokens(part, counter)
        if len(part) < len(turn):
            break
    return HistoryWindow(system=system, turns=tuple(kept), tokens=used, is_overlong=not end)


def count_steps(messages: Sequence[ChatMessage], counter: MessageCounter) -> int:
    """Return the tokens of the end of a conversation, without instructions and without steps that begin before it."""
    rest = dropwhile(lambda m: m.role in TOOL_RESULT_ROLES, (m for m in messages if m.role not in INSTRUCTION_ROLES))
    return sum(_count_tokens(step, counter) for step in _group_steps(list(rest)))


def _drop_oldest_steps(turn: list[ChatMessage], counter: MessageCounter, limit: int) -> list[ChatMessage]:
    """Return an older turn without the oldest steps that exceed the limit; nothing if the answer doesn't fit, too."""
    head, *steps = _group_steps(turn)
    left = limit - _count_tokens(head, counter)
    kept: list[ChatMessage] = []
    for step in reversed(steps):
        left -= _count_tokens(step, counter)
        if left < 0:
            break
        kept = [*step, *kept]
    return [*head, *kept] if kept or left >= 0 else []


def _count_tokens(messages: Sequence[ChatMessage], counter: MessageCounter) -> int:
    return sum(map(counter.count_message, messages))


def _least_limit(message: ChatMessage, counter: MessageCounter, limit: int) -> int:
    """Return the least number of tokens in which a part of a message fits; `limit` if none does in fewer."""
    return bisect_left(range(limit), True, key=lambda n: counter.truncate_message(message, n) is not None)


def _merge_instructions(messages: Sequence[ChatMessage], counter: MessageCounter, limit: int) -> ChatMessage | None:
    if not messages:
        return None
    blocks = [block for message in messages for block in message.blocks]
    return counter.truncate_message(messages[0].model_copy(update={"blocks": blocks}), limit)


def _group_turns(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Group messages into turns, each from a user message on; drop what stands before the first user message."""
    turns: list[list[ChatMessage]] = []
    for step in _group_steps(messages):
        if role_of(step[0]) == "user":
            turns.append([*step])
        elif turns:
            turns[-1] += step
    return turns


def _group_steps(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Group tool calls with their results; drop results without a call, and calls without results."""
    steps: list[list[ChatMessage]] = []
    n = 0
    while n < len(messages):
        end = n + 1
        while end < len(messages) and messages[end].role in TOOL_RESULT_ROLES:
            end += 1
        head, results = messages[n], list(messages[n + 1 : end])
        if tool_call_ids(head):
            is_running = end == len(messages) and not results
            steps += [step] if (step := [head] if is_running else _match_results(head, results)) else []
        else:
            steps.append([head])
        n = end
    return steps


def _match_results(head: ChatMessage, results: list[ChatMessage]) -> list[ChatMessage]:
    """Return a message of tool calls with their results; empty if a result is missing."""
    wanted = set(tool_call_ids(head))
    matching = [result for result in results if "" in wanted or answered_call_id(result) in {"", *wanted}]
    missing = wanted - {"", *map(answered_call_id, matching)}
    unnamed = sum(1 for result in matching if not answered_call_id(result))
    return [head, *matching] if matching and len(missing) <= unnamed else []


def _fit_turn(turn: list[ChatMessage], counter: MessageCounter, limit: int, reserve: int) -> list[ChatMessage]:
    """Return a turn, or the part of an overlong one that fits: the user's message, and the last steps."""
    first, *steps = _group_steps(turn)
    reserve = min(reserve, limit // 2) if any(tool_call_ids(step[0]) for step in steps) else 0
    if _count_tokens(turn, counter) <= limit - reserve:
        return turn
    preferred = max(limit // 2, limit - reserve - sum(_count_tokens(s, counter) for s in steps))
    head = counter.truncate_message(first[0], preferred) or counter.truncate_message(first[0], limit)
    if head is None:
        return []
    left = limit - reserve - counter.count_message(head)
    kept: list[ChatMessage] = []
    for step in reversed(steps):
        shortened = _truncate_step(step, counter, left)
        if shortened is None:
            break
        kept = [*shortened, *kept]
        left -= _count_tokens(shortened, counter)
    return [head, *kept]


def _truncate_step(step: Sequence[ChatMessage], counter: MessageCounter, limit: int) -> list[ChatMessage] | None:
    """Return a step with its tool results cut equally to fit; None if that isn't possible."""
    if _count_tokens(step, counter) <= limit:
        return list(step)
    head, *results = step
    if not results:
        shortened = counter.truncate_message(head, limit)
        return None if shortened is None else [shortened]
    left = limit - counter.count_message(head)
    cut = [counter.truncate_message(result, left // len(results)) for result in results]
    return None if None in cut else [head, *(m for m in cut if m is not None)]
