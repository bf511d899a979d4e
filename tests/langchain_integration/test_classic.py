"""The older chains: what was said before is known, what is cleared is gone, and what stock parts get wrong isn't so."""

import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

pytest.importorskip("langchain_classic")

from langchain_classic.chains import ConversationChain, LLMChain
from langchain_classic.memory import ConversationBufferMemory, VectorStoreRetrieverMemory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableFieldSpec
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_meve import MeVeEmbeddings
from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from meve.errors import ConfigurationError, MemoryLostWarning, StorageError, ValidationError
from meve.memory import GovernedMemory
from tests.langchain_integration.chat_models import Scripted, actions

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")

DOG = "I have a dog called Rex."
ASKED = "What is my dog called?"


def mine(memory, session="monday", user="ann", **fields):
    return MeVeMemory(memory=memory, user_id=user, session_id=session, **fields)


def answers(text):
    return Scripted(answer=lambda messages: AIMessage(text))


def facts(memory):
    return [r.text for r in memory.list(user_id="ann") if r.source != "message"]


async def streamed(chain, given, config):
    return [each async for each in chain.astream(given, config)]


def prompts(model):
    return [str(messages[-1].text) for messages in model.seen]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "thread"])
@pytest.mark.parametrize("kind", ["conversation", "llm"])
def test_a_chain_knows_what_was_said_in_an_earlier_conversation(memory, clock, way, kind):
    model = answers("He is called Rex, your dog.")

    def ask(text, session, user="ann"):
        if kind == "conversation":
            chain = ConversationChain(llm=model, memory=mine(memory, session, user))
        else:
            prompt = PromptTemplate.from_template("{history}\nHuman: {input}")
            chain = LLMChain(llm=model, prompt=prompt, memory=mine(memory, session, user))
        if way == "ainvoke":
            asyncio.run(chain.ainvoke({"input": text}))
        elif way == "thread":
            with ThreadPoolExecutor(1) as threads:
                threads.submit(chain.invoke, {"input": text}).result()
        else:
            chain.invoke({"input": text})

    ask(DOG, "monday")
    ask(ASKED, "monday")
    clock.advance(timedelta(days=1))
    ask(ASKED, "tuesday")
    ask(ASKED, "tuesday", "bob")
    clock.advance(timedelta(days=7))
    ask(ASKED, "next week")
    first, again, next_day, another, later = prompts(model)
    assert "Rex" not in first.replace(DOG, "")
    assert f"Human: {DOG}\nAI: He is called Rex, your dog." in again
    assert "<memory>" not in again
    assert f"<memory>\n[1] {DOG} (chat_user, 2026-05-01)\n</memory>" in next_day
    assert "Rex" not in another
    assert "Rex" not in later
    used = [e.reason for e in memory.audit.events(user_id="ann", action="use")]
    assert len(used) == 1
    assert used[0].startswith("used: ")


def test_it_fills_one_variable_as_text_or_as_messages(memory):
    mine(memory).save_context({"input": DOG}, {"response": "Nice."})
    made = mine(memory, "tuesday", memory_key="facts", return_messages=True)
    made.save_context({"input": "I live in Oslo."}, {"response": "Noted."})
    assert made.memory_variables == ["facts"]
    found = made.load_memory_variables({"input": ASKED})["facts"]
    assert [m.type for m in found] == ["system", "human", "ai"]
    assert DOG in found[0].text
    assert [m.text for m in found[1:]] == ["I live in Oslo.", "Noted."]
    assert [m.type for m in made.load_memory_variables({})["facts"]] == ["human", "ai"]
    other = mine(memory, "tuesday", human_prefix="Ann", ai_prefix="Bot")
    assert other.load_memory_variables({})["history"] == "Ann: I live in Oslo.\nBot: Noted."


def test_inputs_and_outputs_are_told_apart_by_keys_or_refused(memory):
    made = mine(memory)
    with pytest.raises(ConfigurationError, match="input_key must be one of"):
        made.save_context({"a": DOG, "b": "x"}, {"response": "y"})
    with pytest.raises(ConfigurationError, match="output_key must be one of"):
        made.save_context({"a": DOG}, {"text": "y", "source": "z"})
    with pytest.raises(ConfigurationError, match=r"output_key must be one of \['source', 'text'\], got 'answer'"):
        mine(memory, output_key="answer").save_context({"a": DOG}, {"text": "y"})
    mine(memory, input_key="a", output_key="text").save_context({"a": DOG, "b": "x"}, {"text": "y", "source": "z"})
    made.save_context({"a": "I like tea."}, {"output": "y", "source": "z"})
    assert sorted(facts(memory)) == [DOG, "I like tea."]


@pytest.mark.parametrize("wrapped", [HumanMessage, lambda text: [HumanMessage(text)], lambda text: text])
def test_messages_are_taken_for_what_they_say(memory, wrapped):
    """As inputs and as outputs; and an answer that isn't there says nothing."""
    mine(memory).save_context({"input": wrapped(DOG)}, {"output": AIMessage("Nice.")})
    mine(memory).save_context({"input": wrapped("I like tea.")}, {"output": None})
    assert sorted(facts(memory)) == [DOG, "I like tea."]
    said = ["Human: I have a dog called Rex.", "AI: Nice.", "Human: I like tea.", "AI: "]
    assert mine(memory).load_memory_variables({})["history"].splitlines() == said
    assert DOG in mine(memory, "tuesday").load_memory_variables({"input": wrapped(ASKED)})["history"]


def test_of_a_long_conversation_the_last_turns_are_shown(memory):
    made = mine(memory, turns=2)
    for n in range(5):
        made.save_context({"input": f"Is it {n}?"}, {"response": f"It is {n}."})
    assert made.load_memory_variables({"input": "?"})["history"].splitlines() == [
        "Human: Is it 3?", "AI: It is 3.", "Human: Is it 4?", "AI: It is 4.",
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["clear", "aclear"])
def test_clear_erases_the_conversation_and_what_was_made_of_it_for_good(memory, tmp_path, way):
    mine(memory, "tuesday").save_context({"input": "I live in Oslo."}, {"response": "Noted."})
    made = mine(memory)
    made.save_context({"input": "My bird is a Zyxomma."}, {"response": "A zyxomma!"})
    fact = next(r for r in memory.list(user_id="ann") if "Zyxomma" in r.text)
    memory.add("The bird is rare: zyxomma.", user_id="ann", derived_from=[fact.id])
    assert any(b"zyxomma" in each.read_bytes().lower() for each in tmp_path.iterdir())
    asyncio.run(made.aclear()) if way == "aclear" else made.clear()
    assert made.load_memory_variables({})["history"] == ""
    assert not any(b"zyxomma" in each.read_bytes().lower() for each in tmp_path.iterdir())
    assert facts(memory) == ["I live in Oslo."]
    assert {e.reason for e in memory.audit.events(action="delete")} == {"the conversation was cleared"}


def test_where_memory_fails_the_answer_is_not_lost_unless_that_is_wanted(memory, monkeypatch):
    def failing(*args, **kwargs):
        raise StorageError("the disk is full")

    monkeypatch.setattr(memory, "add", failing)
    with pytest.warns(MemoryLostWarning, match="the disk is full"):
        ConversationChain(llm=answers("Yes."), memory=mine(memory)).invoke({"input": DOG})
    with pytest.raises(StorageError, match="the disk is full"):
        ConversationChain(llm=answers("Yes."), memory=mine(memory, on_error="raise")).invoke({"input": DOG})


@pytest.mark.parametrize(
    "odd",
    [{"remember": True}, {"user_id": None}, {"user_id": " "}, {"search": {"limits": 2}}, {"turns": 0}, {"colour": 1}],
)
def test_fields_that_can_t_be_are_refused(memory, odd):
    with pytest.raises((ValueError, ValidationError)):
        MeVeMemory(**{"memory": memory, "user_id": "ann", **odd})


def test_what_is_remembered_is_the_program_s_choice(memory):
    mine(memory, remember=None).save_context({"input": DOG}, {"response": "Nice."})
    assert [r.source for r in memory.list(user_id="ann")] == ["message", "message"]
    assert mine(memory, "tuesday").load_memory_variables({"input": ASKED})["history"] == ""


def test_one_and_the_text_one_are_two_users(memory):
    mine(memory, user=1).save_context({"input": DOG}, {"response": "Nice."})
    assert "Rex" in mine(memory, "tuesday", user=1).load_memory_variables({"input": ASKED})["history"]
    assert mine(memory, "tuesday", user="1").load_memory_variables({"input": ASKED})["history"] == ""


def test_copies_share_the_memory_and_show_nothing_of_it(memory):
    made = copy.deepcopy(mine(memory))
    assert made.memory is memory
    mine(memory).save_context({"input": DOG}, {"response": "Nice."})
    assert "Rex" not in repr(made)
    assert "memory" not in made.model_dump()


def test_messages_come_back_as_they_were_and_in_order(memory):
    history = MeVeChatMessageHistory(memory, "ann", "monday")
    call = {"name": "look", "args": {"at": "the sky"}, "id": "1", "type": "tool_call"}
    given = [
        HumanMessage("Look!", id="h"), AIMessage("", id="a", tool_calls=[call]),
        ToolMessage("blue", tool_call_id="1", id="t"), AIMessage([{"type": "text", "text": "It is blue."}], id="b"),
        HumanMessage("ok"), HumanMessage("ok"),
    ]  # fmt: skip
    history.add_messages(given)
    assert history.messages == given
    history.add_messages(given[:4])
    assert history.messages == given, "a message of an id that is there is kept once"
    assert MeVeChatMessageHistory(memory, "ann", "tuesday").messages == []
    assert MeVeChatMessageHistory(memory, "bob", "monday").messages == []
    history.messages.append(HumanMessage("not mine"))
    history.messages[0].content = "changed"
    assert history.messages == given
    history.clear()
    assert history.messages == []


def test_they_outlive_the_process_expire_and_are_never_merged_or_recalled(memory, tmp_path, clock):
    history = MeVeChatMessageHistory(memory, "ann", "monday", ttl=timedelta(days=365))
    history.add_messages([HumanMessage(DOG), AIMessage("ok"), HumanMessage(DOG), AIMessage("ok")])
    clock.advance(timedelta(days=100))
    assert sum(memory.maintain().counts().values()) == 0
    memory.close()
    with GovernedMemory.open(
        tmp_path / "memory.db", clock=clock, audit_key=b"a key of the tests, long enough"
    ) as again:
        history = MeVeChatMessageHistory(again, "ann", "monday")
        assert [m.text for m in history.messages] == [DOG, "ok", DOG, "ok"]
        assert again.search(ASKED, user_id="ann").records == ()
        clock.advance(timedelta(days=265))
        assert history.messages == []


@pytest.mark.parametrize("way", ["batch", "abatch"])
def test_many_conversations_of_a_runnable_at_once_keep_apart(memory, way):
    chain = RunnableWithMessageHistory(
        ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")]) | answers("Noted."),
        lambda session_id: MeVeChatMessageHistory(memory, session_id, session_id),
        input_messages_key="input",
        history_messages_key="history",
    )
    configs = [{"configurable": {"session_id": f"s{n}"}} for n in range(20)]
    given = [{"input": f"I am {n}."} for n in range(20)]
    for _ in range(2):
        chain.batch(given, configs) if way == "batch" else asyncio.run(chain.abatch(given, configs))
    for n in range(20):
        found = [m.text for m in MeVeChatMessageHistory(memory, f"s{n}", f"s{n}").messages]
        assert found == [f"I am {n}.", "Noted."] * 2


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_runnable_with_message_history_keeps_users_and_sessions_apart(memory, way):
    model = answers("Noted.")
    chain = RunnableWithMessageHistory(
        ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")]) | model,
        lambda user_id, session_id: MeVeChatMessageHistory(memory, user_id, session_id),
        input_messages_key="input",
        history_messages_key="history",
        history_factory_config=[
            ConfigurableFieldSpec(id="user_id", annotation=str), ConfigurableFieldSpec(id="session_id", annotation=str),
        ],
    )  # fmt: skip
    for user, session in (("ann", "s"), ("bob", "s"), ("ann", "t"), ("ann", "s")):
        config = {"configurable": {"user_id": user, "session_id": session}}
        given = {"input": f"I am {user}."}
        if way == "ainvoke":
            asyncio.run(chain.ainvoke(given, config))
        elif way == "stream":
            list(chain.stream(given, config))
        elif way == "astream":
            asyncio.run(streamed(chain, given, config))
        else:
            chain.invoke(given, config)
    assert [[m.text for m in messages] for messages in model.seen] == [
        ["I am ann."], ["I am bob."], ["I am ann."], ["I am ann.", "Noted.", "I am ann."],
    ]  # fmt: skip


def test_fifty_that_write_one_history_at_once_lose_nothing(memory):
    history = MeVeChatMessageHistory(memory, "ann", "monday")
    with ThreadPoolExecutor(50) as threads:
        list(threads.map(lambda n: history.add_messages([HumanMessage(f"message {n}")]), range(50)))

    async def all_of_them():
        await asyncio.gather(*(history.aadd_messages([HumanMessage(f"message {n}")]) for n in range(50, 100)))

    asyncio.run(all_of_them())
    assert sorted(m.text for m in history.messages) == sorted(f"message {n}" for n in range(100))


# What stock parts get wrong, and ours don't.


def stock(store=None):
    store = store or InMemoryVectorStore(MeVeEmbeddings())
    return VectorStoreRetrieverMemory(retriever=store.as_retriever(search_kwargs={"k": 5}))


def test_the_stock_memory_s_clear_clears_nothing(memory):
    theirs = stock()
    for each in (theirs, mine(memory)):
        each.save_context({"input": DOG}, {"response": "Nice."})
        each.clear()
    assert "Rex" in theirs.load_memory_variables({"input": ASKED})["history"]
    assert mine(memory, "tuesday").load_memory_variables({"input": ASKED})["history"] == ""


def test_the_stock_memory_knows_no_users(memory):
    store = InMemoryVectorStore(MeVeEmbeddings())
    stock(store).save_context({"input": DOG}, {"response": "Nice."})
    assert "Rex" in stock(store).load_memory_variables({"input": ASKED})["history"], "whoever asks"
    mine(memory).save_context({"input": DOG}, {"response": "Nice."})
    assert mine(memory, "tuesday", "bob").load_memory_variables({"input": ASKED})["history"] == ""


def test_the_stock_memory_gives_back_what_answers_no_question_and_what_models_made_up(memory):
    theirs = stock()
    for each in (theirs, mine(memory)):
        each.save_context({"input": DOG}, {"response": "Your dog is called Max."})
        each.save_context({"input": "Is it late?"}, {"response": "No."})
    found = theirs.load_memory_variables({"input": ASKED})["history"]
    assert "Max" in found
    assert "Is it late?" in found
    ours = mine(memory, "tuesday").load_memory_variables({"input": ASKED})["history"]
    assert DOG in ours
    assert "Max" not in ours
    assert "late" not in ours


def test_the_stock_buffer_grows_without_end_and_forgets_with_its_process(memory):
    theirs, ours, sizes = ConversationBufferMemory(), mine(memory), []
    for n in range(10, 50):
        for each in (theirs, ours):
            each.save_context({"input": f"I have {n} pens."}, {"response": "Noted."})
        if n % 20 == 9:
            sizes.append(
                [len(each.load_memory_variables({"input": "How many?"})["history"]) for each in (theirs, ours)]
            )
    [stock_first, first], [stock_last, last] = sizes
    assert stock_last > 1.9 * stock_first
    assert last == first
    assert ConversationBufferMemory().load_memory_variables({"input": "How many pens?"})["history"] == ""
    assert "pens" in mine(memory, "tuesday").load_memory_variables({"input": "How many pens?"})["history"]


def test_the_stock_history_hands_out_its_own_list(memory):
    theirs, ours = InMemoryChatMessageHistory(), MeVeChatMessageHistory(memory, "ann", "monday")
    for each in (theirs, ours):
        each.add_messages([HumanMessage("Hello.")])
        each.messages.append(HumanMessage("not said"))
        each.messages[0].content = "changed"
    assert [m.text for m in theirs.messages] == ["changed", "not said"]
    assert [m.text for m in ours.messages] == ["Hello."]


def test_stock_histories_of_two_users_who_name_a_session_alike_are_one(memory):
    kept = {}

    def theirs(user_id, session_id):
        return kept.setdefault(session_id, InMemoryChatMessageHistory())

    def ours(user_id, session_id):
        return MeVeChatMessageHistory(memory, user_id, session_id)

    for found in (theirs, ours):
        found("ann", "chat").add_messages([HumanMessage(DOG)])
    assert len(theirs("bob", "chat").messages) == 1
    assert ours("bob", "chat").messages == []


def test_no_stock_memory_accounts_for_anything_and_ours_does(memory):
    mine(memory).save_context({"input": DOG}, {"response": "Nice."})
    mine(memory, "tuesday").load_memory_variables({"input": ASKED})
    assert actions(memory, "ann") == ["add", "add", "add", "retrieve"]
    assert memory.audit.verify().ok
