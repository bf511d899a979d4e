"""The long-memories experiment: how much of what users told in months of talk maintenance closes.

The rules extract what each speaker of LoCoMo's conversations tells. Hardly any of it ends what was told before, so what
is closed is nearly all false. Two of the five conversations served for tuning.
"""

from collections.abc import Iterator
from datetime import timedelta

from meve.errors import EvaluationError
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.environment import Environment
from meve.evaluation.experiments.memory.extraction import LABELLED_SETS
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.memory._classify.fact_extraction import extract_statements
from meve.types import StageProgress

NAME = "long memories"
TUNING, TABLE = "conversations for tuning", "conversations for the table"
CLOSED = "statements that maintenance closes"
TUNED = 2
"""The number of conversations, the first ones, that served for tuning."""
NEEDED = LABELLED_SETS[:1]
"""The files that it reads in the data folder."""


def run_long_memories(environment: Environment, progress: StageProgress) -> Tally:
    """Tell a memory what each speaker tells, an hour apart, and maintain it once.

    Raises:
        EvaluationError: there is no data folder.
        DatasetError: the set is absent, or of another format.
    """
    if environment.data is None:
        raise EvaluationError("the experiment long-memories needs --data DIR: the folder with locomo")
    tally = Tally(NAME, environment.seed)
    conversations = list(read_rows(environment.data / NEEDED[0]))[: environment.sizes.talks]
    for n, conversation in enumerate(conversations):
        progress(NAME, n, len(conversations))
        for speaker in conversation.texts("speakers"):
            with environment.open_sandbox() as sandbox:
                told = list(_statements(conversation, speaker))
                for text in told:
                    sandbox.memory.add(text, user_id=speaker)
                    sandbox.clock.advance(timedelta(hours=1))
                closed = sandbox.memory.maintain(user_id=speaker).counts()["superseded"]
            for k in range(len(told)):
                tally.add(TUNING if n < TUNED else TABLE, CLOSED, k < closed)
    return tally


def _statements(conversation: Row, speaker: str) -> Iterator[str]:
    """Yield what a speaker tells, each once."""
    told = (
        text
        for session in conversation.rows("sessions")
        for turn in session.rows("turns")
        if turn.text("speaker") == speaker
        for text in extract_statements(turn.text("text", blank=True))
    )
    yield from dict.fromkeys(told)
