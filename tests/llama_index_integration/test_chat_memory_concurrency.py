"""Concurrent calls in one session: writes are atomic, and answers judge only the recall of their own question."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import permutations

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock
from llama_index.core.chat_engine import SimpleChatEngine

from llama_index_meve import MeVeMemory
from llama_index_meve._turn_recall import ANSWER_TIMEOUT
from meve.errors import HoldError, MemoryLostWarning, StorageError
from meve.memory import GovernedMemory
from meve.memory.messages.messages import Messages
from meve.memory.turns import TurnRules
from tests.llama_index_integration.chat_helpers import (
    CAT,
    QUESTION,
    ScriptedLLM,
    Unplugged,
    context_engine,
    facts,
    function_agent,
    model,
    outcomes,
    remember_cat,
    run_agent,
    run_in_threads,
    texts,
    user,
)
from tests.memories import FixedExtractor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DOG, OTHER = "My dog is called Rex.", "What is my dog called?"
ABOUT = {QUESTION: "Your cat is called Tom.", OTHER: "Your dog is called Rex."}
ROUNDS = 12


@pytest.fixture
def memory_with_pets(memory):
    remember_cat(memory)
    memory.add(DOG, user_id="alice", source="chat_user", policy_class="factual", id="dog")
    return memory


def judgements(memory):
    """Return the judged memories with their outcomes."""
    events = memory.audit.events(user_id="alice")
    return [(e.record_id, e.detail["outcome"]) for e in events if "outcome" in e.detail]


def ask(chat, question):
    chat.put(user(question))
    chat.get()


def test_concurrent_sets_of_one_history_store_it_once(memory):
    for n in range(ROUNDS):
        chats = [MeVeMemory(memory, user_id="alice", session_id=f"s{n}") for _ in range(6)]
        chats[0].put(user("Hello."))
        history = [user("Hello."), model("Hi."), user(f"I own {n} cats.")]
        run_in_threads(*(partial(each.set, history) for each in chats))
        assert texts(chats[0].get_all()) == texts(history)
        assert list(facts(memory)).count(f"I own {n} cats.") == 1


def test_put_during_a_set_comes_before_or_after_it(memory):
    """Before: it is removed with the old history. After: it stands at the end."""
    for n in range(ROUNDS):
        first, second = (MeVeMemory(memory, user_id="alice", session_id=f"s{n}") for _ in range(2))
        first.put(user("Hello."))
        run_in_threads(partial(first.set, [user("Hello."), model("Hi.")]), partial(second.put, user("And?")))
        assert texts(first.get_all()) in (["Hello.", "Hi."], ["Hello.", "Hi.", "And?"])


def test_reset_with_a_held_record_erases_nothing_until_it_is_released(memory, chat):
    chat.put_messages([user(DOG), model("Nice.")])
    for record in memory.list(user_id="alice", include_messages=True):  # messages and facts
        memory.hold(record.id, user_id="alice", why="a court")
        with pytest.raises(HoldError, match="a court"):
            chat.reset()
        assert texts(chat.get_all()) == [DOG, "Nice."]
        assert set(facts(memory)) == {DOG}
        memory.release(record.id, user_id="alice")
    chat.reset()
    assert memory.list(user_id="alice", include_messages=True) == []


def test_interrupted_reset_erases_nothing(memory, chat):
    chat.put_messages([user(DOG), model("Nice.")])
    with closing(sqlite3.connect(memory.file)) as file, file:  # deleting the fact fails, after the messages
        file.execute(
            "CREATE TRIGGER fails BEFORE DELETE ON memories WHEN old.source = 'chat_user' "
            "BEGIN SELECT RAISE(ABORT, 'unplugged'); END"
        )
    with pytest.raises(StorageError, match="unplugged"):
        chat.reset()
    assert texts(chat.get_all()) == [DOG, "Nice."]
    assert set(facts(memory)) == {DOG}


def test_reset_erases_summaries_of_the_session(memory, chat, clock):
    """The facts of the other session that a summary replaced hold again."""
    for n, what in enumerate(("sun", "water", "warmth", "compost", "shelter")):
        fact = f"Tomatoes want {what} in the garden."
        memory.add(fact, user_id="alice", session_id="s1" if n % 2 else "t", ttl=timedelta(days=5_000))
    clock.advance(timedelta(days=8))
    with memory._runtime.store.writing() as transaction:
        for stored in transaction.all_records("s:alice"):
            transaction.replace("s:alice", replace(stored, record=replace(stored.record, reflection=25)))
    assert memory.maintain().summarised
    chat.reset()
    every = memory.list(user_id="alice", include_archived=True, include_superseded=True, include_messages=True)
    assert {(record.kind, record.session_id) for record in every} == {("fact", "t")}
    assert sorted(facts(memory)) == [f"Tomatoes want {what} in the garden." for what in ("shelter", "sun", "warmth")]


def test_reset_before_the_facts_are_written_leaves_nothing(memory, chat, monkeypatch):
    """The reset comes when the message is stored and its facts are not."""
    other = MeVeMemory(memory, user_id="alice", session_id="s1")
    add = Messages.add

    def add_and_reset(self, *args, **kwargs):
        ids = add(self, *args, **kwargs)
        other.reset()
        return ids

    monkeypatch.setattr(Messages, "add", add_and_reset)
    chat.put(user(CAT))
    assert memory.list(user_id="alice", include_messages=True) == []


@pytest.mark.parametrize("way", ["forget", "delete", "expire"])
def test_erased_or_expired_message_is_not_remembered_later(file, clock, way):
    embedder = Unplugged()
    with GovernedMemory.open(file, embedder=embedder, clock=clock) as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s")
        embedder.unplugged = True
        with pytest.warns(MemoryLostWarning):
            chat.put(user(CAT))
        embedder.unplugged = False
        if way == "forget":
            memory.forget_user(user_id="alice")
        elif way == "delete":
            memory.messages.pop("s", user_id="alice")
        else:
            clock.advance(timedelta(days=7))
        chat.put(user(DOG))
        assert set(facts(memory)) == {DOG}


@pytest.mark.parametrize(
    "before", [[user("Hello!")], [user(QUESTION)], [user(OTHER), model("Empty Response")], [user(OTHER), model(" ")]]
)
def test_answer_after_other_messages_is_judged(memory_with_pets, chat, before):
    """A greeting, a question that is repeated since an engine failed, and empty answers don't prevent it."""
    for message in before:
        chat.put(message)
        if message.content in ABOUT:
            chat.get()
    ask(chat, QUESTION)
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judgements(memory_with_pets)


@pytest.mark.parametrize("answers", list(permutations(ABOUT)))
def test_two_open_questions_judge_no_answer(memory_with_pets, chat, answers):
    for question in ABOUT:
        ask(chat, question)
    for question in answers:
        chat.put(model(ABOUT[question]))
    assert judgements(memory_with_pets) == []
    for question, record in zip(answers, ("cat", "dog") if answers[0] == QUESTION else ("dog", "cat"), strict=True):
        ask(chat, question)
        chat.put(model(ABOUT[question]))
        assert (record, "used") in judgements(memory_with_pets)


def test_recall_waits_for_the_answer_to_its_question(memory_with_pets, chat):
    """Some engines put question and answer only when they have both."""
    for question in ABOUT:
        chat.get(question)
    for question, record in zip(ABOUT, ("cat", "dog"), strict=True):
        chat.put(user(question))
        chat.put(model(ABOUT[question]))
        assert (record, "used") in judgements(memory_with_pets)
    assert "contradicted" not in outcomes(memory_with_pets)


def test_question_and_answer_put_together_are_matched(memory_with_pets, chat):
    for question in ABOUT:
        ask(chat, question)
    for question, record in zip(ABOUT, ("cat", "dog"), strict=True):
        chat.put_messages([user(question), model(ABOUT[question])])
        assert (record, "used") in judgements(memory_with_pets)


def test_unanswered_question_is_given_up_after_a_timeout(memory_with_pets, chat, clock):
    ask(chat, QUESTION)
    ask(chat, OTHER)
    chat.put(model(ABOUT[OTHER]))
    assert judgements(memory_with_pets) == []
    clock.advance(ANSWER_TIMEOUT)
    ask(chat, OTHER)
    chat.put(model(ABOUT[OTHER]))
    assert ("dog", "used") in judgements(memory_with_pets)


def test_question_can_be_asked_again_after_the_timeout(memory_with_pets, chat, clock):
    for _ in range(2):
        chat.get(QUESTION)
        chat.put(user(QUESTION))
        clock.advance(ANSWER_TIMEOUT)
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judgements(memory_with_pets)


def test_answer_to_a_picture_judges_no_earlier_recall(memory_with_pets, chat):
    ask(chat, QUESTION)
    chat.put(model(ABOUT[QUESTION]))
    before = judgements(memory_with_pets)
    chat.put(ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png")]))
    chat.get()
    chat.put(model("A tree."))
    assert judgements(memory_with_pets) == before


def test_answer_to_the_last_question_of_a_given_history_is_judged(memory_with_pets, chat):
    """As agents run that get a history and no message."""
    history = [user("Hello!"), model("Hi."), user(QUESTION)]
    llm = ScriptedLLM(reply=lambda messages: ABOUT[QUESTION])
    assert asyncio.run(run_agent(function_agent(llm), chat, None, chat_history=history)) == ABOUT[QUESTION]
    assert CAT in llm.prompt_text()
    assert ("cat", "used") in judgements(memory_with_pets)


async def test_concurrent_agents_judge_no_answer_wrongly(memory_with_pets, chat):
    def reply(messages):
        questions = [m.content for m in messages if m.role.value == "user" and m.content in ABOUT]
        return ABOUT[questions[-1]]

    await asyncio.gather(
        *(run_agent(function_agent(ScriptedLLM(reply=reply)), chat, question) for question in [*ABOUT] * 3)
    )
    assert not {outcome for _, outcome in judgements(memory_with_pets)} & {"contradicted"}
    assert len(chat.get_all()) == 12


def test_engines_in_threads_judge_no_answer_wrongly(memory_with_pets, chat):
    def talk(question):
        llm = ScriptedLLM(reply=lambda messages: ABOUT[question])
        context_engine(llm, chat).chat(question)

    for _ in range(4):
        run_in_threads(*(partial(talk, question) for question in ABOUT))
    possible = {(pet, outcome) for pet in ("cat", "dog") for outcome in ("used", "unmentioned")}
    assert set(judgements(memory_with_pets)) <= possible
    for record in ("cat", "dog"):
        assert memory_with_pets.get(record, user_id="alice").flagged == ""


def test_failing_fact_extraction_warns_and_the_conversation_goes_on(memory):
    asks_a_model = FixedExtractor(error=TimeoutError("no answer"))
    chat = MeVeMemory(memory, user_id="alice", session_id="s", remember=TurnRules(extractor=asks_a_model))
    with pytest.warns(MemoryLostWarning, match="no answer"):
        answer = SimpleChatEngine.from_defaults(llm=ScriptedLLM(reply=lambda messages: "I see."), memory=chat).chat(CAT)
    assert str(answer) == "I see."
    assert texts(chat.get_all()) == [CAT, "I see."]
