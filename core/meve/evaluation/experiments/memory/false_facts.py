"""The false-facts experiment: whether reflection ranks a false fact below the right one.

Each false fact is added a day after the right one, in half of the cases in other words. Each round asks for every such
fact, gives the memory an answer, and lets a day pass. There are three kinds of answers: the right sentence, the right
value alone ("On Friday."), and the first memory of the context. The end is one round of maintenance, and every question
once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from meve.evaluation.experiments.memory.environment import Environment, K, MemorySandbox, PlainStore, rank_of
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import UserFact, make_facts
from meve.memory._recall.searcher import Recall
from meve.memory.policy import PolicyClass
from meve.types import StageProgress

NAME, BY_KIND = "false facts", "false facts, by what is false"
RIGHT, BARE, FIRST = "right sentences", "right values alone", "what stands first"
NONE, PLAIN = "no answers", "plain vectors"
ABOVE, KEPT_FALSE, KEPT_RIGHT = "false above right", "false in the 5", "right in the 5"
AFTER_MAINTENANCE = "after maintenance"
ROUNDS = (0, 1, 2, 4, 8, 16, 32)
"""Rounds after which ranks are measured, besides the last round."""
Answer: TypeAlias = Callable[[UserFact, Recall], str]
ANSWERS: dict[str, Answer | None] = {
    NONE: None,
    RIGHT: lambda fact, _: fact.text,
    BARE: lambda fact, _: f"{fact.value.capitalize()}.",
    FIRST: lambda _, recall: recall.records[0].text if recall.records else "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A right fact and its false counterpart."""

    right: UserFact
    false: UserFact


def run_false_facts(environment: Environment, progress: StageProgress) -> list[Tally]:
    """Ask, answer and reflect in rounds, for each kind of answers."""
    tally, kinds = Tally(NAME, environment.seed), Tally(BY_KIND, environment.seed)
    for n, (name, answer) in enumerate(ANSWERS.items()):
        with environment.open_sandbox() as sandbox:
            cases, bystanders = add_cases(environment, sandbox)
            shares = {}
            for round_ in range(environment.sizes.rounds + 1):
                progress(NAME, n * environment.sizes.rounds + round_, (len(ANSWERS) + 1) * environment.sizes.rounds)
                if round_:
                    answer_round(sandbox, cases, answer)
                if round_ in (*ROUNDS, environment.sizes.rounds):
                    shares[float(round_)] = _share_above(sandbox, cases, name, round_, tally)
            tally.add_curve(name, ABOVE, "rounds", shares)
            _count_removed(sandbox, cases, bystanders, name, tally)
            for case in cases:
                recalled = sandbox.recall_ids(case.right)
                tally.add(name, f"{ABOVE}, {AFTER_MAINTENANCE}", false_is_above(recalled, case))
                _tally_kept(tally, name, recalled, case, f", {AFTER_MAINTENANCE}")
            if name == RIGHT:
                for case in sorted(cases, key=lambda case: case.false.kind_order):
                    _tally_kept(kinds, case.false.kind, sandbox.recall_ids(case.right), case)
    _measure_plain_store(environment, tally)
    return [tally, kinds]


def add_cases(
    environment: Environment, sandbox: MemorySandbox, *, false_class: PolicyClass = "factual"
) -> tuple[list[Case], list[UserFact]]:
    """Add every user's facts, and a day later the false ones; return the cases and the other facts."""
    cases, bystanders = make_cases(environment)
    for fact in [*(case.right for case in cases), *bystanders]:
        sandbox.add_fact(fact)
    sandbox.clock.advance(timedelta(days=1))
    for case in cases:
        sandbox.add_fact(case.false, policy_class=false_class)
    return cases, bystanders


def make_cases(environment: Environment) -> tuple[list[Case], list[UserFact]]:
    """Return the cases and the other facts."""
    rng = environment.rng(NAME)
    cases, bystanders = [], []
    for user in environment.users:
        facts = make_facts(rng, environment.sizes.facts, user)
        for n, fact in enumerate(facts[: environment.sizes.false]):
            false = fact.with_other_value(rng, f"x{fact.id}", reworded=n % 2 == 1)
            cases.append(Case(right=fact, false=false))
        bystanders += facts[environment.sizes.false :]
    return cases, bystanders


def answer_round(sandbox: MemorySandbox, cases: Sequence[Case], answer: Answer | None) -> None:
    """Ask each question, answer it and reflect (None for no answers); then let a day pass."""
    for case in cases:
        recall = sandbox.search(case.right)
        if answer:
            sandbox.memory.reflect(recall, answer=answer(case.right, recall))
    sandbox.clock.advance(timedelta(days=1))


def false_is_above(recalled: Sequence[str], case: Case) -> bool:
    """Return whether the false fact is recalled, with the right one below it or absent."""
    return rank_of(recalled, case.false.id, K + 1) < rank_of(recalled, case.right.id, K + 1)


def _share_above(sandbox: MemorySandbox, cases: Sequence[Case], name: str, round_: int, tally: Tally) -> float:
    measure = f"{ABOVE}, round {round_}"
    for case in cases:
        tally.add(name, measure, false_is_above(sandbox.recall_ids(case.right), case))
    return tally.mean(name, measure)


def _count_removed(
    sandbox: MemorySandbox, cases: Sequence[Case], bystanders: Sequence[UserFact], name: str, tally: Tally
) -> None:
    """Count which facts the answers flagged as contradicted, and which ones maintenance removes."""
    groups = {"false": [case.false for case in cases], "right": [case.right for case in cases], "others": bystanders}
    for who, group in groups.items():
        for fact in group:
            tally.add(name, f"{who} flagged", bool(sandbox.memory.get(fact.id, user_id=fact.user).flagged))
    report = sandbox.memory.maintain()
    for who, group in groups.items():
        for fact in group:
            tally.add(name, f"{who} pruned", fact.id in report.pruned.get(fact.user, ()))
            tally.add(name, f"{who} superseded", fact.id in report.superseded.get(fact.user, ()))


def _tally_kept(tally: Tally, system: str, recalled: Sequence[str], case: Case, when: str = "") -> None:
    tally.add(system, KEPT_FALSE + when, case.false.id in recalled)
    tally.add(system, KEPT_RIGHT + when, case.right.id in recalled)


def _measure_plain_store(environment: Environment, tally: Tally) -> None:
    cases, bystanders = make_cases(environment)
    plain = PlainStore(environment.embedder)
    plain.add_facts([*bystanders, *(fact for case in cases for fact in (case.right, case.false))])
    for case in cases:
        recalled = [entry.id for entry in plain.search(case.right.question, user=case.right.user)]
        for measure in (f"{ABOVE}, round 0", f"{ABOVE}, {AFTER_MAINTENANCE}"):
            tally.add(PLAIN, measure, false_is_above(recalled, case))
        _tally_kept(tally, PLAIN, recalled, case, f", {AFTER_MAINTENANCE}")
    share = tally.mean(PLAIN, f"{ABOVE}, round 0")
    tally.add_curve(PLAIN, ABOVE, "rounds", {float(n): share for n in range(environment.sizes.rounds + 1)})
