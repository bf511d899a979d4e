"""The verifier that ships: a cross-encoder of 8-bit weights that runs on ONNX Runtime, without torch and any hub.

What it was trained on, how, and how well it does stands in the README.md beside its files.
"""

from functools import cache
from pathlib import Path

from meve.components.verifiers import SHIPPED
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, calibration_beside
from meve.errors import CalibrationError


def shipped_folder() -> Path:
    """Where it lies: graph, tokenizer, configuration, calibration and model card."""
    return Path(__file__).parent / SHIPPED


def shipped_verifier(*, threads: int | None = None) -> CrossEncoderVerifier:
    """The verifier that comes with MeVe: English, 384 tokens at once, calibrated.

    It reads one pair at a time. Nothing is padded so, and a pair's score doesn't depend on the others: activations
    are quantised by their range, which a batch would share.

    Args:
        threads: how many pairs are read at once, each on one core; None for as many as there are cores.

    Raises:
        ModelError: its files are damaged or gone.
        CalibrationError: the calibration is gone.
        ConfigurationError: `threads` out of range.
    """
    folder = shipped_folder()
    calibration = calibration_beside(folder)
    if calibration is None:
        raise CalibrationError(f"{folder} holds no calibration.json: pip install --force-reinstall meve")
    return CrossEncoderVerifier(_runtime(folder, threads), name=SHIPPED, calibration=calibration, batch_size=1)


@cache
def _runtime(folder: Path, threads: int | None) -> OnnxRuntime:
    """One a process: a second would hold the same weights again."""
    return OnnxRuntime.from_folder(folder, threads=threads)
