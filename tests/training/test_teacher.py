"""Test the targets that a teacher gives."""

from dataclasses import replace

import numpy as np
import pytest

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.testing.tiny_models import save_tiny_model
from recipes.verifier import teacher
from recipes.verifier.examples import Example

pytest.importorskip("sentence_transformers")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

WORDS = ("apple", "river", "stone", "cloud")
EXAMPLES = [
    Example(query=f"what is the {a}?", passage=f"the {b}", relevant=a == b, set="s", kind="paragraph", part="train")
    for a in WORDS
    for b in WORDS
]


def test_an_interrupted_scoring_gives_the_same_targets(tmp_path, monkeypatch):
    model = save_tiny_model(tmp_path / "model", words=WORDS)
    verifier = CrossEncoderVerifier.from_name(str(model), device="cpu")
    logits = verifier.score_pairs([(e.query, e.passage) for e in EXAMPLES])
    expected = (np.array([e.relevant for e in EXAMPLES]) + 1 / (1 + np.exp(-logits))) / 2

    monkeypatch.setattr(teacher, "CONFIG", replace(teacher.CONFIG, max_length=48))  # the tiny model's window
    monkeypatch.setattr(teacher, "BLOCK", 5)
    teacher.teach(EXAMPLES[:10], model, tmp_path / "scores")  # as if interrupted after the second block
    rest: list[int] = []
    monkeypatch.setattr(
        CrossEncoderVerifier, "score_pairs",
        lambda self, pairs, inner=CrossEncoderVerifier.score_pairs: rest.append(len(pairs)) or inner(self, pairs),
    )  # fmt: skip
    taught = teacher.teach(EXAMPLES, model, tmp_path / "scores")
    assert rest == [5, 1]
    assert [e.target for e in taught] == pytest.approx(expected, abs=1e-5)
    assert all(e.target > 0.5 for e in taught if e.relevant)
    assert all(e.target < 0.5 for e in taught if not e.relevant)
