"""Test the retriever over a LangGraph checkpointer's history, above all that a fork doesn't see its sibling."""

import copy
import itertools
import operator
import sqlite3
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_meve import MeVeHistoryRetriever
from meve.conversation import SlicePolicy
from meve.errors import AdmissibilityError, ConfigurationError
from tests.fake_components import make_components

THREAD = {"configurable": {"thread_id": "1"}}
ALL = {"threshold": 0.0, "redundancy": 1.0}


def make_graph(saver, node=None):
    def answer(state):
        return {"messages": [AIMessage(f"answer to {state['messages'][-1].content}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", node or answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


def make_retriever(saver, **options):
    parts = make_components()
    return MeVeHistoryRetriever(
        checkpointer=saver, embedder=parts["embedder"], tokens=parts["tokens"], **{**ALL, **options}
    )


@pytest.fixture(params=["memory", "sqlite"])
def saver(request):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        yield SqliteSaver(connection)
        connection.close()


def say(graph, text, config=THREAD):
    return graph.invoke({"messages": [HumanMessage(text)]}, config, durability="sync")


def fork(graph):
    """Say two things, go back in time to after the first, and say a third."""
    say(graph, "first question")
    say(graph, "second question")
    old = next(s for s in graph.get_state_history(THREAD) if len(s.values.get("messages", [])) == 2)
    say(graph, "third question", old.config)


def test_deep_copy_reads_the_same_checkpoints(saver):
    copied = copy.deepcopy(make_retriever(saver))
    say(make_graph(saver), "first question")
    assert len(copied.invoke("question", THREAD)) == 2


def test_policy_weighs_the_phases_that_messages_name(saver):
    graph = make_graph(saver)
    draft = HumanMessage("first draft", additional_kwargs={"phase": "draft"})
    graph.invoke({"messages": [draft]}, THREAD, durability="sync")
    retriever = make_retriever(saver, policy=SlicePolicy(phases={"draft": 0.0}))
    assert [d.page_content for d in retriever.invoke("draft", THREAD)] == ["answer to first draft"]


def texts(documents):
    return {document.page_content for document in documents}


def test_fork_sees_its_own_line_and_not_its_sibling(saver):
    graph = make_graph(saver)
    fork(graph)
    found = texts(make_retriever(saver).invoke("question", THREAD))
    assert found == {"first question", "answer to first question", "third question", "answer to third question"}


def test_old_checkpoint_sees_neither_the_fork_nor_what_came_later(saver):
    graph = make_graph(saver)
    fork(graph)
    states = list(graph.get_state_history(THREAD))
    second = next(s for s in states if s.values["messages"][-1].content == "answer to second question")
    assert "third question" not in str(texts(make_retriever(saver).invoke("question", second.config)))
    assert "second question" in texts(make_retriever(saver).invoke("question", second.config))
    first = next(s for s in states if len(s.values["messages"]) == 1)
    assert texts(make_retriever(saver).invoke("question", first.config)) == {"first question"}


def test_trace_names_the_closed_branch(saver):
    graph = make_graph(saver)
    fork(graph)
    context = make_retriever(saver).invoke("question", THREAD).context
    assert [(each.edge, each.reason, each.turns) for each in context.trace.closed] == [("sibling", "edge", 2)]


def test_default_policy_of_conversations_can_be_asked_for_but_shows_no_message_that_the_checkpoint_lacks(saver):
    graph = make_graph(saver)
    fork(graph)
    found = texts(make_retriever(saver, policy=SlicePolicy.paper()).invoke("question", THREAD))
    assert "second question" not in found
    found = texts(make_retriever(saver, policy=SlicePolicy.paper(), removed=True).invoke("question", THREAD))
    assert "second question" in found
    assert "answer to second question" not in found
    everything = SlicePolicy(child=1.0, sibling=1.0)
    found = texts(make_retriever(saver, policy=everything, removed=True).invoke("question", THREAD))
    assert {"second question", "answer to second question"} <= found


def test_removed_message_is_not_retrieved_unless_asked_for(saver):
    graph = make_graph(saver)
    say(graph, "secret question")
    first = graph.get_state(THREAD).values["messages"][0]
    graph.update_state(THREAD, {"messages": [RemoveMessage(first.id)]}, as_node="answer")
    say(graph, "next question")
    assert "secret question" not in texts(make_retriever(saver).invoke("question", THREAD))
    assert "secret question" in texts(make_retriever(saver, removed=True).invoke("question", THREAD))


def test_edited_message_replaces_the_old_one(saver):
    graph = make_graph(saver)
    say(graph, "old question")
    first = graph.get_state(THREAD).values["messages"][0]
    graph.update_state(THREAD, {"messages": [HumanMessage("new question", id=first.id)]}, as_node="answer")
    found = texts(make_retriever(saver).invoke("question", THREAD))
    assert found == {"new question", "answer to old question"}


def test_retriever_in_a_node_sees_the_state_of_its_step(saver):
    seen = []

    def answer(state, config):
        seen.append(texts(make_retriever(saver).invoke("question", config)))
        return {"messages": [AIMessage("answer")]}

    graph = make_graph(saver, answer)
    fork(graph)
    assert seen[-1] == {"first question", "answer", "third question"}


def test_node_configuration_names_the_checkpoint_of_its_step(saver):
    graph = make_graph(saver)
    fork(graph)
    states = list(graph.get_state_history(THREAD))
    first = next(s for s in states if len(s.values["messages"]) == 1)
    node = {"thread_id": "1", "checkpoint_ns": "answer:1", "checkpoint_id": None}
    node["checkpoint_map"] = {"": first.config["configurable"]["checkpoint_id"]}
    assert texts(make_retriever(saver).invoke("question", {"configurable": node})) == {"first question"}


def test_fork_that_removes_everything_follows_the_turn_where_it_left(saver):
    graph = make_graph(saver)
    say(graph, "first question")
    past = graph.get_state(THREAD)
    say(graph, "second question")
    removals = [RemoveMessage(message.id) for message in past.values["messages"]]
    say(graph, "third question", graph.update_state(past.config, {"messages": removals}, as_node="answer"))
    found = texts(make_retriever(saver, removed=True).invoke("question", THREAD))
    assert {"first question", "third question"} <= found
    assert "second question" not in found


def test_other_thread_is_never_seen(saver):
    graph = make_graph(saver)
    say(graph, "first question")
    say(graph, "foreign question", {"configurable": {"thread_id": "2"}})
    assert "foreign question" not in str(texts(make_retriever(saver).invoke("question", THREAD)))


def test_history_that_checkpoints_do_not_hold_is_an_error_instead_of_no_documents(saver):
    class State(TypedDict):
        messages: Annotated[list, DeltaChannel(lambda state, writes: [*state, *itertools.chain(*writes)])]
        name: str

    graph = StateGraph(State)
    graph.add_node("answer", lambda state: {"messages": [AIMessage("answer")], "name": "Ana"})
    graph.add_edge(START, "answer")
    say(graph.compile(checkpointer=saver), "first question")
    with pytest.raises(ConfigurationError, match=r"doesn.t hold .messages. itself: .* not with DeltaChannel"):
        make_retriever(saver).invoke("question", THREAD)
    with pytest.raises(ConfigurationError, match=r"doesn.t hold .name. itself"):
        make_retriever(saver, messages_key="name").invoke("question", THREAD)


class NamedState(MessagesState):
    name: str


def test_key_that_no_checkpoint_has_is_an_error_that_names_the_keys_there_are(saver):
    graph = StateGraph(NamedState)
    graph.add_node("answer", lambda state: {"messages": [AIMessage("answer")], "name": "Ana"})
    graph.add_edge(START, "answer")
    say(graph.compile(checkpointer=saver), "first question")
    with pytest.raises(ConfigurationError, match=r"thread '1' has 'mesages': .* 'messages', 'name'"):
        make_retriever(saver, messages_key="mesages").invoke("question", THREAD)


def test_first_step_of_a_thread_may_come_before_any_message_but_a_later_run_needs_the_key(saver):
    """A graph can ask for its history before it has any."""
    seen = []

    def answer(state, config):
        key = state["name"]
        seen.append(texts(make_retriever(saver, messages_key=key).invoke("question", config)))
        return {"messages": [AIMessage("answer")]}

    graph = StateGraph(NamedState).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    graph.invoke({"name": "messages"}, THREAD, durability="sync")
    assert seen == [set()]
    with pytest.raises(ConfigurationError, match="has 'mesages'"):
        graph.invoke({"name": "mesages"}, THREAD, durability="sync")


def test_messages_that_are_plain_dicts_are_searched_too(saver):
    class State(TypedDict):
        messages: Annotated[list, operator.add]

    graph = StateGraph(State)
    graph.add_node("answer", lambda state: {"messages": [{"role": "assistant", "content": "answer"}]})
    graph.add_edge(START, "answer")
    graph = graph.compile(checkpointer=saver)
    graph.invoke({"messages": [{"role": "user", "content": "first question"}]}, THREAD)
    past = graph.get_state(THREAD).config
    graph.invoke({"messages": [{"role": "user", "content": "second question"}]}, THREAD)
    graph.invoke({"messages": [{"role": "user", "content": "third question"}]}, past)
    documents = make_retriever(saver).invoke("question", THREAD)
    assert texts(documents) == {"first question", "third question", "answer"}
    assert {document.metadata["speaker"] for document in documents} == {"user", "assistant"}


async def test_async_call_gives_the_same(saver):
    graph = make_graph(saver)
    fork(graph)
    retriever = make_retriever(saver, k=2)
    assert texts(await retriever.ainvoke("question", THREAD)) == texts(retriever.invoke("question", THREAD))
    assert len(retriever.invoke("question", THREAD)) == 2
    assert len(retriever.invoke("question", THREAD, k=1)) == 1


def test_new_thread_and_blank_question_give_no_documents(saver):
    assert make_retriever(saver).invoke("question", THREAD) == []
    assert make_retriever(saver).invoke(" ", THREAD) == []


def test_missing_thread_unknown_checkpoint_and_wrong_checkpointer_are_errors(saver):
    with pytest.raises(ConfigurationError, match="names no thread"):
        make_retriever(saver).invoke("question")
    say(make_graph(saver), "first question")
    with pytest.raises(AdmissibilityError, match="has no checkpoint 'none', so nothing was searched"):
        make_retriever(saver).invoke("question", {"configurable": {"thread_id": "1", "checkpoint_id": "none"}})
    with pytest.raises(ConfigurationError, match="checkpointer must be a LangGraph checkpointer"):
        MeVeHistoryRetriever(checkpointer=3)
    with pytest.raises(ConfigurationError, match="unknown option 'kk'"):
        make_retriever(saver, kk=3)
