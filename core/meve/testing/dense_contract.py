"""The contract of dense indexes. Inherit `DenseIndexContract`, override `make_index`, and run pytest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meve._extras import require_imports
from meve._formulas import normalize
from meve.errors import DuplicateIdError, UnknownIdError, VectorError
from meve.ports import DenseIndex
from meve.testing import NEEDS, SUITE
from meve.testing._saved_index_contract import SavedIndexContract, make_rows
from meve.testing.interruption import Interruption, run_interrupted
from meve.types import FloatArray

with require_imports(SUITE, NEEDS):
    import pytest
    from hypothesis import given, settings
    from hypothesis import strategies as st

MakeDense = Callable[[int], DenseIndex]
"""A function that makes an empty index for vectors of a given length."""


def _clustered_vectors(count: int, dimension: int, seed: int) -> FloatArray:
    """Return unit vectors around a few centres, as embeddings lie, shape (count, dimension)."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(20, dimension))
    vectors = centres[random.integers(0, 20, count)] + 0.7 * random.normal(size=(count, dimension))
    return normalize(vectors)


def _nearest(stored: dict[int, FloatArray], query: FloatArray, k: int) -> list[int]:
    scores = np.einsum("ij,j->i", np.array(list(stored.values())).reshape(-1, len(query)), query)
    scored = dict(zip(stored, scores.tolist(), strict=True))
    return sorted(scored, key=lambda row: (-scored[row], row))[:k]


class DenseIndexContract(SavedIndexContract):
    """The rules of `meve.ports.DenseIndex`."""

    exact = True
    """Whether the index always finds the nearest vectors; otherwise at least a share `recall` of them."""
    exact_when_small = True
    """Whether a small index finds exactly the nearest vectors; otherwise those rules are skipped."""
    recall = 0.95
    size = 3_000
    """The size of the index whose recall is measured; large enough to be searched approximately."""

    interrupted_size = 40
    """The size of the index whose changes are interrupted; adding three more should trigger training."""

    @pytest.fixture
    def make_index(self) -> MakeDense:
        """Return a function that makes an empty index for vectors of a given length."""
        raise NotImplementedError("override the fixture `make_index`")

    @pytest.fixture
    def index(self, make_index: MakeDense) -> DenseIndex:
        """Return an index of three vectors of length 2, with rows 30, 10 and 20."""
        index = make_index(2)
        index.add(make_rows(30, 10, 20), np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
        return index

    def test_search_of_empty_index_returns_nothing(self, make_index: MakeDense) -> None:
        rows, scores = make_index(3).search(np.ones(3, dtype=np.float32), 5)
        assert rows.shape == scores.shape == (0,)
        assert rows.dtype == np.int64
        assert scores.dtype == np.float32

    def test_largest_inner_products_come_first(self, index: DenseIndex) -> None:
        rows, scores = index.search(np.array([2, 0], dtype=np.float32), 2)
        assert rows.tolist() == [30, 20]
        assert scores == pytest.approx([2.0, 1.2])

    def test_longer_vector_scores_higher(self, index: DenseIndex) -> None:
        index.add(make_rows(40), np.array([[5, 0]], dtype=np.float32))
        assert index.search(np.array([1, 0], dtype=np.float32), 1)[0].tolist() == [40]

    def test_large_k_returns_all_rows(self, index: DenseIndex) -> None:
        assert len(index.search(np.array([1, 0], dtype=np.float32), 99)[0]) == len(index) == 3

    def test_equal_scores_are_ordered_by_row(self, make_index: MakeDense) -> None:
        self._needs_exact_when_small()
        index = make_index(7)
        keys = np.random.default_rng(1).permutation(99)
        index.add(keys, np.tile(np.linspace(-1, 1, 7, dtype=np.float32), (99, 1)))
        assert index.search(np.full(7, 0.3, dtype=np.float32), 99)[0].tolist() == list(range(99))

    def test_added_row_is_found_at_once(self, index: DenseIndex) -> None:
        index.add(make_rows(5), np.array([[9, 9]], dtype=np.float32))
        assert index.search(np.array([1, 1], dtype=np.float32), 1)[0].tolist() == [5]

    def test_removed_row_is_gone_at_once(self, index: DenseIndex) -> None:
        index.remove(make_rows(30))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == [20, 10]
        assert len(index) == 2

    def test_rest_is_found_after_most_rows_are_removed(self, make_index: MakeDense) -> None:
        index = make_index(8)
        index.add(np.arange(500), _clustered_vectors(500, 8, seed=2))
        for start in range(0, 490, 70):
            index.remove(np.arange(start, start + 70))
        assert sorted(index.search(np.ones(8, dtype=np.float32), 99)[0].tolist()) == list(range(490, 500))

    def test_emptied_index_accepts_new_rows(self, index: DenseIndex) -> None:
        index.remove(make_rows(10, 20, 30))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == []
        index.add(make_rows(50), np.array([[1, 1]], dtype=np.float32))
        assert index.search(np.array([1, 0], dtype=np.float32), 3)[0].tolist() == [50]

    def test_filter_returns_only_allowed_rows(self, index: DenseIndex) -> None:
        assert index.search(np.array([1, 0], dtype=np.float32), 3, make_rows(10, 77))[0].tolist() == [10]
        assert index.search(np.array([1, 0], dtype=np.float32), 3, make_rows())[0].tolist() == []

    def test_stored_vectors_are_returned_unchanged(self, index: DenseIndex) -> None:
        assert index.vectors(make_rows(20, 30)).tolist() == np.array([[0.6, 0.8], [1, 0]], dtype=np.float32).tolist()
        assert index.vectors(make_rows()).shape == (0, 2)

    @pytest.mark.parametrize(
        "bad", [np.ones((2, 3)), np.ones((1, 2)), np.ones(2), [[1, np.nan], [1, 1]], [[1, 1], [np.inf, 1]]]
    )
    def test_invalid_vectors_raise_and_change_nothing(self, index: DenseIndex, bad: FloatArray) -> None:
        with pytest.raises(VectorError):
            index.add(make_rows(1, 2), np.array(bad, dtype=np.float32))
        assert len(index) == 3
        index.add(make_rows(1, 2), np.zeros((2, 2), dtype=np.float32))

    @pytest.mark.parametrize("bad", [np.ones(3), np.ones((1, 2)), [np.nan, 1]])
    def test_invalid_query_raises(self, index: DenseIndex, bad: FloatArray) -> None:
        with pytest.raises(VectorError):
            index.search(np.array(bad, dtype=np.float32), 1)

    @pytest.mark.parametrize("keys", [(1, 10), (1, 1)])
    def test_duplicate_row_raises_and_changes_nothing(self, index: DenseIndex, keys: tuple[int, int]) -> None:
        with pytest.raises(DuplicateIdError, match=str(keys[1])):
            index.add(make_rows(*keys), np.ones((2, 2), dtype=np.float32))
        assert len(index) == 3

    def test_unknown_row_raises_and_changes_nothing(self, index: DenseIndex) -> None:
        with pytest.raises(UnknownIdError, match="99"):
            index.remove(make_rows(10, 99))
        with pytest.raises(UnknownIdError, match="99"):
            index.vectors(make_rows(99))
        assert len(index) == 3

    def test_nearest_of_many_are_found(self, make_index: MakeDense) -> None:
        vectors = _clustered_vectors(self.size, 16, seed=3)
        index = make_index(16)
        index.add(np.arange(self.size), vectors)
        index.remove(np.arange(0, self.size, 6))
        stored = {row: vectors[row] for row in range(self.size) if row % 6}
        random = np.random.default_rng(4)
        for share in (1.0, 0.6, 0.1, 0.01):
            allowed = None if share == 1 else np.flatnonzero(random.random(self.size) < share)
            candidates = stored if allowed is None else {row: stored[row] for row in allowed.tolist() if row in stored}
            hits = wanted = 0
            for query in _clustered_vectors(10, 16, seed=5):
                expected = _nearest(candidates, query, 10)
                result = index.search(query, 10, allowed)[0].tolist()
                assert len(set(result)) == len(expected)
                assert set(result) <= candidates.keys()
                hits += len(set(result) & set(expected))
                wanted += len(expected)
            assert hits >= (1 if self.exact else self.recall) * wanted

    def test_filter_far_from_query_still_returns_k_rows(self, make_index: MakeDense) -> None:
        vectors = _clustered_vectors(self.size, 16, seed=6)
        index = make_index(16)
        index.add(np.arange(self.size), vectors)
        far = np.argsort(vectors @ vectors[0])[: self.size // 8]
        rows, _ = index.search(vectors[0], 20, far)
        assert len(rows) == 20
        assert set(rows.tolist()) <= set(far.tolist())

    def test_loaded_index_gives_same_results(self, make_index: MakeDense, tmp_path: Path) -> None:
        vectors = _clustered_vectors(self.size, 8, seed=7)
        index = make_index(8)
        index.add(np.arange(self.size), vectors)
        index.remove(np.arange(0, 100))
        index.save(tmp_path / "index")
        loaded = type(index).load(tmp_path / "index")
        for query in _clustered_vectors(5, 8, seed=8):
            before, after = index.search(query, 10), loaded.search(query, 10)
            assert before[0].tolist() == after[0].tolist()
            assert before[1].tolist() == after[1].tolist()
        assert (len(loaded), loaded.dimension, loaded.kind) == (len(index), 8, index.kind)
        loaded.add(make_rows(self.size), 9 * vectors[:1])
        loaded.remove(make_rows(101))
        assert loaded.search(vectors[0], 1)[0].tolist() == [self.size]

    def test_empty_index_can_be_saved_and_loaded(self, make_index: MakeDense, tmp_path: Path) -> None:
        make_index(4).save(tmp_path / "index")
        assert len(type(make_index(4)).load(tmp_path / "index")) == 0

    def test_concurrent_searches_give_same_results(self, make_index: MakeDense) -> None:
        vectors = _clustered_vectors(self.size, 16, seed=9)
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
    def test_interrupted_change_is_complete_or_absent(
        self, make_index: MakeDense, tmp_path: Path, change: str, error: type[BaseException]
    ) -> None:
        size = self.interrupted_size
        vectors, queries = _clustered_vectors(size + 5, 4, seed=7), _clustered_vectors(3, 4, seed=8)
        removed = np.arange(size // 2) if change == "most away" else make_rows(4)
        stored = dict(enumerate(vectors[:size]))
        after = (
            dict(enumerate(vectors[: size + 3]))
            if change == "more"
            else {r: stored[r] for r in stored if r not in removed}
        )
        start = make_index(4)
        start.add(np.arange(size), vectors[:size])
        start.save(tmp_path / "start")

        def attempt(at: int) -> tuple[DenseIndex, list[int]]:
            index = type(start).load(tmp_path / "start")
            if change == "more":
                keys, added = np.arange(size, size + 3), vectors[size : size + 3]
                return index, run_interrupted(lambda: index.add(keys, added), at, error)
            return index, run_interrupted(lambda: index.remove(removed), at, error)

        def agrees(index: DenseIndex, expected: dict[int, FloatArray]) -> None:
            assert len(index) == len(expected)
            assert index.vectors(make_rows(*expected)).tolist() == np.array(list(expected.values())).tolist()
            assert set(index.search(queries[0], 2 * size)[0].tolist()) == expected.keys()
            for query in queries:
                result = index.search(query, 4)[0].tolist()
                assert result == _nearest(expected, query, 4) if self.exact_when_small else result

        agrees(attempt(-1)[0], after)
        for at in attempt(-1)[1]:
            index, _ = attempt(at)
            expected = dict(after if len(index) == len(after) else stored)
            agrees(index, expected)
            if at % 3 == 0:
                index.save(tmp_path / "later")
                agrees(type(index).load(tmp_path / "later"), expected)
            index.add(make_rows(9_000, 9_001), vectors[-2:])
            index.remove(make_rows(9_001, size - 1))
            del expected[size - 1]
            agrees(index, expected | {9_000: vectors[-2]})

    def test_random_changes_match_a_dict(self, make_index: MakeDense) -> None:
        self._needs_exact_when_small()
        steps = st.lists(
            st.tuples(st.sampled_from(["add", "remove"]), st.integers(1, 5), st.integers(0, 99)), max_size=12
        )

        @settings(max_examples=30, deadline=None)
        @given(steps, st.integers(1, 8), st.sets(st.integers(0, 60)))
        def story(steps: list[tuple[str, int, int]], k: int, allowed: set[int]) -> None:
            index, stored, next_row = make_index(3), dict[int, FloatArray](), 0
            for act, count, seed in steps:
                random = np.random.default_rng(seed)
                if act == "add":
                    keys = np.arange(next_row, next_row + count)
                    vectors = random.integers(-2, 3, (count, 3)).astype(np.float32)  # many ties
                    index.add(keys, vectors)
                    stored.update(zip(keys.tolist(), vectors, strict=True))
                    next_row += count
                elif stored:
                    removed = random.permutation(list(stored))[:count]
                    index.remove(removed)
                    for row in removed.tolist():
                        del stored[row]
                query = random.integers(-2, 3, 3).astype(np.float32)
                assert len(index) == len(stored)
                assert index.search(query, k)[0].tolist() == _nearest(stored, query, k)
                admitted = {row: vector for row, vector in stored.items() if row in allowed}
                result = index.search(query, k, np.array(sorted(allowed), dtype=np.int64))[0].tolist()
                assert result == _nearest(admitted, query, k)

        story()

    def _needs_exact_when_small(self) -> None:
        if not self.exact_when_small:
            pytest.skip(f"{type(self).__name__} declares that it is approximate even when small")
