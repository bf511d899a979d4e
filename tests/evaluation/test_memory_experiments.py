"""The experiments on memory: what each must find, and that each can tell a memory that breaks its rule."""

from dataclasses import replace
from random import Random

import pytest

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import EvaluationError
from meve.evaluation.experiments.memory import contradictions as changing
from meve.evaluation.experiments.memory import expiry, false_facts, growth, isolation, sensitivity, tags
from meve.evaluation.experiments.memory.environment import Sizes, Stage
from meve.evaluation.experiments.memory.facts import MOST, facts
from meve.evaluation.experiments.memory.memory_results import Figure, MemoryResults, Tally
from meve.evaluation.experiments.memory.run import EXPERIMENTS, Memory, memory
from meve.evaluation.report.memory import grid, text
from meve.evaluation.statistics import Interval
from meve.memory import GovernedMemory, Policy

SMALL = Sizes(users=2, facts=14, secrets=6, false=5, rounds=2, changing=8, changes=1, talks=1, turns=40)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]


@pytest.fixture(scope="module")
def stage():
    return Stage(embedder=resolve_embedder(None), tokens=resolve_tokens(None), sizes=SMALL)


def found(experiment, stage):
    """What an experiment found: values by system and measure."""
    made = experiment(stage, lambda *_: None)
    tallies = made if isinstance(made, list) else [made]
    return {(f.system, f.measure): f.interval.value for tally in tallies for f in tally.figures()}


def under(policy):
    """Opens memories by that policy, whatever they are opened with."""
    return lambda file, **parts: GovernedMemory.open(file, **{**parts, "policy": Policy.from_dict(policy)})


class Immortal(GovernedMemory):
    """Forgets when what it is told ends."""

    def add(self, text, **values):
        return super().add(text, **{**values, "ttl": None})


class Promiscuous(GovernedMemory):
    """Puts everybody's memories in one place, and looks for everybody's there."""

    def add(self, text, *, user_id, id=None, **values):
        return super().add(text, user_id="everybody", id=f"{user_id}-{id}", **values)

    def search(self, query, *, user_id, **values):
        return super().search(query, user_id="everybody", **values)


class Lazy(GovernedMemory):
    """Maintains nothing."""

    def maintain(self, **_):
        return None


def test_an_expired_secret_never_comes_back_and_a_plain_store_hands_it_out(stage):
    values = found(expiry.expiry, stage)
    assert values[expiry.MEMORY, expiry.BEFORE] == 1
    assert values[expiry.MEMORY, expiry.AFTER] == values[expiry.MEMORY, expiry.LEFT] == 0
    assert values[expiry.PLAIN, expiry.AFTER] > 0.9


def test_a_memory_without_expiry_is_told(stage):
    """Half of the secrets have lives of their own, the others go by their class: each half is seen to leak."""
    own = found(expiry.expiry, replace(stage, opened=Immortal.open))
    assert 0 < own[expiry.MEMORY, expiry.AFTER] < 1
    names = ("factual", "intent_bound", "ephemeral", "private")
    classes = {"classes": {name: {"ttl": None} for name in names}}
    both = found(
        expiry.expiry,
        replace(
            stage, opened=lambda file, **parts: Immortal.open(file, **{**parts, "policy": Policy.from_dict(classes)})
        ),
    )
    assert both[expiry.MEMORY, expiry.AFTER] == both[expiry.MEMORY, expiry.LEFT] == 1
    assert {both[expiry.MEMORY, f"by {door}"] for door in ("search", "prompt", "explain", "list", "export")} == {1}


def test_no_user_gets_anothers_fact_nor_a_private_one_unasked(stage):
    values = found(isolation.isolation, stage)
    assert values[isolation.MEMORY, isolation.LEAK] == values[isolation.MEMORY, isolation.PRIVATE] == 0
    assert values[isolation.MEMORY, isolation.OWN] > 0.9
    assert values[isolation.ONE, isolation.LEAK] > 0.9


def test_a_memory_that_mixes_users_up_is_told(stage):
    values = found(isolation.isolation, replace(stage, opened=Promiscuous.open))
    assert values[isolation.MEMORY, isolation.LEAK] > 0.9


def test_a_memory_that_hands_out_private_facts_is_told(stage):
    loose = under({"classes": {"private": {"on_request": False}}})
    assert found(isolation.isolation, replace(stage, opened=loose))[isolation.MEMORY, isolation.PRIVATE] > 0.9


def test_answers_move_false_facts_and_their_absence_moves_none(stage):
    values = found(false_facts.false_facts, stage)
    first, last = (f"{false_facts.ABOVE}, round {n}" for n in (0, SMALL.rounds))
    assert values[false_facts.RIGHT, "false flagged"] > values[false_facts.NONE, "false flagged"] == 0
    assert values[false_facts.NONE, last] == values[false_facts.NONE, first]
    assert values[false_facts.RIGHT, last] <= values[false_facts.RIGHT, first]
    assert values[false_facts.RIGHT, last] <= values[false_facts.FIRST, last]


def test_rounds_that_do_nothing_are_told(stage):
    """Under a policy by which answers move no score, and flags alone change and hide nothing, places stay."""
    still = {"reflection": {"steps": [[100, 0]], "unused": 0, "contradicted": 0}, "ranking": {"conflicts": True}}
    values = found(false_facts.false_facts, replace(stage, opened=under(still)))
    first, last = (f"{false_facts.ABOVE}, round {n}" for n in (0, SMALL.rounds))
    assert values[false_facts.RIGHT, last] == values[false_facts.RIGHT, first]
    assert values[false_facts.RIGHT, "others pruned"] == 0


def test_a_wrong_tag_hides_all_from_a_filter_and_less_from_memory(stage):
    values = found(tags.tags, stage)
    right, _, wrong, nobodys, _ = tags.ASKED
    assert values[tags.FILTER, right] > 0.9
    assert values[tags.FILTER, wrong] == values[tags.FILTER, nobodys] == 0
    assert values[tags.MEMORY, wrong] > 0.5
    assert values[tags.MEMORY, nobodys] > 0.9


def test_maintenance_parts_contradictions_and_a_memory_without_it_is_told(stage):
    """Where a recall may hold both sides; where it holds the winner alone, it parts them without maintenance."""
    values = found(changing.contradictions, replace(stage, opened=under({"ranking": {"conflicts": True}})))
    assert values[changing.MAINTAINED, changing.BOTH] < values[changing.LEFT, changing.BOTH]
    assert values[changing.MAINTAINED, changing.THERE] > 0.9
    assert values[changing.PLAIN, changing.BOTH] > 0.9
    winners = found(changing.contradictions, stage)
    assert winners[changing.LEFT, changing.BOTH] == winners[changing.MAINTAINED, changing.BOTH]
    assert winners[changing.LEFT, changing.BOTH] < values[changing.LEFT, changing.BOTH]
    lazy = found(changing.contradictions, replace(stage, opened=Lazy.open))
    assert lazy[changing.MAINTAINED, changing.BOTH] == lazy[changing.LEFT, changing.BOTH]


def test_a_prompt_grows_less_than_the_history_and_holds_what_was_told_early(stage):
    """And it isn't the cap that holds it down; the last messages alone don't hold the early facts."""
    values = found(growth.growth, stage)
    assert values[growth.MEMORY, growth.GROWTH] < 0.6 * values[growth.FULL, growth.GROWTH]
    assert (
        values[growth.MEMORY, f"tokens at turn {SMALL.turns}"]
        < 0.5 * values[growth.FULL, f"tokens at turn {SMALL.turns}"]
    )
    assert values[growth.MEMORY, "largest, of the cap"] < 0.1
    assert values[growth.MEMORY, growth.THERE] > 0.9
    assert values[growth.WINDOW, growth.THERE] == 0


def test_each_setting_changes_one_value_and_what_it_moves_is_starred(stage, monkeypatch):
    base, *others = sensitivity.policies()
    assert len(dict(others)) == 2 * len(sensitivity.VARIED)
    for name, policy in others:
        changed = [
            f"{group}.{key}"
            for group, values in policy.model_dump().items()
            if isinstance(values, dict) and group != "classes"
            for key, value in values.items()
            if value != base[1].model_dump()[group][key]
        ]
        assert changed == [name.split()[0]]
    monkeypatch.setattr(sensitivity, "VARIED", ("archiving.below",))
    made = sensitivity.sensitivity(stage, lambda *_: None).figures()
    starred = {(f.system, f.measure) for f in made if f.moved}
    assert ("archiving.below doubled", sensitivity.AFTER) in starred
    assert not any(system == sensitivity.DEFAULT for system, _ in starred)


def test_the_same_seed_gives_the_same_figures_and_another_one_other_facts(tmp_path):
    wanted = Memory(only=("tags", "expiry"), sizes=replace(SMALL, users=1), seed=3)
    one, two = memory(wanted), memory(wanted)
    assert one == two
    one.save(tmp_path / "results.json")
    assert MemoryResults.load(tmp_path / "results.json") == one
    assert (one.settings["seed"], one.experiments) == (3, ["tags", "expiry"])
    assert one.value("expiry", expiry.MEMORY, expiry.AFTER).high > 0  # none of few may be chance
    with pytest.raises(EvaluationError, match="handed out after"):
        one.value("expiry", expiry.MEMORY, "no such")
    report = text(one, "meve bench memory")
    assert "## Expiry" in report
    assert "Seed 3" in report
    assert [f.text for f in facts(Random(1), 20)] != [f.text for f in facts(Random(2), 20)]
    assert len({f.question for f in facts(Random(1), MOST)}) == MOST


def test_what_is_no_result_or_no_experiment_is_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"experiment": "speed"}')
    with pytest.raises(EvaluationError, match="no results"):
        MemoryResults.load(tmp_path / "other.json")
    for only in ((), ("recall",)):
        with pytest.raises(EvaluationError, match=", ".join(EXPERIMENTS)):
            memory(Memory(only=only))


def test_a_table_puts_down_what_there_is_more_of():
    def figure(system, measure, value):
        interval = Interval(value=value, low=value, high=value, n=12)
        return Figure(experiment="e", system=system, measure=measure, interval=interval, share=True, moved=value == 1)

    few = [figure("memory", m, 0.5) for m in ("a", "b")] + [figure("plain", "a", 1.0)]
    assert grid(few) == (["", "memory", "plain"], [["a", "0.500", "1.000*"], ["b", "0.500", ""]])
    many = [figure(s, "a", 0.25) for s in ("x", "y")]
    assert grid(many, intervals=True) == (["setting", "a"], [[s, "0.250 [0.250, 0.250] (12)"] for s in ("x", "y")])


def test_shares_and_means_are_told_apart():
    tally = Tally("e", seed=1, against="base")
    for n in range(20):
        tally.add("base", "so", False)
        tally.add("other", "so", n < 15)
        tally.add("base", "size", 3.0)
    so, other, size = tally.figures()
    assert (so.share, so.interval.value, so.moved, other.moved) == (True, 0, False, True)
    assert 0.1 < so.interval.high < 0.2
    assert (size.share, size.interval.low, size.interval.high) == (False, 3, 3)
