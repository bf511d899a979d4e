"""The sensitivity experiment: what changes when a weight or threshold of the policy is halved or doubled.

Every setting gets the same history: facts, false facts a day later, and a few rounds of questions with right answers
and reflection. Then come 75 days without questions, one round of maintenance, and every question again. Times to live
are a year, so that nothing expires. False facts are `intent_bound` and right ones `factual`, so that the boosts of the
classes matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from meve.evaluation.experiments.memory.environment import Environment, K, MemorySandbox
from meve.evaluation.experiments.memory.false_facts import ANSWERS, RIGHT, Case, add_cases, answer_round, false_is_above
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import UserFact
from meve.memory import Policy
from meve.memory._maintenance.plan import MaintenanceReport
from meve.types import StageProgress

NAME, DEFAULT = "sensitivity", "default"
FIRST, CONTEXT, ABOVE = "right first", "memories found", "false above right"
AFTER = "right found after maintenance"
VARIED = (
    "ranking.similarity", "ranking.reflection", "ranking.boost", "relevance.words",
    "reflection.steps", "reflection.unused", "reflection.contradicted", "reflection.idle", "reflection.half_life",
    "reflection.floor", "pruning.below", "merging.similarity", "merging.related", "merging.summarise_below",
    "archiving.below", "archiving.idle",
)  # fmt: skip
IDLE = timedelta(days=75)
_LIFE = {"classes": {"factual": {"ttl": timedelta(days=365)}, "intent_bound": {"ttl": timedelta(days=365)}}}


def run_sensitivity(environment: Environment, progress: StageProgress) -> Tally:
    """Run the history once for each setting."""
    tally = Tally(NAME, environment.seed, against=DEFAULT)
    sizes = environment.sizes
    small = replace(
        sizes,
        users=-(-sizes.users // 2),
        facts=min(30, sizes.facts),
        false=min(10, sizes.false),
        rounds=min(3, sizes.rounds),
    )
    settings = dict(vary_policies())
    for n, (name, policy) in enumerate(settings.items()):
        progress(NAME, n, len(settings))
        _run_story(replace(environment, sizes=small), policy, name, tally)
    return tally


def vary_policies() -> Iterator[tuple[str, Policy]]:
    """Yield the published policy, and it with one value halved or doubled; doubled values stop at their upper limit."""
    base = Policy.from_dict({**Policy.paper().model_dump(), **_LIFE})
    yield DEFAULT, base
    for path in VARIED:
        for sign, factor in (("halved", 0.5), ("doubled", 2.0)):
            yield f"{path} {sign}", _scaled_policy(base, path, factor)


def _scaled_policy(base: Policy, path: str, factor: float) -> Policy:
    group, _, name = path.partition(".")
    values: dict[str, Any] = base.model_dump()
    values[group][name] = _scaled(values[group][name], factor, 100 if group in ("reflection", "pruning") else None)
    return Policy.from_dict(values)


def _scaled(value: Any, factor: float, most: float | None) -> Any:  # noqa: ANN401 - whatever a policy holds
    if isinstance(value, timedelta):
        return value * factor
    if isinstance(value, tuple):  # steps of (below, gain)
        return tuple((below, gain * factor) for below, gain in value)
    limit = most if most is not None else 1.0 if value <= 1 else 100.0
    return min(limit, value * factor)


def _run_story(environment: Environment, policy: Policy, name: str, tally: Tally) -> None:
    with environment.open_sandbox(policy) as sandbox:
        cases, bystanders = add_cases(environment, sandbox, false_class="intent_bound")
        for _ in range(environment.sizes.rounds):
            answer_round(sandbox, cases, ANSWERS[RIGHT])
        _check_recall(sandbox, cases, bystanders, name, tally)
        sandbox.clock.advance(IDLE)
        report = sandbox.memory.maintain()
        _check_report(sandbox, cases, bystanders, report, name, tally)


def _check_recall(
    sandbox: MemorySandbox, cases: Sequence[Case], bystanders: Sequence[UserFact], name: str, tally: Tally
) -> None:
    for case in cases:
        recalled = sandbox.recall_ids(case.right)
        tally.add(name, FIRST, recalled[:1] == [case.right.id])
        tally.add(name, ABOVE, false_is_above(recalled, case))
    for fact in [*(case.right for case in cases), *bystanders]:
        recalled = sandbox.recall_ids(fact, limit=100)
        tally.add(name, f"recall@{K}", fact.id in recalled[:K])
        tally.add(name, CONTEXT, float(len(recalled)))


def _check_report(
    sandbox: MemorySandbox, cases: Sequence[Case], bystanders: Sequence[UserFact], report: MaintenanceReport, name: str,
    tally: Tally,
) -> None:  # fmt: skip
    right = [*(case.right for case in cases), *bystanders]
    gone = (report.archived, report.summarised, report.superseded, report.merged)
    for fact in right:
        tally.add(name, "right pruned", fact.id in report.pruned.get(fact.user, ()))
        tally.add(name, "right archived or merged", any(fact.id in removed.get(fact.user, ()) for removed in gone))
    for case in cases:
        tally.add(name, "false pruned", case.false.id in report.pruned.get(case.false.user, ()))
    for fact in right:
        tally.add(name, AFTER, fact.text in sandbox.search(fact).text)
