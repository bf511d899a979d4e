"""Test what `pip install 'meve[otel]'` provides, in an environment with nothing else (see try_wheel.py)."""

import sys

from install_checks import assert_not_installed

import meve
from meve import Retriever, telemetry
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "pytest", "opentelemetry.sdk", "opentelemetry.exporter")
assert "opentelemetry.trace" not in sys.modules
parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
retriever = Retriever.from_texts(["The Nile flows."], **parts)
telemetry.instrument()  # without an SDK, nothing is recorded
assert retriever.retrieve("The Nile flows.").sufficient
telemetry.uninstrument()
sys.stdout.write("an install with the otel extra works\n")
