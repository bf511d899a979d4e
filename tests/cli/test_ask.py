import dataclasses
import inspect
import json
import subprocess
import sys

import pytest

from meve.cli.ask import ask, parse_where
from meve.errors import ConfigurationError
from meve.pipeline.config import RetrieverConfig

ANSWERED, UNANSWERED = "How do bees make honey?", "Who won the football world cup in 1974?"


def test_ask_prints_context_tokens_and_sufficiency(meve, index):
    result = meve("ask", ANSWERED, "--index", index)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Bees › Honey\nHoney bees make honey from the nectar")
    assert "of 512 tokens" in result.stdout
    assert "· sufficient (" in result.stdout


def test_ask_marks_unverified_passages_by_title_or_beginning_and_id(meve, index):
    shown = meve("ask", ANSWERED, "--index", index).stdout
    head, *rows = (line.split() for line in shown[shown.index("\nno ") :].splitlines()[1:])
    assert head == ["no", "passage", "id", "score", "verified"]
    named = [(row[0], " ".join(row[1:-3]), row[-3], row[-1]) for row in rows]
    assert named[0] == ("1", "Bees › Honey", "bees.md#1", "yes")
    assert ("3", "Rust forms when iron reacts with oxygen and water.", "iron", "no") in named


def test_list_of_passages_fits_a_narrow_terminal(index, on_terminal):
    lines = on_terminal("ask", ANSWERED, "--index", index)
    rows = lines[next(number for number, line in enumerate(lines) if line.startswith(" no ")) :]
    assert max(map(len, rows)) <= 80
    assert any("iron" in row.split() and row.endswith("no") for row in rows)


def test_unanswered_question_is_reported_with_status_0(meve, index):
    result = meve("ask", UNANSWERED, "--index", index)
    assert result.exit_code == 0
    assert "not sufficient: no passage reaches the threshold 0.5: the best probability is 0.0" in result.stdout


def test_insufficient_context_that_raises_is_one_line_and_status_1(meve, index):
    result = meve("ask", UNANSWERED, "--index", index, "--when-insufficient", "raise", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("error: the context isn't sufficient: no passage reaches the threshold 0.5")
    assert line.endswith("(--when-insufficient raise)")


def test_unverified_text_gets_a_warning_on_stderr(meve, index):
    loose = ("--fallback-floor", 0)
    result = meve("ask", "What is told of the Moon by bridges and bees at the world cup?", "--index", index, *loose,
                  "--threshold", 1)  # fmt: skip
    assert "no passage below was verified: all have too low a probability" in result.stderr
    assert "below" not in result.stdout
    assert result.stdout.split("\n\n")[0]
    assert "no passage below was verified (mode standard_rag)" in meve(
        "ask", ANSWERED, "--index", index, "--mode", "standard_rag"
    ).stderr  # fmt: skip
    assert "verified" not in meve("ask", ANSWERED, "--index", index).stderr
    assert "verified" not in meve("ask", ANSWERED, "--index", index, "--mode", "no_rag").stderr


def test_json_output_is_one_object(index):
    command = [
        sys.executable,
        "-m",
        "meve.cli",
        "ask",
        ANSWERED,
        "--index",
        str(index),
        "--json",
        "--trace",
        "--no-fill",
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    data = json.loads(process.stdout)
    assert data["sufficient"] is True
    assert data["passages"][0]["id"] == "bees.md#1"
    assert [p["name"] for p in data["trace"]["phases"]] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
    assert process.stderr == ""


def test_trace_shows_phases_and_candidates(meve, index):
    shown = meve("ask", ANSWERED, "--index", index, "--trace").stdout
    for words in ("retrieve", "verify", "fallback", "prioritize", "budget", "threshold 0.", "max_tokens 512"):
        assert words in shown
    for passage in ("bees.md#1", "bridges.txt#1", "moon", "iron"):
        assert passage in shown
    assert "dropped by fill unrelated" in shown


def test_every_configuration_field_is_an_option():
    options = set(inspect.signature(ask).parameters)
    assert {f.name for f in dataclasses.fields(RetrieverConfig)} <= options


def test_options_override_saved_settings(meve, index):
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


def test_where_filters_by_metadata(meve, index):
    base = ("ask", "What happens?", "--index", index, "--json", "--mode", "standard_rag", "--where")

    def ids(*conditions):
        return {p["id"] for p in json.loads(meve(*base, *conditions).stdout)["passages"]}

    assert ids("lang=en") == {"moon", "iron"}
    assert ids("year=1999") == {"iron"}
    assert ids("source=bridges.txt", "--where", "source=bees.md") == {"bridges.txt#1", "bees.md#1", "bees.md#2"}
    assert ids("lang=en", "--where", "source=bridges.txt") == set()
    assert ids("until=null") == {"iron"}
    assert ids("year>=1999") == ids("year>1998", "--where", "year < 2000") == ids("year!=2000") == {"iron"}
    assert ids("year>1999") == ids("year<1999") == set()
    assert ids("source>bees.md", "--where", "source<c") == {"bridges.txt#1"}


def test_where_with_a_name_that_no_passage_has_is_warned_of(meve, index):
    result = meve("ask", "What happens?", "--index", index, "--json", "--mode", "standard_rag", "--where", "sorce=x")
    assert "warning: no passage has 'sorce' in its metadata" in result.stderr
    assert "did you mean 'source'?" in result.stderr
    assert json.loads(result.stdout)["passages"] == []


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
def test_where_value_is_text_or_json_scalar(text, read):
    assert parse_where([f"key={text}"]) == {"key": {"$in": read}}


def test_two_bounds_of_one_kind_are_refused():
    with pytest.raises(ConfigurationError, match="must give year> once, got 'year>3' too"):
        parse_where(["year>2", "year>3"])


@pytest.mark.parametrize("condition", ["lang", "=en", " =en", ">3", "lang==en", "year=>2001", "year =< 2001", "a<>b"])
def test_invalid_where_is_rejected(condition):
    with pytest.raises(ConfigurationError, match=r"must be KEY=VALUE"):
        parse_where([condition])


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["ask", "x", "--index", "missing"], 1, "there is no index at"),
        (["ask", " ", "--index", "INDEX"], 1, "query must not be blank"),
        (["ask", "x", "--index", "INDEX", "--threshold", "2"], 1, "threshold must be between 0 and 1, got 2.0"),
        (["ask", "x", "--index", "INDEX", "--mode", "magic"], 1, "standard_rag, no_rag, got 'magic'"),
        (["ask", "x", "--index", "INDEX", "--where", "x"], 1, "or >=, got 'x'"),
        (["ask", "x", "--index", "INDEX", "--magic", "1"], 2, "--magic"),
        (["ask", "x", "--index", "INDEX", "--limit", "many"], 2, "--limit"),
        (["ask", "x"], 2, "--index"),
        (["info", "missing"], 1, "there is no index at"),
        (["magic"], 2, "magic"),
    ],
)
def test_mistakes_are_printed_on_stderr_with_their_status(meve, index, arguments, status, message):
    result = meve(*(index if each == "INDEX" else each for each in arguments))
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("given", "meant"), [("--topk", "limit"), ("--max-token", "max-tokens")])
def test_unknown_option_names_the_nearest_and_lists_all(meve, index, given, meant):
    result = meve("ask", "q", "--index", index, given, "3")
    assert result.exit_code == 2
    shown = " ".join(result.stderr.split())
    assert f"unknown option '{given}': did you mean '--{meant}'? known: index, collection, trace" in shown


def test_ask_and_info_read_a_collection_on_a_server(meve, docs, tmp_path):
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    url, place = f"qdrant://{tmp_path}/server", ["--collection", "texts"]
    assert meve("index", docs, "--to", url, *place, "--embedder", "static").exit_code == 0
    result = meve("ask", ANSWERED, *place, env={"MEVE_INDEX": url})
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Bees › Honey\nHoney bees make honey from the nectar")
    about = json.loads(meve("info", url, *place, "--json").stdout)
    assert (about["passages"], about["embedder"]["name"]) == (5, "meve-static-1")
    assert "embedder.name" in meve("info", url, *place).stdout


@pytest.mark.parametrize("command", [("ask", ANSWERED, "--index"), ("info",)], ids=["ask", "info"])
def test_place_of_an_index_is_checked_and_nothing_is_made(meve, index, tmp_path, command):
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    url = f"qdrant://{tmp_path}/server"
    for _ in range(2):  # the first made none
        result = meve(*command, url, "--collection", "none")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "no collection 'none'" in " ".join(result.stderr.split())
    assert "needs --collection" in " ".join(meve(*command, url).stderr.split())
    assert "must be left out" in " ".join(meve(*command, index, "--collection", "none").stderr.split())
    secret = meve(*command, "postgresql://me:secret@localhost/meve", "--collection", "none")
    assert "set MEVE_INDEX instead" in " ".join(secret.stderr.replace("│", "").split())
