"""Test the verdict from all evidence."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration, summarize_calibration
from meve.components._shipped_models import (
    EVIDENCE,
    PRIOR,
    WITH_MINILM,
    WITH_WORDS,
    find_estimator,
    find_fitted_models,
)
from meve.components.evidence import FITS, INPUTS, INTERCEPT, WORD_FITS, EvidenceModel
from meve.components.verification_prior import FittedPrior
from meve.components.verifiers import load_verifier
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.errors import ConfigurationError, ModelError
from meve.evaluation._model_caches import WrappedEmbedder
from meve.pipeline.config import Sources
from meve.ports import Embedder
from meve.retrieval._evidence_scores import EvidenceScores
from meve.testing.evidence_contract import EvidenceContract, PriorContract
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.tiny_models import save_tiny_model
from meve.types import LabelledPair

TEXTS = ["Tomatoes need water in the morning.", "Bread needs flour and water.", "The tower is 330 metres tall."]
MANY = [*TEXTS, *(f"Water number {n} is wet." for n in range(5))]
QUESTION = "When do tomatoes need water?"


@pytest.fixture(scope="module")
def shipped() -> EvidenceModel:
    return EvidenceModel.load(VERIFIER_FOLDER / WITH_MINILM / EVIDENCE)


@pytest.fixture(scope="module")
def of_words() -> EvidenceModel:
    return EvidenceModel.load(VERIFIER_FOLDER / WITH_WORDS / EVIDENCE)


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    return Retriever.from_texts(TEXTS, embedder="minilm")


class TestShipped(EvidenceContract):
    @pytest.fixture
    def evidence(self, shipped: EvidenceModel) -> EvidenceModel:
        return shipped


class TestWords(EvidenceContract):
    @pytest.fixture
    def evidence(self, of_words: EvidenceModel) -> EvidenceModel:
        return of_words


class TestIsotonic(EvidenceContract):
    @pytest.fixture
    def evidence(self, shipped: EvidenceModel) -> EvidenceModel:
        return shipped.with_calibration(IsotonicCalibration(raw=(-3.0, 3.0), probability=(0.1, 0.8)))


class TestShippedPrior(PriorContract):
    @pytest.fixture
    def prior(self) -> FittedPrior:
        return FittedPrior.load(VERIFIER_FOLDER / WITH_MINILM / PRIOR)


class TestStaticPrior(PriorContract):
    @pytest.fixture
    def prior(self) -> FittedPrior:
        return FittedPrior.load(VERIFIER_FOLDER / WITH_WORDS / PRIOR)


@pytest.mark.parametrize("change", [{"cosine": -1.0}, {"cosine": float("nan")}, {"more": 1.0}])
def test_invalid_weights_raise(shipped: EvidenceModel, change: dict[str, float]) -> None:
    fits = {**shipped.fits, "logit+cosine": {**shipped.fits["logit+cosine"], **change}}
    with pytest.raises(ConfigurationError, match=r"needs for logit\+cosine an intercept and weights of at least 0"):
        replace(shipped, fits=fits)


def test_model_of_any_embedder_needs_fits_without_cosines(shipped: EvidenceModel) -> None:
    with pytest.raises(ConfigurationError, match=r"needs for logit\+keywords an intercept and weights"):
        replace(shipped, embedder=None)


def test_model_is_read_as_written_and_damaged_file_raises(
    shipped: EvidenceModel, of_words: EvidenceModel, tmp_path: Path
) -> None:
    file = tmp_path / "evidence.json"
    other = shipped.with_calibration(IsotonicCalibration(raw=(0.0, 1.0), probability=(0.1, 0.9)))
    for model in (shipped, of_words, other):
        file.write_text(json.dumps(model.to_dict()), "utf-8")
        assert EvidenceModel.load(file) == model
    file.write_text("{", "utf-8")
    with pytest.raises(ModelError, match=r"evidence\.json"):
        EvidenceModel.load(file)
    file.write_text('{"name": "a"}', "utf-8")
    with pytest.raises(ConfigurationError, match=r"evidence model with \['name'\] can't be read: .*'verifier'"):
        EvidenceModel.load(file)


def test_verdict_is_made_of_what_the_trace_shows(retriever: Retriever, shipped: EvidenceModel) -> None:
    many = Retriever.from_texts(MANY, embedder="minilm")
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


@pytest.mark.parametrize("embedder", ["static", WordEmbedder()], ids=["static", "own"])
def test_with_another_embedder_the_verdict_weighs_keyword_scores_but_no_cosines(
    embedder: str | WordEmbedder, of_words: EvidenceModel
) -> None:
    other = Retriever.from_texts(MANY, embedder=embedder)
    trace = other.retrieve(QUESTION, exact=True).trace
    assert {phase.name: phase.settings for phase in trace.phases}["verify"]["evidence"] == "meve-evidence-2"
    weights = of_words.fits["+".join(WORD_FITS[0])]
    for candidate in trace.candidates:
        assert "cosine" not in candidate.scores
        total = weights[INTERCEPT] + sum(weights[name] * candidate.scores[name] for name in WORD_FITS[0])
        assert candidate.scores["verifier"] == pytest.approx(1 / (1 + np.exp(-total)), abs=1e-5)


def test_with_another_embedder_a_passage_counts_for_less_beside_one_with_more_of_the_words() -> None:
    """The logit is the same, since the verifier reads question and passage alone."""
    corpora = (MANY, [*MANY, "When do tomatoes need water, when do tomatoes need water?"])
    one, two = (
        {r.get(c.id).text: c.scores for c in r.retrieve(QUESTION, exact=True, redundancy=1.0).trace.candidates}
        for r in (Retriever.from_texts(texts, embedder="static") for texts in corpora)
    )
    assert one[TEXTS[0]]["logit"] == two[TEXTS[0]]["logit"]
    assert one[TEXTS[0]]["keywords"] == 1 > two[TEXTS[0]]["keywords"]
    assert one[TEXTS[0]]["verifier"] > two[TEXTS[0]]["verifier"]


@pytest.mark.parametrize(("texts", "sources"), [(MANY, "dense"), (TEXTS, "hybrid")], ids=["vectors", "few hits"])
def test_without_keyword_scores_and_fitted_cosines_the_verifier_judges_alone(texts: list[str], sources: str) -> None:
    other = Retriever.from_texts(texts, embedder="static")
    trace = other.retrieve(QUESTION, sources=sources, exact=True).trace
    expected = load_shipped_verifier().score(QUESTION, [other.get(c.id).text for c in trace.candidates])
    assert [c.scores["verifier"] for c in trace.candidates] == pytest.approx(expected.tolist(), abs=1e-6)


def test_own_calibration_leaves_verdict_to_the_verifier() -> None:
    verifier = load_shipped_verifier().with_calibration(PlattCalibration(slope=0.5, intercept=0.1))
    fitted = find_fitted_models(verifier.name, verifier.calibration.to_dict(), "meve-minilm-1")
    assert (fitted.evidence, fitted.prior) == (None, None)
    trace = Retriever.from_texts(TEXTS, embedder="minilm", verifier=verifier).retrieve(QUESTION).trace
    assert not any("logit" in c.scores for c in trace.candidates)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_published_minilm_has_the_models_that_were_fitted_to_minilm(retriever: Retriever, name: str) -> None:
    class Published(WrappedEmbedder):
        def __init__(self, inner: Embedder) -> None:
            super().__init__(inner)
            self.name = name

    again = Retriever.from_texts(TEXTS, embedder=Published(retriever.embedder))
    one, other = (r.retrieve(QUESTION).trace for r in (retriever, again))
    assert [c.scores for c in one.candidates] == [c.scores for c in other.candidates]
    assert [p.settings.get("evidence") for p in one.phases] == [p.settings.get("evidence") for p in other.phases]
    assert [p.settings.get("prior") for p in one.phases] == [p.settings.get("prior") for p in other.phases]
    assert one.sufficiency == other.sufficiency


def test_calibrated_evidence_without_cosines_keeps_its_estimate_for_minilm(of_words: EvidenceModel) -> None:
    """Indexes with the published MiniLM were calibrated so, before its cosines counted."""
    verifier = load_shipped_verifier()
    fitted = of_words.with_calibration(PlattCalibration(slope=0.5, pairs=100))
    estimator = find_estimator(verifier.name, verifier.calibration, "all-MiniLM-L6-v2", fitted)
    assert estimator is not None
    assert estimator.name == "meve-sufficiency-1"


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


@pytest.mark.parametrize("question", ["In which months must I wear a life jacket?", "On which day is the fee debited?"])
def test_short_answer_among_other_topics_is_verified_by_the_cosine_of_its_sentence(question: str) -> None:
    """The vector of a section of several topics resembles none of them."""
    club = Retriever.from_texts([RULES, *TEXTS], titles=["Rowing club", "", "", ""], embedder="minilm")
    candidates = {c.id: c for c in club.retrieve(question, exact=True).trace.candidates}
    best, others = candidates.pop(club.passages()[0].id), candidates.values()
    assert best.verified
    assert best.scores["cosine"] > best.scores["passage_cosine"] + 0.1
    assert not any("passage_cosine" in c.scores for c in others), "they have one sentence"
    unanswerable = club.retrieve("May guests use the sauna?")
    assert not any(p.verified for p in unanswerable.passages)


RULES = (
    "The boathouse stands at the end of Mill Lane, behind the old sawmill. Lights are on until ten. Each outing is "
    "entered in the logbook before the start. Fees are collected on the third of each month by direct debit. Life "
    "jackets are compulsory from November to March. Guests may row three times before they join. In the garden dogs "
    "are welcome on a lead. The workshop is upstairs, and broken parts go on the blue shelf."
)
THINGS = ["shed", "pier", "bench", "fence", "hut", "mast", "rack", "ramp", "wall", "lamp", "bell", "flag", "chair"]
LIST = "; ".join(f"{thing} {n}: painted every spring by the members and checked in autumn"
                 for n in (1, 2) for thing in THINGS)  # fmt: skip
"""A passage of over 1,200 characters, whose vector says little about one answer in it."""


@pytest.mark.parametrize("pairs", [None, 100])
def test_long_passage_has_at_least_the_verifiers_own_probability(pairs: int | None) -> None:
    """A calibration that `calibrate` fitted names its pairs."""
    text = LIST[:600] + "; lockers: 4 euros a month, from the office" + LIST[600:]
    question = "How much does a locker cost per month?"
    club = Retriever.from_texts([text, *TEXTS], embedder="minilm")
    combiner = club.engine.make_scorer().combiner
    assert combiner is not None
    club.engine = replace(club.engine, evidence=combiner.with_calibration(PlattCalibration(pairs=pairs)))
    (scores,) = (
        c.scores for c in club.retrieve(question, exact=True).trace.candidates if c.id == club.passages()[0].id
    )
    assert scores["verifier"] == pytest.approx(club.verifier.score(question, [text])[0], abs=1e-4)
    with_its_cosine = combiner.sums({name: np.array([scores.get(name, np.nan)]) for name in INPUTS})
    assert combiner.calibration.apply(with_its_cosine)[0] < scores["verifier"] - 0.01


@pytest.mark.parametrize("passage", [RULES, LIST[:600] + "; lockers: 4 euros a month, from the office" + LIST[600:]])
def test_a_calibration_changes_no_sum(passage: str) -> None:
    """So that the probabilities of a retrieval are those that `calibrate` reports."""
    questions = ["In which months must I wear a life jacket?", "How much does a locker cost per month?"]
    club = Retriever.from_texts([passage, *TEXTS], embedder="minilm")
    combiner = club.engine.make_scorer().combiner
    assert combiner is not None
    shifted = PlattCalibration(slope=1.0, intercept=-5.0, pairs=100)
    for question in questions:
        before = EvidenceScores(club.engine, combiner, club._corpus).raw_scores(question, [passage])
        other = replace(club.engine, evidence=combiner.with_calibration(shifted))
        assert EvidenceScores(other, combiner, club._corpus).raw_scores(question, [passage]) == pytest.approx(before)
        club.engine = other
        candidates = club.retrieve(question, exact=True).trace.candidates
        (judged,) = (c.scores["verifier"] for c in candidates if c.id == club.passages()[0].id)
        assert judged == pytest.approx(shifted.apply(before)[0], abs=1e-4)
        club.engine = replace(other, evidence=combiner)


def test_further_hop_reads_keyword_scores_of_the_extended_query() -> None:
    """A passage that shares no word with the question, but with its evidence, is judged with those words too."""
    texts = ["Tomatoes need water from the Ahorn brook.", "The Ahorn brook springs at Kessel.", "Bread needs flour."]
    texts += [f"Tomatoes of kind {n}." for n in range(4)]
    two = Retriever.from_texts(texts, embedder="minilm")
    judged: list[dict[str, float]] = []

    class Recorder:
        name, verifier, embedder = "recorder", two.verifier.name, two.embedder.name
        calibration = PlattCalibration()

        def sums(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            judged.append({name: values.tolist() for name, values in inputs.items()})
            return np.array([2.0 if k == 1.0 else -2.0 for k in inputs["keywords"]], np.float32)

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


def test_given_passages_have_keyword_scores_that_compare_them_with_each_other(retriever: Retriever) -> None:
    """A passage of rare words among those given has the highest; one without a word of the query has none."""
    texts = ["The Ahorn brook waters tomatoes.", "Tomatoes need sun.", "Some tomatoes are black.", "Bread needs flour."]
    given = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    context = retriever.engine.select("Does the Ahorn brook water tomatoes?", given, exact=True)
    shares = {c.id: c.scores["keywords"] for c in context.trace.candidates}
    assert shares["0"] == 1
    assert 0 < shares["1"] < 0.5
    assert shares["3"] == 0


def test_few_given_passages_with_a_word_of_the_query_have_no_keyword_scores(retriever: Retriever) -> None:
    given = [Passage(id=str(n), text=text) for n, text in enumerate(["Tomatoes need sun.", "Bread needs flour."])]
    context = retriever.engine.select("Do tomatoes need sun?", given, exact=True)
    assert not any("keywords" in c.scores for c in context.trace.candidates)


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


PLACES = ["Oslo", "Rome", "Bern", "Riga", "Kyiv", "Baku", "Lima", "Doha", "Cork", "Pune", "Bari", "Metz"]


@pytest.fixture(scope="module")
def calibrated() -> tuple[Retriever, Retriever, list[LabelledPair]]:
    """Return a retriever, the same after calibration, and the pairs."""
    texts = [f"The office in {place} opens at {n + 6} in the morning." for n, place in enumerate(PLACES)]
    titles = [f"Office {n}" for n in range(len(texts))]
    before, after = (Retriever.from_texts(texts, titles=titles, embedder="minilm") for _ in range(2))
    pairs = [
        LabelledPair(query=f"When does the office in {place} open?", passage=text, relevant=place in text)
        for n, place in enumerate(PLACES)
        for text in (texts[n], texts[n - 1], "Closed on Sundays.")
    ]
    after.calibrate(pairs)
    return before, after, pairs


def test_calibration_maps_the_evidence_that_retrieval_has(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]],
) -> None:
    before, after, pairs = calibrated
    fitted = after.engine.make_scorer().calibration
    assert fitted.to_dict()["pairs"] == len(pairs)
    assert after.verifier.calibration.to_dict() == before.verifier.calibration.to_dict()
    verify = after.retrieve(pairs[0].query).trace.phases[1].settings
    assert verify["calibration"] == summarize_calibration(fitted.to_dict())
    for query in dict.fromkeys(pair.query for pair in pairs[:6]):
        old, new = (r.retrieve(query, exact=True).trace.candidates for r in (before, after))
        shipped = {c.id: c.scores["verifier"] for c in old}
        for candidate in new:
            total = np.log(shipped[candidate.id]) - np.log1p(-shipped[candidate.id])
            expected = fitted.apply(np.array([total], np.float32))[0]
            assert candidate.scores["verifier"] == pytest.approx(expected, abs=1e-4)
            assert "keywords" in candidate.scores


def test_labelled_text_counts_as_retrieval_finds_it(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]],
) -> None:
    """A text of the corpus has its title and keyword share; another one has none."""
    before, _, pairs = calibrated
    combiner = before.engine.make_scorer().combiner
    assert isinstance(combiner, EvidenceModel)
    scores = EvidenceScores(before.engine, combiner, before._corpus)
    sums = scores.raw_scores(pairs[0].query, [pairs[0].passage, pairs[2].passage])
    trace = before.retrieve(pairs[0].query, exact=True).trace
    (found,) = (c.scores for c in trace.candidates if before.get(c.id).text == pairs[0].passage)
    assert combiner.calibration.apply(sums)[0] == pytest.approx(found["verifier"], abs=1e-4)
    logit = before.verifier.raw_scores(pairs[0].query, [pairs[2].passage])[0]
    near = before.embedder.embed_query(pairs[0].query) @ before.embedder.embed_passages([pairs[2].passage])[0]
    weights = combiner.fits["+".join(FITS[1])]
    expected = weights["logit"] * logit + weights["cosine"] * near + weights[INTERCEPT]
    assert sums[1] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("sources", ["dense", "lexical", "hybrid"])
def test_calibration_reads_the_sources_that_a_retrieval_searches(sources: Sources) -> None:
    fits = {
        "logit+keywords": {"logit": 1.0, "keywords": 1.0, INTERCEPT: -1.0},
        "logit": {"logit": 3.0, INTERCEPT: -1.0},
    }
    evidence = EvidenceModel(name="mine", verifier=OverlapVerifier.name, embedder=None, fits=fits)
    texts = [f"the blue sky number {n}" for n in range(4)]
    retriever = Retriever.from_texts(
        texts, embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(), sources=sources
    )
    retriever.engine = replace(retriever.engine, evidence=evidence)
    sums = EvidenceScores(retriever.engine, evidence, retriever._corpus).raw_scores("blue sky", texts)
    judged = {c.id: c.scores["verifier"] for c in retriever.retrieve("blue sky", exact=True).trace.candidates}
    assert evidence.calibration.apply(sums).tolist() == pytest.approx([judged[i] for i in sorted(judged)])


@pytest.mark.parametrize(
    ("intercept", "threshold", "skips"), [(0.0, 0.5, True), (-1.0, 0.5, True), (2.0, 0.5, False), (0.0, 0.3, False)]
)
def test_prior_skips_nothing_that_a_calibration_or_a_lower_threshold_may_verify(
    retriever: Retriever, intercept: float, threshold: float, skips: bool
) -> None:
    combiner = retriever.engine.make_scorer().combiner
    assert isinstance(combiner, EvidenceModel)
    engine = replace(retriever.engine, evidence=combiner.with_calibration(PlattCalibration(intercept=intercept)))
    many = Retriever.from_texts([*TEXTS, *(f"Tomatoes of kind {n} have a name." for n in range(12))], embedder="minilm")
    many.engine = engine
    reasons = [c.reason for c in many.retrieve(QUESTION, threshold=threshold, fill_below=0).trace.candidates]
    assert ("unlikely" in reasons) is skips


def test_index_calibrated_with_earlier_weights_is_judged_by_those_that_ship(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before, after, pairs = calibrated
    combiner = after.engine.make_scorer().combiner
    assert isinstance(combiner, EvidenceModel)
    fits = {inputs: {**weights, INTERCEPT: 5.0} for inputs, weights in combiner.fits.items()}
    earlier = Retriever(engine=replace(after.engine, evidence=replace(combiner, fits=fits)), corpus=after._corpus)
    earlier.save(tmp_path / "index")
    loaded = Retriever.load(tmp_path / "index")
    assert "call calibrate again" in caplog.text
    assert (loaded.engine.evidence, loaded.config.threshold) == (None, before.config.threshold)
    assert Retriever.load(tmp_path / "index", threshold=0.7).config.threshold == 0.7
    one, other = (r.retrieve(pairs[0].query).trace.candidates for r in (before, loaded))
    assert [c.scores for c in one] == [c.scores for c in other]


def test_calibrated_evidence_is_saved_with_the_index(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]], tmp_path: Path
) -> None:
    _, after, pairs = calibrated
    after.save(tmp_path / "index")
    loaded = Retriever.load(tmp_path / "index")
    assert loaded.info()["calibration"] == after.info()["calibration"]
    assert loaded.engine.evidence == after.engine.evidence
    context, again = (r.retrieve(pairs[0].query) for r in (after, loaded))
    assert [(p.passage.id, p.score) for p in context.passages] == [(p.passage.id, p.score) for p in again.passages]


def test_calibrated_evidence_keeps_the_shipped_estimate(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]],
) -> None:
    """The estimator reads the probabilities as they were before."""
    before, after, pairs = calibrated
    old, new = (r.retrieve(pairs[0].query).trace.sufficiency for r in (before, after))
    assert old["estimator"] == new["estimator"] == "meve-sufficiency-2"


def test_calibration_with_another_embedder_keeps_keyword_scores_and_estimate(
    calibrated: tuple[Retriever, Retriever, list[LabelledPair]], tmp_path: Path
) -> None:
    *_, pairs = calibrated
    texts = list(dict.fromkeys(pair.passage for pair in pairs))
    other = Retriever.from_texts(texts, embedder="static")
    before = other.retrieve(pairs[0].query, exact=True).trace
    other.calibrate(pairs)
    other.save(tmp_path / "index")
    for after in (other, Retriever.load(tmp_path / "index")):
        fitted, own = after.engine.make_scorer().calibration, after.verifier.calibration
        assert (fitted.to_dict()["pairs"], own) == (len(pairs), load_shipped_verifier().calibration)
        trace = after.retrieve(pairs[0].query, exact=True).trace
        new = {c.id: c.scores for c in trace.candidates}
        for candidate in before.candidates:
            score = candidate.scores["verifier"]
            expected = fitted.apply(np.array([np.log(score) - np.log1p(-score)], np.float32))[0]
            assert new[candidate.id]["verifier"] == pytest.approx(expected, abs=1e-4)
            assert new[candidate.id]["keywords"] == candidate.scores["keywords"]
        assert trace.sufficiency["estimator"] == before.sufficiency["estimator"] == "meve-sufficiency-1"


def test_index_takes_the_newer_calibration_of_its_model(tmp_path: Path) -> None:
    """An index that wasn't calibrated holds the calibration that its model had when it was saved."""
    own = load_shipped_verifier()
    assert isinstance(own.calibration, PlattCalibration)
    former = own.with_calibration(replace(own.calibration, slope=9.0))
    Retriever.from_texts(TEXTS, verifier=former, embedder="static").save(tmp_path / "former")
    assert Retriever.load(tmp_path / "former").verifier.calibration == own.calibration
    fitted = own.with_calibration(PlattCalibration(slope=9.0, pairs=30))
    Retriever.from_texts(TEXTS, verifier=fitted, embedder="static").save(tmp_path / "fitted")
    assert Retriever.load(tmp_path / "fitted").verifier.calibration == fitted.calibration


def test_index_keeps_a_calibration_of_unknown_origin(tmp_path: Path) -> None:
    """A model without a calibration of its own and a calibration by `calibrate` both name no origin."""
    model = save_tiny_model(tmp_path / "model")
    fitted = load_verifier(str(model)).with_calibration(PlattCalibration(slope=9.0, pairs=30))
    Retriever.from_texts(TEXTS, verifier=fitted, embedder="static").save(tmp_path / "index")
    assert Retriever.load(tmp_path / "index").verifier.calibration == fitted.calibration
