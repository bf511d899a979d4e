"""Passages with their vectors, words and token counts, kept in step: what a retriever searches."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np

from meve._locks import ReadWriteLock
from meve.errors import ConfigurationError, DuplicateIdError, UnknownIdError
from meve.filters import Filter, Where, call_filter
from meve.pipeline._preparation import default_id
from meve.ports import DenseIndex, LexicalIndex
from meve.types import FloatArray, Passage, RowArray

TIES = 16
"""How many more hits than asked for are looked at first, to break ties at the cut by id."""

Search = Callable[[int], tuple[RowArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPassage:
    """A passage as the corpus keeps it."""

    passage: Passage
    tokens: int


class Corpus:
    """The one object that holds the heavy state. Every change is whole, or didn't happen.

    A row is the number under which the indexes know a passage; rows are never used twice.
    """

    def __init__(
        self,
        *,
        dense: DenseIndex,
        lexical: LexicalIndex,
        entries: Mapping[int, StoredPassage] | None = None,
        choose: Callable[[int], DenseIndex] | None = None,
    ) -> None:
        """Over indexes that hold just these entries.

        Args:
            dense: vectors under the rows of the entries.
            lexical: their words.
            entries: passages by row; none by default.
            choose: makes a dense index for so many passages; asked whenever the first ones come in.

        Raises:
            ConfigurationError: an index that holds something else.
        """
        self.dense = dense
        self._choose = choose
        self.entries: dict[int, StoredPassage] = dict(entries or {})
        for kind, index in ((dense.kind, dense), (lexical.kind, lexical)):
            if len(index) != len(self.entries):
                raise ConfigurationError(
                    f"the {kind} index holds {len(index)} entries already, where {len(self.entries)} belong: "
                    "give an empty one"
                )
        self.rows: dict[str, int] = {entry.passage.id: row for row, entry in self.entries.items()}
        self.next_row = max(self.entries, default=-1) + 1
        self.next_id = self.next_row
        self._naming = threading.Lock()
        self.lock = ReadWriteLock()
        self._lexical: dict[str, LexicalIndex] = {lexical.kind: lexical}
        self._making = threading.Lock()
        self._allowed: dict[str, RowArray] = {}
        self._leaving: list[dict[int, str]] = []

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def lexical_kinds(self) -> list[str]:
        """The keyword indexes that it keeps, the one that it was made with first."""
        return list(self._lexical)

    @property
    def primary_lexical(self) -> LexicalIndex:
        """The keyword index that it was made with."""
        return self._lexical[self.lexical_kinds[0]]

    def lexical(self, kind: str, make: Callable[[], LexicalIndex]) -> LexicalIndex:
        """The keyword index of that kind; made of the passages when first asked for, and kept in step from then on."""
        with self._making:
            if kind not in self._lexical:
                index = make()
                rows = sorted(self.entries)
                index.add(as_row_array(rows), [self.entries[row].passage.content for row in rows])
                self._lexical[kind] = index
            return self._lexical[kind]

    def check(self, add: Sequence[Passage], remove: Sequence[str]) -> None:
        """Refuse a change whose ids don't fit, before anything is spent on it.

        Raises:
            DuplicateIdError: an id given twice, or taken and not removed in the same change.
            UnknownIdError: an id to remove that isn't there.
        """
        unknown = [i for i in remove if not isinstance(i, str) or i not in self.rows]
        if unknown:
            raise UnknownIdError(f"no passage has the id {unknown[0]!r}{_more(unknown)}: nothing was changed")
        if len(set(remove)) < len(remove):
            raise DuplicateIdError("an id to remove is given twice: nothing was changed")
        seen: set[str] = set()
        leaving = set(remove)
        for passage in add:
            if passage.id in seen:
                raise DuplicateIdError(f"the id {passage.id!r} is given twice: ids must be unique; nothing was changed")
            if passage.id in self.rows and passage.id not in leaving:
                raise DuplicateIdError(
                    f"the id {passage.id!r} is taken: remove it in the same update to replace it; nothing was changed"
                )
            seen.add(passage.id)

    def change(
        self, *, add: Sequence[Passage], vectors: FloatArray, tokens: Sequence[int], remove: Sequence[str]
    ) -> None:
        """Remove and add as one step, visible to the very next search.

        Args:
            add: n passages.
            vectors: their embeddings, shape (n, d).
            tokens: their token counts, n of them.
            remove: ids.

        Raises:
            ValidationError: as `check`, or vectors that can't be used; nothing was changed.
        """
        with self.lock.writing():
            self.check(add, remove)
            self._settle()
            start = self.next_row
            coming = {
                start + n: StoredPassage(passage=passage, tokens=count)
                for n, (passage, count) in enumerate(zip(add, tokens, strict=True))
            }
            leaving = {self.rows[i]: i for i in remove}
            try:
                self._index(as_row_array(list(coming)), [p.content for p in add], vectors)
                self._switch(coming, leaving)
            except BaseException:
                if leaving in self._leaving or (coming and start in self.entries):
                    self._switch(coming, leaving)  # it was interrupted; each of its steps can be taken again
                else:
                    self._take_back(as_row_array(list(coming)))
                raise
            self._settle()

    def settle(self) -> None:
        """Finish what an interrupted removal left in the indexes, where no retrieval sees it."""
        if self._leaving:
            with self.lock.writing():
                self._settle()

    def _index(self, rows: RowArray, texts: Sequence[str], vectors: FloatArray) -> None:
        if not len(rows):
            return
        if self._choose is not None and not self.entries:
            self.dense = self._choose(len(rows))
        for index in self._lexical.values():
            index.add(rows, texts)
        self.dense.add(rows, vectors)

    def _take_back(self, rows: RowArray) -> None:
        indexes: list[DenseIndex | LexicalIndex] = [self.dense, *self._lexical.values()]
        for index in indexes:
            with suppress(UnknownIdError):  # each took all of them in, or none
                index.remove(rows)

    def _switch(self, coming: Mapping[int, StoredPassage], leaving: dict[int, str]) -> None:
        if leaving and leaving not in self._leaving:
            self._leaving.append(leaving)
        for row, passage_id in leaving.items():
            self.entries.pop(row, None)
            if self.rows.get(passage_id) == row:
                del self.rows[passage_id]
        self.entries.update(coming)
        self.rows.update({entry.passage.id: row for row, entry in coming.items()})
        self.next_row = max(self.next_row, *(row + 1 for row in coming)) if coming else self.next_row
        self.next_id = max(self.next_id, self.next_row)
        self._allowed.clear()

    def _settle(self) -> None:
        while self._leaving:
            self._take_back(as_row_array(list(self._leaving[0])))
            del self._leaving[0]

    def allowed(self, where: Where | None) -> RowArray | None:
        """The rows whose metadata has what `where` asks for; None when it asks for nothing.

        Raises:
            ConfigurationError: `where` is neither a mapping from names to JSON-plain values or lists of them nor a
                function, or the function raised.
        """
        if where is None or where == {}:
            return None
        if callable(where):  # asked each time: what it says may change
            kept = [row for row, e in sorted(self.entries.items()) if call_filter(where, e.passage.metadata)]
            return as_row_array(kept)
        wanted = Filter(where)
        rows = self._allowed.get(wanted.key)
        if rows is None:
            rows = as_row_array(
                [row for row, entry in sorted(self.entries.items()) if wanted.admits(entry.passage.metadata)]
            )
            if len(self._allowed) >= 64:
                self._allowed.clear()
            self._allowed[wanted.key] = rows
        return rows

    def new_ids(self, count: int) -> list[str]:
        """Ids for texts that have none: taken by nobody, and given out once."""
        with self._naming:
            ids: list[str] = []
            while len(ids) < count:
                candidate = default_id(self.next_id)
                self.next_id += 1
                if candidate not in self.rows:
                    ids.append(candidate)
            return ids

    def get(self, passage_id: str) -> Passage:
        """The passage of that id.

        Raises:
            UnknownIdError: there is none.
        """
        row = self.rows.get(passage_id)
        if row is None:
            raise UnknownIdError(f"no passage has the id {passage_id!r}")
        return self.entries[row].passage

    def passages(self) -> Iterator[Passage]:
        """Every passage, in the order in which they were added."""
        return (self.entries[row].passage for row in sorted(self.entries))

    def top(self, search: Search, k: int) -> list[tuple[int, float]]:
        """The k best rows, equal scores by passage id, also at the cut."""
        reach = k + TIES
        while True:
            rows, scores = search(reach)
            if len(rows) < reach or scores[-1] < scores[k - 1]:
                break
            reach *= 4
        found = zip(rows.tolist(), scores.tolist(), strict=True)
        hits = (hit for hit in found if hit[0] in self.entries)
        if (scores[1:] == scores[:-1]).any():
            return sorted(hits, key=lambda hit: (-hit[1], self.entries[hit[0]].passage.id))[:k]
        return list(islice(hits, k))

    @contextmanager
    def reading(self) -> Iterator["Corpus"]:
        """One unchanging state, for as long as it's held."""
        with self.lock.reading():
            yield self


def as_row_array(rows: Sequence[int]) -> RowArray:
    """Row keys as an array, shape (n,)."""
    return np.asarray(rows, dtype=np.int64)


def _more(rest: Sequence[object]) -> str:
    return f" (and {len(rest) - 1} more)" if len(rest) > 1 else ""
