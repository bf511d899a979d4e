"""Anchors and the windows around them."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meve.conversation.importance import find_windows, is_anchor, mask_windows
from meve.types import Entity


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 12))
def test_windows_contain_exactly_the_turns_near_an_anchor(anchors, reach):
    windows = find_windows(anchors, reach)
    near = [any(anchors[max(0, n - reach) : n + reach + 1]) for n in range(len(anchors))]
    assert mask_windows(windows, len(anchors)).tolist() == near
    assert [n for first, last in windows for n in range(first, last + 1)] == [
        n for n, is_near in enumerate(near) if is_near
    ]


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 12))
def test_adjacent_windows_are_joined(anchors, reach):
    windows = find_windows(np.array(anchors, dtype=np.bool_), reach)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(windows))


def test_default_reach_is_ten_turns():
    assert find_windows([n == 30 for n in range(100)]) == [(20, 40)]


def test_window_wider_than_the_conversation_contains_all_of_it():
    assert find_windows([False, True, False], 10**30) == [(0, 2)]


def test_speaker_name_alone_is_no_anchor():
    maria, date = Entity(kind="name", text="Maria", start=0), Entity(kind="date", text="1999", start=9)
    assert is_anchor([maria])
    assert not is_anchor([maria], {"maria"})
    assert is_anchor([maria, date], {"maria"})
    assert not is_anchor([])
    assert is_anchor([Entity(kind="concept", text="Maria", start=0)], {"maria"})
