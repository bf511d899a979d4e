"""Makes the ONNX graph of a cross-encoder small and quick: operators fused, weights of 8 bits."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.verifiers._onnx_export import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime, find_onnx_file
from meve.components.verifiers._onnx_telemetry import disable_telemetry
from meve.errors import ModelError, wrap_errors, missing_extra
from meve.training.onnx_graph import EXACT, embeddings_by_row, first_token_only, outliers_apart, tokens_by_scale

LEAST_AGREEMENT = 0.95
"""Kendall's tau between the order of the small graph and that of the whole one, below which it is refused."""

OPSETS = range(15, 18)
"""The graphs' dialects in which what is put in here means the same."""
Pairs = Sequence[tuple[str, str]]


def quantize_onnx(folder: str | Path, to: str | Path, probes: Pairs = (), samples: Pairs = ()) -> float:
    """Write the model with 8-bit weights to a folder that `CrossEncoderVerifier.from_name` reads.

    Weights are quantised ahead, each column by its own scale, and activations while it runs, each token by its own.
    Weights are unsigned: signed ones overflow on processors without VNNI, unless one bit is given up, which is a sixth
    quicker and costs ranks. The last layer reads on for the first token alone, if the head takes no other.

    Args:
        folder: a cross-encoder on BERT's plan that torch can load, or one that is exported already.
        to: the folder to write to; another one.
        probes: (query, passage) pairs that the small graph must order as the whole one does.
        samples: pairs such as it will read, some dozens, to see which channels of activations get large: those stay in
            fp32. Without, they take most of the eight bits, and ranks suffer.

    Returns:
        Kendall's tau over the probes; 1.0 for fewer than two.

    Raises:
        MissingExtraError: onnx, or for a model that isn't exported yet torch, isn't installed.
        ModelNotFoundError: no model of that name in reach.
        ModelError: a graph that can't be quantised, no sample that fits its window, a small graph that can't be run or
            gives no number, or one that orders the probes otherwise; nothing is written.
    """
    disable_telemetry()
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.transformers.fusion_options import FusionOptions
        from onnxruntime.transformers.optimizer import optimize_model
    except ImportError as cause:
        raise missing_extra(str(cause.name), "onnx", "quantising a model") from cause
    source, target = Path(folder), Path(to)
    with tempfile.TemporaryDirectory(prefix="meve-quantize-") as name:
        whole, small = Path(name) / "whole", Path(name) / "small"
        if not _exported(source):
            source = export_onnx(folder, whole)
        config = _config(source)
        (small / "onnx").mkdir(parents=True)
        with wrap_errors(ModelError, f"quantising {folder}"):
            options = FusionOptions("bert")
            options.use_multi_head_attention = True  # its products stand by themselves
            fused = optimize_model(
                _in_known_opset(find_onnx_file(source), Path(name) / "converted.onnx"),
                model_type="bert",
                num_heads=config["num_attention_heads"],
                hidden_size=config["hidden_size"],
                optimization_options=options,
            )
            first_token_only(fused.model)
            embeddings_by_row(fused.model)
            if samples:
                outliers_apart(fused.model, _fed(source, samples))
            tokens_by_scale(fused.model)
            fused.save_model_to_file(str(Path(name) / "fused.onnx"))
            quantize_dynamic(
                Path(name) / "fused.onnx",
                small / "onnx" / "model.onnx",
                per_channel=True,
                weight_type=QuantType.QUInt8,
                nodes_to_exclude=_exact(fused.model),
                extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # fused operators don't state theirs
            )
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json"):
            if (source / file).is_file():
                shutil.copy2(source / file, small / file)
        held = probes or samples or [("a question", "an answer")]
        agreement = _agreement(source, small, held)
        if not agreement >= LEAST_AGREEMENT:  # nor what is no number
            raise ModelError(
                f"the quantised graph of {folder} orders {len(held)} probes otherwise than the whole one "
                f"(Kendall's tau {agreement:.3f}, at least {LEAST_AGREEMENT} wanted): keep the whole one"
            )
        (target / "onnx").mkdir(parents=True, exist_ok=True)
        for made in sorted(small.rglob("*")):
            if made.is_file():
                place = target / made.relative_to(small)
                shutil.copy2(made, place.with_name(f"{place.name}.new"))
                os.replace(place.with_name(f"{place.name}.new"), place)
    return agreement


def _exact(model: Any) -> list[str]:  # noqa: ANN401 - an onnx.ModelProto
    """Nodes that stay in fp32: those said to, and the head's, whose names the quantiser lengthens."""
    heads = [node.name for node in model.graph.node if node.op_type == "Gemm"]
    marked = [node.name for node in model.graph.node if node.name.startswith(EXACT)]
    return [*marked, *heads, *(f"{name}_MatMul" for name in heads)]


def _fed(folder: Path, samples: Pairs) -> list[dict[str, Any]]:
    """What the graph is fed for those that fit its window."""
    runtime = OnnxRuntime.from_folder(folder)
    fed = [runtime.build_inputs([pair]) for pair in samples]
    fitting = [each for each in fed if each["input_ids"].shape[1] <= runtime.window]
    if not fitting:
        raise ModelError(
            f"none of {len(samples)} samples fits the {runtime.window} tokens that {folder} reads at once: give shorter"
        )
    return fitting


def _config(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    missing = [key for key in ("num_attention_heads", "hidden_size") if not isinstance(found.get(key), int)]
    if missing:
        raise ModelError(
            f"{folder / 'config.json'} says no {' nor '.join(missing)} (model_type {found.get('model_type')!r}): only "
            "models on BERT's plan can be quantised here; run this one as it is"
        )
    return found


def _in_known_opset(file: Path, converted: Path) -> str:
    import onnx
    from onnx import version_converter

    model = onnx.load(str(file))
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if opset in OPSETS:
        return str(file)
    with wrap_errors(ModelError, f"converting {file} from opset {opset} to {OPSETS[-1]}"):
        onnx.save(version_converter.convert_version(model, OPSETS[-1]), str(converted))
    return str(converted)


def _exported(folder: Path) -> bool:
    return (folder / "onnx" / "model.onnx").is_file() or (folder / "model.onnx").is_file()


def _agreement(whole: Path, small: Path, probes: Pairs) -> float:
    from scipy.stats import kendalltau

    a, b = (
        np.concatenate(runtime.logits([[pair] for pair in probes]))
        for runtime in (OnnxRuntime.from_folder(folder) for folder in (whole, small))
    )
    if not np.isfinite(b).all():
        raise ModelError(f"the quantised graph gives no number for {int((~np.isfinite(b)).sum())} of {len(b)} pairs")
    return float(kendalltau(a, b).statistic) if len(b) > 1 else 1.0
