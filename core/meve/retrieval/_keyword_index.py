"""Keep a keyword index over the passages of an external store, and notice when the index is stale."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from meve._fork_safety import ForkSafeLock
from meve._locks import ReadWriteLock
from meve.components.lexical.bm25 import Bm25Index
from meve.pipeline._preparation import check_passages
from meve.retrieval._sources import score_rows
from meve.types import Passage


class KeywordIndex:
    """A BM25 index by passage id. Threads may share it; a search sees a change whole or not at all.

    A passage without text counts as known, and is never found.
    """

    def __init__(self) -> None:
        self.is_built = False
        """Whether anything was ever indexed."""
        self._state = _State()
        self._lock = ReadWriteLock()
        self._rebuilding = ForkSafeLock()
        self._pending: list[Callable[[_State], None]] | None = None
        self._unknown: set[str] = set()
        self._updates = 0

    def __len__(self) -> int:
        return len(self._state.hashes)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the ids and scores of at most k passages that share a word with the text, best first."""
        with self._lock.reading():
            return self._state.search(text, k)

    def score_ids(self, text: str, ids: Sequence[str]) -> dict[str, float]:
        """Return the scores of known passages by id, 0 for those that share no word with the text."""
        with self._lock.reading():
            return self._state.score_ids(text, ids)

    def count_texts(self, word: str) -> int:
        """Return in how many passages a word in lower case stands."""
        with self._lock.reading():
            return self._state.count_texts(word)

    def rebuild(self, list_passages: Callable[[], Iterable[Passage]]) -> int:
        """Replace the index by one of the listed passages; changes made meanwhile are applied to it too.

        Returns:
            The number of known passages.
        """
        with self._rebuilding:
            with self._lock.writing():
                self._pending = []
            try:
                fresh = _State()
                fresh.add(list(list_passages()))
                with self._lock.writing():
                    for change in self._pending or ():
                        change(fresh)
                    self._state, self.is_built = fresh, True
                    self._unknown.clear()
                    return len(fresh.hashes)
            finally:
                self._pending = None

    def add(self, passages: Sequence[Passage]) -> None:
        """Add or replace passages; of equal ids the last counts."""
        self._change(lambda state: state.add(passages))
        self.is_built = True
        with self._lock.writing():
            self._unknown.difference_update(p.id for p in passages)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; unknown ids are ignored."""
        listed = list(ids)
        self._change(lambda state: state.remove(listed))
        with self._lock.writing():
            self._unknown.difference_update(listed)

    def compare(self, passages: Iterable[Passage]) -> None:
        """Mark the index as stale if one of these stored passages is unknown or has changed."""
        if not self.is_built:
            return
        with self._lock.reading():
            unknown = {p.id for p in passages if not self._state.contains(p)}
        if unknown:
            with self._lock.writing():
                self._unknown |= unknown

    def is_stale(self, size: int | None) -> bool:
        """Return whether a store of that size differs from the index; always False inside `updating`."""
        if not self.is_built or self._updates:
            return False
        return bool(self._unknown) or (size is not None and size != len(self))

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Suspend `is_stale` while the store and this index change together."""
        with self._lock.writing():
            self._updates += 1
        try:
            yield
        finally:
            with self._lock.writing():
                self._updates -= 1

    def _change(self, change: "Callable[[_State], None]") -> None:
        with self._lock.writing():
            change(self._state)
            if self._pending is not None:
                self._pending.append(change)


class _State:
    def __init__(self) -> None:
        self.hashes: dict[str, int] = {}  # of each passage's content, by id
        self._index = Bm25Index()
        self._rows: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._next_row = 0

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        rows, scores = self._index.search(text, k)
        return [(self._ids[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]

    def score_ids(self, text: str, ids: Sequence[str]) -> dict[str, float]:
        return score_rows(self._index, text, {self._rows[i]: i for i in ids if i in self._rows})

    def count_texts(self, word: str) -> int:
        count = self._index.word_counter()
        return count(word) if count else 0

    def contains(self, passage: Passage) -> bool:
        return self.hashes.get(passage.id) == hash(passage.content)

    def add(self, passages: Sequence[Passage]) -> None:
        latest = {p.id: p for p in passages}
        with_text = [p for p in latest.values() if p.text.strip()]
        check_passages(with_text)
        self.remove(latest)
        self.hashes.update((p.id, hash(p.content)) for p in latest.values())
        rows = np.arange(self._next_row, self._next_row + len(with_text), dtype=np.int64)
        self._index.add(rows, [p.content for p in with_text])
        self._next_row += len(with_text)
        for passage, row in zip(with_text, rows.tolist(), strict=True):
            self._rows[passage.id], self._ids[row] = row, passage.id

    def remove(self, ids: Iterable[str]) -> None:
        rows = []
        for passage_id in dict.fromkeys(ids):
            self.hashes.pop(passage_id, None)
            if passage_id in self._rows:
                rows.append(self._rows.pop(passage_id))
        if rows:
            self._index.remove(np.array(rows, dtype=np.int64))
            for row in rows:
                del self._ids[row]
