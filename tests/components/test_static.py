"""Test the static embedder."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from meve.components import _bert_words
from meve.components.embedders import resolve_embedder
from meve.components.embedders.static import EMBEDDER_FOLDER, SHIPPED_EMBEDDER, StaticEmbedder
from meve.errors import ModelError, ModelNotFoundError
from meve.ports import Embedder
from meve.testing.embedder_contract import EmbedderContract

LIMIT = 10 * 2**20


@pytest.fixture(scope="module")
def shipped() -> StaticEmbedder:
    return StaticEmbedder.load_shipped()


class TestShipped(EmbedderContract):
    rejects_long_queries = False

    @pytest.fixture
    def embedder(self, shipped: StaticEmbedder) -> Embedder:
        return shipped


def test_names_resolve_to_static_embedder(shipped: StaticEmbedder) -> None:
    assert (shipped.name, shipped.dimension, shipped.similarity) == (SHIPPED_EMBEDDER, 256, "cosine")
    assert resolve_embedder("static").name == resolve_embedder(SHIPPED_EMBEDDER).name == SHIPPED_EMBEDDER
    by_folder = resolve_embedder(str(EMBEDDER_FOLDER))
    assert isinstance(by_folder, StaticEmbedder)
    assert by_folder.name == str(EMBEDDER_FOLDER)
    np.testing.assert_array_equal(by_folder.embed_query("the moon"), shipped.embed_query("the moon"))


def test_shipped_model_is_small_and_holds_no_build_paths() -> None:
    files = [file for file in EMBEDDER_FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= LIMIT
    assert {file.name for file in files} == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert "/" not in (EMBEDDER_FOLDER / "config.json").read_text("utf-8")


def test_text_without_known_token_has_zero_vector(shipped: StaticEmbedder) -> None:
    vectors = shipped.embed_passages(["", "the moon"])
    assert not vectors[0].any()
    assert float(np.linalg.norm(vectors[1])) == pytest.approx(1.0, abs=1e-5)


def test_words_whose_tokens_are_kept_change_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bert_words, "_MOST_KNOWN", 60)
    embedder = StaticEmbedder.from_folder(EMBEDDER_FOLDER)
    keeping = embedder._model.__dict__["tokenize"]
    assert isinstance(keeping, _bert_words.WordTokens)
    drawn = random.Random(4)
    plain = ["moon", "Bread!", "[unk]", "x" * 101, "y" * 30, "\t\r\n", "it's", "a_b"]
    odd = ["", "", "", "Zürich", "[UNK]", "a\x00b", "東京", "İstanbul", "kalın", "ſ", "300 \u212a"]
    batches = [
        [" ".join([*drawn.choices(plain, k=4), str(drawn.random()), odd[n % len(odd)]]) for n in range(20)]
        for _ in range(20)
    ]
    kept = []
    for batch in batches:
        kept.append(embedder.embed_passages(batch))
        assert len(keeping._known) <= 60
        assert not any(len(word) > 20 for word in keeping._known)
    del embedder._model.tokenize  # the model's own method stands below it
    np.testing.assert_array_equal(kept, [embedder.embed_passages(batch) for batch in batches])


def test_long_text_is_not_truncated(shipped: StaticEmbedder) -> None:
    one, other = shipped.embed_passages(["moon " * 100_000 + "bread " * 50_000, "bread " * 50_000 + "moon " * 100_000])
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_threads_with_long_and_short_texts_get_equal_results(shipped: StaticEmbedder) -> None:
    """Encoding changes limits on the shared tokenizer."""
    texts = ["moon " * n for n in (1, 3_000)] * 40
    alone = shipped.embed_passages(texts[:2])
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(shipped.embed_query, texts))
    np.testing.assert_allclose(together, np.tile(alone, (40, 1)), atol=1e-5)


def test_folder_without_model_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no folder .*nowhere.*embedder='static'"):
        StaticEmbedder.from_folder(tmp_path / "nowhere")
    shutil.copytree(EMBEDDER_FOLDER, tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match=r"loading the static embedder .*broken"):
        resolve_embedder(str(tmp_path / "broken"))
