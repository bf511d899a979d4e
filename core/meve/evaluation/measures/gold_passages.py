"""Measures of the gold passages, and of their sentences, in the prompt."""

from meve.evaluation.measures._measure import Measure, each, has_gold
from meve.evaluation.types import Question, QuestionOutcome, normalize_space


def passage_recall(question: Question, outcome: QuestionOutcome) -> float:
    """Return the share of the gold passages in the prompt."""
    return len(question.gold.keys() & set(outcome.ids)) / len(question.gold)


def passage_precision(question: Question, outcome: QuestionOutcome) -> float:
    """Return the share of the prompt's passages that are gold; 0 for an empty prompt. A duplicate isn't gold."""
    return len(question.gold.keys() & set(outcome.ids)) / len(outcome.ids) if outcome.ids else 0.0


def has_all_gold(question: Question, outcome: QuestionOutcome) -> float:
    """Return 1 if all gold passages are in the prompt, otherwise 0."""
    return float(question.gold.keys() <= set(outcome.ids))


def has_sentences(question: Question) -> bool:
    """Return whether the question is answerable and has gold sentences."""
    return bool(question.sentences) and question.answerable


def sentence_recall(question: Question, outcome: QuestionOutcome) -> float:
    """Return the share of the gold sentences in the prompt, whitespace aside."""
    text = normalize_space(outcome.output.text)
    return sum(normalize_space(s.text) in text for s in question.sentences) / len(question.sentences)


def has_facts(question: Question) -> bool:
    """Return whether the question is answerable and has gold sentences or gold passages."""
    return has_sentences(question) or has_gold(question)


def fact_recovery(question: Question, outcome: QuestionOutcome) -> float:
    """Return sentence recall, or passage recall for a question without gold sentences."""
    return sentence_recall(question, outcome) if question.sentences else passage_recall(question, outcome)


MEASURES = (
    Measure(
        name="supporting recall",
        meaning="share of the gold passages that are in the prompt",
        source="recall of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
        values=each(passage_recall, has_gold),
    ),
    Measure(
        name="supporting precision",
        meaning="share of the prompt's passages that are gold; an empty prompt counts as 0",
        source="precision of a set: van Rijsbergen, Information Retrieval (1979), chapter 7",
        values=each(passage_precision, has_gold),
    ),
    Measure(
        name="any gold",
        meaning="share of the questions with a gold passage in the prompt",
        source="top-k retrieval accuracy: Karpukhin et al., Dense Passage Retrieval (2020), section 5, by labels",
        values=each(lambda question, outcome: float(passage_recall(question, outcome) > 0), has_gold),
    ),
    Measure(
        name="all gold",
        meaning="share of the questions whose gold passages are all in the prompt",
        source="paragraph exact match: Asai et al., Learning to Retrieve Reasoning Paths over Wikipedia Graph (2020)",
        values=each(has_all_gold, has_gold),
    ),
    Measure(
        name="sentence recall",
        meaning="share of the gold sentences that are in the prompt",
        source="recall of supporting facts: Yang et al., HotpotQA (2018), section 5",
        values=each(sentence_recall, has_sentences),
    ),
    Measure(
        name="fact recovery",
        meaning="share of the key facts (gold sentences, or gold passages without any) that are in the prompt",
        source="the query-aware memory paper: key facts in the prompt over key facts needed",
        values=each(fact_recovery, has_facts),
    ),
)
