"""The cache of dialogues, for callers that pass the whole history each time."""

import threading

import pytest

from meve.dialogue import DialogueCache, build_small_context
from meve.errors import ConfigurationError
from meve.testing.fakes import CountingEmbedder, WordCounter, WordEmbedder


def test_longer_history_embeds_only_new_turns():
    embedder = CountingEmbedder(WordEmbedder())
    cache = DialogueCache(embedder=embedder, tokens=WordCounter())
    first = cache.get(["zebra 1999"])
    build_small_context(first, "zebra")
    again = cache.get(["zebra 1999", "yak 2001"])
    build_small_context(again, "yak")
    assert embedder.calls.passages == ["zebra 1999", "yak 2001"]
    assert [turn.text for turn in again.turns] == ["zebra 1999", "yak 2001"]


def test_histories_with_equal_beginnings_stay_separate():
    cache = DialogueCache(embedder=WordEmbedder(), tokens=WordCounter())
    one = cache.get(["hi"])
    build_small_context(one, "hi?")
    other = cache.get(["hi", "my secret is zebra 1999"])
    assert build_small_context(one, "zebra secret").text == "zebra secret\n\nLast said:\nhi"
    assert "1999" in build_small_context(other, "zebra secret").text
    one.append("yak 2001")
    assert "yak" not in build_small_context(other, "zebra secret").text


def test_longest_cached_prefix_is_extended():
    embedder = CountingEmbedder(WordEmbedder())
    cache = DialogueCache(embedder=embedder, tokens=WordCounter())
    for turns in (["a", "b"], ["a"], ["a", "b", "c"]):
        build_small_context(cache.get(turns), "q")
    assert embedder.calls.passages == ["a", "b", "a", "c"]


def test_no_model_is_loaded_before_a_question():
    assert len(DialogueCache(embedder="/no/such/folder").get(["a"])) == 1


def test_dialogue_that_is_being_read_blocks_no_caller():
    started, go = threading.Event(), threading.Event()

    class Slow(WordEmbedder):
        def embed_passages(self, texts):
            started.set()
            assert go.wait(60)
            return super().embed_passages(texts)

    cache = DialogueCache(embedder=Slow(), tokens=WordCounter())
    dialogue = cache.get(["zebra 1999"])
    reading = threading.Thread(target=dialogue.read)
    reading.start()
    assert started.wait(60)
    others = threading.Thread(
        target=lambda: (dialogue.append("yak"), cache.get(["zebra 1999", "x"]), cache.get(["y"])), daemon=True
    )
    others.start()
    others.join(20)
    blocked = others.is_alive()
    go.set()
    reading.join(60)
    assert not blocked
    assert [turn.text for turn in dialogue.read().turns] == ["zebra 1999", "yak"]


def test_different_or_empty_histories_get_separate_dialogues():
    cache = DialogueCache(embedder=WordEmbedder(), tokens=WordCounter())
    one = cache.get(["a", "b"])
    assert cache.get(["a", "c"]) is not one
    assert cache.get([]) is not cache.get([])
    assert cache.get(["a", "b"]) is one


def test_least_recently_used_dialogue_is_dropped():
    cache = DialogueCache(2, embedder=WordEmbedder(), tokens=WordCounter())
    one, two = cache.get(["a"]), cache.get(["b"])
    assert cache.get(["a"]) is one
    cache.get(["c"])
    assert cache.get(["a"]) is one
    assert cache.get(["b"]) is not two
    with pytest.raises(ConfigurationError, match="max_dialogues must be"):
        DialogueCache(0)
