"""Disables ONNX Runtime's telemetry: official builds send events and store a machine id in the user's cache."""

import os

_SWITCHES = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED")
"""Environment variables that ONNX Runtime reads on first import: the current name and an older one."""


def disable_telemetry() -> None:
    """Set the switches unless the user has set them. Call before the first `import onnxruntime`."""
    for name in _SWITCHES:
        os.environ.setdefault(name, "1")
