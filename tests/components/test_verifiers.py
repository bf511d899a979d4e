"""Test the cross-encoder and cosine verifiers."""

import json
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from meve._warn_once import _said
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration
from meve.components._long_texts import MOST_READINGS
from meve.components._text_splitter import TextSplitter
from meve.components.embedders.minilm import load_minilm
from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder
from meve.components.verifiers import SHIPPED_VERIFIER, export_onnx, resolve_verifier
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cosine import CosineVerifier, load_shipped_calibration
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import (
    CalibrationError,
    ConfigurationError,
    MissingExtraError,
    ModelError,
    ModelNotFoundError,
    PassageError,
    QueryError,
    VectorError,
)
from meve.pipeline._scorers import VerifierScorer
from meve.pipeline.phases.verify import score_candidates
from meve.ports import VectorVerifier, Verifier
from meve.testing.fakes import OverlapVerifier, WordEmbedder
from meve.testing.tiny_models import LENGTH, save_tiny_model
from meve.testing.verifier_contract import PASSAGES, QUERY, VerifierContract
from meve.types import Candidate, FloatArray, Passage, Query

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")

PAIRS = [(QUERY, text) for text in PASSAGES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_onnx(folder, tmp_path_factory.mktemp("models") / "onnx")


@pytest.fixture(scope="module")
def torch_verifier(folder: Path) -> CrossEncoderVerifier:
    return CrossEncoderVerifier.from_name(str(folder), device="cpu", batch_size=3)


@pytest.fixture(scope="module")
def onnx_verifier(exported: Path) -> CrossEncoderVerifier:
    return CrossEncoderVerifier.from_name(str(exported), backend="onnx", threads=1, batch_size=3)


@pytest.fixture(scope="module")
def bundled() -> SentenceTransformerEmbedder:
    return load_minilm(device="cpu")


def test_pairs_of_several_queries_score_as_each_query_alone(onnx_verifier):
    queries = ["bee", "honey and the comb", "a cat " * 20 + "honey?"]
    passages = ["bees make honey", "a bridge " * 90, "rust", "a bridge and honey " * 300]
    pairs = [(query, text) for text in passages for query in queries]
    reader, single = onnx_verifier.with_cache(0), onnx_verifier.with_cache(0)
    together = reader.score_pairs(pairs)
    np.testing.assert_allclose(together, [single.raw_scores(q, [text])[0] for q, text in pairs], atol=1e-4)
    unread = [reader.count_unread(query, passages) for query in queries]
    assert unread == [single.count_unread(query, passages) for query in queries]
    assert unread[2][3] > unread[0][3] > 0 == unread[0][0]
    with pytest.raises(QueryError, match="must be text, got int"):
        reader.score_pairs([("bee", "rust"), (3, "rust")])  # type: ignore[list-item]
    with pytest.raises(PassageError, match="must be texts, got int"):
        reader.score_pairs([("bee", 3)])  # type: ignore[list-item]


class TinyModelContract(VerifierContract):
    detects_relevance = False
    long_words = 80


class TestTorch(TinyModelContract):
    @pytest.fixture
    def verifier(self, torch_verifier: CrossEncoderVerifier) -> Verifier:
        return torch_verifier


class TestOnnx(TinyModelContract):
    @pytest.fixture
    def verifier(self, onnx_verifier: CrossEncoderVerifier) -> Verifier:
        return onnx_verifier


class TestOnnxSideBySide(TinyModelContract):
    """Several batches in parallel."""

    @pytest.fixture
    def verifier(self, exported: Path) -> Verifier:
        return CrossEncoderVerifier.from_name(str(exported), backend="onnx", threads=3, batch_size=1)


def test_onnx_runs_batches_in_parallel(exported: Path) -> None:
    runtime = OnnxRuntime.from_folder(exported, threads=3)
    together, inner = threading.Barrier(3, timeout=30), runtime._score_batch

    def one(pairs: Sequence[tuple[str, str]]) -> FloatArray:
        together.wait()
        return inner(pairs)

    passages = ["the moon", "the harbour", "bread"]
    alone = [inner([("what orbits the earth", passage)]).item() for passage in passages]
    runtime._score_batch = one  # type: ignore[method-assign]
    verifier = CrossEncoderVerifier(runtime, name="three", batch_size=1)
    assert verifier.raw_scores("what orbits the earth", passages).tolist() == alone


class TestCosineOfMiniLM(VerifierContract):
    long_words = 300

    @pytest.fixture
    def verifier(self, bundled: SentenceTransformerEmbedder) -> Verifier:
        return CosineVerifier.for_minilm(bundled)


class TestCosineOfWords(VerifierContract):
    detects_relevance = False
    rejects_long_queries = False

    @pytest.fixture
    def verifier(self) -> Verifier:
        return CosineVerifier(WordEmbedder(), PlattCalibration())


class TestOverlap(VerifierContract):
    rejects_long_queries = False

    @pytest.fixture
    def verifier(self) -> Verifier:
        return OverlapVerifier()


class ScriptedRuntime:
    """A runtime that computes logits by a function and records its batches."""

    def __init__(self, splitter: TextSplitter, score: Any, window: int = LENGTH) -> None:
        self.splitter, self.window, self.score, self.batches = splitter, window, score, []

    def logits(self, batches: Sequence[Sequence[tuple[str, str]]]) -> list[FloatArray]:
        self.batches += [[passage for _, passage in pairs] for pairs in batches]
        return [np.array([self.score(*pair) for pair in pairs], dtype=np.float32) for pairs in batches]


@pytest.fixture
def splitter(folder: Path) -> TextSplitter:
    return TextSplitter.from_folder(folder)


class TestCrossEncoder:
    def test_raw_scores_equal_predict_logits(self, folder: Path, torch_verifier: CrossEncoderVerifier) -> None:
        import torch
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(str(folder), device="cpu")
        short = [(QUERY, "the moon"), (QUERY, "a cat is the bread ."), (QUERY, "earth")]
        plain = model.predict(short, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        raw = torch_verifier.raw_scores(QUERY, [passage for _, passage in short])
        np.testing.assert_allclose(raw, plain, atol=1e-4)
        probabilities = model.predict(short, show_progress_bar=False)
        np.testing.assert_allclose(torch_verifier.score(QUERY, [p for _, p in short]), probabilities, atol=1e-4)

    def test_onnx_scores_equal_torch_scores(
        self, torch_verifier: CrossEncoderVerifier, onnx_verifier: CrossEncoderVerifier
    ) -> None:
        passages = [*PASSAGES, "harbour cat " * 60, "", "Ünïcödé 日本 & <b>", "a"]
        ours, theirs = (v.raw_scores(QUERY, passages) for v in (onnx_verifier, torch_verifier))
        assert np.ptp(theirs) > 0.01
        np.testing.assert_allclose(ours, theirs, atol=1e-4)

    def test_long_passage_scores_as_its_best_piece(self, splitter: TextSplitter) -> None:
        runtime = ScriptedRuntime(splitter, lambda _, passage: 5.0 if "moon" in passage else -1.0)
        verifier = CrossEncoderVerifier(runtime, name="scripted")
        texts = [f"{'cat ' * n}moon {'cat ' * (100 - n)}" for n in (0, 30, 50, 100)]
        assert verifier.raw_scores("what orbits", ["cat " * 100, *texts]).tolist() == [-1.0, 5.0, 5.0, 5.0, 5.0]
        most = max(splitter.count(passage) for batch in runtime.batches for passage in batch)
        assert most + splitter.count("what orbits") + splitter.count_special(pair=True) <= LENGTH

    def test_pairs_are_batched_by_length(self, splitter: TextSplitter) -> None:
        runtime = ScriptedRuntime(splitter, lambda _, passage: len(passage.split()))
        verifier = CrossEncoderVerifier(runtime, name="scripted", batch_size=2)
        passages = ["cat " * n for n in (2, 5, 1, 4, 3)]
        assert verifier.raw_scores("moon", passages).tolist() == [2, 5, 1, 4, 3]
        assert [[len(p.split()) for p in batch] for batch in runtime.batches] == [[5, 4], [3, 2], [1]]

    def test_query_over_half_of_window_is_read_in_stretches(
        self, splitter: TextSplitter, caplog: pytest.LogCaptureFixture
    ) -> None:
        """24 of 48 tokens fit; of a longer query, the best stretch counts."""
        _said.clear()
        asks = lambda query, passage: 5.0 if {"moon", "earth"} <= {*query.split()} and "moon" in passage else -1.0  # noqa: E731
        runtime = ScriptedRuntime(splitter, asks)
        verifier = CrossEncoderVerifier(runtime, name="scripted")
        assert verifier.raw_scores("cat " * 22 + "moon earth", ["moon", "bread"]).tolist() == [5.0, -1.0]
        assert not caplog.records
        long = "cat " * 60 + "moon earth"
        assert verifier.raw_scores(long, ["moon", "bread", "moon " * 60]).tolist() == [5.0, -1.0, 5.0]
        assert verifier.raw_scores("cat " * 200 + "moon earth", ["moon"]).tolist() == [5.0]
        assert verifier.count_unread(long, ["moon"]) == [0]
        alone = ScriptedRuntime(splitter, lambda query, _: float(query == "what orbits the moon?"))
        pasted = "cat bread " * 30 + ". what orbits the moon?\nbread cat"
        assert CrossEncoderVerifier(alone, name="alone").raw_scores(pasted, ["moon"]).tolist() == [1.0]
        (warning,) = caplog.records
        assert "62 tokens exceeds the 24 that scripted" in warning.getMessage()
        with pytest.raises(QueryError, match=r"4097 tokens, but scripted reads at most 4096"):
            verifier.raw_scores("moon " * 4_097, ["cat"])

    def test_of_a_very_long_passage_the_likeliest_pieces_are_read(self, splitter: TextSplitter) -> None:
        runtime = ScriptedRuntime(splitter, lambda _, passage: 5.0 if "moon orbits" in passage else -1.0)
        verifier = CrossEncoderVerifier(runtime, name="scripted")
        filler = "bread cat " * 2_000
        texts = [f"{filler} the moon orbits {filler}", filler, "cat"]
        assert verifier.raw_scores("what orbits the moon", texts).tolist() == [5.0, -1.0, -1.0]
        assert sum(len(batch) for batch in runtime.batches) == 2 * MOST_READINGS + 1
        unread = verifier.count_unread("what orbits the moon", texts)
        assert unread[0] > unread[1] > 100
        assert unread[2] == 0
        candidates = [Candidate(passage=Passage(id=str(n), text=t), origin="given") for n, t in enumerate(texts)]
        judged = score_candidates(Query(text="what orbits the moon"), candidates, VerifierScorer(verifier))
        assert [c.scores.get("unread_windows") for c in judged] == [unread[0], unread[1], None]

    def test_unread_pieces_are_counted_once_however_long_the_question(self, splitter: TextSplitter) -> None:
        runtime = ScriptedRuntime(splitter, lambda *_: 1.0)
        verifier = CrossEncoderVerifier(runtime, name="scripted")
        text, question = "bread cat " * 60, "what orbits the moon " * 30
        verifier.raw_scores(question, [text])
        (unread,) = verifier.count_unread(question, [text])
        longest = max(len(passage.split()) for batch in runtime.batches for passage in batch)
        assert 0 < unread < len(text.split()) / (longest / 2)

    def test_sixteen_pieces_are_all_read(self, splitter: TextSplitter) -> None:
        runtime = ScriptedRuntime(splitter, lambda *_: 1.0)
        verifier = CrossEncoderVerifier(runtime, name="scripted")
        room = LENGTH - splitter.count_special(pair=True) - splitter.count("moon")
        text = "cat " * (room + 15 * (room - int(0.25 * room)))
        verifier.raw_scores("moon", [text])
        assert sum(len(batch) for batch in runtime.batches) == MOST_READINGS
        assert verifier.count_unread("moon", [text]) == [0]

    def test_max_length_above_window_raises(self, folder: Path) -> None:
        assert CrossEncoderVerifier.from_name(str(folder), device="cpu", max_length=32).window == 32
        with pytest.raises(ConfigurationError, match=r"max_length must be between 8 and 48 .*got 49"):
            CrossEncoderVerifier.from_name(str(folder), device="cpu", max_length=49)

    def test_nan_scores_raise(self, splitter: TextSplitter) -> None:
        verifier = CrossEncoderVerifier(ScriptedRuntime(splitter, lambda *_: float("nan")), name="broken")
        with pytest.raises(ModelError, match="broken returned NaN or infinity for 2 of 2"):
            verifier.score("moon", ["a", "b"])

    def test_non_text_input_raises(self, torch_verifier: CrossEncoderVerifier) -> None:
        """A single text would be read letter by letter."""
        with pytest.raises(PassageError, match="in a list"):
            torch_verifier.score("moon", "text")
        with pytest.raises(QueryError, match="NoneType"):
            torch_verifier.score(None, ["text"])  # type: ignore[arg-type]

    def test_calibration_in_model_folder_is_used(self, exported: Path, tmp_path: Path) -> None:
        home = tmp_path / "model"
        shutil.copytree(exported, home)
        assert CrossEncoderVerifier.from_name(str(home), backend="onnx").calibration == PlattCalibration()
        stored, given = PlattCalibration(slope=2.0, intercept=1.0, fitted_on="x", pairs=30), PlattCalibration(slope=3.0)
        (home / "calibration.json").write_text(json.dumps(stored.to_dict()))
        assert CrossEncoderVerifier.from_name(str(home), backend="onnx").calibration == stored
        assert CrossEncoderVerifier.from_name(str(home), backend="onnx", calibration=given).calibration == given
        written = {"verifier": "x", "threshold": 0.4, "calibration": stored.to_dict()}
        (home / "calibration.json").write_text(json.dumps(written))
        assert CrossEncoderVerifier.from_name(str(home), backend="onnx").calibration == stored
        for bad in ('{"method": "magic"}', '{"calibration": {"method": "magic"}}', '{"calibration": 3}'):
            (home / "calibration.json").write_text(bad)
            with pytest.raises(CalibrationError, match=r"calibration.json can't be used .*meve calibrate"):
                CrossEncoderVerifier.from_name(str(home), backend="onnx")

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"backend": "tpu"}, "backend must be one of torch, onnx, got 'tpu'"),
            ({"backend": "onnx", "device": "mps"}, "'cpu', 'cuda' or 'cuda:N' for ONNX Runtime, got 'mps'"),
            ({"threads": 2}, "set_num_threads"),
            ({"backend": "onnx", "threads": 0}, "threads must be at least 1, got 0"),
            ({"batch_size": 0, "backend": "onnx"}, "batch_size must be at least 1, got 0"),
        ],
    )
    def test_unsupported_backend_options_raise(self, exported: Path, options: Any, says: str) -> None:
        with pytest.raises(ConfigurationError, match=says):
            CrossEncoderVerifier.from_name(str(exported), **options)


@pytest.mark.parametrize("backend", ["torch", "onnx"])
class TestBrokenModels:
    @pytest.fixture
    def home(self, backend: Any, exported: Path, folder: Path, tmp_path: Path) -> Path:
        return shutil.copytree(exported if backend == "onnx" else folder, tmp_path / "model")

    def test_missing_folder_raises(self, backend: Any) -> None:
        with pytest.raises(ModelNotFoundError, match=r"'no/such-model'.*cosine"):
            CrossEncoderVerifier.from_name("no/such-model", backend=backend, local_files_only=True)

    def test_missing_tokenizer_raises(self, backend: Any, home: Path) -> None:
        """transformers would create an empty tokenizer."""
        for file in ("tokenizer.json", "vocab.txt"):
            (home / file).unlink(missing_ok=True)
        with pytest.raises(ModelNotFoundError, match="no tokenizer"):
            CrossEncoderVerifier.from_name(str(home), backend=backend)

    @pytest.mark.parametrize(("labels", "kind", "says"), [(3, "classifier", "3 labels"), (1, "encoder", "BertModel")])
    def test_model_without_single_score_raises(
        self, backend: Any, labels: int, kind: str, says: str, exported: Path, tmp_path: Path
    ) -> None:
        """transformers would fill a missing head at random."""
        home = save_tiny_model(tmp_path / "model", labels=labels, kind=kind)
        shutil.copytree(exported / "onnx", home / "onnx")
        with pytest.raises(ModelError, match=says):
            CrossEncoderVerifier.from_name(str(home), backend=backend)

    def test_truncated_weights_raise(self, backend: Any, home: Path) -> None:
        file = home / ("onnx/model.onnx" if backend == "onnx" else "model.safetensors")
        file.write_bytes(file.read_bytes()[:500])
        with pytest.raises(ModelError, match="loading"):
            CrossEncoderVerifier.from_name(str(home), backend=backend)

    def test_missing_config_raises(self, backend: Any, home: Path) -> None:
        (home / "config.json").unlink()
        with pytest.raises(ModelError):
            CrossEncoderVerifier.from_name(str(home), backend=backend)


def test_missing_torch_error_names_pip_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[models\]'"):
        CrossEncoderVerifier.from_name(str(folder))


class TestOnnxFiles:
    def test_missing_graph_error_names_next_step(self, folder: Path) -> None:
        with pytest.raises(ModelNotFoundError, match=r"onnx/model\.onnx.*export_onnx"):
            CrossEncoderVerifier.from_name(str(folder), backend="onnx")

    def test_graph_at_top_of_folder_is_found(self, exported: Path, tmp_path: Path) -> None:
        home = tmp_path / "model"
        shutil.copytree(exported, home)
        (home / "onnx" / "model.onnx").rename(home / "model.onnx")
        assert CrossEncoderVerifier.from_name(str(home), backend="onnx").raw_scores("moon", ["cat"]).shape == (1,)

    def test_graph_with_different_scores_is_deleted(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("meve.components.verifiers._onnx_export.TOLERANCE", -1.0)
        with pytest.raises(ModelError, match="differs from the model"):
            export_onnx(folder, tmp_path / "out")
        assert not list((tmp_path / "out" / "onnx").iterdir())

    def test_exporting_several_labels_raises(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="3 labels"):
            export_onnx(save_tiny_model(tmp_path / "three", labels=3), tmp_path / "out")


class TestCosine:
    def test_shipped_cosine_calibration_is_plausible(self) -> None:
        calibration = load_shipped_calibration()
        low, middle, high = calibration.apply(np.array([0.1, 0.5, 0.9], dtype=np.float32))
        assert low < 0.05 < middle < 0.5 < 0.9 < high
        data = calibration.to_dict()
        assert data["pairs"] > 10_000
        assert "negatives" in data["fitted_on"]
        assert data["error"] < 0.05

    def test_cosine_ranks_answer_first(self, bundled: SentenceTransformerEmbedder) -> None:
        passages = [
            "The Eiffel Tower is 330 metres tall.", "The Louvre is a museum in Paris.", "Bread is made from flour.",
            "Mount Everest is 8,849 metres high.", "Cats sleep most of the day.", "Python is a language.",
            "Rain fell all week.", "The Seine flows through Paris.", "Gustave Eiffel was an engineer.", "A red car.",
        ]  # fmt: skip
        scores = CosineVerifier.for_minilm(bundled).score("How tall is the Eiffel Tower?", passages)
        assert int(np.argmax(scores)) == 0
        assert scores[0] > 0.5
        assert scores[[2, 4, 5, 6, 9]].max() < 0.05

    def test_cosine_accepts_vectors(self, bundled: SentenceTransformerEmbedder) -> None:
        verifier = CosineVerifier.for_minilm(bundled)
        assert isinstance(verifier, VectorVerifier)
        assert verifier.embedder is bundled
        with pytest.raises(VectorError, match=r"\(3,\).*\(2, 4\)"):
            verifier.score_vectors(np.zeros(3, np.float32), np.zeros((2, 4), np.float32))

    def test_cosine_ignores_vector_length(self) -> None:
        verifier = CosineVerifier(WordEmbedder(), IsotonicCalibration(raw=(0.0, 1.0), probability=(0.0, 1.0)))
        query, passages = np.array([3.0, 0.0], np.float32), np.array([[5.0, 0.0], [3.0, 4.0], [0, 0]], np.float32)
        np.testing.assert_allclose(verifier.score_vectors(query, passages), [1.0, 0.6, 0.0], atol=1e-6)

    def test_cosine_without_calibration_raises(self) -> None:
        with pytest.raises(ConfigurationError, match=r"words-by-initial.*cross-encoder.*fit_calibration"):
            resolve_verifier("cosine", WordEmbedder())


def test_names_resolve_to_verifiers(bundled: SentenceTransformerEmbedder, folder: Path) -> None:
    assert resolve_verifier(None, bundled).name == resolve_verifier("meve-verifier-1", bundled).name == SHIPPED_VERIFIER
    assert resolve_verifier("cosine", bundled).name == "cosine"
    by_path = resolve_verifier(str(folder), bundled)
    assert by_path.name == str(folder)
    own = OverlapVerifier()
    assert resolve_verifier(own, bundled) is own


@pytest.mark.parametrize(
    ("given", "says"),
    [(SimpleNamespace(name="x", score=0), "lacks calibration, raw_scores, with_calibration"),
     (OverlapVerifier, "is a class"), ("", "empty"), (3, "lacks name"), ("Cosin", "did you mean .cosine.")],
)  # fmt: skip
def test_resolving_a_non_verifier_raises(given: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        resolve_verifier(given, WordEmbedder())  # type: ignore[arg-type]


def test_folder_with_only_a_graph_runs_on_onnx(exported: Path, folder: Path) -> None:
    resolved = resolve_verifier(str(exported), WordEmbedder())
    on_torch = resolve_verifier(str(folder), WordEmbedder())
    passages = ["red moon", "a green sun and a red moon"]
    assert np.allclose(resolved.score("red", passages), on_torch.score("red", passages), atol=1e-4)
