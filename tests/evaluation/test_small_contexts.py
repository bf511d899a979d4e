"""The small-context experiment: dialogues, strategies, readers and the report."""

import sys
import types

import pytest
from typer.testing import CliRunner

from meve.cli.app import app
from meve.dialogue import Dialogue, Turn
from meve.errors import ConfigurationError, DatasetError, EvaluationError
from meve.evaluation.datasets.synthetic_dialogues import read_locomo_dialogues, read_small_talk, read_wiki_dialogues
from meve.evaluation.experiments.memory.memory_results import MemoryResults
from meve.evaluation.experiments.small_context import experiment as experiment
from meve.evaluation.experiments.small_context.experiment import (
    SmallContextBenchOptions,
    answer_recall,
    run_small_context,
)
from meve.evaluation.experiments.small_context.strategies import (
    ALONE,
    FULL,
    NO_EMBEDDING,
    NO_IMPORTANCE,
    STRATEGIES,
    SUMMARY,
    TRUNCATION,
)
from meve.evaluation.report import small_context_report as report
from meve.testing.fakes import WordCounter, WordEmbedder


class TestDialogues:
    def test_paragraph_becomes_consecutive_turns(self, data):
        for question in read_wiki_dialogues(data, questions=None, seed=42, chat=0.6):
            n = question.question.id[1:]
            texts = [turn.text for turn in question.turns]
            at = texts.index(f"City{n} lies in Land{n}.")
            assert texts[at + 1] == "It is old."
            assert all(sentence.text in texts for sentence in question.question.sentences)
            assert {a.speaker for a in question.turns[::2]} == {"Ann"}

    @pytest.mark.parametrize("share", [0.0, 0.6, 0.75, 0.9])
    def test_chit_chat_has_at_least_the_requested_share(self, data, share):
        talk = read_small_talk(data)
        for question in read_wiki_dialogues(data, questions=None, seed=42, chat=share):
            assert question.chat == sum(turn.text in talk for turn in question.turns)
            assert share <= question.chat / len(question.turns) < share + 0.2

    def test_same_seed_gives_same_dialogues(self, data):
        questions = read_wiki_dialogues(data, questions=8, seed=42, chat=0.6)
        assert questions == read_wiki_dialogues(data, questions=8, seed=42, chat=0.6)
        assert questions[5:] == read_wiki_dialogues(data, questions=3, seed=42, chat=0.6, skip=5)
        assert questions != read_wiki_dialogues(data, questions=8, seed=43, chat=0.6)

    def test_chit_chat_has_no_notices_and_names(self, data):
        assert set(read_small_talk(data)) == {"so it goes" + "o" * n for n in range(7)} | {"see you in Oslo"}

    def test_chit_chat_can_be_filtered(self, data):
        questions = read_wiki_dialogues(
            data, questions=2, seed=42, chat=0.9, select=lambda texts: ["ooo" not in t for t in texts]
        )
        assert not [turn for question in questions for turn in question.turns if "ooo" in turn.text]

    def test_too_short_chat_room_is_rejected(self, data):
        with pytest.raises(DatasetError, match=r"irc.*401 usable messages.*\d+ are needed"):
            read_wiki_dialogues(data, questions=None, seed=42, chat=0.995)

    def test_locomo_evidence_is_corrected_by_the_audit(self, data):
        questions = {
            question.question.id: question for question in read_locomo_dialogues(data, questions=None, seed=42)
        }
        assert {i: [s.text for s in question.question.sentences] for i, question in questions.items()} == {
            "a": ["we saw 7 zebras"], "b": ["we saw 8 zebras"],
        }  # fmt: skip
        assert questions["a"].question.answers == ("7",)
        assert questions["a"].turns[7] == Turn(text="we saw 7 zebras", speaker="Ana", time="2024-02-15")

    def test_absent_set_is_rejected_by_name(self, tmp_path):
        with pytest.raises(DatasetError, match="2wiki"):
            read_wiki_dialogues(tmp_path, questions=1, seed=42, chat=0.6)


class TestStrategies:
    TURNS = ("zebra zebra 1999", *["so so"] * 30, "yes yes 2001", "what ever")

    def build(self, name, query="the zebra", most=12):
        dialogue = Dialogue.from_turns(self.TURNS, embedder=WordEmbedder(), tokens=WordCounter())
        return STRATEGIES[name].build_context(dialogue, query, most)

    def test_truncation_keeps_the_latest_turns(self):
        assert [p.passage.turn for p in self.build(TRUNCATION).passages] == [30, 31, 32]

    def test_importance_only_keeps_the_latest_turns_in_windows(self):
        context = self.build(NO_EMBEDDING, most=40)
        assert {p.passage.turn for p in context.passages} <= {*range(11), *range(21, 31)}
        assert context.trace.windows == ((0, 10), (21, 32))

    def test_embedding_only_ignores_windows_and_names(self):
        context = self.build(NO_IMPORTANCE)
        assert context.trace.windows == ((0, 32),)
        assert {name for c in context.trace.candidates for name in c.scores} <= {"dialogue", "similarity"}

    def test_summary_ignores_the_question(self):
        assert self.build(SUMMARY).facts == self.build(SUMMARY, "yes ever").facts
        assert "so so" in self.build(SUMMARY).facts

    def test_full_strategy_finds_the_answer(self):
        assert "1999" in self.build(FULL, most=16).text


class TestExperiment:
    def test_experiment_measures_and_reports(self, data, tmp_path):
        results = run_small_context(SmallContextBenchOptions(data=data, questions=4))
        assert results.value("2wiki, 2,048 tokens", FULL, experiment.RECOVERY).value == 1
        assert results.value("2wiki, 273 tokens", FULL, experiment.TOKENS).high <= 273
        assert results.value(experiment.FILTER, "locomo", "turns that name something").value == 1
        assert experiment.ANSWERED not in {f.measure for f in results.figures}
        file = report.write(results, tmp_path / "to", "meve bench small-context")
        text = file.read_text("utf-8")
        assert "| both | 0.758 | 0.720 | 273 |" in text
        assert "context token recall, 2,048" in text
        assert (file.parent / report.PICTURE).is_file()
        assert MemoryResults.load(file.parent / "results.json") == results
        again = run_small_context(SmallContextBenchOptions(data=data, questions=4))
        assert machine_independent(again) == machine_independent(results)

    def test_progress_is_reported(self, data):
        questions = []
        run_small_context(SmallContextBenchOptions(data=data, questions=2), lambda *step: questions.append(step))
        assert {("2wiki", 2, 2), ("locomo", 2, 2), (experiment.SWEEP, 2, 2)} <= set(questions)

    def test_reader_answers_are_measured(self, data, monkeypatch):
        module = types.ModuleType("my_reader")
        module.answer = lambda question, context: "in 1900 or 1910, " + context[-1:]
        monkeypatch.setitem(sys.modules, "my_reader", module)
        results = run_small_context(SmallContextBenchOptions(data=data, questions=12, reader="my_reader:answer"))
        assert results.value("2wiki, 2,048 tokens", FULL, experiment.ANSWERED).value == pytest.approx(1 / 12)
        alone = results.value("2wiki, 2,048 tokens", ALONE, experiment.TOKENS).value
        assert results.value("2wiki, 2,048 tokens", ALONE, experiment.ANSWERED).value == pytest.approx(1 / 12)
        assert results.value("2wiki, 2,048 tokens", ALONE, experiment.RECOVERY).value == 0
        assert alone < 10
        assert f"| SLM only (Gemma2) | 0.585 | 0.427 | 316 | 0.083 | 0.000 | {alone:.0f} |" in report.format_report(
            results, "…"
        )
        assert (
            "| table I | published: token recall | published: fact recovery | published: tokens | token recall, 2,048"
            in (report.format_report(results, "…"))
        )

    def test_invalid_options_are_rejected(self, data):
        for wrong in ({"reader": "no_such:thing"}, {"chat": 1.0}):
            with pytest.raises(ConfigurationError):
                run_small_context(SmallContextBenchOptions(data=data, **wrong))
        with pytest.raises(EvaluationError, match="no questions left"):
            run_small_context(SmallContextBenchOptions(data=data, skip=12))
        (question,) = read_wiki_dialogues(data, questions=1, seed=42, chat=0.0)
        context = STRATEGIES[FULL].build_context(Dialogue.from_turns(question.turns), question.question.text, 200)
        with pytest.raises(EvaluationError, match="reader returned int"):
            answer_recall(question, lambda question, context: 7, context)
        with pytest.raises(EvaluationError, match=rf"the reader.*{question.question.id}.*Error: refused"):
            answer_recall(question, failing_reader, context)

    def test_command_prints_tables_and_report(self, data, tmp_path):
        to = tmp_path / "out"
        args = ["bench", "small-context", "--data", str(data), "--to", str(to), "--questions", "2", "--chat", "0.6"]
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 0, result.output
        assert "what windows leave" in result.output
        assert f"report: {to / 'report.md'}" in result.output


def failing_reader(question, context):
    raise ConnectionError("refused")


def machine_independent(results):
    return [f for f in results.figures if f.measure != experiment.MS]


@pytest.mark.shared
def test_real_sets_become_dialogues(shared):
    for question in read_wiki_dialogues(shared / "data", questions=None, seed=42, chat=0.6):
        assert {s.text.strip() for s in question.question.sentences} <= {turn.text for turn in question.turns}
        assert question.chat >= 0.6 * len(question.turns)
    assert len(read_locomo_dialogues(shared / "data", questions=None, seed=42)) > 500
