"""What can be put in place of the rules, and what the default does: tags by policy, contradiction by a model."""

import json

import pytest

from meve.components.embedders import resolve_embedder
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError, PolicyError
from meve.memory import GovernedMemory, Policy
from meve.memory._classify.tags import PolicyTagger

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
def test_what_a_memory_is_about_is_told_by_words(text, tags):
    rule = Policy.from_dict({"tagging": {**TAGGING["tagging"], "similarity": 1}}).tagging
    assert set(PolicyTagger(rule, resolve_embedder(None)).tags(text)) == tags


@pytest.mark.parametrize(
    ("text", "tags"), [("I fly to Lisbon on May 3.", ("travel",)), ("The report is due on Friday.", ())]
)
def test_or_by_likeness_to_all_of_them(tagging, text, tags):
    assert tagging.add(text, user_id="alice").tags == tags


def test_tags_that_are_given_are_taken_as_they_are(tagging):
    assert tagging.add("Keep the soil moist.", user_id="alice", tags=["House"]).tags == ("house",)
    assert tagging.add("Keep the soil moist.", user_id="alice", tags=[]).tags == ()


def test_without_tags_in_the_policy_none_are_made_up(memory):
    assert memory.add("Keep the soil moist.", user_id="alice").tags == ()


@pytest.mark.parametrize("wrong", [{"tags": {" ": "x"}}, {"similarity": 2}, {"tags": ["x"]}, {"words": 1}])
def test_a_tagging_that_can_not_be_is_named(wrong):
    with pytest.raises(PolicyError, match="tagging"):
        Policy.from_dict({"tagging": wrong})


class TestInference:
    """A model of inference in place of the rules; small, with weights that the test sets."""

    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("sentence_transformers")
        from meve.testing.models import tiny_model

        made = tiny_model(tmp_path / "nli", labels=3)
        config = json.loads((made / "config.json").read_text())
        config["id2label"] = {"0": "ENTAILMENT", "1": "Contradiction", "2": "neutral"}
        config["label2id"] = {name: int(n) for n, name in config["id2label"].items()}
        (made / "config.json").write_text(json.dumps(config))
        return made

    @pytest.fixture
    def judge(self, folder):
        """Says contradiction of every pair."""
        import torch

        from meve.memory._contradiction.nli import NliContradiction

        made = NliContradiction.load(str(folder))
        with torch.no_grad():
            made._model.model.classifier.weight.zero_()
            made._model.model.classifier.bias.copy_(torch.tensor([0.0, 9.0, 0.0]))
        return made

    def test_it_finds_what_rules_can_not(self, judge):
        assert judge.find_difference("Tomatoes love sun in summer.", "Tomatoes hate sun in summer.").startswith("claim:")
        assert judge.find_difference("Alice eats meat.", "Alice doesn't eat meat.") == "denial"  # the rules' own word

    def test_it_is_not_asked_of_different_subjects(self, judge):
        assert judge.find_difference("Tomatoes love sun.", "The night train was late.") == ""

    def test_below_the_threshold_it_says_nothing(self, judge):
        judge._threshold = 0.9999
        assert judge.find_difference("Tomatoes love sun in summer.", "Tomatoes hate sun in summer.") == ""

    def test_a_memory_asks_it_where_it_is_given(self, file, judge):
        with GovernedMemory.open(file, contradiction=judge) as memory:
            memory.add("Tomatoes love sun in summer.", user_id="alice", id="t")
            recall = memory.search("What do tomatoes love in summer?", user_id="alice")
            done = memory.reflect(recall, answer="Tomatoes hate sun in summer.")
            assert (done.verdicts["t"].outcome, done.verdicts["t"].reason) == ("contradicted", "another claim")

    def test_a_model_of_another_kind_is_named(self, tmp_path):
        pytest.importorskip("sentence_transformers")
        from meve.memory._contradiction.nli import NliContradiction
        from meve.testing.models import tiny_model

        with pytest.raises(ModelError, match="none is 'contradiction'"):
            NliContradiction.load(str(tiny_model(tmp_path / "one")))
        with pytest.raises((ModelNotFoundError, ModelError), match="contradictions to the rules"):
            NliContradiction.load(str(tmp_path / "none"), local_files_only=True)
        with pytest.raises(ConfigurationError, match="threshold"):
            NliContradiction.load(str(tiny_model(tmp_path / "three", labels=3)), threshold=2)
