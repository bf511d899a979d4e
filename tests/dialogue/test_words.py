"""Words of the question, and names of what answers it, beside the cosine."""

import pytest

from meve.dialogue import Dialogue, small_context
from meve.testing.fakes import WordCounter, WordEmbedder

TWO_STEPS = [
    ("Ann", "The film Moonfall was directed by Boris Durov."),
    ("Ben", "how nice"),
    ("Ann", "We saw Karl Kosk, who was born in 1901."),
    ("Ben", "I see"),
    ("Ann", "It is said that Boris Durov was born in 1937."),
    ("Ben", "so I told Ann that"),
]


def scores(turns, query, **options):
    dialogue = Dialogue.from_turns(turns, embedder=WordEmbedder(), tokens=WordCounter())
    trace = small_context(dialogue, query, recent=0, threshold=0.0, **options).trace
    return {c.id: c.scores["relevance"] - c.scores[c.origin] for c in trace.candidates}


def test_a_turn_gains_by_the_names_of_the_question():
    """As much as all of them weigh, beside what they weigh as words; one that has none gains nothing."""
    gained = scores(TWO_STEPS, "Was Karl Kosk there?")
    assert gained["2"] == pytest.approx(0.3 + 0.2, abs=1e-5)
    assert gained["3"] == pytest.approx(0, abs=1e-5)


def test_a_turn_gains_by_the_words_of_the_question():
    """By the square of their share, the rare ones counting more; what no turn holds counts nothing."""
    turns = ["the owl sleeps", "the eagle sleeps", "the owl and the eagle", "so it is"]
    gained = scores(turns, "Is it the owl or the eagle or the unicorn?", window=None)
    assert gained == {
        "0": pytest.approx(0.3 / 4, abs=1e-5),
        "1": pytest.approx(0.3 / 4, abs=1e-5),
        "2": pytest.approx(0.3, abs=1e-5),
        "3": pytest.approx(0, abs=1e-5),
    }
    rare = scores([*turns, *["an owl"] * 5], "the owl, the eagle", window=None)
    assert rare["0"] < 0.3 / 4 < rare["1"]


def test_a_turn_gains_by_the_names_of_the_evidence():
    """Who directed it is said in one turn, when he was born in another."""
    gained = scores(TWO_STEPS, "When was the director of the film Moonfall born?")
    assert gained["4"] > gained["2"] + 0.05  # the words they share with the question are the same


def test_by_names_a_turn_may_reach_the_threshold():
    """With the embedder that ships; without names it doesn't."""
    dialogue = Dialogue.from_turns(TWO_STEPS)
    asked = "When was the director of the film Moonfall born?"
    score = {
        words: {d.turn for d in small_context(dialogue, asked, recent=0, threshold=0.42, words=words).trace.dropped}
        for words in (True, False)
    }
    assert 4 not in score[True]
    assert 4 in score[False]


def test_who_talks_is_no_name():
    """Everybody is addressed all the time."""
    assert scores(TWO_STEPS, "Who is it, Ann?")["5"] == pytest.approx(0, abs=1e-5)


def test_what_holds_no_letter_and_no_digit_is_no_fact():
    """A question mark is like any question."""
    dialogue = Dialogue.from_turns(["?", "??? !", "👍", "1", "Karl Kosk?"])
    trace = small_context(dialogue, "Was Karl Kosk there?", recent=0, window=None).trace
    assert {c.id: c.scores["relevance"] for c in trace.candidates} | {"0": 0, "1": 0, "2": 0} == {
        c.id: c.scores["relevance"] for c in trace.candidates
    }
    assert small_context(dialogue, "?", recent=0, window=None).passages == ()


def test_what_is_named_everywhere_weighs_less():
    """Than what is named once."""
    turns = ["with Rare Bird", *["with Common Dog"] * 6, "with Rare Bird, with Common Dog"]
    gained = scores(turns, "the Rare Bird, the Common Dog", window=None)
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


def looked_at(turns, query, **options):
    dialogue = Dialogue.from_turns(turns, embedder=WordEmbedder(), tokens=WordCounter())
    return {int(c.id) for c in small_context(dialogue, query, recent=0, **options).trace.candidates}


def test_in_a_long_dialogue_the_second_step_is_looked_at():
    """Though many turns are nearer to the question than the one that only shares a name with its first step."""
    assert 81 in looked_at(LONG, ASKED, candidates=20)
    assert 81 not in looked_at(LONG, ASKED, candidates=20, words=False)
    assert 81 in looked_at(LONG, "Durov?", candidates=20)


def test_no_more_are_looked_at_for_it():
    """The nearest stay, but for a quarter; outside the windows nothing is looked at."""
    found, near = looked_at(LONG, ASKED, candidates=20), looked_at(LONG, ASKED, candidates=20, words=False)
    assert len(found) == len(near) == 20
    assert len(near - found) <= 5
    assert len(looked_at(LONG, "a Common Dog", candidates=20)) == 20
    quiet = [("Ann", "Boris Durov directed it"), *[("Ben", "so it goes")] * 20, ("Ann", "I like Durov")]
    assert looked_at(quiet, "Durov", candidates=2, window=0) == {0, 21}


def test_turns_that_are_added_later_are_found_by_their_names():
    """In a dialogue and in those that go on from it, each by its own."""
    dialogue = Dialogue.from_turns(LONG[:81], embedder=WordEmbedder(), tokens=WordCounter())
    before = dialogue.read()
    other = dialogue.fork()
    other.extend([("Ann", "nothing"), ("Ann", "Boris Durov: Rome, 1938")])
    dialogue.append(LONG[81])
    found = [
        {int(c.id) for c in small_context(one, ASKED, recent=0, candidates=20).trace.candidates}
        for one in (other, dialogue)
    ]
    assert [n for n in (81, 82) if n in found[0]] == [82]
    assert [n for n in (81, 82) if n in found[1]] == [81]
    assert before.index.holding("durov", len(before.pieces)) == [0]
