"""Estimates whether memories tell what a question asks, so that a question without an answer can be refused."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from meve.memory._recall.time_expressions import TimeWindow
from meve.routing._attribution import find_person, find_speaker, split_by_person
from meve.routing._base_forms import base_stem, base_stems
from meve.routing._groups import stems_with_groups
from meve.routing._topic import topic_stems
from meve.types import Candidate

READ = 50
"""The number of memories that are compared with the question, the best first."""
_LISTED = """
january february march april june july august september october november december monday tuesday wednesday thursday
friday saturday sunday up out off do about start current feel
"""
_PLAIN = frozenset(base_stem(word) for word in _LISTED.split())
"""Stems of words of questions that memories needn't repeat, as dates, which are those of the memories."""
_NAME = re.compile(r"(?<=[^\W\d_] )[A-Z][a-z]+")
_LIKELY = 0.5
_UNVERIFIED = 0.2
"""The weight of a memory that the verifier takes for no answer, beside 1.2 of one that it is sure of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFeatures:
    """How memories fit a question. Words weigh more, the fewer of the memories hold them. All rise with the fit."""

    verified: float
    """The highest probability, by the verifier, that a memory answers, in [0, 1]."""
    told: float
    """The largest share of the question's words that one memory tells about the person in question, in [0, 1]."""
    told_more: float
    """That share, minus the largest one that a memory tells about somebody else, in [-1, 1]. Without a named person,
    nobody else is told of."""
    verified_more: float
    """The same, with each memory's share multiplied by its probability plus 0.2."""
    known: float
    """The share of the question's words that any memory tells about the person."""
    names: float
    """The share of the question's names that any memory holds; 1 without names."""
    named: bool
    """Whether the question names one of several speakers alone."""


WEIGHTS: Mapping[bool, Mapping[str, float]] = {
    True: {"verified": 0.59, "told": 0.27, "told_more": 1.76, "verified_more": 1.14, "names": 0.07, "": -0.36},
    False: {
        "verified": 1.93, "told": 0.28, "told_more": 0.28, "verified_more": 1.25, "known": 0.68, "names": 0.32,
        "": -0.94,
    },
}  # fmt: skip
"""The weights where the question names a speaker, and elsewhere, each with the intercept under the empty name.
`recipes.routing.sufficiency` fitted them, and shifted the intercepts so that 0.5 refuses few questions with an answer.
"""


def estimate_sufficiency(features: EvidenceFeatures) -> float:
    """Return how likely memories tell what a question asks, in [0, 1].

    It is a logistic regression without negative weights, so that a better fit never lowers it.
    """
    weights = WEIGHTS[features.named]
    logit = sum(weight * (getattr(features, name) if name else 1.0) for name, weight in weights.items())
    return 1 / (1 + math.exp(-logit))


def explain_insufficiency(features: EvidenceFeatures) -> str:
    """Return why an estimate is low, in a sentence."""
    if features.told_more < 0:
        return "the memories that fit the question are about somebody else"
    if features.names < 1:
        return "no memory holds a name of the question"
    if features.verified < _LIKELY:
        return "by the verifier, no memory answers the question"
    return "no memory tells enough of what the question asks"


def measure_evidence(
    question: str, period: TimeWindow | None, candidates: Sequence[Candidate], *, support: str
) -> EvidenceFeatures:
    """Return how memories fit a question.

    Args:
        question: the question.
        period: the time that it names.
        candidates: the memories, best first.
        support: the name of the verifier's probability among the scores of a candidate.
    """
    read = candidates[:READ]
    person = find_person(question, [find_speaker(candidate) for candidate in read])
    stems = topic_stems(question, period) - set(base_stems(person))
    topic = {stem for stem in stems if stem not in _PLAIN and not stem.isdigit()} or stems
    parts = [[stems_with_groups(part) & topic for part in split_by_person(candidate, person)] for candidate in read]
    holders = Counter(stem for own, others in parts for stem in own | others)
    weights = {stem: math.log(1 + len(read) / (holders[stem] or 0.5)) for stem in topic}
    total = sum(weights.values()) or 1.0
    chances = [candidate.scores.get(support, 0.0) for candidate in read]
    own, others = [[sum(weights[stem] for stem in pair[side]) / total for pair in parts] for side in (0, 1)]
    best = [
        max((share * (_UNVERIFIED + chance) for share, chance in zip(shares, chances, strict=True)), default=0.0)
        for shares in (own, others)
    ]
    names = {base_stem(name.lower()) for name in _NAME.findall(question)} & topic
    return EvidenceFeatures(
        verified=max(chances, default=0.0),
        told=max(own, default=0.0),
        told_more=max(own, default=0.0) - max(others, default=0.0),
        verified_more=best[0] - best[1],
        known=sum(weights[stem] for stem in frozenset().union(*(pair[0] for pair in parts))) / total if topic else 1.0,
        names=sum(stem in holders for stem in names) / len(names) if names else 1.0,
        named=bool(person),
    )
