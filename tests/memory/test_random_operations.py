"""Random operations checked against a dict: isolation, expiry, deletion, holds and the audit chain."""

import tempfile
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from meve.errors import DuplicateIdError, HoldError, UnknownIdError
from meve.memory import Policy
from meve.testing.fakes import FakeClock
from tests.memories import open_memory
from tests.postgres import MemoryUrl, own_schema

USERS = ("alice", "bob", 1, "1")
IDS = st.sampled_from([f"m{n}" for n in range(5)])
WORDS = ("apple", "bread", "cloud", "dream", "eagle", "flame")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
POLICY = Policy.from_dict({"ranking": {"threshold": 0.0}})


class MemoryMachine(RuleBasedStateMachine):
    """A memory, and a dict of the expected records: (user, id) to (text, end, hold).

    Maintenance merges records of equal text: it closes one of them, which `list` and searches leave out until its end.
    Single records that were merged, closed or not, are left alone afterwards; tests of the history change them.
    """

    url = None
    """That of a PostgreSQL database; None for files."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
        self.expected = {}
        self.closed = {}
        """By the key of a closed record, that of the record that says the same."""
        self.open()

    def open(self):
        folder = Path(self.folder.name)
        if self.url is None:
            self.memory = open_memory(folder / "memory.db", policy=POLICY, clock=self.clock)
        else:  # a story is a tenant's
            url = MemoryUrl(self.url, folder / "memory.keys")
            self.memory = open_memory(url, tenant=folder.name, policy=POLICY, clock=self.clock)

    def live_texts(self, user):
        now = self.clock.now()
        return {
            i: text
            for (u, i), (text, end, _) in self.expected.items()
            if (type(u), u) == (type(user), user) and now < end and (u, i) not in self.closed
        }

    def is_merged(self, user, record_id):
        return (user, record_id) in {*self.closed, *self.closed.values()}

    def is_live(self, user, record_id):
        record = self.expected.get((user, record_id))
        return record is not None and self.clock.now() < record[1]

    @rule(user=st.sampled_from(USERS), record_id=IDS, text=TEXTS, hours=st.integers(1, 48))
    def add(self, user, record_id, text, hours):
        end = self.clock.now() + timedelta(hours=hours)
        before = self.expected.get((user, record_id))
        taken = before is not None and (self.clock.now() < before[1] or before[2])
        try:
            self.memory.add(text, user_id=user, id=record_id, ttl=timedelta(hours=hours))
        except DuplicateIdError:
            assert taken
        else:
            assert not taken
            self.expected[user, record_id] = (text, end, False)

    @rule(user=st.sampled_from(USERS), record_id=IDS, text=TEXTS)
    def update(self, user, record_id, text):
        if self.is_merged(user, record_id):
            return
        try:
            self.memory.update(record_id, user_id=user, text=text)
        except UnknownIdError:
            assert not self.is_live(user, record_id)
        except HoldError:
            assert self.expected[user, record_id][2]
        else:
            assert self.is_live(user, record_id)
            _, end, hold = self.expected[user, record_id]
            self.expected[user, record_id] = (text, end, hold)

    @rule(user=st.sampled_from(USERS), record_id=IDS)
    def delete(self, user, record_id):
        if self.is_merged(user, record_id):
            return
        try:
            result = self.memory.delete(record_id, user_id=user)
        except UnknownIdError:
            assert not self.is_live(user, record_id)
        else:
            _, _, hold = self.expected[user, record_id]
            assert (record_id in result.held) is hold
            if not hold:
                del self.expected[user, record_id]

    @rule(user=st.sampled_from(USERS), record_id=IDS, on=st.booleans())
    def hold(self, user, record_id, on):
        if self.is_merged(user, record_id):
            return
        call = self.memory.hold if on else self.memory.release
        try:
            call(record_id, user_id=user)
        except UnknownIdError:
            assert (user, record_id) not in self.expected or not self.is_live(user, record_id)
        else:
            text, end, _ = self.expected[user, record_id]
            self.expected[user, record_id] = (text, end, on)

    @rule(user=st.sampled_from(USERS))
    def forget_user(self, user):
        result = self.memory.forget_user(user_id=user)
        for key in [k for k in self.expected if (type(k[0]), k[0]) == (type(user), user)]:
            if self.expected[key][2]:
                assert key[1] in result.held
            else:
                del self.expected[key]
        self.closed = {key: other for key, other in self.closed.items() if key in self.expected}

    @rule(hours=st.integers(1, 30))
    def wait(self, hours):
        self.clock.advance(timedelta(hours=hours))

    @rule()
    def maintain(self):
        report = self.memory.maintain()
        now = self.clock.now()
        expired = {k for k, (_, end, hold) in self.expected.items() if now >= end and not hold}
        assert {(u, i) for u, ids in report.expired.items() for i in ids} == expired
        counts = report.counts()
        assert (counts["restored"], counts["pruned"], counts["summarised"], counts["archived"]) == (0, 0, 0, 0)
        for key in expired:
            del self.expected[key]
            self.closed.pop(key, None)
        for user, record_id in [(u, i) for ids in (report.merged, report.superseded) for u in ids for i in ids[u]]:
            assert not self.expected[user, record_id][2]
            self.closed[user, record_id] = (user, self.memory.get(record_id, user_id=user).superseded_by)

    @rule()
    def reopen(self):
        self.memory.close()
        self.open()

    @rule(user=st.sampled_from(USERS), query=TEXTS)
    def search(self, user, query):
        recall = self.memory.search(query, user_id=user, limit=None, max_tokens=10_000)
        live_texts = self.live_texts(user)
        assert {r.id for r in recall.records} <= live_texts.keys()
        for record in recall.records:
            assert record.text == live_texts[record.id]
            assert record.user_id == user

    @invariant()
    def every_user_has_expected_records(self):
        for user in USERS:
            assert {r.id: r.text for r in self.memory.list(user_id=user)} == self.live_texts(user)

    @invariant()
    def audit_chain_verifies(self):
        assert self.memory.audit.verify().ok

    @precondition(lambda self: self.expected)
    @rule()
    def single_records_agree(self):
        for (user, record_id), (text, _, _) in self.expected.items():
            if self.is_live(user, record_id) and not self.is_merged(user, record_id):
                assert self.memory.get(record_id, user_id=user).text == text

    def teardown(self):
        self.memory.close()
        self.folder.cleanup()


@pytest.fixture(scope="module", autouse=True)
def database(request):
    """Let the stories happen where `--memory` says."""
    if request.config.getoption("--memory") == "sqlite":
        yield
        return
    with own_schema(request.getfixturevalue("postgres_server"), f"meve_{uuid.uuid4().hex}") as url:
        MemoryMachine.url = url
        yield
        MemoryMachine.url = None


TestRandomOperations = MemoryMachine.TestCase
TestRandomOperations.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
