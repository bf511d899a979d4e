"""Writes whose transaction PostgreSQL rolls back, for a deadlock or a serialization failure, are repeated."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import quote

import pytest

from meve._repeating import TRIES
from meve.errors import StoreBusyError
from tests.memories import open_memory
from tests.postgres import MemoryUrl

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")


@pytest.fixture
def url(postgres_url, tmp_path):
    return MemoryUrl(postgres_url, tmp_path / "memory.keys")


@contextmanager
def rolled_back(url, times, on="INSERT ON meve_audit"):
    """Let the server refuse the first statements of a kind with a serialization failure."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE SEQUENCE refused")
        other.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('refused') <= {times} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END IF; "
            "RETURN coalesce(NEW, OLD); END $$"
        )
        other.execute(f"CREATE TRIGGER refusing BEFORE {on} FOR EACH ROW EXECUTE FUNCTION refuse()")
        yield
        ((tried,),) = other.execute("SELECT last_value FROM refused").fetchall()
        assert tried >= times
        other.execute("DROP FUNCTION refuse CASCADE")
        other.execute("DROP SEQUENCE refused")


def waits(url, application):
    with psycopg.connect(url, autocommit=True) as watcher:
        statement = (
            "SELECT 1 FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid "
            "WHERE a.application_name = %s AND NOT l.granted"
        )
        return watcher.execute(statement, (application,)).fetchone() is not None


def test_victim_of_a_deadlock_is_repeated(url):
    """Another program locks a table, and then the tenant's row, which the writer holds."""
    quick = MemoryUrl(f"{url}{quote(' -cdeadlock_timeout=1s')}&application_name=victim", url.keys)
    with open_memory(quick) as memory, psycopg.connect(url) as other, ThreadPoolExecutor(1) as threads:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        other.execute("SET deadlock_timeout = '60s'")
        other.execute("LOCK TABLE meve_memories IN SHARE MODE")
        writing = threads.submit(memory.add, "Rye is baked.", user_id="alice", id="rye", derived_from=iter(["bread"]))
        while not waits(url, "victim"):
            assert not writing.done()
            time.sleep(0.01)
        other.execute("SELECT 1 FROM meve_tenants FOR UPDATE")  # granted only once the writer's transaction has ended
        assert not writing.done()
        other.rollback()
        writing.result(timeout=30)
        assert memory.get("rye", user_id="alice").derived_from == ("bread",)
        assert [event.action for event in memory.audit.events()] == ["add", "add"]
        assert memory.audit.verify().ok
        assert memory.find_damage() == []


CHANGES = {
    "add": lambda memory: memory.add("Rye is baked.", user_id="alice", id="rye"),
    "update": lambda memory: memory.update("bread", user_id="alice", text="Bread is brown.", tags=iter(["food"])),
    "supersede": lambda memory: memory.supersede("bread", "Bread is brown.", user_id="alice"),
    "hold": lambda memory: memory.hold("bread", user_id="alice", why="a dispute"),
    "restore": lambda memory: memory.restore("rolls", user_id="alice"),
    "delete": lambda memory: memory.delete("bread", user_id="alice"),
    "forget": lambda memory: memory.forget_user(user_id="alice"),
    "outcome": lambda memory: memory.record_outcome("bread", 1.0, user_id="alice"),
    "search": lambda memory: memory.search("bread", user_id="alice"),
    "items": lambda memory: memory.items.put(("p",), "k", {"a": "b"}, user_id="alice"),
    "items search": lambda memory: memory.items.search(("p",), query="item", user_id="alice"),
    "items deleted": lambda memory: memory.items.delete_namespace(("p",), user_id="alice"),
    "messages": lambda memory: memory.messages.add("s", [{"text": "Hello."}], user_id="alice"),
    "messages replaced": lambda memory: memory.messages.replace("s", [{"text": "Hello."}], user_id="alice"),
    "messages popped": lambda memory: memory.messages.pop("s", user_id="alice"),
    "reflect": lambda memory: memory.reflect(memory.search("bread", user_id="alice"), answer="Bread is baked."),
    "maintain": lambda memory: memory.maintain(),
    "import": lambda memory: memory.import_({"results": [{"id": "1", "memory": "Tea.", "user_id": "bob"}]}),
}


def written(memory):
    """Return what a memory holds and logged, without the times and random ids."""
    return (
        [(event.action, event.user_id) for event in memory.audit.events()],
        sorted(each.text for each in memory.list(user_id="alice", include_archived=True)),
    )


@pytest.mark.parametrize("name", CHANGES)
def test_change_that_is_rolled_back_is_repeated_and_logged_once(url, tmp_path, clock, name):
    def prepare(file):
        memory = open_memory(file, clock=clock)
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc", policy_class="factual")
        memory.add("The code is 4711.", user_id="alice", id="code", ttl=timedelta(hours=1))
        memory.add("Rolls are round.", user_id="alice", id="rolls")
        memory.supersede("rolls", "Rolls are long.", user_id="alice", id="long")
        memory.items.put(("p",), "old", {"a": "item"}, user_id="alice")
        memory.messages.add("s", [{"text": "Good morning."}], user_id="alice")
        return memory

    with prepare(tmp_path / "memory.db") as plain, prepare(url) as memory:
        if name == "maintain":
            clock.advance(timedelta(hours=2))
        CHANGES[name](plain)
        with rolled_back(url, TRIES - 1):
            CHANGES[name](memory)
        assert written(memory) == written(plain)
        assert memory.audit.verify().ok
        assert memory.find_damage() == []


def test_change_that_is_rolled_back_again_and_again_raises_and_changes_nothing(url):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        with rolled_back(url, TRIES), pytest.raises(StoreBusyError, match="try again"):
            memory.delete("bread", user_id="alice")
        assert [each.id for each in memory.list(user_id="alice")] == ["bread"]
        assert memory.audit.verify().ok
        assert memory.delete("bread", user_id="alice").erased == ("bread",)


def test_destruction_of_keys_that_is_rolled_back_is_repeated(url):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        with rolled_back(url, TRIES - 1, on="UPDATE ON meve_free_slots"):
            memory.delete("bread", user_id="alice")
        assert memory.audit.verify().ok
    with psycopg.connect(url) as other:
        assert other.execute("SELECT count(*) FROM meve_free_slots WHERE NOT renewed").fetchone() == (0,)
