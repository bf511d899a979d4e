"""Test verifiers of one's own: objects, functions, frameworks' rerankers and rerank APIs."""

import copy
import json
import pickle
import time

import numpy as np
import pytest
from langchain_community.document_compressors import jina_rerank
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.postprocessor import MetadataReplacementPostProcessor, SentenceTransformerRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from langchain_meve import LangChainReranker, MeVeCompressor
from llama_index_meve import LlamaIndexReranker, MeVePostprocessor
from meve import LabelledPair, Retriever
from meve.calibration.probability_maps import PlattCalibration
from meve.components.verifiers import resolve_verifier
from meve.components.verifiers.http import HttpReranker
from meve.components.verifiers.own import ScoreVerifier, adapt_verifier
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError
from meve.ports import Verifier
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.tiny_models import save_tiny_model
from meve.testing.verifier_contract import VerifierContract
from tests.fake_components import make_components
from tests.rerank_server import serve_reranker

TEXTS = ["The sky is blue.", "Grass is green.", "Deep water looks blue as well."]


def share(query, passages):
    return OverlapVerifier().raw_scores(query, passages).tolist()


class Named:
    name = "named"

    def score(self, query, passages):
        return share(query, passages)


class Reranker(BaseDocumentCompressor):
    """Sets scores as Cohere's, Jina's and Voyage's rerankers do."""

    top_n: int | None = 1
    model: str = "a-model"
    key: str = "relevance_score"

    def compress_documents(self, documents, query, callbacks=None):
        scores = share(query, [document.page_content for document in documents])
        ranked = sorted(zip(scores, documents, strict=True), key=lambda pair: -pair[0])[: self.top_n]
        return [Document(d.page_content, metadata={**d.metadata, self.key: score}) for score, d in ranked]


class NodeReranker(BaseNodePostprocessor):
    top_n: int = 1

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for each, score in zip(nodes, share(query_bundle.query_str, [n.get_content() for n in nodes]), strict=True):
            each.score = score
        return sorted(nodes, key=lambda each: -each.score)[: self.top_n]


OWN = [Named(), share, Reranker(), Reranker(key="fast_relevance_score"), NodeReranker()]


@pytest.mark.parametrize("own", OWN, ids=lambda own: getattr(own, "name", type(own).__name__))
def test_verifier_of_ones_own_judges(own):
    retriever = Retriever.from_texts(TEXTS, **make_components(verifier=own), fill=False)
    context = retriever.retrieve("blue sky")
    assert [(p.passage.text, p.score, p.verified) for p in context.passages] == [
        (TEXTS[0], 1.0, True),
        (TEXTS[2], 0.5, True),
    ]
    assert context.trace.verifier == retriever.verifier.name != ""
    assert all(isinstance(getattr(retriever.verifier, name, None), object) for name in vars(Verifier))
    for wrapper in (MeVeCompressor, MeVePostprocessor):
        assert wrapper.make(verifier=own).engine.verifier.name == retriever.verifier.name


def test_names_are_those_of_model_object_or_function():
    assert [adapt_verifier(own).name for own in OWN] == ["named", "share", "a-model", "a-model", "NodeReranker"]


def test_scores_are_uncalibrated_unless_the_object_says_so():
    class Logits(Named):
        scale = "logits"

        def score(self, query, passages):
            return [0.0 for _ in passages]

    class Calibrated(Logits):
        calibration = PlattCalibration(slope=2.0, intercept=1.0, fitted_on="pairs", pairs=9)

    assert adapt_verifier(Logits()).score("q", ["a"]).tolist() == [0.5]
    assert adapt_verifier(Calibrated()).score("q", ["a"])[0] == pytest.approx(0.7311, abs=1e-4)
    settings = {}
    for own in (Named(), Calibrated()):
        trace = Retriever.from_texts(TEXTS, **make_components(verifier=own)).retrieve("blue").trace
        settings[own.name, type(own)] = trace.phases[1].settings["calibration"]
    assert [each["fitted_on"] for each in settings.values()] == ["", "pairs"]


def test_calibration_is_fitted_to_a_verifier_of_ones_own():
    retriever = Retriever.from_texts(TEXTS, **make_components(verifier=Named()))
    pairs = [LabelledPair(query="blue sky", passage=TEXTS[n % 2], relevant=not n % 2) for n in range(40)]
    retriever.calibrate(pairs)
    assert retriever.verifier.calibration.pairs == 40
    assert retriever.verifier.name == "named"


def test_index_is_loaded_with_the_verifier_given_again(tmp_path):
    Retriever.from_texts(TEXTS, **make_components(verifier=Named())).save(tmp_path)
    again = Retriever.load(tmp_path, embedder=WordEmbedder(), tokens=WordCounter(), verifier=Named())
    assert again.retrieve("blue sky").trace.verifier == "named"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda query, passages: [7.0 for _ in passages], "got scores from 7 to 7: set scale='logits'"),
        (lambda query, passages: [0.5], "'mine' must return one number for each of 2 passages, got 1 numbers"),
        (lambda query, passages: [float("nan") for _ in passages], "got NaN, infinity or None for 2 of them"),
        (lambda query, passages: None, "got NoneType: None"),
        (lambda query, passages: [[0.5], [0.5]], "got list: "),
        (lambda query, passages: (0.5 for _ in passages), "got generator: "),
        (lambda query, passages: ["a", "b"], r"got list: \['a', 'b'\]"),
        (lambda query, passages: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_wrong_scores_are_errors(scores, message):
    with pytest.raises(ModelError, match=message):
        ScoreVerifier(scores, name="mine").score("q", ["a", "b"])


@pytest.mark.parametrize("answer", [[0.5], [float("nan")] * 2, None])
def test_wrong_scores_of_a_complete_verifier_are_errors(answer):
    verifier = OverlapVerifier()
    verifier.score = lambda query, passages: answer
    with pytest.raises(ModelError, match="must return one number for each of 2 passages"):
        Retriever.from_texts(TEXTS[:2], **make_components(verifier=verifier)).retrieve("blue sky")


async def later(query, passages):
    return [0.5 for _ in passages]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda verifier: pickle.loads(pickle.dumps(verifier))])
def test_a_copy_refuses_logits_too(duplicate):
    copied = duplicate(ScoreVerifier(score_in_logits, name="mine"))
    with pytest.raises(ModelError, match="mine must return probabilities, got scores from -3 to 5"):
        copied.score("sky", ["the sky", "grass"])


def score_in_logits(query, passages):
    return [5.0 if query in text else -3.0 for text in passages]


@pytest.mark.parametrize(
    ("own", "message"),
    [(3, "lacks"), (Named, "is a class"), (later, "coroutine"), (object(), "lacks")],
)
def test_what_is_no_verifier_is_refused(own, message):
    with pytest.raises(ConfigurationError, match=message):
        resolve_verifier(own, WordEmbedder())


def test_reranker_without_scores_is_an_error():
    with pytest.raises(ModelError, match="a relevance_score, got"):
        adapt_verifier(Reranker(key="other")).score("q", ["a", "b"])
    with pytest.raises(ModelError, match="must score nodes"):
        adapt_verifier(MetadataReplacementPostProcessor(target_metadata_key="w")).score("q", ["a"])


def test_left_out_documents_are_rejected_on_the_scale_of_probabilities_only():
    class Cutting(Reranker):
        def compress_documents(self, documents, query, callbacks=None):
            return [d for d in super().compress_documents(documents, query) if d.metadata["relevance_score"] > 0.4]

    for reranker in (LangChainReranker(Cutting()), copy.deepcopy(LangChainReranker(Cutting()))):
        assert reranker.score("blue sky", TEXTS).tolist() == [1.0, 0.0, 0.5]
    assert copy.deepcopy(LlamaIndexReranker(_Limited())).score("blue sky", TEXTS).tolist().count(0.0) >= 2
    with pytest.raises(ModelError, match="must score each of 3 documents, got 2"):
        LangChainReranker(Cutting(), scale="logits").score("blue sky", TEXTS)
    with pytest.raises(ModelError, match="must score each of 3 nodes, got 1"):
        LlamaIndexReranker(_Limited(), scale="logits").score("blue sky", TEXTS)


class _Limited(NodeReranker):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return super()._postprocess_nodes(nodes, query_bundle)[:1]


def test_published_rerankers_fit(tmp_path, server, monkeypatch):
    """LangChain's own class for Jina, against the local server; LlamaIndex's own for sentence-transformers."""
    monkeypatch.setattr(jina_rerank, "JINA_API_URL", server.url)
    jina = jina_rerank.JinaRerank(jina_api_key="k", model="m")
    assert adapt_verifier(jina).score("blue sky", TEXTS).tolist() == [1.0, 0.0, 0.5]
    assert server.requests[-1]["top_n"] == 3
    model = str(save_tiny_model(tmp_path / "tiny"))
    local = adapt_verifier(SentenceTransformerRerank(model=model, device="cpu", trust_remote_code=False))
    assert local.score("what orbits the earth", ["the moon", "bread", "a cat"]).shape == (3,)
    assert local.name == model


@pytest.fixture
def server():
    with serve_reranker() as running:
        yield running


@pytest.fixture
def no_pause(monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


class TestHttp(VerifierContract):
    rejects_long_queries = reads_long_passages = False

    @pytest.fixture
    def verifier(self, server):
        return HttpReranker(server.url, model="m")

    def test_request_has_the_common_shape(self, server):
        reranker = HttpReranker(server.url, model="m", api_key="secret", extra={"return_documents": False})
        assert reranker.score("blue sky", TEXTS).tolist() == [1.0, 0.0, 0.5]
        wanted = {"model": "m", "query": "blue sky", "documents": TEXTS, "return_documents": False}
        assert server.requests == [wanted]
        assert server.headers[0]["Authorization"] == "Bearer secret"
        assert "secret" not in repr(reranker)

    def test_batches_keep_the_order(self, server):
        texts = [f"blue {n}" if n % 3 else "sky blue" for n in range(10)]
        assert HttpReranker(server.url, model="m", batch_size=4).score("blue sky", texts).tolist() == share(
            "blue sky", texts
        )
        assert [len(body["documents"]) for body in server.requests] == [4, 4, 2]

    def test_other_names_of_the_answer_are_read(self, server):
        def rename(whole):
            data = [{"index": each["index"], "score": each["relevance_score"]} for each in whole["results"]]
            return json.dumps({"data": data}).encode()

        server.answers = [rename]
        assert HttpReranker(server.url, model="m").score("blue sky", TEXTS).tolist() == [1.0, 0.0, 0.5]

    def test_busy_server_is_asked_again(self, server, no_pause):
        server.answers = [429, 503]
        assert HttpReranker(server.url, model="m").score("blue sky", TEXTS).tolist() == [1.0, 0.0, 0.5]
        assert (len(server.requests), no_pause) == (3, [0.5, 1.0])

    @pytest.mark.parametrize(("status", "requests"), [(401, 1), (400, 1), (307, 1), (301, 1), (500, 3)])
    def test_errors_name_the_status_and_what_the_server_says(self, server, no_pause, status, requests):
        server.answers = [status] * 3
        with pytest.raises(ModelError, match=rf"answered {status} .*not now") as caught:
            HttpReranker(server.url, model="m", retries=2, api_key="secret").score("blue", TEXTS)
        assert len(server.requests) == requests
        assert "secret" not in str(caught.value)

    def test_silent_server_is_a_timeout(self, server, no_pause):
        server.answers = ["hang", "hang"]
        started = time.monotonic()
        with pytest.raises(ModelError, match=r"gave no answer: .*timed out.* \(2 requests\)"):
            HttpReranker(server.url, model="m", timeout=0.2, retries=1).score("blue", TEXTS)
        assert time.monotonic() - started < 5

    def test_absent_server_is_an_error(self, no_pause):
        with pytest.raises(ModelError, match="gave no answer"):
            HttpReranker("http://127.0.0.1:9/v1/rerank", model="m", retries=0).score("blue", TEXTS)

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (b"<html>", "must answer in JSON"),
            (b'{"results": [{"index": 0, "relevance_score": 1}]}', "must score each of 3 documents, got 1"),
            (b'{"detail": "no such model"}', "results that have an index"),
            (b'{"results": [{"index": 0}]}', "results that have an index"),
        ],
    )
    def test_answers_of_another_shape_are_errors(self, server, answer, message):
        server.answers = [lambda whole: answer]
        with pytest.raises(ModelError, match=message):
            HttpReranker(server.url, model="m").score("blue", TEXTS)

    @pytest.mark.parametrize(
        "wrong",
        [{"url": "file:///a"}, {"url": "localhost"}, {"timeout": 0}, {"retries": -1}, {"batch_size": 0}],
    )
    def test_invalid_options_are_refused(self, wrong):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            HttpReranker(**{"url": "http://h/v1/rerank", "model": "m", **wrong})

    def test_questions_are_sent_at_the_same_time(self, server):
        retriever = Retriever.from_texts(TEXTS, **make_components(verifier=HttpReranker(server.url, model="m")))
        contexts = retriever.retrieve_many(["blue sky", "green grass"])
        assert [context.passages[0].passage.text for context in contexts] == TEXTS[:2]


def test_arguments_are_checked():
    verifier = adapt_verifier(share)
    with pytest.raises(QueryError):
        verifier.score(3, ["a"])
    with pytest.raises(PassageError):
        verifier.score("q", "a")
    assert np.array_equal(verifier.score("q", []), [])
