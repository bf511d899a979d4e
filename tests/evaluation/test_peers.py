"""The peers in benchmarks/peers: pipelines of stock parts that MeVe is compared with."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation.types import SharedComponents
from meve.testing.fakes import CountingEmbedder, OverlapVerifier, WordCounter, WordEmbedder
from meve.types import Passage

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
NEEDS = {
    "langchain_stock": ("langchain_core", "langchain_classic", "langchain_community", "rank_bm25"),
    "llamaindex_stock": (
        "llama_index.core",
        "llama_index.retrievers.bm25",
        "llama_index.vector_stores.faiss",
    ),
}
NAMES = {"langchain_stock": ("hybrid", "fallback"), "llamaindex_stock": ("fusion", "fallback")}
ALL_PEERS = [
    f"{load_module}.{name}{suffix}"
    for load_module in NAMES
    for name in NAMES[load_module]
    for suffix in ("", "_shared_runtime")
]
FALLBACKS = [peer for peer in ALL_PEERS if ".fallback" in peer]

PASSAGES = [
    Passage(id="moon", text="the moon orbits the earth"),
    Passage(id="month", text="the moon orbits the earth every month"),
    Passage(id="tides", title="Tides", text="they follow our moon around"),
    Passage(id="bread", text="bread needs flour and water"),
    Passage(id="fault", text="error zx17 means that a pump is broken"),
    Passage(id="zebras", text="zebras prance"),
    Passage(id="zinc", text="zinc pots"),
]
"""For `WordEmbedder`, zebras and zinc are nearer to "zx17 pump" than the fault is."""
COMPONENTS = SharedComponents(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
ORBIT, FAULT = "what orbits the earth every month", "zx17 pump"


def load_module(name: str) -> ModuleType:
    if not PEERS.is_dir():
        pytest.skip(f"NOT TESTED: {PEERS} isn't there; the peers are part of the repository, not of the package")
    for needed in NEEDS[name]:
        pytest.importorskip(needed, reason=f"NOT TESTED: the peer {name} needs {needed}, which isn't installed")
    spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def load_function() -> Callable[[str], Callable]:
    modules: dict[str, ModuleType] = {}

    def make(peer: str) -> Callable:
        name, function = peer.split(".")
        if name not in modules:
            modules[name] = load_module(name)
        return getattr(modules[name], function)

    return make


def make_components(**settings: Any) -> SharedComponents:
    replaced = {name: settings.pop(name) for name in ("embedder", "verifier", "verifier_model") if name in settings}
    return replace(COMPONENTS, config=COMPONENTS.config.override(**settings), **replaced)


def ids(passages: Sequence[Passage]) -> list[str]:
    return [p.id for p in passages]


def scores(query: str, passages: Sequence[Passage]) -> list[float]:
    return OverlapVerifier().score(query, [p.content for p in passages]).tolist()


@pytest.mark.parametrize("peer", ALL_PEERS)
class TestEvery:
    @pytest.mark.parametrize("query", [ORBIT, FAULT, "moon", "nothing of the sort"])
    @pytest.mark.parametrize("max_tokens", [512, 12, 5])
    def test_passages_are_unique_within_budget_and_in_verifier_order(self, peer, query, max_tokens, load_function):
        passages = load_function(peer)(PASSAGES, make_components(max_tokens=max_tokens))(query)
        assert isinstance(passages, list)
        assert all(p in PASSAGES for p in passages)
        assert len(set(ids(passages))) == len(passages)
        assert WordCounter().count(COMPONENTS.config.separator.join(p.content for p in passages)) <= max_tokens
        assert scores(query, passages) == sorted(scores(query, passages), reverse=True)

    def test_best_passage_comes_first(self, peer, load_function):
        retrieve = load_function(peer)(PASSAGES, make_components(redundancy=1.0))
        assert ids(retrieve(ORBIT))[:2] == ["month", "moon"]
        assert ids(retrieve("our moon"))[0] == "tides"

    def test_passage_that_does_not_fit_is_skipped(self, peer, load_function):
        passages = load_function(peer)(PASSAGES, make_components(redundancy=1.0, max_tokens=6, min_verified=0))(ORBIT)
        assert ids(passages)[:1] == ["moon"]

    def test_separators_count_towards_the_budget(self, peer, load_function):
        both = 7 + 5
        for separator, fits in (("\n\n", ["month", "moon"]), (" and then ", ["month"])):
            settings = make_components(redundancy=1.0, max_tokens=both, separator=separator, min_verified=0)
            passages = load_function(peer)(PASSAGES, settings)(ORBIT)
            assert [i for i in ids(passages) if i in ("month", "moon")] == fits
            assert WordCounter().count(separator.join(p.content for p in passages)) <= both

    def test_too_small_budget_gives_no_passages(self, peer, load_function):
        assert load_function(peer)(PASSAGES, make_components(max_tokens=1))(ORBIT) == []

    def test_empty_corpus_gives_no_passages(self, peer, load_function):
        assert load_function(peer)([], COMPONENTS)(ORBIT) == []

    def test_one_passage(self, peer, load_function):
        assert ids(load_function(peer)(PASSAGES[:1], COMPONENTS)(ORBIT)) == ["moon"]

    def test_repeated_query_gives_same_passages(self, peer, load_function):
        retrieve = load_function(peer)(PASSAGES, COMPONENTS)
        assert retrieve(ORBIT) == retrieve(ORBIT)


@pytest.mark.parametrize("peer", FALLBACKS)
class TestFallback:
    def test_keywords_find_what_dense_search_missed(self, peer, load_function):
        retrieve = load_function(peer)(PASSAGES, make_components(candidates=2, min_verified=1))
        assert ids(retrieve(FAULT))[0] == "fault"

    def test_enough_verified_passages_prevent_the_fallback(self, peer, load_function):
        retrieve = load_function(peer)(PASSAGES, make_components(min_verified=2, redundancy=1.0))
        assert ids(retrieve(ORBIT)) == ["month", "moon"]

    def test_too_few_verified_passages_add_fallback_above_the_floor(self, peer, load_function):
        query = "orbits earth every month around moon water"
        passages = load_function(peer)(PASSAGES, make_components(min_verified=2, redundancy=1.0))(query)
        assert ids(passages) == ["month", "moon", "tides", "bread"]
        assert [s >= 0.5 for s in scores(query, passages)] == [True, False, False, False]
        passages = load_function(peer)(PASSAGES, make_components(min_verified=2, redundancy=1.0, fallback_floor=0.2))(
            query
        )
        assert ids(passages) == ["month", "moon", "tides"]
        passages = load_function(peer)(PASSAGES, make_components(min_verified=2, redundancy=1.0, fallback_k=1))(query)
        assert len(passages) == 2

    def test_no_fallback_without_required_passages(self, peer, load_function):
        retrieve = load_function(peer)(PASSAGES, make_components(candidates=2, min_verified=0))
        assert retrieve(FAULT) == []

    def test_score_at_the_threshold_is_verified(self, peer, load_function):
        assert "bread" in ids(
            load_function(peer)(PASSAGES, make_components(threshold=0.5, min_verified=0))("moon water")
        )
        assert load_function(peer)(PASSAGES, make_components(threshold=0.51, min_verified=0))("moon water") == []

    def test_no_passage_is_scored_twice(self, peer, load_function):
        scored: list[str] = []

        class Recording(OverlapVerifier):
            def score(self, query, passages):
                scored.extend(passages)
                return super().score(query, passages)

        load_function(peer)(PASSAGES, make_components(verifier=Recording(), candidates=2))("zx17 pump pots")
        assert len(scored) == len(set(scored))
        assert {PASSAGES[4].content, PASSAGES[6].content} <= set(scored)


@pytest.mark.parametrize("peer", [peer for peer in ALL_PEERS if peer.startswith("langchain")])
class TestLangchain:
    def test_redundancy_filter_keeps_the_worse_of_two(self, peer, load_function):
        passages = load_function(peer)(PASSAGES, make_components(min_verified=0))(ORBIT)
        assert "moon" in ids(passages)
        assert "month" not in ids(passages)  # though it ranks first: so the stock filter decides

    def test_candidates_are_embedded_anew(self, peer, load_function):
        embedder = CountingEmbedder(WordEmbedder())
        retrieve = load_function(peer)(PASSAGES, make_components(embedder=embedder, min_verified=0))
        assert embedder.calls.passages == [p.content for p in PASSAGES]
        retrieve(ORBIT)
        assert {PASSAGES[0].content, PASSAGES[1].content} <= set(embedder.calls.passages[len(PASSAGES) :])
        assert embedder.calls.queries == [ORBIT]


@pytest.mark.parametrize("peer", [peer for peer in ALL_PEERS if peer.startswith("llamaindex")])
class TestLlamaindex:
    def test_near_duplicates_stay(self, peer, load_function):
        passages = load_function(peer)(PASSAGES, COMPONENTS)(ORBIT)
        assert ids(passages)[:2] == ["month", "moon"]

    def test_passages_are_embedded_once(self, peer, load_function):
        embedder = CountingEmbedder(WordEmbedder())
        load_function(peer)(PASSAGES, make_components(embedder=embedder))(ORBIT)
        assert embedder.calls.passages == [p.content for p in PASSAGES]
        assert embedder.calls.queries == [ORBIT]


@pytest.mark.parametrize("shared", [peer for peer in ALL_PEERS if peer.endswith("_shared_runtime")])
def test_shared_runtime_loads_no_weights(shared, load_function):
    retrieve = load_function(shared)(PASSAGES, make_components(verifier_model="no/such/model"))
    assert ids(retrieve(ORBIT))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of two layers with random weights, and the words of the passages for a vocabulary."""
    torch = pytest.importorskip("torch", reason="NOT TESTED: the peers' own runtimes need torch")
    transformers = pytest.importorskip("transformers", reason="NOT TESTED: the peers' own runtimes need transformers")
    folder = tmp_path_factory.mktemp("weights")
    words = sorted({w for text in (*(p.content.lower() for p in PASSAGES), ORBIT, FAULT) for w in text.split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    config = transformers.BertConfig(
        vocab_size=len(words) + 5, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=512, num_labels=1, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("peer", [peer for peer in ALL_PEERS if not peer.endswith("_shared_runtime")])
@pytest.mark.parametrize("query", [ORBIT, FAULT])
def test_own_runtime_agrees_with_shared_runtime(peer, query, load_function, weights):
    verifier = CrossEncoderVerifier.from_name(str(weights), device="cpu")
    probabilities = verifier.score(query, [p.content for p in PASSAGES])
    threshold = float(sorted(probabilities)[-3]) - 1e-4
    settings = make_components(
        verifier=verifier, verifier_model=str(weights), threshold=threshold, min_verified=2, redundancy=1.0
    )
    own = ids(load_function(peer)(PASSAGES, settings)(query))
    assert own == ids(load_function(f"{peer}_shared_runtime")(PASSAGES, settings)(query))
    assert len(own) == (3 if "fallback" in peer else len(PASSAGES))
