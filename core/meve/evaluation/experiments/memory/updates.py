"""The updates experiment: which of two statements a memory still finds after maintenance.

A user says one statement and a day later the other; maintenance runs, and each statement is searched for by its own
text. Of a change, only the newer one should come back; of two compatible statements, or of two that differ by a word or
so, both. Half of the pairs were used to write the rules.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import read_rows
from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.types import StageProgress

NAME = "updates"
HALVES = {"dev": "half for tuning", "test": "half for the table"}
CHANGED, COMPATIBLE, NEAR = "change: only the newer is found", "compatible: both are found", "near: both are found"
COMPATIBLE_SUPERSEDED, NEAR_SUPERSEDED = "compatible: one is superseded", "near: one is merged or superseded"


class _Pair(NamedTuple):
    id: str
    half: str
    older: str
    newer: str


def run_updates(environment: Environment, progress: StageProgress) -> Tally:
    """Tell a memory the pairs of each kind and half, and search for both statements of each."""
    tally = Tally(NAME, environment.seed)
    for half, system in HALVES.items():
        changes, compatible, near = (_read_pairs(kind, half) for kind in ("changes", "compatible", "near"))
        with environment.open_sandbox() as sandbox:
            for n, pairs in enumerate((changes, compatible, near)):
                progress(NAME, n, 3)
                for pair in list(pairs)[: environment.sizes.pairs]:
                    found, superseded = _tell_and_search(sandbox, pair)
                    if pairs is changes:
                        tally.add(system, CHANGED, found == {"newer"})
                    else:
                        tally.add(system, COMPATIBLE if pairs is compatible else NEAR, found == {"older", "newer"})
                        name = COMPATIBLE_SUPERSEDED if pairs is compatible else NEAR_SUPERSEDED
                        tally.add(system, name, superseded)
    return tally


def _read_pairs(kind: str, half: str) -> Iterator[_Pair]:
    names = ("old", "new") if kind == "changes" else ("one", "other")
    with packaged_file(f"memory_{kind}.jsonl", None) as file:
        for row in read_rows(file):
            if row.text("half") == half:
                yield _Pair(row.text("id"), half, *map(row.text, names))


def _tell_and_search(sandbox: MemorySandbox, pair: _Pair) -> tuple[set[str], bool]:
    """Return which statements their own texts find, and whether maintenance merged or superseded one."""
    texts = {"older": pair.older, "newer": pair.newer}
    for name, text in texts.items():
        sandbox.memory.add(text, user_id=pair.id, source="doc", policy_class="factual", id=name)
        sandbox.clock.advance(timedelta(days=1))
    report = sandbox.memory.maintain(user_id=pair.id)
    found = {
        record.id
        for text in texts.values()
        for record in sandbox.memory.search(text, user_id=pair.id, include_private=True).records
        if record.text == texts[record.id]
    }
    return found, bool(report.merged or report.superseded)
