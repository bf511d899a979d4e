"""Makes the ONNX graph of a cross-encoder small and fast: fused operators, 8-bit weights."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meve.components._onnx_telemetry import disable_telemetry
from meve.components.verifiers._onnx_export import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime, find_onnx_file
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier, TextPairs
from meve.errors import ModelError, missing_extra, wrap_errors
from meve.training.onnx_graph import EXACT, keep_first_token, quantize_embeddings, scale_tokens, split_outliers
from meve.training.onnx_rounding import round_weights

LEAST_AGREEMENT = 0.95
"""The minimum Kendall's tau between the rankings of the quantised and the original graph."""

OPSETS = range(15, 18)
"""The ONNX opset versions in which the inserted operators have the intended meaning."""


def quantize_onnx(folder: str | Path, to: str | Path, probes: TextPairs = (), samples: TextPairs = ()) -> float:
    """Write the model with 8-bit weights to a folder that `CrossEncoderVerifier.from_name` reads.

    See `quantize_graph`. If the head uses the first token alone, the last layer is computed for that token only.

    Args:
        folder: a BERT-like cross-encoder that torch can load, or one that is already exported.
        to: the output folder; must be another one.
        probes: (query, passage) pairs that both graphs must rank alike.
        samples: some hundred typical pairs, to find the channels with large activations, which stay in fp32, and to
            round the weights so that the scores change least. Without samples the ranking is worse.

    Returns:
        Kendall's tau over the probes; 1.0 for fewer than two.

    Raises:
        MissingExtraError: onnx isn't installed, or torch for a model that isn't exported yet.
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the graph can't be quantised, no sample fits its window, or the quantised graph fails, returns NaN
            or ranks the probes differently; nothing is written.
    """
    source, target = Path(folder), Path(to)
    with tempfile.TemporaryDirectory(prefix="meve-quantize-") as name:
        whole, small = Path(name) / "whole", Path(name) / "small"
        if not _is_exported(source):
            source = export_onnx(folder, whole)
        config = _config(source)
        (small / "onnx").mkdir(parents=True)
        with wrap_errors(ModelError, f"quantising {folder}"):
            inputs = _make_inputs(source, samples) if samples else ()
            quantize_graph(find_onnx_file(source), small / "onnx" / "model.onnx", config=config, inputs=inputs)
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json"):
            if (source / file).is_file():
                shutil.copy2(source / file, small / file)
        checked_pairs = probes or samples or [("a question", "an answer")]
        agreement = _agreement(source, small, checked_pairs)
        if not agreement >= LEAST_AGREEMENT:  # also refuses NaN
            raise ModelError(
                f"the quantised graph of {folder} ranks {len(checked_pairs)} probes differently from the original "
                f"(Kendall's tau {agreement:.3f}, at least {LEAST_AGREEMENT} required): keep the original"
            )
        (target / "onnx").mkdir(parents=True, exist_ok=True)
        for written in sorted(small.rglob("*")):
            if written.is_file():
                place = target / written.relative_to(small)
                shutil.copy2(written, place.with_name(f"{place.name}.new"))
                os.replace(place.with_name(f"{place.name}.new"), place)
    return agreement


def quantize_graph(
    graph: Path, to: Path, *, config: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Write a BERT's graph with fused operators and 8-bit weights.

    Weights are quantised ahead, each column with its own scale, and signed: `open_session` loads them so that they
    don't overflow. Activations are quantised at run time, each token with its own scale.

    Args:
        graph: a BERT-like model in fp32.
        to: the file to write.
        config: the model's config.json, with `num_attention_heads` and `hidden_size`.
        inputs: inputs of the graph, to find the channels with large activations, which stay in fp32, and to round the
            weights so that their products with the activations change least.

    Raises:
        MissingExtraError: onnx isn't installed.
    """
    disable_telemetry()
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.transformers.fusion_options import FusionOptions
        from onnxruntime.transformers.optimizer import optimize_model
    except ImportError as cause:
        raise missing_extra(str(cause.name), "onnx", "quantising a model") from cause
    options = FusionOptions("bert")
    options.use_multi_head_attention = True  # keeps matrix products as separate nodes
    with tempfile.TemporaryDirectory(prefix="meve-quantize-") as name:
        fused = optimize_model(
            _in_known_opset(graph, Path(name) / "converted.onnx"),
            model_type="bert",
            num_heads=config["num_attention_heads"],
            hidden_size=config["hidden_size"],
            optimization_options=options,
        )
        keep_first_token(fused.model)
        quantize_embeddings(fused.model)
        if inputs:
            split_outliers(fused.model, inputs)
            round_weights(fused.model, inputs)
        scale_tokens(fused.model)
        fused.save_model_to_file(str(Path(name) / "fused.onnx"))
        excluded = _nodes_in_fp32(fused.model)
        del fused  # the quantiser reads the file
        quantize_dynamic(
            Path(name) / "fused.onnx",
            to,
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=excluded,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # fused operators don't state theirs
        )


def _nodes_in_fp32(model: Any) -> list[str]:  # noqa: ANN401 - an onnx.ModelProto
    """Return the names of nodes that stay in fp32: marked ones and the head's, which the quantiser renames."""
    heads = [node.name for node in model.graph.node if node.op_type == "Gemm"]
    marked = [node.name for node in model.graph.node if node.name.startswith(EXACT)]
    return [*marked, *heads, *(f"{name}_MatMul" for name in heads)]


def _make_inputs(folder: Path, samples: TextPairs) -> list[dict[str, Any]]:
    """Return the graph's inputs for the samples that fit its window."""
    runtime = OnnxRuntime.from_folder(folder)
    inputs = [runtime.build_inputs([pair]) for pair in samples]
    fitting = [each for each in inputs if each["input_ids"].shape[1] <= runtime.window]
    if not fitting:
        raise ModelError(
            f"none of {len(samples)} samples fits the window of {folder}, {runtime.window} tokens: give shorter ones"
        )
    return fitting


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    missing = [key for key in ("num_attention_heads", "hidden_size") if not isinstance(config.get(key), int)]
    if missing:
        raise ModelError(
            f"{folder / 'config.json'} lacks {' and '.join(missing)} (model_type {config.get('model_type')!r}): only "
            "BERT-like models can be quantised; use the model without quantisation"
        )
    return config


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


def _is_exported(folder: Path) -> bool:
    return (folder / "onnx" / "model.onnx").is_file() or (folder / "model.onnx").is_file()


def _agreement(whole: Path, small: Path, probes: TextPairs) -> float:
    from scipy.stats import kendalltau

    names = {"the original graph": whole, "the quantised graph": small}
    a, b = (
        CrossEncoderVerifier(OnnxRuntime.from_folder(folder), name=name, batch_size=1, cache_size=0).score_pairs(probes)
        for name, folder in names.items()
    )
    return float(kendalltau(a, b).statistic) if len(b) > 1 else 1.0
