"""The plain form of statements: work that is left out for speed changes no text and no verdict."""

import random

import pytest

from meve.components import _repeated_text
from meve.components._repeated_text import expand_contractions, find_letters, join_words
from meve.components._rewriting import rewrite
from meve.memory._contradiction import values
from meve.memory._contradiction.values import normalise_values

FRAGMENTS = """
noon Midnight once|a once|every twice the|one no|one 1,500 2k 3|thousand twenty-one half|past|9 quarter|to|eight 7:15
5|pm 5pm 5|o'clock 9|o’clock 2024-05-03 3.5.2024 3rd|of|May May|3,|2024 Mon. Tuesdays $5 €1,5 1.0 30|minutes 5G at|9
ſix İs can't CAN’T won’t cannot im I'm they’re we've she's it’s Lena's Dr.|Weber St.|Paul in|the|morning 50|% . , ?
"""


def make_texts(seed):
    rng, fragments = random.Random(seed), [each.replace("|", " ") for each in FRAGMENTS.split()]
    return [" ".join(rng.choices(fragments, k=rng.randint(1, 6))) for _ in range(1_500)]


@pytest.mark.parametrize(
    "steps",
    [values._FREQUENCIES, values._WORDS, _repeated_text._CONTRACTIONS],
    ids=["frequencies", "words", "contractions"],
)
def test_a_step_is_only_left_out_of_texts_that_it_would_not_change(steps):
    for text in make_texts(3):
        whole = text
        for _, pattern, write in steps:
            whole = pattern.sub(write, whole)
        assert rewrite(text, steps) == whole


def test_statements_whose_letters_differ_say_something_else():
    """Texts of the same words, in other signs, cases and articles, and texts of other words."""
    rng = random.Random(5)
    alike = [
        ("the ", ""),
        ("please ", ""),
        (".", "!"),
        ("dog", "DOG"),
        ("'s", ""),
        ("1,000", "1000"),
        ("e-mail", "email"),
    ]
    words = [
        "The",
        "dog's",
        "e-mail",
        "cost",
        "1,000",
        "a",
        "year",
        "please",
        "walk",
        "the",
        "cat",
        "at",
        "7:15",
        ">",
        "5",
        "C++",
    ]
    found = set()
    for _ in range(3_000):
        text = expand_contractions(" ".join(rng.choices(words, k=rng.randint(1, 8))))
        other = text
        for one, two in rng.sample(alike, k=3):
            other = other.replace(one, two)
        other = expand_contractions(other if rng.random() < 0.7 else rng.choice(words))
        is_alike = join_words(text) == join_words(other)
        assert find_letters(text) == find_letters(other) or not is_alike, (text, other)
        found.add((is_alike, find_letters(text) == find_letters(other)))
    assert found >= {(True, True), (False, False)}


def test_letters_are_unknown_of_texts_in_other_scripts():
    assert find_letters("café") is None


def test_numbers_are_only_left_out_of_texts_that_they_would_not_change():
    for text in make_texts(4):
        whole = rewrite(text, values._FREQUENCIES)
        for pattern, write in values._LARGE_NUMBERS:
            whole = pattern.sub(write, whole)
        whole = rewrite(whole, values._WORDS)
        for pattern, write in values._NUMBERS:
            whole = pattern.sub(write, whole)
        assert normalise_values(text) == whole
