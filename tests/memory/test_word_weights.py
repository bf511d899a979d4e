"""How much the words of a question weigh in the ranking of memories."""

import numpy as np
import pytest

from meve.memory._recall.word_index import WordIndex

FACTS = ["My girl Mia is ten.", "Getting old is no fun.", "The kayak is in the shed.", "Reggie cooks at a diner."]


@pytest.fixture
def share_of(memory):
    """Return a function that returns the best share of a question's words in the facts."""
    index = WordIndex()
    index.add(0, [memory.add(text, user_id="a") for text in FACTS])
    return lambda question: float(index.shares(question, len(FACTS)).max())


def test_rare_word_weighs_more_than_a_common_one_of_as_many_memories(share_of):
    assert 0 < share_of("old houses") < 0.9 * share_of("kayak houses")


def test_one_common_word_of_a_short_question_has_a_small_share(share_of):
    assert share_of("How old is my daughter?") < 0.12


def test_more_words_of_a_question_make_a_greater_share(share_of):
    shares = [share_of(question) for question in ("kayak", "kayak shed", "Reggie cooks diner")]
    assert np.all(np.diff(shares) > 0.1)
