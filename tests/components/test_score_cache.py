"""Test the score cache."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from meve.calibration.probability_maps import PlattCalibration
from meve.components._text_cache import TextCache
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError
from tests.runtimes import WordCountingRuntime


class CountingRuntime(WordCountingRuntime):
    """A runtime whose logit is the passage length, and which records its input."""

    def __init__(self):
        super().__init__()
        self.read = []

    def logits(self, batches):
        self.read += [pair for pairs in batches for pair in pairs]
        return [np.array([len(passage) for _, passage in pairs], dtype=np.float32) for pairs in batches]


@pytest.fixture
def runtime():
    return CountingRuntime()


def test_repeated_pair_is_scored_once(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting")
    assert verifier.raw_scores("q", ["aa", "b", "aa"]).tolist() == [2, 1, 2]
    assert verifier.raw_scores("q", ["ccc", "b"]).tolist() == [3, 1]
    assert sorted(runtime.read) == [("q", "aa"), ("q", "b"), ("q", "ccc")]
    verifier.raw_scores("other", ["b"])
    assert len(runtime.read) == 4


def test_verifier_tells_what_it_has_scored(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting")
    verifier.raw_scores("q", ["aa", "b"])
    assert verifier.has_read("q", ["b", "ccc"]) == [True, False]
    assert verifier.has_read("other", ["b"]) == [False]
    assert runtime.read == [("q", "aa"), ("q", "b")]


def test_new_calibration_reuses_cached_scores(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting")
    before = verifier.score("q", ["aa"])
    after = verifier.with_calibration(PlattCalibration(slope=0.1)).score("q", ["aa"])
    assert after != before
    assert len(runtime.read) == 1


def test_without_cache_every_pair_is_scored(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting").with_cache(0)
    for _ in range(2):
        assert verifier.raw_scores("q", ["aa"]).tolist() == [2]
    assert len(runtime.read) == 2
    with pytest.raises(ConfigurationError, match=r"cache_size must be 0 \(no cache\) or positive, got -1"):
        CrossEncoderVerifier(runtime, name="counting", cache_size=-1)


def test_full_cache_evicts_least_recently_used(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting", cache_size=2)
    verifier.raw_scores("q", ["a", "bb"])
    verifier.raw_scores("q", ["a"])
    verifier.raw_scores("q", ["ccc"])
    assert len(verifier._cache) == 2
    runtime.read.clear()
    verifier.raw_scores("q", ["a", "ccc"])
    assert runtime.read == []
    verifier.raw_scores("q", ["bb"])
    assert runtime.read == [("q", "bb")]


def test_different_pairs_have_different_keys():
    cache = TextCache(10)
    for key in (("ab", "c"), ("a", "bc"), ("", "abc"), ("abc",)):
        assert cache.fetch([key], lambda missing: missing) == [key]
    assert len(cache) == 4


def test_threads_get_the_scores_of_a_single_thread(runtime):
    verifier = CrossEncoderVerifier(runtime, name="counting", cache_size=5)
    texts = ["x" * n for n in range(1, 20)]

    def ask(n):
        return verifier.raw_scores(f"q{n % 3}", texts).tolist() == [len(t) for t in texts]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))
    assert len(verifier._cache) <= 5
