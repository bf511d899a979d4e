"""Turns of a conversation as passages that may enter a prompt."""

from dataclasses import dataclass

from meve.conversation.graph import PlacedTurn
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPassage(Passage):
    """A turn as a passage. Its id is the turn's, its title the speaker."""

    position: int
    """The position of the turn in the conversation, from 0."""
    label: str = ""
    """Speaker and time, such as `From user: `; a line that begins with a role would be marked as an imitation."""

    @property
    def prompt_text(self) -> str:
        """Speaker, time and text. Further lines are indented, so that no turn can imitate another one or a heading."""
        return self.label + "\n  ".join(self.text.splitlines())


def make_passage(turn: PlacedTurn, position: int) -> PlacedPassage:
    """Return the passage of a turn."""
    return PlacedPassage(
        id=turn.id, text=turn.text.strip(), title=" ".join(turn.speaker.split()), position=position,
        label=f"From {' '.join(turn.label.split())} " if turn.label else "",
        metadata={"turn": turn.id, "speaker": turn.speaker, "parents": list(turn.parents)},
    )  # fmt: skip
