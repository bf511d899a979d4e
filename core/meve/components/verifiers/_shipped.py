"""Loads the bundled verifier: a cross-encoder with 8-bit weights on ONNX Runtime, without torch or a hub.

Its README.md states its training and its measured quality.
"""

from functools import cache
from pathlib import Path

from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, load_calibration_file
from meve.errors import CalibrationError

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
    calibration = load_calibration_file(VERIFIER_FOLDER)
    if calibration is None:
        raise CalibrationError(f"{VERIFIER_FOLDER} holds no calibration.json: pip install --force-reinstall meve")
    runtime = _load_runtime(VERIFIER_FOLDER, threads)
    return CrossEncoderVerifier(runtime, name=SHIPPED_VERIFIER, calibration=calibration, batch_size=1)


@cache
def _load_runtime(folder: Path, threads: int | None) -> OnnxRuntime:
    return OnnxRuntime.from_folder(folder, threads=threads)
