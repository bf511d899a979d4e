"""Test that threads can share a retriever."""

import os
import random
import signal
import threading
import time
from itertools import count

import pytest

from meve import Passage, Retriever, _fork_safety
from meve._locks import ReadWriteLock
from meve.errors import RetrievalError
from tests.fake_components import make_components

PAIRS = 40
READERS = 16


def make_half(pair, side, generation):
    return Passage(
        id=f"{pair:02d}-{side}",
        text=f"pair{pair} {side} generation{generation} " + ("left leaning" if side == "left" else "right quite over"),
        metadata={"generation": generation},
    )


@pytest.mark.parametrize("dense", ["flat", "hnsw"])
def test_retrieval_never_sees_half_of_a_change(dense):
    passages = [make_half(pair, side, 0) for pair in range(PAIRS) for side in ("left", "right")]
    retriever = Retriever.from_passages(passages, **make_components(dense=dense))
    stop = threading.Event()
    faults: list[str] = []
    reads = [0] * READERS
    oldest = [0] * PAIRS

    def read(reader: int) -> None:
        rng = random.Random(reader)
        while not stop.is_set():
            pair = rng.randrange(PAIRS)
            at_least = oldest[pair]
            try:
                context = retriever.retrieve(
                    f"pair{pair}", candidates=100, redundancy=1.0, mode=rng.choice(["full", "no_fallback"])
                )
            except Exception as error:
                faults.append(repr(error))
                return
            results = {p.passage.id: p.passage.metadata["generation"] for p in context.passages}
            if set(results) != {f"{pair:02d}-left", f"{pair:02d}-right"} or len(set(results.values())) != 1:
                faults.append(f"torn: {results}")
            elif min(results.values()) < at_least:
                faults.append(f"stale: {results}, {at_least} had been written before")
            reads[reader] += 1

    def write() -> None:
        rng = random.Random(99)
        for generation in range(1, 120):
            pair = rng.randrange(PAIRS)
            sides = ("left", "right")
            retriever.update(
                add=[make_half(pair, side, generation) for side in sides],
                remove=[f"{pair:02d}-{side}" for side in sides],
            )
            oldest[pair] = generation
            time.sleep(0.005)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        write()
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not faults, faults[:3]
    assert min(reads) > 0
    assert len(retriever) == 2 * PAIRS


def test_waiting_writer_precedes_new_readers():
    lock = ReadWriteLock()
    order: list[str] = []
    first = threading.Event()
    release = threading.Event()

    def early() -> None:
        with lock.reading():
            first.set()
            release.wait(10)

    def writer() -> None:
        with lock.writing():
            order.append("writer")

    def late() -> None:
        with lock.reading():
            order.append("reader")

    threads = [threading.Thread(target=early)]
    threads[0].start()
    first.wait(10)
    for target in (writer, late):
        threads.append(threading.Thread(target=target))
        threads[-1].start()
        time.sleep(0.1)
    assert order == []
    release.set()
    for thread in threads:
        thread.join(10)
    assert order == ["writer", "reader"]


def test_reader_may_read_again_while_a_writer_waits():
    lock = ReadWriteLock()
    finished = threading.Event()

    def writer() -> None:
        with lock.writing():
            finished.set()

    with lock.reading():
        thread = threading.Thread(target=writer)
        thread.start()
        time.sleep(0.1)
        with lock.reading():
            assert not finished.is_set()
        with pytest.raises(RetrievalError, match="inside a retrieval"), lock.writing():
            pass
    thread.join(10)
    assert finished.is_set()


def use_in_child(retriever):
    """Retrieve and change passages in a forked process, and return its exit status; a signal if it hung."""
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        try:
            retriever.retrieve("pair1")
            retriever.update(add=[make_half(50, "left", 0)], remove=["00-left"])
            os._exit(0 if retriever.retrieve("pair50").passages else 2)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
@pytest.mark.parametrize("dense", ["flat", "hnsw"])
def test_child_of_a_process_whose_threads_retrieve_and_write_works(dense, monkeypatch):
    monkeypatch.setattr(_fork_safety, "WAIT_SECONDS", 60.0)  # on a busy machine a change may take long
    passages = [make_half(pair, side, 0) for pair in range(PAIRS) for side in ("left", "right")]
    retriever = Retriever.from_passages(passages, **make_components(dense=dense))
    stop = threading.Event()

    def read():
        while not stop.is_set():
            retriever.retrieve("pair2")

    def write():
        for generation in count():
            retriever.update(add=[make_half(3, "left", generation)], remove=["03-left"])
            if stop.is_set():
                return

    threads = [threading.Thread(target=target) for target in (read, read, write)]
    for thread in threads:
        thread.start()
    try:
        assert {use_in_child(retriever) for _ in range(12)} == {0}
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_child_is_refused_passages_that_another_thread_was_changing(monkeypatch):
    """The fork waits for the change, but not for ever."""
    monkeypatch.setattr(_fork_safety, "WAIT_SECONDS", 0.1)
    lock, is_inside, may_end = ReadWriteLock(), threading.Event(), threading.Event()

    def change():
        with lock.writing():
            is_inside.set()
            may_end.wait(60)

    thread = threading.Thread(target=change)
    thread.start()
    is_inside.wait(60)
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        try:
            with lock.reading():
                os._exit(2)
        except RetrievalError:
            os._exit(0)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        may_end.set()
        thread.join()
