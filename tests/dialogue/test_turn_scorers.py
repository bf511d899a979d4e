"""Scores by words and names of the question and of its evidence, beside the cosine."""

import pytest

from meve.dialogue import Dialogue, build_small_context
from tests.fake_components import make_dialogue

TWO_STEPS = [
    ("Ann", "The film Moonfall was directed by Boris Durov."),
    ("Ben", "how nice"),
    ("Ann", "We saw Karl Kosk, who was born in 1901."),
    ("Ben", "I see"),
    ("Ann", "It is said that Boris Durov was born in 1937."),
    ("Ben", "so I told Ann that"),
]


def gains(turns, query, **options):
    trace = build_small_context(make_dialogue(turns), query, recent=0, threshold=0.0, **options).trace
    return {c.id: c.scores["relevance"] - c.scores[c.origin] for c in trace.candidates}


def test_names_of_the_question_raise_the_score():
    gained = gains(TWO_STEPS, "Was Karl Kosk there?")
    assert gained["2"] == pytest.approx(0.3 + 0.2, abs=1e-5)
    assert gained["3"] == pytest.approx(0, abs=1e-5)


def test_words_of_the_question_raise_the_score_by_the_square_of_their_share():
    """Rare words count more; words that no turn contains don't count."""
    turns = ["the owl sleeps", "the eagle sleeps", "the owl and the eagle", "so it is"]
    gained = gains(turns, "Is it the owl or the eagle or the unicorn?", window=None)
    assert gained == {
        "0": pytest.approx(0.3 / 4, abs=1e-5),
        "1": pytest.approx(0.3 / 4, abs=1e-5),
        "2": pytest.approx(0.3, abs=1e-5),
        "3": pytest.approx(0, abs=1e-5),
    }
    rare = gains([*turns, *["an owl"] * 5], "the owl, the eagle", window=None)
    assert rare["0"] < 0.3 / 4 < rare["1"]


def test_names_of_the_evidence_raise_the_score():
    gained = gains(TWO_STEPS, "When was the director of the film Moonfall born?")
    assert gained["4"] > gained["2"] + 0.05  # the words they share with the question are the same


def test_turn_reaches_the_threshold_by_names_alone():
    dialogue = Dialogue.from_turns(TWO_STEPS)
    query = "When was the director of the film Moonfall born?"
    for words in (True, False):
        trace = build_small_context(dialogue, query, recent=0, threshold=0.42, words=words).trace
        assert (4 in [d.turn for d in trace.dropped]) is not words


def test_speaker_name_does_not_raise_the_score():
    assert gains(TWO_STEPS, "Who is it, Ann?")["5"] == pytest.approx(0, abs=1e-5)


def test_turn_without_letters_and_digits_has_score_zero():
    dialogue = Dialogue.from_turns(["?", "??? !", "👍", "1", "Karl Kosk?"])
    trace = build_small_context(dialogue, "Was Karl Kosk there?", recent=0, window=None).trace
    assert {c.id: c.scores["relevance"] for c in trace.candidates} | {"0": 0, "1": 0, "2": 0} == {
        c.id: c.scores["relevance"] for c in trace.candidates
    }
    assert build_small_context(dialogue, "?", recent=0, window=None).passages == ()


def test_frequent_name_weighs_less_than_rare_one():
    turns = ["with Rare Bird", *["with Common Dog"] * 6, "with Rare Bird, with Common Dog"]
    gained = gains(turns, "the Rare Bird, the Common Dog", window=None)
    assert 0 < gained["1"] < gained["0"] < gained["7"]


LONG = [
    ("Ann", "The film Moonfall was directed by Boris Durov."),
    *[
        ("Ben", f"when was the director of the film {n} born, was he born when the film was {n} old?")
        for n in range(80)
    ],
    ("Ann", "Boris Durov: Oslo, 1937"),
    *[("Ann", f"with Common Dog {n}") for n in range(80)],
]
ASKED = "When was the director of the film Moonfall born?"


def ranked(turns, query, **options):
    return {int(c.id) for c in build_small_context(make_dialogue(turns), query, recent=0, **options).trace.candidates}


def test_second_step_in_a_long_dialogue_is_ranked():
    """Though many turns are nearer to the question than the one that only shares a name with the first step."""
    assert 81 in ranked(LONG, ASKED, candidates=20)
    assert 81 not in ranked(LONG, ASKED, candidates=20, words=False)
    assert 81 in ranked(LONG, "Durov?", candidates=20)


def test_name_matches_replace_at_most_a_quarter_of_the_nearest():
    with_names, near = ranked(LONG, ASKED, candidates=20), ranked(LONG, ASKED, candidates=20, words=False)
    assert len(with_names) == len(near) == 20
    assert len(near - with_names) <= 5
    assert len(ranked(LONG, "a Common Dog", candidates=20)) == 20
    quiet = [("Ann", "Boris Durov directed it"), *[("Ben", "so it goes")] * 20, ("Ann", "I like Durov")]
    assert ranked(quiet, "Durov", candidates=2, window=0) == {0, 21}


def test_turn_added_to_a_fork_is_found_only_there():
    dialogue = make_dialogue(LONG[:81])
    before = dialogue.read()
    other = dialogue.fork()
    other.extend([("Ann", "nothing"), ("Ann", "Boris Durov: Rome, 1938")])
    dialogue.append(LONG[81])
    ids = [
        {int(c.id) for c in build_small_context(one, ASKED, recent=0, candidates=20).trace.candidates}
        for one in (other, dialogue)
    ]
    assert [n for n in (81, 82) if n in ids[0]] == [82]
    assert [n for n in (81, 82) if n in ids[1]] == [81]
    assert before.index.find_rows("durov", len(before.passages)) == [0]
