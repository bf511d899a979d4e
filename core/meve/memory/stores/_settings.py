"""Settings of a store: the key of its log and its embedder, which the first to write them decides, and its time."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from meve._repeating import repeat_rolled_back
from meve.errors import IndexMismatchError, StoreCorruptError, wrap_errors
from meve.memory._steady_clock import SteadyClock
from meve.memory._timestamps import from_micros
from meve.memory.stores.protocol import MemoryStore, SealedHead, Snapshot, Transaction

_EMBEDDER = "embedder"
_FORMER = "former_embedders"
"""The setting that lists, as JSON, the embedders whose vectors `reembed` is replacing."""
LOG_NAMES = "log_names"
"""The setting that a store has once it is settled that its log names nobody, or stays as it is."""
LOST_ENTRIES = "lost_entries"
"""The setting that a store has once it wrote on after entries of its log were lost: how many were left, and how many
there had been."""
LATEST_TIME = "latest_time"
"""The setting that holds the latest time seen, in microseconds since 1970."""
PROGRESS = "compared "
"""The beginning of the settings that tell, by row numbers, which records of a user maintenance has compared."""


@repeat_rolled_back
def claim_setting(backend: MemoryStore, name: str, value: str, head: SealedHead | None = None) -> str:
    """Set a setting, and the log's first head with it, unless the setting has a value. Return its value."""
    with backend.reading() as snapshot:
        current = snapshot.setting(name)
    if current is None:
        with backend.writing() as transaction:
            current = transaction.setting(name)
            if current is None:
                transaction.put_setting(name, current := value)
                if head is not None:
                    transaction.append((), head)
                    transaction.put_setting(LOG_NAMES, "hashed")
    return current


@dataclass(frozen=True, slots=True)
class EmbedderClaims:
    """Which embedder makes the vectors of a store, by its name and dimension."""

    backend: MemoryStore

    def name(self) -> str | None:
        """Return the name of the embedder, without the dimension; None for a new store."""
        with self.backend.reading() as snapshot:
            claimed = snapshot.setting(_EMBEDDER)
        return None if claimed is None else claimed.rpartition(" ")[0]

    @repeat_rolled_back
    def claim(self, model: str, *, reembed: bool = False) -> None:
        """Store which embedder makes the vectors; with `reembed`, that it makes them from now on.

        Until `finish_reembedding`, the embedders before it are accepted, too.

        Raises:
            IndexMismatchError: another one is stored, and `reembed` is false.
        """
        theirs = claim_setting(self.backend, _EMBEDDER, model)
        if model == theirs or (not reembed and self._was_former(model)):
            return
        if not reembed:
            raise IndexMismatchError(
                f"the embedder is {model!r} (name, dimension), and {self.backend.name} holds vectors of {theirs!r}: "
                "open it with that embedder, or write new vectors, by `meve memory reembed --embedder NAME` or "
                "GovernedMemory.open(…, embedder=…, reembed=True).reembed()"
            )
        with self.backend.writing() as transaction:
            before = transaction.setting(_EMBEDDER)
            former = {*_former(transaction), *([before] if before else [])} - {model}
            transaction.put_setting(_EMBEDDER, model)
            transaction.put_setting(_FORMER, json.dumps(sorted(former)))

    def check_current(self, model: str) -> None:
        """Raise IndexMismatchError if another embedder was claimed since."""
        with self.backend.reading() as snapshot:
            current = snapshot.setting(_EMBEDDER)
        if current != model:
            raise IndexMismatchError(
                f"{self.backend.name} is being embedded with {current!r} now, not with {model!r}: let that end, or "
                "call reembed() again"
            )

    @repeat_rolled_back
    def finish_reembedding(self, model: str, is_done: Callable[[Transaction], bool]) -> bool:
        """Refuse the embedders before `model` from now on, if all is done. Return whether it is."""
        with self.backend.writing() as transaction:
            if not is_done(transaction):
                return False
            if transaction.setting(_EMBEDDER) == model:
                transaction.put_setting(_FORMER, "[]")
        return True

    def _was_former(self, model: str) -> bool:
        with self.backend.reading() as snapshot:
            return model in _former(snapshot)


def _former(snapshot: Snapshot) -> set[str]:
    return set(json.loads(snapshot.setting(_FORMER) or "[]"))


def see_time(snapshot: Snapshot, clock: SteadyClock) -> datetime:
    """Let a clock know the latest time that the store has seen, and return the time now."""
    latest = snapshot.setting(LATEST_TIME)
    if latest is not None:
        with wrap_errors(StoreCorruptError, "reading the latest time that the memory has seen"):
            clock.observe(from_micros(int(latest)))
    return clock.now()
