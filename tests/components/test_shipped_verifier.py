"""Test the bundled verifier."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from meve import Retriever, load_verifier
from meve.components._shipped_models import find_fitted_models
from meve.components.evidence import INPUTS, INTERCEPT
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers import _shipped as shipped
from meve.components.verifiers._shipped import (
    VERIFIER_FOLDER,
    load_shipped_verifier,
    load_shipped_verifier_in_torch,
)
from meve.errors import CalibrationError, ModelError
from meve.ports import SentenceVerifier, Verifier
from meve.testing.verifier_contract import VerifierContract

TALL = "How tall is the Eiffel Tower?"
PASSAGES = [
    "The Louvre is a museum in Paris.", "The Eiffel Tower is 330 metres tall.", "Bread is made from flour.",
    "Mount Everest is 8,849 metres high.", "Cats sleep most of the day.", "Rain fell all week. " * 40,
]  # fmt: skip


RULES = (
    "The boathouse stands at the end of Mill Lane, behind the old sawmill. Lights are on until ten. Each outing is "
    "entered in the logbook before the start. Fees are collected on the third of each month by direct debit. Life "
    "jackets are compulsory from November to March. Guests may row three times before they join."
)


@pytest.fixture(scope="module")
def ours() -> Verifier:
    return load_verifier()


@pytest.fixture(scope="module")
def in_torch() -> Verifier:
    return load_shipped_verifier_in_torch("cpu")


class TestShipped(VerifierContract):
    long_words = 1_000

    @pytest.fixture
    def verifier(self, ours: Verifier) -> Verifier:
        return ours


def test_shipped_verifier_is_complete_within_25_megabytes() -> None:
    files = [file for file in VERIFIER_FOLDER.rglob("*") if file.is_file()]
    assert {str(file.relative_to(VERIFIER_FOLDER)) for file in files} == {
        "onnx/model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json", "calibration.json",
        "sufficiency.json", "README.md", "words/evidence.json", "words/prior.json", "words/README.md",
        "minilm/evidence.json", "minilm/sufficiency.json", "minilm/prior.json", "minilm/README.md",
    }  # fmt: skip
    assert sum(file.stat().st_size for file in files) <= 25_000_000


def test_default_retrieval_loads_no_torch_and_prints_nothing() -> None:
    code = (
        "import sys\nfrom meve import Retriever\n"
        "context = Retriever.from_texts(['The sky is blue.', 'Bread is baked.']).retrieve('What colour is the sky?')\n"
        "print(context.trace.embedder, context.trace.verifier, [m for m in ('torch', 'transformers', "
        "'sentence_transformers', 'sklearn') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (process.stdout.strip(), process.stderr) == (f"meve-minilm-1 {SHIPPED_VERIFIER} []", "")


def test_score_is_independent_of_batch() -> None:
    alone = [load_shipped_verifier().raw_scores(TALL, [passage]).item() for passage in PASSAGES]
    assert load_shipped_verifier().raw_scores(TALL, PASSAGES).tolist() == alone
    assert load_shipped_verifier(threads=1).raw_scores(TALL, PASSAGES[::-1]).tolist() == alone[::-1]


def test_answering_passage_outscores_similar_passages(ours: Verifier) -> None:
    scores = ours.score(TALL, PASSAGES)
    assert scores.dtype == np.float32
    assert int(np.argmax(scores)) == 1
    assert scores[1] > 0.5 > np.delete(scores, 1).max()


def test_shipped_probabilities_are_calibrated(ours: Verifier) -> None:
    data = ours.calibration.to_dict()
    assert data["pairs"] > 1_000
    assert data["fitted_on"]
    assert data["error"] <= 0.05


def test_weights_are_loaded_once_per_process() -> None:
    assert load_shipped_verifier()._runtime is load_shipped_verifier()._runtime


@pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|sentence_transformers)")
class TestInTorch:
    """The weights on a torch device, as on a GPU."""

    QUESTIONS = (TALL, "When do tomatoes need water?", "Who wrote Hamlet?", "What does bread consist of?")
    TEXTS = (*PASSAGES[:3], "Hamlet is a tragedy by William Shakespeare.", "Water tomatoes in the morning. " * 30)

    def test_scores_differ_by_rounding_only(self, ours: Verifier, in_torch: Verifier) -> None:
        """The graph rounds activations to 8 bits; in 400 difficult pairs the largest difference was 0.05."""
        gaps = [np.abs(in_torch.score(q, self.TEXTS) - ours.score(q, self.TEXTS)) for q in self.QUESTIONS]
        assert np.max(gaps) <= 0.05
        assert np.mean(gaps) <= 0.005
        assert in_torch.window == ours.window  # type: ignore[attr-defined]

    def test_name_calibration_and_fitted_models_are_those_that_ship(self, ours: Verifier, in_torch: Verifier) -> None:
        assert (in_torch.name, in_torch.calibration) == (SHIPPED_VERIFIER, ours.calibration)
        fitted = find_fitted_models(in_torch.name, in_torch.calibration.to_dict(), "meve-minilm-1")
        assert None not in (fitted.evidence, fitted.prior)

    def test_sentences_are_rated_in_the_same_reading(self, ours: Verifier, in_torch: Verifier) -> None:
        assert isinstance(ours, SentenceVerifier)
        assert isinstance(in_torch, SentenceVerifier)
        text = "The keys are with Bettina. The tower is 330 metres tall. " * 2
        spans = [(0, 26), (27, 56), (57, 83), (84, 113)]
        cut = [(0, 16)]
        mine, graph = (v.score_sentences(TALL, [text, "Cats sleep a lot."], [spans, cut]) for v in (in_torch, ours))
        assert [len(scores) for scores in mine] == [4, 1]
        np.testing.assert_allclose(np.concatenate(mine), np.concatenate(graph), atol=0.05)
        assert mine[0][1] > mine[0][0] + 0.1

    def test_retrievals_give_the_same_verdicts_and_sentences(self, in_torch: Verifier) -> None:
        """The cosine of a sentence counts in both, and packing by sentences reads no passage again."""
        texts = [RULES, *PASSAGES]
        on_graph, mine = Retriever.from_texts(texts), Retriever.from_texts(texts, verifier=in_torch)
        for question in ("In which months must I wear a life jacket?", "On which day is the fee debited?", TALL):
            expected, context = (r.retrieve(question, exact=True) for r in (on_graph, mine))
            scores = [{c.id: c.scores["verifier"] for c in found.trace.candidates} for found in (expected, context)]
            assert scores[1] == pytest.approx(scores[0], abs=0.05)
            assert [p.verified for p in context.passages] == [p.verified for p in expected.passages]
            packed = [r.retrieve(question, packing="sentences").text for r in (on_graph, mine)]
            assert packed[0] == packed[1]

    def test_weights_are_loaded_once_per_device(self, in_torch: Verifier) -> None:
        assert load_shipped_verifier_in_torch("cpu")._runtime is in_torch._runtime  # type: ignore[attr-defined]

    def test_retriever_takes_it(self, in_torch: Verifier) -> None:
        context = Retriever.from_texts(PASSAGES, verifier=in_torch).retrieve(TALL)
        assert context.trace.verifier == SHIPPED_VERIFIER
        assert context.passages[0].passage.text == PASSAGES[1]

    @pytest.mark.parametrize("device", [None, "cpu"])
    def test_cpu_runs_the_graph(self, device: str | None, ours: Verifier) -> None:
        assert load_verifier(device=device)._runtime is ours._runtime  # type: ignore[attr-defined]
        assert load_verifier(SHIPPED_VERIFIER, device=device)._runtime is ours._runtime  # type: ignore[attr-defined]


def test_saved_index_names_shipped_verifier(tmp_path: Path) -> None:
    Retriever.from_texts(["The sky is blue."]).save(tmp_path / "index")
    again = Retriever.load(tmp_path / "index")
    assert (again.verifier.name, again.embedder.name) == (SHIPPED_VERIFIER, "meve-minilm-1")
    assert again.verifier.calibration == load_verifier().calibration


@pytest.mark.parametrize(
    ("file", "error"),
    [("onnx/model.onnx", ModelError), ("tokenizer.json", ModelError), ("calibration.json", CalibrationError)],
)  # fmt: skip
def test_damaged_installation_raises(
    file: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "model"
    shutil.copytree(VERIFIER_FOLDER, home)
    (home / file).unlink()
    monkeypatch.setattr(shipped, "VERIFIER_FOLDER", home)
    with pytest.raises(error, match=Path(file).name):
        load_shipped_verifier()


def test_model_card_matches_calibration() -> None:
    card = (VERIFIER_FOLDER / "README.md").read_text("utf-8")
    stored = {
        name: json.loads((VERIFIER_FOLDER / f"{name}.json").read_text("utf-8"))
        for name in ("calibration", "tokenizer_config", "config")
    }
    fitted = stored["calibration"]["calibration"]
    assert f"calibration on {fitted['pairs']:,} pairs" in card
    assert f"{fitted['error']:.3f})" in card
    assert f"{stored['tokenizer_config']['model_max_length']} tokens at once" in card
    assert f"{stored['config']['num_hidden_layers']} layers of {stored['config']['hidden_size']}" in card
    size = sum(f.stat().st_size for f in VERIFIER_FOLDER.rglob("*") if f.is_file() and f.name != "README.md")
    assert float(re.search(r"([\d.]+) MB", card)[1]) == pytest.approx(size / 1e6, abs=0.06)
    assert "license: apache-2.0" in card


@pytest.mark.parametrize("folder", ["minilm", "words"])
def test_card_of_the_evidence_model_matches_its_weights(folder: str) -> None:
    card = " ".join((VERIFIER_FOLDER / folder / "README.md").read_text("utf-8").split())
    stored = json.loads((VERIFIER_FOLDER / folder / "evidence.json").read_text("utf-8"))
    for weights in stored["fits"].values():
        assert f"| {' | '.join(f'{weights.get(name, 0.0):.2f}' for name in (*INPUTS, INTERCEPT))} |" in card
    assert all(
        name in card for name in stored["fitted_on"].removeprefix("candidates of held-out questions of ").split(", ")
    )
    assert stored["name"] in card
    assert (stored["embedder"] or "any other embedder") in card
    assert "license: apache-2.0" in card


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_forked_process_can_score() -> None:
    """The child of a fork has the model but none of its parent's threads."""
    code = (
        "import os, signal\nfrom meve.components.verifiers._shipped import load_shipped_verifier\n"
        "judge = load_shipped_verifier(threads=2)\n"
        "judge.raw_scores('q', ['a', 'b', 'c'])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"  # a child that hangs ends
        "    os._exit(len(judge.raw_scores('r', ['a', 'b', 'c'])) != 3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert process.stdout.strip() == "0", process.stderr


def test_scoring_writes_no_files_and_sends_no_telemetry(tmp_path):
    """ONNX Runtime's official builds send events and store a machine id unless disabled."""
    code = "from meve import load_verifier; load_verifier().score('Is it warm?', ['It is warm.'])"
    hidden = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED", "XDG_CACHE_HOME", "CI")
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-B", "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []
