"""Phases 2 to 5 on anybody's documents; and a tool whose artifact is the trace."""

import asyncio
import copy
import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_meve import MeVeCompressor, MeVeRetriever, create_meve_tool
from meve import RetrieverConfig
from meve.errors import ConfigurationError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


@pytest.fixture
def compressor(parts):
    return MeVeCompressor.make(**parts)


def test_it_verifies_orders_and_packs(compressor, documents):
    found = compressor.compress_documents(documents, "blue sky")
    assert found[0].id == "sky"
    assert found[0].metadata["meve_verified"]
    assert found[0].metadata["meve_source"] == "given"
    assert asyncio.run(compressor.acompress_documents(documents, "blue sky")) == found


def test_its_fields_bound_what_it_returns(parts, documents):
    assert len(MeVeCompressor.make(k=1, **parts).compress_documents(documents, "blue sky")) == 1
    tight = MeVeCompressor.make(max_tokens=4, **parts).compress_documents(documents, "blue sky")
    assert [d.page_content for d in tight] == ["A blue sky today."]
    with pytest.raises(ValueError, match="Extra inputs"):
        MeVeCompressor.make(thresold=1, **parts)
    with pytest.raises(ValueError, match=r"MeVeCompressor\.make"):
        MeVeCompressor(engine="nonsense")


def test_documents_without_an_id_keep_their_metadata(compressor):
    twins = [Document("blue sky", metadata={"source": s}) for s in "ab"]
    found = compressor.compress_documents([*twins, Document(" ")], "blue sky")
    assert {d.metadata["source"] for d in found} == {"a", "b"}
    assert compressor.compress_documents(twins, "  ") == []


metadatas = st.dictionaries(
    st.text(max_size=5),
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    max_size=4,
)


@settings(max_examples=30, deadline=None)
@given(given_metadata=st.lists(metadatas, min_size=1, max_size=5), named=st.booleans())
def test_whatever_the_metadata_all_of_it_comes_back_and_none_of_it_changes(given_metadata, named):
    """Of compressor and retriever alike, with the id or without one; but for our own keys."""
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    config = RetrieverConfig(redundancy=1.0)
    documents = [
        Document(f"blue sky {n}", id=str(n) if named else None, metadata=metadata)
        for n, metadata in enumerate(given_metadata)
    ]
    before = [d.model_copy(deep=True) for d in documents]
    compressor = MeVeCompressor.make(config=config, **parts)
    retriever = MeVeRetriever.from_documents(documents, config=config, **parts)
    for found in (compressor.compress_documents(documents, "blue sky"), retriever.invoke("blue sky")):
        assert len(found) == len(documents)
        for document in found:
            own = documents[int(document.page_content.rpartition(" ")[2])]
            assert document.id == own.id
            assert {**document.metadata, **own.metadata} == document.metadata
    assert documents == before


def test_a_compressor_s_copies_share_its_engine(compressor):
    """And neither its repr nor a copy holds more than it must."""
    assert copy.deepcopy(compressor).engine is copy.copy(compressor).engine is compressor.engine
    assert "engine" not in repr(compressor)


def test_a_compressor_works_off_the_event_loop(compressor, documents, monkeypatch):
    where = []
    whole = type(compressor.engine).select
    watched = lambda self, *args, **options: (where.append(threading.get_ident()), whole(self, *args, **options))[1]  # noqa: E731
    monkeypatch.setattr(type(compressor.engine), "select", watched)
    assert asyncio.run(compressor.acompress_documents(documents, "blue sky"))
    assert len(where) == 1
    assert where != [threading.get_ident()]


def test_nothing_given_nothing_returned(compressor):
    assert compressor.compress_documents([], "blue sky") == []


def test_the_tool_gives_text_to_the_model_and_the_trace_to_the_program(retriever):
    tool = create_meve_tool(retriever, k=1)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {"query": "blue sky"}})
    assert message.content == "A blue sky today."
    assert message.artifact["trace"]["candidates"]
    assert json.dumps(message.artifact)
    assert asyncio.run(tool.ainvoke({"query": "blue sky"})) == "A blue sky today."


def test_the_model_is_told_when_nothing_answers(retriever):
    """Unless the unverified may be shown."""
    assert "Nothing that was found answers" in create_meve_tool(retriever).invoke({"query": "quantum chromodynamics"})
    shown = create_meve_tool(retriever, unverified=True, fallback_floor=0.0).invoke({"query": "zebra chromodynamics x"})
    assert "Zebra" in shown


def test_wrong_options_of_a_tool_are_refused(retriever):
    """When it is made; and what would lose what was bound to it."""
    with pytest.raises(ConfigurationError, match="thresold"):
        create_meve_tool(retriever, thresold=1)
    for lost in (retriever.bind(filter={"lang": "de"}), retriever.with_config(tags=["x"])):
        with pytest.raises(ConfigurationError, match="pass the retriever itself"):
            create_meve_tool(lost)
    german = create_meve_tool(retriever, filter={"lang": "de"}, unverified=True, threshold=0.0)
    assert german.invoke({"query": "blue sky"}) == "Zebra facts for you."


def test_a_question_that_cannot_be_used_is_told_to_the_model(retriever):
    """Not raised through the agent."""
    assert "Nothing that was found" in create_meve_tool(retriever).invoke({"query": "  "})
    surrogate = create_meve_tool(retriever).invoke({"query": "blue \ud800"})
    assert surrogate.startswith("The query is invalid")
