"""Test that every door of retrieval takes the settings by name, and explains an unknown one."""

import copy
import inspect
import pickle
from dataclasses import fields, replace

import pytest
from langchain_core.documents import Document
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_meve
import llama_index_meve
from langchain_meve.classic import MeVeChatMessageHistory
from meve import Retriever, RetrieverConfig
from meve.errors import ConfigurationError
from meve.memory import GovernedMemory
from meve.pipeline.engine import make_engine
from tests.fake_components import WordEmbedder, make_components

TEXTS = ["The sky is blue.", "The sky is blue at noon.", "Grass is green."]


def nodes():
    return [TextNode(text=text) for text in TEXTS]


def from_texts(**options):
    retriever = Retriever.from_texts(TEXTS, **make_components(), **options)
    return lambda: len(retriever.retrieve("blue sky").passages)


def langchain_retriever(**options):
    retriever = langchain_meve.MeVeRetriever.from_texts(TEXTS, **make_components(), **options)
    return lambda: len(retriever.invoke("blue sky"))


def langchain_compressor(**options):
    compressor = langchain_meve.MeVeCompressor.make(**make_components(), **options)
    return lambda: len(compressor.compress_documents([Document(text) for text in TEXTS], "blue sky"))


def llama_index_retriever(**options):
    retriever = llama_index_meve.MeVeRetriever.from_nodes(nodes(), **make_components(), **options)
    return lambda: len(retriever.retrieve("blue sky"))


def llama_index_postprocessor(**options):
    postprocessor = llama_index_meve.MeVePostprocessor.make(**make_components(), **options)
    given = [NodeWithScore(node=node) for node in nodes()]
    return lambda: len(postprocessor.postprocess_nodes(given, query_str="blue sky"))


def llama_index_query_engine(**options):
    retriever = llama_index_meve.MeVeRetriever.from_nodes(nodes(), **make_components())
    engine = llama_index_meve.create_meve_query_engine(retriever, llm=MockLLM(), **options)
    assert "limit" not in retriever.options
    return lambda: len(engine.retrieve("blue sky"))


DOORS = [
    from_texts,
    langchain_retriever,
    langchain_compressor,
    llama_index_retriever,
    llama_index_postprocessor,
    llama_index_query_engine,
]
ALL = {**RetrieverConfig(lexical=None).to_dict(), "tokens": None}


@pytest.mark.parametrize("door", DOORS)
def test_settings_by_name_decide_the_retrieval(door):
    assert door(fill=False, duplicates="repeated", redundancy=1.0)() == 2
    assert door(fill=False, duplicates="similar", redundancy=0.0)() == 1
    assert door(fill=False, redundancy=1.0, limit=1)() == 1


@pytest.mark.parametrize("door", DOORS)
def test_every_setting_is_taken(door):
    names = {field.name for field in fields(RetrieverConfig)} - {"tokens", "lexical"}
    assert door(**{name: ALL[name] for name in names})()


@pytest.mark.parametrize("door", DOORS)
def test_unknown_option_names_the_nearest_and_lists_all(door):
    with pytest.raises(ConfigurationError, match="unknown option 'topk'") as caught:
        door(topk=3)
    nearest = {from_texts: "limit", langchain_retriever: "k", langchain_compressor: "k"}.get(door, "top_")
    assert f"did you mean '{nearest}" in str(caught.value)
    assert "known: " in str(caught.value)
    assert "max_tokens" in str(caught.value)


@pytest.mark.parametrize("door", DOORS)
def test_invalid_value_is_named_before_work(door):
    with pytest.raises(ConfigurationError, match="hops must be an integer of at least 1, got 0"):
        door(hops=0)


@pytest.mark.parametrize(
    ("door", "own"), [(langchain_retriever, "k"), (langchain_compressor, "k"), (llama_index_postprocessor, "top_n")]
)
def test_two_names_of_one_option_are_refused(door, own):
    with pytest.raises(ConfigurationError, match=f"{own} and limit are the same option"):
        door(**{own: 1, "limit": 2})


def test_unknown_option_is_refused_before_passages_are_embedded():
    class Untouched:
        name, dimension, similarity = "untouched", 3, "cosine"
        embed_query = embed_passages = None

    for door in (Retriever.from_texts, langchain_meve.MeVeRetriever.from_texts):
        with pytest.raises(ConfigurationError, match="unknown option 'topk'"):
            door(TEXTS, embedder=Untouched(), topk=3)


def test_settings_by_name_override_the_configuration_and_the_saved_one(tmp_path):
    config = RetrieverConfig(max_tokens=64, limit=2)
    assert make_engine(**make_components(), config=config, limit=1).config == config.override(limit=1)
    Retriever.from_texts(TEXTS, **make_components(), config=config).save(tmp_path)
    assert Retriever.load(tmp_path, **make_components(), limit=1).config == config.override(limit=1)


def test_options_survive_copies_and_serialization():
    given = llama_index_meve.MeVePostprocessor.make(hops=2)
    assert llama_index_meve.MeVePostprocessor.from_dict(given.to_dict()).options == {"hops": 2}
    assert langchain_meve.MeVeCompressor.make(hops=2).model_copy().options == {"hops": 2}


@pytest.mark.parametrize(
    ("call", "near", "listed"),
    [
        (lambda *_: RetrieverConfig(topk=3), "limit", "max_tokens"),
        (lambda memory, _: memory.search("tea", user_id="ann", topk=3), "limit", "max_tokens"),
        (lambda memory, _: memory.add("I like tea.", user_id="ann", tag=["food"]), "tags", "session_id"),
        (lambda memory, _: memory.update("x", user_id="ann", reason="r", txt="x"), "text", "tags"),
        (lambda memory, file: GovernedMemory.open(file, embeder="static"), "embedder", "policy"),
    ],
    ids=["RetrieverConfig", "search", "add", "update", "open"],
)
def test_settings_and_memory_explain_an_unknown_option(call, near, listed, tmp_path):
    explained = pytest.raises(ConfigurationError, match=f"unknown option .*did you mean '{near}'.*known: .*{listed}")
    with GovernedMemory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory, explained:
        call(memory, tmp_path / "other.db")


def test_settings_keep_their_signature_copies_and_pickles():
    config = RetrieverConfig(limit=2)
    assert "max_tokens" in inspect.signature(RetrieverConfig).parameters
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == replace(config) == config


def test_a_call_asks_for_the_filter_by_its_name():
    retriever = Retriever.from_texts(TEXTS, **make_components())
    with pytest.raises(ConfigurationError, match="did you mean 'where'"):
        retriever.retrieve("blue sky", filter={"lang": "en"})


OTHERS = [
    (langchain_meve.MeVeStore, "namespace", "namespaces"),
    (langchain_meve.MeVeVectorStore, "verifer", "verifier"),
    (langchain_meve.MeVeMemoryMiddleware, "userid", "user_id"),
    (MeVeChatMessageHistory, "sesion_id", "session_id"),
    (llama_index_meve.MeVeMemory, "token_limt", "token_limit"),
    (llama_index_meve.MeVeMemoryBlock, "budget", "max_tokens"),
    (llama_index_meve.MeVeChatStore, "userid", "user_id"),
]


@pytest.mark.parametrize(("door", "given", "near"), OTHERS, ids=lambda each: getattr(each, "__name__", each))
def test_other_doors_explain_an_unknown_option_too(door, given, near):
    with pytest.raises(
        ConfigurationError, match=f"unknown option '{given}' of .*: did you mean '{near}'.*known: .*{near}"
    ):
        door(**{given: "x"})
