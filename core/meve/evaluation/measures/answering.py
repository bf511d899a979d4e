"""Does a system answer what can be answered?"""

from meve.evaluation.measures.base import SetMeasure
from meve.evaluation.measures.deciding import asked, decided, decision, precision, recall

_SOURCE = (
    "sufficiency of a context: Joren et al., Sufficient Context (2025); precision and recall of its being called so"
)

ANSWERING_PRECISION = SetMeasure(
    name="answering precision",
    meaning="of the questions that it would answer, the share that is answerable",
    source=_SOURCE,
    better="higher",
    part=decision,
    total=precision(answering=True),
    bears=decided(answering=True),
)
ANSWERING_RECALL = SetMeasure(
    name="answering recall",
    meaning="of the answerable questions, the share that it would answer",
    source=_SOURCE,
    better="higher",
    part=decision,
    total=recall(answering=True),
    bears=asked(answering=True),
)
