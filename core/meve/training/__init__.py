"""Trains verifiers on labelled pairs, resumable, and compares each with the verifier it would replace.

`onnx_quantize` makes a trained cross-encoder small and fast, by `onnx_graph` and `onnx_rounding`; `onnx_dequantize`
turns the result back into weights for torch. `onnx_embedder` makes an embedder small and fast.
"""

from meve.training.build import build_verifier
from meve.training.trainer import TrainingConfig, fine_tune
from meve.training.verifier_comparison import Verdict

__all__ = ["TrainingConfig", "Verdict", "build_verifier", "fine_tune"]
