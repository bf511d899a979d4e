"""Makes the embedder that ships: all-MiniLM-L6-v2 as an ONNX graph with 8-bit weights.

    pip install 'meve[offline,onnx]'
    python -m recipes.minilm.make --to FOLDER

Prints how near its vectors are to those of the published weights, on the project's own passages.
"""

import argparse
from pathlib import Path

import numpy as np

from meve.components.embedders.minilm import check_weights, load_minilm, minilm_folder
from meve.components.embedders.onnx import SHIPPED_MINILM, OnnxEmbedder
from meve.evaluation.datasets import read_own
from meve.training.onnx_embedder import quantize_embedder

SAMPLES = 60
"""The number of passages on which large activations are measured; the others measure the result."""


def main() -> None:
    """Quantise and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    check_weights(minilm_folder() / "model.safetensors")
    texts = [passage.content for passage in read_own().passages]
    quantize_embedder(minilm_folder(), given.to, texts[:SAMPLES])
    compare(OnnxEmbedder.from_folder(given.to, name=SHIPPED_MINILM), texts[SAMPLES:])


def compare(embedder: OnnxEmbedder, texts: list[str]) -> None:
    """Print the cosines between the two models' vectors, and how far their similarities of passages differ."""
    small, whole = embedder.embed_passages(texts), load_minilm().embed_passages(texts)
    cosines = (small * whole).sum(axis=1)
    gap = np.abs(small @ small.T - whole @ whole.T)
    print(f"cosine with the published weights: mean {cosines.mean():.5f}, least {min(cosines):.5f}")
    print(f"similarities of two passages differ by {gap.mean():.4f} in the mean, {gap.max():.4f} at most")


if __name__ == "__main__":
    main()
