"""The pipelines of stock parts that MeVe is compared with: they must be worth comparing with."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation.types import Parts
from meve.testing.fakes import CountedEmbedder, OverlapVerifier, WordCounter, WordEmbedder
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
EVERY = [f"{module}.{name}{suffix}" for module in NAMES for name in NAMES[module] for suffix in ("", "_shared_runtime")]
FALLBACKS = [peer for peer in EVERY if ".fallback" in peer]

PASSAGES = [
    Passage(id="moon", text="the moon orbits the earth"),
    Passage(id="month", text="the moon orbits the earth every month"),
    Passage(id="tides", title="Tides", text="they follow our moon around"),
    Passage(id="bread", text="bread needs flour and water"),
    Passage(id="fault", text="error zx17 means that a pump is broken"),
    Passage(id="zebras", text="zebras prance"),
    Passage(id="zinc", text="zinc pots"),
]
"""To `WordEmbedder`, zebras and zinc are nearer to "zx17 pump" than the fault is."""
PARTS = Parts(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())
ORBIT, FAULT = "what orbits the earth every month", "zx17 pump"


def module(name: str) -> ModuleType:
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
def made() -> Callable[[str], Callable]:
    modules: dict[str, ModuleType] = {}

    def make(peer: str) -> Callable:
        name, function = peer.split(".")
        if name not in modules:
            modules[name] = module(name)
        return getattr(modules[name], function)

    return make


def parts(**settings: Any) -> Parts:
    given = {name: settings.pop(name) for name in ("embedder", "verifier", "verifier_model") if name in settings}
    return replace(PARTS, config=PARTS.config.override(**settings), **given)


def ids(passages: Sequence[Passage]) -> list[str]:
    return [p.id for p in passages]


def scores(query: str, passages: Sequence[Passage]) -> list[float]:
    return OverlapVerifier().score(query, [p.content for p in passages]).tolist()


@pytest.mark.parametrize("peer", EVERY)
class TestEvery:
    @pytest.mark.parametrize("query", [ORBIT, FAULT, "moon", "nothing of the sort"])
    @pytest.mark.parametrize("max_tokens", [512, 12, 5])
    def test_known_passages_once_within_budget_in_verifier_order(self, peer, query, max_tokens, made):
        handed = made(peer)(PASSAGES, parts(max_tokens=max_tokens))(query)
        assert isinstance(handed, list)
        assert all(p in PASSAGES for p in handed)
        assert len(set(ids(handed))) == len(handed)
        assert WordCounter().count(PARTS.separator.join(p.content for p in handed)) <= max_tokens
        assert scores(query, handed) == sorted(scores(query, handed), reverse=True)

    def test_the_best_comes_first(self, peer, made):
        answer = made(peer)(PASSAGES, parts(redundancy=1.0))
        assert ids(answer(ORBIT))[:2] == ["month", "moon"]
        assert ids(answer("our moon"))[0] == "tides"

    def test_what_doesnt_fit_is_skipped_and_the_next_one_tried(self, peer, made):
        handed = made(peer)(PASSAGES, parts(redundancy=1.0, max_tokens=6, min_verified=0))(ORBIT)
        assert ids(handed)[:1] == ["moon"]

    def test_separators_count(self, peer, made):
        both = 7 + 5
        for separator, fits in (("\n\n", ["month", "moon"]), (" and then ", ["month"])):
            settings = parts(redundancy=1.0, max_tokens=both, separator=separator, min_verified=0)
            handed = made(peer)(PASSAGES, settings)(ORBIT)
            assert [i for i in ids(handed) if i in ("month", "moon")] == fits
            assert WordCounter().count(separator.join(p.content for p in handed)) <= both

    def test_nothing_fits(self, peer, made):
        assert made(peer)(PASSAGES, parts(max_tokens=1))(ORBIT) == []

    def test_no_passages(self, peer, made):
        assert made(peer)([], PARTS)(ORBIT) == []

    def test_one_passage(self, peer, made):
        assert ids(made(peer)(PASSAGES[:1], PARTS)(ORBIT)) == ["moon"]

    def test_twice_the_same(self, peer, made):
        answer = made(peer)(PASSAGES, PARTS)
        assert answer(ORBIT) == answer(ORBIT)


@pytest.mark.parametrize("peer", FALLBACKS)
class TestFallback:
    def test_keywords_bring_what_dense_search_missed(self, peer, made):
        answer = made(peer)(PASSAGES, parts(candidates=2, min_verified=1))
        assert ids(answer(FAULT))[0] == "fault"

    def test_enough_verified_so_nothing_else_comes(self, peer, made):
        answer = made(peer)(PASSAGES, parts(min_verified=2, redundancy=1.0))
        assert ids(answer(ORBIT)) == ["month", "moon"]

    def test_one_too_few_so_those_above_the_floor_follow(self, peer, made):
        query = "orbits earth every month around moon water"
        handed = made(peer)(PASSAGES, parts(min_verified=2, redundancy=1.0))(query)
        assert ids(handed) == ["month", "moon", "tides", "bread"]
        assert [s >= 0.5 for s in scores(query, handed)] == [True, False, False, False]
        handed = made(peer)(PASSAGES, parts(min_verified=2, redundancy=1.0, fallback_floor=0.2))(query)
        assert ids(handed) == ["month", "moon", "tides"]
        handed = made(peer)(PASSAGES, parts(min_verified=2, redundancy=1.0, fallback_k=1))(query)
        assert len(handed) == 2

    def test_nothing_verified_and_nothing_wanted(self, peer, made):
        answer = made(peer)(PASSAGES, parts(candidates=2, min_verified=0))
        assert answer(FAULT) == []

    def test_a_score_at_the_threshold_is_enough(self, peer, made):
        assert "bread" in ids(made(peer)(PASSAGES, parts(threshold=0.5, min_verified=0))("moon water"))
        assert made(peer)(PASSAGES, parts(threshold=0.51, min_verified=0))("moon water") == []

    def test_nothing_is_judged_twice(self, peer, made):
        judged: list[str] = []

        class Recording(OverlapVerifier):
            def score(self, query, passages):
                judged.extend(passages)
                return super().score(query, passages)

        made(peer)(PASSAGES, parts(verifier=Recording(), candidates=2))("zx17 pump pots")
        assert len(judged) == len(set(judged))
        assert {PASSAGES[4].content, PASSAGES[6].content} <= set(judged)


@pytest.mark.parametrize("peer", [peer for peer in EVERY if peer.startswith("langchain")])
class TestLangchain:
    def test_of_two_alike_the_worse_stays(self, peer, made):
        handed = made(peer)(PASSAGES, parts(min_verified=0))(ORBIT)
        assert "moon" in ids(handed)
        assert "month" not in ids(handed)  # though it ranks first: so the stock filter decides

    def test_candidates_are_embedded_anew(self, peer, made):
        embedder = CountedEmbedder(WordEmbedder())
        answer = made(peer)(PASSAGES, parts(embedder=embedder, min_verified=0))
        assert embedder.calls.passages == [p.content for p in PASSAGES]
        answer(ORBIT)
        assert {PASSAGES[0].content, PASSAGES[1].content} <= set(embedder.calls.passages[len(PASSAGES) :])
        assert embedder.calls.queries == [ORBIT]


@pytest.mark.parametrize("peer", [peer for peer in EVERY if peer.startswith("llamaindex")])
class TestLlamaindex:
    def test_near_duplicates_stay(self, peer, made):
        handed = made(peer)(PASSAGES, PARTS)(ORBIT)
        assert ids(handed)[:2] == ["month", "moon"]

    def test_passages_are_embedded_once(self, peer, made):
        embedder = CountedEmbedder(WordEmbedder())
        made(peer)(PASSAGES, parts(embedder=embedder))(ORBIT)
        assert embedder.calls.passages == [p.content for p in PASSAGES]
        assert embedder.calls.queries == [ORBIT]


@pytest.mark.parametrize("shared", [peer for peer in EVERY if peer.endswith("_shared_runtime")])
def test_the_shared_runtime_loads_no_weights(shared, made):
    answer = made(shared)(PASSAGES, parts(verifier_model="no/such/model"))
    assert ids(answer(ORBIT))


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


@pytest.mark.parametrize("peer", [peer for peer in EVERY if not peer.endswith("_shared_runtime")])
@pytest.mark.parametrize("query", [ORBIT, FAULT])
def test_the_own_runtime_judges_as_the_shared_one(peer, query, made, weights):
    verifier = CrossEncoderVerifier.from_name(str(weights), device="cpu")
    probabilities = verifier.score(query, [p.content for p in PASSAGES])
    threshold = float(sorted(probabilities)[-3]) - 1e-4
    settings = parts(
        verifier=verifier, verifier_model=str(weights), threshold=threshold, min_verified=2, redundancy=1.0
    )
    own = ids(made(peer)(PASSAGES, settings)(query))
    assert own == ids(made(f"{peer}_shared_runtime")(PASSAGES, settings)(query))
    assert len(own) == (3 if "fallback" in peer else len(PASSAGES))
