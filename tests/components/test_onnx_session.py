"""Test the loading of ONNX graphs."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from meve.components import _onnx_session
from meve.components._onnx_session import CorePool, open_session, signed_products_overflow
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.errors import ConfigurationError, ModelError

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
