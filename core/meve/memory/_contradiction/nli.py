"""Contradiction as a model of natural language inference tells it, in place of rules. Needs the extra `models`."""

import threading
from typing import TYPE_CHECKING, Self

import numpy as np

from meve.components._model_errors import loading
from meve.errors import ConfigurationError, ModelError, foreign, missing_extra
from meve.memory._contradiction.rules import Contradiction, RuleContradiction, same_subject, taken_apart

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

LABEL = "contradiction"
CHOICES = "give a folder that holds the model, or leave contradictions to the rules"


class NliContradiction:
    """Asks a cross-encoder that knows `contradiction` among its labels, both ways round.

    Such models often call statements of different subjects contradictions too. So it is asked only about statements
    that share most of their words; what the rules find stands without it.

    Args:
        model: loaded, with several labels.
        threshold: the probability from which on it counts, in [0, 1]; of the two ways round the lower one decides.
        rules: asked first.

    Raises:
        ModelError: the model has no label of that name.
        ConfigurationError: a threshold out of range.
    """

    def __init__(self, model: "CrossEncoder", *, threshold: float = 0.8, rules: Contradiction | None = None) -> None:
        if not 0 <= threshold <= 1:
            raise ConfigurationError(f"the threshold is {threshold!r}: give a probability, from 0 to 1")
        named = getattr(model.config, "id2label", None) or {}
        labels = {int(n): str(name).lower() for n, name in named.items()}
        found = [n for n, name in labels.items() if name == LABEL]
        if len(labels) < 2 or not found:
            had = ", ".join(labels.values()) or "unknown"
            raise ModelError(
                f"the model's labels are {had}, and none is {LABEL!r}: give one made for natural language inference"
            )
        self._model = model
        self._lock = threading.Lock()
        self._at = found[0]
        self._threshold = threshold
        self._rules = rules or RuleContradiction()

    @classmethod
    def load(cls, name: str, *, threshold: float = 0.8, local_files_only: bool = False) -> Self:
        """A model by its hub name or folder, such as `cross-encoder/nli-deberta-v3-small`.

        Raises:
            MissingExtraError: sentence-transformers isn't installed.
            ModelNotFoundError: no model of that name in reach.
            ModelError: it can't be loaded, or knows no contradiction.
        """
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as cause:
            raise missing_extra("sentence_transformers", "models", f"the model of inference {name!r}") from cause
        with loading(name, CHOICES):
            return cls(CrossEncoder(name, local_files_only=local_files_only), threshold=threshold)

    def between(self, one: str, other: str) -> str:
        """In what two statements differ; empty where they don't, or are of different subjects.

        Raises:
            ModelError: the model failed.
        """
        by_rule = self._rules.between(one, other)
        if by_rule or not same_subject(taken_apart(one), taken_apart(other)):
            return by_rule
        with self._lock, foreign(ModelError, "asking the model of inference"):
            found = self._model.predict([(one, other), (other, one)], apply_softmax=True, show_progress_bar=False)
        probability = float(np.asarray(found)[:, self._at].min())
        return f"claim: contradicted at {probability:.2f}" if probability >= self._threshold else ""
