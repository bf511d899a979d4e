import dataclasses
import inspect
import json
import subprocess
import sys

import pytest

from meve.cli._render import INSUFFICIENT
from meve.cli.ask import ask, parse_where
from meve.errors import ConfigurationError
from meve.pipeline.config import RetrieverConfig

ANSWERED, UNANSWERED = "How do bees make honey?", "Who won the football world cup in 1974?"


def test_the_context_is_printed_with_its_tokens_and_whether_it_is_sufficient(meve, index):
    """Text first, as it is."""
    result = meve("ask", ANSWERED, "--index", index)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Bees\n## Honey\n\nHoney bees make honey from the nectar")
    assert "of 512 tokens" in result.stdout
    assert "· sufficient (" in result.stdout.rstrip().splitlines()[-1]


def test_a_question_without_an_answer_is_said_to_have_none(meve, index):
    """The exit status is 0: that is an answer too."""
    result = meve("ask", UNANSWERED, "--index", index)
    assert (result.exit_code, INSUFFICIENT in result.stdout) == (0, True)


def test_text_that_was_not_verified_is_told_apart_from_context(meve, index):
    """On stderr, so that stdout stays the text; no such line where something was verified, or nothing came."""
    loose = ("--fallback-floor", 0)
    result = meve("ask", "What is told of the Moon by bridges and bees at the world cup?", "--index", index, *loose,
                  "--threshold", 1)  # fmt: skip
    assert "nothing below was verified: fallback passages, too improbable" in result.stderr
    assert "below" not in result.stdout
    assert result.stdout.split("\n\n")[0]
    assert "nothing below was verified (mode standard_rag)" in meve(
        "ask", ANSWERED, "--index", index, "--mode", "standard_rag"
    ).stderr  # fmt: skip
    assert "verified" not in meve("ask", ANSWERED, "--index", index).stderr
    assert "verified" not in meve("ask", ANSWERED, "--index", index, "--mode", "no_rag").stderr


def test_json_is_one_object_and_nothing_else(index):
    """Seen from outside, by a real process: whatever the model libraries say, it isn't on stdout."""
    command = [sys.executable, "-m", "meve.cli", "ask", ANSWERED, "--index", str(index), "--json", "--trace"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data = json.loads(done.stdout)
    assert data["sufficient"] is True
    assert data["passages"][0]["id"] == "bees.md#1"
    assert [p["name"] for p in data["trace"]["phases"]] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
    assert done.stderr == ""


def test_the_trace_shows_five_phases_and_every_candidate(meve, index):
    """With what each was decided by."""
    shown = meve("ask", ANSWERED, "--index", index, "--trace").stdout
    for words in ("retrieve", "verify", "fallback", "prioritize", "budget", "threshold 0.", "max_tokens 512"):
        assert words in shown
    for passage in ("bees.md#1", "bridges.txt#1", "moon", "iron"):
        assert passage in shown
    assert "dropped by verify" in shown
    assert "below_threshold" in shown


def test_every_value_of_the_configuration_is_an_option():
    """By the same name."""
    options = set(inspect.signature(ask).parameters)
    assert {f.name for f in dataclasses.fields(RetrieverConfig)} <= options


def test_options_reach_the_retrieval(meve, index):
    """Each overrides what was saved, for this call."""
    run = meve(
        "ask", ANSWERED, "--index", index, "--json", "--mode", "standard_rag", "--max-tokens", 100, "--limit", 2,
        "--citations", "--separator", r"\n--\n", "--candidates", 3,
    )  # fmt: skip
    data = json.loads(run.stdout)
    assert data["trace"]["mode"] == "standard_rag"
    assert data["max_tokens"] == 100
    assert len(data["passages"]) == 2
    assert data["text"].startswith("[1]")
    assert "\n--\n[2]" in data["text"]
    assert len(data["trace"]["candidates"]) == 3


def test_metadata_filters(meve, index):
    """A number on the command line matches a number; a key given twice accepts either."""
    base = ("ask", "What happens?", "--index", index, "--json", "--mode", "standard_rag", "--where")

    def ids(*conditions):
        return {p["id"] for p in json.loads(meve(*base, *conditions).stdout)["passages"]}

    assert ids("lang=en") == {"moon", "iron"}
    assert ids("year=1999") == {"iron"}
    assert ids("source=bridges.txt", "--where", "source=bees.md") == {"bridges.txt#1", "bees.md#1"}
    assert ids("lang=en", "--where", "source=bridges.txt") == set()
    assert ids("until=null") == {"iron"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("en", ["en"]),
        ("", [""]),
        ("3", ["3", 3]),
        ("2.5", ["2.5", 2.5]),
        ("true", ["true", True]),
        ("null", ["null", None]),
        ("NaN", ["NaN"]),
        ("Infinity", ["Infinity"]),
        ('"x"', ['"x"']),
        ("[1]", ["[1]"]),
        ("[" * 100_000, ["[" * 100_000]),
        ("a=b", ["a=b"]),
    ],
)
def test_a_value_is_text_and_the_number_truth_value_or_null_that_it_reads_as(text, read):
    """Nothing else of JSON is read."""
    assert parse_where([f"key={text}"]) == {"key": read}


@pytest.mark.parametrize("condition", ["lang", "=en", " =en"])
def test_a_filter_that_is_none_is_refused(condition):
    """The message shows it."""
    with pytest.raises(ConfigurationError, match=r"give KEY=VALUE"):
        parse_where([condition])


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ask", "x", "--index", "missing"], 1, "there is no index at"),
        (["ask", " ", "--index", "INDEX"], 1, "the query is blank"),
        (["ask", "x", "--index", "INDEX", "--threshold", "2"], 1, "threshold is 2.0: give a number from 0 to 1"),
        (["ask", "x", "--index", "INDEX", "--mode", "magic"], 1, "mode is 'magic'"),
        (["ask", "x", "--index", "INDEX", "--where", "x"], 1, "--where is 'x'"),
        (["ask", "x", "--index", "INDEX", "--magic", "1"], 2, "--magic"),
        (["ask", "x", "--index", "INDEX", "--limit", "many"], 2, "--limit"),
        (["ask", "x"], 2, "--index"),
        (["info", "missing"], 1, "there is no index at"),
        (["magic"], 2, "magic"),
    ],
)
def test_mistakes_are_told_on_stderr_with_their_exit_status(meve, index, arguments, status, message):
    """1 for what MeVe refuses, 2 for a command line that can't be understood; stdout stays empty."""
    result = meve(*(index if each == "INDEX" else each for each in arguments))
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
