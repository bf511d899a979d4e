"""Test the dense indexes: the contract, and FAISS-specific behaviour."""

import _thread
import mmap
import os
import resource
import signal
import threading
import time

import numpy as np
import pytest

from meve.components._array_files import write_arrays
from meve.components.dense import FLAT_UP_TO, HNSW_UP_TO, dense_class, make_dense
from meve.components.dense import _faiss_index as dense_base
from meve.components.dense.flat import FlatIndex
from meve.components.dense.hnsw import HnswIndex
from meve.components.dense.ivf import IvfIndex
from meve.components.dense.rabitq import RabitqIndex
from meve.errors import ConfigurationError, IndexCorruptError, IndexMismatchError, StorageError, VectorError
from meve.testing.dense_contract import DenseIndexContract


class TestExact(DenseIndexContract):
    @pytest.fixture(params=[FlatIndex, IvfIndex])
    def make_index(self, request):
        return request.param


class TestHnsw(DenseIndexContract):
    exact = False

    @pytest.fixture
    def make_index(self):
        return HnswIndex


class TestHnswAlone(DenseIndexContract):
    """HNSW without the exact search used for small indexes."""

    exact = exact_when_small = False

    @pytest.fixture
    def make_index(self, monkeypatch):
        monkeypatch.setattr(dense_base, "EXACT_ROWS", 0)
        monkeypatch.setattr(dense_base, "EXACT_SHARE", 0)
        return HnswIndex


class TestIvf(DenseIndexContract):
    exact = False
    interrupted_size = 310

    @pytest.fixture
    def make_index(self):
        return lambda dimension: IvfIndex(dimension, lists=8, probes=4)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # interrupted while a file is closed
class TestRabitq(DenseIndexContract):
    exact = False
    interrupted_size = 310

    @pytest.fixture
    def make_index(self):
        return lambda dimension: RabitqIndex(dimension, lists=8, probes=4, rescored=40)


def make_clusters(count, dimension=8, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(30, dimension))
    return (centres[random.integers(0, 30, count)] + 0.5 * random.normal(size=(count, dimension))).astype(np.float32)


def test_flat_index_is_exact_with_ties_at_cut_off():
    index = FlatIndex(4)
    keys = np.random.default_rng(0).permutation(5000)
    index.add(keys, np.ones((5000, 4), dtype=np.float32))
    assert index.search(np.ones(4, dtype=np.float32), 5)[0].tolist() == [0, 1, 2, 3, 4]


def test_equal_vectors_tie_at_any_position():
    for dimension in (33, 100, 385):
        index = FlatIndex(dimension)
        index.add(np.arange(999), np.tile(make_clusters(1, dimension), (999, 1)))
        assert len(set(index.search(make_clusters(1, dimension, seed=1)[0], 999)[1].tolist())) == 1


def test_large_filter_returns_no_removed_row():
    index = FlatIndex(4)
    index.add(np.arange(6000), make_clusters(6000, 4))
    index.remove(np.arange(100))
    rows, _ = index.search(np.ones(4, dtype=np.float32), 5000, np.arange(5000))
    assert sorted(rows.tolist()) == list(range(100, 5000))


def test_sparse_lists_still_return_k_rows():
    index = IvfIndex(8, lists=8, probes=1)
    index.add(np.arange(3000), make_clusters(3000))
    assert len(index.search(make_clusters(1)[0], 1400)[0]) == 1400


def test_filter_widens_graph_search(monkeypatch):
    import meve.components.dense.hnsw as module

    widths = []
    parameters = module.faiss.SearchParametersHNSW
    monkeypatch.setattr(
        module.faiss, "SearchParametersHNSW", lambda **given: widths.append(given["efSearch"]) or parameters(**given)
    )
    index = HnswIndex(8, ef_search=50)
    index.add(np.arange(20_000), make_clusters(20_000))
    index.search(make_clusters(1)[0], 5)
    index.search(make_clusters(1)[0], 5, np.arange(2_000))
    assert widths == [50, 500]


def test_equal_vectors_score_equally_in_every_index():
    vectors, query = make_clusters(3000, 33), make_clusters(1, 33, seed=1)[0]
    scores = set()
    for index in (FlatIndex(33), HnswIndex(33), IvfIndex(33, lists=8), RabitqIndex(33, lists=8, rescored=3000)):
        index.add(np.arange(3000), vectors)
        best = int(index.search(query, 1)[0][0])
        scores |= {index.search(query, 1)[1].item(), index.search(query, 1, np.array([best]))[1].item()}
    assert len(scores) == 1


def test_tombstones_never_exceed_dead_share():
    index = HnswIndex(8)
    index.add(np.arange(400), make_clusters(400))
    for row in range(300):
        index.remove(np.array([row]))
        assert index._rows.hole_count <= dense_base.DEAD_SHARE * index._rows.size
    assert index._index.ntotal < 200


@pytest.mark.parametrize(
    ("make", "count"), [(IvfIndex, lambda i: i._index.nlist), (RabitqIndex, lambda i: i._index.codes.index.nlist)]
)
def test_inverted_file_trains_once_large_enough(make, count):
    index = make(8)
    index.add(np.arange(9_999), make_clusters(9_999))
    assert not index.trained
    index.add(np.array([9_999]), make_clusters(1))
    assert index.trained
    lists = count(index)
    index.add(np.arange(10_000, 41_000), make_clusters(31_000, seed=2))
    assert count(index) > lists
    assert index.vectors(np.array([12_345])).tolist() == make_clusters(31_000, seed=2)[2_345:2_346].tolist()


class TestRabitqFiles:
    @pytest.fixture
    def saved(self, tmp_path):
        """Return a trained index and the file that it was saved to."""
        index = RabitqIndex(8, lists=8)
        index.add(np.arange(2_000), make_clusters(2_000))
        index.save(tmp_path / "index")
        return index, tmp_path / "index"

    def test_loaded_vectors_stay_in_the_file(self, saved):
        index, path = saved
        loaded = RabitqIndex.load(path)
        held = loaded._index.vectors.as_one()
        while isinstance(held, np.ndarray | memoryview):
            held = held.obj if isinstance(held, memoryview) else held.base
        assert isinstance(held, mmap.mmap)
        loaded.add(np.array([2_000]), make_clusters(1, seed=5))
        loaded.save(path.with_name("again"))
        again = RabitqIndex.load(path.with_name("again"))
        assert (again.vectors(np.arange(2_001))[:-1] == index.vectors(np.arange(2_000))).all()
        assert (again.vectors(np.array([2_000])) == make_clusters(1, seed=5)).all()

    def test_forked_process_and_its_parent_keep_apart(self, saved):
        index, _ = saved
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            index.add(np.array([2_000]), 5 * make_clusters(1, seed=5))
            os.write(writer, index.vectors(np.array([2_000, 0])).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        index.add(np.array([2_000]), make_clusters(1, seed=6))
        theirs = np.frombuffer(os.read(reader, 1_000), dtype=np.float32).reshape(2, 8)
        os.close(reader)
        os.close(writer)
        assert (theirs == np.concatenate([5 * make_clusters(1, seed=5), make_clusters(2_000)[:1]])).all()
        assert (index.vectors(np.array([2_000])) == make_clusters(1, seed=6)).all()

    def test_full_disk_is_reported_and_loses_nothing(self, saved):
        index, _ = saved
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(StorageError, match=r"TMPDIR.*nothing was added"):
                index.add(np.arange(2_000, 12_000), make_clusters(10_000, seed=5))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert len(index) == 2_000
        index.add(np.array([2_000]), 9 * make_clusters(1))
        assert index.search(make_clusters(1)[0], 1)[0].tolist() == [2_000]

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("ids", lambda ids: ids + 1),
            ("ids", lambda ids: ids - 2**40),
            ("ids", np.zeros_like),
            ("sizes", lambda sizes: np.append(sizes[:-1], sizes[-1] + 2**40)),
            ("sizes", lambda sizes: np.append(-sizes[:1], sizes[1:])),
            ("sizes", lambda sizes: sizes[:-1]),
            ("codes", lambda codes: codes[:-1]),
            ("codes", lambda codes: codes.astype(np.float32)),
            ("centroids", lambda centroids: centroids * np.nan),
            ("centroids", lambda centroids: centroids[:0]),
            ("rotation", lambda rotation: rotation[:, :-1]),
            ("vectors", lambda vectors: vectors.astype(np.float64)),
            ("vectors", lambda vectors: vectors[:-1]),
            ("vectors", lambda vectors: vectors.ravel()),
            ("vectors", np.asfortranarray),
        ],
    )
    def test_forged_file_is_refused(self, saved, name, change):
        index, path = saved
        header = {"dimension": 8, "options": index._options()}
        arrays = {"rows": index._rows.rows, "alive": index._rows.alive, **index._to_arrays(index._index)}
        write_arrays(path, "rabitq", header, {**arrays, name: change(arrays[name])})
        with pytest.raises(IndexCorruptError):
            RabitqIndex.load(path)


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise even in background jobs, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("make", [HnswIndex, IvfIndex, RabitqIndex])
def test_add_interrupted_inside_faiss_has_no_effect(make, tmp_path):
    """FAISS checks for Ctrl-C while it links or trains, and stops halfway."""
    vectors = make_clusters(60_000, 32)
    index = make(32)
    index.add(np.arange(1500), vectors[:1500])
    timer = threading.Timer(0.3, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the next line is where it comes, or the one after
        timer.start()
        for start in range(1500, 60_000, 30_000):
            index.add(np.arange(start, min(60_000, start + 30_000)), vectors[start : start + 30_000])
        timer.join()
        time.sleep(0.1)
    timer.join()
    stored = len(index)
    index.save(tmp_path / "index")
    for whole in (index, type(index).load(tmp_path / "index")):
        whole.add(np.array([70_000]), 9 * vectors[:1])
        assert len(whole) == stored + 1
        assert whole.search(vectors[0], 1)[0].tolist() == [70_000]
        for row in range(0, stored, 100):
            assert row in whole.search(vectors[row], 50)[0].tolist() or stored > 2000
        assert (whole.vectors(np.arange(1500)) == vectors[:1500]).all()


def test_search_leaves_graph_settings_unchanged():
    index = HnswIndex(8, ef_search=16)
    index.add(np.arange(3000), make_clusters(3000))
    before = index._index.hnsw.efSearch
    index.search(make_clusters(1)[0], 200)
    assert index._index.hnsw.efSearch == before


def test_settings_survive_save_and_load(tmp_path):
    HnswIndex(4, m=8, ef_search=33).save(tmp_path / "hnsw")
    assert HnswIndex.load(tmp_path / "hnsw")._options() == {"m": 8, "ef_construction": 200, "ef_search": 33}


def test_loading_another_kind_of_index_raises(tmp_path):
    FlatIndex(4).save(tmp_path / "index")
    with pytest.raises(IndexMismatchError, match="'flat', expected 'hnsw'"):
        HnswIndex.load(tmp_path / "index")


@pytest.mark.parametrize(
    ("expected", "kind"), [(0, "flat"), (FLAT_UP_TO, "flat"), (FLAT_UP_TO + 1, "hnsw"), (HNSW_UP_TO + 1, "ivf")]
)
def test_auto_chooses_by_size(expected, kind):
    assert make_dense("auto", 4, expected).kind == kind


def test_make_dense_accepts_kind_or_index():
    ready = FlatIndex(4)
    assert make_dense(ready, 4, 0) is ready
    assert make_dense("ivf", 4, 0).dimension == 4
    assert dense_class("hnsw") is HnswIndex
    with pytest.raises(ConfigurationError, match="4 values, but the embedder makes 5"):
        make_dense(ready, 5, 0)
    with pytest.raises(ConfigurationError, match="'annoy'"):
        dense_class("annoy")


@pytest.mark.parametrize(
    "make",
    [
        lambda: HnswIndex(4, m=1),
        lambda: HnswIndex(4, ef_search=0),
        lambda: IvfIndex(4, lists=0),
        lambda: RabitqIndex(4, probes=0),
        lambda: RabitqIndex(4, rescored=0),
    ],
)
def test_invalid_settings_raise(make):
    with pytest.raises(ConfigurationError):
        make()


def test_zero_dimension_raises():
    with pytest.raises(VectorError):
        FlatIndex(0)
