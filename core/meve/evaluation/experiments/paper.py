"""The MeVe paper's five modes, drawn again: its tables and figures beside what it published, and what it left out.

Source: MeVe (Ottem 2025), section 5 and appendix A. The corpus was the first 100 articles of a 2022 dump, split into
sentences; no list of questions, and no size or split of the HotpotQA subset, is published.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from meve.evaluation.datasets import ARTICLES, punkt, read_articles, read_set, wikipedia
from meve.evaluation.experiments.common import QUESTIONS, SEED, conduct, made_parts
from meve.evaluation.results import Results
from meve.evaluation.run import Progress, sample
from meve.evaluation.systems import Build, phases
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig

MODES: dict[str, Build] = {
    name: phases(mode=name) for name in ("no_rag", "standard_rag", "no_verification", "no_fallback", "full")
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
"""Means that the paper states in numbers, by set, mode and quantity. Its other bars have none."""

PAPER_EMBEDDER = "sentence-transformers/multi-qa-mpnet-base-dot-v1"
PAPER_VERIFIER = "cross-encoder/ms-marco-MiniLM-L-6-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What to measure, and where the results go."""

    data: Path
    to: Path
    cache: Path
    questions: int | None = QUESTIONS
    """Of HotpotQA; the list for Wikipedia is asked whole."""
    seed: int = SEED
    embedder: str | None = None
    verifier: str | None = None
    since: Results | None = None
    """Earlier results that these are going to be compared with: refused at once if of other data."""


def paper(wanted: Paper, progress: Progress | None = None) -> Results:
    """Run it, or go on with it.

    Raises:
        DatasetError: a set that is absent, cut short or of another format.
        EvaluationError: the folder holds a run with other settings.
        ModelError: a model that can't be had; the gpt2 table among them.
    """
    articles = wanted.data / ARTICLES
    split = punkt([article.text for article in read_articles(articles)])
    sets = [wikipedia(articles, split), read_set("hotpotqa", wanted.data)]
    parts = made_parts(
        embedder=wanted.embedder,
        verifier=wanted.verifier,
        tokens="gpt2",
        config=RetrieverConfig.paper(),
        cache=wanted.cache,
    )

    def asked(chosen: EvaluationSet) -> dict[str, tuple[Build, list[Question]]]:
        questions = sample(chosen.questions, None if chosen.name == "wikipedia" else wanted.questions, wanted.seed)
        return {name: (build, questions) for name, build in MODES.items()}

    return conduct(
        "paper",
        sets,
        asked,
        parts,
        to=wanted.to,
        seed=wanted.seed,
        settings={"questions": wanted.questions},
        against="standard_rag",
        since=wanted.since,
        progress=progress,
    )


def stand_ins(results: Results, name: str | None = None) -> list[str]:
    """What stands in for something that the paper used, a line each; for one of its sets, or for both."""
    said = []
    if name != "hotpotqa":
        said += [
            "articles: the first 100 of a 2016 dump of the English Wikipedia, where the paper had one of 2022",
            "questions over them: a list of 50 of our own, since none is published",
            "sentences: NLTK's Punkt, trained on these articles themselves, since its published table needs a download",
        ]
    if name != "wikipedia":
        said.append(
            "HotpotQA: validation questions of the distractor setting, over all of their paragraphs as they are; the "
            "paper names no subset and no chunking"
        )
    said.append(
        f"fallback: at most {results.settings['config']['fallback_k']} passages, since the paper gives no number"
    )
    if Path(results.settings["embedder"]).name != Path(PAPER_EMBEDDER).name:
        said.append(f"embedder: {results.settings['embedder']}, where the paper had {PAPER_EMBEDDER}")
    if Path(results.settings["verifier"]).name != Path(PAPER_VERIFIER).name:
        said.append(f"verifier: {results.settings['verifier']}, where the paper had {PAPER_VERIFIER}")
    return said
