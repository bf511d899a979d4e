"""Which of a conversation's messages stand before the model: whole turns from its end, under a hard limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory.memory import InsertMethod

from llama_index_meve._token_limit import MessageCounter
from llama_index_meve._turns import PINNED, RESULTS, answered_call, calls, role_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What of a conversation is shown."""

    system: ChatMessage | None = None
    """Its instructions, as one message."""
    turns: tuple[ChatMessage, ...] = ()
    """The first is a user's; what tools return stands behind its calls."""
    tokens: int = 0
    question: str = ""
    """What the user said last, in words."""

    def with_memory(self, text: str, method: InsertMethod = InsertMethod.SYSTEM) -> list[ChatMessage]:
        """The messages for the model, with what is remembered at the end of the instructions.

        Or, as `method` says, at the beginning of what the user said last.
        """
        told = [TextBlock(text=text)] if text else []
        if method is InsertMethod.USER:
            return [*([self.system] if self.system else ()), *self._before_the_last(told)]
        blocks = [*(self.system.blocks if self.system else ()), *told]
        if not blocks:
            return list(self.turns)
        first = self.system or ChatMessage(role="system")
        return [first.model_copy(update={"blocks": blocks}), *self.turns]

    def _before_the_last(self, told: list[TextBlock]) -> list[ChatMessage]:
        made = list(self.turns)
        last = next((n for n in reversed(range(len(made))) if role_of(made[n]) == "user"), None)
        if told and last is not None:
            made[last] = made[last].model_copy(update={"blocks": [*told, *made[last].blocks]})
        elif told:
            made = [ChatMessage(role="user", blocks=told)]
        return made

    def fits(self, method: InsertMethod) -> bool:
        """Whether what is remembered finds a message to stand in, and needs none of its own."""
        return bool(self.turns) if method is InsertMethod.USER else self.system is not None


def windowed(
    messages: Sequence[ChatMessage],
    counter: MessageCounter,
    limit: int,
    reserve: int = 0,
    pinned: Sequence[ChatMessage] = (),
) -> Window:
    """As much of the end of a conversation as a limit holds.

    First come the instructions, then the last turn, then what is reserved, then older turns, each whole or not at all.
    What alone is too long is cut; instructions leave the last turn half of the limit.

    Args:
        messages: the end of the conversation, oldest first.
        counter: counts.
        limit: tokens that are never exceeded.
        reserve: tokens that older turns leave free.
        pinned: instructions from before these messages.
    """
    spoken = [m for m in messages if m.role not in PINNED]
    turns = _turns(spoken)
    last = _cost(turns[-1], counter) if turns else 0
    system = _system([*pinned, *(m for m in messages if m.role in PINNED)], counter, limit - min(last, limit // 2))
    used = counter.message(system) if system else 0
    if not turns:
        return Window(system=system, tokens=used)
    end = turns[-1] if last <= limit - used else _shortened(turns[-1], counter, limit - used)
    used += last if end is turns[-1] else _cost(end, counter)
    kept = [*end]
    for turn in reversed(turns[:-1]) if end is turns[-1] else ():
        cost = _cost(turn, counter)
        if used + cost > limit - reserve:
            break
        kept, used = [*turn, *kept], used + cost
    return Window(system=system, turns=tuple(kept), tokens=used)


def _cost(messages: Sequence[ChatMessage], counter: MessageCounter) -> int:
    return sum(map(counter.message, messages))


def _system(found: Sequence[ChatMessage], counter: MessageCounter, room: int) -> ChatMessage | None:
    if not found:
        return None
    blocks = [block for message in found for block in message.blocks]
    return counter.fitted(found[0].model_copy(update={"blocks": blocks}), room)


def _turns(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """What a user says and all that follows, for each; what comes before a user speaks is left out."""
    made: list[list[ChatMessage]] = []
    for step in _steps(messages):
        if role_of(step[0]) == "user":
            made.append([*step])
        elif made:
            made[-1] += step
    return made


def _steps(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Messages, calls together with their results; results without a call are left out, and calls without results."""
    made: list[list[ChatMessage]] = []
    n = 0
    while n < len(messages):
        end = n + 1
        while end < len(messages) and messages[end].role in RESULTS:
            end += 1
        head, results = messages[n], list(messages[n + 1 : end])
        if calls(head):
            under_way = end == len(messages) and not results
            made += [step] if (step := [head] if under_way else _paired(head, results)) else []
        else:
            made.append([head])
        n = end
    return made


def _paired(head: ChatMessage, results: list[ChatMessage]) -> list[ChatMessage]:
    """A call with what came of it; nothing where a result is missing."""
    wanted = set(calls(head))
    mine = [result for result in results if "" in wanted or answered_call(result) in {"", *wanted}]
    missing = wanted - {"", *map(answered_call, mine)}
    unnamed = sum(1 for result in mine if not answered_call(result))
    return [head, *mine] if mine and len(missing) <= unnamed else []


def _shortened(turn: Sequence[ChatMessage], counter: MessageCounter, room: int) -> list[ChatMessage]:
    """What fits of a turn that is too long: what the user said, and its last steps."""
    first, *steps = _steps(turn)
    head = counter.fitted(first[0], max(room // 2, room - sum(_cost(step, counter) for step in steps)))
    if head is None:
        return []
    left = room - counter.message(head)
    kept: list[ChatMessage] = []
    for step in reversed(steps):
        made = _fitted_step(step, counter, left)
        if made is None:
            break
        kept = [*made, *kept]
        left -= _cost(made, counter)
    return [head, *kept]


def _fitted_step(step: Sequence[ChatMessage], counter: MessageCounter, room: int) -> list[ChatMessage] | None:
    """A call and its results, the results cut alike where they are too long; None where that won't do."""
    if _cost(step, counter) <= room:
        return list(step)
    head, *results = step
    if not results:
        made = counter.fitted(head, room)
        return None if made is None else [made]
    left = room - counter.message(head)
    made_results = [counter.fitted(result, left // len(results)) for result in results]
    return None if None in made_results else [head, *(m for m in made_results if m is not None)]
