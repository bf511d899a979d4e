"""A turn that isn't answered yet: what was said in it, by whom, whatever becomes of the messages meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import BaseMessage

from langchain_meve._messages import last_turn, said
from meve.conversation import Turn

_KEPT = "meve_turn"


class State(AgentState[Any]):
    """An agent's state, and what was said in the turn: part of no input and no output."""

    meve_turn: NotRequired[Annotated[list[dict[str, str]], PrivateStateAttr]]


def noted(state: Mapping[str, Any], user: str) -> dict[str, Any]:
    """What a run begins with, said by its user; what was noted before stays whose it was.

    Other middleware may take messages away before the answer is there, and a turn that failed is still open when
    another user comes to the thread.

    Args:
        state: the agent's.
        user: the user's key.
    """
    before = {(each["id"], each["text"]): each for each in state.get(_KEPT) or ()}
    new = [each for each in said(last_turn(state["messages"])) if each.speaker == "user"]
    mine = ({"user": user, "id": each.id, "text": each.text} for each in new)
    return {_KEPT: [before.get((each["id"], each["text"]), each) for each in mine]}


def spoken(state: Mapping[str, Any], messages: Sequence[BaseMessage], user: str) -> list[Turn]:
    """What belongs to a user's open turn, and is no other user's: what was noted, then what came since."""
    kept = state.get(_KEPT) or ()
    known = {each["id"] for each in kept}
    mine = [Turn(id=each["id"], speaker="user", text=each["text"]) for each in kept if each["user"] == user]
    return [*mine, *(each for each in said(last_turn(messages)) if each.id not in known)]
