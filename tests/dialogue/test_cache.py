"""A history that is handed over whole each time."""

import threading

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
    small_context(again, "yak")
    assert embedder.calls.passages == ["zebra 1999", "yak 2001"]
    assert [turn.text for turn in again.turns] == ["zebra 1999", "yak 2001"]


def test_nobody_is_shown_what_another_said():
    """Two whose histories begin alike: what one says next isn't in the dialogue that the other holds already."""
    kept = Kept(embedder=WordEmbedder(), tokens=WordCounter())
    one = kept.of(["hi"])
    small_context(one, "hi?")
    other = kept.of(["hi", "my secret is zebra 1999"])
    assert small_context(one, "zebra secret").text == "zebra secret\n\nLast said:\nhi"
    assert "1999" in small_context(other, "zebra secret").text
    one.append("yak 2001")
    assert "yak" not in small_context(other, "zebra secret").text


def test_of_histories_that_begin_so_the_longest_goes_on():
    """Less is left to read."""
    embedder = CountedEmbedder(WordEmbedder())
    kept = Kept(embedder=embedder, tokens=WordCounter())
    for turns in (["a", "b"], ["a"], ["a", "b", "c"]):
        small_context(kept.of(turns), "q")
    assert embedder.calls.passages == ["a", "b", "a", "c"]


def test_no_model_is_loaded_before_a_question():
    """To hand over a history asks for none."""
    assert len(Kept(embedder="/no/such/folder").of(["a"])) == 1


def test_one_that_is_being_read_keeps_nobody_waiting():
    """Not with its own next turn, and not with another history."""
    begun, go = threading.Event(), threading.Event()

    class Slow(WordEmbedder):
        def embed_passages(self, texts):
            begun.set()
            assert go.wait(60)
            return super().embed_passages(texts)

    kept = Kept(embedder=Slow(), tokens=WordCounter())
    dialogue = kept.of(["zebra 1999"])
    reading = threading.Thread(target=dialogue.read)
    reading.start()
    assert begun.wait(60)
    others = threading.Thread(
        target=lambda: (dialogue.append("yak"), kept.of(["zebra 1999", "x"]), kept.of(["y"])), daemon=True
    )
    others.start()
    others.join(20)
    waited = others.is_alive()
    go.set()
    reading.join(60)
    assert not waited
    assert [turn.text for turn in dialogue.read().turns] == ["zebra 1999", "yak"]


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
