"""Describe routed recalls and answers for whoever measures them; ids and scores only if content is wanted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from meve._telemetry import Value, count
from meve.memory._reports import describe_recall

if TYPE_CHECKING:
    from meve.routing._answering import RoutedAnswer
    from meve.routing._evidence import RoutedRecall


def describe_routed_recall(recall: "RoutedRecall", has_content: bool) -> Mapping[str, Value]:
    """Return the attributes of a routed recall."""
    routed: dict[str, Value] = {"meve.tier": str(recall.plan.tier), "meve.sufficient": recall.sufficient}
    return {**describe_recall(recall, has_content), **routed}


def describe_answer(answer: "RoutedAnswer", has_content: bool) -> Mapping[str, Value]:  # noqa: ARG001
    """Return the attributes of an answer, and count it."""
    attributes: dict[str, Value] = {"meve.tier": str(answer.steps[-1].plan.tier), "meve.abstained": answer.abstained}
    count("meve.answers", attributes)
    return {**attributes, "meve.escalations": answer.escalations}
