"""The contradictions experiment: whether a context has the current value of a fact, and both sides of a contradiction.

Every week each fact changes its value, in half of the cases in other words. After each change every fact is asked for.
The memory is left alone, or maintained after each change, or maintained and reflected: before maintenance, each
question is asked and answered with the current sentence.
"""

from collections.abc import Sequence
from datetime import timedelta

from meve.evaluation.experiments.memory.environment import Environment, K, MemorySandbox, PlainStore, rank_of
from meve.evaluation.experiments.memory.memory_results import Tally
from meve.evaluation.experiments.memory.synthetic_facts import UserFact, make_facts
from meve.types import StageProgress

NAME, BY_KIND = "contradictions", "contradictions, by what changes"
LEFT, MAINTAINED, REFLECTED, PLAIN = "memory, left alone", "maintained", "maintained and reflected", "plain vectors"
BOTH, THERE, FIRST = "both sides in the context", "current in it", "current above all older"


def run_contradictions(environment: Environment, progress: StageProgress) -> list[Tally]:
    """Change every fact several times, and count its values in the contexts."""
    tally, kinds = Tally(NAME, environment.seed), Tally(BY_KIND, environment.seed)
    histories = make_histories(environment)
    for n, system in enumerate((LEFT, MAINTAINED, REFLECTED)):
        with environment.open_sandbox() as sandbox:
            shares = {}
            for change in range(environment.sizes.changes + 1):
                progress(NAME, n * (environment.sizes.changes + 1) + change, 3 * (environment.sizes.changes + 1))
                _apply_change(sandbox, histories, change, system)
                ids = [sandbox.recall_ids(history[change]) for history in histories]
                shares[float(change)] = _share_with_both(ids, histories)
            tally.add_curve(system, BOTH, "changes", shares)
            for history in sorted(histories, key=lambda history: history[-1].kind_order):
                _record(sandbox.recall_ids(history[-1]), history, system, tally, kinds)
    _measure_plain_store(environment, histories, tally)
    return [tally, kinds]


def make_histories(environment: Environment) -> list[list[UserFact]]:
    """Return the versions of each fact, oldest first."""
    rng = environment.rng(NAME)
    histories = []
    for user in environment.users:
        for n, fact in enumerate(make_facts(rng, environment.sizes.changing, user)):
            history = [fact]
            for change in range(1, environment.sizes.changes + 1):
                known = [each.value for each in history]
                new = history[-1].with_other_value(rng, f"{fact.id}-{change}", exclude=known, reworded=n % 2 == 1)
                history.append(new)
            histories.append(history)
    return histories


def _apply_change(sandbox: MemorySandbox, histories: Sequence[list[UserFact]], change: int, system: str) -> None:
    for history in histories:
        sandbox.add_fact(history[change])
    sandbox.clock.advance(timedelta(days=1))
    if system == REFLECTED:
        for history in histories:
            sandbox.memory.reflect(sandbox.search(history[change]), answer=history[change].text)
    if system != LEFT:
        sandbox.memory.maintain()
    sandbox.clock.advance(timedelta(days=6))


def _share_with_both(ids: Sequence[Sequence[str]], histories: Sequence[list[UserFact]]) -> float:
    has_both = [count_values(each, history) > 1 for each, history in zip(ids, histories, strict=True)]
    return sum(has_both) / len(has_both)


def count_values(ids: Sequence[str], history: Sequence[UserFact]) -> int:
    """Return how many values of a fact a context has."""
    return len({fact.value for fact in history if fact.id in ids})


def _record(ids: Sequence[str], history: Sequence[UserFact], system: str, tally: Tally, kinds: Tally | None) -> None:
    current, older = history[-1], [fact for fact in history if fact.value != history[-1].value]
    best = min(rank_of(ids, fact.id, K + 1) for fact in older)
    both, there = count_values(ids, history) > 1, current.id in ids
    tally.add(system, BOTH, both)
    tally.add(system, THERE, there)
    tally.add(system, FIRST, rank_of(ids, current.id, K + 1) < best)
    if kinds and system != LEFT:
        kinds.add(current.kind, f"{system}: both", both)
        kinds.add(current.kind, f"{system}: current", there)


def _measure_plain_store(environment: Environment, histories: Sequence[list[UserFact]], tally: Tally) -> None:
    plain = PlainStore(environment.embedder)
    shares = {}
    for change in range(environment.sizes.changes + 1):
        facts = [history[change] for history in histories]
        plain.add_facts(facts)
        ids = [[e.id for e in plain.search(fact.question, user=fact.user)] for fact in facts]
        shares[float(change)] = _share_with_both(ids, histories)
    tally.add_curve(PLAIN, BOTH, "changes", shares)
    for each, history in zip(ids, histories, strict=True):
        _record(each, history, PLAIN, tally, None)
