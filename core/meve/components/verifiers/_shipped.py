"""Loads the bundled verifier: a cross-encoder with 8-bit weights on ONNX Runtime, or its weights in fp32 on torch.

Its README.md states its training and its measured quality.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from meve._extras import require_imports
from meve.components._torch_device import check_torch_device
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers._onnx_dequantize import dequantize_onnx, read_token_head
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._torch_runtime import TorchRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, load_calibration_file
from meve.errors import CalibrationError, ModelError, wrap_errors
from meve.ports import Calibration

VERIFIER_FOLDER = Path(__file__).parent / SHIPPED_VERIFIER
"""The folder of the bundled verifier: graph, tokenizer, configuration, calibration and model card."""


def load_shipped_verifier(*, threads: int | None = None) -> CrossEncoderVerifier:
    """Load the bundled verifier: English, 384 tokens at once, calibrated.

    It reads one pair at a time. Activations are quantised by the range of a batch, so a larger batch would make a
    pair's score depend on the others.

    Args:
        threads: how many pairs are read at once, each on one core; None for all cores.

    Raises:
        ModelError: its files are damaged or missing.
        CalibrationError: the calibration is missing.
        ConfigurationError: `threads` is below 1.
    """
    calibration = _load_calibration()
    runtime = _load_runtime(VERIFIER_FOLDER, threads)
    return CrossEncoderVerifier(runtime, name=SHIPPED_VERIFIER, calibration=calibration, batch_size=1)


def load_shipped_verifier_in_torch(device: str) -> CrossEncoderVerifier:
    """Load the bundled verifier's weights in torch, in fp32, under the same name and calibration.

    The 8-bit graph rounds activations, torch doesn't, so probabilities differ by 0.005 on average (docs/
    retrieval-models.md). The fitted models that ship apply to both. Batches are sized to the free memory of a GPU.

    Args:
        device: a torch device, such as `cuda` or `cuda:1`.

    Raises:
        MissingExtraError: onnx or sentence-transformers isn't installed.
        ConfigurationError: torch can't use `device`.
        ModelError: its files are damaged or missing.
        CalibrationError: the calibration is missing.
    """
    calibration = _load_calibration()
    runtime = _load_torch_runtime(VERIFIER_FOLDER, device)
    return CrossEncoderVerifier(runtime, name=SHIPPED_VERIFIER, calibration=calibration, batch_size=runtime.batch_size)


def _load_calibration() -> Calibration:
    calibration = load_calibration_file(VERIFIER_FOLDER)
    if calibration is None:
        raise CalibrationError(f"{VERIFIER_FOLDER} holds no calibration.json: pip install --force-reinstall meve")
    return calibration


@cache
def _load_runtime(folder: Path, threads: int | None) -> OnnxRuntime:
    return OnnxRuntime.from_folder(folder, threads=threads)


@cache
def _load_torch_runtime(folder: Path, device: str) -> TorchRuntime:
    purpose = f"{SHIPPED_VERIFIER} on the device {device!r}"
    with require_imports(purpose, {"sentence_transformers": "onnx"}):  # the extra also has onnx, for `dequantize_onnx`
        from sentence_transformers import CrossEncoder
    check_torch_device(device)
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary, wrap_errors(ModelError, f"loading {purpose}"):
        weights = dequantize_onnx(folder, temporary)
        model = CrossEncoder(str(weights), device=device, local_files_only=True)
    return TorchRuntime(model, name=SHIPPED_VERIFIER, token_head=read_token_head(folder))
