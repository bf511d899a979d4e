import json
import re
import shutil

import numpy as np
import pytest

from meve import Retriever
from meve.cli._labelled_pairs import read_pairs
from meve.components.evidence import PLAIN_SIGMOID
from meve.components.verifiers._torch_runtime import TorchRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import CalibrationError, IngestError
from meve.retrieval._snapshot import read_manifest
from tests.runtimes import WordCountingRuntime


class SharedWordRuntime(WordCountingRuntime):
    """A runtime whose logit is the number of words shared by query and passage."""

    batch_size = 4

    def logits(self, batches):
        return [self.one(pairs) for pairs in batches]

    def one(self, pairs):
        words = [[set(re.findall(r"\w+", text)) for text in pair] for pair in pairs]
        return np.array([len(query & passage) - 1.5 for query, passage in words], dtype=np.float32)


def test_calibration_and_threshold_are_saved_in_the_index(meve, index, pairs, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    before = read_manifest(folder)
    result = meve("calibrate", pairs, "--index", folder, "--target-recall", 0.9)
    assert result.exit_code == 0, result.stderr
    assert "line 71: not JSON" in result.stderr
    assert "line 72: 'passage' must be text, got None" in result.stderr
    assert "calibration on 70 pairs, 16 of them relevant" in " ".join(result.stdout.split())
    assert "only 16 of the 70 pairs are relevant" in " ".join(result.stderr.split())
    after = read_manifest(folder)
    assert after["verifier"] == before["verifier"]
    assert before["evidence"] is None
    told = json.loads(meve("info", index, "--json").stdout)["evidence"]
    assert told == {"name": "meve-evidence-1", "calibration": PLAIN_SIGMOID.to_dict()}, "as in the traces"
    assert after["evidence"]["calibration"]["pairs"] == 70
    assert after["config"]["threshold"] != before["config"]["threshold"]
    assert after["passages"] == before["passages"]
    assert "evidence.calibration" in meve("info", folder).stdout
    assert json.loads(meve("info", folder, "--json").stdout)["sufficiency"]["estimator"] == "meve-sufficiency-2"
    Retriever.load(folder, verifier="cosine").save(folder)
    assert json.loads(meve("info", folder, "--json").stdout)["evidence"] is None, "another verifier judges alone"


def test_calibration_without_index_is_saved_in_a_file(meve, pairs, tmp_path):
    to = tmp_path / "out.json"
    result = meve("calibrate", pairs, "--verifier", "cosine", "--to", to, "--method", "platt")
    assert result.exit_code == 0, result.stderr
    data = json.loads(to.read_text())
    assert data["calibration"]["method"] == "platt"
    assert 0 < data["threshold"] < 1


@pytest.mark.parametrize("options", [[], ["--to"]])
def test_model_loads_the_calibration_in_its_folder(meve, pairs, tmp_path, monkeypatch, options):
    pytest.importorskip("sentence_transformers")
    model, given = tmp_path / "model", tmp_path / "given.json"
    model.mkdir()
    monkeypatch.setattr(TorchRuntime, "from_name", lambda *_, **__: SharedWordRuntime())
    result = meve("calibrate", pairs, "--verifier", model, *(x for o in options for x in (o, given)))
    assert result.exit_code == 0, result.stderr
    file = given if options else model / "calibration.json"
    assert f"saved: {file}" in result.stdout
    if options:
        assert not (model / "calibration.json").exists()
        file.rename(model / "calibration.json")
    read = CrossEncoderVerifier.from_name(str(model)).calibration
    assert (read.pairs, read.to_dict()) == (70, json.loads((model / "calibration.json").read_text())["calibration"])
    assert meve("calibrate", pairs, "--verifier", model).exit_code == 0  # also where one is there


@pytest.mark.parametrize("arguments", [[], ["--index", "a", "--to", "b"], ["--verifier", "cosine"], ["--to", "f"]])
def test_unclear_destination_is_rejected(meve, pairs, arguments):
    assert meve("calibrate", pairs, *arguments).exit_code == 2


def test_unreachable_target_leaves_index_unchanged(meve, index, pairs):
    before = read_manifest(index)
    result = meve("calibrate", pairs, "--index", index, "--target-precision", 1.5)
    assert (result.exit_code, read_manifest(index)) == (1, before)
    assert result.stderr.splitlines()[-1].startswith("error: precision must be above 0 and at most 1, got 1.5")


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ('{"query": "q", "passage": "p"}', "line 1: 'relevant' or 'label' is missing"),
        ('{"query": "q", "passage": "p", "label": 2}', "line 1: 'label' must be true, false, 1 or 0, got 2"),
        (
            '{"query": "q", "passage": "p", "relevant": "no"}',
            "line 1: 'relevant' must be true, false, 1 or 0, got 'no'",
        ),
        ('{"query": " ", "passage": "p", "label": 1}', "line 1: 'query' must be text, got ' '"),
        ("[]", "line 1: expected a JSON object, got list"),
        ("", "the file is empty"),
    ],
)
def test_file_without_pairs_is_rejected_with_the_first_reason(tmp_path, line, warning):
    path = tmp_path / "pairs.jsonl"
    path.write_text(line)
    with pytest.raises(CalibrationError) as caught:
        read_pairs(path)
    assert warning in str(caught.value)
    assert '{"query": …, "passage": …, "relevant": …}' in str(caught.value)


def test_unreadable_file_of_pairs_is_rejected(tmp_path):
    with pytest.raises(IngestError, match=r"missing.jsonl can't be read: there is no such file"):
        read_pairs(tmp_path / "missing.jsonl")
