"""The memory experiments: what each finds, and that each detects a faulty memory."""

import gzip
import hashlib
import json
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import DatasetError, EvaluationError
from meve.evaluation.experiments.memory import (
    contradictions,
    expiry,
    extraction,
    false_facts,
    isolation,
    long_memories,
    prompt_size,
    sensitivity,
    stories,
    updates,
    user_facts,
    wrong_tags,
)
from meve.evaluation.experiments.memory.environment import Environment, Sizes
from meve.evaluation.experiments.memory.memory_results import Figure, MemoryResults, Tally
from meve.evaluation.experiments.memory.suite import EXPERIMENTS, MemoryBenchOptions, _runnable, run_memory
from meve.evaluation.experiments.memory.synthetic_facts import MAX_FACTS, make_facts
from meve.evaluation.report.memory_report import format_report, tabulate_figures
from meve.evaluation.statistics import Interval
from meve.memory import GovernedMemory, Policy, UpdateVerdict

SMALL = Sizes(
    users=2, facts=14, secrets=6, false=5, rounds=2, changing=8, changes=1, pairs=12, stories=2, talks=1, turns=40
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws")]


@pytest.fixture(scope="module")
def environment():
    return Environment(embedder=resolve_embedder(None), tokens=resolve_tokens(None), sizes=SMALL)


def run_experiment(experiment, environment):
    """Return an experiment's values by system and measure."""
    result = experiment(environment, lambda *_: None)
    tallies = result if isinstance(result, list) else [result]
    return {(f.system, f.measure): f.interval.value for tally in tallies for f in tally.figures()}


def open_with_policy(policy, kind=GovernedMemory):
    """Return a function that opens memories under the policy."""
    return lambda file, **parts: kind.open(file, **{**parts, "policy": Policy.from_dict(policy)})


class Immortal(GovernedMemory):
    """A memory that ignores times to live."""

    def add(self, text, **values):
        return super().add(text, **{**values, "ttl": None})


class Promiscuous(GovernedMemory):
    """A memory that mixes all users up."""

    def add(self, text, *, user_id, id=None, **values):
        return super().add(text, user_id="everybody", id=f"{user_id}-{id}", **values)

    def search(self, query, *, user_id, **values):
        return super().search(query, user_id="everybody", **values)


class Lazy(GovernedMemory):
    """A memory without maintenance."""

    def maintain(self, **_):
        return None


class Indifferent:
    """A judge that keeps everything."""

    def judge(self, older, newer):
        return UpdateVerdict(relation="different")


def open_without_updates(file, **parts):
    """Open a memory that never replaces a record."""
    policy = Policy.from_dict({"ranking": {"conflicts": True}})
    return GovernedMemory.open(file, **{**parts, "policy": policy, "updates": Indifferent()})


def test_expired_secret_is_not_returned(environment):
    values = run_experiment(expiry.run_expiry, environment)
    assert values[expiry.MEMORY, expiry.BEFORE] == 1
    assert values[expiry.MEMORY, expiry.AFTER] == values[expiry.MEMORY, expiry.LEFT] == 0
    assert values[expiry.PLAIN, expiry.AFTER] > 0.9


def test_memory_without_expiry_is_detected(environment):
    values = run_experiment(expiry.run_expiry, replace(environment, open_memory=Immortal.open))
    assert 0 < values[expiry.MEMORY, expiry.AFTER] < 1
    names = ("factual", "intent_bound", "ephemeral", "private")
    classes = {"classes": {name: {"ttl": None} for name in names}}
    immortal = open_with_policy(classes, Immortal)
    all_values = run_experiment(expiry.run_expiry, replace(environment, open_memory=immortal))
    assert all_values[expiry.MEMORY, expiry.AFTER] == all_values[expiry.MEMORY, expiry.LEFT] == 1
    paths = ("search", "prompt", "explain", "list", "export")
    assert {all_values[expiry.MEMORY, f"by {path}"] for path in paths} == {1}


def test_memory_that_only_hides_what_has_expired_is_detected(environment):
    values = run_experiment(expiry.run_expiry, replace(environment, open_memory=Lazy.open))
    assert (values[expiry.MEMORY, expiry.AFTER], values[expiry.MEMORY, expiry.LEFT]) == (0, 1)


def test_users_get_only_their_own_facts(environment):
    values = run_experiment(isolation.run_isolation, environment)
    assert values[isolation.MEMORY, isolation.LEAK] == values[isolation.MEMORY, isolation.PRIVATE] == 0
    assert values[isolation.MEMORY, isolation.OWN] > 0.9
    assert values[isolation.ONE, isolation.LEAK] > 0.9


def test_memory_that_mixes_users_is_detected(environment):
    values = run_experiment(isolation.run_isolation, replace(environment, open_memory=Promiscuous.open))
    assert values[isolation.MEMORY, isolation.LEAK] > 0.9


def test_memory_that_returns_private_facts_is_detected(environment):
    loose = open_with_policy({"classes": {"private": {"on_request": False}}})
    values = run_experiment(isolation.run_isolation, replace(environment, open_memory=loose))
    assert values[isolation.MEMORY, isolation.PRIVATE] > 0.9


def test_answers_lower_false_facts(environment):
    values = run_experiment(false_facts.run_false_facts, environment)
    first, last = (f"{false_facts.ABOVE}, round {n}" for n in (0, SMALL.rounds))
    assert values[false_facts.RIGHT, "false flagged"] > values[false_facts.NONE, "false flagged"] == 0
    assert values[false_facts.NONE, last] == values[false_facts.NONE, first]
    assert values[false_facts.RIGHT, last] <= values[false_facts.RIGHT, first]
    assert values[false_facts.RIGHT, last] <= values[false_facts.FIRST, last]


def test_policy_without_reflection_changes_no_ranks(environment):
    still = {"reflection": {"steps": [[100, 0]], "unused": 0, "contradicted": 0}, "ranking": {"conflicts": True}}
    values = run_experiment(false_facts.run_false_facts, replace(environment, open_memory=open_with_policy(still)))
    first, last = (f"{false_facts.ABOVE}, round {n}" for n in (0, SMALL.rounds))
    assert values[false_facts.RIGHT, last] == values[false_facts.RIGHT, first]
    assert values[false_facts.RIGHT, "others pruned"] == 0


def test_wrong_tag_hides_less_from_memory_than_from_a_filter(environment):
    values = run_experiment(wrong_tags.run_tags, environment)
    right, _, wrong, unknown, _ = wrong_tags.CASES
    assert values[wrong_tags.FILTER, right] > 0.9
    assert values[wrong_tags.FILTER, wrong] == values[wrong_tags.FILTER, unknown] == 0
    assert values[wrong_tags.MEMORY, wrong] > 0.5
    assert values[wrong_tags.MEMORY, unknown] > 0.9


def test_maintenance_resolves_contradictions(environment):
    values = run_experiment(
        contradictions.run_contradictions,
        replace(environment, open_memory=open_with_policy({"ranking": {"conflicts": True}})),
    )
    assert values[contradictions.MAINTAINED, contradictions.BOTH] < values[contradictions.LEFT, contradictions.BOTH]
    assert values[contradictions.MAINTAINED, contradictions.THERE] > 0.9
    assert values[contradictions.PLAIN, contradictions.BOTH] > 0.9
    winners = run_experiment(contradictions.run_contradictions, environment)
    assert winners[contradictions.LEFT, contradictions.BOTH] >= winners[contradictions.MAINTAINED, contradictions.BOTH]
    assert winners[contradictions.LEFT, contradictions.BOTH] < values[contradictions.LEFT, contradictions.BOTH]
    lazy = run_experiment(contradictions.run_contradictions, replace(environment, open_memory=Lazy.open))
    assert lazy[contradictions.MAINTAINED, contradictions.BOTH] == lazy[contradictions.LEFT, contradictions.BOTH]


def test_updates_hide_older_values_and_keep_different_facts(environment):
    environment = replace(environment, sizes=replace(environment.sizes, pairs=40))
    values = run_experiment(updates.run_updates, environment)
    assert values[updates.HALVES["dev"], updates.CHANGED] > 0.2
    for half in updates.HALVES.values():
        assert values[half, updates.COMPATIBLE] > 0.9
        assert values[half, updates.NEAR] == 1
        assert values[half, updates.COMPATIBLE_SUPERSEDED] <= 0.1
        assert values[half, updates.NEAR_SUPERSEDED] == 0
    lazy = run_experiment(updates.run_updates, replace(environment, open_memory=open_without_updates))
    assert lazy[updates.HALVES["dev"], updates.CHANGED] < 0.1


def test_correct_answers_lose_facts_under_the_published_policy_only(environment):
    values = run_experiment(stories.run_stories, environment)
    for half in stories.HALVES.values():
        assert values[f"{half}, default policy", stories.LOST] == 0
        assert values[f"{half}, default policy", stories.UNFOUND] < 0.1
        assert values[f"{half}, published policy", stories.LOST] > 0.5


def test_prompt_grows_less_than_history_and_keeps_early_facts(environment):
    values = run_experiment(prompt_size.run_prompt_size, environment)
    assert values[prompt_size.MEMORY, prompt_size.GROWTH] < 0.6 * values[prompt_size.FULL, prompt_size.GROWTH]
    assert (
        values[prompt_size.MEMORY, f"tokens at turn {SMALL.turns}"]
        < 0.5 * values[prompt_size.FULL, f"tokens at turn {SMALL.turns}"]
    )
    assert values[prompt_size.MEMORY, "largest, of the cap"] < 0.1
    assert values[prompt_size.MEMORY, prompt_size.THERE] > 0.9
    assert values[prompt_size.WINDOW, prompt_size.THERE] == 0


def test_sensitivity_changes_one_value_a_setting(environment, monkeypatch):
    base, *others = sensitivity.vary_policies()
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
    result = sensitivity.run_sensitivity(environment, lambda *_: None).figures()
    starred = {(f.system, f.measure) for f in result if f.moved}
    assert ("archiving.below doubled", sensitivity.AFTER) in starred
    assert not any(system == sensitivity.DEFAULT for system, _ in starred)


def test_same_seed_gives_same_figures(tmp_path):
    options = MemoryBenchOptions(only=("tags", "expiry"), sizes=replace(SMALL, users=1), seed=3)
    one, two = run_memory(options), run_memory(options)
    assert one == two
    one.save(tmp_path / "results.json")
    assert MemoryResults.load(tmp_path / "results.json") == one
    assert (one.settings["seed"], one.experiments) == (3, ["tags", "expiry"])
    assert one.value("expiry", expiry.MEMORY, expiry.AFTER).high > 0  # none of few may be chance
    with pytest.raises(EvaluationError, match="handed out after"):
        one.value("expiry", expiry.MEMORY, "no such")
    report = format_report(one, "meve bench memory")
    assert "## Expiry" in report
    assert "Seed 3" in report
    assert [f.text for f in make_facts(Random(1), 20, "ann")] != [f.text for f in make_facts(Random(2), 20, "ann")]
    assert len({f.question for f in make_facts(Random(1), MAX_FACTS, "ann")}) == MAX_FACTS


def test_invalid_results_and_experiments_are_rejected(tmp_path):
    (tmp_path / "other.json").write_text('{"experiment": "speed"}')
    with pytest.raises(EvaluationError, match="results"):
        MemoryResults.load(tmp_path / "other.json")
    for only in ((), ("recall",)):
        with pytest.raises(EvaluationError, match=", ".join(EXPERIMENTS)):
            run_memory(MemoryBenchOptions(only=only))


def write_extraction_data(folder, text, statement):
    """Write a turn of each set, and labels by which the first sentence of each is a fact."""
    for name in ("locomo", "train"):
        (folder / name).mkdir()
    turns = [{"dia_id": "D1:1", "text": text}, {"dia_id": "D1:2", "text": "My PIN is 4711."}]
    locomo = {"conversation_id": "c", "sessions": [{"turns": turns}]}
    (folder / "locomo" / "conversations.jsonl").write_text(json.dumps(locomo))
    with gzip.open(folder / "train" / "sgd_memory.jsonl.gz", "wt") as file:
        file.write(json.dumps({"group": "g", "positive": statement, "negatives": []}))
    keys = (
        {"set": "locomo", "conversation": "c", "turn": "D1:1", "keep": [[0, text.index(".") + 1]]},
        {"set": "sgd_memory", "group": "g", "sha256": hashlib.sha256(statement.encode()).hexdigest()[:16], "keep": []},
    )
    labels = folder / "labels.jsonl"
    labels.write_text("".join(json.dumps({"half": "test", **key}) + "\n" for key in keys))
    return labels


def test_extraction_counts_sentences_against_labels_and_texts_taken_for_secrets(environment, tmp_path):
    labels = write_extraction_data(tmp_path, "I moved to Oslo. My cat is fat. I see.", "Book me a table.")
    run = partial(extraction.run_extraction, labels=labels)
    values = run_experiment(run, replace(environment, data=tmp_path))
    half = f"LoCoMo, {extraction.HALVES['test']}"
    assert values[half, extraction.PRECISION] == 0.5
    assert values[half, extraction.RECALL] == 1
    assert values[extraction.TAKEN, extraction.LABELLED] == 0
    assert values[extraction.TAKEN, extraction.OTHERS] == 1


def test_extraction_needs_the_labelled_turns(environment, tmp_path):
    with pytest.raises(EvaluationError, match="needs --data DIR"):
        extraction.run_extraction(environment, lambda *_: None)
    labels = write_extraction_data(tmp_path, "I moved to Oslo.", "Book me a table.")
    labels.write_text(labels.read_text().replace("D1:1", "D9:9"))
    with pytest.raises(DatasetError, match=r"labels.jsonl line 1: the data has no turn 'D9:9' in 'c' of locomo"):
        extraction.run_extraction(replace(environment, data=tmp_path), lambda *_: None, labels=labels)


def test_long_memories_counts_what_maintenance_closes_among_all_statements(environment, tmp_path):
    """Of each speaker by himself: Ben's new home ends nothing that Ann told."""
    said = [
        ("Ann", "I live in Berlin. I have a dog."),
        ("Ben", "I live in Rome. I live in Milan."),
        ("Ann", "I like tea. I like tea."),
        ("Ann", "I live in Hamburg."),
    ]
    turns = [{"speaker": speaker, "text": text} for speaker, text in said]
    conversation = {"conversation_id": "c", "speakers": ["Ann", "Ben"], "sessions": [{"turns": turns}]}
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "conversations.jsonl").write_text(json.dumps(conversation))
    values = run_experiment(long_memories.run_long_memories, replace(environment, data=tmp_path))
    assert values[long_memories.TUNING, long_memories.CLOSED] == pytest.approx(2 / 6)
    with pytest.raises(EvaluationError, match="needs --data DIR"):
        long_memories.run_long_memories(environment, lambda *_: None)


def test_experiment_runs_by_default_only_with_its_files(tmp_path):
    assert "extraction" not in _runnable(None)
    assert "extraction" not in _runnable(tmp_path)
    write_extraction_data(tmp_path, "I moved to Oslo.", "Book me a table.")
    assert _runnable(tmp_path) == list(EXPERIMENTS)


def test_table_puts_the_longer_list_down():
    def figure(system, measure, value):
        interval = Interval(value=value, low=value, high=value, n=12)
        return Figure(experiment="e", system=system, measure=measure, interval=interval, share=True, moved=value == 1)

    few = [figure("memory", m, 0.5) for m in ("a", "b")] + [figure("plain", "a", 1.0)]
    assert tabulate_figures(few) == (["", "memory", "plain"], [["a", "0.500", "1.000*"], ["b", "0.500", ""]])
    many = [figure(s, "a", 0.25) for s in ("x", "y")]
    assert tabulate_figures(many, intervals=True) == (
        ["setting", "a"],
        [[s, "0.250 [0.250, 0.250] (12)"] for s in ("x", "y")],
    )


def test_shares_and_means_have_their_own_intervals():
    tally = Tally("e", seed=1, against="base")
    for n in range(20):
        tally.add("base", "so", False)
        tally.add("other", "so", n < 15)
        tally.add("base", "size", 3.0)
    so, other, size = tally.figures()
    assert (so.share, so.interval.value, so.moved, other.moved) == (True, 0, False, True)
    assert 0.1 < so.interval.high < 0.2
    assert (size.share, size.interval.low, size.interval.high) == (False, 3, 3)


def test_user_facts_are_asked_for_when_they_are_said_and_with_both_embedders(environment, tmp_path):
    facts, questions = tmp_path / "facts.jsonl", tmp_path / "questions.jsonl"
    rows = (
        ("f1", "The car is red.", "2026-03-02T10:00:00+00:00"),
        ("f2", "The car needs new brakes.", "2026-03-10T10:00:00+00:00"),
        ("f3", "We sold the car.", "2026-06-01T10:00:00+00:00"),
    )
    facts.write_text("".join(json.dumps({"user": "u", "id": i, "text": t, "said_at": at}) + "\n" for i, t, at in rows))
    asked = {"question": "What did I say last week about the car?", "gold": ["f2"], "asked_at": "2026-03-18T10:00:00Z"}
    both = {"question": "What became of the car and its brakes?", "gold": ["f2", "f3"]}
    questions.write_text("".join(json.dumps({"user": "u", "half": "test", **row}) + "\n" for row in (both, asked)))
    values = run_experiment(partial(user_facts.run_user_facts, facts=facts, questions=questions), environment)
    for name in ("minilm", "static"):
        memory = f"{user_facts.MEMORY}, {name}"
        assert values[memory, f"{user_facts.FIRST}, held-out"] == 1
        assert values[memory, f"{user_facts.IN_FIVE}, held-out"] == 1
    facts.write_text(facts.read_text().replace("2026-03-02T10:00:00+00:00", "in March"))
    with pytest.raises(DatasetError, match=r"line 1: the field 'said_at' must be a time with its zone, got 'in March'"):
        run_experiment(partial(user_facts.run_user_facts, facts=facts, questions=questions), environment)
