"""What moves when a weight or a threshold of the policy is halved or doubled?

One story for each setting: facts, false ones a day later, a few rounds of questions that are answered rightly and
reflected upon; then two and a half months in which nobody asks, one round of maintenance, and every question again.
Lives are lengthened to a year, so that it isn't expiry that decides. The false facts are `intent_bound`, the right ones
`factual`, so that the boost of a class has a say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from meve.evaluation.experiments.memory.environment import K, Scene, Stage
from meve.evaluation.experiments.memory.facts import Fact
from meve.evaluation.experiments.memory.false_facts import ANSWERS, RIGHT, Case, above, answered, ids, world
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.run import Progress
from meve.memory import Policy
from meve.memory._maintenance.plan import Upkept

NAME, DEFAULT = "sensitivity", "default"
FIRST, CONTEXT, ABOVE = "right first", "memories found", "false above right"
AFTER = "right found after upkeep"
VARIED = (
    "ranking.similarity", "ranking.reflection", "ranking.boost", "ranking.threshold", "likeness.words",
    "reflection.steps", "reflection.unused", "reflection.contradicted", "reflection.idle", "reflection.half_life",
    "reflection.floor", "pruning.below", "merging.similarity", "merging.related", "merging.summarise_below",
    "archiving.below", "archiving.idle",
)  # fmt: skip
IDLE = timedelta(days=75)
_LIFE = {"classes": {"factual": {"ttl": timedelta(days=365)}, "intent_bound": {"ttl": timedelta(days=365)}}}


def sensitivity(stage: Stage, progress: Progress) -> Tally:
    """The story, once for each setting."""
    tally = Tally(NAME, stage.seed, against=DEFAULT)
    full = stage.sizes
    small = replace(
        full,
        users=-(-full.users // 2),
        facts=min(30, full.facts),
        false=min(10, full.false),
        rounds=min(3, full.rounds),
    )
    settings = dict(policies())
    for n, (name, policy) in enumerate(settings.items()):
        progress(NAME, n, len(settings))
        _story(replace(stage, sizes=small), policy, name, tally)
    return tally


def policies() -> Iterator[tuple[str, Policy]]:
    """The default, and each value that is varied by half and by two; what can't be doubled goes up to its bound."""
    base = Policy.from_dict(_LIFE)
    yield DEFAULT, base
    for path in VARIED:
        for sign, factor in (("halved", 0.5), ("doubled", 2.0)):
            yield f"{path} {sign}", _with(base, path, factor)


def _with(base: Policy, path: str, factor: float) -> Policy:
    group, _, name = path.partition(".")
    values: dict[str, Any] = base.model_dump()
    values[group][name] = _times(values[group][name], factor, 100 if group in ("reflection", "pruning") else None)
    return Policy.from_dict(values)


def _times(value: Any, factor: float, most: float | None) -> Any:  # noqa: ANN401 - whatever a policy holds
    if isinstance(value, timedelta):
        return value * factor
    if isinstance(value, tuple):  # steps of (below, gain)
        return tuple((below, gain * factor) for below, gain in value)
    bound = most if most is not None else 1.0 if value <= 1 else 100.0
    return min(bound, value * factor)


def _story(stage: Stage, policy: Policy, name: str, tally: Tally) -> None:
    cases, bystanders = world(stage)
    with stage.scene(policy) as scene:
        for user, fact in [*((c.user, c.right) for c in cases), *bystanders]:
            scene.tell(user, fact)
        scene.clock.advance(timedelta(days=1))
        for case in cases:
            scene.tell(case.user, case.false, policy_class="intent_bound")
        for _ in range(stage.sizes.rounds):
            answered(scene, cases, ANSWERS[RIGHT])
        _asked(scene, cases, bystanders, name, tally)
        scene.clock.advance(IDLE)
        done = scene.memory.maintain()
        _upkept(scene, cases, bystanders, done, name, tally)


def _asked(
    scene: Scene, cases: Sequence[Case], bystanders: Sequence[tuple[str, Fact]], name: str, tally: Tally
) -> None:
    for case in cases:
        found = ids(scene, case)
        tally.add(name, FIRST, found[:1] == [case.right.id])
        tally.add(name, ABOVE, above(found, case))
    for user, fact in [*((c.user, c.right) for c in cases), *bystanders]:
        found = [e.record.id for e in scene.memory.explain(fact.question, user_id=user, limit=100)]
        tally.add(name, f"recall@{K}", fact.id in found[:K])
        tally.add(name, CONTEXT, float(len(found)))


def _upkept(
    scene: Scene,
    cases: Sequence[Case],
    bystanders: Sequence[tuple[str, Fact]],
    done: Upkept,
    name: str,
    tally: Tally,
) -> None:
    def among(taken: Mapping[Any, Sequence[str]], user: str, fact: Fact) -> bool:
        return fact.id in taken.get(user, ())

    right = [*((c.user, c.right) for c in cases), *bystanders]
    for user, fact in right:
        tally.add(name, "right pruned", among(done.pruned, user, fact))
        gone = (done.archived, done.summarised, done.superseded, done.merged)
        tally.add(name, "right archived or merged", any(among(taken, user, fact) for taken in gone))
    for case in cases:
        tally.add(name, "false pruned", among(done.pruned, case.user, case.false))
    for user, fact in right:
        found = scene.memory.search(fact.question, user_id=user, limit=K)
        tally.add(name, AFTER, fact.text in found.text)
