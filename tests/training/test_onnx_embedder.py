"""Test that embedders in torch become folders that run in eight bits without it."""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meve import Retriever
from meve.components.embedders import embedder_needs, resolve_embedder
from meve.components.embedders.onnx import OnnxEmbedder
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError
from meve.testing.tiny_models import save_tiny_model
from meve.training import onnx_embedder
from meve.training.onnx_embedder import quantize_embedder

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TEXTS = ["the moon", "the cat is bread", "what orbits the earth ?", "a b c " * 30]


def save_embedder(folder: Path, *, kind: str = "encoder", pooling: str = "mean", **options: Any) -> Path:
    """Save a sentence-transformers model of a tiny transformer."""
    library = import_module("sentence_transformers")
    modules = import_module("sentence_transformers.models")
    transformer = modules.Transformer(str(save_tiny_model(folder / "transformer", kind=kind)))
    parts = [transformer, modules.Pooling(transformer.get_embedding_dimension(), pooling), modules.Normalize()]
    library.SentenceTransformer(modules=parts, device="cpu", **options).save(str(folder / "embedder"))
    return folder / "embedder"


@pytest.fixture(scope="module", params=["encoder", "mpnet"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_embedder(tmp_path_factory.mktemp(request.param), kind=request.param)


@pytest.fixture(scope="module")
def small(whole: Path) -> Path:
    quantize_embedder(whole, whole.parent / "small", [*TEXTS, "the earth", "the sun is a star"])
    return whole.parent / "small"


def test_vectors_are_those_of_the_model_in_torch(whole: Path, small: Path) -> None:
    embedder, in_torch = resolve_embedder(str(small)), SentenceTransformerEmbedder.from_name(str(whole), device="cpu")
    assert isinstance(embedder, OnnxEmbedder)
    assert embedder_needs(str(small)) == {}
    assert (embedder.dimension, embedder.similarity, embedder.window) == (32, "cosine", in_torch.window)
    cosines = (embedder.embed_passages(TEXTS) * in_torch.embed_passages(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.98, "a text beyond the window too"
    assert embedder.embed_query(TEXTS[0]) @ in_torch.embed_query(TEXTS[0]) > 0.98


def test_index_opens_by_the_folder(small: Path, tmp_path: Path) -> None:
    Retriever.from_texts(TEXTS, embedder=str(small)).save(tmp_path / "index")
    assert Retriever.load(tmp_path / "index").embedder.name == str(small)


def test_weights_take_a_byte_each(whole: Path, small: Path) -> None:
    onnx = import_module("onnx")
    graph = onnx.load(small / "onnx" / "model.onnx").graph
    assert [each.name for each in graph.output] == ["last_hidden_state"], "nothing that was only measured"
    rows = [each for each in graph.initializer if len(each.dims) == 2 and not each.name.endswith(("_few", "_scale"))]
    assert sum(np.prod(each.dims) for each in rows if each.data_type not in (2, 3)) < 0.2 * sum(
        np.prod(each.dims) for each in rows
    )
    assert not (small / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"pooling": "cls"}, "mean of its tokens"),
        ({"prompts": {"query": "query: "}}, "mean of its tokens"),
        ({"similarity_fn_name": "dot"}, "compares by dot"),
    ],
)
def test_model_whose_vectors_are_no_mean_of_tokens_raises(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=why):
        quantize_embedder(save_embedder(tmp_path, **options), tmp_path / "small", TEXTS[:1])
    assert not (tmp_path / "small").exists()


def test_vectors_that_differ_too_much_raise_and_write_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_embedder, "LEAST_COSINE", 1.1)
    with pytest.raises(ModelError, match=r"mean cosine of 0\.9\d+"):
        quantize_embedder(whole, tmp_path / "small", TEXTS)
    assert not (tmp_path / "small").exists()


def test_samples_are_needed(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="samples must be"):
        quantize_embedder(whole, tmp_path / "small", [])


def test_folder_of_the_model_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="to must be another folder than the model's"):
        quantize_embedder(str(tmp_path), tmp_path / "onnx" / "..", TEXTS)


def test_missing_model_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        quantize_embedder(tmp_path / "nowhere", tmp_path / "small", TEXTS)


def test_graph_with_other_inputs_raises(small: Path, tmp_path: Path) -> None:
    onnx = import_module("onnx")
    folder = Path(shutil.copytree(small, tmp_path / "strange"))
    model = onnx.load(folder / "onnx" / "model.onnx")
    for node in model.graph.node:
        node.input[:] = ["strange" if name == "input_ids" else name for name in node.input]
    model.graph.input[0].name = "strange"
    onnx.save(model, folder / "onnx" / "model.onnx")
    with pytest.raises(ModelError, match="has the inputs strange"):
        OnnxEmbedder.from_folder(folder)
