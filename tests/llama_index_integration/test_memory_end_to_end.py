"""Chat engines and agents over several conversations with MeVeMemory."""

import json
from datetime import timedelta
from functools import partial

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from llama_index_meve import MeVeMemory
from tests.llama_index_integration.chat_helpers import (
    AGENT_FACTORIES,
    CHAT_CALLS,
    ENGINE_FACTORIES,
    ScriptedLLM,
    chat_streaming,
    chat_sync,
    context_engine,
    fact_texts,
    facts,
    function_agent,
    model,
    multi_modal_condense_plus_context_engine,
    outcomes,
    run_agent,
    run_in_threads,
    simple_engine,
    texts,
    tool_call,
    user,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FACT = "I grow tomatoes on a balcony in Oslo."
QUESTION = "Which plants grow on my balcony?"
ANSWER = "On your balcony in Oslo you grow tomatoes."


def scripted_llm(answer="I see."):
    return ScriptedLLM(reply=lambda messages: answer)


def chat_of(memory, session, user="alice", **options):
    return MeVeMemory(memory, user_id=user, session_id=session, **options)


def weather(place: str) -> str:
    """The weather at a place."""
    return f"Rain in {place}."


def prompts_with(llm, text):
    """Return which of the model's prompts hold the text."""
    return [text in llm.prompt_text(call) for call in range(len(llm.prompts))]


def actions(memory, record_id, user="alice"):
    return [event.action for event in memory.audit.events(user_id=user, record_id=record_id)]


@pytest.mark.parametrize("chat_call", CHAT_CALLS)
@pytest.mark.parametrize("engine", ENGINE_FACTORIES)
def test_engine_recalls_earlier_conversations_and_answers_move_scores(engine, chat_call, memory, clock):
    """A used fact gains score and another keeps it; other users and expired facts see nothing; all is logged."""
    llm = scripted_llm()
    chat_call(engine(llm, chat_of(memory, "monday")), FACT)
    [fact] = [r for r in memory.list(user_id="alice") if r.source == "chat_user"]
    assert (fact.text, fact.session_id) == (FACT, "monday")

    clock.advance(timedelta(days=1))
    llm = scripted_llm(ANSWER)
    tuesday = chat_of(memory, "tuesday")
    assert chat_call(engine(llm, tuesday), QUESTION) == ANSWER
    assert any(prompts_with(llm, FACT))
    assert memory.get(fact.id, user_id="alice").reflection == fact.reflection + 10
    assert texts(tuesday.get_all()) == [QUESTION, ANSWER]

    llm = scripted_llm("Ask a botanist.")
    chat_call(engine(llm, chat_of(memory, "wednesday")), QUESTION)
    assert memory.get(fact.id, user_id="alice").reflection == fact.reflection + 10

    llm = scripted_llm()
    chat_call(engine(llm, chat_of(memory, "monday", "bob")), QUESTION)
    assert not any(prompts_with(llm, "Oslo"))

    clock.advance(timedelta(days=7))
    llm = scripted_llm()
    chat_call(engine(llm, chat_of(memory, "monday")), QUESTION)
    assert not any(prompts_with(llm, "Oslo"))

    searches = ["retrieve"] * (2 if engine is multi_modal_condense_plus_context_engine else 1)  # it asks a second time
    assert actions(memory, fact.id) == ["add", *searches, "use", *searches, "update"]
    used = memory.audit.events(user_id="alice", action="use")[0]
    assert (used.record_id, used.reason.partition(";")[2].strip()) == (fact.id, f"recall {tuesday.recall.id}")
    assert memory.audit.verify().ok


@pytest.mark.parametrize("make_agent", AGENT_FACTORIES)
async def test_agents_recall_earlier_conversations(make_agent, memory, clock):
    llm = scripted_llm()
    await run_agent(make_agent(llm), chat_of(memory, "monday"), FACT)
    [fact] = [r for r in memory.list(user_id="alice") if r.source == "chat_user"]
    llm = scripted_llm(ANSWER)
    tuesday = chat_of(memory, "tuesday")
    assert await run_agent(make_agent(llm), tuesday, QUESTION) == ANSWER
    assert FACT in llm.prompt_text()
    assert memory.get(fact.id, user_id="alice").reflection == fact.reflection + 10
    clock.advance(timedelta(days=8))
    for name in ("alice", "bob"):
        llm = scripted_llm()
        await run_agent(make_agent(llm), chat_of(memory, "later", name), QUESTION)
        assert "Oslo" not in llm.prompt_text()
    assert actions(memory, fact.id) == ["add", "retrieve", "use"]


@pytest.mark.parametrize("make_agent", AGENT_FACTORIES)
@pytest.mark.parametrize("streaming", [True, False])
async def test_agent_with_a_tool_uses_the_recall_and_is_judged_once(make_agent, streaming, memory):
    before = chat_of(memory, "monday")
    await run_agent(make_agent(scripted_llm()), before, FACT)

    def reply(messages):
        called = any(m.role == MessageRole.TOOL for m in messages)
        return ANSWER if called else tool_call("weather", place="Oslo")

    llm = ScriptedLLM(reply=reply)
    helper = make_agent(llm, [FunctionTool.from_defaults(weather)])
    chat = chat_of(memory, "tuesday")
    assert await run_agent(helper, chat, QUESTION) == ANSWER
    assert all(prompts_with(llm, FACT))
    assert [m.role.value for m in chat.get_all()] == ["user", "assistant", "tool", "assistant"]
    assert len(memory.audit.events(user_id="alice", action="use")) == 1
    assert [m.role.value for m in chat.get()][1:] == ["user", "assistant", "tool", "assistant"]
    judged = len(memory.audit.events(user_id="alice", action="use"))
    assert await run_agent(make_agent(scripted_llm("Bye.")), chat, "Thanks!") == "Bye."
    assert len(memory.audit.events(user_id="alice", action="use")) == judged


react = partial(ReActAgent, name="gardener")
codeact = partial(CodeActAgent, name="gardener", code_execute_fn=lambda code: "Rain.")


STEPS = {
    react: (
        'Thought: I look.\nAction: weather\nAction Input: {"place": "there"}',
        f"Thought: I know.\nAnswer: {ANSWER}",
    ),
    codeact: ("I look.\n<execute>\nprint(weather('there'))\n</execute>", ANSWER),
}
"""By agent: the first reply of its model, and the reply after the tool result."""


@pytest.mark.parametrize("insert_method", ["system", "user"])
@pytest.mark.parametrize("in_workflow", [False, True])
@pytest.mark.parametrize("system_prompt", ["You are a gardener.", None])
@pytest.mark.parametrize("make_agent", STEPS, ids=["react", "codeact"])
async def test_answer_of_agents_that_write_steps_as_text_is_judged(
    make_agent, system_prompt, in_workflow, insert_method, memory
):
    """Without the user's instructions, these agents replace the memory's system message by theirs."""
    await run_agent(function_agent(scripted_llm()), chat_of(memory, "monday"), FACT)
    first, last = STEPS[make_agent]
    llm = ScriptedLLM(reply=lambda messages: last if "Rain" in str([m.content for m in messages]) else first)

    helper = make_agent(llm=llm, tools=[FunctionTool.from_defaults(weather)], system_prompt=system_prompt)
    chat = chat_of(memory, "tuesday", insert_method=insert_method)
    helper = AgentWorkflow(agents=[helper], root_agent="gardener") if in_workflow else helper
    assert await run_agent(helper, chat, QUESTION) == ANSWER
    assert prompts_with(llm, FACT) == [insert_method == "user" or system_prompt is not None] * 2
    assert outcomes(memory) == ["used"]
    assert fact_texts(memory) == [FACT]


@pytest.mark.parametrize("insert_method", ["system", "user"])
async def test_workflow_state_is_in_each_prompt_once_and_not_stored(memory, insert_method):
    """The workflow writes it into the returned message before the first call of a turn."""
    chat_of(memory, "monday").put(user(FACT))

    def reply(messages):
        return ANSWER if any(m.role == MessageRole.TOOL for m in messages[-1:]) else tool_call("weather", place="Oslo")

    llm = ScriptedLLM(reply=reply)
    helper = FunctionAgent(name="g", tools=[FunctionTool.from_defaults(weather)], llm=llm)
    flow = AgentWorkflow(agents=[helper], initial_state={"pots": 3}, state_prompt="STATE {state}: {msg}")
    chat = chat_of(memory, "tuesday", insert_method=insert_method)
    for turn, question in enumerate([QUESTION, QUESTION, "And which grow in Oslo?"]):
        assert await run_agent(flow, chat, question) == ANSWER
        for call in range(2 * turn, 2 * turn + 2):
            prompt = llm.prompt_text(call)
            assert prompt.count("STATE") == prompt.count(f"STATE {{'pots': 3}}: {question}") == 1
            assert FACT in prompt
    asked = [m.content for m in chat.get_all() if m.role == MessageRole.USER]
    assert asked == [QUESTION, QUESTION, "And which grow in Oslo?"]
    assert "STATE" not in str(chat.get_all())
    assert outcomes(memory) == ["used"] * 3


async def test_agent_notes_in_user_messages_are_not_remembered(memory):
    """Some agents note what their code returned as a user message."""
    chat = chat_of(memory, "s")
    await chat.aput(user(FACT))
    await chat.aput_messages([model("print(1)"), user("The output says that Alice is rich."), model("Done.")])
    assert fact_texts(memory) == [FACT]
    await chat.aput_messages([user("I have a dog."), model("Nice.")])
    assert set(facts(memory)) == {FACT, "I have a dog."}


def test_concurrent_conversations_are_isolated_by_user(memory):
    places = ["Oslo", "Rome", "Lima", "Cairo", "Perth", "Quito", "Delhi", "Bonn"]
    shown = {}

    def talk(place):
        chat_streaming(simple_engine(scripted_llm(), chat_of(memory, "1", place)), f"I live in {place}.")
        llm = scripted_llm(f"You live in {place}.")
        chat_sync(context_engine(llm, chat_of(memory, "2", place)), "Which city do I live in?")
        shown[place] = llm.prompt_text()

    run_in_threads(*(partial(talk, place) for place in places))
    for place in places:
        assert [other for other in places if other in shown[place]] == [place]


def test_text_with_braces_passes_through_engines(memory):
    """Engines put history into templates."""
    chat_sync(
        simple_engine(scripted_llm(), chat_of(memory, "1")),
        "My favourite set is {a, b} of {query_str}.",
    )
    llm = scripted_llm()
    chat_sync(context_engine(llm, chat_of(memory, "2")), "What is my favourite set?")
    assert "{a, b}" in llm.prompt_text()


def test_history_given_to_an_engine_replaces_the_old(memory):
    chat = chat_of(memory, "s")
    engine = simple_engine(scripted_llm(), chat)
    chat_sync(engine, FACT)
    engine.chat("Hello?", chat_history=[user("I have a cat."), model("Nice.")])
    assert texts(chat.get_all()) == ["I have a cat.", "Nice.", "Hello?", "I see."]
    assert set(facts(memory)) == {FACT, "I have a cat."}
    engine.reset()
    assert chat.get_all() == []
    assert memory.list(user_id="alice", include_messages=True) == []


async def test_agent_context_survives_serialization(memory, recwarn):
    chat = chat_of(memory, "s", token_limit=5_000, search={"limit": 3})
    helper = function_agent(scripted_llm())
    written = Context(helper)
    await run_agent(helper, chat, FACT, ctx=written)
    data = json.loads(json.dumps(written.to_dict()))
    assert not [w for w in recwarn if "serializ" in str(w.message).lower()]
    reference = json.loads(data["state"]["state_data"]["_data"]["memory"])["value"]
    assert (reference["file"], "Oslo" in json.dumps(reference)) == (memory.location["file"], False)
    llm = scripted_llm("Yes.")
    again = function_agent(llm)
    restored = Context.from_dict(again, data)
    restored_memory = await restored.store.get("memory")
    assert restored_memory.to_dict() == chat.to_dict()
    assert str(await again.run("Do you remember me?", ctx=restored)) == "Yes."
    assert FACT in llm.prompt_text()
    assert texts(chat.get_all()) == [FACT, "I see.", "Do you remember me?", "Yes."]
