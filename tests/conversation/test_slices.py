"""Test which turns a question may reach, and that nothing else is searched."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.conversation import PlacedTurn, SlicePolicy, TurnGraph
from meve.conversation.slices import LocalAuthority, Slice, cut_slice
from meve.errors import AdmissibilityError, ConfigurationError, EmptyCorpusError, UnknownIdError
from tests.conversation.talks import line, make_conversation, records

PAPER = SlicePolicy.paper()


def test_published_slice_of_the_debugging_conversation_closes_what_follows_near_siblings():
    cut = make_conversation().cut_slice("9", PAPER)
    assert cut.turns == ("1", "2", "3", "5", "6", "7", "9")
    assert {(each.turn, each.beside, each.reason) for each in cut.closed} == {
        ("4", "3", "priority"), ("8", "7", "priority"),
    }  # fmt: skip


def test_default_slice_holds_only_the_ancestors():
    cut = make_conversation().cut_slice("9")
    assert cut.turns == ("1", "2", "5", "6", "9")
    assert {(each.turn, each.edge, each.reason, each.turns) for each in cut.closed} == {
        ("3", "sibling", "edge", 2), ("7", "sibling", "edge", 2),
    }  # fmt: skip


def test_default_slice_from_the_middle_sees_nothing_later():
    assert make_conversation().cut_slice("2").turns == ("1", "2")


def test_all_ancestors_of_a_long_line_are_admitted():
    conversation = make_conversation(line(3_000))
    assert len(conversation.cut_slice("t2999").turns) == 3_000


def test_replies_below_the_anchor_fade():
    assert len(make_conversation(line(30)).cut_slice("t0", PAPER).turns) == 7


def test_only_the_nearest_siblings_are_admitted_and_all_others_are_named():
    rows = [("q", None, "", "q"), *((f"a{n}", "q", "", "answer") for n in range(7))]
    cut = make_conversation(records(rows)).cut_slice("a3", PAPER)
    assert cut.turns == ("q", "a2", "a3", "a4")
    assert {each.turn for each in cut.closed} == {"a0", "a1", "a5", "a6"}
    assert {each.turn: each.priority for each in cut.closed} == {"a0": 0.125, "a1": 0.25, "a5": 0.25, "a6": 0.125}


def test_lower_least_priority_admits_near_branches_with_what_follows_them():
    branches = [(f"{b}{n}", f"{b}{n - 1}" if n else "q", "", "text") for b in "abcdx" for n in range(12)]
    cut = make_conversation(records([("q", None, "", "q"), *branches])).cut_slice(
        "x0", SlicePolicy(child=0.9, sibling=0.5, min_priority=0.2)
    )
    seen = {branch: sum(turn[0] == branch for turn in cut.turns) for branch in "abcd"}
    assert seen == {"a": 0, "b": 0, "c": 3, "d": 9}


def test_full_slice_keeps_the_highest_priorities():
    cut = make_conversation().cut_slice("9", SlicePolicy(max_turns=3))
    assert cut.turns == ("5", "6", "9")
    assert ("2", "max_turns") in {(each.turn, each.reason) for each in cut.closed}


def test_phase_weights_close_turns():
    talk = [{"id": "a", "text": "a", "phase": "draft"}, {"id": "b", "text": "b"}, {"id": "c", "text": "c"}]
    cut = make_conversation(talk).cut_slice("c", SlicePolicy(phases={"draft": 0.1}))
    assert cut.turns == ("b", "c")
    assert [(each.turn, each.edge, each.reason) for each in cut.closed] == [("a", "parent", "priority")]


def test_turn_with_two_parents_sees_both_lines():
    talk = [
        {"id": "a", "text": "a"}, {"id": "b", "text": "b", "parent": None}, {"id": "x", "text": "x", "parent": "b"},
        {"id": "c", "text": "c", "parents": ["a", "b"]},
    ]  # fmt: skip
    assert make_conversation(talk).cut_slice("c").turns == ("a", "b", "c")


def test_other_conversation_is_never_reached():
    talk = [{"id": "a", "text": "a"}, {"id": "b", "text": "b", "parent": None}]
    assert make_conversation(talk).cut_slice("a", SlicePolicy(min_priority=0.01)).turns == ("a",)


graphs = st.lists(st.integers(-1, 25), min_size=1, max_size=25)


def make_graph(parents):
    return TurnGraph.from_turns(
        [PlacedTurn(id=str(n), text="x", parents=(str(p),) if 0 <= p < n else ()) for n, p in enumerate(parents)]
    )


@settings(max_examples=80, deadline=None)
@given(graphs, st.integers(0, 24))
def test_line_equals_the_path_in_any_graph(parents, at):
    graph = make_graph(parents)
    anchor = at % len(graph)
    cut = cut_slice(graph, str(anchor), SlicePolicy())
    assert cut.turns == tuple(graph.turns[n].id for n in graph.path(anchor))


@settings(max_examples=80, deadline=None)
@given(graphs, st.integers(0, 24))
def test_full_weights_of_replies_and_siblings_admit_the_whole_tree_of_the_anchor(parents, at):
    graph = make_graph(parents)
    anchor = at % len(graph)
    cut = cut_slice(graph, str(anchor), SlicePolicy(child=1.0, sibling=1.0))
    beginning = graph.path(anchor)[0]
    assert cut.turns == tuple(turn.id for n, turn in enumerate(graph.turns) if graph.path(n)[0] == beginning)


@settings(max_examples=80, deadline=None)
@given(graphs, st.integers(0, 24), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_every_turn_beside_the_slice_is_closed_with_a_reason(parents, at, child, sibling, least):
    graph = make_graph(parents)
    policy = SlicePolicy(child=child, sibling=sibling, min_priority=least)
    cut = cut_slice(graph, str(at % len(graph)), policy)
    closed = {each.turn for each in cut.closed}
    assert not closed & set(cut.turns)
    assert all(priority >= least for priority in cut.priorities.values())
    for n, turn in enumerate(graph.turns):
        if turn.id not in cut.turns and set(turn.parents) & set(cut.turns):
            assert turn.id in closed, n


@settings(max_examples=80, deadline=None)
@given(graphs, st.integers(0, 24), st.floats(0, 1), st.floats(0.01, 1), st.integers(1, 6))
def test_limited_closed_branches_are_those_with_the_highest_priority(parents, at, sibling, least, most):
    graph = make_graph(parents)
    policy = SlicePolicy(sibling=sibling, min_priority=least)
    whole = cut_slice(graph, str(at % len(graph)), policy)
    limited = cut_slice(graph, str(at % len(graph)), policy, max_closed=most)
    assert limited.turns == whole.turns
    assert set(limited.closed) <= set(whole.closed)
    best = sorted((each.priority for each in whole.closed), reverse=True)[:most]
    assert sorted((each.priority for each in limited.closed), reverse=True) == best


@pytest.mark.parametrize("most", [None, 1_000])
def test_wide_conversation_is_cut_without_looking_at_every_pair_of_siblings(most):
    """One request for 20,000 replies to one turn took minutes."""
    graph = make_graph([-1] + [0] * 20_000)
    began = time.process_time()
    cut = cut_slice(graph, "10000", SlicePolicy(sibling=1.0, max_turns=5_000), max_closed=most)
    assert time.process_time() - began < 3  # some 0.1 s
    assert len(cut.turns) == 5_000
    assert len(cut.closed) == (most or 20_001 - 5_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parent": 1.5}, "parent must be a number between 0 and 1, got 1.5"),
        ({"sibling": "a"}, "sibling"),
        ({"min_priority": 0}, "min_priority must be above 0"),
        ({"max_turns": 0}, "max_turns"),
        ({"phases": {"x": 2}}, "the weight of phase 'x'"),
        ({"phases": ["x"]}, "phases must be a mapping"),
        ({"phases": {1: 0.5}}, "phases must be a mapping"),
    ],
)
def test_bad_policy_is_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        SlicePolicy(**options)


def test_unknown_anchor_and_empty_conversation_are_errors():
    with pytest.raises(UnknownIdError, match="no turn 'x'"):
        make_conversation().cut_slice("x")
    with pytest.raises(EmptyCorpusError):
        make_conversation([]).retrieve("hello")


class Authority:
    """An authority whose slices are altered on their way."""

    def __init__(self, **changes):
        self.changes = changes

    def cut(self, graph, anchor, policy):
        given = LocalAuthority().cut(graph, anchor, policy)
        fields = {name: getattr(given, name) for name in ("anchor", "policy", "turns", "priorities", "closed", "token")}
        return Slice(**{**fields, **self.changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchor": "4"}, "the slice is for the anchor '4'"),
        ({"policy": PAPER}, "the slice is for the anchor '9'"),
        ({"turns": ("1", "other")}, "holds the unknown turn 'other'"),
        ({"turns": ("1", "1")}, "holds a turn twice"),
        ({"turns": None}, "cutting the slice failed: TypeError"),
    ],
)
def test_slice_that_answers_another_request_is_refused_and_nothing_is_searched(changes, message):
    with pytest.raises(AdmissibilityError, match=message):
        make_conversation(authority=Authority(**changes)).retrieve("Why is login failing?", "9")


@pytest.mark.parametrize("error", [AdmissibilityError, OSError])
def test_authority_that_fails_stops_the_retrieval(error):
    class Down:
        def cut(self, graph, anchor, policy):
            raise error("the kernel doesn't answer")

    with pytest.raises(AdmissibilityError, match="doesn't answer"):
        make_conversation(authority=Down()).retrieve("Why?", "9")


def test_slice_without_the_anchor_is_searched_without_it():
    context = make_conversation(authority=Authority(turns=("1", "2"))).retrieve("the login", "9")
    assert {passage.passage.id for passage in context.passages} <= {"1", "2"}
