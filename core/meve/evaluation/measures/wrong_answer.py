"""Does the prompt hold a false answer, where some passage gives one?"""

from meve.evaluation.answers import holds, normalised
from meve.evaluation.measures.base import Measure, each
from meve.evaluation.outcome import Outcome
from meve.evaluation.types import Question


def misled(question: Question, outcome: Outcome) -> float | None:
    """1 if the prompt has the words of a wrong answer that passages give, otherwise 0; None where none does."""
    wrong = [w for w in question.misleading if normalised(w)]
    if not wrong:
        return None
    text = normalised(outcome.handed.text)
    return float(any(holds(text, w) for w in wrong))


WRONG_ANSWER = Measure(
    name="wrong answer in context",
    meaning="share of the questions with a false answer in the prompt, where some passage gives one",
    source="the counterfactual passages of Chen et al., Benchmarking Large Language Models in Retrieval-Augmented "
    "Generation (2024), section 3; here of the prompt, no reader having answered",
    better="lower",
    values=each(misled),
)
