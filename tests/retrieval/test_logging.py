"""Test the log: what it says, and that it holds no text."""

import logging
import subprocess
import sys
import time

import pytest

from meve import Retriever
from meve.components.verifiers.http import HttpReranker
from meve.errors import MemoryLostWarning, StorageError
from meve.ingest import ingest
from meve.memory import GovernedMemory
from meve.memory._wrapper_support import tolerate_failures
from meve.pipeline import _log
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from tests.fake_components import make_components
from tests.rerank_server import serve_reranker

SECRET = "xylophone"


@pytest.fixture
def lines(caplog):
    """Return a function that returns the lines of a level, by the end of the logger's name."""
    caplog.set_level(logging.DEBUG, logger="meve")
    return lambda level: [r.getMessage() for r in caplog.records if r.levelno == level and r.name.startswith("meve")]


def test_result_fallback_and_what_was_left_out_are_information(lines):
    texts = [f"A {SECRET} is blue.", f"Grass, {SECRET}.", "The sea.", f"{SECRET} {SECRET} {SECRET}"]
    retriever = Retriever.from_texts(texts, **make_components(), fallback_floor=0.0, max_tokens=8)
    retriever.retrieve(f"blue {SECRET} in the sky of summer", min_verified=3)
    result, *more = lines(logging.INFO)
    assert "0 verified, of 4 candidates" in result
    assert "not sufficient" in result
    assert any(line.startswith("fallback: 0 candidates before, ") for line in more)
    assert any(line.startswith("left out: ") and "over_budget" in line for line in more)
    assert any("'p0000000'" in line for line in lines(logging.DEBUG))
    assert lines(logging.WARNING) == []


def test_no_level_holds_text_of_questions_passages_or_memories(lines, caplog, tmp_path):
    Retriever.from_texts([f"A {SECRET} is blue."], **make_components()).retrieve(f"blue {SECRET}", hops=2)
    with GovernedMemory.open(tmp_path / "m.db", embedder=WordEmbedder(), tokens=WordCounter()) as memory:
        memory.add(f"I play the {SECRET}.", user_id="alice")
        memory.search(f"Who plays the {SECRET}?", user_id="alice")
    with pytest.warns(MemoryLostWarning), tolerate_failures("warn", "recalling from memory"):
        raise StorageError(f"no place for {SECRET}")
    assert lines(logging.WARNING) == ["recalling from memory failed: StorageError"]
    assert SECRET not in caplog.text


def test_failed_requests_are_warnings_without_what_the_server_says(lines, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with serve_reranker() as server:
        server.answers = [503]
        HttpReranker(server.url, model="m").score("blue", [SECRET])
    assert lines(logging.WARNING) == ["rerank request 1 failed, next one in 0.5 s: status 503"]


def test_slow_phase_is_a_warning(lines, monkeypatch):
    class Slow(OverlapVerifier):
        def raw_scores(self, query, passages):
            time.sleep(0.05)
            return super().raw_scores(query, passages)

    monkeypatch.setattr(_log, "SLOW", 0.04)
    Retriever.from_texts(["The sky is blue."], **make_components(verifier=Slow())).retrieve("blue sky")
    assert [line.split(" took ")[0] for line in lines(logging.WARNING)] == ["phase verify"]


def test_log_is_silent_unless_configured():
    code = (
        "import meve\n"
        "from meve.pipeline import _log\n"
        "from meve.testing.fakes import *\n"
        "_log.SLOW = 0.0\n"
        "parts = dict(embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter())\n"
        "meve.Retriever.from_texts(['The sky is blue.'], **parts).retrieve('blue sky')\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_skipped_files_are_counted_and_named(lines, tmp_path):
    (tmp_path / "a.txt").write_text("Tomatoes want sun.")
    (tmp_path / "b.txt").write_bytes(b"\xff" + SECRET.encode())
    ingest(tmp_path, Retriever.empty(**make_components()))
    assert "files: 1 read, 0 unchanged, 0 removed, 1 skipped" in lines(logging.INFO)
    assert "skipped 'b.txt'" in lines(logging.DEBUG)
