"""Test the loading of ONNX graphs."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from meve.components import _onnx_session
from meve.components._onnx_session import CorePool, open_session, signed_products_overflow
from meve.components.embedders.onnx import MINILM_FOLDER, OnnxEmbedder
from meve.components.verifiers import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError, ModelError
from meve.testing.tiny_models import save_tiny_model

HAS_CUDA = find_spec("torch") is not None and import_module("torch").cuda.is_available()
PAIR = ("How tall is the Eiffel Tower?", "The Eiffel Tower is 330 metres tall, and was finished in 1889.")


def test_overflow_is_tried_with_a_product_of_bytes() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "p",
        [value("a", TensorProto.UINT8, None), value("b", TensorProto.INT8, None)],
        [value("y", TensorProto.INT32, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    assert onnx.load_from_string(_onnx_session._PRODUCT) == model
    assert isinstance(signed_products_overflow(), bool)


def test_scores_are_equal_whether_signed_products_overflow_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second session computes with unsigned weights, as on a processor that adds in 16 bits."""
    scores = load_shipped_verifier(threads=1).raw_scores(*PAIR[:1], [PAIR[1]]).tolist()
    monkeypatch.setattr(_onnx_session, "signed_products_overflow", lambda: True)
    unsigned = OnnxRuntime.from_folder(VERIFIER_FOLDER, threads=1)
    assert unsigned.logits([[PAIR]])[0].tolist() == scores


def test_broken_graph_raises_model_error(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match=r"loading .*model\.onnx"):
        open_session(tmp_path / "model.onnx")


@pytest.mark.parametrize("threads", [1, 3, None])
def test_pool_returns_results_in_the_order_of_inputs(threads: int | None) -> None:
    assert CorePool(threads, "test").map(lambda n: n * n, range(50)) == [n * n for n in range(50)]


def test_pool_without_threads_raises() -> None:
    with pytest.raises(ConfigurationError, match="threads must be at least 1, got 0"):
        CorePool(0, "test")


class TestCuda:
    """ONNX Runtime on a GPU, and its errors on machines without one."""

    has_provider = "CUDAExecutionProvider" in onnxruntime.get_available_providers()

    @pytest.fixture
    def graph(self, tmp_path: Path) -> Path:
        value = helper.make_tensor_value_info
        inputs = [value(name, TensorProto.FLOAT, [2, 2]) for name in "ab"]
        node = helper.make_node("MatMul", ["a", "b"], ["y"])
        model = helper.make_graph([node], "product", inputs, [value("y", TensorProto.FLOAT, [2, 2])])
        onnx.save(
            helper.make_model(model, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx"
        )
        return tmp_path / "model.onnx"

    @pytest.mark.parametrize("device", [None, "cpu"])
    def test_cpu_is_the_default(self, graph: Path, device: str | None) -> None:
        assert open_session(graph, device).get_providers() == ["CPUExecutionProvider"]

    @pytest.mark.skipif(has_provider, reason="this ONNX Runtime is built for CUDA")
    def test_build_without_cuda_raises_and_names_its_providers(self, graph: Path) -> None:
        with pytest.raises(
            ConfigurationError, match=r"got 'cuda:1'.* has .*CPUExecutionProvider.*pip install onnxruntime-gpu"
        ):
            open_session(graph, "cuda:1")

    @pytest.mark.filterwarnings("ignore:Specified provider:UserWarning")
    @pytest.mark.skipif(HAS_CUDA, reason="torch finds a GPU")
    def test_silent_fallback_to_the_cpu_raises(self, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A build for CUDA on a machine without a GPU lists the provider, and makes a session for the CPU."""
        monkeypatch.setattr(
            onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
        with pytest.raises(ConfigurationError, match="got 'cuda': it fell back to the CPU"):
            open_session(graph, "cuda")

    @pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CUDA", ""])
    def test_unknown_device_raises(self, graph: Path, device: str) -> None:
        with pytest.raises(ConfigurationError, match=f"'cpu', 'cuda' or 'cuda:N' for ONNX Runtime, got '{device}'"):
            open_session(graph, device)

    def test_quantised_graph_raises(self) -> None:
        with pytest.raises(ConfigurationError, match=r"no CUDA kernels.*load_verifier\(device='cuda'\)"):
            CrossEncoderVerifier.from_name(str(VERIFIER_FOLDER), backend="onnx", device="cuda")
        with pytest.raises(ConfigurationError, match="no CUDA kernels"):
            OnnxEmbedder.from_folder(MINILM_FOLDER, device="cuda")

    @pytest.mark.skipif(not has_provider, reason="onnxruntime-gpu isn't installed")
    @pytest.mark.skipif(not HAS_CUDA, reason="torch finds no GPU (torch.cuda.is_available())")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_exported_model_scores_alike_on_the_gpu(self, tmp_path: Path) -> None:
        folder = str(export_onnx(save_tiny_model(tmp_path / "torch"), tmp_path / "onnx"))
        passages = ["the moon", "the harbour", "bread"]
        on_cpu, on_cuda = (
            CrossEncoderVerifier.from_name(folder, backend="onnx", device=device).raw_scores(PAIR[0], passages)
            for device in ("cpu", "cuda")
        )
        np.testing.assert_allclose(on_cuda, on_cpu, atol=1e-3)
