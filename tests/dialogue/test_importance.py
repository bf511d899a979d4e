"""Windows around anchors."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meve.conversation.importance import names_something, windows, within
from meve.types import Entity


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 12))
def test_windows_hold_what_is_near_an_anchor_and_nothing_else(anchors, reach):
    """Turn by turn, as the rule says; and what they tell of each turn agrees with them."""
    stretches = windows(anchors, reach)
    near = [any(anchors[max(0, n - reach) : n + reach + 1]) for n in range(len(anchors))]
    assert within(stretches, len(anchors)).tolist() == near
    assert [n for first, last in stretches for n in range(first, last + 1)] == [
        n for n, is_near in enumerate(near) if is_near
    ]


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 12))
def test_windows_that_meet_are_one(anchors, reach):
    """Between two of them lies at least one turn."""
    stretches = windows(np.array(anchors, dtype=np.bool_), reach)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(stretches))


def test_ten_turns_before_and_after():
    """Unless told otherwise."""
    assert windows([n == 30 for n in range(100)]) == [(20, 40)]


def test_a_window_may_be_wider_than_any_conversation():
    """Then it is all of it."""
    assert windows([False, True, False], 10**30) == [(0, 2)]


def test_to_be_addressed_is_no_key_fact():
    """The name of somebody who talks makes no anchor; anything beside it does."""
    maria, date = Entity(kind="name", text="Maria", start=0), Entity(kind="date", text="1999", start=9)
    assert names_something([maria])
    assert not names_something([maria], {"maria"})
    assert names_something([maria, date], {"maria"})
    assert not names_something([])
    assert names_something([Entity(kind="concept", text="Maria", start=0)], {"maria"})
