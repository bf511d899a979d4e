"""The user-facts experiment: questions about what ten users told an assistant over eight months, beside a plain cosine.

Each user tells 20 facts, and each fact is added when it is said. A question that names a time is asked at its own time,
and the others after all facts. The weights of the ranking were chosen on half of the users.
"""

from datetime import datetime, timedelta
from pathlib import Path

from meve.components.embedders import ACCURATE, FAST, resolve_embedder
from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.environment import Environment, K, MemorySandbox, PlainEntry, PlainStore
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.ports import Embedder
from meve.types import StageProgress

NAME = "user facts"
MEMORY, COSINE = "memory", "plain cosine"
FIRST, IN_FIVE = "right memory first", "right memories among five"
HALVES = {"dev": "tuning", "test": "held-out"}


def run_user_facts(
    environment: Environment, progress: StageProgress, *, facts: Path | None = None, questions: Path | None = None
) -> Tally:
    """Ask all questions with both embedders that ship, of a memory and of a plain store.

    Args:
        environment: the sizes and the embedder of the other experiments aren't used.
        progress: called with the steps that are done.
        facts: another file with rows {user, id, text, said_at}; None for the package's.
        questions: another file with rows {user, half, question, gold, kind, asked_at?}; None for the package's.

    Raises:
        DatasetError: a file is absent, or of another format.
    """
    with packaged_file("memory_facts.jsonl", facts) as file:
        events = [(_moment(row, "said_at"), row) for row in read_rows(file)]
    end = max(at for at, _ in events) + timedelta(days=1)
    with packaged_file("memory_questions.jsonl", questions) as file:
        events += [(_moment(row, "asked_at") if "asked_at" in row.values else end, row) for row in read_rows(file)]
    events.sort(key=lambda event: event[0])
    tally = Tally(NAME, environment.seed)
    for name in (ACCURATE, FAST):
        embedder = resolve_embedder(name)
        with environment.with_embedder(embedder).open_sandbox() as sandbox:
            _replay(events, sandbox, embedder, name, tally, progress)
    return tally


def _replay(
    events: list[tuple[datetime, Row]],
    sandbox: MemorySandbox,
    embedder: Embedder,
    name: str,
    tally: Tally,
    progress: StageProgress,
) -> None:
    plain = PlainStore(embedder)
    for n, (at, row) in enumerate(events):
        progress(f"{NAME}, {name}", n, len(events))
        sandbox.clock.advance(max(at - sandbox.clock.now(), timedelta(0)))
        user = row.text("user")
        if "question" not in row.values:
            entry = PlainEntry(id=row.text("id"), text=row.text("text"), user=user)
            sandbox.memory.add(entry.text, user_id=user, id=entry.id, ttl=timedelta(days=3_650))
            plain.add([entry])
            continue
        question, gold, half = row.text("question"), set(row.texts("gold")), HALVES[row.text("half")]
        recalled = [record.id for record in sandbox.memory.search(question, user_id=user, limit=K).records]
        nearest = [entry.id for entry in plain.search(question, user=user)]
        for system, ids in ((MEMORY, recalled), (COSINE, nearest)):
            tally.add(f"{system}, {name}", f"{FIRST}, {half}", bool(ids) and ids[0] in gold)
            tally.add(f"{system}, {name}", f"{IN_FIVE}, {half}", len(gold & set(ids)) / len(gold))


def _moment(row: Row, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(row.text(name))
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise row.field_error(name, f"must be a time with its zone, got {row.values[name]!r:.40}")
    return moment
