"""A history that is handed over whole each time."""

import pytest

from meve.dialogue import Kept, small_context
from meve.errors import ConfigurationError
from meve.testing.fakes import CountedEmbedder, WordCounter, WordEmbedder


def test_what_goes_on_is_not_read_anew():
    """Only what is new is; another history is another dialogue."""
    embedder = CountedEmbedder(WordEmbedder())
    kept = Kept(embedder=embedder, tokens=WordCounter())
    first = kept.of(["zebra 1999"])
    small_context(first, "zebra")
    again = kept.of(["zebra 1999", "yak 2001"])
    assert again is first
    small_context(again, "yak")
    assert embedder.calls.passages == ["zebra 1999", "yak 2001"]
    assert kept.of(["zebra 1999"]) is not first
    assert [turn.text for turn in again.turns] == ["zebra 1999", "yak 2001"]


def test_two_histories_that_begin_alike_stay_apart():
    """The longer one that is known is no beginning of the other."""
    kept = Kept(embedder=WordEmbedder(), tokens=WordCounter())
    one = kept.of(["a", "b"])
    assert kept.of(["a", "c"]) is not one
    assert kept.of([]) is not kept.of([])
    assert kept.of(["a", "b"]) is one


def test_only_so_many_are_kept():
    """The one that was asked for longest ago goes."""
    kept = Kept(2, embedder=WordEmbedder(), tokens=WordCounter())
    one, two = kept.of(["a"]), kept.of(["b"])
    assert kept.of(["a"]) is one
    kept.of(["c"])
    assert kept.of(["a"]) is one
    assert kept.of(["b"]) is not two
    with pytest.raises(ConfigurationError, match="most"):
        Kept(0)
