"""Tagging by policy, and contradictions by a model."""

import json
from datetime import timedelta

import pytest

from meve.components.embedders import resolve_embedder
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, PolicyError
from meve.memory import GovernedMemory, Policy, PolicyTagger, RuleUpdateJudge

TAGGING = {
    "tagging": {
        "tags": {
            "Gardening": "growing plants, soil, watering, sun, tomatoes",
            "cooking": "recipes, ingredients, baking, frying pan",
            "travel": "flights, hotels, trips, trains, passport",
        }
    }
}


@pytest.fixture
def tagging(file, clock):
    with GovernedMemory.open(file, policy=Policy.from_dict(TAGGING), clock=clock) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Keep the soil moist.", {"gardening"}),
        ("She bought two frying pans.", {"cooking"}),  # another ending
        ("A frying fish needs no pan.", set()),  # a phrase's words, and not the phrase
        ("The soil is from a trip to Lisbon.", {"gardening", "travel"}),
        ("Cooking is fun.", {"cooking"}),  # its own name
    ],
)
def test_tags_by_words(text, tags):
    rule = Policy.from_dict({"tagging": {**TAGGING["tagging"], "similarity": 1}}).tagging
    assert set(PolicyTagger(rule, resolve_embedder(None)).tag(text)) == tags


@pytest.mark.parametrize(
    ("text", "tags"), [("I fly to Lisbon on May 3.", ("travel",)), ("The report is due on Friday.", ())]
)
def test_tags_by_similarity(tagging, text, tags):
    assert tagging.add(text, user_id="alice").tags == tags


def test_given_tags_are_kept(tagging):
    assert tagging.add("Keep the soil moist.", user_id="alice", tags=["House"]).tags == ("house",)
    assert tagging.add("Keep the soil moist.", user_id="alice", tags=[]).tags == ()


def test_policy_without_tags_adds_none(memory):
    assert memory.add("Keep the soil moist.", user_id="alice").tags == ()


@pytest.mark.parametrize("wrong", [{"tags": {" ": "x"}}, {"similarity": 2}, {"tags": ["x"]}, {"words": 1}])
def test_invalid_tagging_raises(wrong):
    with pytest.raises(PolicyError, match="tagging"):
        Policy.from_dict({"tagging": wrong})


class TestInference:
    """Contradiction detection by a tiny inference model whose weights the test sets."""

    @pytest.fixture
    def detector(self, tmp_path):
        """Return a detector that finds a contradiction in every pair."""
        pytest.importorskip("sentence_transformers")
        import torch

        from meve.memory import NliContradiction
        from meve.testing.tiny_models import save_tiny_model

        folder = save_tiny_model(tmp_path / "nli", labels=3)
        config = json.loads((folder / "config.json").read_text())
        config["id2label"] = {"0": "ENTAILMENT", "1": "Contradiction", "2": "neutral"}
        config["label2id"] = {name: int(n) for n, name in config["id2label"].items()}
        (folder / "config.json").write_text(json.dumps(config))
        detector = NliContradiction.load(str(folder))
        with torch.no_grad():
            detector._model.model.classifier.weight.zero_()
            detector._model.model.classifier.bias.copy_(torch.tensor([0.0, 9.0, 0.0]))
        return detector

    def test_model_finds_more_than_the_rules(self, detector):
        assert detector.find_difference("Tomatoes love sun in summer.", "Tomatoes hate sun in summer.").startswith(
            "claim:"
        )
        assert detector.find_difference("Alice eats meat.", "Alice doesn't eat meat.") == "denial"

    def test_different_subjects_are_not_compared(self, detector):
        assert detector.find_difference("Tomatoes love sun.", "The night train was late.") == ""

    def test_probability_below_the_threshold_is_no_contradiction(self, detector):
        detector._threshold = 0.9999
        assert detector.find_difference("Tomatoes love sun in summer.", "Tomatoes hate sun in summer.") == ""

    def test_maintenance_closes_what_the_model_finds_contradicted(self, file, clock, detector):
        """The model isn't asked about different people, although it finds a contradiction in every pair."""
        told = {
            "t": ("Our tomatoes grow well in shade.", "Our tomatoes grow badly in shade."),
            "s": ("My son is allergic to milk.", "My daughter is allergic to milk."),
        }
        with GovernedMemory.open(file, updates=RuleUpdateJudge(detector), clock=clock) as memory:
            for name, texts in told.items():
                for text in texts:
                    memory.add(text, user_id=name)
                    clock.advance(timedelta(days=1))
            memory.maintain()
            assert [r.text for r in memory.list(user_id="t")] == ["Our tomatoes grow badly in shade."]
            assert len(memory.list(user_id="s")) == 2

    def test_memory_uses_the_given_detector(self, file, detector):
        with GovernedMemory.open(file, contradiction=detector) as memory:
            memory.add("Tomatoes love sun in summer.", user_id="alice", id="t")
            recall = memory.search("What do tomatoes love in summer?", user_id="alice")
            result = memory.reflect(recall, answer="Tomatoes hate sun in summer.")
            assert (result.verdicts["t"].outcome, result.verdicts["t"].reason) == ("contradicted", "another claim")

    def test_unsuitable_model_or_threshold_raises(self, tmp_path):
        pytest.importorskip("sentence_transformers")
        from meve.memory import NliContradiction
        from meve.testing.tiny_models import save_tiny_model

        with pytest.raises(ModelError, match="none is 'contradiction'"):
            NliContradiction.load(str(save_tiny_model(tmp_path / "one")))
        with pytest.raises((ModelNotFoundError, ModelError), match="contradictions to the rules"):
            NliContradiction.load(str(tmp_path / "none"), local_files_only=True)
        with pytest.raises(ConfigurationError, match="threshold"):
            NliContradiction.load(str(save_tiny_model(tmp_path / "three", labels=3)), threshold=2)
