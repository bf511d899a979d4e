from datetime import UTC, datetime, timedelta

import pytest

from meve.memory import GovernedMemory


class SetClock:
    """A clock that a test moves."""

    def __init__(self):
        self.moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
        self.seconds = 0.0

    def now(self):
        return self.moment

    def elapsed(self):
        return self.seconds

    def move(self, **span):
        self.moment += timedelta(**span)


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def memory(file, clock):
    with GovernedMemory.open(file, clock=clock, audit_key=b"a key of the tests, long enough") as opened:
        yield opened
