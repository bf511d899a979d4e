"""Confidence intervals."""

import numpy as np
import pytest

from meve.evaluation.statistics import bootstrap_interval, mean_interval, paired_difference, share_interval


def test_same_values_and_seed_give_same_interval():
    values = np.random.default_rng(1).random(50).tolist()
    assert mean_interval(values, seed=7) == mean_interval(values, seed=7)
    assert mean_interval(values, seed=7) != mean_interval(values, seed=8)


def test_equal_values_have_zero_width():
    interval = mean_interval([0.5] * 20, seed=0)
    assert (interval.value, interval.low, interval.high, interval.n) == (0.5, 0.5, 0.5, 20)


def test_interval_width_agrees_with_theory():
    values = np.random.default_rng(2).normal(size=400).tolist()
    interval = mean_interval(values, seed=0)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 / 20, rel=0.2)


def test_about_95_percent_of_intervals_contain_the_mean():
    rng = np.random.default_rng(3)
    covered = 0
    for trial in range(200):
        interval = mean_interval(rng.random(60).tolist(), seed=trial)
        covered += interval.low <= 0.5 <= interval.high
    assert 180 <= covered <= 199


def test_paired_difference_is_more_sensitive_than_two_intervals():
    rng = np.random.default_rng(4)
    old = rng.random(100)
    new = old + 0.02
    one, other = mean_interval(old.tolist(), seed=0), mean_interval(new.tolist(), seed=0)
    assert one.high > other.low
    assert paired_difference(old.tolist(), new.tolist(), seed=0).excludes_zero


def test_lists_of_different_length_are_rejected():
    with pytest.raises(ValueError, match="shorter"):
        paired_difference([1.0, 2.0], [1.0], seed=0)


def test_draws_without_a_statistic_are_left_out():
    interval = bootstrap_interval(3, lambda drawn: None if 0 not in drawn else 1.0, seed=0)
    assert interval is not None
    assert (interval.low, interval.high) == (1.0, 1.0)
    assert bootstrap_interval(3, lambda _: None, seed=0) is None


def test_share_of_none_or_all_has_a_width():
    none, all_of_them, some = share_interval(0, 50), share_interval(50, 50), share_interval(8, 40)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(0.0714, abs=1e-4)
    assert (all_of_them.low, all_of_them.high) == pytest.approx((1 - none.high, 1))
    assert (some.low, some.high) == (pytest.approx(0.1050, abs=1e-4), pytest.approx(0.3476, abs=1e-4))
