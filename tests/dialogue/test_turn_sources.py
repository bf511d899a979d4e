"""Sources of turns: windows, the latest turns, and matches of names and words."""

import numpy as np

from meve.dialogue._turn_sources import DialogueSource, EntityMatches
from meve.testing.fakes import WordEmbedder
from meve.types import Query
from tests.fake_components import make_dialogue

TURNS = ["we met Boris Durov", "so it goes", "zebra zebra", "the dog of Boris Durov", "zebra", "so", "it"]
WORDS = ["the owl", "an eagle", *["zebra"] * 9, "the owl and the eagle", "Boris Durov", "an ostrich of Durov"]


def search(inside, k, turns=TURNS, **options):
    snapshot = make_dialogue(turns).read()
    matches = EntityMatches(
        snapshot=snapshot,
        query_words=frozenset({"durov", "eagle", "owl"}),
        query_names=frozenset({"durov"}),
        speaker_words=frozenset(),
        threshold=0.3,
    )
    source = DialogueSource(snapshot=snapshot, inside=np.array(inside, dtype=np.bool_), matches=matches, **options)
    return [c.place for c in source.search(Query(text="zebra", vector=WordEmbedder().embed_query("zebra")), k)]


def test_turn_outside_the_windows_is_not_found():
    """Neither by name, nor by similarity, nor as one of the latest turns."""
    assert search([True] * 7, 4) == [2, 4, 0, 3]
    assert search([False, *[True] * 6], 4) == [2, 4, 1, 3]
    assert search([False, True, True, False, True, True, True], 4) == [2, 4, 1, 5]
    assert search([True, True, True, *[False] * 4], 9, latest=True) == [0, 1, 2]
    assert search([False] * 7, 9) == []


def test_latest_returns_as_many_turns_as_requested():
    assert search([True] * 7, 2, latest=True) == [5, 6]


def test_word_matches_follow_name_matches():
    """At any distance from the question; words of the evidence other than names don't count."""
    assert search([True] * 14, 8, WORDS)[-2:] == [12, 13]
    assert search([True] * 14, 12, WORDS)[-3:] == [12, 13, 1]
    assert set(search([True] * 14, 20, WORDS)) == set(range(14))
