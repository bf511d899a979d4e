"""Turns a quantised graph back into weights for torch; the components use it too, and hold the code."""

from meve.components.verifiers._onnx_dequantize import dequantize_onnx

__all__ = ["dequantize_onnx"]
