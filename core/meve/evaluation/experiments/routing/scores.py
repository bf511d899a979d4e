"""The figures of the routing experiment: evidence per token, the router's choices, and abstention."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from meve.evaluation.experiments.memory.memory_results import Curve, Figure
from meve.evaluation.experiments.routing.cases import RoutingCase
from meve.evaluation.experiments.routing.systems import BASELINE, ORACLE, ROUTED
from meve.evaluation.statistics import clustered_interval, share_interval
from meve.evaluation.types import QuestionOutcome
from meve.routing import RoutePlan, Tier

COMPARED = 500
"""The budget at which systems are compared."""
EVIDENCE, DIFFERENCE, TYPES, ROUTES, MISROUTED, ABSTENTION = (
    "all evidence", "all evidence, difference", "question types", "routes", "misrouted", "abstention",
)  # fmt: skip
ALL, ANY, TOKENS = "all evidence", "any evidence", "tokens"
OWN_RECALL, OWN_TOKENS = f"{ROUTED} @ own, {ALL}", f"{ROUTED} @ own, {TOKENS}"
FLAT_RECALL = f"{BASELINE} @ {COMPARED}, {ALL}"
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

Find = Callable[[str, str], QuestionOutcome | None]
"""Returns the outcome of a run, by its label, for a question, by its id."""


@dataclass(slots=True)
class Scores:
    """Collects the figures of one half of a set.

    Args:
        name: the name of the half, for headings.
        cases: its questions.
        find: finds outcomes.
        seed: seed of the intervals.
    """

    name: str
    cases: Sequence[RoutingCase]
    find: Find
    seed: int
    figures: list[Figure] = field(default_factory=list, init=False)
    curves: list[Curve] = field(default_factory=list, init=False)

    @property
    def answerable(self) -> list[RoutingCase]:
        """The questions with evidence."""
        return [case for case in self.cases if case.evidence]

    def score_evidence(self, labels: Sequence[str]) -> None:
        """Add the share of questions with all and with any evidence in the context, and the tokens, of every run."""
        cases = self.answerable
        if not cases:
            return
        base = {label: self._has_all(cases, label) for label in labels}
        for label in labels:
            system, budget = label.split(" @ ")
            self._add(EVIDENCE, system, f"{ALL} @ {budget}", cases, base[label])
        for label in labels:
            system, budget = label.split(" @ ")
            self._add(ANY, system, f"{ANY} @ {budget}", cases, [float(bool(self._found(c, label))) for c in cases])
            self._add(TOKENS, system, f"{TOKENS} @ {budget}", cases, self._tokens(cases, label))
        for label in labels:
            system, budget = label.split(" @ ")
            for other in (budget, str(COMPARED)):
                against = base.get(f"{BASELINE} @ {other}")
                if system != BASELINE and against is not None:
                    gains = [ours - theirs for ours, theirs in zip(base[label], against, strict=True)]
                    self._add(DIFFERENCE, system, f"@ {budget} - {BASELINE} @ {other}", cases, gains)

    def score_types(self) -> None:
        """Add recall of the router and of the flat hybrid, and the router's tokens, by question type."""
        own, equal, flat = f"{ROUTED} @ own", f"{ROUTED} @ {COMPARED}", f"{BASELINE} @ {COMPARED}"
        for type, cases in sorted(_by_type(self.answerable).items()):
            self._add(TYPES, type, FLAT_RECALL, cases, self._has_all(cases, flat))
            self._add(TYPES, type, f"{equal}, {ALL}", cases, self._has_all(cases, equal))
            self._add(TYPES, type, OWN_RECALL, cases, self._has_all(cases, own))
            self._add(TYPES, type, OWN_TOKENS, cases, self._tokens(cases, own))

    def score_routes(self, plans: Mapping[str, RoutePlan]) -> None:
        """Add the router's accuracy and the frequency of tiers, by question type."""
        for type, cases in {"all types": self.answerable, **_by_type(self.cases)}.items():
            chosen = [plans[case.id].tier for case in cases]
            if cases and all(case.evidence for case in cases):
                order = list(Tier)
                right = [tier == case.tier for case, tier in zip(cases, chosen, strict=True)]
                enough = [
                    case.tier is not None and order.index(tier) >= order.index(case.tier)
                    for case, tier in zip(cases, chosen, strict=True)
                ]
                self._add_share(ROUTES, type, "right", right)
                self._add_share(ROUTES, type, "right or heavier", enough)
            for tier in Tier:
                self._add_share(ROUTES, type, str(tier), [each is tier for each in chosen])

    def score_misrouted(self, plans: Mapping[str, RoutePlan]) -> None:
        """Add recall and tokens of the questions sent to another tier than their type's, there and in their type's."""
        order = list(Tier)
        wrong: dict[str, list[RoutingCase]] = {"to a lighter tier": [], "to a heavier tier": []}
        for case in self.answerable:
            chosen = plans[case.id].tier
            if case.tier is not None and chosen is not case.tier:
                is_lighter = order.index(chosen) < order.index(case.tier)
                wrong["to a lighter tier" if is_lighter else "to a heavier tier"].append(case)
        for name, cases in wrong.items():
            for system in (ROUTED, ORACLE) if cases else ():
                label = f"{system} @ own"
                self._add(MISROUTED, name, f"{label}, {ALL}", cases, self._has_all(cases, label))
                self._add(MISROUTED, name, f"{label}, {TOKENS}", cases, self._tokens(cases, label))

    def score_abstention(self, plans: Mapping[str, RoutePlan]) -> None:
        """Add the share of questions that the evidence alone refuses, with and without an answer, by threshold."""
        label = f"{ROUTED} @ own"
        for name, cases in {
            "no answer in the memory": [case for case in self.cases if not case.evidence],
            "answerable": self.answerable,
            "answerable, all evidence found": [c for c in self.answerable if self._has_all([c], label) == [1.0]],
        }.items():
            if not cases:
                continue
            outcomes = [self._outcome(case, label) for case in cases]
            refused = [
                plans[c.id].needs_memory and not o.output.sufficient for c, o in zip(cases, outcomes, strict=True)
            ]
            self._add_share(ABSTENTION, name, "refused", refused)
            support = [o.output.probabilities.get("sufficiency", 1.0) for o in outcomes]
            shares = {t: sum(s < t for s in support) / len(support) for t in THRESHOLDS}
            self.curves.append(
                Curve(
                    experiment=f"{self.name}: {ABSTENTION}", system=name, measure="share refused", along="threshold",
                    x=tuple(shares), y=tuple(round(share, 4) for share in shares.values()),
                )
            )  # fmt: skip

    def _outcome(self, case: RoutingCase, label: str) -> QuestionOutcome:
        outcome = self.find(label, case.id)
        assert outcome is not None, f"no outcome of {label} for {case.id}"
        return outcome

    def _found(self, case: RoutingCase, label: str) -> frozenset[str]:
        return case.evidence.intersection(self._outcome(case, label).ids)

    def _has_all(self, cases: Sequence[RoutingCase], label: str) -> list[float]:
        return [
            float(bool(found) if case.one_suffices else found == case.evidence)
            for case, found in ((case, self._found(case, label)) for case in cases)
        ]

    def _tokens(self, cases: Sequence[RoutingCase], label: str) -> list[float]:
        return [float(self._outcome(case, label).output.tokens) for case in cases]

    def _add(
        self, section: str, system: str, measure: str, cases: Sequence[RoutingCase], values: Sequence[float]
    ) -> None:
        interval = clustered_interval(values, [case.unit for case in cases], seed=self.seed)
        self.figures.append(
            Figure(experiment=f"{self.name}: {section}", system=system, measure=measure, interval=interval, share=False)
        )

    def _add_share(self, section: str, system: str, measure: str, values: Sequence[bool]) -> None:
        if values:
            interval = share_interval(sum(values), len(values))
            self.figures.append(
                Figure(
                    experiment=f"{self.name}: {section}", system=system, measure=measure, interval=interval, share=True
                )
            )


def _by_type(cases: Sequence[RoutingCase]) -> dict[str, list[RoutingCase]]:
    types: dict[str, list[RoutingCase]] = {}
    for case in cases:
        types.setdefault(case.type if case.evidence else f"{case.type}, no answer", []).append(case)
    return types
