"""Fits the classifier of questions that ships with the router, and measures it on questions that it wasn't fitted to.

    python -m recipes.routing.fit --to core/meve/routing/meve-router-1

The questions were written for this project (`questions.txt`); no evaluation set is among them. A line stands for
several questions: one is made for each choice of the alternatives in braces, at most eight of a line. The measures are
those of ten folds, with all questions of a line in one fold.
"""

import argparse
import itertools
import random
import re
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from meve.components.embedders import resolve_embedder
from meve.routing._classifier import IntentClassifier, make_features
from meve.routing._plan import TIERS, Intent
from meve.routing._router import sum_up
from meve.routing._rules import find_intent
from meve.routing.config import RouterConfig

QUESTIONS = Path(__file__).with_name("questions.txt")
SEED = 5
EACH = 8
"""The most questions that are made of a line."""
FOLDS = 10
FACTS = 3.0
"""The weight of a line of facts, since most questions of users ask for one fact; other lines weigh 1."""
_CHOICES = re.compile(r"\{([^{}]*)\}")


class Example(NamedTuple):
    """A question, what it is after, and the number of its line."""

    question: str
    intent: Intent
    line: int


def read_examples(path: Path = QUESTIONS) -> list[Example]:
    """Return the questions of a file, in its order."""
    draw = random.Random(SEED)
    intents: tuple[Intent, ...] = get_args(Intent)
    examples, intent = [], intents[0]
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith("#"):
            named = line.removeprefix("#").strip()
            assert named in intents, f"{path}:{number}: unknown intent {named!r}"
            intent = intents[intents.index(named)]
        elif line.strip():
            examples += [Example(text, intent, number) for text in expand(line, draw)]
    return examples


def expand(line: str, draw: random.Random) -> list[str]:
    """Return at most `EACH` of the questions that a line stands for."""
    choices = [match.split("|") for match in _CHOICES.findall(line)]
    frame = _CHOICES.sub("{}", line)
    every = list(itertools.product(*choices))
    chosen = draw.sample(every, min(EACH, len(every)))
    return [" ".join(frame.format(*each).split()).replace(" ?", "?").replace(" .", ".") for each in chosen]


def fit(features: np.ndarray, examples: list[Example], strength: float) -> LogisticRegression:
    """Return a logistic regression in which the questions of a line share its weight."""
    lines = [example.line for example in examples]
    weights = np.array([(FACTS if e.intent == "fact" else 1.0) / lines.count(e.line) for e in examples])
    weights *= len(weights) / weights.sum()
    model = LogisticRegression(C=strength, max_iter=2_000)
    return model.fit(features, [example.intent for example in examples], sample_weight=weights)


def measure(features: np.ndarray, examples: list[Example], strength: float) -> dict[str, float]:
    """Return shares of right intents and tiers on held-out lines, by the classifier and by the rules alone."""
    hits: dict[str, list[bool]] = {"intent": [], "tier": [], "tier, where it is sure": [], "tier by rules alone": []}
    groups = [example.line for example in examples]
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(features, groups=groups):
        model = fit(features[train], [examples[i] for i in train], strength)
        for i, row in zip(test, model.predict_proba(features[test]), strict=True):
            classified = dict(zip(model.classes_, row.tolist(), strict=True))
            wanted = TIERS[examples[i].intent]
            chances, _ = sum_up(classified)
            best = max(chances, key=chances.__getitem__)
            hits["intent"].append(max(classified, key=classified.__getitem__) == examples[i].intent)
            hits["tier"].append(best is wanted)
            if chances[best] >= RouterConfig().min_confidence:
                hits["tier, where it is sure"].append(best is wanted)
            hits["tier by rules alone"].append(TIERS[find_intent(examples[i].question).intent or "fact"] is wanted)
    return {name: float(np.mean(values)) for name, values in hits.items()}


def main() -> None:
    """Fit and save the classifier, and print its measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, help="the folder of the weights")
    parser.add_argument("--strength", type=float, default=1.0, help="the inverse of the penalty of large weights")
    options = parser.parse_args()
    examples, embedder = read_examples(), resolve_embedder("static")
    questions = [example.question for example in examples]
    features = make_features(questions, [find_intent(question) for question in questions], embedder)
    for name, value in measure(features, examples, options.strength).items():
        print(f"{name}: {value:.3f}")
    model = fit(features, examples, options.strength)
    IntentClassifier(
        embedder=embedder,
        intents=tuple(model.classes_),
        weights=model.coef_.T.astype(np.float32),
        intercepts=model.intercept_.astype(np.float32),
    ).save(options.to)
    print(f"{len(examples)} questions of {len({example.line for example in examples})} lines")


if __name__ == "__main__":
    main()
