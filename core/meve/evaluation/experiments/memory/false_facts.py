"""A false fact, put in after the right one on the same footing: does reflection push it down, and what else does it do?

Each round asks for every fact that has a false twin, hands the memory an answer, and lets a day pass. Answers are of
three sorts: the right sentence; the right value alone ("On Friday."); and whatever stands first in the context, as a
model gives it that believes its context. In half of the cases the false fact is in other words than the right one.
At the end comes one round of maintenance, and every question once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from meve.evaluation.experiments.memory.environment import Entry, K, Plain, Scene, Stage, place
from meve.evaluation.experiments.memory.facts import VALUES, Fact, facts
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress
from meve.memory._recall.searcher import Recall

NAME, BY_KIND = "false facts", "false facts, by what is false"
RIGHT, BARE, FIRST = "right sentences", "right values alone", "what stands first"
NONE, PLAIN = "no answers", "plain vectors"
ABOVE, KEPT_FALSE, KEPT_RIGHT = "false above right", "false in the 5", "right in the 5"
UPKEPT = "after maintenance"
ROUNDS = (0, 1, 2, 4, 8, 16, 32)
"""After which it is looked; and after the last."""
Answer: TypeAlias = Callable[[Fact, Recall], str]
ANSWERS: dict[str, Answer | None] = {
    NONE: None,
    RIGHT: lambda fact, _: fact.text,
    BARE: lambda fact, _: f"{fact.value.capitalize()}.",
    FIRST: lambda _, recall: recall.records[0].text if recall.records else "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A right fact, and the false one beside it."""

    user: str
    right: Fact
    false: Fact


def false_facts(stage: Stage, progress: Progress) -> list[Tally]:
    """Ask, answer and reflect, round after round, for each sort of answers."""
    tally, kinds = Tally(NAME, stage.seed), Tally(BY_KIND, stage.seed)
    for n, (name, answer) in enumerate(ANSWERS.items()):
        with stage.scene() as scene:
            cases, bystanders = told(stage, scene)
            drawn = {}
            for round_ in range(stage.sizes.rounds + 1):
                progress(NAME, n * stage.sizes.rounds + round_, (len(ANSWERS) + 1) * stage.sizes.rounds)
                if round_:
                    answered(scene, cases, answer)
                if round_ in (*ROUNDS, stage.sizes.rounds):
                    drawn[float(round_)] = _looked(scene, cases, name, round_, tally)
            tally.draw(name, ABOVE, "rounds", drawn)
            _flagged(scene, cases, bystanders, name, tally)
            _upkept(scene, cases, bystanders, name, tally)
            if name == RIGHT:
                _by_kind(scene, cases, kinds)
    _beside(stage, tally)
    return [tally, kinds]


def told(stage: Stage, scene: Scene) -> tuple[list[Case], list[tuple[str, Fact]]]:
    """Tell every user's facts, and a day later the false ones; returns the cases, and what is no part of one."""
    cases, bystanders = world(stage)
    for user, fact in [*((c.user, c.right) for c in cases), *bystanders]:
        scene.tell(user, fact)
    scene.clock.advance(timedelta(days=1))
    for case in cases:
        scene.tell(case.user, case.false)
    return cases, bystanders


def world(stage: Stage) -> tuple[list[Case], list[tuple[str, Fact]]]:
    """The cases, and the facts besides, each with its user."""
    rng = stage.rng(NAME)
    cases, bystanders = [], []
    for user in stage.users:
        known = facts(rng, stage.sizes.facts)
        for n, fact in enumerate(known[: stage.sizes.false]):
            false = fact.otherwise(rng, f"x{fact.id}", reworded=n % 2 == 1)
            cases.append(Case(user=user, right=fact, false=false))
        bystanders += [(user, fact) for fact in known[stage.sizes.false :]]
    return cases, bystanders


def answered(scene: Scene, cases: Sequence[Case], answer: Answer | None) -> None:
    """One round: each question asked, answered and reflected upon (None for no answers); then a day passes."""
    for case in cases:
        recall = scene.memory.search(case.right.question, user_id=case.user, limit=K)
        if answer:
            scene.memory.reflect(recall, answer=answer(case.right, recall))
    scene.clock.advance(timedelta(days=1))


def ids(scene: Scene, case: Case) -> list[str]:
    """What a question brings out, best first; nothing is noted, so that looking changes nothing."""
    found = scene.memory.explain(case.right.question, user_id=case.user, limit=K)
    return [each.record.id for each in found]


def above(found: Sequence[str], case: Case) -> bool:
    """Whether the false fact is in, and the right one below it or not there."""
    return place(found, case.false.id, K + 1) < place(found, case.right.id, K + 1)


def _looked(scene: Scene, cases: Sequence[Case], name: str, round_: int, tally: Tally) -> float:
    measure = f"{ABOVE}, round {round_}"
    for case in cases:
        tally.add(name, measure, above(ids(scene, case), case))
    return tally.mean(name, measure)


def _flagged(
    scene: Scene, cases: Sequence[Case], bystanders: Sequence[tuple[str, Fact]], name: str, tally: Tally
) -> None:
    """Whom the answers were said to contradict: false facts, right ones, and those that nobody asked about."""
    for who, told_of in _by_part(cases, bystanders).items():
        for user, fact in told_of:
            tally.add(name, f"{who} flagged", bool(scene.memory.get(fact.id, user_id=user).flagged))


def _by_part(cases: Sequence[Case], bystanders: Sequence[tuple[str, Fact]]) -> dict[str, Sequence[tuple[str, Fact]]]:
    return {
        "false": [(case.user, case.false) for case in cases],
        "right": [(case.user, case.right) for case in cases],
        "others": bystanders,
    }


def _upkept(
    scene: Scene, cases: Sequence[Case], bystanders: Sequence[tuple[str, Fact]], name: str, tally: Tally
) -> None:
    """One round of maintenance: what it takes away, and what a question finds afterwards."""
    done = scene.memory.maintain()
    for who, told_of in _by_part(cases, bystanders).items():
        for user, fact in told_of:
            tally.add(name, f"{who} pruned", fact.id in done.pruned.get(user, ()))
            tally.add(name, f"{who} superseded", fact.id in done.superseded.get(user, ()))
    for case in cases:
        found = ids(scene, case)
        tally.add(name, f"{ABOVE}, {UPKEPT}", above(found, case))
        tally.add(name, f"{KEPT_FALSE}, {UPKEPT}", case.false.id in found)
        tally.add(name, f"{KEPT_RIGHT}, {UPKEPT}", case.right.id in found)


def _by_kind(scene: Scene, cases: Sequence[Case], tally: Tally) -> None:
    for case in sorted(cases, key=lambda c: (VALUES.index(c.right.kind.value), c.false.reworded)):
        found = ids(scene, case)
        system = f"{case.right.kind.value}, {'other words' if case.false.reworded else 'same words'}"
        tally.add(system, KEPT_FALSE, case.false.id in found)
        tally.add(system, KEPT_RIGHT, case.right.id in found)


def _beside(stage: Stage, tally: Tally) -> None:
    """A plain store, which no answer changes."""
    cases, bystanders = world(stage)
    plain = Plain(stage.embedder)
    plain.add([Entry(id=fact.id, text=fact.text, user=user) for user, fact in bystanders])
    plain.add([Entry(id=fact.id, text=fact.text, user=c.user) for c in cases for fact in (c.right, c.false)])
    for case in cases:
        found = [entry.id for entry in plain.search(case.right.question, user=case.user)]
        for measure in (f"{ABOVE}, round 0", f"{ABOVE}, {UPKEPT}"):
            tally.add(PLAIN, measure, above(found, case))
        tally.add(PLAIN, f"{KEPT_FALSE}, {UPKEPT}", case.false.id in found)
        tally.add(PLAIN, f"{KEPT_RIGHT}, {UPKEPT}", case.right.id in found)
    share = tally.mean(PLAIN, f"{ABOVE}, round 0")
    tally.draw(PLAIN, ABOVE, "rounds", {float(n): share for n in range(stage.sizes.rounds + 1)})
