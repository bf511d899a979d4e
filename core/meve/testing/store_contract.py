"""What every store that is attached from outside must do: inherit the rules, give the fixture, and pytest runs them.

class TestMine(StoreContract):
    @pytest.fixture
    def attach(self):
        def attached():
            theirs = TheirStore()
            return Attached(store=MyAdapter(theirs), put=theirs.add, drop=theirs.delete, english={"lang": "en"})

        return attached
"""

import math
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from meve._extras import require_imports
from meve.errors import ConfigurationError, StaleWarning
from meve.pipeline.engine import Engine
from meve.retrieval.external_store import ExternalStore, StoreRetriever
from meve.testing import NEEDS, SUITE
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.types import Passage

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st

MANY = 1_200
"""More than a store may hand over at once."""
TEXTS = ("A blue sky today.", "The wide sea is blue.", "Grass under an open sky.")


@dataclass(frozen=True, kw_only=True)
class Attached:
    """A new and empty store, how others change it, and a filter in its own words.

    Its vectors must be those of `meve.testing.fakes.WordEmbedder`, so that a text lies nearest to itself.
    """

    store: ExternalStore
    """What is under test."""
    put: Callable[[list[Passage]], object]
    """Adds passages as the store's own users do, each with its id, text and metadata; replaces those of taken ids."""
    drop: Callable[[list[str]], object]
    """Deletes by ids that are there, as the store's own users do."""
    english: Any
    """A filter that lets through what has `lang` `en` in its metadata, and nothing else."""


Attach: TypeAlias = Callable[[], Attached]


def uid(name: object) -> str:
    """An id that every store takes."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, str(name)))


def _passage(name: object, text: str, lang: str = "en") -> Passage:
    return Passage(id=uid(name), text=text, metadata={"lang": lang})


def _ids(found: Iterable[Passage]) -> list[str]:
    return sorted(passage.id for passage in found)


class StoreContract:
    """The rules of `meve.retrieval.external_store.ExternalStore`. What an implementation can't do it declares below, and it's skipped aloud."""

    lists = True
    """Whether it can list and count what it holds."""
    admits = True
    """Whether it can say which of given ids a filter lets through; one that can't lets none through."""
    takes_blank = True
    """Whether its users can give it passages without text."""
    adds_after_removals = True
    """Whether what is added after a removal leaves alone what was there."""

    @pytest.fixture
    def attach(self) -> Attach:
        """Override: a function that makes a new, empty store and attaches it."""
        raise NotImplementedError("override the fixture `attach`")

    @pytest.fixture
    def filled(self, attach: Attach) -> Attached:
        """Three passages in English, and one in German."""
        made = attach()
        made.put([*(_passage(text, text) for text in TEXTS), _passage("zebra", "Zebra facts for you.", "de")])
        return made

    def test_it_has_a_name(self, attach: Attach) -> None:
        """For messages and for LangSmith and the like."""
        assert attach().store.name

    def test_an_empty_store_finds_nothing(self, attach: Attach) -> None:
        """And nothing is there."""
        store = attach().store
        assert list(store.nearest("blue sky", 3, None)) == []
        assert list(store.fetch([uid("sky")], None)) == []
        assert store.size() in (0, None)

    def test_passages_come_back_as_they_went_in(self, filled: Attached) -> None:
        """With id, text and metadata, to which the store may add, whichever way they are asked for."""
        given = _passage(TEXTS[0], TEXTS[0])
        ways = [
            [passage for passage, _ in filled.store.nearest(given.text, 1, None)],
            list(filled.store.fetch([given.id], None)),
            [p for p in filled.store.list_passages() if p.id == given.id] if self.lists else [given],
        ]
        for found in ways:
            assert [(p.id, p.text) for p in found] == [(given.id, given.text)]
            assert {**found[0].metadata, **given.metadata} == dict(found[0].metadata)

    def test_the_nearest_come_first_and_no_more_than_were_asked_for(self, filled: Attached) -> None:
        """A text is nearest to itself; each comes once, with a finite score or none."""
        for text in TEXTS:
            found = filled.store.nearest(text, 2, None)
            assert len(found) == 2
            assert found[0][0].id == uid(text)
        everything = filled.store.nearest(TEXTS[0], 50, None)
        assert _ids(p for p, _ in everything) == sorted([*map(uid, TEXTS), uid("zebra")])
        assert all(score is None or math.isfinite(score) for _, score in everything)

    def test_ids_are_spelled_as_the_store_spells_them(self, filled: Attached) -> None:
        """Spelling one again changes nothing, so that what is forgotten is what was found."""
        for passage, _ in filled.store.nearest(TEXTS[0], 50, None):
            assert filled.store.canonical_id(passage.id) == passage.id
        for unknown in ("", "0", "not an id", uid("sky").replace("-", ""), "²"):
            once = filled.store.canonical_id(unknown)
            assert filled.store.canonical_id(once) == once

    def test_a_filter_leaves_as_many_as_were_asked_for(self, attach: Attach) -> None:
        """Of many that lie nearer, it lets none through, and those that it lets through are found all the same."""
        made = attach()
        mine = [_passage(f"m{n}", f"Another animal like a zebra {n}") for n in range(2)]
        letters = [f"{one} {other}" for one in "abcdefgh" for other in "ijklmnop"]  # equal vectors confuse a graph
        made.put([*(_passage(each, f"Zebra zebra {each}", "de") for each in letters), *mine])
        found = made.store.nearest("Zebra zebra", 2, made.english)
        assert _ids(p for p, _ in found) == _ids(mine)

    def test_it_says_which_of_given_ids_are_there(self, filled: Attached) -> None:
        """Unknown ones, and none at all, are no error."""
        asked = [uid("nobody"), uid("zebra"), uid(TEXTS[1])]
        assert _ids(filled.store.fetch(asked, None)) == sorted(asked[1:])
        assert list(filled.store.fetch([uid("nobody")], None)) == []
        assert list(filled.store.fetch([], None)) == []
        assert list(filled.store.fetch([], filled.english)) == []

    def test_it_says_which_of_given_ids_a_filter_lets_through(self, filled: Attached) -> None:
        """One that can't tell lets none through, rather than all."""
        found = _ids(filled.store.fetch([uid("zebra"), uid(TEXTS[1])], filled.english))
        assert found == ([uid(TEXTS[1])] if self.admits else [])

    def test_what_others_drop_is_gone(self, filled: Attached) -> None:
        """At once, from searches, from what is there, and from the list."""
        filled.drop([uid("zebra")])
        assert uid("zebra") not in _ids(p for p, _ in filled.store.nearest("Zebra facts for you.", 50, None))
        assert list(filled.store.fetch([uid("zebra")], None)) == []
        if self.lists:
            assert _ids(filled.store.list_passages()) == sorted(map(uid, TEXTS))
            assert filled.store.size() == len(TEXTS)

    def test_what_others_replace_reads_as_it_does_now(self, filled: Attached) -> None:
        """Text and metadata, under the same id, which is held once."""
        filled.put([_passage("zebra", "Yaks yawn.")])
        (there,) = filled.store.fetch([uid("zebra")], None)
        assert (there.text, there.metadata["lang"]) == ("Yaks yawn.", "en")
        nearest, _ = filled.store.nearest("Yaks yawn.", 1, filled.english)[0]
        assert nearest.text == "Yaks yawn."
        if self.lists:
            assert filled.store.size() == len(TEXTS) + 1

    def test_many_are_listed_and_counted(self, attach: Attach) -> None:
        """Each once, however many it hands over at a time."""
        made = attach()
        if not self.lists:
            with pytest.raises(ConfigurationError):
                list(made.store.list_passages())
            pytest.skip(f"{made.store.name} declares that it can't list what it holds")
        assert list(made.store.list_passages()) == []
        made.put([_passage(n, f"Passage number {n}") for n in range(MANY)])
        assert _ids(made.store.list_passages()) == sorted(map(uid, range(MANY)))
        assert made.store.size() == MANY

    def test_many_may_be_asked_for_at_once(self, attach: Attach) -> None:
        """By their ids, with a filter too."""
        made = attach()
        made.put([_passage(n, f"Passage number {n}", "en" if n % 2 else "de") for n in range(MANY)])
        everyone = list(map(uid, range(MANY)))
        assert _ids(made.store.fetch(everyone, None)) == sorted(everyone)
        if self.admits:
            assert _ids(made.store.fetch(everyone, made.english)) == sorted(map(uid, range(1, MANY, 2)))

    def test_a_passage_without_text_does_no_harm(self, filled: Attached) -> None:
        """It is handed over, counted, or left out; the others come as ever."""
        if not self.takes_blank:
            pytest.skip(f"{filled.store.name} declares that its users can't give it passages without text")
        filled.put([_passage("blank", " ")])
        assert set(map(uid, TEXTS)) <= set(_ids(p for p, _ in filled.store.nearest(TEXTS[0], 50, None)))
        assert not _retriever(filled, listed=self.lists).is_stale

    def test_threads_may_read_at_once(self, filled: Attached) -> None:
        """Searching and looking up in several threads gives what one gets."""

        def read(text: str) -> tuple[list[str], list[str]]:
            near = [p.id for p, _ in filled.store.nearest(text, 2, filled.english)]
            return near, _ids(filled.store.fetch(near, None))

        asked = [*TEXTS] * 8
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(read, asked)) == [read(text) for text in asked]

    def test_a_retriever_over_it_keeps_what_is_promised(self, filled: Attached) -> None:
        """What the filter excludes, and what was dropped, comes from no phase; that words lag is told, and mended."""
        retriever = _retriever(filled, listed=self.lists)
        low: dict[str, Any] = {"threshold": 0.0, "fallback_floor": 0.0}
        for sources in ("hybrid", "dense", "lexical"):
            found = retriever.retrieve("Zebra facts for you.", where=filled.english, sources=sources, **low)
            assert uid("zebra") not in {c.id for c in found.trace.candidates}
        filled.drop([uid("zebra")])
        if not self.lists:
            gone = retriever.retrieve("Zebra facts for you.", **low)
            assert uid("zebra") not in {c.id for c in gone.trace.candidates}
            return
        with pytest.warns(StaleWarning):
            gone = retriever.retrieve("Zebra facts for you.", **low)
        assert uid("zebra") not in {c.id for c in gone.trace.candidates}
        filled.put([_passage("yak", "Yaks yawn.")])
        assert retriever.refresh() == len(TEXTS) + 1
        assert not retriever.is_stale
        found = retriever.retrieve("yawn", sources="lexical")
        assert [p.passage.id for p in found.passages] == [uid("yak")]

    def test_a_random_story_agrees_with_a_dict(self, attach: Attach) -> None:
        """After any additions, replacements and removals it holds what a dict would."""
        if not self.adds_after_removals:
            pytest.skip(f"{attach().store.name} declares that what is added after a removal takes others' places")
        steps = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 6), min_size=1), st.booleans()), max_size=8)

        @settings(max_examples=15, deadline=None)
        @given(steps)
        def story(steps: list[tuple[bool, set[int], bool]]) -> None:
            made, held = attach(), dict[str, Passage]()
            for turn, (adds, names, english) in enumerate(steps):
                if adds:
                    new = [_passage(n, f"Story {n} of turn {turn}", "en" if english else "de") for n in sorted(names)]
                    made.put(new)
                    held |= {p.id: p for p in new}
                elif gone := [uid(n) for n in names if uid(n) in held]:
                    made.drop(gone)
                    held = {i: p for i, p in held.items() if i not in gone}
            everyone = [uid(n) for n in range(7)]
            assert _texts(made.store.fetch(everyone, None)) == _texts(held.values())
            assert _texts(p for p, _ in made.store.nearest("Story", 50, None)) == _texts(held.values())
            spoken = [p for p in held.values() if p.metadata["lang"] == "en"]
            assert _texts(p for p, _ in made.store.nearest("Story", 50, made.english)) == _texts(spoken)
            if self.lists:
                assert _texts(made.store.list_passages()) == _texts(held.values())
                assert made.store.size() == len(held)

        story()


def _retriever(attached: Attached, *, listed: bool) -> StoreRetriever:
    """The five phases over it, its words read where it can list them, and told where not."""
    engine = Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    made = StoreRetriever(attached.store, engine)
    if listed:
        made.refresh()
    else:
        ids = [*map(uid, TEXTS), uid("zebra")]
        made.index(attached.store.fetch(ids, None))
    return made


def _texts(passages: Iterable[Passage]) -> list[tuple[str, str]]:
    return sorted((p.id, p.text) for p in passages)
