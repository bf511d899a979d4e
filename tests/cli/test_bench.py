"""`meve bench`: results, reports, resuming, comparison and errors."""

import gzip
import json
import re

import pytest

pytest.importorskip("ir_measures")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def use_few_draws():
    """Draw few bootstrap samples, for speed."""
    from meve.evaluation import statistics

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(statistics, "RESAMPLES", 50)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with one small set in the format of HotpotQA."""
    root = tmp_path_factory.mktemp("data")
    folder = root / "hotpotqa"
    folder.mkdir()
    texts = {"bees": "Bees make honey from nectar.", "rust": "Rust is iron that met oxygen.", "owls": "Owls hunt."}
    texts |= {f"star{n}": f"Star {n} is a star in the sky of number {n}." for n in range(9)}
    rows = [{"id": i, "title": i.capitalize(), "text": t, "sent_starts": [0]} for i, t in texts.items()]
    with gzip.open(folder / "passages.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    questions = [
        {
            "id": f"q-{i}",
            "question": f"What is known of {i}?",
            "answer": t.split()[-1],
            "type": "bridge",
            "gold_passage_ids": [i],
            "gold_sentences": [{"passage_id": i, "sent_idx": 0, "text": t}],
            "context_passage_ids": list(texts),
            "source": "made",
        }
        for i, t in texts.items()
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return root


@pytest.fixture(scope="module")
def finished_run(data, tmp_path_factory):
    from typer.testing import CliRunner

    from meve.cli.app import app

    to = tmp_path_factory.mktemp("run")
    arguments = ["bench", "quality", "--data", data, "--to", to / "out", "--cache", to, "--sets", "hotpotqa"]
    arguments = [str(argument) for argument in arguments]
    return to, arguments, CliRunner().invoke(app, arguments)


def test_run_prints_measures_and_writes_report(finished_run):
    to, _, result = finished_run
    assert result.exit_code == 0, result.output
    assert "hotpotqa: 12 questions" in result.stdout
    assert re.search(r"full +[01]\.\d{3}", result.stdout)
    report = (to / "out" / "report.md").read_text()
    assert "| supporting recall (n=12) |" in report
    assert "| full | " in report
    assert "Configuration: candidates 20" in report
    assert "recall-against-tokens.svg" in report
    picture = (to / "out" / "recall-against-tokens.svg").read_text()
    assert picture.startswith("<?xml")
    assert "(prefers-color-scheme: dark)" in picture
    results = json.loads((to / "out" / "results.json").read_text())
    assert results["settings"]["seed"] == 42
    assert results["settings"]["versions"]["meve"]
    assert len(results["curve"]) == 3 * 4 + 11 * 4


def test_second_run_asks_nothing_and_finds_no_change(finished_run, meve):
    to, arguments, _ = finished_run
    rows = (to / "out" / "outcomes.jsonl").read_bytes()
    again = meve(*arguments, "--compare", to / "out" / "results.json")
    assert again.exit_code == 0, again.output
    assert "no change beyond the intervals" in again.stdout
    assert (to / "out" / "outcomes.jsonl").read_bytes() == rows


def test_drop_fails(finished_run, meve, tmp_path):
    to, _, _ = finished_run
    better = json.loads((to / "out" / "results.json").read_text())
    for cell in better["cells"]:
        if (cell["system"], cell["measure"]) == ("dense", "supporting precision"):
            cell["values"] = dict.fromkeys(cell["values"], 1.0)
            cell["interval"] |= {"value": 1.0, "low": 1.0, "high": 1.0}
    (tmp_path / "old.json").write_text(json.dumps(better))
    result = meve("bench", "--compare", tmp_path / "old.json", "--new", to / "out" / "results.json")
    assert result.exit_code == 1
    assert "worse" in result.stdout
    assert "1 of 1 measures changed for the worse" in result.stderr


def test_results_of_other_data_are_rejected_before_the_run(finished_run, meve, tmp_path):
    to, arguments, _ = finished_run
    other = json.loads((to / "out" / "results.json").read_text())
    other["sets"]["hotpotqa"]["fingerprint"] = "another"
    (tmp_path / "old.json").write_text(json.dumps(other))
    elsewhere = [tmp_path / "fresh" if a == str(to / "out") else a for a in arguments]
    assert elsewhere != list(arguments)
    result = meve(*elsewhere, "--compare", tmp_path / "old.json")
    assert result.exit_code == 1
    assert "'hotpotqa' isn't the same" in result.stderr
    assert not (tmp_path / "fresh" / "outcomes.jsonl").exists()


def test_other_settings_are_rejected_by_name(finished_run, meve):
    _, arguments, _ = finished_run
    result = meve(*arguments, "--seed", "7")
    assert result.exit_code == 1
    assert "other settings: seed 42, now 7" in result.stderr


def test_resumed_run_with_more_questions_asks_only_missing_ones(data, meve, tmp_path):
    folders = ("--data", data, "--to", tmp_path / "out", "--cache", tmp_path)
    arguments = ("bench", "quality", *folders, "--sets", "hotpotqa")
    few = meve(*arguments, "--questions", "4")
    assert few.exit_code == 0, few.output
    before = (tmp_path / "out" / "outcomes.jsonl").read_text()
    more = meve(*arguments, "--questions", "12")
    assert more.exit_code == 0, more.output
    assert "hotpotqa: 12 questions" in more.stdout
    after = (tmp_path / "out" / "outcomes.jsonl").read_text()
    assert after.startswith(before)
    assert after.count("\n") == 3 * before.count("\n")
    points = json.loads((tmp_path / "out" / "results.json").read_text())["curve"]
    assert {point["n"] for point in points} == {12}


def test_resumed_run_may_add_a_set(data, meve, tmp_path):
    arguments = ("bench", "quality", "--data", data, "--to", tmp_path / "out", "--cache", tmp_path, "--no-curves")
    assert meve(*arguments, "--sets", "hotpotqa", "--questions", "3").exit_code == 0
    both = meve(*arguments, "--sets", "own,hotpotqa", "--questions", "3")
    assert both.exit_code == 0, both.output
    assert set(json.loads((tmp_path / "out" / "settings.json").read_text())["sets"]) == {"hotpotqa", "own"}


def test_own_set_needs_no_data(meve, tmp_path):
    command = ("bench", "quality", "--to", tmp_path / "out", "--cache", tmp_path, "--questions", "2", "--no-curves")
    assert meve(*command, "--sets", "own").exit_code == 0
    assert "--data" in meve(*command, "--sets", "own,rgb").stderr


def test_invalid_options_are_rejected(meve, tmp_path):
    for arguments in (("--compare", "x.json", "quality", "--data", "."), ("--new", "x.json")):
        assert meve("bench", *arguments).exit_code == 2
    assert meve("bench", "quality", "--data", tmp_path, "--seed", "-1").exit_code == 2
    assert meve("bench", "quality", "--data", tmp_path, "--sets", ",").exit_code == 1


def test_missing_data_folder_is_rejected(meve):
    assert "--sets own needs none" in meve("bench", "quality").stderr
    for command in ("paper", "small-context"):
        message = meve("bench", command).stderr
        assert "--data DIR is missing" in message
        assert "own" not in message


def test_absent_set_is_rejected_before_the_run(meve, tmp_path):
    result = meve("bench", "quality", "--data", tmp_path, "--to", tmp_path / "out", "--sets", "musique")
    assert result.exit_code == 1
    assert "musique" in result.stderr
    assert "--data" in result.stderr
    assert not (tmp_path / "out").exists()


def test_unknown_set_is_rejected(meve, tmp_path):
    result = meve("bench", "quality", "--data", tmp_path, "--to", tmp_path / "out", "--sets", "trivia")
    assert result.exit_code == 1
    assert "hotpotqa" in result.stderr


def test_peer_that_raises_is_counted_and_named(data, meve, tmp_path, monkeypatch):
    (tmp_path / "shaky_peer.py").write_text(
        "def make(passages, parts):\n"
        "    def ask(question):\n"
        "        if 'owls' in question:\n"
        "            raise ValueError('no owls')\n"
        "        return list(passages[:1])\n"
        "    return ask\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sets = ("--sets", "hotpotqa", "--peer", "shaky_peer:make", "--no-curves")
    result = meve("bench", "quality", "--data", data, "--to", tmp_path / "out", "--cache", tmp_path, *sets)
    assert result.exit_code == 0, result.output
    assert "q-owls: ValueError: no owls" in re.sub(r"\s+", " ", result.stderr).replace("question q-owls", "q-owls")
    assert "1 questions raised" in (tmp_path / "out" / "report.md").read_text()


def test_narrow_table_keeps_the_important_columns():
    from meve.cli._bench_tables import _fitting_columns

    columns = ["supporting recall", "any gold", "tokens", "p50 ms"]
    assert _fitting_columns(columns, label_width=10, width=200) == columns
    assert _fitting_columns(columns, label_width=10, width=10 + 1 + 18 + 7) == ["supporting recall", "tokens"]
    assert _fitting_columns(columns, label_width=10, width=10) == []


def test_first_failure_of_each_system_is_printed_first():
    from meve.cli._bench_tables import _first_of_each
    from meve.evaluation.results import Failure, Results

    failures = [Failure(set="s", system=s, question=q, error="x") for s, q in (("a", "1"), ("a", "2"), ("b", "1"))]
    results = Results(experiment="quality", settings={}, sets={}, cells=(), failures=tuple(failures))
    assert [(f.system, f.question) for f in _first_of_each(results)] == [("a", "1"), ("b", "1"), ("a", "2")]


def test_interrupt_prints_how_to_resume(capsys):
    from meve.cli._error_handling import handle_errors

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        handle_errors(interrupted)()
    assert "run the command again to resume" in capsys.readouterr().err


def test_invalid_results_are_rejected(meve, tmp_path):
    (tmp_path / "old.json").write_text("{}")
    result = meve("bench", "--compare", tmp_path / "old.json")
    assert result.exit_code == 1
    assert "holds no results" in result.stderr


def test_speed_measures_small_sizes(meve, tmp_path):
    result = meve("bench", "speed", "--sizes", "1500", "--to", tmp_path / "speed")
    assert result.exit_code == 0, result.output
    measured = json.loads((tmp_path / "speed" / "results.json").read_text())["measured"]
    assert [(m["kind"], m["passages"]) for m in measured] == [("hnsw", 1500), ("flat", 1500)]
    assert set(measured[0]["ms"]) == {"all", "retrieve", "verify", "fallback", "prioritize", "budget"}
    assert all(m["recall_at_20"] >= 0.95 for m in measured)
    assert (tmp_path / "speed" / "speed.svg").exists()
    assert meve("bench", "speed", "--sizes", "many", "--to", tmp_path / "other").exit_code == 2
    assert meve("bench", "speed", "--sizes", "0", "--to", tmp_path / "other").exit_code == 1


def test_memory_prints_tables_and_writes_report(meve, tmp_path):
    result = meve(
        "bench", "memory", "--quick", "--only", "expiry, prompt-size", "--seed", "7", "--to", tmp_path / "out"
    )
    assert result.exit_code == 0, result.output
    assert re.search(r"handed out after +0\.000 +1\.000", result.stdout)
    assert f"report: {tmp_path / 'out' / 'report.md'}" in result.stdout
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| handed out after | 0.000 [0.000, 0.278] (10) | 1.000 [0.722, 1.000] (10) |" in report
    assert "![memory prompt size](memory-prompt-size.svg)" in report
    assert (tmp_path / "out" / "memory-prompt-size.svg").read_text().startswith("<?xml")
    settings = json.loads((tmp_path / "out" / "results.json").read_text())["settings"]
    assert settings["seed"] == 7
    assert settings["versions"]["meve"]
    unknown = meve("bench", "memory", "--only", "recall", "--to", tmp_path / "other")
    assert unknown.exit_code == 1
    assert "false-facts" in unknown.stderr
    assert not (tmp_path / "other").exists()
