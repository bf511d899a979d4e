"""Loads the bundled verifier: a cross-encoder with 8-bit weights on ONNX Runtime, without torch or a hub.

Its README.md states its training and its measured quality.
"""

from functools import cache
from pathlib import Path

from meve.components.verifiers import SHIPPED
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, load_calibration_file
from meve.errors import CalibrationError


def shipped_folder() -> Path:
    """Return the folder of the bundled verifier: graph, tokenizer, configuration, calibration and model card."""
    return Path(__file__).parent / SHIPPED


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
    folder = shipped_folder()
    calibration = load_calibration_file(folder)
    if calibration is None:
        raise CalibrationError(f"{folder} holds no calibration.json: pip install --force-reinstall meve")
    return CrossEncoderVerifier(_runtime(folder, threads), name=SHIPPED, calibration=calibration, batch_size=1)


@cache
def _runtime(folder: Path, threads: int | None) -> OnnxRuntime:
    """Load the model once per process."""
    return OnnxRuntime.from_folder(folder, threads=threads)
