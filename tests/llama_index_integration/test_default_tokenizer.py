"""The default token counter: LlamaIndex's tokenizer, unless another is given."""

import os

import llama_index.core
import pytest
import tiktoken
from llama_index.core import set_global_tokenizer
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.utils import get_tokenizer

from llama_index_meve import MeVePostprocessor, MeVeRetriever, _default_tokenizer
from meve import RetrieverConfig
from meve.components.tokenizers import resolve_tokens
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.vector_stores import build_index

LONG = "Antidisestablishmentarianism under a blue sky, <|endoftext|> and so on."


@pytest.fixture(autouse=True)
def _reset_global_tokenizer(monkeypatch):
    monkeypatch.setattr(llama_index.core, "global_tokenizer", None)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    _default_tokenizer._warn_once.cache_clear()


@pytest.fixture
def no_tokenizer_table(monkeypatch):
    """Fail to load the table, as without a network."""

    def fails(model_name):
        raise ConnectionError("no network")

    monkeypatch.setattr(tiktoken, "encoding_for_model", fails)


def all_counters(**parts):
    """Return the token counters of postprocessor and retrievers."""
    nodes = [TextNode(text="blue sky")]
    return [
        MeVePostprocessor.make(**parts).engine.tokens,
        MeVeRetriever.from_nodes(nodes, **parts).retriever.tokens,
        MeVeRetriever.from_index(build_index("SimpleVectorStore", nodes), **parts).retriever.engine.tokens,
    ]


def test_llamaindex_tokenizer_is_the_default():
    for counter in [*all_counters(), MeVePostprocessor().engine.tokens]:
        assert counter.name == "cl100k_base"
        assert counter.count(LONG) == len(get_tokenizer()(LONG)) != resolve_tokens(None).count(LONG)
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


def test_global_tokenizer_is_used():
    set_global_tokenizer(str.split)
    for counter in all_counters():
        assert (counter.name, counter.count("three words here")) == ("str.split", 3)


def test_given_or_configured_tokenizer_wins():
    given = WordCounter()
    assert all_counters(tokens=given) == [given] * 3
    named = all_counters(config=RetrieverConfig(tokens=resolve_tokens(None).name))
    assert [counter.name for counter in named] == [resolve_tokens(None).name] * 3


def test_synthesizer_input_fits_the_budget():
    nodes = [NodeWithScore(node=TextNode(text=f"{LONG} {n}", metadata={"page": n})) for n in range(9)]
    postprocessor = MeVePostprocessor.make(max_tokens=60, threshold=0.0)
    selected = postprocessor.postprocess_nodes(nodes, query_str="blue sky")
    sent = "\n\n".join(each.node.get_content(metadata_mode=MetadataMode.LLM) for each in selected)
    assert 0 < len(get_tokenizer()(sent)) <= 60


@pytest.mark.usefixtures("no_tokenizer_table")
def test_unavailable_tokenizer_warns_once_and_falls_back(recwarn):
    names = [counter.name for counter in all_counters()]
    assert names == [resolve_tokens(None).name] * 3
    messages = [str(each.message) for each in recwarn if "LlamaIndex's tokenizer can't be loaded" in str(each.message)]
    assert len(messages) == 1
    assert "ConnectionError: no network" in messages[0]
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.usefixtures("no_tokenizer_table")
def test_given_tokenizer_loads_no_default(recwarn):
    all_counters(tokens=WordCounter())
    assert not [each for each in recwarn if "can't be loaded" in str(each.message)]


def test_existing_cache_folder_setting_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    set_global_tokenizer(str.split)
    _default_tokenizer.global_token_counter()
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)
