"""The experiment on small contexts: dialogues as told, strategies, readers, report."""

import sys
import types

import pytest
from typer.testing import CliRunner

from meve.cli.app import app
from meve.dialogue import Dialogue, Turn
from meve.errors import ConfigurationError, DatasetError, EvaluationError
from meve.evaluation.datasets.synthetic_dialogues import locomo_told, small_talk, wiki_told
from meve.evaluation.experiments.small_context import run
from meve.evaluation.experiments.small_context.run import SmallContexts, SmallResults, answered, small_contexts
from meve.evaluation.experiments.small_context.systems import (
    ALONE,
    FULL,
    NO_EMBEDDING,
    NO_IMPORTANCE,
    STRATEGIES,
    SUMMARY,
    TRUNCATION,
)
from meve.evaluation.report import small as report
from meve.testing.fakes import WordCounter, WordEmbedder


class TestTold:
    def test_a_paragraph_is_told_in_a_row_a_turn_a_sentence(self, data):
        """All of them, each sentence as it stands there, by two people in turn."""
        for one in wiki_told(data, questions=None, seed=42, chat=0.6):
            n = one.question.id[1:]
            texts = [turn.text for turn in one.turns]
            at = texts.index(f"City{n} lies in Land{n}.")
            assert texts[at + 1] == "It is old."
            assert all(sentence.text in texts for sentence in one.question.sentences)
            assert {a.speaker for a in one.turns[::2]} == {"Ann"}

    @pytest.mark.parametrize("share", [0.0, 0.6, 0.75, 0.9])
    def test_the_share_of_chit_chat_is_at_least_what_was_asked_for(self, data, share):
        """And hardly more; it is what people said, in its order."""
        talk = small_talk(data)
        for one in wiki_told(data, questions=None, seed=42, chat=share):
            assert one.chat == sum(turn.text in talk for turn in one.turns)
            assert share <= one.chat / len(one.turns) < share + 0.2

    def test_the_same_seed_tells_the_same(self, data):
        """Another one draws others, and those passed over are the first of the same order."""
        told = wiki_told(data, questions=8, seed=42, chat=0.6)
        assert told == wiki_told(data, questions=8, seed=42, chat=0.6)
        assert told[5:] == wiki_told(data, questions=3, seed=42, chat=0.6, aside=5)
        assert told != wiki_told(data, questions=8, seed=43, chat=0.6)

    def test_chit_chat_is_without_notices_and_names(self, data):
        """Those who are addressed are no part of it; nor is what says nothing else."""
        assert set(small_talk(data)) == {"so it goes" + "o" * n for n in range(7)} | {"see you in Oslo"}

    def test_chit_chat_can_be_made_to_name_nothing(self, data):
        """By whoever tells which may serve."""
        told = wiki_told(data, questions=2, seed=42, chat=0.9, quiet=lambda texts: ["ooo" not in t for t in texts])
        assert not [turn for one in told for turn in one.turns if "ooo" in turn.text]

    def test_a_chat_room_that_is_too_short_is_named(self, data):
        """The share would be missed unsaid."""
        with pytest.raises(DatasetError, match=r"irc.*401 messages.*\d+ are needed"):
            wiki_told(data, questions=None, seed=42, chat=0.995)

    def test_conversations_have_their_evidence_as_corrected(self, data):
        """Questions without an answer or with lost evidence are left out."""
        told = {one.question.id: one for one in locomo_told(data, questions=None, seed=42)}
        assert {i: [s.text for s in one.question.sentences] for i, one in told.items()} == {
            "a": ["we saw 7 zebras"], "b": ["we saw 8 zebras"],
        }  # fmt: skip
        assert told["a"].question.answers == ("7",)
        assert told["a"].turns[7] == Turn(text="we saw 7 zebras", speaker="Ana", time="2024-02-15")

    def test_what_is_absent_is_named(self, tmp_path):
        """The file that was looked for."""
        with pytest.raises(DatasetError, match="2wiki"):
            wiki_told(tmp_path, questions=1, seed=42, chat=0.6)


class TestStrategies:
    TURNS = ("zebra zebra 1999", *["so so"] * 30, "yes yes 2001", "what ever")

    def made(self, name, query="the zebra", most=12):
        dialogue = Dialogue.from_turns(self.TURNS, embedder=WordEmbedder(), tokens=WordCounter())
        return STRATEGIES[name].context(dialogue, query, most)

    def test_truncation_keeps_the_latest(self):
        """As many as fit, whatever they say."""
        assert [p.passage.turn for p in self.made(TRUNCATION).passages] == [30, 31, 32]

    def test_without_embedding_the_latest_within_windows(self):
        """What was said last stands there anyway."""
        made = self.made(NO_EMBEDDING, most=40)
        assert {p.passage.turn for p in made.passages} <= {*range(11), *range(21, 31)}
        assert made.trace.windows == ((0, 10), (21, 32))

    def test_without_importance_everything_is_looked_at(self):
        """And no name counts."""
        made = self.made(NO_IMPORTANCE)
        assert made.trace.windows == ((0, 32),)
        assert {name for c in made.trace.candidates for name in c.scores} <= {"dialogue", "similarity"}

    def test_a_summary_knows_no_question(self):
        """It is the same for every one."""
        assert self.made(SUMMARY).facts == self.made(SUMMARY, "yes ever").facts
        assert "so so" in self.made(SUMMARY).facts

    def test_the_whole_finds_what_is_asked_for(self):
        """Under the same limit."""
        assert "1999" in self.made(FULL, most=16).text


class TestTheExperiment:
    def test_it_measures_and_reports(self, data, tmp_path):
        """Every strategy under both limits; the published values beside; the same again gives the same."""
        results = small_contexts(SmallContexts(data=data, questions=4))
        assert results.value("2wiki, 2,048 tokens", FULL, run.RECOVERY).value == 1
        assert results.value("2wiki, 273 tokens", FULL, run.TOKENS).high <= 273
        assert results.value(run.FILTER, "locomo", "turns that name something").value == 1
        assert run.ANSWERED not in {f.measure for f in results.figures}
        file = report.write(results, tmp_path / "to", "meve bench small-context")
        text = file.read_text("utf-8")
        assert "| both | 0.758 | 0.720 | 273 |" in text
        assert "context token recall, 2,048" in text
        assert (file.parent / report.PICTURE).is_file()
        assert SmallResults.load(file.parent / "results.json") == results
        again = small_contexts(SmallContexts(data=data, questions=4))
        assert steady(again) == steady(results)

    def test_progress_is_told(self, data):
        """Stage by stage, to its end."""
        told = []
        small_contexts(SmallContexts(data=data, questions=2), lambda *step: told.append(step))
        assert {("2wiki", 2, 2), ("locomo", 2, 2), (run.SWEEP, 2, 2)} <= set(told)

    def test_a_reader_answers(self, data, monkeypatch):
        """Token recall is of what it says then, and named so."""
        module = types.ModuleType("my_reader")
        module.answer = lambda question, context: "in 1900 or 1910, " + context[-1:]
        monkeypatch.setitem(sys.modules, "my_reader", module)
        results = small_contexts(SmallContexts(data=data, questions=12, reader="my_reader:answer"))
        assert results.value("2wiki, 2,048 tokens", FULL, run.ANSWERED).value == pytest.approx(1 / 12)
        alone = results.value("2wiki, 2,048 tokens", ALONE, run.TOKENS).value
        assert results.value("2wiki, 2,048 tokens", ALONE, run.ANSWERED).value == pytest.approx(1 / 12)
        assert results.value("2wiki, 2,048 tokens", ALONE, run.RECOVERY).value == 0
        assert alone < 10
        assert f"| SLM only (Gemma2) | 0.585 | 0.427 | 316 | 0.083 | 0.000 | {alone:.0f} |" in report.text(results, "…")
        assert (
            "| table I | published: token recall | published: fact recovery | published: tokens | token recall, 2,048"
            in (report.text(results, "…"))
        )

    def test_what_can_not_be_is_refused(self, data):
        """A reader that isn't there, one that returns no text, a share of one, questions that are all passed over."""
        for wrong in ({"reader": "no_such:thing"}, {"chat": 1.0}):
            with pytest.raises(ConfigurationError):
                small_contexts(SmallContexts(data=data, **wrong))
        with pytest.raises(EvaluationError, match="no questions left"):
            small_contexts(SmallContexts(data=data, aside=12))
        (one,) = wiki_told(data, questions=1, seed=42, chat=0.0)
        context = STRATEGIES[FULL].context(Dialogue.from_turns(one.turns), one.question.text, 200)
        with pytest.raises(EvaluationError, match="reader returned int"):
            answered(one, lambda question, context: 7, context)
        with pytest.raises(EvaluationError, match=rf"the reader.*{one.question.id}.*Error: refused"):
            answered(one, refusing, context)

    def test_the_command(self, data, tmp_path):
        """Prints a table an experiment, and says where the report is."""
        to = tmp_path / "out"
        args = ["bench", "small-context", "--data", str(data), "--to", str(to), "--questions", "2", "--chat", "0.6"]
        done = CliRunner().invoke(app, args)
        assert done.exit_code == 0, done.output
        assert "what windows leave" in done.output
        assert f"report: {to / 'report.md'}" in done.output


def refusing(question, context):
    raise ConnectionError("refused")


def steady(results):
    """What doesn't depend on the machine."""
    return [f for f in results.figures if f.measure != run.MS]


@pytest.mark.shared
def test_the_shipped_sets_are_told(shared):
    """Of every question all gold sentences are among the turns, and six of ten turns are chit-chat."""
    for one in wiki_told(shared / "data", questions=None, seed=42, chat=0.6):
        assert {s.text.strip() for s in one.question.sentences} <= {turn.text for turn in one.turns}
        assert one.chat >= 0.6 * len(one.turns)
    assert len(locomo_told(shared / "data", questions=None, seed=42)) > 500
