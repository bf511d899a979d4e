"""The dialogue-speed experiment: a question to a dialogue of 50,000 turns, the first one and later ones.

The first question reads all turns. The turns are a public chat room's messages (IRC, Ubuntu's users), repeated with a
number if there are too few.
"""

from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from meve.dialogue import Dialogue, build_small_context
from meve.errors import EvaluationError
from meve.evaluation.datasets.synthetic_dialogues import SPEAKERS, read_small_talk
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.results import collect_versions
from meve.types import StageProgress

NAME = "dialogue speed"
ROUNDS = 5
QUESTIONS = (
    "which kernel does ubuntu use?",
    "how to mount a windows share with samba",
    "is there a gui for apt?",
    "sound does not work with alsa",
    "how do I resize a partition?",
    "What did somebody say about the dapper release?",
    "where can I download the amd64 iso of Ubuntu 5.10?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSpeedOptions:
    """The options of the dialogue-speed experiment."""

    data: Path
    """The folder with the folder `irc`."""
    turns: int = 50_000
    seed: int = SEED


def run_dialogue_speed(options: DialogueSpeedOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Time a first question, later ones, and one after a new turn.

    Raises:
        DatasetError: the chat room is absent, truncated or of another format.
        EvaluationError: `turns` is less than 1.
    """
    if options.turns < 1:
        raise EvaluationError(f"turns must be at least 1, got {options.turns}")
    talk = read_small_talk(options.data)
    messages = islice(enumerate(cycle(talk)), options.turns)
    dialogue = Dialogue.from_turns(
        (SPEAKERS[n % 2], text if n < len(talk) else f"{text} {n // len(talk)}") for n, text in messages
    )
    tally = Tally(NAME, options.seed)
    system = f"{options.turns:,} turns"
    tally.time(system, "first question, ms", lambda: build_small_context(dialogue, QUESTIONS[0]))
    for n in range(ROUNDS):
        progress("later questions", n, ROUNDS)
        for question in QUESTIONS:
            tally.time(system, "later question, ms", lambda: build_small_context(dialogue, question))  # noqa: B023
            tally.time(system, "of it the embedder, ms", lambda: dialogue.components.embedder.embed_query(question))  # noqa: B023
    progress("later questions", ROUNDS, ROUNDS)
    dialogue.append((SPEAKERS[0], "The library bridge was designed by Clara Novak in 1962."))
    after = "question after a new turn, ms"
    tally.time(system, after, lambda: build_small_context(dialogue, "Who designed the library bridge?"))
    settings = {
        "seed": options.seed,
        "turns": options.turns,
        "messages": len(talk),
        "embedder": dialogue.components.embedder.name,
        "versions": collect_versions(),
    }
    return MemoryResults.from_tallies("dialogue-speed", settings, [tally])
