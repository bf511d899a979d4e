"""What every lexical index must do: inherit `LexicalIndexContract`, override `make_index`, and pytest does the rest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meve._extras import require_imports
from meve.errors import DuplicateIdError, IndexCorruptError, IndexNotFoundError, PassageError, UnknownIdError
from meve.ports import LexicalIndex
from meve.testing import NEEDS, SUITE
from meve.testing.interruption import Interruption, interrupted
from meve.types import RowArray

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st

MakeLexical = Callable[[], LexicalIndex]
"""Makes an empty index."""

TEXTS = {
    30: "the moon orbits the earth",
    10: "the sun is a star",
    20: "a star far from the sun",
    40: "cats sleep",
    50: "dogs bark at cats",
}
"""What the index of these tests holds."""


def _rows(*keys: int) -> RowArray:
    return np.array(keys, dtype=np.int64)


def _answers(index: LexicalIndex, query: str, k: int = 99, allowed: RowArray | None = None) -> list[tuple[int, float]]:
    rows, scores = index.search(query, k, allowed)
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


class LexicalIndexContract:
    """Rules for a `meve.ports.LexicalIndex`."""

    @pytest.fixture
    def make_index(self) -> MakeLexical:
        """Override: makes an empty index."""
        raise NotImplementedError("a contract test must override make_index")

    @pytest.fixture
    def index(self, make_index: MakeLexical) -> LexicalIndex:
        """The five texts above."""
        index = make_index()
        index.add(_rows(*TEXTS), list(TEXTS.values()))
        return index

    def test_an_empty_index_finds_nothing(self, make_index: MakeLexical) -> None:
        """An index without texts answers with empty arrays of the right types."""
        rows, scores = make_index().search("moon", 5)
        assert rows.shape == scores.shape == (0,)
        assert rows.dtype == np.int64
        assert scores.dtype == np.float32

    def test_texts_that_share_words_are_found(self, index: LexicalIndex) -> None:
        """All texts that share a word come, and no others."""
        assert sorted(row for row, _ in _answers(index, "sun cats")) == [10, 20, 40, 50]

    @pytest.mark.parametrize("query", ["", "   ", "unheard"])
    def test_nothing_shared_finds_nothing(self, index: LexicalIndex, query: str) -> None:
        """A query without a known word finds nothing."""
        assert _answers(index, query) == []

    def test_the_best_come_first(self, index: LexicalIndex) -> None:
        """Scores fall, and the text with more of the rarer words leads."""
        answers = _answers(index, "moon earth cats")
        assert answers[0][0] == 30
        assert [score for _, score in answers] == sorted((score for _, score in answers), reverse=True)

    def test_k_cuts_off_the_worst(self, index: LexicalIndex) -> None:
        """The k best are the first k of all."""
        assert _answers(index, "the sun cats", 2) == _answers(index, "the sun cats")[:2]
        assert _answers(index, "the sun cats", 0) == []

    def test_equal_scores_go_by_row(self, make_index: MakeLexical) -> None:
        """Equal texts come in the order of their rows, and the smallest survive the cut-off."""
        index = make_index()
        keys = np.random.default_rng(1).permutation(60)
        index.add(keys, ["one of many"] * 60)
        index.add(_rows(*range(60, 200)), ["something else"] * 140)
        assert [row for row, _ in _answers(index, "many", 7)] == list(range(7))

    def test_a_repeated_query_word_counts_again(self, index: LexicalIndex) -> None:
        """A word given twice counts twice."""
        once, twice = dict(_answers(index, "moon")), dict(_answers(index, "moon moon"))
        assert twice[30] == pytest.approx(2 * once[30])

    def test_an_add_is_seen_at_once(self, index: LexicalIndex) -> None:
        """The next search finds what was just added."""
        index.add(_rows(5), ["comets"])
        assert [row for row, _ in _answers(index, "comets")] == [5]
        assert len(index) == 6

    def test_a_removal_is_seen_at_once(self, index: LexicalIndex) -> None:
        """The next search doesn't find what was just removed."""
        index.remove(_rows(10))
        assert [row for row, _ in _answers(index, "sun")] == [20]
        assert len(index) == 4

    def test_all_can_be_removed_and_others_added(self, index: LexicalIndex) -> None:
        """An index that was emptied works like a new one."""
        index.remove(_rows(*TEXTS))
        assert _answers(index, "sun") == []
        index.add(_rows(60), ["the sun again"])
        assert [row for row, _ in _answers(index, "sun")] == [60]

    def test_a_filter_lets_through_only_what_it_names(self, index: LexicalIndex) -> None:
        """Only allowed rows come, with the scores they have without a filter; those that aren't there don't matter."""
        everywhere = _answers(index, "the sun")
        assert _answers(index, "the sun", allowed=_rows(20, 40, 77)) == [pair for pair in everywhere if pair[0] == 20]
        assert _answers(index, "the sun", allowed=_rows()) == []

    @pytest.mark.parametrize("keys", [(1, 10), (1, 1)])
    def test_a_taken_row_changes_nothing(self, index: LexicalIndex, keys: tuple[int, int]) -> None:
        """A row that is taken, or given twice, is refused, and none is taken in."""
        with pytest.raises(DuplicateIdError, match=str(keys[1])):
            index.add(_rows(*keys), ["comets", "comets"])
        assert len(index) == 5
        assert _answers(index, "comets") == []

    @pytest.mark.parametrize("texts", [["comets"], "no", [b"comets", "comets"]])
    def test_bad_texts_change_nothing(self, index: LexicalIndex, texts: list[str]) -> None:
        """Too few texts, or something that isn't text, is refused, and none is taken in."""
        with pytest.raises(PassageError):
            index.add(_rows(1, 2), texts)
        assert len(index) == 5
        assert _answers(index, "comets no") == []

    def test_an_unknown_row_changes_nothing(self, index: LexicalIndex) -> None:
        """A row that isn't there can't be removed, and none is removed."""
        with pytest.raises(UnknownIdError, match="99"):
            index.remove(_rows(10, 99))
        assert len(index) == 5
        assert 10 in dict(_answers(index, "sun"))

    def test_a_text_without_words_is_held(self, index: LexicalIndex) -> None:
        """A text without words counts, is never found, and can be removed."""
        index.add(_rows(60), [" "])
        assert len(index) == 6
        assert 60 not in dict(_answers(index, "the sun moon cats"))
        index.remove(_rows(60))

    def test_a_saved_index_answers_the_same(self, index: LexicalIndex, tmp_path: Path) -> None:
        """What was saved after a removal answers as before, and takes adds and removals."""
        index.remove(_rows(10))
        index.save(tmp_path / "index")
        loaded = type(index).load(tmp_path / "index")
        for query in ("the sun", "cats", "moon star a"):
            assert _answers(loaded, query) == _answers(index, query)
        assert (len(loaded), loaded.kind) == (4, index.kind)
        loaded.add(_rows(70), ["the sun, again"])
        loaded.remove(_rows(20))
        assert 70 in dict(_answers(loaded, "again the"))

    def test_an_empty_index_can_be_saved(self, make_index: MakeLexical, tmp_path: Path) -> None:
        """An index without texts comes back from its file."""
        make_index().save(tmp_path / "index")
        loaded = type(make_index()).load(tmp_path / "index")
        assert _answers(loaded, "moon") == []

    def test_a_removed_text_leaves_no_trace_in_the_file(self, index: LexicalIndex, tmp_path: Path) -> None:
        """Words that only a removed text held aren't in a file saved afterwards."""
        index.remove(_rows(50))
        index.save(tmp_path / "index")
        assert b"dogs" not in (tmp_path / "index").read_bytes()
        assert b"cats" in (tmp_path / "index").read_bytes()

    def test_a_damaged_file_is_named(self, index: LexicalIndex, tmp_path: Path) -> None:
        """A file that is cut, altered, foreign or missing is an error that names it."""
        path = tmp_path / "index"
        index.save(path)
        whole = path.read_bytes()
        middle = len(whole) // 2
        altered = whole[:middle] + bytes(byte ^ 255 for byte in whole[middle : middle + 64]) + whole[middle + 64 :]
        for content in (whole[:middle], altered, b"", b"not an index"):
            path.write_bytes(content)
            with pytest.raises(IndexCorruptError, match=str(path)):
                type(index).load(path)
        with pytest.raises(IndexNotFoundError, match="nowhere"):
            type(index).load(tmp_path / "nowhere")

    def test_threads_may_search_at_once(self, index: LexicalIndex) -> None:
        """Searches in several threads, right after a change, all see the same."""
        index.add(_rows(60), ["the sun again"])
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
    def test_an_interrupted_change_is_made_or_not(
        self, make_index: MakeLexical, tmp_path: Path, change: str, error: type[BaseException]
    ) -> None:
        """Wherever an add or a removal is interrupted, the index is as before or as after it, and works on."""
        held = {row: f"{'moon ' * (row % 3)}w{row % 4} w{row} sun" for row in range(11)}
        more = {row: f"moon {'late ' * row} w{row}" for row in range(20, 21 if change == "one more" else 25)}
        gone = _rows(*range(7)) if change == "most away" else _rows(4)
        after = held | more if "more" in change else {row: held[row] for row in held if row not in gone}

        def answers(index: LexicalIndex) -> object:
            queries = "moon sun", "w1 moon late", "sun w4 w20"
            return len(index), [_answers(index, query) for query in queries], _answers(index, "moon sun", 3, gone)

        def fresh(texts: dict[int, str]) -> LexicalIndex:
            index = make_index()
            index.add(_rows(*texts), list(texts.values()))
            return index

        def attempt(at: int) -> tuple[LexicalIndex, list[int]]:
            index = fresh(dict(list(held.items())[:9]))
            index.add(_rows(9, 10), [held[9], held[10]])
            answers(index)  # now it holds whatever it remembers from search to search
            if "more" in change:
                return index, interrupted(lambda: index.add(_rows(*more), list(more.values())), at, error)
            return index, interrupted(lambda: index.remove(gone), at, error)

        def lived_on(index: LexicalIndex) -> object:
            index.add(_rows(30, 31), ["late moon w1", "sun w4"])
            index.remove(_rows(30, 8))
            return answers(index)

        outcomes = {str(answers(fresh(texts))): str(lived_on(fresh(texts))) for texts in (held, after)}
        assert str(answers(attempt(-1)[0])) == list(outcomes)[1]
        for at in attempt(-1)[1]:
            index, _ = attempt(at)
            found = str(answers(index))
            assert found in outcomes
            if at % 3 == 0:
                index.save(tmp_path / "later")
                assert str(answers(type(index).load(tmp_path / "later"))) == found
            assert str(lived_on(index)) == outcomes[found]

    def test_a_random_story_agrees_with_a_fresh_index(self, make_index: MakeLexical) -> None:
        """After any adds and removals it scores exactly as one that was built afresh from what is left."""
        text = st.lists(st.sampled_from("bcdefghj"), max_size=6).map(" ".join)
        step = st.one_of(st.lists(text, min_size=1, max_size=6), st.integers(1, 5))

        @settings(max_examples=40, deadline=None)
        @given(st.lists(step, max_size=12), st.randoms(use_true_random=False), st.sets(st.integers(0, 40)))
        def story(steps: list[list[str] | int], random: "object", allowed: set[int]) -> None:
            index, held, next_row = make_index(), dict[int, str](), 0
            for step in steps:
                if isinstance(step, list):
                    added = dict(enumerate(step, start=next_row))
                    index.add(_rows(*added), step)
                    held |= added
                    next_row += len(step)
                elif held:
                    gone = random.sample(sorted(held), min(step, len(held)))  # type: ignore[attr-defined]
                    index.remove(_rows(*gone))
                    for row in gone:
                        del held[row]
                assert len(index) == len(held)
                query = "b c c j"
                answers = _answers(index, query)
                fresh = make_index()
                fresh.add(_rows(*held), list(held.values()))
                assert answers == _answers(fresh, query)
                assert {row for row, _ in answers} == {row for row in held if set("bcj") & set(held[row].split())}
                filtered = _answers(index, query, 3, _rows(*sorted(allowed)))
                assert filtered == [pair for pair in answers if pair[0] in allowed][:3]

        story()
