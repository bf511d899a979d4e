"""The retriever as chains use it: options, copies, identity of documents, bad input."""

import asyncio
import copy
import threading

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
from meve import RetrieverConfig
from meve.errors import ConfigurationError, QueryError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

BLUE = "blue sky"
KEYS = {"relevance_score", "meve_verified", "meve_source", "meve_rank", "meve_tokens"}


def ids(found):
    return [document.id for document in found]


def test_documents_are_copies_with_id_and_metadata_and_an_account(retriever, documents):
    """Flat keys on every one; the caller's own stay as they were."""
    before = [d.model_copy(deep=True) for d in documents]
    found = retriever.invoke(BLUE)
    assert found
    for rank, document in enumerate(found, start=1):
        own = next(d for d in documents if d.id == document.id)
        assert document is not own
        assert document.page_content == own.page_content
        assert {**document.metadata, **own.metadata} == document.metadata
        assert set(document.metadata) == set(own.metadata) | KEYS
        assert document.metadata["meve_rank"] == rank
        assert 0 <= document.metadata["relevance_score"] <= 1
    found[0].metadata["lang"] = "changed"
    assert documents == before
    assert retriever.invoke(BLUE)[0].metadata["lang"] == "en"


def test_equal_texts_keep_their_own_identity(parts):
    """By id, else by source and text: never by text alone."""
    twins = [Document("blue sky", metadata={"source": name, "n": n}) for n, name in enumerate("ab")]
    found = MeVeRetriever.from_documents(twins, **parts).invoke(BLUE)
    assert {d.metadata["source"] for d in found} == {"a", "b"}
    assert ids(found) == [None, None], "what had no id gets none"
    again = MeVeRetriever.from_documents(twins, **parts).invoke(BLUE)
    assert [d.metadata["source"] for d in found] == [d.metadata["source"] for d in again]
    named = [p.passage.id for p in found.context.passages]
    assert named == [p.passage.id for p in again.context.passages]
    assert len(set(named)) == 2


def test_metadata_that_json_cannot_hold_comes_back_too(parts):
    """An index could not save it, but nothing is lost on the way."""
    thing = threading.Lock()
    found = MeVeRetriever.from_documents([Document("blue sky", metadata={"thing": thing, "n": float("nan")})], **parts)
    assert found.invoke(BLUE)[0].metadata["thing"] is thing


def test_what_is_done_to_a_document_reaches_no_other(retriever, documents, parts):
    """Neither the caller's nor the next answer's; nor what filters go by."""
    nested = [Document("a blue sky", id="a", metadata={"tags": ["x"], "lang": "en"})]
    made = MeVeRetriever.from_documents(nested, **parts)
    made.invoke(BLUE)[0].metadata["tags"].append("mine")
    assert nested[0].metadata["tags"] == made.invoke(BLUE)[0].metadata["tags"] == ["x"]
    nested[0].metadata["lang"] = "de"
    assert made.invoke(BLUE, filter={"lang": "en"})[0].metadata["lang"] == "en"


def test_options_that_contradict_or_are_none(documents, parts):
    """None lifts a bound; a name that doesn't exist is refused whatever its value."""
    made = MeVeRetriever.from_documents(documents, k=1, **parts)
    assert len(made.invoke(BLUE, k=None)) > 1
    with pytest.raises(ConfigurationError, match="thresold"):
        made.invoke(BLUE, thresold=None)
    with pytest.raises(ConfigurationError, match=r"(limit|k) is given beside"):
        made.invoke(BLUE, k=1, limit=2)
    with pytest.raises(ValidationError, match=r"engine must be a meve.Retriever"):
        MeVeRetriever(engine="nonsense")


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "batch", "abatch"])
def test_k_is_the_final_number_in_every_style_of_call(retriever, style):
    """And `candidates` the first phase's. An async call takes the same options as a sync one."""

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
    with pytest.raises(ConfigurationError, match="limit is 0"):
        call(k=0)


def test_fields_are_checked_when_it_is_made(retriever):
    """A misspelt or impossible one is refused, not ignored."""
    for wrong in ({"thresold": 0.5}, {"k": -1}, {"k": 0}, {"threshold": 1.5}, {"max_tokens": 0}):
        with pytest.raises(ValidationError):
            MeVeRetriever(engine=retriever.engine, **wrong)


def test_what_a_call_says_goes_before_what_the_retriever_says(documents, parts):
    made = MeVeRetriever.from_documents(documents, k=1, **parts)
    assert len(made.invoke(BLUE)) == 1
    assert len(made.invoke(BLUE, k=2)) == 2


def test_a_filter_holds_in_every_phase(retriever, documents, parts):
    """Of the retriever or of the call; what it excludes never comes back, whatever the floor."""
    found = retriever.invoke("zebra facts", filter={"lang": "en"}, fallback_floor=0.0, threshold=0.0)
    assert found
    assert "zebra" not in ids(found)
    german = MeVeRetriever.from_documents(documents, filter={"lang": "de"}, **parts)
    assert ids(german.invoke("zebra facts")) == ["zebra"]
    assert ids(retriever.invoke("zebra facts", filter=lambda metadata: metadata["lang"] == "de")) == ["zebra"]
    for nonsense in (3, [], ""):
        with pytest.raises(ConfigurationError, match="the filter"):
            retriever.invoke(BLUE, filter=nonsense)


def test_nothing_is_built_anew_by_copies_bindings_and_configured_versions(retriever, monkeypatch):
    """They share one engine."""
    engines = []
    whole = type(retriever.engine).retrieve

    def watched(self, *args, **kwargs):
        engines.append(self)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(type(retriever.engine), "retrieve", watched)
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
    assert {id(engine) for engine in engines} == {id(retriever.engine)}


def test_a_prompt_can_name_the_keys(retriever):
    """They are flat, and stand on every document."""
    prompt = PromptTemplate.from_template("[{meve_rank}] {page_content} ({relevance_score}, {source})")
    shown = [format_document(document, prompt) for document in retriever.invoke(BLUE)]
    assert shown[0] == "[1] A blue sky today. (1.0, a.txt)"


def test_no_vectors_travel_with_the_documents(retriever):
    """A trace of them stays small."""
    assert all(len(dumps(document)) < 600 for document in retriever.invoke(BLUE))


def test_of_two_alike_the_better_stays(parts):
    """And one that shares no word with the question isn't brought by words at all."""
    texts = ["a blue sky today", "a blue sky today truly", "zzz"]
    strict = {**parts, "config": RetrieverConfig(redundancy=0.85)}
    found = MeVeRetriever.from_texts(texts, ids=["worse", "better", "other"], **strict)
    context = found.context("a blue sky today truly", sources="lexical", fallback_floor=0.0)
    assert [p.passage.id for p in context.passages] == ["better"]
    assert "other" not in {c.id for c in context.trace.candidates}


def test_words_are_found_in_any_case_also_those_that_most_texts_have(parts):
    """And `k` counts: a stock keyword search knows neither."""
    made = MeVeRetriever.from_texts(["A Zebra.", "The ZEBRA ran.", "zebra facts", "grass"], **parts)
    found = made.invoke("zEbRa", sources="lexical")
    assert sorted(d.page_content for d in found) == ["A Zebra.", "The ZEBRA ran.", "zebra facts"]
    assert len(made.invoke("zEbRa", sources="lexical", k=2)) == 2


def test_where_too_few_are_verified_the_next_best_are_returned_and_say_so(retriever):
    """LangChain's own fallbacks step in for errors alone, not for results that are too poor."""
    found = retriever.invoke("wide blue water", threshold=0.6, fallback_floor=0.1)
    assert {(d.metadata["meve_source"], d.metadata["meve_verified"]) for d in found[1:]} == {("fallback", False)}
    assert retriever.invoke("wide blue water", threshold=0.6, mode="no_fallback") == found[:1]


def test_equal_scores_fall_alike_in_whatever_order_documents_came(parts):
    documents = [Document(f"blue sky {n}", id=n) for n in "cabd"]
    one, other = (MeVeRetriever.from_documents(given, **parts) for given in (documents, documents[::-1]))
    assert ids(one.invoke(BLUE)) == ids(other.invoke(BLUE)) == ["a", "b", "c", "d"]


def test_the_name_and_tags_of_a_call_are_those_of_its_run(retriever):
    """As of any retriever; an error is told of the same run."""
    told = []

    class Listener(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, *, run_id, tags=None, metadata=None, **kwargs):
            told.append((run_id, kwargs["name"], tags, metadata["tenant"], metadata["ls_retriever_name"]))

        def on_retriever_error(self, error, *, run_id, **kwargs):
            told.append((run_id, type(error)))

    config = {"callbacks": [Listener()], "run_name": "mine", "tags": ["t"], "metadata": {"tenant": "x"}}
    retriever.invoke(BLUE, config)
    assert told[0][1:] == ("mine", ["t"], "x", "meve")
    with pytest.raises(ConfigurationError):
        retriever.invoke(BLUE, config, thresold=1)
    assert told[2] == (told[1][0], ConfigurationError)


def test_a_stream_is_the_whole_list_at_once(retriever):
    assert list(retriever.stream(BLUE)) == [retriever.invoke(BLUE)]


def test_langchains_own_tool_of_a_retriever(retriever):
    tool = create_retriever_tool(retriever, "search", "Searches.", response_format="content_and_artifact")
    message = tool.invoke({"type": "tool_call", "id": "1", "name": "search", "args": {"query": BLUE}})
    assert message.artifact[0].metadata["meve_verified"]


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=8), budget=st.integers(1, 60))
def test_the_budget_is_never_overrun(lengths, budget):
    """Documents joined by the separator never hold more tokens than were granted."""
    texts = [" ".join(["blue", "sky", *["word"] * n]) for n in lengths]
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    made = MeVeRetriever.from_texts(texts, max_tokens=budget, config=RetrieverConfig(redundancy=1.0), **parts)
    joined = "\n\n".join(document.page_content for document in made.invoke(BLUE))
    assert WordCounter().count(joined) <= budget


def test_neither_its_repr_nor_its_dump_holds_the_corpus(retriever):
    assert "Zebra" not in repr(retriever) + dumps(retriever)


def test_a_dict_with_an_input_is_a_question_and_other_things_are_not(retriever):
    """Chains hand such a dict to a retriever that is bound or configurable."""
    assert ids(retriever.invoke({"input": BLUE, "chat_history": []})) == ids(retriever.invoke(BLUE))
    with pytest.raises(QueryError, match="itemgetter"):
        retriever.invoke({"question": BLUE})
    with pytest.raises(QueryError, match="NoneType"):
        asyncio.run(retriever.ainvoke(None))


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_question_finds_nothing(retriever, blank):
    assert retriever.invoke(blank) == []
    assert asyncio.run(retriever.ainvoke(blank)) == []


def test_documents_without_text_are_left_out(parts):
    found = MeVeRetriever.from_documents([Document("  "), Document("blue sky")], **parts)
    assert len(found.engine) == 1


def test_texts_have_metadata_and_ids(parts):
    made = MeVeRetriever.from_texts(["blue sky", "green grass"], [{"n": 1}, {"n": 2}], ids=["a", "b"], k=1, **parts)
    found = made.invoke(BLUE)
    assert (found[0].id, found[0].metadata["n"]) == ("a", 1)
    with pytest.raises(ConfigurationError, match="ids needs one entry per text, got 1 for 2 texts"):
        MeVeRetriever.from_texts(["a", "b"], ids=["a"])


def test_the_context_has_text_and_trace(retriever):
    """The same retrieval, with its account."""
    context = retriever.context(BLUE, k=1)
    assert context.text == retriever.invoke(BLUE, k=1)[0].page_content
    assert [phase.name for phase in context.trace.phases][:2] == ["retrieve", "verify"]


def test_the_event_loop_is_not_blocked(retriever, monkeypatch):
    """The work is done on another thread."""
    where = []
    whole = type(retriever.engine).retrieve

    def watched(self, *args, **kwargs):
        where.append(threading.get_ident())
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(type(retriever.engine), "retrieve", watched)
    asyncio.run(retriever.ainvoke(BLUE))
    assert len(where) == 1
    assert where != [threading.get_ident()]


def test_fifty_at_once_get_what_one_gets(retriever):
    """In threads, and on a loop."""
    alone = retriever.invoke(BLUE)
    assert retriever.batch([BLUE] * 50) == [alone] * 50

    async def many():
        return await asyncio.gather(*(retriever.ainvoke(BLUE) for _ in range(50)))

    assert asyncio.run(many()) == [alone] * 50
