"""MeVeRetriever in the places of another retriever: the rest of the chain stays as it is."""

import asyncio
from operator import itemgetter

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_meve import MeVeCompressor, MeVeRetriever, create_meve_tool
from tests.langchain_integration.chat_models import ScriptedChatModel

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

BLUE = "blue sky"
PROMPT = ChatPromptTemplate.from_template("Answer {input} from:\n{context}")


def model(*replies):
    """Return a model that gives these replies in turn."""
    messages = iter(replies or ["an answer"])
    return ScriptedChatModel(answer=lambda _: AIMessage(next(messages)))


def join_texts(documents):
    return "\n".join(d.page_content for d in documents)


def prompts(fake):
    return "\n".join(str(message.content) for messages in fake.seen for message in messages)


def test_lcel_chain_reads_verified_documents(retriever):
    for run in ("invoke", "ainvoke", "stream"):
        fake = model()
        context = retriever | RunnableLambda(join_texts)
        chain = {"context": context, "input": RunnablePassthrough()} | PROMPT | fake | StrOutputParser()
        if run == "invoke":
            answer = chain.invoke(BLUE)
        elif run == "ainvoke":
            answer = asyncio.run(chain.ainvoke(BLUE))
        else:
            answer = "".join(chain.stream(BLUE))
        assert answer == "an answer"
        assert "A blue sky today." in prompts(fake)
        assert "Zebra" not in prompts(fake)


@pytest.mark.parametrize("wrapped", ["as it is", "configurable", "bound"])
def test_create_retrieval_chain_accepts_retriever(retriever, wrapped):
    """Also where LangChain passes the whole dict, because the retriever is wrapped."""
    classic = pytest.importorskip("langchain_classic.chains")
    combine = pytest.importorskip("langchain_classic.chains.combine_documents")
    meve_retriever = {
        "as it is": retriever,
        "configurable": retriever.configurable_fields(k=ConfigurableField(id="k")),
        "bound": retriever.bind(k=1),
    }[wrapped]
    fake = model()
    chain = classic.create_retrieval_chain(meve_retriever, combine.create_stuff_documents_chain(fake, PROMPT))
    result = chain.invoke({"input": BLUE})
    assert result["answer"] == "an answer"
    assert result["context"][0].id == "sky"
    assert "A blue sky today." in prompts(fake)


def test_agent_reads_tool_content_and_message_keeps_trace(retriever):
    agents = pytest.importorskip("langchain.agents")
    tool = create_meve_tool(retriever, k=1)
    call = {"name": tool.name, "args": {"query": BLUE}, "id": "1"}

    def answer(messages):
        return AIMessage("blue") if messages[-1].type == "tool" else AIMessage("", tool_calls=[call])

    agent = agents.create_agent(ScriptedChatModel(answer=answer), [tool])
    result = agent.invoke({"messages": [("user", "what colour is the sky?")]})
    answer = next(m for m in result["messages"] if isinstance(m, ToolMessage))
    assert answer.content == "A blue sky today."
    assert answer.artifact["trace"]["phases"]
    assert result["messages"][-1].content == "blue"
    later = asyncio.run(agent.ainvoke({"messages": [("user", "sky?")]}))
    assert later["messages"][-1].content == "blue"


def test_ensemble_retriever_fuses_retrievers(retriever):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    ensemble = retrievers.EnsembleRetriever(retrievers=[retriever, retriever.bind(k=1)], id_key="source")
    assert ensemble.invoke(BLUE)[0].id == "sky"
    assert asyncio.run(ensemble.ainvoke(BLUE))[0].id == "sky"


def test_ensemble_retriever_keeps_equal_texts_by_id_key(parts):
    """By default it merges equal texts, and one's metadata is lost."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    equal_texts = [Document("blue sky", metadata={"source": name}) for name in "ab"]
    meve_retriever = MeVeRetriever.from_documents(equal_texts, **parts)
    ensemble = retrievers.EnsembleRetriever(retrievers=[meve_retriever, meve_retriever], id_key="source")
    assert sorted(d.metadata["source"] for d in ensemble.invoke(BLUE)) == ["a", "b"]
    assert len(retrievers.EnsembleRetriever(retrievers=[meve_retriever, meve_retriever]).invoke(BLUE)) == 1


def test_multi_query_retriever_verifies_each_query(retriever):
    multi = pytest.importorskip("langchain_classic.retrievers.multi_query")
    fake = model("blue sky\nzebra facts\nopen sky")
    results = multi.MultiQueryRetriever.from_llm(retriever=retriever, llm=fake).invoke("everything?")
    assert {"sky", "zebra"} <= {d.id for d in results}


def test_compressor_merges_duplicates_of_multi_query(retriever, parts):
    """A document found by two queries has two scores, so LangChain keeps both."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    multi = pytest.importorskip("langchain_classic.retrievers.multi_query")

    def multi_query():
        return multi.MultiQueryRetriever.from_llm(retriever=retriever, llm=model("blue sky\nopen sky\nblue sea"))

    found_ids = [d.id for d in multi_query().invoke(BLUE)]
    assert len(found_ids) > len(set(found_ids))
    compression = retrievers.ContextualCompressionRetriever(
        base_compressor=MeVeCompressor.make(**parts), base_retriever=multi_query()
    )
    merged = compression.invoke(BLUE)
    assert sorted(d.id for d in merged) == sorted(set(found_ids))
    assert merged[0].metadata["relevance_score"] == 1.0
    assert [d.metadata["meve_rank"] for d in merged] == list(range(1, len(merged) + 1))


def test_contextual_compression_verifies_other_retriever(retriever, parts, documents):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    stock = RunnableLambda(lambda question: documents)
    compressor = MeVeCompressor.make(k=1, **parts)
    compression = retrievers.ContextualCompressionRetriever(base_compressor=compressor, base_retriever=stock)
    assert [d.id for d in compression.invoke(BLUE)] == ["sky"]
    assert [d.id for d in asyncio.run(compression.ainvoke(BLUE))] == ["sky"]


def test_compressor_pipeline_runs_in_any_order(parts, documents):
    stock = pytest.importorskip("langchain_classic.retrievers.document_compressors")

    class First(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return documents[:2]

    compressor = MeVeCompressor.make(**parts)
    for order in ([First(), compressor], [compressor, First()]):
        pipeline = stock.DocumentCompressorPipeline(transformers=order)
        assert pipeline.compress_documents(documents, BLUE)[0].id == "sky"


def test_contextual_compression_keeps_fields_but_not_configuration(retriever, parts):
    """It passes callbacks to its base retriever, and nothing else of the configuration."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    meve_retriever = retriever.model_copy(update={"k": 2, "filter": {"lang": "en"}})
    configurable = meve_retriever.configurable_fields(
        k=ConfigurableField(id="k"), filter=ConfigurableField(id="filter")
    )
    configuration = {"configurable": {"k": 1, "filter": {"lang": "de"}}}
    open_to_all = MeVeCompressor.make(threshold=0.0, **parts)
    wrapped = retrievers.ContextualCompressionRetriever(base_compressor=open_to_all, base_retriever=configurable)
    assert [d.metadata["lang"] for d in wrapped.invoke(BLUE, configuration)] == ["en", "en"]
    assert [d.metadata["lang"] for d in configurable.invoke("zebra facts", configuration)] == ["de"]


def test_itemgetter_pipes_query_from_dict(retriever):
    assert (itemgetter("question") | retriever).invoke({"question": BLUE})[0].id == "sky"
