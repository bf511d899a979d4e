"""Facts that change: does a context hold both sides of a contradiction, and is the current value in it?

Every week each fact gets another value, in half of the cases in other words. After each change every fact is asked
for. What was added is left alone, or maintained after each change, or maintained and reflected upon: each question was
asked before that, and answered with the current sentence.
"""

from collections.abc import Sequence
from datetime import timedelta

from meve.evaluation.experiments.memory.environment import Entry, K, Plain, Scene, Stage, place
from meve.evaluation.experiments.memory.facts import VALUES, Fact, facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress

NAME, BY_KIND = "contradictions", "contradictions, by what changes"
LEFT, MAINTAINED, REFLECTED, PLAIN = "memory, left alone", "maintained", "maintained and reflected", "plain vectors"
BOTH, THERE, FIRST = "both sides in the context", "current in it", "current above all older"


def contradictions(stage: Stage, progress: Progress) -> list[Tally]:
    """Change every fact again and again, and look at the contexts."""
    tally, kinds = Tally(NAME, stage.seed), Tally(BY_KIND, stage.seed)
    told = versions(stage)
    for n, system in enumerate((LEFT, MAINTAINED, REFLECTED)):
        with stage.scene() as scene:
            drawn = {}
            for change in range(stage.sizes.changes + 1):
                progress(NAME, n * (stage.sizes.changes + 1) + change, 3 * (stage.sizes.changes + 1))
                _change(scene, told, change, system)
                drawn[float(change)] = _share(scene, told, change)
            tally.draw(system, BOTH, "changes", drawn)
            for user, line in sorted(told, key=_place_of_kind):
                _judge(_ids(scene, user, line[-1]), line, system, tally, kinds)
    _beside(stage, told, tally)
    return [tally, kinds]


def _place_of_kind(told: tuple[str, list[Fact]]) -> tuple[int, bool]:
    last = told[1][-1]
    return VALUES.index(last.kind.value), last.reworded


def versions(stage: Stage) -> list[tuple[str, list[Fact]]]:
    """Each fact of each user as it was told, oldest first."""
    rng = stage.rng(NAME)
    made = []
    for user in stage.users:
        for n, fact in enumerate(facts(rng, stage.sizes.changing)):
            line = [fact]
            for change in range(1, stage.sizes.changes + 1):
                known = [each.value for each in line]
                line.append(line[-1].otherwise(rng, f"{fact.id}-{change}", but=known, reworded=n % 2 == 1))
            made.append((user, line))
    return made


def _change(scene: Scene, told: Sequence[tuple[str, list[Fact]]], change: int, system: str) -> None:
    for user, line in told:
        scene.tell(user, line[change])
    scene.clock.advance(timedelta(days=1))
    if system == REFLECTED:
        for user, line in told:
            recall = scene.memory.search(line[change].question, user_id=user, limit=K)
            scene.memory.reflect(recall, answer=line[change].text)
    if system != LEFT:
        scene.memory.maintain()
    scene.clock.advance(timedelta(days=6))


def _ids(scene: Scene, user: str, fact: Fact) -> list[str]:
    return [each.record.id for each in scene.memory.explain(fact.question, user_id=user, limit=K)]


def _share(scene: Scene, told: Sequence[tuple[str, list[Fact]]], change: int) -> float:
    held = [_sides(_ids(scene, user, line[change]), line) > 1 for user, line in told]
    return sum(held) / len(held)


def _sides(found: Sequence[str], line: Sequence[Fact]) -> int:
    """How many values of a fact stand in a context."""
    return len({fact.value for fact in line if fact.id in found})


def _judge(found: Sequence[str], line: Sequence[Fact], system: str, tally: Tally, kinds: Tally | None) -> None:
    current, older = line[-1], [fact for fact in line if fact.value != line[-1].value]
    best = min(place(found, fact.id, K + 1) for fact in older)
    both, there = _sides(found, line) > 1, current.id in found
    tally.add(system, BOTH, both)
    tally.add(system, THERE, there)
    tally.add(system, FIRST, place(found, current.id, K + 1) < best)
    if kinds and system != LEFT:
        wording = "other words" if current.reworded else "same words"
        kinds.add(f"{current.kind.value}, {wording}", f"{system}: both", both)
        kinds.add(f"{current.kind.value}, {wording}", f"{system}: current", there)


def _beside(stage: Stage, told: Sequence[tuple[str, list[Fact]]], tally: Tally) -> None:
    """A plain store, which keeps all."""
    plain = Plain(stage.embedder)
    drawn = {}
    for change in range(stage.sizes.changes + 1):
        plain.add([Entry(id=line[change].id, text=line[change].text, user=user) for user, line in told])
        found = [[e.id for e in plain.search(line[change].question, user=user)] for user, line in told]
        held = [_sides(each, line) > 1 for each, (_, line) in zip(found, told, strict=True)]
        drawn[float(change)] = sum(held) / len(held)
    tally.draw(PLAIN, BOTH, "changes", drawn)
    for each, (_, line) in zip(found, told, strict=True):
        _judge(each, line, PLAIN, tally, None)
