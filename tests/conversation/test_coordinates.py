"""Test coordinates, distances, attention, outcomes and conservation."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.conversation import PlacedTurn, TurnGraph
from meve.conversation.attention import (
    AttentionConfig,
    printed_ring_attention,
    question_attention,
    ring_attention,
    trajectory_attention,
    unified_attention,
)
from meve.conversation.conservation import (
    check_conservation,
    find_salience,
    measure_conservation,
    simulate_drift,
)
from meve.conversation.coordinates import (
    ABLATIONS,
    DIMENSIONS,
    Weights,
    compute_coordinates,
    count_components,
    trajectory_distances,
)
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ConfigurationError, ConservationError, ValidationError
from tests.conversation.talks import make_conversation

CONFIG = AttentionConfig()


def unit_vectors(count, dimension=8, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_coordinates_of_the_debugging_conversation():
    conversation = make_conversation()
    place = {turn.id: conversation.coordinates.of(n) for n, turn in enumerate(conversation.graph.turns)}
    assert place["1"]["depth"] == 0
    assert place["1"]["homogeneity"] == 1
    assert place["9"]["depth"] == 1
    assert place["4"]["depth"] == place["6"]["depth"] == 0.75
    assert (place["3"]["sibling"], place["5"]["sibling"], place["6"]["sibling"]) == (0, 1, 0)
    assert [place[str(n)]["temporal"] for n in (1, 5, 9)] == [0, 0.5, 1]
    assert place["3"]["branches"] == pytest.approx(2 / 3)
    assert place["3"]["replies"] < place["1"]["replies"] == 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 20), st.text(max_size=60)), min_size=1, max_size=20))
def test_every_coordinate_lies_between_0_and_1(rows):
    turns = [
        PlacedTurn(id=str(n), text=text, parents=(str(p),) if 0 <= p < n else ()) for n, (p, text) in enumerate(rows)
    ]
    coordinates = compute_coordinates(TurnGraph.from_turns(turns), unit_vectors(len(turns)))
    assert (coordinates.values >= 0).all()
    assert (coordinates.values <= 1).all()
    assert (coordinates.components >= 1).all()


def test_complex_turn_cannot_outweigh_the_other_dimensions():
    talk = ["Yes.", "No.", "and, or, but; if: when, while. " * 200]
    conversation = make_conversation(talk)
    assert conversation.coordinates.components.max() > 1_000
    complexity_alone = Weights(of={"complexity": 0.3})
    assert conversation.coordinates.distances(0, weights=complexity_alone).max() <= math.sqrt(0.3) + 1e-6


def test_components_count_clauses_names_numbers_and_code():
    counts = count_components(["Yes", "Call Ana", "Run `make test` at 10:30.", "It fails, because the token is old."])
    assert counts.tolist() == [1, 2, 4, 4]


def test_distance_is_the_weighted_root_of_squares():
    one, other = np.zeros(7, dtype=np.float32), np.array([[1, 0.5, 0, 0.25, 1, 1, 1]], dtype=np.float32)
    expected = math.sqrt(1.0 * 1 + 0.5 * 0.25 + 0.8 * 0.0625 + 0.3 * 1)
    assert trajectory_distances(one, other, Weights()) == pytest.approx([expected])


@pytest.mark.parametrize(("count", "names"), [(3, {"depth", "temporal", "homogeneity"}), (7, set(DIMENSIONS))])
def test_ablations_name_their_dimensions(count, names):
    assert set(ABLATIONS[count]) == names
    Weights(of=ABLATIONS[count])


@pytest.mark.parametrize("weight", [-1, float("nan"), True, "1"])
def test_bad_weight_is_refused(weight):
    with pytest.raises(ConfigurationError, match="the weight of depth"):
        Weights(of={"depth": weight})


def test_coordinates_take_time_in_proportion_to_the_turns():
    """50,000 turns take some five to nine times as long as 10,000: quadratic time would be 25 times as long."""
    random = np.random.default_rng(0)
    texts = [f"Turn {n} asks Ana about the login, because it fails at 10:{n % 60:02}." for n in range(50_000)]
    turns = [
        PlacedTurn(id=str(n), text=text, parents=(str(int(random.integers(max(0, n - 20), n))),) if n else ())
        for n, text in enumerate(texts)
    ]
    vectors = random.normal(size=(50_000, 384)).astype(np.float32)

    def measure(count):
        start = time.process_time()
        compute_coordinates(TurnGraph.from_turns(turns[:count]), vectors[:count])
        return time.process_time() - start

    assert min(measure(50_000) for _ in range(3)) < 15 * min(measure(10_000) for _ in range(3))


def cosines_of(count):
    vectors = unit_vectors(count)
    return vectors @ vectors.T


def test_directed_rings_differ_and_printed_ones_do_not():
    cosines = cosines_of(9)
    causal, inverse = (ring_attention(cosines, each, CONFIG) for each in ("causal", "inverse"))
    assert not np.allclose(causal, inverse)
    printed = [printed_ring_attention(cosines, each, CONFIG) for each in ("causal", "inverse")]
    np.testing.assert_array_equal(*printed)


def test_causal_ring_sees_no_later_turn_and_inverse_no_earlier_one():
    cosines = cosines_of(6)
    assert not np.triu(ring_attention(cosines, "causal", CONFIG), 1).any()
    assert not np.tril(ring_attention(cosines, "inverse", CONFIG), -1).any()


def test_every_row_of_attention_sums_to_its_weights():
    cosines, distances = cosines_of(7), np.abs(np.subtract.outer(np.arange(7), np.arange(7))) / 7
    np.testing.assert_allclose(trajectory_attention(cosines, distances, CONFIG).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(unified_attention(cosines, distances, CONFIG).sum(axis=1), 1, rtol=1e-5)


def test_attention_of_a_question_equals_its_row_in_the_matrix():
    cosines, distances = cosines_of(8), np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 8
    config = AttentionConfig(inverse=0.0)
    whole = unified_attention(cosines, distances, config)[7]
    row = question_attention(cosines[7], 7 - np.arange(8), distances[7], config)
    np.testing.assert_allclose(row, whole, rtol=1e-4)


def test_later_turns_count_for_a_question_in_the_middle():
    cosines = np.full(5, 0.5)
    row = question_attention(cosines, 2 - np.arange(5), np.zeros(5), AttentionConfig(trajectory=0.0))
    assert row[3] > row[4] > 0
    assert row[2] > row[1] > row[0] > 0
    assert row.sum() == pytest.approx(0.8)


@pytest.mark.parametrize(("name", "value"), [("temperature", 0), ("decay", -1), ("causal", float("nan"))])
def test_bad_attention_setting_is_refused(name, value):
    with pytest.raises(ConfigurationError, match=name):
        AttentionConfig(**{name: value})


outcomes = st.lists(st.floats(0, 1), max_size=30)


def collect(values):
    statistics = OutcomeStatistics()
    for value in values:
        statistics = statistics.add(value)
    return statistics


@settings(max_examples=80, deadline=None)
@given(outcomes, outcomes)
def test_merged_outcomes_equal_those_recorded_in_one_series(one, other):
    merged, whole = collect(one).merge(collect(other)), collect([*one, *other])
    assert merged.count == whole.count == len(one) + len(other)
    assert merged.mean == pytest.approx(whole.mean, abs=1e-9)
    assert merged.variance == pytest.approx(whole.variance, abs=1e-9)
    if whole.count:
        assert whole.mean == pytest.approx(np.mean([*one, *other]), abs=1e-9)
        assert whole.variance == pytest.approx(np.var([*one, *other]), abs=1e-9)
        assert 0 <= whole.expected <= 1


def test_variance_of_close_outcomes_keeps_its_digits():
    values = [0.5 + 1e-9 * (n % 2) for n in range(1_000)]
    assert collect(values).variance == pytest.approx(2.5e-19, rel=1e-3)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "1", None])
def test_outcome_outside_of_its_range_is_refused(value):
    with pytest.raises(ValidationError, match="outcome must be a number between 0 and 1"):
        OutcomeStatistics().add(value)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20), st.integers(0, 1_000))
def test_bounds_of_the_metrics_hold(count, seed):
    random = np.random.default_rng(seed)
    metrics = measure_conservation(unit_vectors(count, seed=seed), random.uniform(0, 1, count) + 1e-9)
    assert metrics.magnitude == pytest.approx(1, abs=1e-6)
    assert -1e-9 <= metrics.energy <= 0.5 + 1e-6
    assert -1e-9 <= metrics.information <= math.log(count) + 1e-9


def test_energy_reaches_both_of_its_bounds():
    same, opposite = np.ones((3, 4)), np.array([[1.0, 0], [-1, 0]])
    assert measure_conservation(same, np.ones(3)).energy == pytest.approx(0.5)
    assert measure_conservation(opposite, np.ones(2)).energy == pytest.approx(0)


def test_information_grows_for_equal_weights_and_may_fall_for_others():
    def information(weights):
        return measure_conservation(unit_vectors(len(weights)), np.array(weights)).information

    assert information([1, 1, 1]) > information([1, 1])
    assert information([1, 1, 100]) < information([1, 1])


def test_changed_magnitude_is_an_error_beyond_the_threshold():
    before = measure_conservation(np.eye(2), np.ones(2))
    check_conservation(before, measure_conservation(np.eye(2) * 1.04, np.ones(2)))
    with pytest.raises(ConservationError, match=r"from 1 to 1.06: at most 5.00% is allowed"):
        check_conservation(before, measure_conservation(np.eye(2) * 1.06, np.ones(2)))


@pytest.mark.parametrize("salience", [[1], [0, 0], [1, -1], [1, float("nan")]])
def test_bad_salience_is_refused(salience):
    with pytest.raises(ValidationError, match="salience"):
        measure_conservation(np.eye(2), np.array(salience))


def test_thirty_days_of_growth_keep_magnitude_and_energy():
    states = simulate_drift(30)
    assert len(states) == 31
    assert max(abs(state.magnitude - 1) for state in states) < 1e-6
    assert abs(states[-1].energy / states[0].energy - 1) < 0.25
    information = [state.information for state in states]
    assert information == sorted(information)
    check_conservation(states[0], states[-1])


def test_salience_favours_complex_turns_with_replies_and_good_outcomes():
    conversation = make_conversation()
    plain = find_salience(conversation.coordinates)
    recorded = [OutcomeStatistics()] * 9
    recorded[3] = recorded[3].add(1.0).add(1.0)
    better = find_salience(conversation.coordinates, recorded)
    assert plain.sum() == pytest.approx(1)
    assert better[3] > plain[3]
    assert plain.max() / plain.min() <= 4
