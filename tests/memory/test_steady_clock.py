"""Test that a clock set back revives and prolongs nothing, and that nothing is returned that expires during a call."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import ConfigurationError, StoreCorruptError, UnknownIdError
from meve.memory.stores._sql.key_file import TIME
from meve.testing.fakes import FakeClock
from tests.memories import HookedEmbedder, open_memory, run_sql

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def add_code(memory, **options):
    memory.add("The height is 4711 mm.", user_id="ann", source="doc", id="code", **{"ttl": HOUR, **options})


def find_code(memory):
    return [r.id for r in memory.search("What is the height?", user_id="ann").records if r.id == "code"]


@pytest.mark.parametrize("reopened", [False, True])
def test_clock_set_back_revives_no_expired_memory(file, reopened):
    clock = FakeClock(NOON)
    memory = open_memory(file, clock=clock)
    add_code(memory)
    clock.advance(2 * HOUR)
    assert find_code(memory) == []
    memory.add("Later.", user_id="ann", source="doc")
    clock.advance(-2 * HOUR)
    if reopened:
        memory.close()
        memory = open_memory(file, clock=FakeClock(NOON))
    assert find_code(memory) == []
    assert memory.list(user_id="ann", include_archived=True)[0].text == "Later."
    with pytest.raises(UnknownIdError):
        memory.get("code", user_id="ann")
    assert memory.clock.now() == NOON + 2 * HOUR
    memory.close()


def test_clock_set_back_prolongs_no_new_memory(file):
    clock = FakeClock(NOON)
    with open_memory(file, clock=clock) as memory:
        memory.add("Now.", user_id="ann", source="doc")
        clock.advance(-10 * HOUR)
        add_code(memory)
        assert memory.get("code", user_id="ann").expires_at == NOON + HOUR
        clock.advance(11 * HOUR)
        assert find_code(memory) == []


def maintain(memory):
    memory.maintain()


def read(memory):
    memory.list(user_id="bob")


@pytest.mark.parametrize("call", [read, maintain])
def test_time_of_another_process_is_seen_with_the_next_call(file, call):
    clock = FakeClock(NOON)
    with open_memory(file, clock=FakeClock(NOON)) as one, open_memory(file, clock=clock) as two:
        add_code(one)
        assert find_code(one) == ["code"]
        clock.advance(2 * HOUR)
        call(two)
        assert find_code(one) == []
        assert one.add("Now.", user_id="bob", source="doc").created_at == NOON + 2 * HOUR


@pytest.mark.parametrize("call", [read, maintain])
@pytest.mark.parametrize("end", ["close", "kill"])
def test_time_that_a_call_saw_outlives_the_process(file, call, end):
    """A killed process does nothing more; here it is just left open."""
    clock = FakeClock(NOON)
    memory = open_memory(file, clock=clock)
    add_code(memory)
    clock.advance(2 * HOUR)
    call(memory)
    if end == "close":
        clock.advance(timedelta(seconds=59))
        call(memory)
        memory.close()
    with open_memory(file, clock=FakeClock(NOON)) as later:
        assert find_code(later) == []
        assert later.clock.now() == NOON + 2 * HOUR + timedelta(seconds=59 if end == "close" else 0)
    memory.close()


def test_reads_write_the_time_once_a_minute(file):
    clock, keys = FakeClock(NOON), file.with_name("memory.db.keys")
    with open_memory(file, clock=clock) as memory:
        states = []
        for _ in range(8):
            clock.advance(timedelta(seconds=30))
            before = sorted(each.name for each in file.parent.iterdir()), file.read_bytes()
            read(memory)
            assert before == (sorted(each.name for each in file.parent.iterdir()), file.read_bytes())
            states.append(keys.read_bytes())
        assert len(set(states)) == 5  # and the time at which it was opened


def test_closed_memory_notes_no_time(file):
    clock, keys = FakeClock(NOON), file.with_name("memory.db.keys")
    with open_memory(file, clock=clock) as memory:
        read(memory)
    noted = keys.read_bytes()
    clock.advance(2 * HOUR)
    assert memory.clock.now() == NOON + 2 * HOUR
    assert keys.read_bytes() == noted


def test_clock_that_is_behind_is_reported_when_the_memory_is_opened(file, caplog):
    with open_memory(file, clock=FakeClock(NOON + HOUR)) as memory:
        read(memory)
    with open_memory(file, clock=FakeClock(NOON + HOUR - timedelta(minutes=1))):
        assert caplog.messages == []
    with open_memory(file, clock=FakeClock(NOON)):
        (message,) = caplog.messages
    assert "the clock is 1:00:00 behind the latest time" in message
    assert "reset_clock=True" in message


def write(memory):
    memory.add("Wrong clock.", user_id="bob", source="doc")


@pytest.mark.parametrize("call", [read, write])
def test_clock_that_was_wrongly_ahead_is_reset_on_request(file, call):
    with open_memory(file, clock=FakeClock(NOON)) as memory:
        add_code(memory)
    with open_memory(file, clock=FakeClock(NOON + timedelta(days=10_000))) as memory:
        call(memory)
    with open_memory(file, clock=FakeClock(NOON)) as memory:
        assert find_code(memory) == []
    with open_memory(file, clock=FakeClock(NOON), reset_clock=True) as memory:
        assert find_code(memory) == ["code"]
    with open_memory(file, clock=FakeClock(NOON)) as memory:
        assert find_code(memory) == ["code"]


@pytest.mark.parametrize("value", ["soon", "9" * 30])
def test_unreadable_time_in_the_file_raises(file, value):
    with open_memory(file) as memory:
        add_code(memory)
    run_sql(file, f"UPDATE meta SET value = '{value}' WHERE name = 'latest_time'")
    with pytest.raises(StoreCorruptError, match="latest time"):
        open_memory(file)


def test_unreadable_time_beside_the_keys_raises(file):
    with open_memory(file) as memory:
        add_code(memory)
    keys = file.with_name("memory.db.keys")
    content = bytearray(keys.read_bytes())
    content[TIME : TIME + 8] = b"\xff" * 8
    keys.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="latest time"):
        open_memory(file)
    with open_memory(file, reset_clock=True) as memory:
        assert find_code(memory) == ["code"]


def test_item_that_expires_during_a_call_is_not_returned(file):
    clock = FakeClock(NOON)
    embedder = HookedEmbedder(lambda: clock.advance(HOUR))
    with open_memory(file, clock=clock, embedder=embedder) as memory:

        def put(key):
            memory.items.put(("codes",), key, {"code": "4711"}, user_id="ann", ttl=HOUR)

        def wait(value):
            clock.advance(HOUR)
            return True

        put("a")
        assert memory.items.search(("codes",), user_id="ann", query="code") == []
        put("b")
        assert memory.items.search(("codes",), user_id="ann", where=wait) == []
        put("c")
        delay_reads(memory, clock)
        assert memory.items.get(("codes",), "c", user_id="ann") is None


@pytest.mark.parametrize("read", ["get", "list", "page"])
def test_record_that_expires_while_it_is_read_is_not_returned(file, read):
    clock = FakeClock(NOON)
    with open_memory(file, clock=clock) as memory:
        add_code(memory)
        memory.messages.add("s", [{"text": "Hi."}], user_id="ann", ttl=HOUR)
        delay_reads(memory, clock)
        if read == "get":
            with pytest.raises(UnknownIdError):
                memory.get("code", user_id="ann")
        else:
            assert (memory.list(user_id="ann") if read == "list" else memory.messages.page("s", user_id="ann")) == []


def delay_reads(memory, clock):
    """Let each read of the store take an hour, as another process's lock may."""
    backend = memory._runtime.store.backend
    reading = backend.reading

    def late():
        clock.advance(HOUR)
        return reading()

    backend.reading = late


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 0, -1, 1e300, 10**400, True, "1", None])
def test_maintenance_at_an_impossible_interval_raises(memory, seconds):
    with pytest.raises(ConfigurationError, match="seconds must be above 0"):
        memory.maintain_every(seconds)


@pytest.mark.parametrize("limit", [2**31, 2**63, 10**30])
def test_page_of_any_size_returns_all_messages(memory, limit):
    memory.messages.add("s", [{"n": n} for n in range(3)], user_id="ann")
    assert len(memory.messages.page("s", user_id="ann", limit=limit)) == 3
    assert memory.messages.page("s", user_id="ann", offset=limit) == []
    assert memory.messages.page("s", user_id="ann", after=limit) == []
    assert len(memory.messages.page("s", user_id="ann", before=limit)) == 3
    assert len(memory.messages.page("s", user_id="ann", after=-limit)) == 3
    assert len(memory.messages.pop("s", user_id="ann", limit=limit)[0]) == 3


@pytest.mark.parametrize(
    "sessions", ["s", 7, None, {"s": "s"}, [["s"]], [{"s": 1}], [None, 7, "other"], {"a": [["s"] * 9]}]
)
@pytest.mark.parametrize("source", ["doc", "summary"])
def test_session_is_forgotten_whatever_the_metadata(memory, sessions, source):
    memory.add("Of the session.", user_id="ann", session_id="s", id="a", source="doc", metadata={"sessions": sessions})
    memory.add("Of another.", user_id="ann", session_id="t", id="b", source=source, metadata={"sessions": sessions})
    assert memory.forget_session("s", user_id="ann").erased == ("a",)
    assert memory.get("b", user_id="ann").metadata == {"sessions": sessions}
