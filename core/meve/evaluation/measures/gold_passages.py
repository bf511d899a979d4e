"""Measures of the gold passages, and of their sentences, in the prompt."""

from meve.evaluation.measures._measure import Measure, each, has_gold
from meve.evaluation.types import Question, QuestionOutcome, normalize_space


def passage_recall(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return the share of the gold passages in the prompt; None for questions without gold or without an answer."""
    if not has_gold(question):
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


def passage_precision(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return the share of the prompt's passages that are gold; 0 for an empty prompt.

    A duplicate doesn't count as gold. None for questions without gold or without an answer.
    """
    if not has_gold(question):
        return None
    return len(question.gold.keys() & set(outcome.ids)) / len(outcome.ids) if outcome.ids else 0.0


def has_any_gold(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return 1 if a gold passage is in the prompt, otherwise 0; None where `passage_recall` is None."""
    share = passage_recall(question, outcome)
    return None if share is None else float(share > 0.0)


def has_all_gold(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return 1 if all gold passages are in the prompt, otherwise 0; None where `passage_recall` is None."""
    share = passage_recall(question, outcome)
    return None if share is None else float(share == 1.0)


def sentence_recall(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return the share of the gold sentences in the prompt, whitespace aside; None without gold sentences."""
    if not question.sentences or not question.answerable:
        return None
    text = normalize_space(outcome.output.text)
    return sum(normalize_space(s.text) in text for s in question.sentences) / len(question.sentences)


def fact_recovery(question: Question, outcome: QuestionOutcome) -> float | None:
    """Return sentence recall, or passage recall for questions without gold sentences; None where it doesn't apply."""
    return sentence_recall(question, outcome) if question.sentences else passage_recall(question, outcome)


MEASURES = (
    Measure(
        name="supporting recall",
        meaning="share of the gold passages that are in the prompt",
        source="recall of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
        values=each(passage_recall),
    ),
    Measure(
        name="supporting precision",
        meaning="share of the prompt's passages that are gold; an empty prompt counts as 0",
        source="precision of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
        values=each(passage_precision),
    ),
    Measure(
        name="any gold",
        meaning="share of the questions with a gold passage in the prompt",
        source="top-k retrieval accuracy: Karpukhin et al., Dense Passage Retrieval (2020), section 5, by labels",
        values=each(has_any_gold),
    ),
    Measure(
        name="all gold",
        meaning="share of the questions whose gold passages are all in the prompt",
        source="paragraph exact match: Asai et al., Learning to Retrieve Reasoning Paths over Wikipedia Graph (2020)",
        values=each(has_all_gold),
    ),
    Measure(
        name="sentence recall",
        meaning="share of the gold sentences that are in the prompt",
        source="recall of supporting facts: Yang et al., HotpotQA (2018), section 5",
        values=each(sentence_recall),
    ),
    Measure(
        name="fact recovery",
        meaning="share of the key facts (gold sentences, or gold passages without any) that are in the prompt",
        source="the query-aware memory paper: key facts in the prompt over key facts needed",
        values=each(fact_recovery),
    ),
)
