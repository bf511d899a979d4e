"""Turns of a dialogue as passages, long turns cut into several."""

from collections.abc import Iterable
from dataclasses import dataclass

from meve._quoting import mark_forgeries
from meve.components._sentence_splitter import split_sentences
from meve.conversation import Turn
from meve.types import Passage

PASSAGE_LENGTH = 400
"""Characters from which on a turn is cut; each passage is then scored by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPassage(Passage):
    """A turn, or a part of a long one, that may enter a prompt. Its title is the speaker."""

    turn: int
    """Position of the turn in the dialogue, from 0."""
    row: int = -1
    """Position among all passages of the dialogue; -1 until the dialogue reads it."""
    label: str = ""
    begins: bool = True
    """Whether the turn begins with this passage."""
    ends: bool = True

    @property
    def prompt_text(self) -> str:
        """Speaker, time and text. Further lines are indented, so that no turn can forge another one or a heading."""
        marked = mark_forgeries(self.text)
        text = marked if self.begins else f"… {marked}"
        text = text if self.ends else f"{text} …"
        return self.label + "\n  ".join(text.splitlines())


def split_turn(turn: Turn, n: int) -> list[TurnPassage]:
    """Return the passages of a turn: one if it is short, several if it is long, none if it is blank.

    Args:
        turn: the turn.
        n: its position in the dialogue, from 0.
    """
    texts = [turn.text.strip()] if len(turn.text) <= PASSAGE_LENGTH else list(_cut(turn.text))
    texts = [text for text in texts if text]
    last = len(texts) - 1
    return [
        TurnPassage(
            id=f"{n}" if not last else f"{n}.{k}", text=text, title=" ".join(turn.speaker.split()), turn=n,
            label=" ".join(turn.label.split()) + " " if turn.label else "", begins=not k, ends=k == last,
        )
        for k, text in enumerate(texts)
    ]  # fmt: skip


def _cut(text: str) -> Iterable[str]:
    """Yield groups of whole sentences; a sentence that is too long is cut at a space, or anywhere."""
    group = ""
    for line in text.splitlines():
        for at in range(0, len(line), 50 * PASSAGE_LENGTH):  # a splitter's time may grow faster than its text
            for sentence in split_sentences(line[at : at + 50 * PASSAGE_LENGTH]):
                if len(group) + len(sentence) < PASSAGE_LENGTH:
                    group = f"{group} {sentence}".strip()
                    continue
                yield group
                *whole, group = _cut_sentence(sentence)
                yield from whole
    yield group


def _cut_sentence(sentence: str) -> list[str]:
    parts = []
    while len(sentence) > PASSAGE_LENGTH:
        at = sentence.rfind(" ", PASSAGE_LENGTH // 2, PASSAGE_LENGTH)
        at = PASSAGE_LENGTH if at < 0 else at
        parts.append(sentence[:at].strip())
        sentence = sentence[at:].strip()
    return [*parts, sentence]
