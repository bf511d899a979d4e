"""Lets a process fork while its threads work: locks that a child finds free, and a gate that closes during a fork.

A fork copies the memory of all threads and continues only one. A lock that another thread held would never be released
in the child, and native code that was interrupted (SQLite, ONNX Runtime) would leave its own locks closed.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, cast

from meve.errors import RetrievalError, StorageError

WAIT_SECONDS = 5.0
"""The longest wait of a fork for other threads to leave native code."""


class ForkSafeLock:
    """A lock that is free in a forked child, whoever held it in the parent.

    Args:
        on_fork: called in the child if another thread held the lock at the fork, to drop what it may have left
            half-changed. A method is held weakly, so that the lock keeps no object alive.
        reentrant: whether the thread that holds it may take it again.
        guards: what an interrupted change leaves torn, such as "the dialogue". The child is refused it if another
            thread held the lock; empty for nothing.
    """

    def __init__(self, on_fork: Callable[[], None] | None = None, *, reentrant: bool = False, guards: str = "") -> None:
        self._reentrant, self._guards, self._is_torn = reentrant, guards, False
        is_method = hasattr(on_fork, "__self__")
        self._on_fork: Callable[[], Any] = weakref.WeakMethod(cast(Any, on_fork)) if is_method else lambda: on_fork
        self._inner = self._new()
        renew_in_child(self)

    def _new(self) -> Any:  # noqa: ANN401 - either kind of lock
        return threading.RLock() if self._reentrant else threading.Lock()

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            RetrievalError: a fork interrupted a change of what it guards.
        """
        if self._is_torn:
            raise refuse_torn(self._guards)
        self._inner.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release the lock, unless a fork has done so."""
        try:  # noqa: SIM105 - `suppress` takes ten times as long, and each call takes many locks
            self._inner.release()
        except RuntimeError:
            pass

    def renew(self) -> Callable[[], None] | None:
        """Make the lock free. Return what to call if another thread held it."""
        was_held = not self._inner.acquire(blocking=False)
        self._inner = self._new()
        self._is_torn = self._is_torn or (was_held and bool(self._guards))
        act: Callable[[], None] | None = self._on_fork() if was_held else None
        return act


def refuse_torn(what: str) -> RetrievalError:
    """Return the error for what another thread was changing when this process was forked."""
    return RetrievalError(
        f"this process was forked while another thread changed {what}: make or load it anew, or fork when it is idle"
    )


class Renewable(Protocol):
    """Something that a forked child makes usable again."""

    def renew(self) -> Callable[[], None] | None:
        """Forget the other threads. Return what to call then, or None."""
        ...


def renew_in_child(lock: Renewable) -> None:
    """Renew a lock in each forked child; it is held weakly."""
    _LOCKS.add(lock)


class ForkGate:
    """Keeps native calls of other threads away from a fork: it waits for them, and they wait for it."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._changed = threading.Condition()
        self._inside = 0
        self._forking = False
        self._is_broken = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Run native calls in the block; blocks may stand in each other.

        Raises:
            StorageError: this process was forked in the middle of another thread's call, so it can't be used.
        """
        depth = getattr(self._local, "depth", 0)
        if not depth:
            with self._changed:
                if self._forking:
                    self._changed.wait_for(lambda: not self._forking)
                self._inside += 1
        self._local.depth = depth + 1
        try:
            if self._is_broken:
                raise StorageError(
                    "this process was forked while another thread was busy in MeVe for over "
                    f"{WAIT_SECONDS:.0f} s: fork when it is idle, or start a new process (multiprocessing's 'spawn')"
                )
            yield
        finally:
            self._local.depth = depth
            if not depth:
                with self._changed:
                    self._inside -= 1
                    if self._forking:
                        self._changed.notify_all()

    def close(self) -> None:
        """Before a fork: wait until no other thread is inside."""
        mine = self._own()
        with self._changed:
            self._changed.wait_for(lambda: not self._forking, WAIT_SECONDS)
            self._forking = True
            self._changed.wait_for(lambda: self._inside <= mine, WAIT_SECONDS)

    def open(self) -> None:
        """After a fork, in the parent: let the others go on."""
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def renew(self) -> None:
        """After a fork, in the child: start with this thread alone."""
        mine = self._own()
        self._is_broken = self._is_broken or self._inside > mine
        self._changed, self._inside, self._forking = threading.Condition(), mine, False

    def _own(self) -> int:
        return int(getattr(self._local, "depth", 0) > 0)


_LOCKS: "weakref.WeakSet[Renewable]" = weakref.WeakSet()
GATE = ForkGate()
"""The gate of this process."""


def check_process(process: int) -> None:
    """Check that the process hasn't been forked since a transaction began.

    Raises:
        StorageError: it has.
    """
    if process != os.getpid():
        raise StorageError("a forked process can't go on with a transaction of its parent: begin a new one")


def _in_child() -> None:
    GATE.renew()
    for act in [lock.renew() for lock in list(_LOCKS)]:
        if act is not None:
            act()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GATE.close, after_in_parent=GATE.open, after_in_child=_in_child)
