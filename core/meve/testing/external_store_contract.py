"""The contract of external stores. Inherit `StoreContract`, override its fixture, and run pytest.

class TestMine(StoreContract):
    @pytest.fixture
    def attach(self):
        def attached():
            store = VendorStore()
            return AttachedStore(store=MyAdapter(store), put=store.add, drop=store.delete, english={"lang": "en"})

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
"""A number of passages that exceeds a store's page size."""
TEXTS = ("A blue sky today.", "The wide sea is blue.", "Grass under an open sky.")


@dataclass(frozen=True, kw_only=True)
class AttachedStore:
    """A new, empty store with functions that change it from outside, and a filter in its own syntax.

    Its vectors must be those of `meve.testing.fakes.WordEmbedder`, so that a text is nearest to itself.
    """

    store: ExternalStore
    """The adapter under test."""
    put: Callable[[list[Passage]], object]
    """Adds passages with id, text and metadata through the store's own API; replaces existing ids."""
    drop: Callable[[list[str]], object]
    """Deletes existing ids through the store's own API."""
    english: Any
    """A filter for passages with `lang` `en` in their metadata."""


AttachStore: TypeAlias = Callable[[], AttachedStore]


def make_id(name: object) -> str:
    """Return an id that every store accepts."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, str(name)))


def _make_passage(name: object, text: str, lang: str = "en") -> Passage:
    return Passage(id=make_id(name), text=text, metadata={"lang": lang})


def _sorted_ids(result: Iterable[Passage]) -> list[str]:
    return sorted(passage.id for passage in result)


class StoreContract:
    """The rules of `meve.retrieval.external_store.ExternalStore`.

    Declare below what your adapter can't do; those rules are then skipped.
    """

    can_list = True
    """Whether the store can list and count its passages."""
    can_filter_ids = True
    """Whether the store can select the given ids that match a filter; otherwise it must return none."""
    accepts_blank_text = True
    """Whether the store accepts passages without text."""
    keeps_ids_after_removals = True
    """Whether passages added after a removal leave existing passages unchanged."""

    @pytest.fixture
    def attach(self) -> AttachStore:
        """Return a function that makes a new, empty store and attaches it."""
        raise NotImplementedError("override the fixture `attach`")

    @pytest.fixture
    def filled(self, attach: AttachStore) -> AttachedStore:
        """Return a store with three English passages and a German one."""
        attached_store = attach()
        attached_store.put(
            [*(_make_passage(text, text) for text in TEXTS), _make_passage("zebra", "Zebra facts for you.", "de")]
        )
        return attached_store

    def test_name_is_not_blank(self, attach: AttachStore) -> None:
        assert attach().store.name

    def test_empty_store_returns_nothing(self, attach: AttachStore) -> None:
        store = attach().store
        assert list(store.nearest("blue sky", 3, None)) == []
        assert list(store.fetch([make_id("sky")], None)) == []
        assert store.size() in (0, None)

    def test_passages_are_returned_unchanged(self, filled: AttachedStore) -> None:
        given = _make_passage(TEXTS[0], TEXTS[0])
        ways = [
            [passage for passage, _ in filled.store.nearest(given.text, 1, None)],
            list(filled.store.fetch([given.id], None)),
            [p for p in filled.store.list_passages() if p.id == given.id] if self.can_list else [given],
        ]
        for result in ways:
            assert [(p.id, p.text) for p in result] == [(given.id, given.text)]
            assert {**result[0].metadata, **given.metadata} == dict(result[0].metadata)

    def test_nearest_come_first_up_to_k(self, filled: AttachedStore) -> None:
        for text in TEXTS:
            result = filled.store.nearest(text, 2, None)
            assert len(result) == 2
            assert result[0][0].id == make_id(text)
        everything = filled.store.nearest(TEXTS[0], 50, None)
        assert _sorted_ids(p for p, _ in everything) == sorted([*map(make_id, TEXTS), make_id("zebra")])
        assert all(score is None or math.isfinite(score) for _, score in everything)

    def test_canonical_id_is_stable(self, filled: AttachedStore) -> None:
        for passage, _ in filled.store.nearest(TEXTS[0], 50, None):
            assert filled.store.canonical_id(passage.id) == passage.id
        for unknown in ("", "0", "not an id", make_id("sky").replace("-", ""), "²"):
            once = filled.store.canonical_id(unknown)
            assert filled.store.canonical_id(once) == once

    def test_filter_still_returns_k_passages(self, attach: AttachStore) -> None:
        attached_store = attach()
        mine = [_make_passage(f"m{n}", f"Another animal like a zebra {n}") for n in range(2)]
        letters = [f"{one} {other}" for one in "abcdefgh" for other in "ijklmnop"]  # equal vectors confuse a graph
        attached_store.put([*(_make_passage(each, f"Zebra zebra {each}", "de") for each in letters), *mine])
        result = attached_store.store.nearest("Zebra zebra", 2, attached_store.english)
        assert _sorted_ids(p for p, _ in result) == _sorted_ids(mine)

    def test_fetch_returns_only_existing_ids(self, filled: AttachedStore) -> None:
        queries = [make_id("nobody"), make_id("zebra"), make_id(TEXTS[1])]
        assert _sorted_ids(filled.store.fetch(queries, None)) == sorted(queries[1:])
        assert list(filled.store.fetch([make_id("nobody")], None)) == []
        assert list(filled.store.fetch([], None)) == []
        assert list(filled.store.fetch([], filled.english)) == []

    def test_fetch_with_filter_returns_only_matching_ids(self, filled: AttachedStore) -> None:
        result = _sorted_ids(filled.store.fetch([make_id("zebra"), make_id(TEXTS[1])], filled.english))
        assert result == ([make_id(TEXTS[1])] if self.can_filter_ids else [])

    def test_deleted_passage_is_gone_at_once(self, filled: AttachedStore) -> None:
        filled.drop([make_id("zebra")])
        assert make_id("zebra") not in _sorted_ids(p for p, _ in filled.store.nearest("Zebra facts for you.", 50, None))
        assert list(filled.store.fetch([make_id("zebra")], None)) == []
        if self.can_list:
            assert _sorted_ids(filled.store.list_passages()) == sorted(map(make_id, TEXTS))
            assert filled.store.size() == len(TEXTS)

    def test_replaced_passage_is_returned_with_new_content(self, filled: AttachedStore) -> None:
        filled.put([_make_passage("zebra", "Yaks yawn.")])
        (stored,) = filled.store.fetch([make_id("zebra")], None)
        assert (stored.text, stored.metadata["lang"]) == ("Yaks yawn.", "en")
        nearest, _ = filled.store.nearest("Yaks yawn.", 1, filled.english)[0]
        assert nearest.text == "Yaks yawn."
        if self.can_list:
            assert filled.store.size() == len(TEXTS) + 1

    def test_many_passages_are_listed_and_counted(self, attach: AttachStore) -> None:
        attached_store = attach()
        if not self.can_list:
            with pytest.raises(ConfigurationError):
                list(attached_store.store.list_passages())
            pytest.skip(f"{attached_store.store.name} declares that it can't list what it holds")
        assert list(attached_store.store.list_passages()) == []
        attached_store.put([_make_passage(n, f"Passage number {n}") for n in range(MANY)])
        assert _sorted_ids(attached_store.store.list_passages()) == sorted(map(make_id, range(MANY)))
        assert attached_store.store.size() == MANY

    def test_many_ids_can_be_fetched_at_once(self, attach: AttachStore) -> None:
        attached_store = attach()
        attached_store.put([_make_passage(n, f"Passage number {n}", "en" if n % 2 else "de") for n in range(MANY)])
        all_ids = list(map(make_id, range(MANY)))
        assert _sorted_ids(attached_store.store.fetch(all_ids, None)) == sorted(all_ids)
        if self.can_filter_ids:
            english = sorted(map(make_id, range(1, MANY, 2)))
            assert _sorted_ids(attached_store.store.fetch(all_ids, attached_store.english)) == english

    def test_blank_passage_does_not_disturb_others(self, filled: AttachedStore) -> None:
        if not self.accepts_blank_text:
            pytest.skip(f"{filled.store.name} declares that its users can't give it passages without text")
        filled.put([_make_passage("blank", " ")])
        assert set(map(make_id, TEXTS)) <= set(_sorted_ids(p for p, _ in filled.store.nearest(TEXTS[0], 50, None)))
        assert not _retriever(filled, listed=self.can_list).is_stale

    def test_concurrent_reads_give_same_results(self, filled: AttachedStore) -> None:

        def read(text: str) -> tuple[list[str], list[str]]:
            near = [p.id for p, _ in filled.store.nearest(text, 2, filled.english)]
            return near, _sorted_ids(filled.store.fetch(near, None))

        queries = [*TEXTS] * 8
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(read, queries)) == [read(text) for text in queries]

    def test_retriever_respects_filters_deletions_and_staleness(self, filled: AttachedStore) -> None:
        retriever = _retriever(filled, listed=self.can_list)
        low: dict[str, Any] = {"threshold": 0.0, "fallback_floor": 0.0}
        for sources in ("hybrid", "dense", "lexical"):
            result = retriever.retrieve("Zebra facts for you.", where=filled.english, sources=sources, **low)
            assert make_id("zebra") not in {c.id for c in result.trace.candidates}
        filled.drop([make_id("zebra")])
        if not self.can_list:
            after_deletion = retriever.retrieve("Zebra facts for you.", **low)
            assert make_id("zebra") not in {c.id for c in after_deletion.trace.candidates}
            return
        with pytest.warns(StaleWarning):
            after_deletion = retriever.retrieve("Zebra facts for you.", **low)
        assert make_id("zebra") not in {c.id for c in after_deletion.trace.candidates}
        filled.put([_make_passage("yak", "Yaks yawn.")])
        assert retriever.refresh() == len(TEXTS) + 1
        assert not retriever.is_stale
        result = retriever.retrieve("yawn", sources="lexical")
        assert [p.passage.id for p in result.passages] == [make_id("yak")]

    def test_random_changes_match_a_dict(self, attach: AttachStore) -> None:
        if not self.keeps_ids_after_removals:
            pytest.skip(f"{attach().store.name} declares that additions after a removal replace others")
        steps = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 6), min_size=1), st.booleans()), max_size=8)

        @settings(max_examples=15, deadline=None)
        @given(steps)
        def story(steps: list[tuple[bool, set[int], bool]]) -> None:
            attached_store, expected = attach(), dict[str, Passage]()
            for turn, (adds, names, english) in enumerate(steps):
                if adds:
                    new = [
                        _make_passage(n, f"Story {n} of turn {turn}", "en" if english else "de") for n in sorted(names)
                    ]
                    attached_store.put(new)
                    expected |= {p.id: p for p in new}
                elif removed := [make_id(n) for n in names if make_id(n) in expected]:
                    attached_store.drop(removed)
                    expected = {i: p for i, p in expected.items() if i not in removed}
            store, texts = attached_store.store, _sorted_texts(expected.values())
            english_texts = _sorted_texts(p for p in expected.values() if p.metadata["lang"] == "en")
            assert _sorted_texts(store.fetch([make_id(n) for n in range(7)], None)) == texts
            assert _sorted_texts(p for p, _ in store.nearest("Story", 50, None)) == texts
            assert _sorted_texts(p for p, _ in store.nearest("Story", 50, attached_store.english)) == english_texts
            if self.can_list:
                assert _sorted_texts(store.list_passages()) == texts
                assert store.size() == len(expected)

        story()


def _retriever(attached: AttachedStore, *, listed: bool) -> StoreRetriever:
    """Return a retriever over the store, with its keyword index filled."""
    engine = Engine(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
    retriever = StoreRetriever(attached.store, engine)
    if listed:
        retriever.refresh()
    else:
        ids = [*map(make_id, TEXTS), make_id("zebra")]
        retriever.index(attached.store.fetch(ids, None))
    return retriever


def _sorted_texts(passages: Iterable[Passage]) -> list[tuple[str, str]]:
    return sorted((p.id, p.text) for p in passages)
