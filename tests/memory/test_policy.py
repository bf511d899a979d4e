"""The policy: specified defaults, changes, and errors that name the key."""

from datetime import timedelta

import pytest

from meve.errors import PolicyError
from meve.memory import Policy
from meve.memory._feedback.usage_judge import adjust_score


def test_default_policy_matches_the_specification():
    policy = Policy()
    lifetimes = {name: rule.ttl for name, rule in policy.classes.items()}
    assert lifetimes == {
        "canonical": None,
        "factual": timedelta(days=30),
        "intent_bound": timedelta(hours=24),
        "ephemeral": timedelta(hours=6),
        "private": timedelta(days=7),
        "instruction": None,
    }
    boosts = {name: rule.boost for name, rule in policy.classes.items()}
    assert boosts == {
        "canonical": 1.0,
        "factual": 0.5,
        "intent_bound": 0.2,
        "ephemeral": -0.5,
        "private": 0.0,
        "instruction": 0.0,
    }
    assert [name for name, rule in policy.classes.items() if rule.share] == ["canonical"]
    assert [name for name, rule in policy.classes.items() if not rule.prune] == ["canonical", "instruction"]
    assert [name for name, rule in policy.classes.items() if rule.on_request] == ["private"]
    assert policy.chat_ttl == timedelta(days=7)
    weights = policy.ranking
    assert (weights.similarity, weights.reflection, weights.boost) == (0.7, 0.2, 0.1)
    assert (policy.reflection.start, policy.reflection.chat_start) == (50, 30)
    assert (policy.limits.per_user, policy.limits.recalls) == (10_000, 1_024)


def test_used_score_rises_by_ten_five_and_two_up_to_100():
    rules = Policy.paper().reflection
    scores = [50.0]
    while scores[-1] < 100:
        scores.append(adjust_score(scores[-1], "used", rules))
    assert scores == [50, 60, 70, 75, 80, 85, 90, 92, 94, 96, 98, 100]
    assert adjust_score(3, "unused", rules) == 0
    assert adjust_score(40, "contradicted", rules) == 10


def test_country_no_is_norway_in_yaml(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("personal_data: {action: private, regions: [SE, NO]}\naudit: {pseudonyms: true}\n")
    policy = Policy.from_yaml(file)
    assert (policy.personal_data.regions, policy.audit.pseudonyms) == (("SE", "NO"), True)
    file.write_text("audit: {pseudonyms: off}\n")
    assert Policy.from_yaml(file).audit.pseudonyms is False


def test_yaml_round_trip_keeps_the_policy(tmp_path):
    policy = Policy.from_dict({"classes": {"factual": {"ttl": "90s"}}, "ranking": {"threshold": 0.2}, "chat_ttl": None})
    file = tmp_path / "policy.yaml"
    file.write_text(policy.to_yaml())
    assert Policy.from_yaml(file) == policy
    assert policy.rule("factual").boost == 0.5


def test_empty_file_gives_the_default(tmp_path):
    (tmp_path / "policy.yaml").write_text("# nothing yet\n")
    assert Policy.from_yaml(tmp_path / "policy.yaml") == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes: {factual: {ttl: -3d}}", r"classes\.factual\.ttl: .*duration such as"),
        ("classes: {factual: {ttl: 0s}}", r"classes\.factual\.ttl: .*greater than 0"),
        ("classes: {factual: {ttl: soon}}", r"classes\.factual\.ttl: .*90s, 30m, 24h, 7d or 2w"),
        ("classes: {factul: {ttl: 3d}}", r"classes\.factul: .*'canonical', 'factual'"),
        ("classes: {factual: {ttll: 3d}}", r"classes\.factual\.ttll is unknown; known there: boost, on_request, prune"),
        ("classes: {private: {boost: 3}}", r"classes\.private\.boost: .*less than or equal to 1, got 3"),
        ("rankin: {}", r"rankin is unknown; known there: archiving, audit, chat_ttl, classes"),
        (
            "ranking: {similarit: 1}",
            r"ranking\.similarit is unknown; known there: boost, conflicts, outcome, reflection",
        ),
        ("reflection: {steps: [[90, 5], [70, 10]]}", "steps must rise"),
        ("limits: {per_user: many}", r"limits\.per_user: .*integer"),
        ("[1, 2]", "must hold keys and values, got: list"),
        ("a: [", "can't be read: .*line 1"),
        ("\tx", "can't be read"),
    ],
)
def test_invalid_file_names_the_key_and_valid_values(tmp_path, text, message):
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(PolicyError, match=f"(?s){message}"):
        Policy.from_yaml(tmp_path / "policy.yaml")


MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "".join(" " * n + "a:\n" for n in range(1_300)),
     "a: [" + "1," * 100_000 + "]", "x: " + "1" * 1_000_000, MERGES],
    ids=["lists", "mappings", "blocks", "lines", "values", "bytes", "merges"],
)  # fmt: skip
def test_file_is_refused_as_soon_as_it_is_too_large(tmp_path, text):
    """Without the limits, lists take seconds, and merged mappings for ever."""
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(PolicyError, match="must hold at most 1,000,000 bytes and 10,000 values, nested at most 64"):
        Policy.from_yaml(tmp_path / "policy.yaml")


def test_mapping_is_merged_into_another(tmp_path):
    (tmp_path / "policy.yaml").write_text("classes: {factual: &f {ttl: 90d}, ephemeral: {<<: *f, boost: 1}}")
    policy = Policy.from_yaml(tmp_path / "policy.yaml")
    assert policy.rule("ephemeral").ttl == policy.rule("factual").ttl == timedelta(days=90)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"nowhere\.yaml"):
        Policy.from_yaml(tmp_path / "nowhere.yaml")


def test_code_in_yaml_is_not_run(tmp_path):
    (tmp_path / "policy.yaml").write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(PolicyError, match="can't be read"):
        Policy.from_yaml(tmp_path / "policy.yaml")
