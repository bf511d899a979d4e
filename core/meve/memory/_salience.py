"""The salience of memories, and the conservation metrics that it weighs."""

import numpy as np

from meve.conversation.conservation import ConservationMetrics, measure_conservation
from meve.errors import EmptyCorpusError
from meve.memory._recall.scoring import decay_reflection
from meve.memory._runtime import MemoryRuntime
from meve.memory.stores.protocol import RecordQuery


def measure_records(runtime: MemoryRuntime, user: str) -> ConservationMetrics:
    """Return the metrics of a user's records. Raises what `GovernedMemory.measure_conservation` raises."""
    now, model = runtime.clock.now(), runtime.embedder.model
    found = [
        stored
        for stored in runtime.store.records(RecordQuery(user=user))
        if stored.model == model and not stored.record.is_closed and not stored.record.expired(now)
    ]
    if not found:
        raise EmptyCorpusError("the user has no active records with vectors of this embedder: add some, or reembed")
    records = [stored.record for stored in found]
    salience = [1 + decay_reflection(r, runtime.policy, now) / 100 + r.outcomes.expected for r in records]
    return measure_conservation(np.array([stored.vector for stored in found]), np.array(salience))
