"""Intervals: the same from the same, honest in size, and paired where they should be."""

import numpy as np
import pytest

from meve.evaluation.statistics import interval, mean_interval, paired_difference, share_interval


def test_the_same_values_and_seed_give_the_same_interval():
    values = np.random.default_rng(1).random(50).tolist()
    assert mean_interval(values, seed=7) == mean_interval(values, seed=7)
    assert mean_interval(values, seed=7) != mean_interval(values, seed=8)


def test_equal_values_leave_no_doubt():
    found = mean_interval([0.5] * 20, seed=0)
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.5, 0.5, 20)


def test_an_interval_is_about_as_wide_as_theory_says():
    values = np.random.default_rng(2).normal(size=400).tolist()
    found = mean_interval(values, seed=0)
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.2)


def test_nineteen_of_twenty_intervals_hold_the_true_mean():
    rng = np.random.default_rng(3)
    held = 0
    for trial in range(200):
        found = mean_interval(rng.random(60).tolist(), seed=trial)
        held += found.low <= 0.5 <= found.high
    assert 180 <= held <= 199


def test_a_paired_difference_sees_what_two_intervals_do_not():
    rng = np.random.default_rng(4)
    old = rng.random(100)
    new = old + 0.02
    one, other = mean_interval(old.tolist(), seed=0), mean_interval(new.tolist(), seed=0)
    assert one.high > other.low
    assert paired_difference(old.tolist(), new.tolist(), seed=0).excludes_zero


def test_lists_that_do_not_pair_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        paired_difference([1.0, 2.0], [1.0], seed=0)


def test_a_statistic_that_some_draws_do_not_allow():
    found = interval(3, lambda drawn: None if 0 not in drawn else 1.0, seed=0)
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)
    assert interval(3, lambda _: None, seed=0) is None


def test_a_share_of_none_or_all_is_not_certain():
    """Wilson's interval; the figures for 8 of 40 are his formula's, computed by hand."""
    none, all_of_them, some = share_interval(0, 50), share_interval(50, 50), share_interval(8, 40)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(0.0714, abs=1e-4)
    assert (all_of_them.low, all_of_them.high) == pytest.approx((1 - none.high, 1))
    assert (some.low, some.high) == (pytest.approx(0.1050, abs=1e-4), pytest.approx(0.3476, abs=1e-4))
