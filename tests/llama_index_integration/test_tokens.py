"""What budgets are counted with: LlamaIndex's tokenizer, unless somebody says otherwise."""

import os

import llama_index.core
import pytest
import tiktoken
from llama_index.core import set_global_tokenizer
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.utils import get_tokenizer

from llama_index_meve import MeVePostprocessor, MeVeRetriever
from llama_index_meve import _default_tokenizer as tokens
from meve import RetrieverConfig
from meve.components.tokenizers import resolve_tokens
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.stores import indexed

LONG = "Antidisestablishmentarianism under a blue sky, <|endoftext|> and so on."


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    monkeypatch.setattr(llama_index.core, "global_tokenizer", None)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    tokens._warn_once.cache_clear()


@pytest.fixture
def lost(monkeypatch):
    """No table, and no network."""

    def fails(model_name):
        raise ConnectionError("no network")

    monkeypatch.setattr(tiktoken, "encoding_for_model", fails)


def everywhere(**parts):
    """The counter of whatever has one."""
    nodes = [TextNode(text="blue sky")]
    return [
        MeVePostprocessor.make(**parts).engine.tokens,
        MeVeRetriever.from_nodes(nodes, **parts).engine.tokens,
        MeVeRetriever.from_index(indexed("SimpleVectorStore", nodes), **parts).engine.engine.tokens,
    ]


def test_llamaindex_s_own_is_the_default():
    for counter in [*everywhere(), MeVePostprocessor().engine.tokens]:
        assert counter.name == "cl100k_base"
        assert counter.count(LONG) == len(get_tokenizer()(LONG)) != resolve_tokens(None).count(LONG)
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


def test_one_that_was_set_globally_counts():
    set_global_tokenizer(str.split)
    for counter in everywhere():
        assert (counter.name, counter.count("three words here")) == ("str.split", 3)


def test_one_that_is_given_or_named_wins():
    given = WordCounter()
    assert everywhere(tokens=given) == [given] * 3
    named = everywhere(config=RetrieverConfig(tokens=resolve_tokens(None).name))
    assert [counter.name for counter in named] == [resolve_tokens(None).name] * 3


def test_what_a_synthesizer_sends_fits_by_llamaindex_s_count():
    nodes = [NodeWithScore(node=TextNode(text=f"{LONG} {n}", metadata={"page": n})) for n in range(9)]
    made = MeVePostprocessor.make(max_tokens=60, threshold=0.0)
    kept = made.postprocess_nodes(nodes, query_str="blue sky")
    sent = "\n\n".join(each.node.get_content(metadata_mode=MetadataMode.LLM) for each in kept)
    assert 0 < len(get_tokenizer()(sent)) <= 60


@pytest.mark.usefixtures("lost")
def test_where_it_cannot_be_had_the_one_that_ships_counts_and_a_warning_says_so_once(recwarn):
    names = [counter.name for counter in everywhere()]
    assert names == [resolve_tokens(None).name] * 3
    told = [str(each.message) for each in recwarn if "LlamaIndex's tokenizer can't be had" in str(each.message)]
    assert len(told) == 1
    assert "ConnectionError: no network" in told[0]
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.usefixtures("lost")
def test_where_one_is_given_nobody_looks_for_it(recwarn):
    everywhere(tokens=WordCounter())
    assert not [each for each in recwarn if "can't be had" in str(each.message)]


def test_a_folder_of_tables_of_ones_own_stays_set(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    set_global_tokenizer(str.split)
    tokens.global_token_counter()
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)
