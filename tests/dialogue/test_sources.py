"""What is looked at in a dialogue, asked directly."""

import numpy as np

from meve.dialogue import Dialogue
from meve.dialogue._sources import ImportanceWindow, Namesakes
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.types import Query

TURNS = ["we met Boris Durov", "so it goes", "zebra zebra", "the dog of Boris Durov", "zebra", "so", "it"]
WORDS = ["the owl", "an eagle", *["zebra"] * 9, "the owl and the eagle", "Boris Durov", "an ostrich of Durov"]


def looked_at(inside, k, turns=TURNS, **options):
    embedder = WordEmbedder()
    read = Dialogue.from_turns(turns, embedder=embedder, tokens=WordCounter()).read()
    wanted = frozenset({"durov", "eagle", "owl"})
    asked = {"wanted": wanted, "asked": frozenset({"durov"}), "said": frozenset(), "threshold": 0.3}
    source = ImportanceWindow(
        read=read, inside=np.array(inside, dtype=np.bool_), namesakes=Namesakes(read=read, **asked), **options
    )
    return [c.place for c in source.search(Query(text="zebra", vector=embedder.embed_query("zebra")), k)]


def test_what_lies_outside_is_not_looked_at_for_its_name():
    """Nor for its likeness, nor since it is the latest."""
    assert looked_at([True] * 7, 4) == [2, 4, 0, 3]
    assert looked_at([False, *[True] * 6], 4) == [2, 4, 1, 3]
    assert looked_at([False, True, True, False, True, True, True], 4) == [2, 4, 1, 5]
    assert looked_at([True, True, True, *[False] * 4], 9, latest=True) == [0, 1, 2]
    assert looked_at([False] * 7, 9) == []


def test_the_latest_are_as_many_as_were_asked_for():
    """Whatever they say."""
    assert looked_at([True] * 7, 2, latest=True) == [5, 6]


def test_what_holds_the_question_s_words_is_looked_at_after_what_holds_its_names():
    """However far it is from the question; not for the words that evidence holds besides names."""
    assert looked_at([True] * 14, 8, WORDS)[-2:] == [12, 13]
    assert looked_at([True] * 14, 12, WORDS)[-3:] == [12, 13, 1]
    assert set(looked_at([True] * 14, 20, WORDS)) == set(range(14))
