"""The verifier that ships: the contract, its size, its independence of torch, of neighbours and of order."""

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
from meve.components.verifiers import SHIPPED
from meve.components.verifiers import _shipped as shipped
from meve.components.verifiers._shipped import shipped_folder, shipped_verifier
from meve.errors import CalibrationError, ModelError
from meve.ports import Verifier
from meve.testing.verifier_contract import VerifierContract

TALL = "How tall is the Eiffel Tower?"
PASSAGES = [
    "The Louvre is a museum in Paris.", "The Eiffel Tower is 330 metres tall.", "Bread is made from flour.",
    "Mount Everest is 8,849 metres high.", "Cats sleep most of the day.", "Rain fell all week. " * 40,
]  # fmt: skip


@pytest.fixture(scope="module")
def ours() -> Verifier:
    return load_verifier()


class TestShipped(VerifierContract):
    long_words = 1_000

    @pytest.fixture
    def verifier(self, ours: Verifier) -> Verifier:
        return ours


def test_it_comes_in_25_megabytes_with_all_that_it_needs() -> None:
    """Graph, tokenizer, configuration, calibration, card, and what was fitted with it: nothing more."""
    files = {
        str(file.relative_to(shipped_folder())): file.stat().st_size
        for file in shipped_folder().rglob("*")
        if file.is_file()
    }
    model = {
        "onnx/model.onnx",
        "tokenizer.json",
        "config.json",
        "calibration.json",
        "README.md",
        "tokenizer_config.json",
    }
    assert set(files) == model | {"sufficiency.json", "prior.json"}
    assert sum(files.values()) <= 25_000_000


def test_retrieval_with_nothing_named_loads_no_torch() -> None:
    """The models that ship run on ONNX Runtime and NumPy."""
    code = (
        "import sys\nfrom meve import Retriever\n"
        "context = Retriever.from_texts(['The sky is blue.', 'Bread is baked.']).retrieve('What colour is the sky?')\n"
        "print(context.trace.embedder, context.trace.verifier, [m for m in ('torch', 'transformers', "
        "'sentence_transformers', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"meve-static-1 {SHIPPED} []", done.stderr


def test_a_pair_has_one_score_whatever_stands_beside_it() -> None:
    """To the bit: alone, among others, and in any order."""
    alone = [shipped_verifier().raw_scores(TALL, [passage]).item() for passage in PASSAGES]
    assert shipped_verifier().raw_scores(TALL, PASSAGES).tolist() == alone
    assert shipped_verifier(threads=1).raw_scores(TALL, PASSAGES[::-1]).tolist() == alone[::-1]


def test_it_tells_what_answers_from_what_is_near(ours: Verifier) -> None:
    """One float for each passage, in the order given; the answer alone is likely."""
    scores = ours.score(TALL, PASSAGES)
    assert scores.dtype == np.float32
    assert int(np.argmax(scores)) == 1
    assert scores[1] > 0.5 > np.delete(scores, 1).max()


def test_its_probabilities_are_fitted(ours: Verifier) -> None:
    """On pairs that its calibration names, with the error on those kept out of the fit."""
    data = ours.calibration.to_dict()
    assert data["pairs"] > 1_000
    assert data["fitted_on"]
    assert data["error"] <= 0.05


def test_a_process_holds_its_weights_once() -> None:
    """However often it is asked for."""
    assert shipped_verifier()._runtime is shipped_verifier()._runtime


def test_an_index_remembers_it(tmp_path: Path) -> None:
    """By its name, wherever the package lies."""
    Retriever.from_texts(["The sky is blue."]).save(tmp_path / "index")
    again = Retriever.load(tmp_path / "index")
    assert (again.verifier.name, again.embedder.name) == (SHIPPED, "meve-static-1")
    assert again.verifier.calibration == load_verifier().calibration


@pytest.mark.parametrize(
    ("file", "error"),
    [("onnx/model.onnx", ModelError), ("tokenizer.json", ModelError), ("calibration.json", CalibrationError)],
)  # fmt: skip
def test_a_damaged_installation_is_an_error(
    file: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stands in for it, and the file is named."""
    home = tmp_path / "model"
    shutil.copytree(shipped_folder(), home)
    (home / file).unlink()
    monkeypatch.setattr(shipped, "shipped_folder", lambda: home)
    with pytest.raises(error, match=Path(file).name):
        shipped_verifier()


def test_the_card_states_what_the_calibration_says() -> None:
    """Model card and calibration are of one model."""
    card = (shipped_folder() / "README.md").read_text("utf-8")
    stored = {
        name: json.loads((shipped_folder() / f"{name}.json").read_text("utf-8"))
        for name in ("calibration", "tokenizer_config", "config")
    }
    fitted = stored["calibration"]["calibration"]
    assert f"calibration on {fitted['pairs']:,} pairs" in card
    assert f"{fitted['error']:.3f})" in card
    assert f"{stored['tokenizer_config']['model_max_length']} tokens at once" in card
    assert f"{stored['config']['num_hidden_layers']} layers of {stored['config']['hidden_size']}" in card
    size = sum(f.stat().st_size for f in shipped_folder().rglob("*") if f.is_file() and f.name != "README.md")
    assert float(re.search(r"([\d.]+) MB", card)[1]) == pytest.approx(size / 1e6, abs=0.06)
    assert "license: apache-2.0" in card


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_forked_process_scores_too() -> None:
    """Servers load a model and fork: the child has the model, and none of its parent's threads."""
    code = (
        "import os, signal\nfrom meve.components.verifiers._shipped import shipped_verifier\n"
        "judge = shipped_verifier(threads=2)\n"
        "judge.raw_scores('q', ['a', 'b', 'c'])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"  # a child that hangs ends
        "    os._exit(len(judge.raw_scores('r', ['a', 'b', 'c'])) != 3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


def test_reading_leaves_nothing_behind_and_tells_nobody(tmp_path):
    """ONNX Runtime's official builds send events, and name the machine in the user's cache, unless told not to."""
    code = "from meve import load_verifier; load_verifier().score('Is it warm?', ['It is warm.'])"
    hidden = ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED", "XDG_CACHE_HOME", "CI")
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-B", "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []
