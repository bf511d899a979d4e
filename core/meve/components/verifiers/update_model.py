"""Loads the bundled model of updates: how likely a newer statement ends what an older one tells."""

from functools import cache
from pathlib import Path

from meve.components._onnx_session import open_session
from meve.components._text_splitter import TextSplitter
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, load_calibration_file

UPDATE_MODEL = "meve-updates-1"
"""The name of the model that ships."""
UPDATE_FOLDER = Path(__file__).parent / UPDATE_MODEL
"""The folder of its graph, its calibration and its card; the tokenizer is the bundled verifier's."""
_WINDOW = 192


@cache
def load_update_model() -> CrossEncoderVerifier:
    """Load the bundled model of updates: English, 192 tokens at once, calibrated.

    The older statement is the query, the newer one the passage. A pair's score doesn't depend on the others of a call.

    Raises:
        ModelError: its files are damaged or missing.
    """
    runtime = OnnxRuntime(
        open_session(UPDATE_FOLDER / "model.onnx"),
        splitter=TextSplitter.from_folder(VERIFIER_FOLDER),
        window=_WINDOW,
        name=UPDATE_MODEL,
        threads=None,
    )
    calibration = load_calibration_file(UPDATE_FOLDER)
    return CrossEncoderVerifier(runtime, name=UPDATE_MODEL, calibration=calibration, batch_size=1, cache_size=0)
