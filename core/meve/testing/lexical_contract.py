"""The contract of lexical indexes. Inherit `LexicalIndexContract`, override `make_index`, and run pytest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meve._extras import require_imports
from meve.errors import DuplicateIdError, PassageError, UnknownIdError
from meve.ports import LexicalIndex
from meve.testing import NEEDS, SUITE
from meve.testing._saved_index_contract import SavedIndexContract, make_rows
from meve.testing.interruption import Interruption, run_interrupted
from meve.types import RowArray

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st

MakeLexical = Callable[[], LexicalIndex]
"""A function that makes an empty index."""

TEXTS = {
    30: "the moon orbits the earth",
    10: "the sun is a star",
    20: "a star far from the sun",
    40: "cats sleep",
    50: "dogs bark at cats",
}
"""The content of the fixture `index`."""


def _answers(index: LexicalIndex, query: str, k: int = 99, allowed: RowArray | None = None) -> list[tuple[int, float]]:
    rows, scores = index.search(query, k, allowed)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


class LexicalIndexContract(SavedIndexContract):
    """The rules of `meve.ports.LexicalIndex`."""

    @pytest.fixture
    def make_index(self) -> MakeLexical:
        """Return a function that makes an empty index."""
        raise NotImplementedError("override the fixture `make_index`")

    @pytest.fixture
    def index(self, make_index: MakeLexical) -> LexicalIndex:
        """Return an index of `TEXTS`."""
        index = make_index()
        index.add(make_rows(*TEXTS), list(TEXTS.values()))
        return index

    def test_search_of_empty_index_returns_nothing(self, make_index: MakeLexical) -> None:
        rows, scores = make_index().search("moon", 5)
        assert rows.shape == scores.shape == (0,)
        assert rows.dtype == np.int64
        assert scores.dtype == np.float32

    def test_all_texts_sharing_a_word_are_found(self, index: LexicalIndex) -> None:
        assert sorted(row for row, _ in _answers(index, "sun cats")) == [10, 20, 40, 50]

    @pytest.mark.parametrize("query", ["", "   ", "unheard"])
    def test_query_without_known_word_finds_nothing(self, index: LexicalIndex, query: str) -> None:
        assert _answers(index, query) == []

    def test_best_scores_come_first(self, index: LexicalIndex) -> None:
        answers = _answers(index, "moon earth cats")
        assert answers[0][0] == 30
        assert [score for _, score in answers] == sorted((score for _, score in answers), reverse=True)

    def test_k_limits_results_to_the_best(self, index: LexicalIndex) -> None:
        assert _answers(index, "the sun cats", 2) == _answers(index, "the sun cats")[:2]
        assert _answers(index, "the sun cats", 0) == []

    def test_equal_scores_are_ordered_by_row(self, make_index: MakeLexical) -> None:
        index = make_index()
        keys = np.random.default_rng(1).permutation(60)
        index.add(keys, ["one of many"] * 60)
        index.add(make_rows(*range(60, 200)), ["something else"] * 140)
        assert [row for row, _ in _answers(index, "many", 7)] == list(range(7))

    def test_repeated_query_word_counts_twice(self, index: LexicalIndex) -> None:
        once, twice = dict(_answers(index, "moon")), dict(_answers(index, "moon moon"))
        assert twice[30] == pytest.approx(2 * once[30])

    def test_added_row_is_found_at_once(self, index: LexicalIndex) -> None:
        index.add(make_rows(5), ["comets"])
        assert [row for row, _ in _answers(index, "comets")] == [5]
        assert len(index) == 6

    def test_removed_row_is_gone_at_once(self, index: LexicalIndex) -> None:
        index.remove(make_rows(10))
        assert [row for row, _ in _answers(index, "sun")] == [20]
        assert len(index) == 4

    def test_emptied_index_accepts_new_rows(self, index: LexicalIndex) -> None:
        index.remove(make_rows(*TEXTS))
        assert _answers(index, "sun") == []
        index.add(make_rows(60), ["the sun again"])
        assert [row for row, _ in _answers(index, "sun")] == [60]

    def test_filter_returns_only_allowed_rows(self, index: LexicalIndex) -> None:
        everywhere = _answers(index, "the sun")
        assert _answers(index, "the sun", allowed=make_rows(20, 40, 77)) == [
            pair for pair in everywhere if pair[0] == 20
        ]
        assert _answers(index, "the sun", allowed=make_rows()) == []

    @pytest.mark.parametrize("keys", [(1, 10), (1, 1)])
    def test_duplicate_row_raises_and_changes_nothing(self, index: LexicalIndex, keys: tuple[int, int]) -> None:
        with pytest.raises(DuplicateIdError, match=str(keys[1])):
            index.add(make_rows(*keys), ["comets", "comets"])
        assert len(index) == 5
        assert _answers(index, "comets") == []

    @pytest.mark.parametrize("texts", [["comets"], "no", [b"comets", "comets"]])
    def test_invalid_texts_raise_and_change_nothing(self, index: LexicalIndex, texts: list[str]) -> None:
        with pytest.raises(PassageError):
            index.add(make_rows(1, 2), texts)
        assert len(index) == 5
        assert _answers(index, "comets no") == []

    def test_unknown_row_raises_and_changes_nothing(self, index: LexicalIndex) -> None:
        with pytest.raises(UnknownIdError, match="99"):
            index.remove(make_rows(10, 99))
        assert len(index) == 5
        assert 10 in dict(_answers(index, "sun"))

    def test_text_without_words_is_stored_and_never_found(self, index: LexicalIndex) -> None:
        index.add(make_rows(60), [" "])
        assert len(index) == 6
        assert 60 not in dict(_answers(index, "the sun moon cats"))
        index.remove(make_rows(60))

    def test_loaded_index_gives_same_results(self, index: LexicalIndex, tmp_path: Path) -> None:
        index.remove(make_rows(10))
        index.save(tmp_path / "index")
        loaded = type(index).load(tmp_path / "index")
        for query in ("the sun", "cats", "moon star a"):
            assert _answers(loaded, query) == _answers(index, query)
        assert (len(loaded), loaded.kind) == (4, index.kind)
        loaded.add(make_rows(70), ["the sun, again"])
        loaded.remove(make_rows(20))
        assert 70 in dict(_answers(loaded, "again the"))

    def test_empty_index_can_be_saved_and_loaded(self, make_index: MakeLexical, tmp_path: Path) -> None:
        make_index().save(tmp_path / "index")
        loaded = type(make_index()).load(tmp_path / "index")
        assert _answers(loaded, "moon") == []

    def test_saved_file_holds_no_words_of_removed_texts(self, index: LexicalIndex, tmp_path: Path) -> None:
        index.remove(make_rows(50))
        index.save(tmp_path / "index")
        assert b"dogs" not in (tmp_path / "index").read_bytes()
        assert b"cats" in (tmp_path / "index").read_bytes()

    def test_concurrent_searches_give_same_results(self, index: LexicalIndex) -> None:
        index.add(make_rows(60), ["the sun again"])
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: _answers(index, "the sun cats"), range(40)))
        assert answers == [answers[0]] * 40

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            *((change, Interruption) for change in ("one more", "many more", "one less", "most away")),
            ("most away", MemoryError),
        ],
    )
    def test_interrupted_change_is_complete_or_absent(
        self, make_index: MakeLexical, tmp_path: Path, change: str, error: type[BaseException]
    ) -> None:
        stored = {row: f"{'moon ' * (row % 3)}w{row % 4} w{row} sun" for row in range(11)}
        added = {row: f"moon {'late ' * row} w{row}" for row in range(20, 21 if change == "one more" else 25)}
        removed = make_rows(*range(7)) if change == "most away" else make_rows(4)
        after = stored | added if "more" in change else {row: stored[row] for row in stored if row not in removed}

        def answers(index: LexicalIndex) -> object:
            queries = "moon sun", "w1 moon late", "sun w4 w20"
            return len(index), [_answers(index, query) for query in queries], _answers(index, "moon sun", 3, removed)

        def fresh_index(texts: dict[int, str]) -> LexicalIndex:
            index = make_index()
            index.add(make_rows(*texts), list(texts.values()))
            return index

        def attempt(at: int) -> tuple[LexicalIndex, list[int]]:
            index = fresh_index(dict(list(stored.items())[:9]))
            index.add(make_rows(9, 10), [stored[9], stored[10]])
            answers(index)  # now it holds whatever it remembers from search to search
            if "more" in change:
                return index, run_interrupted(lambda: index.add(make_rows(*added), list(added.values())), at, error)
            return index, run_interrupted(lambda: index.remove(removed), at, error)

        def continue_after(index: LexicalIndex) -> object:
            index.add(make_rows(30, 31), ["late moon w1", "sun w4"])
            index.remove(make_rows(30, 8))
            return answers(index)

        outcomes = {
            str(answers(fresh_index(texts))): str(continue_after(fresh_index(texts))) for texts in (stored, after)
        }
        assert str(answers(attempt(-1)[0])) == list(outcomes)[1]
        for at in attempt(-1)[1]:
            index, _ = attempt(at)
            result = str(answers(index))
            assert result in outcomes
            if at % 3 == 0:
                index.save(tmp_path / "later")
                assert str(answers(type(index).load(tmp_path / "later"))) == result
            assert str(continue_after(index)) == outcomes[result]

    def test_random_changes_match_a_fresh_index(self, make_index: MakeLexical) -> None:
        text = st.lists(st.sampled_from("bcdefghj"), max_size=6).map(" ".join)
        step = st.one_of(st.lists(text, min_size=1, max_size=6), st.integers(1, 5))

        @settings(max_examples=40, deadline=None)
        @given(st.lists(step, max_size=12), st.randoms(use_true_random=False), st.sets(st.integers(0, 40)))
        def story(steps: list[list[str] | int], random: "object", allowed: set[int]) -> None:
            index, stored, next_row = make_index(), dict[int, str](), 0
            for step in steps:
                if isinstance(step, list):
                    added = dict(enumerate(step, start=next_row))
                    index.add(make_rows(*added), step)
                    stored |= added
                    next_row += len(step)
                elif stored:
                    removed = random.sample(sorted(stored), min(step, len(stored)))  # type: ignore[attr-defined]
                    index.remove(make_rows(*removed))
                    for row in removed:
                        del stored[row]
                assert len(index) == len(stored)
                query = "b c c j"
                answers = _answers(index, query)
                fresh_index = make_index()
                fresh_index.add(make_rows(*stored), list(stored.values()))
                assert answers == _answers(fresh_index, query)
                assert {row for row, _ in answers} == {row for row in stored if set("bcj") & set(stored[row].split())}
                filtered = _answers(index, query, 3, make_rows(*sorted(allowed)))
                assert filtered == [pair for pair in answers if pair[0] in allowed][:3]

        story()
