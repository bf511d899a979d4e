"""Exports a cross-encoder to ONNX and checks the graph against the model."""

import os
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meve._extras import require_imports
from meve.components._model_errors import map_load_errors
from meve.components._onnx_session import KNOWN_INPUTS
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._torch_runtime import CHOICES, check_classifier
from meve.errors import ModelError, ModelNotFoundError, wrap_errors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

OPSET = 17
TOLERANCE = 1e-3
"""The largest allowed difference between a logit of the graph and of the model."""

_PROBES = (
    ("what orbits the earth", "the moon"),
    ("a", "the moon orbits the earth, and the earth orbits the sun, which is a star"),
    ("where is the cat of the house", "on the mat"),
)
"""Pairs of other lengths than the traced ones, to detect a fixed shape or mask in the graph."""


def export_onnx(folder: str | Path, to: str | Path) -> Path:
    """Write onnx/model.onnx, with config and tokenizer beside it, from a cross-encoder that torch can load.

    Batch size and length stay variable. The graph is checked against the model.

    Args:
        folder: the model's folder, or a hub name.
        to: the folder to write to, created if missing; may be the model's own.

    Returns:
        `to`, ready for `CrossEncoderVerifier.from_name(to, backend="onnx")`.

    Raises:
        MissingExtraError: transformers, torch or onnx isn't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: not a classifier with one label, the export failed, or the graph's scores differ.
    """
    with require_imports("exporting a model to ONNX", dict.fromkeys(("onnx", "torch", "transformers"), "onnx")):
        import onnx  # noqa: F401  torch writes the file through it
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    name, target = str(folder), Path(to)
    with map_load_errors(name, CHOICES):
        config = AutoConfig.from_pretrained(name)
        check_classifier(config.to_dict() | {"num_labels": config.num_labels}, name)
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForSequenceClassification.from_pretrained(
            name, attn_implementation="eager", dtype=torch.float32
        )
    if not getattr(tokenizer, "backend_tokenizer", None):
        raise ModelNotFoundError(f"{name} has no tokenizer.json, which the ONNX backend reads: use backend='torch'")
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    partial = target / "onnx" / "model.onnx.partial"
    try:
        with wrap_errors(ModelError, f"exporting {name} to ONNX"):
            trace_graph(model.eval().cpu(), tokenizer, partial)
            if not (target / "tokenizer.json").is_file():
                tokenizer.save_pretrained(target)
            if not (target / "config.json").is_file():
                config.save_pretrained(target)
            calibration = Path(name) / "calibration.json"
            if calibration.is_file() and not (target / "calibration.json").is_file():
                shutil.copy2(calibration, target / "calibration.json")
            os.replace(partial, target / "onnx" / "model.onnx")
        _check_graph(model, tokenizer, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def trace_graph(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", file: Path, output: str = "logits"
) -> None:
    """Write the graph of one of the model's outputs, by its name in torch.

    It is traced from padded samples, so that the attention mask becomes part of it.
    """
    import torch

    class OneOutput(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self, names: list[str]) -> None:
            super().__init__()
            self.model, self.names = model, names

        def forward(self, *inputs: "torch.Tensor") -> "torch.Tensor":
            values: torch.Tensor = self.model(**dict(zip(self.names, inputs, strict=True)))[output]
            return values

    sample = tokenizer(
        ["what is the moon", "what"], ["it orbits the earth", "the sun"], padding=True, return_tensors="pt"
    )
    names = [entry for entry in KNOWN_INPUTS if entry in sample]
    texts = {0: "batch", 1: "length"}
    sizes = {**dict.fromkeys(names, texts), output: {0: "batch"} if output == "logits" else texts}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's deprecation, and constants, which the callers test
        torch.onnx.export(
            OneOutput(names).eval(),
            tuple(sample[entry] for entry in names),
            str(file),
            input_names=names,
            output_names=[output],
            dynamic_axes=sizes,
            opset_version=OPSET,
            dynamo=False,  # the newer exporter needs onnxscript
        )


def _check_graph(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", target: Path) -> None:
    """Delete a graph whose scores differ from the model's, and raise."""
    import torch

    inputs = tokenizer([q for q, _ in _PROBES], [p for _, p in _PROBES], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits.numpy().reshape(-1)
    gap = float(np.abs(OnnxRuntime.from_folder(target).logits([_PROBES])[0] - expected).max())
    if not gap <= TOLERANCE:
        (target / "onnx" / "model.onnx").unlink()
        raise ModelError(
            f"the graph exported to {target} differs from the model by {gap:.4g} (allowed {TOLERANCE}): "
            "it was removed; use backend='torch' for this model"
        )
