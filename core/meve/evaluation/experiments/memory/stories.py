"""The stories experiment: which facts two weeks of correct answers leave in a memory.

A user tells facts and asks questions, and an agent answers them correctly, in many styles. Each answer is feedback on
what the question recalled, and maintenance runs once a day. In the end each fact is searched for by its own text.
"""

from datetime import timedelta

from meve.evaluation.datasets._assembly import packaged_file
from meve.evaluation.datasets._row_reader import Row, read_rows
from meve.evaluation.experiments.memory.environment import Environment, MemorySandbox
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.memory import Policy
from meve.types import StageProgress

NAME = "stories"
HALVES = {"dev": "half for tuning", "test": "half for the table"}
POLICIES = {"default policy": Policy(), "published policy": Policy.paper()}
LOST, UNFOUND = "facts erased", "facts not found by their own text"
FLAGGED, CONTRADICTED = "facts flagged", "answers that contradict a memory"
DAYS = 14


def run_stories(environment: Environment, progress: StageProgress) -> Tally:
    """Replay the stories of each half under the default policy and the published one."""
    tally = Tally(NAME, environment.seed)
    with packaged_file("memory_stories.jsonl", None) as file:
        stories = list(read_rows(file))
    for half, title in HALVES.items():
        chosen = [story for story in stories if story.text("half") == half][: environment.sizes.stories]
        for n, (name, policy) in enumerate(POLICIES.items()):
            progress(f"{NAME}, {title}", n, len(POLICIES))
            for story in chosen:
                with environment.open_sandbox(policy) as sandbox:
                    _replay(story, sandbox, tally, f"{title}, {name}")
    return tally


def _replay(story: Row, sandbox: MemorySandbox, tally: Tally, system: str) -> None:
    memory, user = sandbox.memory, story.text("id")
    facts, turns = story.rows("facts"), story.rows("turns")
    for day in range(1, DAYS + 1):
        for fact in facts:
            if fact.number("day", 1) == day:
                memory.add(fact.text("text"), user_id=user, id=fact.text("id"))
        for turn in turns:
            if turn.number("day", 1) == day:
                recall = memory.search(turn.text("user"), user_id=user)
                verdicts = memory.reflect(recall, answer=turn.text("answer")).verdicts.values()
                tally.add(system, CONTRADICTED, any(verdict.outcome == "contradicted" for verdict in verdicts))
        sandbox.clock.advance(timedelta(days=1))
        memory.maintain(user_id=user)
    every = {r.id: r for r in memory.list(user_id=user, include_archived=True, include_superseded=True)}
    for fact in facts:
        record = every.get(fact.text("id"))
        found = memory.search(fact.text("text"), user_id=user).records
        tally.add(system, LOST, record is None)
        tally.add(system, UNFOUND, fact.text("id") not in [r.id for r in found])
        tally.add(system, FLAGGED, record is not None and bool(record.flagged))
