"""Keep a retriever's passages, vectors, keyword index and token counts consistent."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from meve._fork_safety import ForkSafeLock
from meve._locks import ReadWriteLock
from meve.components.lexical import make_lexical
from meve.errors import ConfigurationError, DuplicateIdError, UnknownIdError
from meve.filters import Filter, Where, call_filter
from meve.pipeline._preparation import default_id
from meve.pipeline.config import RetrieverConfig, find_nearest
from meve.ports import DenseIndex, LexicalIndex
from meve.retrieval._sources import DenseSource, LexicalSource, to_row_array
from meve.types import FloatArray, Passage, RowArray

TIE_MARGIN = 16
"""Hits beyond the limit that are fetched at first, to break ties at the limit by id."""

MOST_NAMES = 20
"""The most metadata names that a warning lists."""
RowSearch = Callable[[int], tuple[RowArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPassage:
    """A passage with its token count."""

    passage: Passage
    tokens: int


class Corpus:
    """All passages and indexes of a retriever. Every change happens as a whole or not at all.

    A row is the number under which the indexes know a passage; rows are never used twice.

    Args:
        dense: vectors under the rows of the entries.
        lexical: keyword index under the same rows.
        entries: passages by row; none by default.
        choose: makes a dense index for so many passages; called whenever the first ones are added.

    Raises:
        ConfigurationError: an index that holds other rows than the entries.
    """

    def __init__(
        self,
        *,
        dense: DenseIndex,
        lexical: LexicalIndex,
        entries: Mapping[int, StoredPassage] | None = None,
        choose: Callable[[int], DenseIndex] | None = None,
    ) -> None:
        self.dense = dense
        self._choose = choose
        self.entries: dict[int, StoredPassage] = dict(entries or {})
        for kind, index in ((dense.kind, dense), (lexical.kind, lexical)):
            if len(index) != len(self.entries):
                raise ConfigurationError(
                    f"the {kind} index must hold {len(self.entries)} entries, got {len(index)}: give an empty one"
                )
        self.rows: dict[str, int] = {entry.passage.id: row for row, entry in self.entries.items()}
        self.next_row = max(self.entries, default=-1) + 1
        self.next_id = self.next_row
        self._id_lock = ForkSafeLock()
        self.lock = ReadWriteLock()
        self._lexical: dict[str, LexicalIndex] = {lexical.kind: lexical}
        self._lexical_lock = ForkSafeLock()
        self._filtered: dict[str, RowArray] = {}
        self._names: frozenset[str] | None = None
        self._removals: list[dict[int, str]] = []

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, passage_id: object) -> bool:
        return passage_id in self.rows

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are taken."""
        return {each for each in ids if each in self.rows}

    @property
    def lexical_kinds(self) -> list[str]:
        """The kinds of keyword index at hand, the primary one first."""
        return list(self._lexical)

    @property
    def primary_lexical(self) -> LexicalIndex:
        """The keyword index that the corpus was made with."""
        return self._lexical[self.lexical_kinds[0]]

    def lexical(self, kind: str, make: Callable[[], LexicalIndex]) -> LexicalIndex:
        """Return the keyword index of that kind; on first use build it from the passages, and keep it up to date."""
        with self._lexical_lock:
            if kind not in self._lexical:
                index = make()
                rows = sorted(self.entries)
                index.add(to_row_array(rows), [self.entries[row].passage.content for row in rows])
                self._lexical[kind] = index
            return self._lexical[kind]

    def check(self, add: Sequence[Passage], remove: Sequence[str]) -> None:
        """Check the ids of a change before any work is done.

        Raises:
            DuplicateIdError: an id given twice, or taken and not removed in the same change.
            UnknownIdError: an id to remove that isn't there.
        """
        check_change(self.rows, add, remove)

    def sources(self, settings: RetrieverConfig, *, counted: bool) -> tuple[DenseSource, LexicalSource]:
        """Return the sources that search by vectors, and by the keyword index that the settings name."""
        kind = settings.lexical
        index = self.primary_lexical if kind is None else self.lexical(kind, lambda: make_lexical(kind))
        return DenseSource(self, counted), LexicalSource(self, index, counted)

    def describe(self) -> dict[str, object]:
        """Return the kinds of the indexes."""
        return {"dense": self.dense.kind, "lexical": self.lexical_kinds}

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def change(
        self, *, add: Sequence[Passage], vectors: FloatArray, tokens: Sequence[int], remove: Sequence[str]
    ) -> None:
        """Remove and add passages in one step, visible to the next search.

        Args:
            add: n passages.
            vectors: their embeddings, shape (n, d).
            tokens: their token counts, n of them.
            remove: ids.

        Raises:
            ValidationError: as `check`, or invalid vectors; nothing was changed.
        """
        with self.lock.writing():
            self.check(add, remove)
            self._purge()
            start = self.next_row
            added = {
                start + n: StoredPassage(passage=passage, tokens=count)
                for n, (passage, count) in enumerate(zip(add, tokens, strict=True))
            }
            removed = {self.rows[i]: i for i in remove}
            try:
                self._index(to_row_array(list(added)), [p.content for p in add], vectors)
                self._apply(added, removed)
            except BaseException:
                if removed in self._removals or (added and start in self.entries):
                    self._apply(added, removed)  # interrupted midway; every step can be repeated
                else:
                    self._unindex(to_row_array(list(added)))
                raise
            self._purge()

    def finish_removals(self) -> None:
        """Remove from the indexes what an interrupted change left there; no retrieval sees those rows."""
        if self._removals:
            with self.lock.writing():
                self._purge()

    def _index(self, rows: RowArray, texts: Sequence[str], vectors: FloatArray) -> None:
        if not len(rows):
            return
        if self._choose is not None and not self.entries:
            self.dense = self._choose(len(rows))
        for index in self._lexical.values():
            index.add(rows, texts)
        self.dense.add(rows, vectors)

    def _unindex(self, rows: RowArray) -> None:
        indexes: list[DenseIndex | LexicalIndex] = [self.dense, *self._lexical.values()]
        for index in indexes:
            with suppress(UnknownIdError):  # each index holds all of the rows, or none
                index.remove(rows)

    def _apply(self, added: Mapping[int, StoredPassage], removed: dict[int, str]) -> None:
        if removed and removed not in self._removals:
            self._removals.append(removed)
        for row, passage_id in removed.items():
            self.entries.pop(row, None)
            if self.rows.get(passage_id) == row:
                del self.rows[passage_id]
        self.entries.update(added)
        self.rows.update({entry.passage.id: row for row, entry in added.items()})
        self.next_row = max(self.next_row, *(row + 1 for row in added)) if added else self.next_row
        self.next_id = max(self.next_id, self.next_row)
        self._filtered.clear()
        self._names = None

    def _purge(self) -> None:
        while self._removals:
            self._unindex(to_row_array(list(self._removals[0])))
            del self._removals[0]

    def filter_rows(self, where: Where | None) -> RowArray | None:
        """Return the rows whose metadata matches `where`; None for no constraint.

        Raises:
            ConfigurationError: `where` is neither a mapping from names to JSON-plain values or lists of them nor a
                function, or the function raised.
        """
        if where is None or where == {}:
            return None
        if callable(where):  # never cached: its answer may change
            kept = [row for row, e in sorted(self.entries.items()) if call_filter(where, e.passage.metadata)]
            return to_row_array(kept)
        wanted = Filter(where)
        rows = self._filtered.get(wanted.key)
        if rows is None:
            rows = to_row_array(
                [row for row, entry in sorted(self.entries.items()) if wanted.matches(entry.passage.metadata)]
            )
            if len(self._filtered) >= 64:
                self._filtered.clear()
            self._filtered[wanted.key] = rows
        return rows

    def explain_unknown_names(self, where: Where | None) -> dict[str, str]:
        """Return a sentence for each name of a filter that no passage has in its metadata, by name.

        A function may list the names that it reads as `metadata_names`.
        """
        listed = getattr(where, "metadata_names", ()) if callable(where) else where
        if not listed:
            return {}
        if self._names is None:
            self._names = frozenset(name for entry in self.entries.values() for name in entry.passage.metadata)
        return explain_names(listed, self._names)

    def new_ids(self, count: int) -> list[str]:
        """Return unused ids for texts that come without; each is given out once."""
        with self._id_lock:
            ids: list[str] = []
            while len(ids) < count:
                candidate = default_id(self.next_id)
                self.next_id += 1
                if candidate not in self.rows:
                    ids.append(candidate)
            return ids

    def get(self, passage_id: str) -> Passage:
        """Return the passage of that id.

        Raises:
            UnknownIdError: no passage has that id.
        """
        row = self.rows.get(passage_id)
        if row is None:
            raise UnknownIdError(f"no passage has the id {passage_id!r}")
        return self.entries[row].passage

    def passages(self, where: Where | None = None) -> Iterator[Passage]:
        """Return every passage that a filter admits, in the order in which they were added."""
        rows = self.filter_rows(where)
        return (self.entries[row].passage for row in (sorted(self.entries) if rows is None else rows.tolist()))

    def top_rows(self, search: RowSearch, k: int) -> list[tuple[int, float]]:
        """Return the k best rows with their scores; ties are broken by passage id, also at the limit."""
        limit = k + TIE_MARGIN
        while True:
            rows, scores = search(limit)
            if len(rows) < limit or scores[-1] < scores[k - 1]:
                break
            limit *= 4
        ranked = zip(rows.tolist(), scores.tolist(), strict=True)
        hits = (hit for hit in ranked if hit[0] in self.entries)
        if (scores[1:] == scores[:-1]).any():
            return sorted(hits, key=lambda hit: (-hit[1], self.entries[hit[0]].passage.id))[:k]
        return list(hits)[:k]


def check_change(known: Container[str], add: Sequence[Passage], remove: Sequence[str]) -> None:
    """Check the ids of a change.

    Args:
        known: the taken ids.
        add: the passages to add.
        remove: the ids to remove.

    Raises:
        DuplicateIdError: an id given twice, or taken and not removed in the same change.
        UnknownIdError: an id to remove that isn't there.
    """
    unknown = [i for i in remove if not isinstance(i, str) or i not in known]
    if unknown:
        raise UnknownIdError(f"no passage has the id {unknown[0]!r}{_more(unknown)}: nothing was changed")
    removed = set(remove)
    if len(removed) < len(remove):
        raise DuplicateIdError("remove must not repeat an id: nothing was changed")
    seen: set[str] = set()
    for passage in add:
        if passage.id in seen:
            raise DuplicateIdError(f"the id {passage.id!r} is given twice: ids must be unique; nothing was changed")
        if passage.id in known and passage.id not in removed:
            raise DuplicateIdError(
                f"the id {passage.id!r} is taken: remove it in the same update to replace it; nothing was changed"
            )
        seen.add(passage.id)


def explain_names(where: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Return a sentence for each name of a filter that isn't among the names in the metadata, by name."""
    known, sentences = sorted(names), {}
    for name in where:
        if name not in names:
            near = find_nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known[:MOST_NAMES]) or 'none'}"
            sentences[name] = f"no passage has {name!r} in its metadata, which the filter names; {hint}"
    return sentences


def _more(rest: Sequence[object]) -> str:
    return f" (and {len(rest) - 1} more)" if len(rest) > 1 else ""
