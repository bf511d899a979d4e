"""Agent state that holds the user messages of the open turn, in case other middleware removes them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage

from langchain_meve._messages import last_turn, messages_to_turns
from meve.conversation import Turn

_STATE_KEY, _USERS_KEY = "meve_turn", "meve_users"
_UNKNOWN = ""
"""Stands for the writers of messages that were there before the middleware; no user's key."""


class MemoryAgentState(AgentState[Any]):
    """An agent's state plus the open turn's user messages and the thread's users; private: neither input nor output."""

    meve_turn: NotRequired[Annotated[list[dict[str, str]], PrivateStateAttr]]
    meve_users: NotRequired[Annotated[list[str], PrivateStateAttr]]


def note_user_messages(state: Mapping[str, Any], user: str) -> dict[str, Any]:
    """Return a state update with the user messages of the open turn, each with its user's key, and the thread's users.

    A failed turn is still open when another user writes to the thread: messages already noted keep their user.

    Args:
        state: the agent's state.
        user: the key of the user who is calling.
    """
    noted = {(each["id"], each["text"]): each for each in state.get(_STATE_KEY) or ()}
    turn = last_turn(state["messages"])
    turns = [each for each in messages_to_turns(turn) if each.speaker == "user"]
    users = state.get(_USERS_KEY, [] if len(turn) == len(state["messages"]) else [_UNKNOWN])
    current = ({"user": user, "id": each.id, "text": each.text} for each in turns)
    return {
        _STATE_KEY: [noted.get((each["id"], each["text"]), each) for each in current],
        _USERS_KEY: sorted({*users, user}),
    }


def open_turn(state: Mapping[str, Any], messages: Sequence[BaseMessage], user: str) -> list[Turn]:
    """Return the messages of the user's open turn: first the noted ones, then those that came since.

    What models and tools said after another user's message is that user's, such as in a turn that a tool's result ends.
    """
    noted = state.get(_STATE_KEY) or ()
    users = {each["id"]: each["user"] for each in noted}
    turns = [Turn(id=each["id"], speaker="user", text=each["text"]) for each in noted if each["user"] == user]
    is_own = set(users.values()) <= {user}
    for turn in messages_to_turns(last_turn(messages)):
        if turn.speaker == "user":
            is_own = users.get(turn.id, user) == user
        if is_own and turn.id not in users:
            turns.append(turn)
    return turns


def earlier_turns(state: Mapping[str, Any], messages: Sequence[BaseMessage], user: str) -> list[Turn]:
    """Return the turns before the open one; none if another user wrote in the thread, or may have."""
    if state.get(_USERS_KEY) != [user]:
        return []
    return messages_to_turns(messages[: len(messages) - len(last_turn(messages))])
