"""Detects contradictions by a model of natural language inference. Needs the extra `models`."""

from typing import TYPE_CHECKING, Self

import numpy as np

from meve._fork_safety import ForkSafeLock
from meve.components._model_errors import map_load_errors
from meve.errors import ConfigurationError, ModelError, missing_extra, wrap_errors
from meve.memory._contradiction.rules import Contradiction, RuleContradiction, have_same_subject
from meve.memory._contradiction.statements import parse_statement

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_LABEL = "contradiction"
_ADVICE = "give a folder that holds the model, or leave contradictions to the rules"


class NliContradiction:
    """Asks a cross-encoder with the label `contradiction`, in both directions.

    Such models often call statements about different subjects contradictions, so the model is asked only about
    statements that share most of their words. Contradictions that the rules find don't need the model.

    Args:
        model: a loaded model with several labels.
        threshold: minimum probability of a contradiction, in [0, 1]; the lower one of both directions counts.
        rules: asked before the model; `RuleContradiction` if None.

    Raises:
        ModelError: the model has no such label.
        ConfigurationError: a threshold out of range.
    """

    def __init__(self, model: "CrossEncoder", *, threshold: float = 0.8, rules: Contradiction | None = None) -> None:
        if not 0 <= threshold <= 1:
            raise ConfigurationError(f"threshold must be between 0 and 1, got {threshold!r}")
        labels = {int(n): str(name).lower() for n, name in (getattr(model.config, "id2label", None) or {}).items()}
        matching = [n for n, name in labels.items() if name == _LABEL]
        if len(labels) < 2 or not matching:
            known = ", ".join(labels.values()) or "unknown"
            raise ModelError(
                f"the model's labels are {known}, and none is {_LABEL!r}: use a model of natural language inference"
            )
        self._model = model
        self._lock = ForkSafeLock()
        self._column = matching[0]
        self._threshold = threshold
        self._rules = rules or RuleContradiction()

    @classmethod
    def load(cls, name: str, *, threshold: float = 0.8, local_files_only: bool = False) -> Self:
        """Load a model by its hub name or folder, such as `cross-encoder/nli-deberta-v3-small`.

        Raises:
            MissingExtraError: sentence-transformers isn't installed.
            ModelNotFoundError: no model of that name is available.
            ModelError: the model can't be loaded, or has no label `contradiction`.
        """
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as cause:
            raise missing_extra("sentence_transformers", "models", f"the inference model {name!r}") from cause
        with map_load_errors(name, _ADVICE):
            return cls(CrossEncoder(name, local_files_only=local_files_only), threshold=threshold)

    def find_difference(self, one: str, other: str) -> str:
        """Return how the statements differ, in a few words; empty if they don't or have different subjects.

        Raises:
            ModelError: the model failed.
        """
        by_rule = self._rules.find_difference(one, other)
        if by_rule or not have_same_subject(parse_statement(one), parse_statement(other)):
            return by_rule
        with self._lock, wrap_errors(ModelError, "running the inference model"):
            scores = self._model.predict([(one, other), (other, one)], apply_softmax=True, show_progress_bar=False)
        probability = float(np.asarray(scores)[:, self._column].min())
        return f"claim: contradicted at {probability:.2f}" if probability >= self._threshold else ""
