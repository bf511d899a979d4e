"""Makes an embedder in torch small and fast: an ONNX graph with 8-bit weights, which runs without torch."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meve._extras import require_imports
from meve.components._model_errors import map_load_errors
from meve.components._text_splitter import TextSplitter
from meve.components.embedders.onnx import OnnxEmbedder
from meve.components.embedders.sentence_transformer import CHOICES, SentenceTransformerEmbedder
from meve.components.verifiers._onnx_export import trace_graph
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.ports import Embedder
from meve.training.onnx_quantize import quantize_graph
from meve.types import FloatArray

LEAST_COSINE = 0.98
"""The minimum mean cosine between the vectors of the quantised graph and of the model."""
SAME = 0.9999
"""The minimum cosine between the vectors of the graph before quantisation and of the model."""
CHECKED = 4
"""The number of samples whose vectors are compared before quantisation; another kind of vector differs for each."""
_KEPT = (
    "model_type", "hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings", "pad_token_id"
)  # fmt: skip


def quantize_embedder(folder: str | Path, to: str | Path, samples: Sequence[str]) -> float:
    """Write an embedder with 8-bit weights to a folder that `embedder="FOLDER"` reads, without torch.

    Args:
        folder: a sentence-transformers model, by folder or hub name, whose vector is the mean of its tokens' vectors,
            such as all-mpnet-base-v2. It must need no prompt and be made for the cosine.
        to: the output folder, created if missing; must be another one.
        samples: typical passages, at least one; ten suffice. They show the channels with large activations, which stay
            in fp32, and measure the result.

    Returns:
        The mean cosine between the vectors of both models, for the samples.

    Raises:
        MissingExtraError: onnx or sentence-transformers isn't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ConfigurationError: no samples, or `to` is the model's own folder.
        ModelError: the model has another kind of vectors, can't be exported, or its vectors change too much; nothing
            is written.
    """
    if isinstance(samples, str) or not samples:
        raise ConfigurationError(f"samples must be a list of at least one passage, got {samples!r:.40}")
    if Path(folder).resolve() == Path(to).resolve():
        raise ConfigurationError(f"to must be another folder than the model's, got {str(to)!r:.200}")
    with require_imports("quantising an embedder", dict.fromkeys(("onnx", "sentence_transformers"), "onnx")):
        import onnx  # noqa: F401  torch writes the file through it
        from sentence_transformers import SentenceTransformer
    name = str(folder)
    with map_load_errors(name, CHOICES):
        loaded = SentenceTransformer(name, device="cpu", model_kwargs={"attn_implementation": "eager"})
    in_torch = SentenceTransformerEmbedder(loaded, name=name)
    if in_torch.similarity != "cosine" or in_torch.window is None:
        raise ModelError(f"{name!r} compares by {in_torch.similarity}, or reads texts of any length: run it in torch")
    splitter = TextSplitter.from_tokenizer(loaded.tokenizer)
    transformer: Any = loaded[0].auto_model
    config = transformer.config.to_dict()
    with tempfile.TemporaryDirectory(prefix="meve-quantize-") as temporary:
        whole, small = Path(temporary) / "whole", Path(temporary) / "small"
        for each in (whole, small):
            _write_folder(each, config, splitter, in_torch.window)
        with wrap_errors(ModelError, f"exporting {name} to ONNX"):
            trace_graph(transformer.eval(), loaded.tokenizer, _graph(whole), "last_hidden_state")
        exported, in_fp32 = OnnxEmbedder.from_folder(whole), _embed(in_torch, samples)
        few = samples[:CHECKED]
        if not _cosines(_embed(exported, few), in_fp32[[*range(len(few)), -1]]).min() >= SAME:
            raise ModelError(
                f"the vectors of {name!r} aren't the mean of its tokens' vectors, or it puts a prompt before texts: "
                "run it in torch"
            )
        with wrap_errors(ModelError, f"quantising {name}"):
            pieces, _, _ = splitter.split_all(samples, in_torch.window - splitter.count_special())
            inputs = [exported.build_inputs(piece) for piece in pieces]
            del exported, loaded, in_torch, transformer
            quantize_graph(_graph(whole), _graph(small), config=config, inputs=inputs)
        agreement = float(_cosines(_embed(OnnxEmbedder.from_folder(small), samples), in_fp32).mean())
        if not agreement >= LEAST_COSINE:  # also refuses NaN
            raise ModelError(
                f"the quantised vectors of {name} have a mean cosine of {agreement:.4f} with the model's, at least "
                f"{LEAST_COSINE} required: give other samples, or run it in torch"
            )
        shutil.copytree(small, to, dirs_exist_ok=True)
    return agreement


def _graph(folder: Path) -> Path:
    return folder / "onnx" / "model.onnx"


def _write_folder(folder: Path, config: Mapping[str, Any], splitter: TextSplitter, window: int) -> None:
    """Write what `OnnxEmbedder.from_folder` reads beside the graph."""
    (folder / "onnx").mkdir(parents=True)
    splitter.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    files = {
        "config.json": {**{key: config[key] for key in _KEPT if key in config}, "pooling": "mean"},
        "tokenizer_config.json": {"model_max_length": window},
    }
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def _embed(embedder: Embedder, texts: Sequence[str]) -> FloatArray:
    """Return the vectors of n passages, and of the first as a query, shape (n + 1, d)."""
    return np.vstack([embedder.embed_passages(texts), embedder.embed_query(texts[0])])


def _cosines(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cosines of n vectors of length 1 with as many others, shape (n,)."""
    return np.asarray((a * b).sum(axis=1))
