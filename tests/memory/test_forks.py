"""Test that a child of a process whose threads use the memory works or gets an error, and never hangs."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import count

import pytest

from meve import _fork_safety
from meve._fork_safety import GATE, ForkSafeLock
from meve.errors import StorageError
from meve.memory.items.item import Put
from tests.memories import open_memory, run_sql

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
FORKS = int(os.environ.get("MEVE_FORKS", "30"))
PATIENCE = 60.0


def run_in_child(function):
    """Run a function in a forked process and return the exit status: 0, 1 for an error, -9 if it hung."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -9


def write_pair(memory, n):
    pair = {}
    for key in ("one", "two"):
        pair |= memory.items.prepare([("ann", Put(namespace=("pair",), key=key, value={"n": n, "text": f"bread {n}"}))])
    memory.items.write(pair)


def use_in_child(memory, n):
    pair = memory.items.search(("pair",), user_id="ann")
    assert len({each.value["n"] for each in pair}) <= 1, "a torn read"
    memory.add(f"Child {n} baked bread.", user_id="ann", id=f"child {n}", source="doc")
    memory.items.put(("children",), str(n), {"n": n}, user_id="ann")
    assert memory.search(f"Who is child {n}?", user_id="ann").records
    memory.maintain(user_id="bob")
    memory.close()


@contextmanager
def busy(*works):
    """Repeat works in threads; raise the first error at the end."""
    stop, failed = threading.Event(), []

    def repeat(work):
        try:
            for n in count():
                if stop.is_set():
                    return
                work(n)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=repeat, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_children_of_a_busy_process_read_and_write(file):
    with open_memory(file, embedder="static") as memory:
        memory.add("Bread is baked at noon.", user_id="ann", id="bread", source="doc")

        def read(n):
            memory.search(f"When is bread number {n % 50} baked?", user_id="ann")

        with busy(partial(write_pair, memory), read, read):
            statuses = [run_in_child(partial(use_in_child, memory, n)) for n in range(FORKS)]
        assert statuses == [0] * FORKS
        assert {f"child {n}" for n in range(FORKS)} <= {record.id for record in memory.list(user_id="ann")}
        assert memory.find_damage() == []
        assert memory.audit.verify().ok


def test_child_of_a_transaction_gets_an_error_and_the_parent_goes_on(file):
    with open_memory(file) as memory:
        memory.add("Bread is baked.", user_id="ann", id="bread")

        def go_on():
            with pytest.raises(StorageError, match="a forked process can't go on"):
                transaction.find("s:ann", "bread")
            raise SystemExit(7)

        with memory._runtime.store.writing() as transaction:
            assert run_in_child(go_on) == 1
            assert transaction.find("s:ann", "bread") is not None
        memory.add("Rye is baked.", user_id="ann", id="rye")
        assert run_in_child(lambda: memory.add("Oat is baked.", user_id="ann", id="oat")) == 0
        assert len(memory.list(user_id="ann")) == 3


def test_child_of_a_thread_that_stays_in_a_call_gets_an_error(file, monkeypatch):
    monkeypatch.setattr(_fork_safety, "WAIT_SECONDS", 0.2)
    with open_memory(file) as memory:
        memory.add("Bread is baked.", user_id="ann", id="bread")
        entered, leave = threading.Event(), threading.Event()

        def stay():
            with memory._runtime.store.backend.reading():
                entered.set()
                leave.wait(30)

        def use():
            with pytest.raises(StorageError, match="was forked while another thread was busy in MeVe"):
                memory.list(user_id="ann")

        thread = threading.Thread(target=stay)
        thread.start()
        assert entered.wait(30)
        assert run_in_child(use) == 0
        leave.set()
        thread.join()
        assert run_in_child(lambda: memory.list(user_id="ann")) == 0
        assert len(memory.list(user_id="ann")) == 1


def test_lock_that_another_thread_holds_is_free_in_the_child():
    dropped = []
    lock = ForkSafeLock(lambda: dropped.append(True))
    free = ForkSafeLock(lambda: dropped.append(False))
    held, leave = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            leave.wait(30)

    def take():
        with lock, free:
            assert dropped == [True]

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    assert run_in_child(take) == 0
    leave.set()
    thread.join()
    assert dropped == []


def test_gate_lets_the_forking_thread_and_nested_blocks_pass():
    with GATE.passing(), GATE.passing():
        assert run_in_child(lambda: None) == 0
    with GATE.passing():
        pass


def test_file_is_whole_after_forks_without_memory(file):
    with open_memory(file) as memory:
        memory.add("Bread is baked.", user_id="ann", id="bread")
        assert [run_in_child(lambda: None) for _ in range(3)] == [0] * 3
        memory.add("Rye is baked.", user_id="ann", id="rye")
    run_sql(file, "PRAGMA integrity_check")


def test_turns_are_read_in_a_child_though_the_parents_thread_waits(file):
    """A child has no thread of the parent's, and its close doesn't wait for one."""
    release = threading.Event()
    with open_memory(file) as memory:
        queue = memory._extractions
        waiting = queue.submit("of the parent", release.wait)

        def read_in_child():
            assert queue.submit("of the child", lambda: "read").result(timeout=20) == "read"
            memory.close()

        assert run_in_child(read_in_child) == 0
        release.set()
        assert waiting.result(timeout=20)
