"""The trained classifier of questions: a logistic regression over rules and the static embedder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self, get_args

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.errors import ModelError, wrap_errors
from meve.ports import Embedder
from meve.routing._plan import Intent
from meve.routing._rules import Finding
from meve.types import FloatArray

CLASSIFIER = "meve-router-1"
"""The name of the classifier that ships."""
FOLDER = Path(__file__).parent / CLASSIFIER
"""The folder of its weights and its card."""
FILE = "weights.npz"
_OPENING = 4
"""The first words of a question, which tell much of what it is after."""
_MOST = 2_000
"""The first characters of a question that are read."""


_RULE_WEIGHT = 3.0
"""The value of the feature of a rule that tells, so that the penalty of large weights hardly touches it."""
_RULED: tuple[Intent | None, ...] = (*get_args(Intent), None)


def make_features(questions: Sequence[str], findings: Sequence[Finding], embedder: Embedder) -> FloatArray:
    """Return the vectors of questions and of their first words, and what rules found, side by side, shape (n, m)."""
    texts = [question[:_MOST] for question in questions]
    openings = [" ".join(text.split()[:_OPENING]) for text in texts]
    vectors = embedder.embed_passages([*texts, *openings])
    ruled = np.array([[finding.intent == intent for intent in _RULED] for finding in findings], dtype=np.float32)
    return np.hstack([vectors[: len(texts)], vectors[len(texts) :], _RULE_WEIGHT * ruled])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntentClassifier:
    """Estimates what a question is after."""

    embedder: Embedder
    intents: tuple[Intent, ...]
    weights: FloatArray
    """Shape (number of features, number of intents)."""
    intercepts: FloatArray
    """Shape (number of intents,)."""

    @classmethod
    def load(cls, folder: Path, embedder: Embedder) -> Self:
        """Read what `save` wrote.

        Raises:
            ModelError: the file is missing, damaged, or of another embedder.
        """
        with wrap_errors(ModelError, f"reading {folder / FILE}"), np.load(folder / FILE) as arrays:
            intents = tuple(map(str, arrays["intents"]))
            weights = arrays["weights"].astype(np.float32)
            intercepts = arrays["intercepts"].astype(np.float32)
            name = str(arrays["embedder"])
        expected = (2 * embedder.dimension + len(_RULED), len(intents))
        if weights.shape != expected or set(intents) - set(get_args(Intent)) or name != embedder.name:
            raise ModelError(
                f"{folder / FILE} must hold weights of {embedder.name!r}, got {name!r}: install meve again"
            )
        return cls(embedder=embedder, intents=intents, weights=weights, intercepts=intercepts)  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        """Write the weights in half precision."""
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            folder / FILE, weights=self.weights.astype(np.float16), intercepts=self.intercepts.astype(np.float16),
            intents=np.array(self.intents), embedder=np.array(self.embedder.name),
        )  # fmt: skip

    def classify(self, question: str, finding: Finding) -> Mapping[Intent, float]:
        """Return the probability of each intent of a question, given what a rule found; they sum up to 1.

        Raises:
            ModelError: the embedder failed.
        """
        logits = (make_features([question], [finding], self.embedder) @ self.weights + self.intercepts)[0]
        powers = np.exp(logits - logits.max())
        return dict(zip(self.intents, (powers / powers.sum()).tolist(), strict=True))


@cache
def load_classifier() -> IntentClassifier:
    """Load the classifier that ships.

    Raises:
        ModelError: its files are damaged or missing.
    """
    return IntentClassifier.load(FOLDER, resolve_embedder("static"))
