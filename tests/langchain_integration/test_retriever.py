"""MeVeRetriever as chains use it: options, copies, document identity, invalid input."""

import asyncio
import copy
import threading
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.load import dumps
from langchain_core.prompts import PromptTemplate, format_document
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import create_retriever_tool
from pydantic import ValidationError

from langchain_meve import MeVeRetriever
from meve import Passage, Retriever, RetrieverConfig
from meve.errors import ConfigurationError, PassageError, QueryError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

BLUE = "blue sky"
KEYS = {"relevance_score", "meve_verified", "meve_source", "meve_rank", "meve_tokens"}


def ids(results):
    return [document.id for document in results]


def test_documents_are_copies_with_result_metadata(retriever, documents):
    before = [d.model_copy(deep=True) for d in documents]
    results = retriever.invoke(BLUE)
    assert results
    for rank, document in enumerate(results, start=1):
        original_document = next(d for d in documents if d.id == document.id)
        assert document is not original_document
        assert document.page_content == original_document.page_content
        assert {**document.metadata, **original_document.metadata} == document.metadata
        assert set(document.metadata) == set(original_document.metadata) | KEYS
        assert document.metadata["meve_rank"] == rank
        assert 0 <= document.metadata["relevance_score"] <= 1
    results[0].metadata["lang"] = "changed"
    assert documents == before
    assert retriever.invoke(BLUE)[0].metadata["lang"] == "en"


def test_title_of_an_indexed_passage_stands_before_its_text(parts):
    passage = Passage(id="a", title="Tomatoes › Watering", text="Twice a week.", metadata={"lang": "en"})
    (document,) = MeVeRetriever(retriever=Retriever.from_passages([passage], **parts)).invoke("watering tomatoes")
    assert (document.id, document.metadata["lang"]) == ("a", "en")
    assert document.page_content == "Tomatoes › Watering\nTwice a week."


def test_equal_texts_stay_two_documents(parts):
    """Identified by id, else by source and text."""
    equal_texts = [Document("blue sky", metadata={"source": name, "n": n}) for n, name in enumerate("ab")]
    results = MeVeRetriever.from_documents(equal_texts, **parts).invoke(BLUE)
    assert {d.metadata["source"] for d in results} == {"a", "b"}
    assert ids(results) == [None, None], "what had no id gets none"
    again = MeVeRetriever.from_documents(equal_texts, **parts).invoke(BLUE)
    assert [d.metadata["source"] for d in results] == [d.metadata["source"] for d in again]
    named = [p.passage.id for p in results.context.passages]
    assert named == [p.passage.id for p in again.context.passages]
    assert len(set(named)) == 2


def test_metadata_that_json_cannot_hold_is_returned(parts):
    thing = threading.Lock()
    results = MeVeRetriever.from_documents(
        [Document("blue sky", metadata={"thing": thing, "n": float("nan")})], **parts
    )
    assert results.invoke(BLUE)[0].metadata["thing"] is thing


def test_dates_are_filtered_and_saved_as_iso_texts(parts, tmp_path):
    documents = [Document(f"blue sky {year}", metadata={"on": date(year, 5, 1)}) for year in (2001, 2010)]
    retriever = MeVeRetriever.from_documents(documents, **parts)
    assert [d.metadata["on"] for d in retriever.invoke(BLUE, filter={"on": {"$lt": "2005"}})] == [date(2001, 5, 1)]
    retriever.retriever.save(tmp_path)
    saved = Retriever.load(tmp_path, **parts).retrieve(BLUE, where={"on": {"$gte": "2005"}}).passages
    assert [each.passage.metadata["on"] for each in saved] == ["2010-05-01"]


def test_changed_document_affects_no_other(retriever, documents, parts):
    nested = [Document("a blue sky", id="a", metadata={"tags": ["x"], "lang": "en"})]
    new_retriever = MeVeRetriever.from_documents(nested, **parts)
    new_retriever.invoke(BLUE)[0].metadata["tags"].append("mine")
    assert nested[0].metadata["tags"] == new_retriever.invoke(BLUE)[0].metadata["tags"] == ["x"]
    nested[0].metadata["lang"] = "de"
    assert new_retriever.invoke(BLUE, filter={"lang": "en"})[0].metadata["lang"] == "en"


def test_none_lifts_limit_and_contradicting_options_are_refused(documents, parts):
    new_retriever = MeVeRetriever.from_documents(documents, k=1, **parts)
    assert len(new_retriever.invoke(BLUE, k=None)) > 1
    with pytest.raises(ConfigurationError, match="thresold"):
        new_retriever.invoke(BLUE, thresold=None)
    with pytest.raises(ConfigurationError, match=r"(limit and k|k and limit) are the same option"):
        new_retriever.invoke(BLUE, k=1, limit=2)
    with pytest.raises(ValidationError, match=r"retriever must be a meve.Retriever"):
        MeVeRetriever(retriever="nonsense")


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "batch", "abatch"])
def test_k_limits_documents_in_every_call_style(retriever, style):

    def call(**options):
        if style == "invoke":
            return retriever.invoke(BLUE, **options)
        if style == "ainvoke":
            return asyncio.run(retriever.ainvoke(BLUE, **options))
        if style == "batch":
            return retriever.batch([BLUE, BLUE], **options)[1]
        return asyncio.run(retriever.abatch([BLUE, BLUE], **options))[1]

    assert len(call()) > 2
    assert len(call(k=2)) == 2
    assert len(call(k=1, threshold=0.9)) == 1
    assert len(call(max_tokens=4)) == 1
    with pytest.raises(ConfigurationError, match="'thresold': did you mean 'threshold'"):
        call(thresold=0.5)
    with pytest.raises(ConfigurationError, match="limit must be an integer of at least 1, got 0"):
        call(k=0)


def test_invalid_fields_are_refused_on_creation(retriever):
    for wrong in ({"thresold": 0.5}, {"k": -1}, {"k": 0}, {"threshold": 1.5}, {"max_tokens": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            MeVeRetriever(retriever=retriever.retriever, **wrong)


def test_call_option_overrides_field(documents, parts):
    new_retriever = MeVeRetriever.from_documents(documents, k=1, **parts)
    assert len(new_retriever.invoke(BLUE)) == 1
    assert len(new_retriever.invoke(BLUE, k=2)) == 2


def test_filter_applies_in_every_phase(retriever, documents, parts):
    results = retriever.invoke("zebra facts", filter={"lang": "en"}, fallback_floor=0.0, threshold=0.0)
    assert results
    assert "zebra" not in ids(results)
    german = MeVeRetriever.from_documents(documents, filter={"lang": "de"}, **parts)
    assert ids(german.invoke("zebra facts")) == ["zebra"]
    assert ids(retriever.invoke("zebra facts", filter=lambda metadata: metadata["lang"] == "de")) == ["zebra"]
    for nonsense in (3, [], ""):
        with pytest.raises(ConfigurationError, match="the filter"):
            retriever.invoke(BLUE, filter=nonsense)


@pytest.fixture
def calls(retriever, monkeypatch):
    """The retriever and the thread of each call of `meve.Retriever.retrieve`."""
    calls = []
    original = type(retriever.retriever).retrieve

    def record(self, *args, **kwargs):
        calls.append((self, threading.get_ident()))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(type(retriever.retriever), "retrieve", record)
    return calls


def test_copies_bindings_and_configured_versions_share_corpus(retriever, calls):
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"), threshold=ConfigurableField(id="t"), max_tokens=ConfigurableField(id="m")
    )
    assert len(configurable.invoke(BLUE, {"configurable": {"k": 1}})) == 1
    assert len(configurable.invoke(BLUE, {"configurable": {"m": 4}})) == 1
    assert len(configurable.invoke(BLUE, {"configurable": {"t": 0.0, "k": 2}})) == 2
    assert len(retriever.bind(k=1).invoke(BLUE)) == 1
    assert len(retriever.with_config(tags=["x"]).invoke(BLUE)) > 1
    assert len(retriever.model_copy(update={"k": 1}).invoke(BLUE)) == 1
    assert len(copy.copy(retriever).invoke(BLUE, k=1)) == 1
    assert len(copy.deepcopy(retriever).invoke(BLUE, k=1)) == 1
    assert {id(each) for each, _ in calls} == {id(retriever.retriever)}


def test_prompt_template_reads_result_metadata(retriever):
    prompt = PromptTemplate.from_template("[{meve_rank}] {page_content} ({relevance_score}, {source})")
    shown = [format_document(document, prompt) for document in retriever.invoke(BLUE)]
    assert shown[0] == "[1] A blue sky today. (1.0, a.txt)"


def test_documents_hold_no_vectors(retriever):
    assert all(len(dumps(document)) < 600 for document in retriever.invoke(BLUE))


def test_better_of_two_duplicates_is_kept(parts):
    """Documents that share no word with the query are no keyword candidates."""
    texts = ["a blue sky today", "A blue sky today. Truly.", "zzz"]
    strict = {**parts, "config": RetrieverConfig(redundancy=0.85)}
    results = MeVeRetriever.from_texts(texts, ids=["worse", "better", "other"], **strict)
    context = results.context("a blue sky today truly", sources="lexical", fallback_floor=0.0)
    assert [p.passage.id for p in context.passages] == ["better"]
    assert "other" not in {c.id for c in context.trace.candidates}


def test_keyword_search_ignores_case_and_finds_frequent_words(parts):
    new_retriever = MeVeRetriever.from_texts(["A Zebra.", "The ZEBRA ran.", "zebra facts", "grass"], **parts)
    results = new_retriever.invoke("zEbRa", sources="lexical")
    assert sorted(d.page_content for d in results) == ["A Zebra.", "The ZEBRA ran.", "zebra facts"]
    assert len(new_retriever.invoke("zEbRa", sources="lexical", k=2)) == 2


def test_fallback_documents_are_marked_unverified(retriever):
    results = retriever.invoke("wide blue water", threshold=0.6, fallback_floor=0.1)
    assert {(d.metadata["meve_source"], d.metadata["meve_verified"]) for d in results[1:]} == {("fallback", False)}
    assert retriever.invoke("wide blue water", threshold=0.6, mode="no_fallback") == results[:1]


def test_ties_are_broken_independently_of_input_order(parts):
    documents = [Document(f"blue sky {n}", id=n) for n in "cabd"]
    one, other = (MeVeRetriever.from_documents(docs, **parts) for docs in (documents, documents[::-1]))
    assert ids(one.invoke(BLUE)) == ids(other.invoke(BLUE)) == ["a", "b", "c", "d"]


def test_run_has_name_tags_and_metadata_of_call(retriever):
    events = []

    class Listener(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, *, run_id, tags=None, metadata=None, **kwargs):
            events.append((run_id, kwargs["name"], tags, metadata["tenant"], metadata["ls_retriever_name"]))

        def on_retriever_error(self, error, *, run_id, **kwargs):
            events.append((run_id, type(error)))

    config = {"callbacks": [Listener()], "run_name": "mine", "tags": ["t"], "metadata": {"tenant": "x"}}
    retriever.invoke(BLUE, config)
    assert events[0][1:] == ("mine", ["t"], "x", "meve")
    with pytest.raises(ConfigurationError):
        retriever.invoke(BLUE, config, thresold=1)
    assert events[2] == (events[1][0], ConfigurationError)


def test_stream_yields_whole_list_once(retriever):
    assert list(retriever.stream(BLUE)) == [retriever.invoke(BLUE)]


def test_create_retriever_tool_accepts_retriever(retriever):
    tool = create_retriever_tool(retriever, "search", "Searches.", response_format="content_and_artifact")
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": BLUE}})
    assert message.artifact[0].metadata["meve_verified"]


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=8), budget=st.integers(1, 60))
def test_documents_never_exceed_token_budget(lengths, budget):
    """Separators included."""
    texts = [" ".join(["blue", "sky", *["word"] * n]) for n in lengths]
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    new_retriever = MeVeRetriever.from_texts(texts, max_tokens=budget, config=RetrieverConfig(redundancy=1.0), **parts)
    joined = "\n\n".join(document.page_content for document in new_retriever.invoke(BLUE))
    assert WordCounter().count(joined) <= budget


def test_repr_and_dump_omit_corpus(retriever):
    assert "Zebra" not in repr(retriever) + dumps(retriever)


def test_dict_with_input_is_a_query_and_other_types_are_refused(retriever):
    assert ids(retriever.invoke({"input": BLUE, "chat_history": []})) == ids(retriever.invoke(BLUE))
    with pytest.raises(QueryError, match="itemgetter"):
        retriever.invoke({"question": BLUE})
    with pytest.raises(QueryError, match="NoneType"):
        asyncio.run(retriever.ainvoke(None))


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_blank_query_returns_nothing(retriever, blank):
    assert retriever.invoke(blank) == []
    assert asyncio.run(retriever.ainvoke(blank)) == []


def test_documents_without_text_are_skipped(parts):
    results = MeVeRetriever.from_documents([Document("  "), Document("blue sky")], **parts)
    assert len(results.retriever) == 1


def test_from_texts_sets_metadata_and_ids(parts):
    new_retriever = MeVeRetriever.from_texts(
        ["blue sky", "green grass"], [{"n": 1}, {"n": 2}], ids=["a", "b"], k=1, **parts
    )
    results = new_retriever.invoke(BLUE)
    assert (results[0].id, results[0].metadata["n"]) == ("a", 1)
    with pytest.raises(ConfigurationError, match="ids needs one entry per text, got 1 for 2 texts"):
        MeVeRetriever.from_texts(["a", "b"], ids=["a"])


def test_context_holds_text_and_trace(retriever):
    context = retriever.context(BLUE, k=1)
    assert context.text == retriever.invoke(BLUE, k=1)[0].page_content
    assert [phase.name for phase in context.trace.phases][:2] == ["retrieve", "verify"]


def test_ainvoke_runs_off_event_loop(retriever, calls):
    asyncio.run(retriever.ainvoke(BLUE))
    assert len(calls) == 1
    assert calls[0][1] != threading.get_ident()


def test_fifty_concurrent_calls_equal_one_call(retriever):
    alone = retriever.invoke(BLUE)
    assert retriever.batch([BLUE] * 50) == [alone] * 50

    async def many():
        return await asyncio.gather(*(retriever.ainvoke(BLUE) for _ in range(50)))

    assert asyncio.run(many()) == [alone] * 50


def test_where_is_refused_with_the_name_that_it_has_here(retriever):
    for ask in (retriever.invoke, retriever.context):
        with pytest.raises(ConfigurationError, match="unknown option 'where': it is called 'filter' here"):
            ask("blue sky", where={"lang": "en"})


def test_a_text_in_place_of_a_list_or_a_document_raises():
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    with pytest.raises(ValueError, match="texts must be a list of texts, got a single text 'blue sky'"):
        MeVeRetriever.from_texts("blue sky", **parts)
    with pytest.raises(PassageError, match="documents must be Documents of LangChain, got 'blue sky'"):
        MeVeRetriever.from_documents(["blue sky"], **parts)
    retriever = MeVeRetriever.from_texts(["blue sky"], **parts)
    with pytest.raises(ConfigurationError, match="unknown option 'top_k': did you mean 'k'"):
        retriever.invoke("blue sky", top_k=2)
