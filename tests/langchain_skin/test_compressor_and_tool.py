"""Phases 2 to 5 on anybody's documents; and a tool whose artifact is the trace."""

import asyncio
import json

import pytest
from langchain_core.documents import Document

from langchain_meve import MeVeCompressor, create_meve_tool
from meve.errors import ConfigurationError


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


def test_documents_without_an_id_keep_their_metadata(compressor):
    twins = [Document("blue sky", metadata={"source": s}) for s in "ab"]
    found = compressor.compress_documents([*twins, Document(" ")], "blue sky")
    assert {d.metadata["source"] for d in found} == {"a", "b"}
    assert compressor.compress_documents(twins, "  ") == []


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
        with pytest.raises(ConfigurationError, match="give the MeVeRetriever itself"):
            create_meve_tool(lost)
    german = create_meve_tool(retriever, filter={"lang": "de"}, unverified=True, threshold=0.0)
    assert german.invoke({"query": "blue sky"}) == "Zebra facts for you."


def test_a_question_that_cannot_be_used_is_told_to_the_model(retriever):
    """Not raised through the agent."""
    assert "Nothing that was found" in create_meve_tool(retriever).invoke({"query": "  "})
    surrogate = create_meve_tool(retriever).invoke({"query": "blue \ud800"})
    assert surrogate.startswith("The question can't be used")
