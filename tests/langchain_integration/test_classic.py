"""MeVeMemory and MeVeChatMessageHistory in LangChain's older chains, and compared with LangChain's own classes."""

import asyncio
import copy
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

pytest.importorskip("langchain_classic")

from langchain_classic.chains import ConversationChain, LLMChain
from langchain_classic.memory import ConversationBufferMemory, VectorStoreRetrieverMemory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableFieldSpec
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings
from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from meve.errors import ConfigurationError, MemoryLostWarning, StorageError, ValidationError
from meve.memory import GovernedMemory
from tests.langchain_integration.chat_models import FACT, QUESTION, ScriptedChatModel, audit_actions
from tests.memories import KEY

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")


def make_memory(memory, session="monday", user="ann", **fields):
    return MeVeMemory(memory=memory, user_id=user, session_id=session, **fields)


def fake_model(text):
    return ScriptedChatModel(answer=lambda messages: AIMessage(text))


def facts(memory):
    return [r.text for r in memory.list(user_id="ann") if r.source != "message"]


async def streamed(chain, messages, config):
    return [each async for each in chain.astream(messages, config)]


def prompts(model):
    return [str(messages[-1].text) for messages in model.seen]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "thread"])
@pytest.mark.parametrize("kind", ["conversation", "llm"])
def test_chain_recalls_fact_of_earlier_conversation(memory, clock, way, kind):
    model = fake_model("He is called Rex, your dog.")

    def ask(text, session, user="ann"):
        if kind == "conversation":
            chain = ConversationChain(llm=model, memory=make_memory(memory, session, user))
        else:
            prompt = PromptTemplate.from_template("{history}\nHuman: {input}")
            chain = LLMChain(llm=model, prompt=prompt, memory=make_memory(memory, session, user))
        if way == "ainvoke":
            asyncio.run(chain.ainvoke({"input": text}))
        elif way == "thread":
            with ThreadPoolExecutor(1) as threads:
                threads.submit(chain.invoke, {"input": text}).result()
        else:
            chain.invoke({"input": text})

    ask(FACT, "monday")
    ask(QUESTION, "monday")
    clock.advance(timedelta(days=1))
    ask(QUESTION, "tuesday")
    ask(QUESTION, "tuesday", "bob")
    clock.advance(timedelta(days=7))
    ask(QUESTION, "next week")
    first, again, next_day, another, later = prompts(model)
    assert "Rex" not in first.replace(FACT, "")
    assert f"Human: {FACT}\nAI: He is called Rex, your dog." in again
    assert "<memory" not in again
    assert re.search(rf"<memory (\w+)>\n2026-05-01:\n\[1\] {re.escape(FACT)}\n</memory \1>", next_day)
    assert "Rex" not in another
    assert "Rex" not in later
    used = [e.reason for e in memory.audit.events(user_id="ann", action="use")]
    assert len(used) == 1
    assert used[0].startswith("used: ")


def test_memory_variable_is_text_or_messages(memory):
    make_memory(memory).save_context({"input": FACT}, {"response": "Nice."})
    chain_memory = make_memory(memory, "tuesday", memory_key="facts", return_messages=True)
    chain_memory.save_context({"input": "I live in Oslo."}, {"response": "Noted."})
    assert chain_memory.memory_variables == ["facts"]
    results = chain_memory.load_memory_variables({"input": QUESTION})["facts"]
    assert [m.type for m in results] == ["system", "human", "ai"]
    assert FACT in results[0].text
    assert [m.text for m in results[1:]] == ["I live in Oslo.", "Noted."]
    assert [m.type for m in chain_memory.load_memory_variables({})["facts"]] == ["human", "ai"]
    other = make_memory(memory, "tuesday", human_prefix="Ann", ai_prefix="Bot")
    assert other.load_memory_variables({})["history"] == "Ann: I live in Oslo.\nBot: Noted."


def test_ambiguous_inputs_or_outputs_need_keys(memory):
    chain_memory = make_memory(memory)
    with pytest.raises(ConfigurationError, match="input_key must be one of"):
        chain_memory.save_context({"a": FACT, "b": "x"}, {"response": "y"})
    with pytest.raises(ConfigurationError, match="output_key must be one of"):
        chain_memory.save_context({"a": FACT}, {"text": "y", "source": "z"})
    with pytest.raises(ConfigurationError, match=r"output_key must be one of \['text'\], got 'answer'"):
        make_memory(memory, output_key="answer").save_context({"a": FACT}, {"text": "y"})
    make_memory(memory, input_key="a", output_key="text").save_context(
        {"a": FACT, "b": "x"}, {"text": "y", "source": "z"}
    )
    chain_memory.save_context({"a": "I like tea."}, {"output": "y", "source": "z"})
    assert sorted(facts(memory)) == [FACT, "I like tea."]


@pytest.mark.parametrize("wrapped", [HumanMessage, lambda text: [HumanMessage(text)], lambda text: text])
def test_messages_are_stored_by_their_text(memory, wrapped):
    """As inputs and as outputs; a missing answer is empty text."""
    make_memory(memory).save_context({"input": wrapped(FACT)}, {"output": AIMessage("Nice.")})
    make_memory(memory).save_context({"input": wrapped("I like tea.")}, {"output": None})
    assert sorted(facts(memory)) == [FACT, "I like tea."]
    expected = ["Human: I have a dog called Rex.", "AI: Nice.", "Human: I like tea.", "AI: "]
    assert make_memory(memory).load_memory_variables({})["history"].splitlines() == expected
    assert FACT in make_memory(memory, "tuesday").load_memory_variables({"input": wrapped(QUESTION)})["history"]


def test_long_conversation_shows_last_turns(memory):
    chain_memory = make_memory(memory, turns=2)
    for n in range(5):
        chain_memory.save_context({"input": f"Is it {n}?"}, {"response": f"It is {n}."})
    assert chain_memory.load_memory_variables({"input": "?"})["history"].splitlines() == [
        "Human: Is it 3?", "AI: It is 3.", "Human: Is it 4?", "AI: It is 4.",
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["clear", "aclear"])
def test_clear_erases_conversation_and_derived_facts_from_disk(memory, tmp_path, way):
    make_memory(memory, "tuesday").save_context({"input": "I live in Oslo."}, {"response": "Noted."})
    chain_memory = make_memory(memory)
    chain_memory.save_context({"input": "My bird is a Zyxomma."}, {"response": "A zyxomma!"})
    fact = next(r for r in memory.list(user_id="ann") if "Zyxomma" in r.text)
    memory.add("The bird is rare: zyxomma.", user_id="ann", derived_from=[fact.id])
    asyncio.run(chain_memory.aclear()) if way == "aclear" else chain_memory.clear()
    assert chain_memory.load_memory_variables({})["history"] == ""
    assert not any(b"zyxomma" in each.read_bytes().lower() for each in tmp_path.iterdir())
    assert facts(memory) == ["I live in Oslo."]
    assert {e.reason for e in memory.audit.events(action="delete")} == {"the conversation was cleared"}


def test_failing_memory_warns_or_raises_by_on_error(memory, monkeypatch):
    def failing(*args, **kwargs):
        raise StorageError("the disk is full")

    monkeypatch.setattr(memory, "add", failing)
    with pytest.warns(MemoryLostWarning, match="the disk is full"):
        ConversationChain(llm=fake_model("Yes."), memory=make_memory(memory)).invoke({"input": FACT})
    with pytest.raises(StorageError, match="the disk is full"):
        ConversationChain(llm=fake_model("Yes."), memory=make_memory(memory, on_error="raise")).invoke({"input": FACT})


@pytest.mark.parametrize(
    "odd",
    [{"remember": True}, {"user_id": None}, {"user_id": " "}, {"search": {"limits": 2}}, {"turns": 0}, {"colour": 1}],
)
def test_invalid_fields_are_refused(memory, odd):
    with pytest.raises((ValueError, ValidationError)):
        MeVeMemory(**{"memory": memory, "user_id": "ann", **odd})


def test_remember_none_stores_messages_only(memory):
    make_memory(memory, remember=None).save_context({"input": FACT}, {"response": "Nice."})
    assert [r.source for r in memory.list(user_id="ann", include_messages=True)] == ["message", "message"]
    assert make_memory(memory, "tuesday").load_memory_variables({"input": QUESTION})["history"] == ""


def test_int_and_string_user_ids_are_two_users(memory):
    make_memory(memory, user=1).save_context({"input": FACT}, {"response": "Nice."})
    assert "Rex" in make_memory(memory, "tuesday", user=1).load_memory_variables({"input": QUESTION})["history"]
    assert make_memory(memory, "tuesday", user="1").load_memory_variables({"input": QUESTION})["history"] == ""


def test_copy_shares_memory_and_dump_omits_it(memory):
    chain_memory = copy.deepcopy(make_memory(memory))
    assert chain_memory.memory is memory
    make_memory(memory).save_context({"input": FACT}, {"response": "Nice."})
    assert "Rex" not in repr(chain_memory)
    assert "memory" not in chain_memory.model_dump()


def test_messages_are_returned_unchanged_in_order(memory):
    history = MeVeChatMessageHistory(memory, "ann", "monday")
    call = {"name": "look", "args": {"at": "the sky"}, "id": "1", "type": "tool_call"}
    messages = [
        HumanMessage("Look!", id="h"), AIMessage("", id="a", tool_calls=[call]),
        ToolMessage("blue", tool_call_id="1", id="t"), AIMessage([{"type": "text", "text": "It is blue."}], id="b"),
        HumanMessage("ok"), HumanMessage("ok"),
    ]  # fmt: skip
    history.add_messages(messages)
    assert history.messages == messages
    history.add_messages(messages[:4])
    assert history.messages == messages, "a message of an id that is there is kept once"
    assert MeVeChatMessageHistory(memory, "ann", "tuesday").messages == []
    assert MeVeChatMessageHistory(memory, "bob", "monday").messages == []
    history.messages.append(HumanMessage("not mine"))
    history.messages[0].content = "changed"
    assert history.messages == messages
    history.clear()
    assert history.messages == []


def test_messages_persist_expire_and_are_never_merged_or_recalled(memory, file, clock):
    history = MeVeChatMessageHistory(memory, "ann", "monday", ttl=timedelta(days=365))
    history.add_messages([HumanMessage(FACT), AIMessage("ok"), HumanMessage(FACT), AIMessage("ok")])
    clock.advance(timedelta(days=100))
    assert sum(memory.maintain().counts().values()) == 0
    memory.close()
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as again:
        history = MeVeChatMessageHistory(again, "ann", "monday")
        assert [m.text for m in history.messages] == [FACT, "ok", FACT, "ok"]
        assert again.search(QUESTION, user_id="ann").records == ()
        clock.advance(timedelta(days=265))
        assert history.messages == []


def chain_with_history(model, get_history, **options):
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    keys = {"input_messages_key": "input", "history_messages_key": "history"}
    return RunnableWithMessageHistory(prompt | model, get_history, **keys, **options)


@pytest.mark.parametrize("way", ["batch", "abatch"])
def test_concurrent_sessions_of_runnable_stay_separate(memory, way):
    chain = chain_with_history(
        fake_model("Noted."), lambda session_id: MeVeChatMessageHistory(memory, session_id, session_id)
    )
    configs = [{"configurable": {"session_id": f"s{n}"}} for n in range(20)]
    messages = [{"input": f"I am {n}."} for n in range(20)]
    for _ in range(2):
        chain.batch(messages, configs) if way == "batch" else asyncio.run(chain.abatch(messages, configs))
    for n in range(20):
        results = [m.text for m in MeVeChatMessageHistory(memory, f"s{n}", f"s{n}").messages]
        assert results == [f"I am {n}.", "Noted."] * 2


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_runnable_with_message_history_separates_users_and_sessions(memory, way):
    model = fake_model("Noted.")
    chain = chain_with_history(
        model,
        lambda user_id, session_id: MeVeChatMessageHistory(memory, user_id, session_id),
        history_factory_config=[ConfigurableFieldSpec(id=name, annotation=str) for name in ("user_id", "session_id")],
    )
    for user, session in (("ann", "s"), ("bob", "s"), ("ann", "t"), ("ann", "s")):
        config = {"configurable": {"user_id": user, "session_id": session}}
        messages = {"input": f"I am {user}."}
        if way == "ainvoke":
            asyncio.run(chain.ainvoke(messages, config))
        elif way == "stream":
            list(chain.stream(messages, config))
        elif way == "astream":
            asyncio.run(streamed(chain, messages, config))
        else:
            chain.invoke(messages, config)
    assert [[m.text for m in messages] for messages in model.seen] == [
        ["I am ann."], ["I am bob."], ["I am ann."], ["I am ann.", "Noted.", "I am ann."],
    ]  # fmt: skip


def test_fifty_concurrent_writers_of_history_lose_no_message(memory):
    history = MeVeChatMessageHistory(memory, "ann", "monday")
    with ThreadPoolExecutor(50) as threads:
        list(threads.map(lambda n: history.add_messages([HumanMessage(f"message {n}")]), range(50)))

    async def all_of_them():
        await asyncio.gather(*(history.aadd_messages([HumanMessage(f"message {n}")]) for n in range(50, 100)))

    asyncio.run(all_of_them())
    assert sorted(m.text for m in history.messages) == sorted(f"message {n}" for n in range(100))


# What stock parts get wrong, and ours don't.


def test_recall_omits_questions_and_model_claims_unlike_vector_store_memory(memory):
    store = InMemoryVectorStore(MeVeEmbeddings())
    stock_memory = VectorStoreRetrieverMemory(retriever=store.as_retriever(search_kwargs={"k": 5}))
    for each in (stock_memory, make_memory(memory)):
        each.save_context({"input": FACT}, {"response": "Your dog is called Max."})
        each.save_context({"input": "Is it late?"}, {"response": "No."})
    results = stock_memory.load_memory_variables({"input": QUESTION})["history"]
    assert "Max" in results
    assert "Is it late?" in results
    ours = make_memory(memory, "tuesday").load_memory_variables({"input": QUESTION})["history"]
    assert FACT in ours
    assert "Max" not in ours
    assert "late" not in ours


def test_prompt_size_is_bounded_and_persistent_unlike_buffer_memory(memory):
    stock_memory, ours, sizes = ConversationBufferMemory(), make_memory(memory), []
    for n in range(10, 50):
        for each in (stock_memory, ours):
            each.save_context({"input": f"I have {n} pens."}, {"response": "Noted."})
        if n % 20 == 9:
            sizes.append(
                [len(each.load_memory_variables({"input": "How many?"})["history"]) for each in (stock_memory, ours)]
            )
    [stock_first, first], [stock_last, last] = sizes
    assert stock_last > 1.9 * stock_first
    assert last == first
    assert ConversationBufferMemory().load_memory_variables({"input": "How many pens?"})["history"] == ""
    assert "pens" in make_memory(memory, "tuesday").load_memory_variables({"input": "How many pens?"})["history"]


def test_chain_memory_writes_verifiable_audit_log(memory):
    make_memory(memory).save_context({"input": FACT}, {"response": "Nice."})
    make_memory(memory, "tuesday").load_memory_variables({"input": QUESTION})
    assert audit_actions(memory, "ann") == ["add", "add", "add", "retrieve"]
    assert memory.audit.verify().ok
