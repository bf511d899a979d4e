"""What every dense index must do: inherit `DenseIndexContract`, override `make_index`, and pytest does the rest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meve._extras import require_imports
from meve._formulas import normalize
from meve.errors import DuplicateIdError, IndexCorruptError, IndexNotFoundError, UnknownIdError, VectorError
from meve.ports import DenseIndex
from meve.testing import NEEDS, SUITE
from meve.testing.interruption import Interruption, interrupted
from meve.types import FloatArray, RowArray

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st

MakeDense = Callable[[int], DenseIndex]
"""Makes an empty index for vectors of this length."""


def _rows(*keys: int) -> RowArray:
    return np.array(keys, dtype=np.int64)


def _clustered(count: int, dimension: int, seed: int) -> FloatArray:
    """Unit vectors around a few centres, as embeddings lie, shape (count, dimension)."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(20, dimension))
    vectors = centres[random.integers(0, 20, count)] + 0.7 * random.normal(size=(count, dimension))
    return normalize(vectors)


def _nearest(held: dict[int, FloatArray], query: FloatArray, k: int) -> list[int]:
    scores = np.einsum("ij,j->i", np.array(list(held.values())).reshape(-1, len(query)), query)
    scored = dict(zip(held, scores.tolist(), strict=True))
    return sorted(scored, key=lambda row: (-scored[row], row))[:k]


class DenseIndexContract:
    """Rules for a `meve.ports.DenseIndex`."""

    exact = True
    """Whether it finds the very nearest; otherwise `recall` of them."""
    exact_when_small = True
    """Whether it finds the very nearest as long as it holds few vectors; otherwise those tests are skipped."""
    recall = 0.95
    size = 3_000
    """Of the index whose recall is measured; large enough that the index doesn't just compare all."""

    interrupted_size = 40
    """Of the index whose changes are interrupted: an add of three should start what an add may start, as a training."""

    @pytest.fixture
    def make_index(self) -> MakeDense:
        """Override: makes an empty index for vectors of a given length."""
        raise NotImplementedError("a contract test must override make_index")

    @pytest.fixture
    def index(self, make_index: MakeDense) -> DenseIndex:
        """Three vectors of length 2 under the rows 30, 10 and 20."""
        index = make_index(2)
        index.add(_rows(30, 10, 20), np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
        return index

    def test_an_empty_index_finds_nothing(self, make_index: MakeDense) -> None:
        """An index without vectors answers with empty arrays of the right types."""
        rows, scores = make_index(3).search(np.ones(3, dtype=np.float32), 5)
        assert rows.shape == scores.shape == (0,)
        assert rows.dtype == np.int64
        assert scores.dtype == np.float32

    def test_the_largest_inner_products_come_first(self, index: DenseIndex) -> None:
        """Rows come best first, with their inner products."""
        rows, scores = index.search(np.array([2, 0], dtype=np.float32), 2)
        assert rows.tolist() == [30, 20]
        assert scores == pytest.approx([2.0, 1.2])

    def test_length_counts(self, index: DenseIndex) -> None:
        """The inner product isn't the cosine: a longer vector scores higher."""
        index.add(_rows(40), np.array([[5, 0]], dtype=np.float32))
        assert index.search(np.array([1, 0], dtype=np.float32), 1)[0].tolist() == [40]

    def test_it_returns_all_there_is_when_k_is_larger(self, index: DenseIndex) -> None:
        """With k above the number of vectors, all of them come."""
        assert len(index.search(np.array([1, 0], dtype=np.float32), 99)[0]) == len(index) == 3

    def test_equal_scores_go_by_row(self, make_index: MakeDense) -> None:
        """Equal vectors come in the order of their rows, whatever the order they were added in."""
        self._needs_exact_when_small()
        index = make_index(7)
        keys = np.random.default_rng(1).permutation(99)
        index.add(keys, np.tile(np.linspace(-1, 1, 7, dtype=np.float32), (99, 1)))
        assert index.search(np.full(7, 0.3, dtype=np.float32), 99)[0].tolist() == list(range(99))

    def test_an_add_is_seen_at_once(self, index: DenseIndex) -> None:
        """The next search finds what was just added."""
        index.add(_rows(5), np.array([[9, 9]], dtype=np.float32))
        assert index.search(np.array([1, 1], dtype=np.float32), 1)[0].tolist() == [5]

    def test_a_removal_is_seen_at_once(self, index: DenseIndex) -> None:
        """The next search doesn't find what was just removed."""
        index.remove(_rows(30))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == [20, 10]
        assert len(index) == 2

    def test_most_can_be_removed(self, make_index: MakeDense) -> None:
        """After most vectors are gone, the others are all found."""
        index = make_index(8)
        index.add(np.arange(500), _clustered(500, 8, seed=2))
        for start in range(0, 490, 70):
            index.remove(np.arange(start, start + 70))
        assert sorted(index.search(np.ones(8, dtype=np.float32), 99)[0].tolist()) == list(range(490, 500))

    def test_all_can_be_removed_and_others_added(self, index: DenseIndex) -> None:
        """An index that was emptied works like a new one."""
        index.remove(_rows(10, 20, 30))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == []
        index.add(_rows(50), np.array([[1, 1]], dtype=np.float32))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == [50]

    def test_a_filter_lets_through_only_what_it_names(self, index: DenseIndex) -> None:
        """Only allowed rows come; allowed rows that aren't there don't matter."""
        assert index.search(np.array([1, 0], dtype=np.float32), 3, _rows(10, 77))[0].tolist() == [10]
        assert index.search(np.array([1, 0], dtype=np.float32), 3, _rows())[0].tolist() == []

    def test_vectors_come_back_as_they_were(self, index: DenseIndex) -> None:
        """Stored vectors are those that were given, in the order asked for."""
        assert index.vectors(_rows(20, 30)).tolist() == np.array([[0.6, 0.8], [1, 0]], dtype=np.float32).tolist()
        assert index.vectors(_rows()).shape == (0, 2)

    @pytest.mark.parametrize(
        "bad", [np.ones((2, 3)), np.ones((1, 2)), np.ones(2), [[1, np.nan], [1, 1]], [[1, 1], [np.inf, 1]]]
    )
    def test_bad_vectors_change_nothing(self, index: DenseIndex, bad: FloatArray) -> None:
        """Vectors of a wrong shape, or with NaN or infinity, are refused, and none is taken in."""
        with pytest.raises(VectorError):
            index.add(_rows(1, 2), np.array(bad, dtype=np.float32))
        assert len(index) == 3
        index.add(_rows(1, 2), np.zeros((2, 2), dtype=np.float32))

    @pytest.mark.parametrize("bad", [np.ones(3), np.ones((1, 2)), [np.nan, 1]])
    def test_a_bad_query_is_refused(self, index: DenseIndex, bad: FloatArray) -> None:
        """A query of a wrong shape, or with NaN, is refused."""
        with pytest.raises(VectorError):
            index.search(np.array(bad, dtype=np.float32), 1)

    @pytest.mark.parametrize("keys", [(1, 10), (1, 1)])
    def test_a_taken_row_changes_nothing(self, index: DenseIndex, keys: tuple[int, int]) -> None:
        """A row that is taken, or given twice, is refused, and none is taken in."""
        with pytest.raises(DuplicateIdError, match=str(keys[1])):
            index.add(_rows(*keys), np.ones((2, 2), dtype=np.float32))
        assert len(index) == 3

    def test_an_unknown_row_changes_nothing(self, index: DenseIndex) -> None:
        """A row that isn't there can't be removed or read, and none is removed."""
        with pytest.raises(UnknownIdError, match="99"):
            index.remove(_rows(10, 99))
        with pytest.raises(UnknownIdError, match="99"):
            index.vectors(_rows(99))
        assert len(index) == 3

    def test_it_finds_the_nearest_of_many(self, make_index: MakeDense) -> None:
        """With tombstones, unfiltered and filtered, it finds the nearest: all if exact, most otherwise, never fewer."""
        vectors = _clustered(self.size, 16, seed=3)
        index = make_index(16)
        index.add(np.arange(self.size), vectors)
        index.remove(np.arange(0, self.size, 6))
        held = {row: vectors[row] for row in range(self.size) if row % 6}
        random = np.random.default_rng(4)
        for share in (1.0, 0.6, 0.1, 0.01):
            allowed = None if share == 1 else np.flatnonzero(random.random(self.size) < share)
            candidates = held if allowed is None else {row: held[row] for row in allowed.tolist() if row in held}
            hits = wanted = 0
            for query in _clustered(10, 16, seed=5):
                expected = _nearest(candidates, query, 10)
                found = index.search(query, 10, allowed)[0].tolist()
                assert len(set(found)) == len(expected)
                assert set(found) <= candidates.keys()
                hits += len(set(found) & set(expected))
                wanted += len(expected)
            assert hits >= (1 if self.exact else self.recall) * wanted

    def test_a_far_filter_never_comes_back_short(self, make_index: MakeDense) -> None:
        """Allowed rows that lie on the far side of the query are found all the same."""
        vectors = _clustered(self.size, 16, seed=6)
        index = make_index(16)
        index.add(np.arange(self.size), vectors)
        far = np.argsort(vectors @ vectors[0])[: self.size // 8]
        rows, _ = index.search(vectors[0], 20, far)
        assert len(rows) == 20
        assert set(rows.tolist()) <= set(far.tolist())

    def test_a_saved_index_answers_the_same(self, make_index: MakeDense, tmp_path: Path) -> None:
        """What was saved, tombstones and all, answers as before, and takes adds and removals."""
        vectors = _clustered(self.size, 8, seed=7)
        index = make_index(8)
        index.add(np.arange(self.size), vectors)
        index.remove(np.arange(0, 100))
        index.save(tmp_path / "index")
        loaded = type(index).load(tmp_path / "index")
        for query in _clustered(5, 8, seed=8):
            before, after = index.search(query, 10), loaded.search(query, 10)
            assert before[0].tolist() == after[0].tolist()
            assert before[1].tolist() == after[1].tolist()
        assert (len(loaded), loaded.dimension, loaded.kind) == (len(index), 8, index.kind)
        loaded.add(_rows(self.size), 9 * vectors[:1])
        loaded.remove(_rows(101))
        assert loaded.search(vectors[0], 1)[0].tolist() == [self.size]

    def test_an_empty_index_can_be_saved(self, make_index: MakeDense, tmp_path: Path) -> None:
        """An index without vectors comes back from its file."""
        make_index(4).save(tmp_path / "index")
        assert len(type(make_index(4)).load(tmp_path / "index")) == 0

    def test_a_damaged_file_is_named(self, index: DenseIndex, tmp_path: Path) -> None:
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

    def test_threads_may_search_at_once(self, make_index: MakeDense) -> None:
        """Searches in several threads, with different k and filters, don't disturb one another."""
        vectors = _clustered(self.size, 16, seed=9)
        index = make_index(16)
        index.add(np.arange(self.size), vectors)

        def find(i: int) -> list[int]:
            allowed = np.arange(0, self.size, 1 + i % 3) if i % 2 else None
            rows: list[int] = index.search(vectors[i], 5 + 20 * (i % 4), allowed)[0].tolist()
            return rows

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(find, range(40))) == [find(i) for i in range(40)]

    @pytest.mark.parametrize(
        ("change", "error"),
        [("more", Interruption), ("one less", Interruption), ("most away", Interruption), ("most away", MemoryError)],
    )
    def test_an_interrupted_change_is_made_or_not(
        self, make_index: MakeDense, tmp_path: Path, change: str, error: type[BaseException]
    ) -> None:
        """Wherever an add or a removal is interrupted, the index is as before or as after it, and works on."""
        size = self.interrupted_size
        vectors, queries = _clustered(size + 5, 4, seed=7), _clustered(3, 4, seed=8)
        gone = np.arange(size // 2) if change == "most away" else _rows(4)
        held = dict(enumerate(vectors[:size]))
        after = (
            dict(enumerate(vectors[: size + 3])) if change == "more" else {r: held[r] for r in held if r not in gone}
        )
        start = make_index(4)
        start.add(np.arange(size), vectors[:size])
        start.save(tmp_path / "start")

        def attempt(at: int) -> tuple[DenseIndex, list[int]]:
            index = type(start).load(tmp_path / "start")
            if change == "more":
                keys, more = np.arange(size, size + 3), vectors[size : size + 3]
                return index, interrupted(lambda: index.add(keys, more), at, error)
            return index, interrupted(lambda: index.remove(gone), at, error)

        def agrees(index: DenseIndex, expected: dict[int, FloatArray]) -> None:
            assert len(index) == len(expected)
            assert index.vectors(_rows(*expected)).tolist() == np.array(list(expected.values())).tolist()
            assert set(index.search(queries[0], 2 * size)[0].tolist()) == expected.keys()
            for query in queries:
                found = index.search(query, 4)[0].tolist()
                assert found == _nearest(expected, query, 4) if self.exact_when_small else found

        agrees(attempt(-1)[0], after)
        for at in attempt(-1)[1]:
            index, _ = attempt(at)
            expected = dict(after if len(index) == len(after) else held)
            agrees(index, expected)
            if at % 3 == 0:
                index.save(tmp_path / "later")
                agrees(type(index).load(tmp_path / "later"), expected)
            index.add(_rows(9_000, 9_001), vectors[-2:])
            index.remove(_rows(9_001, size - 1))
            del expected[size - 1]
            agrees(index, expected | {9_000: vectors[-2]})

    def test_a_random_story_agrees_with_a_dict(self, make_index: MakeDense) -> None:
        """After any adds and removals, a search finds what comparing all finds, with or without a filter."""
        self._needs_exact_when_small()
        steps = st.lists(
            st.tuples(st.sampled_from(["add", "remove"]), st.integers(1, 5), st.integers(0, 99)), max_size=12
        )

        @settings(max_examples=30, deadline=None)
        @given(steps, st.integers(1, 8), st.sets(st.integers(0, 60)))
        def story(steps: list[tuple[str, int, int]], k: int, allowed: set[int]) -> None:
            index, held, next_row = make_index(3), dict[int, FloatArray](), 0
            for act, count, seed in steps:
                random = np.random.default_rng(seed)
                if act == "add":
                    keys = np.arange(next_row, next_row + count)
                    vectors = random.integers(-2, 3, (count, 3)).astype(np.float32)  # many ties
                    index.add(keys, vectors)
                    held.update(zip(keys.tolist(), vectors, strict=True))
                    next_row += count
                elif held:
                    gone = random.permutation(list(held))[:count]
                    index.remove(gone)
                    for row in gone.tolist():
                        del held[row]
                query = random.integers(-2, 3, 3).astype(np.float32)
                assert len(index) == len(held)
                assert index.search(query, k)[0].tolist() == _nearest(held, query, k)
                admitted = {row: vector for row, vector in held.items() if row in allowed}
                found = index.search(query, k, np.array(sorted(allowed), dtype=np.int64))[0].tolist()
                assert found == _nearest(admitted, query, k)

        story()

    def _needs_exact_when_small(self) -> None:
        if not self.exact_when_small:
            pytest.skip(f"{type(self).__name__} declares that it is approximate even when small")
