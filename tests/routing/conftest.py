"""A memory of alice over some months, and one of bob; and language models that answer as a test says."""

from datetime import timedelta

import pytest

from meve.memory import GovernedMemory
from meve.routing import MemoryRouter

ALICE = (
    ("name", "My name is Alice Novak."),
    ("diet", "I'm a vegetarian."),
    ("hike1", "I went hiking in the Tatra mountains with Sam."),
    ("sister", "My sister Jana is a nurse."),
    ("bike", "I bought a red bike for 300 euros."),
    ("hike2", "I went hiking up Lysa hora."),
    ("pottery", "I started a pottery course."),
    ("hike3", "I went hiking again, this time alone."),
    ("sold", "I sold the red bike for 200 euros."),
    ("prague", "I live in Prague."),
)
"""What alice says, ten days apart, from 1 May 2026 on."""


class Script:
    """A language model that gives the answers of a list, the last one for ever, and keeps the prompts."""

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(scope="module")
def routed_memory(tmp_path_factory):
    """Return a memory that no test changes; now is 9 August 2026."""
    from datetime import UTC, datetime

    from meve.testing.fakes import FakeClock

    clock = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    with GovernedMemory.open(tmp_path_factory.mktemp("routing") / "memory.db", clock=clock) as memory:
        for record_id, text in ALICE:
            memory.add(text, user_id="alice", id=record_id, source="chat_user")
            memory.add("I went hiking to a secret lake of Bob's.", user_id="bob", source="chat_user")
            clock.advance(timedelta(days=10))
        yield memory


@pytest.fixture
def router(routed_memory):
    return MemoryRouter(routed_memory, user_id="alice")
