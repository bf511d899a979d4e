"""`meve train-verifier`: training, comparison, resuming and errors."""

import json

import pytest

from meve.testing.tiny_models import save_tiny_model

pytest.importorskip("accelerate")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WORDS = ("apple", "river", "stone", "cloud", "tiger", "lemon", "wagon", "piano")
OPTIONS = ("--epochs", 8, "--batch-size", 16, "--learning-rate", 0.003, "--max-length", 32)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("base") / "tiny", kind="encoder", words=WORDS)


@pytest.fixture
def queries(tmp_path):
    """Write queries that a tiny model can learn from one word, two others, and an invalid line."""
    rows = []
    for n, word in enumerate(15 * WORDS):
        for name in ("stone", "cloud", "piano"):
            query = f"what {'abcdefghijklmno'[n // 8]} is the {word}?"
            rows.append(
                {"query": query, "passage": f"the {word} is {' '.join(4 * [name])}", "relevant": name == "stone"}
            )
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), "{"]))
    return path


def test_command_trains_compares_and_resumes(meve, base, queries, tmp_path):
    command = ("train-verifier", queries, "--to", tmp_path / "mine", "--base", base, *OPTIONS)
    first = meve(*command)
    assert first.exit_code == 0, first.output
    assert "line 361: not JSON" in first.stderr
    assert "the new one" in first.stdout
    assert "meve-verifier-1" in first.stdout
    assert "better" in first.stdout + first.stderr or "worse" in first.stderr
    assert f"--verifier {tmp_path / 'mine'}" in first.stdout.replace("\n", " ")
    saved = json.loads((tmp_path / "mine" / "calibration.json").read_text())
    assert saved["calibration"]["fitted_on"] == "queries.jsonl"
    again = meve(*command)
    assert again.exit_code == 0, again.output
    assert again.stdout == first.stdout
    other = meve(*command, "--seed", 3)
    assert other.exit_code == 1
    assert "another" in other.stderr


def test_too_few_queries_are_rejected(meve, base, tmp_path):
    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(json.dumps({"query": f"q{n}", "passage": f"p{n}", "relevant": True}) for n in range(9)))
    result = meve("train-verifier", path, "--to", tmp_path / "mine", "--base", base)
    assert result.exit_code == 1
    assert "label 100 or more" in result.stderr
    assert not (tmp_path / "mine").exists()


def test_absent_base_is_rejected_by_name(meve, queries, tmp_path):
    result = meve(
        "train-verifier", queries, "--to", tmp_path / "mine", "--base", tmp_path / "nowhere", "--negatives", 0
    )
    assert result.exit_code == 1
    assert "nowhere" in result.stderr
