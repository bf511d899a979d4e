"""Test the verdict from all evidence."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.calibration.probability_maps import PlattCalibration
from meve.components._shipped_models import EVIDENCE, WITH_MINILM, find_fitted_models
from meve.components.evidence import FITS, INTERCEPT, EvidenceModel
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.errors import ConfigurationError, ModelError

TEXTS = ["Tomatoes need water in the morning.", "Bread needs flour and water.", "The tower is 330 metres tall."]
QUESTION = "When do tomatoes need water?"


@pytest.fixture(scope="module")
def shipped() -> EvidenceModel:
    return EvidenceModel.load(VERIFIER_FOLDER / WITH_MINILM / EVIDENCE)


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    return Retriever.from_texts(TEXTS, embedder="minilm")


@pytest.mark.parametrize("names", FITS, ids="+".join)
def test_probability_grows_with_each_input(shipped: EvidenceModel, names: tuple[str, ...]) -> None:
    unknown = np.full(5, np.nan, np.float32)
    middle = {"keywords": unknown, **{name: np.full(5, 0.5, np.float32) for name in names}}
    for name in names:
        rising = np.linspace(0, 1, 5, dtype=np.float32)
        probabilities = shipped.estimate({**middle, name: rising})
        assert (np.diff(probabilities) > 0).all()
        assert 0 <= probabilities.min() <= probabilities.max() <= 1


@pytest.mark.parametrize("change", [{"cosine": -1.0}, {"cosine": float("nan")}, {"more": 1.0}])
def test_invalid_weights_raise(shipped: EvidenceModel, change: dict[str, float]) -> None:
    fits = {**shipped.fits, "logit+cosine": {**shipped.fits["logit+cosine"], **change}}
    with pytest.raises(ConfigurationError, match=r"needs for logit\+cosine an intercept and weights of at least 0"):
        replace(shipped, fits=fits)


def test_model_is_read_as_written_and_damaged_file_raises(shipped: EvidenceModel, tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(shipped.to_dict()), "utf-8")
    assert EvidenceModel.load(file) == shipped
    file.write_text("{", "utf-8")
    with pytest.raises(ModelError, match=r"evidence\.json"):
        EvidenceModel.load(file)
    file.write_text('{"name": "a"}', "utf-8")
    with pytest.raises(ConfigurationError, match=r"evidence\.json is no evidence model: .*'verifier'"):
        EvidenceModel.load(file)


def test_verdict_is_made_of_what_the_trace_shows(retriever: Retriever, shipped: EvidenceModel) -> None:
    many = Retriever.from_texts([*TEXTS, *(f"Water number {n} is wet." for n in range(5))], embedder="minilm")
    for chosen, sources, names in ((many, "hybrid", FITS[0]), (many, "dense", FITS[1]), (retriever, "hybrid", FITS[1])):
        for candidate in chosen.retrieve(QUESTION, sources=sources, exact=True).trace.candidates:
            assert set(names) == set(FITS[0]) & set(candidate.scores)
            weights = shipped.fits["+".join(names)]
            total = weights[INTERCEPT] + sum(weights[name] * candidate.scores[name] for name in names)
            assert candidate.scores["verifier"] == pytest.approx(1 / (1 + np.exp(-total)), abs=1e-5)


def test_verdicts_of_a_batch_are_those_of_all(retriever: Retriever) -> None:
    """Without `exact`, candidates are scored eight at a time; a keyword score is relative to the best of all."""
    many = Retriever.from_texts([*TEXTS, *(f"Note {n}: water is heavy." for n in range(12))], embedder="minilm")
    exact, fast = (many.retrieve(QUESTION, exact=exact, redundancy=1.0).trace for exact in (True, False))
    scores = {c.id: c.scores["verifier"] for c in exact.candidates}
    scored = {c.id: c.scores["verifier"] for c in fast.candidates if "verifier" in c.scores}
    assert scored
    assert scored == {i: scores[i] for i in scored}


def test_other_embedder_leaves_verdict_to_the_verifier() -> None:
    other = Retriever.from_texts(TEXTS, embedder="static")
    trace = other.retrieve(QUESTION).trace
    expected = sorted(load_shipped_verifier().score(QUESTION, TEXTS).tolist())
    assert sorted(c.scores["verifier"] for c in trace.candidates) == pytest.approx(expected)
    assert not any({"logit", "cosine", "keywords"} & set(c.scores) for c in trace.candidates)


def test_own_calibration_leaves_verdict_to_the_verifier() -> None:
    verifier = load_shipped_verifier().with_calibration(PlattCalibration(slope=0.5, intercept=0.1))
    fitted = find_fitted_models(verifier.name, verifier.calibration.to_dict(), "meve-minilm-1")
    assert (fitted.evidence, fitted.estimator, fitted.prior) == (None, None, None)
    trace = Retriever.from_texts(TEXTS, embedder="minilm", verifier=verifier).retrieve(QUESTION).trace
    assert not any("logit" in c.scores for c in trace.candidates)


def test_trace_names_the_evidence_model(retriever: Retriever) -> None:
    settings = {p.name: p.settings for p in retriever.retrieve(QUESTION).trace.phases}
    assert settings["verify"]["evidence"] == "meve-evidence-1"


def test_given_passages_are_judged_by_their_cosines_too(retriever: Retriever) -> None:
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(TEXTS)]
    context = retriever.engine.select(QUESTION, passages)
    assert [p.passage.text for p in context.passages][:1] == TEXTS[:1]
    assert {"logit", "cosine"} <= set(context.trace.candidates[0].scores)
    assert "keywords" not in context.trace.candidates[0].scores


def test_sentences_are_scored_by_the_verifier_alone() -> None:
    text = "Gardens are quiet. Tomatoes need water in the morning. Beans climb on poles."
    context = Retriever.from_texts([text], embedder="minilm").retrieve(QUESTION, packing="sentences")
    assert "Tomatoes need water in the morning." in context.text
    assert "Beans" not in context.text


def test_further_hop_reads_keyword_scores_of_the_extended_query() -> None:
    """A passage that shares no word with the question, but with its evidence, is judged with those words too."""
    texts = ["Tomatoes need water from the Ahorn brook.", "The Ahorn brook springs at Kessel.", "Bread needs flour."]
    texts += [f"Tomatoes of kind {n}." for n in range(4)]
    two = Retriever.from_texts(texts, embedder="minilm")
    judged: list[dict[str, float]] = []

    class Recorder:
        name, verifier, embedder = "recorder", two.verifier.name, two.embedder.name

        def estimate(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            judged.append({name: values.tolist() for name, values in inputs.items()})
            return np.array([0.9 if k == 1.0 else 0.1 for k in inputs["keywords"]], np.float32)

    two.engine = replace(two.engine, evidence=Recorder())
    two.retrieve("Who grows tomatoes?", hops=2, exact=True)
    first, second = judged[0]["keywords"], judged[-1]["keywords"]
    assert first.count(0.0) == 2
    assert max(second) > 0


def test_chance_hit_in_a_small_corpus_is_no_keyword_evidence() -> None:
    """The best keyword score of a few hits is 1 whatever it is; such scores would verify an unrelated passage."""
    one = Retriever.from_texts(["The parking garage at the north gate opens at six."], embedder="minilm")
    (candidate,) = one.retrieve("When was the north tower of the cathedral built?").trace.candidates
    assert "keywords" not in candidate.scores
    assert not candidate.verified


def test_without_keyword_scores_every_candidate_is_scored_by_default(retriever: Retriever) -> None:
    """The prior was fitted to searches by vectors and keywords: without keywords, nearly all would look unlikely."""
    passages = [Passage(id=str(n), text=f"Topic number {n} is about something else.") for n in range(12)]
    given = retriever.engine.select(QUESTION, passages, mode="no_fallback")
    assert all("verifier" in c.scores for c in given.trace.candidates)
    many = Retriever.from_passages(passages, embedder="minilm")
    dense = many.retrieve(QUESTION, sources="dense", mode="no_fallback")
    assert all("verifier" in c.scores for c in dense.trace.candidates)


def test_fallback_hits_have_keyword_scores_too() -> None:
    texts = [f"Tomatoes need water, says gardener number {n}." for n in range(12)]
    context = Retriever.from_texts(texts, embedder="minilm").retrieve(
        "Do tomatoes need water?", candidates=2, fallback_k=5, min_verified=10, redundancy=1.0, fallback_floor=0.0
    )
    found = [c for c in context.trace.candidates if c.origin == "fallback"]
    assert found
    assert min(c.scores["keywords"] for c in found) > 0.5
