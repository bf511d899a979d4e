import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from meve.cli import _render as render
from meve.cli._render import UNPRINTABLE, explain_unverified, format_verdict, print_text, print_trace
from meve.cli.demo import print_answer, print_summary
from meve.cli.language_reference import DemoQuestion
from meve.retrieval.retriever import Retriever
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

QUESTION = "How do bees make honey → and é 🐝?"


def run(*arguments, stdout=subprocess.PIPE, **environment):
    """Run the command in a process, to test its real streams."""
    command = [sys.executable, "-m", "meve.cli", *map(str, arguments)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **environment})


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "utf-16"])
def test_unencodable_text_is_escaped(index, encoding):
    process = run("ask", QUESTION, "--index", index, "--json", PYTHONIOENCODING=encoding)
    assert (process.returncode, process.stderr) == (0, b"")
    assert json.loads(process.stdout.decode(encoding))["query"] == QUESTION


def test_messages_are_written_in_any_encoding(index, tmp_path):
    process = run("info", shutil.copytree(index, tmp_path / "→ index"), PYTHONIOENCODING="cp1252:strict")
    assert (process.returncode, process.stderr) == (0, b"")
    assert b"\\u2192 index" in process.stdout
    (tmp_path / "→").mkdir()
    process = run("info", tmp_path / "→", PYTHONIOENCODING="cp1252:strict")
    assert process.returncode == 1
    assert b"error: there is no index at" in process.stderr
    assert b"\\u2192" in process.stderr


def test_non_utf8_path_is_escaped(tmp_path):
    process = run("info", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"), PYTHONIOENCODING="utf-8:strict")
    assert (process.returncode, b"Traceback" in process.stderr) == (1, False)
    assert b"\\udcff" in process.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_unwritable_output_is_an_error_in_one_line(index, options):
    with open("/dev/full", "w") as full:
        process = run("info", index, *options, stdout=full)
    assert (process.returncode, process.stderr) == (1, b"error: the output can't be written: No space left on device\n")


def test_closed_pipe_is_silent(index):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = run("info", index, stdout=writer)
    finally:
        os.close(writer)
    assert process.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="no such shell")
def test_closed_stdout_is_no_error(index):
    process = subprocess.run(
        ["sh", "-c", '"$0" -m meve.cli info "$1" >&-', sys.executable, str(index)], capture_output=True
    )
    assert (process.returncode, process.stderr) == (0, b"")


def test_terminal_gets_no_control_characters(capsys, monkeypatch):
    print_text("a\x1bb", "dim")
    assert capsys.readouterr().out == "a\x1bb\n\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_text("a\x9bb", "dim")
    assert UNPRINTABLE[0x9B] in capsys.readouterr().out


@pytest.fixture
def sky():
    """Return a retriever of a few colours, with components that load no model."""
    return Retriever.from_texts(
        ["sky is blue", "grass is green", "sun is yellow", "snow is white", "coal is black", "night is dark"],
        embedder=WordEmbedder(),
        verifier=OverlapVerifier(),
        tokens=WordCounter(),
    )


def test_verdict_counts_passages_and_explains_empty_context(sky):
    context = sky.retrieve("blue sky is", min_verified=1)
    assert format_verdict(context).startswith("1 passage, 1 verified · 3 of 512 tokens")
    too_large = sky.retrieve("blue sky is", min_verified=1, max_tokens=1)
    assert format_verdict(too_large).endswith("not sufficient: no verified passage fits into max_tokens=1")


def test_trace_limits_dropped_candidates(sky, capsys):
    context = sky.retrieve("blue sky is", min_verified=1)
    print_trace(context)
    assert capsys.readouterr().out.count("dropped by verify") == 5
    print_trace(context, most=2)
    shown = capsys.readouterr().out
    assert shown.count("dropped by verify") == 2
    assert "… 3 more" in shown


def test_unverified_text_is_explained_by_mode(sky):
    assert "mode standard_rag" in explain_unverified(sky.retrieve("blue", mode="standard_rag"))


def test_demo_marks_questions_without_context(sky, capsys):
    answered, other = (
        DemoQuestion(text="blue sky is", answerable=True),
        DemoQuestion(text="boiling water", answerable=False),
    )
    contexts = [sky.retrieve(answered.text, min_verified=1), sky.retrieve(other.text, fallback_k=0)]
    print_answer(1, answered, contexts[0])
    shown = capsys.readouterr().out
    assert "context for the prompt" in shown
    assert "sky is blue" in shown
    assert "No verified context" not in shown
    print_answer(2, other, contexts[1])
    shown = capsys.readouterr().out
    assert "context for the prompt" not in shown
    assert "No verified context: an application should say that it doesn't know. That is right" in shown
    print_summary([answered, other], contexts)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[-1] for row in rows if row[:1] in (["blue"], ["boiling"])] == ["yes", "no"]


def test_demo_names_unverified_passages_without_their_text(sky, capsys):
    context = sky.retrieve("blue sea", threshold=1, fallback_floor=0)
    assert context.passages
    print_answer(1, DemoQuestion(text="blue sea", answerable=False), context)
    shown = capsys.readouterr().out
    assert "passages that weren't verified (p0000000" in shown
    assert "sky is blue" not in shown


@pytest.mark.parametrize(("answerable", "message"), [(True, "That is wrong"), (False, "That is right")])
def test_demo_says_whether_abstention_is_right(sky, capsys, answerable, message):
    context = sky.retrieve("boiling nitrogen", threshold=1)
    print_answer(1, DemoQuestion(text="boiling nitrogen", answerable=answerable), context)
    assert message in " ".join(capsys.readouterr().out.split())


def test_tables_in_a_pipe_have_no_trailing_spaces(index):
    process = run("ask", QUESTION, "--index", index, "--trace")
    lines = process.stdout.decode().splitlines()
    assert any(line.startswith("phase ") for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []
    (head,) = (line for line in lines if line.startswith("rank"))
    assert head.split()[3:6] == ["verifier", "dense", "lexical"]


def test_progress_without_terminal_is_printed_in_lines(monkeypatch, capsys):
    with render.progress_bar() as advance:
        advance("embed", 1, 2000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(render, "PROGRESS_SECONDS", 0.0)
    with render.progress_bar() as advance:
        advance("embed", 1000, 2000)
    assert capsys.readouterr().err == "embed: 1,000 of 2,000, after 0 s\n"
