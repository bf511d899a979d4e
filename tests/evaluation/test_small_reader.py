"""A language model as the reader of small contexts, from the command to the table."""

import re
import sys

import pytest
from typer.testing import CliRunner

from meve.cli.app import app
from meve.dialogue import Dialogue
from meve.evaluation.datasets.synthetic_dialogues import read_wiki_dialogues
from meve.evaluation.experiments.memory.memory_results import MemoryResults
from meve.evaluation.experiments.small_context import experiment as experiment
from meve.evaluation.experiments.small_context.experiment import answer_recall
from meve.evaluation.experiments.small_context.strategies import ALONE, FULL, STRATEGIES, TRUNCATION

READER = """
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

tokenizer = PreTrainedTokenizerFast.from_pretrained({folder!r})
model = AutoModelForCausalLM.from_pretrained({folder!r})


def answer(question, context):
    read = tokenizer("0000 " + question + context, return_tensors="pt", truncation=True, max_length=64)
    read.pop("token_type_ids", None)
    written = model.generate(**read, max_new_tokens=3, do_sample=False, pad_token_id=0)
    return tokenizer.decode(written[0][read["input_ids"].shape[1]:])
"""

LACKING = "models aren't installed: pip install 'meve[models]'"
pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A module in the working directory, with a causal language model of two layers that reads and writes years."""
    torch = pytest.importorskip("torch", reason=LACKING)
    transformers = pytest.importorskip(
        "transformers", reason="transformers isn't installed: pip install 'meve[models]'"
    )
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    words = {word: n for n, word in enumerate(["[PAD]", "[UNK]", *map(str, range(1910, 1922))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^0-9]+"), "removed")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    fast.truncation_side = "left"
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(words), n_embd=32, n_layer=2, n_head=2, n_positions=80, bos_token_id=0, eos_token_id=0
    )
    folder = str(tmp_path / "model")
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    (tmp_path / "tiny_reader.py").write_text(READER.format(folder=folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "tiny_reader", raising=False)
    return "tiny_reader:answer"


def test_answers_of_a_language_model_are_measured(data, reader):
    to = data / "out"
    args = ["bench", "small-context", "--data", str(data), "--to", str(to), "--questions", "4", "--reader", reader]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    results = MemoryResults.load(to / "results.json")
    questions = read_wiki_dialogues(data, questions=4, seed=42, chat=experiment.CHAT)
    answer = sys.modules["tiny_reader"].answer
    alone = results.value("2wiki, 2,048 tokens", ALONE, experiment.ANSWERED).value
    for name, strategy in ((name, STRATEGIES[name]) for name in (FULL, TRUNCATION)):
        contexts = [
            strategy.build_context(Dialogue.from_turns(t.turns), t.question.text, experiment.LIMIT) for t in questions
        ]
        recalls = [
            answer_recall(question, answer, context) for question, context in zip(questions, contexts, strict=True)
        ]
        recall = results.value("2wiki, 2,048 tokens", name, experiment.ANSWERED).value
        assert recall == pytest.approx(sum(recalls) / len(recalls))
        assert recall > alone
    text = (to / "report.md").read_text("utf-8")
    assert "reader tiny_reader:answer" in text
    assert "Token recall is of the reader's answers" in text
    assert re.search(rf"\| SLM only \(Gemma2\) \| 0.585 \| 0.427 \| 316 \| {alone:.3f} \| 0.000 \|", text)


def test_rows_of_models_are_empty_without_a_reader(data, tmp_path):
    to = tmp_path / "out"
    args = ["bench", "small-context", "--data", str(data), "--to", str(to), "--questions", "2"]
    assert CliRunner().invoke(app, args).exit_code == 0
    text = (to / "report.md").read_text("utf-8")
    assert "| SLM only (Gemma2) | 0.585 | 0.427 | 316 |  |" in text
    assert "no model having answered" in text
    assert "--reader" in text
    assert "seed 42" in text
