"""In the places where people have a retriever today: one line changes, the rest of the chain stays."""

import asyncio
from operator import itemgetter

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_meve import MeVeCompressor, MeVeRetriever, create_meve_tool

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

BLUE = "blue sky"
PROMPT = ChatPromptTemplate.from_template("Answer {input} from:\n{context}")


class Model(GenericFakeChatModel):
    """Says what it is told to say, and remembers what it read."""

    read: list = []  # noqa: RUF012 - pydantic's

    def _generate(self, messages, *args, **kwargs):
        self.read.append(messages)
        return super()._generate(messages, *args, **kwargs)

    def bind_tools(self, tools, **kwargs):
        return self


def model(*replies):
    return Model(messages=iter(replies or ["an answer"]), read=[])


def shown(documents):
    return "\n".join(d.page_content for d in documents)


def read(fake):
    return "\n".join(str(message.content) for messages in fake.read for message in messages)


def test_an_lcel_chain(retriever):
    """Sync, async and streamed."""
    for run in ("invoke", "ainvoke", "stream"):
        fake = model()
        context = retriever | RunnableLambda(shown)
        chain = {"context": context, "input": RunnablePassthrough()} | PROMPT | fake | StrOutputParser()
        if run == "invoke":
            said = chain.invoke(BLUE)
        elif run == "ainvoke":
            said = asyncio.run(chain.ainvoke(BLUE))
        else:
            said = "".join(chain.stream(BLUE))
        assert said == "an answer"
        assert "A blue sky today." in read(fake)
        assert "Zebra" not in read(fake)


@pytest.mark.parametrize("wrapped", ["as it is", "configurable", "bound"])
def test_create_retrieval_chain(retriever, wrapped):
    """Also where LangChain hands the whole dict to what it doesn't take for a retriever."""
    classic = pytest.importorskip("langchain_classic.chains")
    combine = pytest.importorskip("langchain_classic.chains.combine_documents")
    mine = {
        "as it is": retriever,
        "configurable": retriever.configurable_fields(k=ConfigurableField(id="k")),
        "bound": retriever.bind(k=1),
    }[wrapped]
    fake = model()
    chain = classic.create_retrieval_chain(mine, combine.create_stuff_documents_chain(fake, PROMPT))
    done = chain.invoke({"input": BLUE})
    assert done["answer"] == "an answer"
    assert done["context"][0].id == "sky"
    assert "A blue sky today." in read(fake)


def test_an_agent_with_the_tool(retriever):
    """The model calls it, reads the context, and the trace stays with the message."""
    agents = pytest.importorskip("langchain.agents")
    tool = create_meve_tool(retriever, k=1)
    call = AIMessage("", tool_calls=[{"name": tool.name, "args": {"query": BLUE}, "id": "1"}])
    fake = model(call, AIMessage("blue"))
    agent = agents.create_agent(fake, [tool])
    done = agent.invoke({"messages": [("user", "what colour is the sky?")]})
    answer = next(m for m in done["messages"] if isinstance(m, ToolMessage))
    assert answer.content == "A blue sky today."
    assert answer.artifact["trace"]["phases"]
    assert done["messages"][-1].content == "blue"
    fake = model(call, AIMessage("blue"))
    later = asyncio.run(agents.create_agent(fake, [tool]).ainvoke({"messages": [("user", "sky?")]}))
    assert later["messages"][-1].content == "blue"


def test_ensemble_retriever(retriever):
    """Two of them fused, told apart by a key of their metadata; by default that is their text."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    ensemble = retrievers.EnsembleRetriever(retrievers=[retriever, retriever.bind(k=1)], id_key="source")
    assert ensemble.invoke(BLUE)[0].id == "sky"
    assert asyncio.run(ensemble.ainvoke(BLUE))[0].id == "sky"


def test_ensemble_retriever_leaves_twins_their_metadata(parts):
    """Told apart by a key; by default it takes equal texts for one, and one's metadata is lost."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    twins = [Document("blue sky", metadata={"source": name}) for name in "ab"]
    mine = MeVeRetriever.from_documents(twins, **parts)
    told = retrievers.EnsembleRetriever(retrievers=[mine, mine], id_key="source")
    assert sorted(d.metadata["source"] for d in told.invoke(BLUE)) == ["a", "b"]
    assert len(retrievers.EnsembleRetriever(retrievers=[mine, mine]).invoke(BLUE)) == 1


def test_multi_query_retriever(retriever):
    """The model asks three ways; each is verified by itself."""
    multi = pytest.importorskip("langchain_classic.retrievers.multi_query")
    fake = model("blue sky\nzebra facts\nopen sky")
    found = multi.MultiQueryRetriever.from_llm(retriever=retriever, llm=fake).invoke("everything?")
    assert {"sky", "zebra"} <= {d.id for d in found}


def test_a_compressor_behind_multi_query_takes_each_document_once(retriever, parts):
    """Found by two questions it has two scores, and LangChain takes it for two; the question's own is left."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    multi = pytest.importorskip("langchain_classic.retrievers.multi_query")

    def asking():
        return multi.MultiQueryRetriever.from_llm(retriever=retriever, llm=model("blue sky\nopen sky\nblue sea"))

    twice = [d.id for d in asking().invoke(BLUE)]
    assert len(twice) > len(set(twice))
    behind = retrievers.ContextualCompressionRetriever(
        base_compressor=MeVeCompressor.make(**parts), base_retriever=asking()
    )
    once = behind.invoke(BLUE)
    assert sorted(d.id for d in once) == sorted(set(twice))
    assert once[0].metadata["relevance_score"] == 1.0
    assert [d.metadata["meve_rank"] for d in once] == list(range(1, len(once) + 1))


def test_contextual_compression(retriever, parts, documents):
    """Our phases 2 to 5 on another retriever's documents."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    stock = RunnableLambda(lambda question: documents)
    compressor = MeVeCompressor.make(k=1, **parts)
    found = retrievers.ContextualCompressionRetriever(base_compressor=compressor, base_retriever=stock)
    assert [d.id for d in found.invoke(BLUE)] == ["sky"]
    assert [d.id for d in asyncio.run(found.ainvoke(BLUE))] == ["sky"]


def test_a_pipeline_of_compressors(parts, documents):
    """Beside a stock one, before it or after."""
    stock = pytest.importorskip("langchain_classic.retrievers.document_compressors")

    class First(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return documents[:2]

    mine = MeVeCompressor.make(**parts)
    for order in ([First(), mine], [mine, First()]):
        pipeline = stock.DocumentCompressorPipeline(transformers=order)
        assert pipeline.compress_documents(documents, BLUE)[0].id == "sky"


def test_what_is_configured_is_lost_in_contextual_compression_and_fields_are_not(retriever, parts):
    """It hands its base retriever callbacks, and nothing else of the configuration."""
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    mine = retriever.model_copy(update={"k": 2, "filter": {"lang": "en"}})
    configurable = mine.configurable_fields(k=ConfigurableField(id="k"), filter=ConfigurableField(id="filter"))
    asked = {"configurable": {"k": 1, "filter": {"lang": "de"}}}
    open_to_all = MeVeCompressor.make(threshold=0.0, **parts)
    wrapped = retrievers.ContextualCompressionRetriever(base_compressor=open_to_all, base_retriever=configurable)
    assert [d.metadata["lang"] for d in wrapped.invoke(BLUE, asked)] == ["en", "en"]
    assert [d.metadata["lang"] for d in configurable.invoke("zebra facts", asked)] == ["de"]


def test_piped_from_a_dict(retriever):
    """The question taken out of what a chain carries."""
    assert (itemgetter("question") | retriever).invoke({"question": BLUE})[0].id == "sky"
