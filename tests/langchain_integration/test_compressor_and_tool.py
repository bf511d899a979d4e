"""MeVeCompressor and the retriever tool."""

import asyncio
import copy
import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_meve import MeVeCompressor, MeVeEmbeddings, MeVeRetriever, create_meve_tool
from meve import RetrieverConfig
from meve.errors import ConfigurationError
from meve.integrations._tool_texts import DOUBT, NO_RESULT_MESSAGE
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


@pytest.fixture
def compressor(parts):
    return MeVeCompressor.make(**parts)


def test_compressor_verifies_and_ranks_documents(compressor, documents):
    results = compressor.compress_documents(documents, "blue sky")
    assert results[0].id == "sky"
    assert results[0].metadata["meve_verified"]
    assert results[0].metadata["meve_source"] == "given"
    assert asyncio.run(compressor.acompress_documents(documents, "blue sky")) == results


def test_compressor_without_arguments_has_the_shipped_models():
    kept = MeVeCompressor(k=1).compress_documents(
        [Document("Bread is baked from flour."), Document("Tomatoes want six to eight hours of sun a day.")],
        "How much sun do tomatoes want?",
    )
    assert [(d.page_content, d.metadata["meve_verified"]) for d in kept] == [
        ("Tomatoes want six to eight hours of sun a day.", True)
    ]


def test_compressor_fields_limit_documents_and_tokens(parts, documents):
    assert len(MeVeCompressor.make(k=1, **parts).compress_documents(documents, "blue sky")) == 1
    tight = MeVeCompressor.make(max_tokens=4, **parts).compress_documents(documents, "blue sky")
    assert [d.page_content for d in tight] == ["A blue sky today."]
    with pytest.raises(ValueError, match="did you mean 'threshold'"):
        MeVeCompressor.make(thresold=1, **parts)
    with pytest.raises(ValueError, match=r"MeVeCompressor\.make"):
        MeVeCompressor(engine="nonsense")


def test_documents_without_id_keep_metadata(compressor):
    equal_texts = [Document("blue sky", metadata={"source": s}) for s in "ab"]
    results = compressor.compress_documents([*equal_texts, Document(" ")], "blue sky")
    assert {d.metadata["source"] for d in results} == {"a", "b"}
    assert compressor.compress_documents(equal_texts, "  ") == []


def test_different_texts_of_one_id_are_kept(compressor):
    found = [Document(text, id="1") for text in ("A blue sky.", "The blue sea.", "A blue sky.")]
    assert [(d.id, d.page_content) for d in compressor.compress_documents(found, "blue")] == [
        ("1", "A blue sky."), ("1", "The blue sea."),
    ]  # fmt: skip


metadatas = st.dictionaries(
    st.text(max_size=5),
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    max_size=4,
)


@settings(max_examples=30, deadline=None)
@given(given_metadata=st.lists(metadatas, min_size=1, max_size=5), named=st.booleans())
def test_any_metadata_is_returned_and_input_is_unchanged(given_metadata, named):
    """For compressor and retriever, with and without ids; only MeVe's own keys are added."""
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    config = RetrieverConfig(redundancy=1.0)
    documents = [
        Document(f"blue sky {n}", id=str(n) if named else None, metadata=metadata)
        for n, metadata in enumerate(given_metadata)
    ]
    before = [d.model_copy(deep=True) for d in documents]
    compressor = MeVeCompressor.make(config=config, **parts)
    retriever = MeVeRetriever.from_documents(documents, config=config, **parts)
    for results in (compressor.compress_documents(documents, "blue sky"), retriever.invoke("blue sky")):
        assert len(results) == len(documents)
        for document in results:
            original_document = documents[int(document.page_content.rpartition(" ")[2])]
            assert document.id == original_document.id
            assert {**document.metadata, **original_document.metadata} == document.metadata
    assert documents == before


def test_compressor_copies_share_engine(compressor):
    assert copy.deepcopy(compressor).engine is copy.copy(compressor).engine is compressor.engine
    assert "engine" not in repr(compressor)


def test_compressor_runs_off_event_loop(compressor, documents, monkeypatch):
    threads = []
    original = type(compressor.engine).select
    record = lambda self, *args, **options: (threads.append(threading.get_ident()), original(self, *args, **options))[1]  # noqa: E731
    monkeypatch.setattr(type(compressor.engine), "select", record)
    assert asyncio.run(compressor.acompress_documents(documents, "blue sky"))
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_parents_of_a_parent_document_retriever_are_not_lost_for_their_length():
    pytest.importorskip("langchain_classic")
    from langchain_classic.retrievers import ContextualCompressionRetriever, ParentDocumentRetriever
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    other = " ".join(f"Bed {n} was dug over and raked before the frost came." for n in range(40))
    answer = "Tomatoes want six to eight hours of sun a day."
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(MeVeEmbeddings()),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0),
    )
    parents.add_documents([Document(f"{other} {answer} {other}")])
    question = "How many hours of sun do tomatoes want?"
    for compressor in (MeVeCompressor(), MeVeCompressor.make(), MeVeCompressor(max_tokens=256)):
        chain = ContextualCompressionRetriever(base_retriever=parents, base_compressor=compressor)
        (kept,) = chain.invoke(question)
        assert kept.metadata["meve_verified"]
        assert answer in kept.page_content
        assert (len(kept.page_content) < 2_000) == (compressor.max_tokens == 256)


def test_compressor_without_documents_returns_nothing(compressor):
    assert compressor.compress_documents([], "blue sky") == []


def test_tool_content_is_text_and_artifact_is_trace(retriever):
    tool = create_meve_tool(retriever, k=1)
    message = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {"query": "blue sky"}})
    assert message.content == "A blue sky today."
    assert message.artifact["trace"]["candidates"]
    assert json.dumps(message.artifact)
    assert asyncio.run(tool.ainvoke({"query": "blue sky"})) == "A blue sky today."


def test_tool_doubts_what_was_not_verified_and_leaves_it_out_if_told(retriever):
    doubtful = {"query": "zebra chromodynamics x"}
    assert create_meve_tool(retriever).invoke(doubtful).startswith(f"{DOUBT}\n\nZebra facts for you.")
    strict = create_meve_tool(retriever, when_insufficient="verified_only")
    assert strict.invoke(doubtful) == NO_RESULT_MESSAGE
    assert create_meve_tool(retriever).invoke({"query": "quantum chromodynamics"}) == NO_RESULT_MESSAGE


@pytest.mark.parametrize("way", ["verified_only", "abstain", "raise"])
def test_tool_keeps_a_stricter_setting_of_the_retriever(retriever, way):
    for update in ({"when_insufficient": way}, {"options": {"when_insufficient": way}}):
        strict = retriever.model_copy(update=update)
        assert create_meve_tool(strict).invoke({"query": "zebra chromodynamics x"}) == NO_RESULT_MESSAGE


def test_compressor_follows_when_insufficient(parts, documents):
    far = "zebra chromodynamics x"
    shown = MeVeCompressor.make(**parts).compress_documents(documents, far)
    assert [d.metadata["meve_verified"] for d in shown] == [False] * len(shown)
    assert shown[0].id == "zebra"
    for way in ("verified_only", "abstain"):
        assert MeVeCompressor.make(when_insufficient=way, **parts).compress_documents(documents, far) == []


def test_tool_refuses_unknown_options_and_bound_retrievers(retriever):
    with pytest.raises(ConfigurationError, match="thresold"):
        create_meve_tool(retriever, thresold=1)
    for lost in (retriever.bind(filter={"lang": "de"}), retriever.with_config(tags=["x"])):
        with pytest.raises(ConfigurationError, match="pass the retriever itself"):
            create_meve_tool(lost)
    german = create_meve_tool(retriever, filter={"lang": "de"}, threshold=0.0)
    assert german.invoke({"query": "blue sky"}) == "Zebra facts for you."


def test_invalid_query_is_returned_to_model(retriever):
    assert "No retrieved passage" in create_meve_tool(retriever).invoke({"query": "  "})
    surrogate = create_meve_tool(retriever).invoke({"query": "blue \ud800"})
    assert surrogate.startswith("The query is invalid")
