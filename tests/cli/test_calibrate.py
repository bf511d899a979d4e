import json
import re
import shutil

import numpy as np
import pytest

from meve.cli._labelled_pairs import read_pairs
from meve.components.verifiers._torch_runtime import TorchRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import CalibrationError, IngestError
from meve.retrieval._snapshot import read_manifest
from tests.runtimes import ByWords


class Shared(ByWords):
    """The logit is how many words query and passage share."""

    def logits(self, batches):
        return [self.one(pairs) for pairs in batches]

    def one(self, pairs):
        words = [[set(re.findall(r"\w+", text)) for text in pair] for pair in pairs]
        return np.array([len(query & passage) - 1.5 for query, passage in words], dtype=np.float32)


def test_an_index_keeps_its_new_calibration_and_threshold(meve, index, pairs, tmp_path):
    """Bad lines are named; the report is printed."""
    folder = shutil.copytree(index, tmp_path / "index")
    before = read_manifest(folder)
    result = meve("calibrate", pairs, "--index", folder, "--target-recall", 0.9)
    assert result.exit_code == 0, result.stderr
    assert "line 71: not JSON" in result.stderr
    assert "line 72: 'passage' is None: give text" in result.stderr
    assert "calibration on 70 pairs" in result.stdout
    after = read_manifest(folder)
    assert after["verifier"]["calibration"] != before["verifier"]["calibration"]
    assert after["verifier"]["calibration"]["pairs"] == 70
    assert after["config"]["threshold"] != before["config"]["threshold"]
    assert after["passages"] == before["passages"]
    assert "calibration" in meve("info", folder).stdout


def test_a_calibration_goes_into_a_file_without_an_index(meve, pairs, tmp_path):
    """With the threshold, and the verifier that it is of."""
    to = tmp_path / "out.json"
    result = meve("calibrate", pairs, "--verifier", "cosine", "--to", to, "--method", "platt")
    assert result.exit_code == 0, result.stderr
    data = json.loads(to.read_text())
    assert data["calibration"]["method"] == "platt"
    assert 0 < data["threshold"] < 1


@pytest.mark.parametrize("options", [[], ["--to"]])
def test_a_model_reads_the_calibration_that_was_saved_beside_it(meve, pairs, tmp_path, monkeypatch, options):
    """In its own folder, unless another file is named; the file says what threshold goes with it."""
    model, given = tmp_path / "model", tmp_path / "given.json"
    model.mkdir()
    monkeypatch.setattr(TorchRuntime, "from_name", lambda *_, **__: Shared())
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
def test_where_to_save_must_be_clear(meve, pairs, arguments):
    """Usage errors have exit status 2."""
    assert meve("calibrate", pairs, *arguments).exit_code == 2


def test_a_target_out_of_reach_leaves_the_index_as_it_was(meve, index, pairs):
    """The message names what can be reached."""
    before = read_manifest(index)
    result = meve("calibrate", pairs, "--index", index, "--target-precision", 1.5)
    assert (result.exit_code, read_manifest(index)) == (1, before)
    assert result.stderr.splitlines()[-1].startswith("error: precision is 1.5")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"query": "q", "passage": "p"}', "line 1: neither 'relevant' nor 'label' is given"),
        ('{"query": "q", "passage": "p", "label": 2}', "line 1: 'label' is 2: give true or false, or 1 or 0"),
        ('{"query": "q", "passage": "p", "relevant": "no"}', "line 1: 'relevant' is 'no'"),
        ('{"query": " ", "passage": "p", "label": 1}', "line 1: 'query' is ' ': give text"),
        ("[]", "line 1: a JSON object is wanted, not list"),
        ("", "it is empty"),
    ],
)
def test_a_file_without_a_pair_is_refused_with_the_first_reason(tmp_path, line, complaint):
    """The message shows what a row looks like."""
    path = tmp_path / "pairs.jsonl"
    path.write_text(line)
    with pytest.raises(CalibrationError) as caught:
        read_pairs(path)
    assert complaint in str(caught.value)
    assert '{"query": …, "passage": …, "relevant": …}' in str(caught.value)


def test_a_file_of_pairs_that_cannot_be_read_is_refused(tmp_path):
    """Named with its path."""
    with pytest.raises(IngestError, match=r"missing.jsonl can't be read: there is no such file"):
        read_pairs(tmp_path / "missing.jsonl")
