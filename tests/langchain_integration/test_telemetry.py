"""OpenTelemetry in LangChain runs: MeVe's spans stand below those of the application, and hold no content."""

import asyncio

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from tests.langchain_integration.chat_models import Context, ScriptedChatModel


@pytest.fixture
def chain(retriever):
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    return {"context": retriever, "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=["Blue."])


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_retrieval_of_a_chain_is_below_the_span_of_its_caller(recorded, chain, way):
    with recorded.tracer.start_as_current_span("request"):
        answer = chain.invoke("blue sky") if way == "invoke" else asyncio.run(chain.ainvoke("blue sky"))
    assert answer.content == "Blue."
    assert recorded.parents("retrieval") == [["request"]]
    assert recorded.parents("meve.verify") == [["retrieval", "request"]]
    assert recorded.points("meve.retrievals") == {(("meve.sufficient", True),): 1}
    assert "blue" not in recorded.everything().lower()


def test_memory_of_an_agent_is_below_the_span_of_its_caller(recorded, memory):
    pytest.importorskip("langchain")
    from langchain.agents import create_agent

    from langchain_meve import MeVeMemoryMiddleware

    agent = create_agent(ScriptedChatModel(), middleware=[MeVeMemoryMiddleware(memory)], context_schema=Context)
    for text in ("I like Zyxomma dragonflies.", "What do I like?"):
        with recorded.tracer.start_as_current_span("request"):
            agent.invoke({"messages": [("user", text)]}, context=Context(user_id="secretuser"))
    assert recorded.parents("create_memory") == [["request"]]
    assert ["request"] in recorded.parents("search_memory")
    assert recorded.points("meve.memory.events")[(("meve.action", "add"),)] == 1
    told = recorded.everything()
    assert "Zyxomma" not in told
    assert "secretuser" not in told
