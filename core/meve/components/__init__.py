"""Embedders, verifiers, indexes, token counters and entity detectors; heavy libraries are imported on first use."""
