"""Does a system keep silent where nothing carries an answer?"""

from meve.evaluation.measures.base import SetMeasure
from meve.evaluation.measures.deciding import asked, decided, decision, precision, recall

_SOURCE = (
    "negative rejection: Chen et al., Benchmarking Large Language Models in Retrieval-Augmented Generation (2024), "
    "section 3; precision and recall of it"
)

ABSTENTION_PRECISION = SetMeasure(
    name="abstention precision",
    meaning="of the questions that it would not answer, the share that is unanswerable",
    source=_SOURCE,
    better="higher",
    part=decision,
    total=precision(answering=False),
    bears=decided(answering=False),
)
ABSTENTION_RECALL = SetMeasure(
    name="abstention recall",
    meaning="of the unanswerable questions, the share that it would not answer",
    source=_SOURCE,
    better="higher",
    part=decision,
    total=recall(answering=False),
    bears=asked(answering=False),
)
