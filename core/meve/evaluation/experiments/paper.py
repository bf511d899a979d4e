"""The paper experiment: the MeVe paper's five modes, beside the figures that it published.

Source: MeVe (Ottem 2025), section 5 and appendix A. The corpus was the first 100 articles of a 2022 dump, split into
sentences; no list of questions, and no size or split of the HotpotQA subset, is published.
"""

from collections.abc import Mapping
from pathlib import Path

from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import ARTICLES, read_articles, read_set, read_wikipedia, train_sentence_splitter
from meve.evaluation.experiments._experiment import RetrievalOptions, load_components, run_experiment
from meve.evaluation.results import Results
from meve.evaluation.systems import SystemFactory, pipeline_system
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig
from meve.types import StageProgress

MODES: dict[str, SystemFactory] = {
    name: pipeline_system(mode=name) for name in ("no_rag", "standard_rag", "no_verification", "no_fallback", "full")
}

PUBLISHED: Mapping[tuple[str, str, str], float] = {
    ("wikipedia", "no_rag", "tokens"): 0.0,
    ("wikipedia", "standard_rag", "tokens"): 188.8,
    ("wikipedia", "full", "tokens"): 79.8,
    ("wikipedia", "no_rag", "seconds"): 0.0,
    ("wikipedia", "standard_rag", "seconds"): 1.12,
    ("wikipedia", "full", "seconds"): 1.22,
    ("hotpotqa", "standard_rag", "tokens"): 308.6,
    ("hotpotqa", "no_verification", "tokens"): 314.0,
    ("hotpotqa", "full", "tokens"): 78.5,
    ("hotpotqa", "standard_rag", "seconds"): 1.80,
    ("hotpotqa", "full", "seconds"): 1.98,
}
"""The means that the paper states as numbers, by set, mode and quantity."""

PAPER_EMBEDDER = "sentence-transformers/multi-qa-mpnet-base-dot-v1"
PAPER_VERIFIER = "cross-encoder/ms-marco-MiniLM-L-6-v2"


def run_paper(options: RetrievalOptions, progress: StageProgress = lambda *_: None) -> Results:
    """Run the experiment, or resume it; `questions` counts those of HotpotQA, since all on Wikipedia are asked.

    Raises:
        DatasetError: a set that is absent, truncated or of another format.
        EvaluationError: the folder holds a run with other settings.
        ModelError: a model, or the table of the gpt2 tokenizer, that can't be loaded.
    """
    articles = options.data / ARTICLES
    split = train_sentence_splitter([article.text for article in read_articles(articles)])
    datasets = [read_wikipedia(articles, split), read_set("hotpotqa", options.data)]
    components = load_components(options, RetrieverConfig.paper(), tokens="gpt2")

    def select(dataset: EvaluationSet) -> dict[str, tuple[SystemFactory, list[Question]]]:
        count = None if dataset.name == "wikipedia" else options.questions
        questions = sample_questions(dataset.questions, count, options.seed)
        return {name: (factory, questions) for name, factory in MODES.items()}

    return run_experiment(
        "paper",
        datasets,
        select,
        components,
        options,
        settings={"questions": options.questions},
        against="standard_rag",
        progress=progress,
    )


def describe_stand_ins(results: Results, name: str | None = None) -> list[str]:
    """Return a line for each model or data set that replaces the paper's, for one of its sets or for both."""
    lines = []
    if name != "hotpotqa":
        lines += [
            "articles: the first 100 of a 2016 dump of the English Wikipedia, where the paper had one of 2022",
            "questions over them: a list of 50 of our own, since none is published",
            "sentences: NLTK's Punkt, trained on these articles themselves, since its published table needs a download",
        ]
    if name != "wikipedia":
        lines.append(
            "HotpotQA: validation questions of the distractor setting, over all of their paragraphs as they are; the "
            "paper names no subset and no chunking"
        )
    lines.append(
        f"fallback: at most {results.settings['config']['fallback_k']} passages, since the paper gives no number"
    )
    if Path(results.settings["embedder"]).name != Path(PAPER_EMBEDDER).name:
        lines.append(f"embedder: {results.settings['embedder']}, where the paper had {PAPER_EMBEDDER}")
    if Path(results.settings["verifier"]).name != Path(PAPER_VERIFIER).name:
        lines.append(f"verifier: {results.settings['verifier']}, where the paper had {PAPER_VERIFIER}")
    return lines
