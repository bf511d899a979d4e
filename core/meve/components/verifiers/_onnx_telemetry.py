"""ONNX Runtime without its telemetry: official builds send events, and name the machine in the user's cache."""

import os

_SWITCHES = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED")
"""What it reads when it is first imported: today's name, and one that it had for a while."""


def quiet() -> None:
    """Call before `import onnxruntime`. Where somebody imported it before, or has set the switches, that stands."""
    for name in _SWITCHES:
        os.environ.setdefault(name, "1")
