"""Several at once in one session: histories and resets are one step, and an answer is held against its own question."""

import asyncio
import sqlite3
import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import permutations

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock
from llama_index.core.chat_engine import SimpleChatEngine

from llama_index_meve import MeVeMemory
from llama_index_meve._turn_recall import PATIENCE
from meve.errors import HoldError, MemoryLostWarning, StorageError
from meve.memory import GovernedMemory
from meve.memory.turns import TurnRules
from tests.llama_index_integration.chats import (
    CAT,
    QUESTION,
    Witness,
    agent,
    ask,
    context,
    facts,
    known,
    model,
    outcomes,
    texts,
    user,
)
from tests.llama_index_integration.test_chat_memory_life import Unplugged

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DOG, OTHER = "My dog is called Rex.", "What is my dog called?"
ABOUT = {QUESTION: "Your cat is called Tom.", OTHER: "Your dog is called Rex."}
ROUNDS = 12


@pytest.fixture
def chat(memory):
    return MeVeMemory(memory, user_id="alice", session_id="s")


@pytest.fixture
def both(memory):
    """A memory that knows the cat and the dog."""
    known(memory)
    memory.add(DOG, user_id="alice", source="chat_user", policy_class="factual", id="dog")
    return memory


def together(*calls):
    """Each in a thread of its own, from the same moment on."""
    ready = threading.Barrier(len(calls))

    def run(call):
        ready.wait()
        call()

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def judged(memory):
    """Which memories answers were held against, and what they made of them."""
    found = memory.audit.events(user_id="alice")
    return [(e.record_id, e.detail["outcome"]) for e in found if "outcome" in e.detail]


def test_many_set_one_history_at_once(memory):
    for n in range(ROUNDS):
        chats = [MeVeMemory(memory, user_id="alice", session_id=f"s{n}") for _ in range(6)]
        chats[0].put(user("Hello."))
        history = [user("Hello."), model("Hi."), user(f"I own {n} cats.")]
        together(*(partial(each.set, history) for each in chats))
        assert texts(chats[0].get_all()) == texts(history)
        assert list(facts(memory)).count(f"I own {n} cats.") == 1


def test_what_is_put_while_a_history_is_set_comes_before_it_or_after_it(memory):
    """Before: it goes with the old history. After: it stands at the end. Never in between."""
    for n in range(ROUNDS):
        first, second = (MeVeMemory(memory, user_id="alice", session_id=f"s{n}") for _ in range(2))
        first.put(user("Hello."))
        together(partial(first.set, [user("Hello."), model("Hi.")]), partial(second.put, user("And?")))
        assert texts(first.get_all()) in (["Hello.", "Hi."], ["Hello.", "Hi.", "And?"])


def test_a_reset_is_all_or_nothing(memory, chat):
    chat.put_messages([user(DOG), model("Nice.")])
    [fact] = [r for r in memory.list(user_id="alice") if r.text]
    memory.hold(fact.id, user_id="alice", why="a court")
    with pytest.raises(HoldError, match="a court"):
        chat.reset()
    assert texts(chat.get_all()) == [DOG, "Nice."]
    memory.release(fact.id, user_id="alice")
    with sqlite3.connect(memory.file) as file:  # the file fails at the fact, when the messages have gone
        file.execute(
            "CREATE TRIGGER fails BEFORE DELETE ON memories WHEN old.source = 'chat_user' "
            "BEGIN SELECT RAISE(ABORT, 'unplugged'); END"
        )
    file.close()
    with pytest.raises(StorageError, match="unplugged"):
        chat.reset()
    assert texts(chat.get_all()) == [DOG, "Nice."]
    assert set(facts(memory)) == {DOG}


def test_a_reset_takes_what_upkeep_made_of_the_session_too(memory, chat, clock):
    for n, what in enumerate(("sun", "water", "warmth", "compost", "shelter")):
        said = f"Tomatoes want {what} in the garden."
        memory.add(said, user_id="alice", session_id="s" if n % 2 else "t", ttl=timedelta(days=5_000))
    clock.advance(timedelta(days=8))
    with memory._kit.store.writing() as transaction:
        for stored in transaction.records("s:alice"):
            transaction.replace("s:alice", replace(stored, record=replace(stored.record, reflection=25)))
    assert memory.maintain().summarised
    chat.reset()
    assert memory.list(user_id="alice") == []


def test_what_is_reset_before_it_is_heard_leaves_nothing_behind(memory, chat):
    """The reset comes when a message is kept, and nothing is remembered of it yet."""
    other = MeVeMemory(memory, user_id="alice", session_id="s")
    add = memory.messages.add

    class Resetting(type(memory.messages)):
        def add(self, *args, **kwargs):
            made = add(*args, **kwargs)
            other.reset()
            return made

    memory.messages = Resetting(*(getattr(memory.messages, name) for name in ("_kit", "_searcher", "_reflector")))
    chat.put(user(CAT))
    assert memory.list(user_id="alice") == []


@pytest.mark.parametrize("way", ["forget", "delete", "expire"])
def test_what_is_gone_is_not_remembered_later(tmp_path, clock, way):
    embedder = Unplugged()
    with GovernedMemory.open(tmp_path / "m.db", embedder=embedder, clock=clock) as memory:
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


@pytest.mark.parametrize("answers", list(permutations(ABOUT)))
def test_of_two_questions_at_once_no_answer_is_held_against_the_other_s(both, chat, answers):
    for question in ABOUT:
        chat.put(user(question))
        chat.get()
    for question in answers:
        chat.put(model(ABOUT[question]))
    assert judged(both) == []
    for question, record in zip(answers, ("cat", "dog") if answers[0] == QUESTION else ("dog", "cat"), strict=True):
        chat.put(user(question))
        chat.get()
        chat.put(model(ABOUT[question]))
        assert (record, "used") in judged(both)


def test_what_was_recalled_for_a_question_waits_for_its_answer(both, chat):
    """As engines do that ask first, and put question and answer when they have both."""
    for question in ABOUT:
        chat.get(question)
    for question, record in zip(ABOUT, ("cat", "dog"), strict=True):
        chat.put(user(question))
        chat.put(model(ABOUT[question]))
        assert (record, "used") in judged(both)
    assert "contradicted" not in outcomes(both)


def test_what_is_put_together_belongs_together(both, chat):
    for question in ABOUT:
        chat.put(user(question))
        chat.get()
    for question, record in zip(ABOUT, ("cat", "dog"), strict=True):
        chat.put_messages([user(question), model(ABOUT[question])])
        assert (record, "used") in judged(both)


def test_the_same_question_again_needs_no_other_answer(both, chat):
    """An engine failed, and was asked once more."""
    for _ in range(2):
        chat.put(user(QUESTION))
        chat.get()
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judged(both)


def test_a_question_that_nobody_answers_is_given_up(both, chat, clock):
    chat.put(user(QUESTION))
    chat.get()
    chat.put(user(OTHER))
    chat.get()
    chat.put(model(ABOUT[OTHER]))
    assert judged(both) == []
    clock.advance(PATIENCE)
    chat.put(user(OTHER))
    chat.get()
    chat.put(model(ABOUT[OTHER]))
    assert ("dog", "used") in judged(both)


def test_a_question_that_was_given_up_may_be_asked_again(both, chat, clock):
    for _ in range(2):
        chat.get(QUESTION)
        chat.put(user(QUESTION))
        clock.advance(PATIENCE)
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judged(both)


@pytest.mark.parametrize("nothing", ["Empty Response", " "])
def test_an_answer_that_is_none_keeps_no_other_waiting(both, chat, nothing):
    chat.put(user(OTHER))
    chat.get()
    chat.put(model(nothing))
    chat.put(user(QUESTION))
    chat.get()
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judged(both)


def test_what_was_said_before_a_question_and_asked_nothing_keeps_no_answer_from_it(both, chat):
    chat.put(user("Hello!"))
    chat.put(user(QUESTION))
    chat.get()
    chat.put(model(ABOUT[QUESTION]))
    assert ("cat", "used") in judged(both)


def test_an_answer_to_a_picture_is_held_against_no_earlier_question(both, chat):
    chat.put(user(QUESTION))
    chat.get()
    chat.put(model(ABOUT[QUESTION]))
    before = judged(both)
    chat.put(ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png")]))
    chat.get()
    chat.put(model("A tree."))
    assert judged(both) == before


def test_a_history_that_ends_with_the_question_has_its_answer_judged(both, chat):
    """As agents are asked that are given a history, and no message."""
    history = [user("Hello!"), model("Hi."), user(QUESTION)]
    llm = Witness(says=lambda messages: ABOUT[QUESTION])
    assert asyncio.run(ask(agent(llm), chat, None, chat_history=history)) == ABOUT[QUESTION]
    assert CAT in llm.shown()
    assert ("cat", "used") in judged(both)


async def test_agents_at_once_in_one_session_judge_nothing_wrongly(both, chat):
    """Whatever the order in which they are asked and answer."""

    def says(messages):
        asked = [m.content for m in messages if m.role.value == "user" and m.content in ABOUT]
        return ABOUT[asked[-1]]

    await asyncio.gather(*(ask(agent(Witness(says=says)), chat, question) for question in [*ABOUT] * 3))
    assert not {outcome for _, outcome in judged(both)} & {"contradicted"}
    assert len(chat.get_all()) == 12


def test_engines_in_threads_in_one_session_judge_nothing_wrongly(both, chat):
    """Context engines ask first: each finds what was recalled for its own question, or nothing."""

    def talk(question):
        llm = Witness(says=lambda messages: ABOUT[question])
        context(llm, chat).chat(question)

    for _ in range(4):
        together(*(partial(talk, question) for question in ABOUT))
    assert set(judged(both)) <= {("cat", "used"), ("dog", "used"), ("cat", "unused"), ("dog", "unused")}
    for record in ("cat", "dog"):
        assert both.get(record, user_id="alice").flagged == ""


def test_where_facts_cannot_be_taken_the_conversation_goes_on(memory):
    def asks_a_model(text):
        raise TimeoutError("no answer")

    chat = MeVeMemory(memory, user_id="alice", session_id="s", remember=TurnRules(facts=asks_a_model))
    with pytest.warns(MemoryLostWarning, match="no answer"):
        answer = SimpleChatEngine.from_defaults(llm=Witness(says=lambda messages: "I see."), memory=chat).chat(CAT)
    assert str(answer) == "I see."
    assert texts(chat.get_all()) == [CAT, "I see."]
