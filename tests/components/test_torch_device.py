"""Test devices and batch sizes of models in torch."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="NOT TESTED: needs torch")

import torch
from transformers import PreTrainedModel

from meve import Retriever, load_verifier
from meve.components._torch_device import (
    check_torch_device,
    choose_batch_size,
    fit_batch_size,
    run_within_memory,
)
from meve.components.embedders.minilm import load_minilm
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.components.verifiers._sentence_scores import TokenHead
from meve.components.verifiers._torch_runtime import TorchRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError, ModelError
from meve.testing.tiny_models import save_tiny_model

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU (torch.cuda.is_available())")
without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU")

QUERY = "what orbits the earth"
PASSAGES = ["the moon", "the harbour", "bread", "a cat is the cat of the moon", "the earth", "moon ? moon", "is", "a b"]
TINY = {"hidden_size": 32, "intermediate_size": 64}


def limit_batches(model: torch.nn.Module, largest: int) -> list[int]:
    """Let the transformer run out of memory for a batch above `largest`; return the list of the sizes that it gets."""
    sizes: list[int] = []
    transformer = next(module for module in model.modules() if isinstance(module, PreTrainedModel))

    def check(words: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
        sizes.append(len(inputs[0]))
        if sizes[-1] > largest:
            raise torch.OutOfMemoryError("CUDA out of memory")

    transformer.get_input_embeddings().register_forward_pre_hook(check)
    return sizes


@pytest.fixture
def runtime(tmp_path: Path) -> TorchRuntime:
    return TorchRuntime.from_name(str(save_tiny_model(tmp_path / "tiny")), device="cpu")


class TestHalving:
    def test_batch_above_memory_is_scored_in_halves(self, runtime: TorchRuntime) -> None:
        pairs = [(QUERY, text) for text in PASSAGES]
        expected = runtime.logits([pairs])[0]
        sizes = limit_batches(runtime._model, largest=3)
        np.testing.assert_allclose(runtime.logits([pairs])[0], expected, atol=1e-5)
        assert sizes == [8, 4, 2, 2, 2, 2]

    def test_tokens_of_a_batch_above_memory_are_read_in_halves(self, tmp_path: Path) -> None:
        head = TokenHead(weights={1: np.full(32, 0.1, np.float32)}, relevance=0.5, bias=0.1)
        model = TorchRuntime.from_name(str(save_tiny_model(tmp_path / "tiny")), device="cpu")._model
        runtime = TorchRuntime(model, name="tiny", token_head=head)
        pairs = [(QUERY, text) for text in PASSAGES]
        ((expected, readings),) = runtime.read([pairs])
        sizes = limit_batches(model, largest=3)
        ((scores, halves),) = runtime.read([pairs])
        assert sizes == [8, 4, 2, 2, 2, 2]
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        for one, other in zip(readings, halves, strict=True):
            np.testing.assert_allclose(one.logits, other.logits, atol=1e-5)
            np.testing.assert_array_equal(one.spans, other.spans)

    def test_model_without_a_head_for_tokens_reads_none(self, runtime: TorchRuntime) -> None:
        assert not runtime.rates_tokens
        with pytest.raises(ModelError, match="has no logit per token"):
            runtime.read([[(QUERY, PASSAGES[0])]])

    def test_pair_above_memory_raises_model_error(self, runtime: TorchRuntime) -> None:
        limit_batches(runtime._model, largest=0)
        verifier = CrossEncoderVerifier(runtime, name="large")
        with pytest.raises(ModelError, match="OutOfMemoryError: CUDA out of memory"):
            verifier.score(QUERY, PASSAGES)

    def test_other_errors_are_not_retried(self) -> None:
        tried: list[int] = []

        def fail(size: int) -> None:
            tried.append(size)
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            run_within_memory(fail, 8)
        assert tried == [8]

    def test_batch_above_memory_is_embedded_in_halves(self) -> None:
        embedder = load_minilm(device="cpu", batch_size=5)
        expected = embedder.embed_passages(PASSAGES)
        sizes = limit_batches(embedder._model, largest=2)
        np.testing.assert_allclose(embedder.embed_passages(PASSAGES), expected, atol=1e-5)
        assert sizes == [5, 3, 2, 2, 2, 2]


class TestBatchSize:
    def test_batch_fills_half_of_the_free_memory(self) -> None:
        """A text of 10 tokens takes 4 bytes * 10 * (8 * 32 + 2 * 64) = 15,360 bytes."""
        assert fit_batch_size(TINY, 10, 2 * 15_360 * 7) == 7
        assert fit_batch_size(TINY, 10, 2 * 15_360 * 7 - 1) == 6
        assert fit_batch_size(TINY, 20, 2 * 15_360 * 7) == 3

    def test_batch_has_1_to_256_texts(self) -> None:
        assert fit_batch_size(TINY, 10, 0) == 1
        assert fit_batch_size(TINY, 10, 10**12) == 256

    def test_missing_intermediate_size_counts_four_times_the_hidden_size(self) -> None:
        free = 10**7
        expected = fit_batch_size({"hidden_size": 32, "intermediate_size": 128}, 10, free)
        assert fit_batch_size({"hidden_size": 32}, 10, free) == expected

    def test_cpu_keeps_its_default(self, runtime: TorchRuntime) -> None:
        assert choose_batch_size(TINY, 10, torch.device("cpu"), 16) == 16
        assert runtime.batch_size == 16

    @pytest.mark.parametrize(("config", "window"), [({}, 10), (TINY, None)])
    def test_model_of_unknown_size_keeps_its_default(self, config: dict[str, int], window: int | None) -> None:
        assert choose_batch_size(config, window, torch.device("cuda"), 32) == 32


class TestMissingDevice:
    @without_cuda
    @pytest.mark.parametrize(
        "load",
        [
            lambda: load_verifier(device="cuda"),
            lambda: CrossEncoderVerifier.from_name("no/such-model", device="cuda:1"),
            lambda: SentenceTransformerEmbedder.from_name("no/such-model", device="cuda:1"),
            lambda: load_minilm(device="cuda"),
        ],
    )
    def test_cuda_without_gpu_raises(self, load: Any) -> None:
        with pytest.raises(ConfigurationError, match=rf"torch {re.escape(torch.__version__)} can use here.*got 'cuda"):
            load()

    @pytest.mark.parametrize("device", ["abacus", "meta", 1.5])
    def test_unknown_device_raises(self, device: Any) -> None:
        for load in (check_torch_device, lambda given: load_verifier(device=given)):
            with pytest.raises(ConfigurationError, match=f"got '?{device}"):
                load(device)

    def test_model_of_another_type_raises(self) -> None:
        with pytest.raises(ConfigurationError, match="verifier must be a model's name or folder, got 5"):
            load_verifier(5)  # type: ignore[arg-type]

    def test_cosine_takes_no_device(self) -> None:
        with pytest.raises(ConfigurationError, match=r"device must be left out for 'cosine'.*got 'cuda'"):
            load_verifier("cosine", device="cuda")


@needs_cuda
class TestOnCuda:
    def test_shipped_verifier_scores_alike_on_the_gpu(self) -> None:
        texts = ["The Eiffel Tower is 330 metres tall.", "Bread is made from flour.", "Rain fell all week. " * 40] * 20
        question = "How tall is the Eiffel Tower?"
        on_cuda = load_verifier(device="cuda")
        np.testing.assert_allclose(on_cuda.score(question, texts), load_verifier().score(question, texts), atol=0.05)
        contexts = [Retriever.from_texts(texts, verifier=v).retrieve(question) for v in (None, on_cuda)]
        assert contexts[0].text == contexts[1].text

    def test_batch_size_follows_the_free_memory(self, tmp_path: Path) -> None:
        runtime = TorchRuntime.from_name(str(save_tiny_model(tmp_path / "tiny")), device="cuda")
        assert runtime.batch_size == 256

    def test_embedder_runs_on_the_gpu(self) -> None:
        expected = load_minilm(device="cpu").embed_passages(PASSAGES)
        np.testing.assert_allclose(load_minilm(device="cuda").embed_passages(PASSAGES), expected, atol=1e-3)
