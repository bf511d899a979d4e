"""The words of passages that somebody else keeps: indexed here, and known to lag behind."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from meve._locks import ReadWriteLock
from meve.components.lexical import make_lexical
from meve.pipeline._preparation import checked
from meve.ports import LexicalIndex
from meve.types import Passage


class Words:
    """A keyword index over a store's passages. Threads may share one; searches see it whole, before a change or after.

    A passage without text is known, and has no words.
    """

    def __init__(self) -> None:
        self.known = False
        """Whether words were ever indexed."""
        self._state = _State()
        self._lock = ReadWriteLock()
        self._reading_anew = threading.Lock()
        self._meanwhile: list[Callable[[_State], None]] | None = None
        self._strange: set[str] = set()
        self._changing = 0

    def __len__(self) -> int:
        """How many passages are known."""
        return len(self._state.known)

    def find(self, text: str, k: int) -> list[tuple[str, float]]:
        """The at most k passages that share a word with the text, best first."""
        with self._lock.reading():
            return self._state.find(text, k)

    def read(self, everything: Callable[[], Iterable[Passage]]) -> int:
        """Index all that a store holds, in place of what was indexed; changes that are told meanwhile aren't lost.

        Returns:
            How many passages.
        """
        with self._reading_anew:
            with self._lock.writing():
                self._meanwhile = []
            try:
                fresh = _State()
                fresh.add(list(everything()))
                with self._lock.writing():
                    for change in self._meanwhile or ():
                        change(fresh)
                    self._state, self.known = fresh, True
                    self._strange.clear()
                    return len(fresh.known)
            finally:
                self._meanwhile = None

    def add(self, passages: Sequence[Passage]) -> None:
        """Take in passages, or what replaces them; of equal ids the last counts."""
        self._change(lambda state: state.add(passages))
        self.known = True
        with self._lock.writing():
            self._strange.difference_update(p.id for p in passages)

    def remove(self, ids: Iterable[str]) -> None:
        """Forget passages; ids that aren't known don't matter."""
        listed = list(ids)
        self._change(lambda state: state.remove(listed))
        with self._lock.writing():
            self._strange.difference_update(listed)

    def noticed(self, passages: Iterable[Passage]) -> None:
        """The store holds these: one that is unknown, or reads otherwise, shows that others have been at it."""
        if not self.known:
            return
        with self._lock.reading():
            strange = {p.id for p in passages if not self._state.holds(p)}
        if strange:
            with self._lock.writing():
                self._strange |= strange

    def stale(self, size: int | None) -> bool:
        """Whether the store, which holds so many, is known to hold others; not while a change is announced."""
        if not self.known or self._changing:
            return False
        return bool(self._strange) or (size is not None and size != len(self))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Announce that store and words are about to change together."""
        with self._lock.writing():
            self._changing += 1
        try:
            yield
        finally:
            with self._lock.writing():
                self._changing -= 1

    def _change(self, change: "Callable[[_State], None]") -> None:
        with self._lock.writing():
            change(self._state)
            if self._meanwhile is not None:
                self._meanwhile.append(change)


class _State:
    """What is indexed at one moment."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}  # a hash of its content, by id
        self._index: LexicalIndex = make_lexical("bm25")
        self._rows: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._next = 0

    def find(self, text: str, k: int) -> list[tuple[str, float]]:
        rows, scores = self._index.search(text, k)
        return [(self._ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]

    def holds(self, passage: Passage) -> bool:
        return self.known.get(passage.id) == hash(passage.content)

    def add(self, passages: Sequence[Passage]) -> None:
        latest = {p.id: p for p in passages}
        spoken = [p for p in latest.values() if p.text.strip()]
        checked(spoken)
        self.remove(latest)
        self.known.update((p.id, hash(p.content)) for p in latest.values())
        rows = np.arange(self._next, self._next + len(spoken), dtype=np.int64)
        self._index.add(rows, [p.content for p in spoken])
        self._next += len(spoken)
        for passage, row in zip(spoken, rows.tolist(), strict=True):
            self._rows[passage.id], self._ids[row] = row, passage.id

    def remove(self, ids: Iterable[str]) -> None:
        rows = []
        for passage_id in dict.fromkeys(ids):
            self.known.pop(passage_id, None)
            if passage_id in self._rows:
                rows.append(self._rows.pop(passage_id))
        if rows:
            self._index.remove(np.array(rows, dtype=np.int64))
            for row in rows:
                del self._ids[row]
