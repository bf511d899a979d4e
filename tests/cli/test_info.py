import json
import os
import subprocess
import sys
from importlib.metadata import version

from meve.calibration.probability_maps import PlattCalibration
from meve.pipeline.config import RetrieverConfig
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import OverlapVerifier


def test_info_prints_counts_models_sizes_and_settings(meve, index):
    shown = meve("info", index).stdout
    for words in ("passages", "embedder.name", "config.threshold", "bytes.total", "tokens.name"):
        assert words in shown
    data = json.loads(meve("info", index, "--json").stdout)
    assert (data["passages"], data["files"], data["dense"]) == (5, 3, {"kind": "flat"})
    assert data["bytes"]["total"] == sum(size for name, size in data["bytes"].items() if name != "total")


def test_info_prints_the_effective_sufficiency_threshold(meve, index, tmp_path):
    by = Retriever.load(index).retrieve("How do bees make honey?").trace.sufficiency
    sufficiency = json.loads(meve("info", index, "--json").stdout)["sufficiency"]
    assert sufficiency == {"estimator": by["estimator"], "threshold": by["threshold"]}
    assert f"sufficiency.threshold {by['threshold']:g}" in " ".join(meve("info", index).stdout.split())
    Retriever.load(index, config=RetrieverConfig(sufficiency_threshold=0.75)).save(tmp_path / "strict")
    assert json.loads(meve("info", tmp_path / "strict", "--json").stdout)["sufficiency"]["threshold"] == 0.75


def test_info_without_estimator_prints_none(meve, index, tmp_path):
    mine = Retriever.load(index, verifier=OverlapVerifier())
    assert mine.retrieve("How do bees make honey?").trace.sufficiency == {}
    mine.save(tmp_path / "mine")
    again = Retriever.load(index)
    other = again.verifier.with_calibration(PlattCalibration(slope=1.0, intercept=0.0))
    Retriever.load(index, verifier=other).save(tmp_path / "other")
    for name in ("mine", "other"):
        sufficiency = json.loads(meve("info", tmp_path / name, "--json").stdout)["sufficiency"]
        assert sufficiency["estimator"] == (None if name == "mine" else "meve-sufficiency-1")


def test_info_loads_no_model(index):
    code = (
        "import sys; from meve.cli.app import app; app(['info', sys.argv[1]], standalone_mode=False); "
        "sys.exit(','.join({'torch', 'transformers', 'sentence_transformers', 'faiss'} & set(sys.modules)) or 0)"
    )
    process = subprocess.run([sys.executable, "-c", code, str(index)], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")


def test_version_is_printed(meve):
    assert meve("--version").stdout == f"meve {version('meve')}\n"


def test_pipe_gets_no_colour_codes(index):
    for extra in ({}, {"NO_COLOR": "1", "FORCE_COLOR": ""}):
        command = [sys.executable, "-m", "meve", "info", str(index)]
        process = subprocess.run(command, capture_output=True, env={**os.environ, **extra})
        assert b"\x1b" not in process.stdout
        assert process.returncode == 0
