"""Reembedding: replaces the vectors of all records by those of another embedder, each user's in one transaction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime
from itertools import count

import numpy as np

from meve._repeating import repeat_rolled_back
from meve.memory._audit.chain import EventDraft
from meve.memory._embedders import model_of
from meve.memory._passages import pack_passages, split_record, texts_of
from meve.memory._runtime import MemoryRuntime
from meve.memory.records import StoredRecord
from meve.memory.stores._reading import readable_records
from meve.memory.stores.protocol import RecordQuery, Transaction
from meve.ports import Embedder
from meve.types import FloatArray

_TRIES = 3
"""The number of times that changed texts are embedded while others may write; after that, writers wait."""
_BATCH = 256
"""The number of texts that are embedded at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedReport:
    """The result of `GovernedMemory.reembed`."""

    embedder: str
    """The name of the embedder that made the vectors."""
    users: int
    """The number of users whose records got new vectors; the shared space counts as one."""
    records: int
    """The number of records that got new vectors."""


@dataclass(frozen=True, slots=True)
class Reembedder:
    """Writes new vectors of all records but damaged ones."""

    runtime: MemoryRuntime
    embedder: Embedder
    reason: str
    progress: Callable[[int, int], object]

    def run(self) -> ReembedReport:
        """Write new vectors, and then refuse the former embedders. See `GovernedMemory.reembed`."""
        store, model = self.runtime.store, model_of(self.embedder)
        store.embedders.claim(model, reembed=True)
        self.runtime.embedder.switch(self.embedder)
        versions: dict[str, int] = {}
        numbers: dict[str, int] = {}

        def is_done(transaction: Transaction) -> bool:
            late = (user for user in transaction.users() if transaction.version(user) != versions.get(user))
            return not any(
                self._find_old(readable_records(transaction, RecordQuery(user=user, archived=None))[0]) for user in late
            )

        while True:
            users, is_last = store.users(), True
            for n, user in enumerate(users, start=1):
                store.embedders.check_current(model)  # two embedders would replace each other's vectors for ever
                if (version := store.version(user)) != versions.get(user):
                    if number := self._reembed(user):
                        numbers[user], is_last = numbers.get(user, 0) + number, False
                    else:
                        versions[user] = version
                self.progress(n, len(users))
            if is_last and store.embedders.finish_reembedding(model, is_done):
                return ReembedReport(embedder=self.embedder.name, users=len(numbers), records=sum(numbers.values()))

    @repeat_rolled_back
    def _reembed(self, user: str) -> int:
        """Write new vectors of a user's records at once, and return their number."""
        store, vectors = self.runtime.store, dict[str, FloatArray]()
        for attempt in count(1):
            old = self._find_old(store.readable_records(user)[0])
            if not old:
                break
            self._embed(old, vectors)
            with store.writing() as transaction:
                old = self._find_old(transaction.readable_records(user)[0])
                if attempt < _TRIES and any(text not in vectors for text in self._texts(old)):
                    continue  # somebody wrote meanwhile
                self._embed(old, vectors)
                transaction.put_vectors(user, *(self._replaced(each, vectors) for each in old))
                if old:
                    transaction.log(self._event(user, old))
            return len(old)
        return 0

    def _embed(self, old: list[StoredRecord], vectors: dict[str, FloatArray]) -> None:
        texts = [text for text in dict.fromkeys(self._texts(old)) if text not in vectors]
        for begin in range(0, len(texts), _BATCH):
            batch = texts[begin : begin + _BATCH]
            vectors.update(zip(batch, self.runtime.embed_texts(batch, self.embedder), strict=True))

    def _find_old(self, records: list[StoredRecord]) -> list[StoredRecord]:
        return [stored for stored in records if stored.model != model_of(self.embedder)]

    def _texts(self, records: list[StoredRecord]) -> Iterator[str]:
        """Yield the texts to embed and their passages; expired ones aren't, since no read returns them."""
        now = self.runtime.clock.now()
        for record in (stored.record for stored in records):
            if record.text and not record.expired(now):
                yield texts_of(record)[0]
                yield from split_record(record)

    def _replaced(self, stored: StoredRecord, vectors: dict[str, FloatArray]) -> StoredRecord:
        dimension, parts = self.embedder.dimension, split_record(stored.record)
        vector = vectors.get(texts_of(stored.record)[0], np.zeros(dimension, dtype=np.float32))
        passages = pack_passages([vectors[part] for part in parts if part in vectors], dimension)
        return changed(stored, vector=vector, passages=passages, model=model_of(self.embedder))

    def _event(self, user: str, old: list[StoredRecord]) -> EventDraft:
        detail = {"from": sorted({each.model for each in old}), "to": model_of(self.embedder), "records": len(old)}
        now: datetime = self.runtime.clock.now()
        return EventDraft(at=now, user=user, record="", action="reembed", reason=self.reason, detail=detail)
