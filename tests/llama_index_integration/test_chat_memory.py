"""MeVeMemory by itself: whose it is, what it recalls and when, what answers make of it, and what a reset takes."""

import re
from datetime import timedelta

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import QueryBundle

from llama_index_meve import MeVeMemory
from llama_index_meve._token_limit import MessageCounter
from meve.errors import (
    ConfigurationError,
    QueryError,
    ValidationError,
)
from meve.memory import GovernedMemory, Policy
from meve.memory._recall.formatting import HEADER, OPENING
from meve.memory.turns import TurnRules
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chats import CAT, QUESTION, facts, known, model, outcomes, texts, tool_call, user


@pytest.fixture
def chat(memory):
    return MeVeMemory(memory=memory, user_id="alice", session_id="s1")


def test_it_is_a_memory_that_is_never_false(chat):
    """Agents put another in place of one that is false."""
    assert isinstance(chat, BaseMemory)
    assert chat.get_all() == []
    assert bool(chat)
    assert not hasattr(chat, "__len__")


@pytest.mark.parametrize("nobody", [None, "", " ", True, 1.5, ["alice"]])
def test_without_a_user_it_is_refused(memory, nobody):
    with pytest.raises(ValidationError, match="user_id"):
        MeVeMemory(memory, user_id=nobody)
    with pytest.raises(TypeError, match="user_id"):
        MeVeMemory(memory)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"memory": "m.db"}, "GovernedMemory.open"),
        ({"session_id": " "}, "session_id"),
        ({"search": {"limt": 3}}, "unknown option 'limt' of search: did you mean 'limit'"),
        ({"search": {"limit": "5"}}, "limit is '5'"),
        ({"search": {"max_tokens": "300"}}, "max_tokens is '300'"),
        ({"search": {"verify": "no"}}, "verify is 'no'"),
        ({"search": {"include_private": "no"}}, "include_private is 'no'"),
        ({"search": {"user_id": "bob"}}, "the conversation tells it"),
        ({"search": {"without": []}}, "the conversation tells it"),
        ({"search": {"classes": ["secret"]}}, "choose one of"),
        ({"remember": "all"}, "TurnRules"),
        ({"on_error": "hide"}, "choose one of warn, raise"),
        ({"token_limit": 0}, "^token_limit is 0: it should be greater than or equal to 1$"),
        ({"token_limit": "300"}, "^token_limit is '300': it should be a valid integer$"),
        ({"insert_method": "assistant"}, "^insert_method is 'assistant': it should be 'system' or 'user'$"),
        ({"media_tokens": {"image": -1}}, "^media_tokens.image is -1: it should be greater than or equal to 0$"),
        ({"media_tokens": {"imgae": 765}}, "'imgae' of media_tokens: did you mean 'image'"),
        ({"remember": TurnRules(sources={"usr": "chat_user"}, classes={})}, "'usr' of remember: did you mean 'user'"),
    ],
)
def test_what_can_not_be_is_refused(memory, options, told):
    with pytest.raises((ConfigurationError, ValidationError), match=told):
        MeVeMemory(**{"memory": memory, "user_id": "alice", **options})


@pytest.mark.parametrize("question", [5, ["Where?"], b"Where?"])
def test_a_question_that_is_none_is_named(chat, question):
    with pytest.raises(QueryError, match=re.escape(f"the question is {question!r}: give text")):
        chat.get(question)


def test_from_defaults_needs_a_user_and_takes_a_history(memory):
    with pytest.raises(ConfigurationError, match="memory=MeVeMemory"):
        MeVeMemory.from_defaults(chat_history=[])
    made = MeVeMemory.from_defaults(memory=memory, user_id="alice", chat_history=[user(CAT)], llm=None, token_limit=99)
    assert (made.token_limit, texts(made.get_all())) == (99, [CAT])
    again = MeVeMemory.from_defaults(memory=memory, user_id="alice", session_id=made.session_id)
    assert texts(again.get_all()) == [CAT]
    assert MeVeMemory.from_defaults(memory=memory, user_id="alice").session_id != made.session_id


def test_users_and_sessions_are_apart(memory, chat):
    chat.put(user(CAT))
    for owner, session in (("bob", "s1"), ("alice", "s2"), (1, "s1"), ("1", "s1")):
        other = MeVeMemory(memory, user_id=owner, session_id=session)
        assert other.get_all() == []
        assert (CAT in str(other.get(QUESTION))) is (owner == "alice")
        other.put(user(f"I am {owner!r}."))
    assert texts(chat.get_all()) == [CAT]


def test_facts_stand_in_the_system_message_as_data_and_instructions_before_them(memory, chat):
    known(memory)
    assert chat.get(QUESTION)[0].content.startswith(f"{HEADER}\n{OPENING}\n[1] {CAT}")
    chat.put(ChatMessage("Be brief.", role="system"))
    [first] = chat.get(QUESTION)
    assert first.role.value == "system"
    assert [block.text.partition("\n")[0] for block in first.blocks] == ["Be brief.", HEADER]


def test_facts_may_stand_before_what_the_user_said_last(memory):
    known(memory)
    chat = MeVeMemory(memory, user_id="alice", session_id="s", insert_method="user")
    [only] = chat.get(QUESTION)
    assert (only.role.value, only.content.startswith(f"{HEADER}\n{OPENING}\n[1] {CAT}")) == ("user", True)
    said = [ChatMessage("Be brief.", role="system"), user("Hello!"), model("Hi."), user(QUESTION), tool_call("look")]
    chat.put_messages(said)
    system, hello, hi, question, call = chat.get()
    assert [system, hello, hi, call] == [said[0], said[1], said[2], said[4]]
    assert [block.text.partition("\n")[0] for block in question.blocks] == [HEADER, QUESTION]
    assert chat.get_all() == said
    again = MeVeMemory.from_json(chat.to_json())
    assert again.get() == chat.get()
    with pytest.raises(ValueError, match="insert_method"):
        MeVeMemory(memory, user_id="alice", insert_method="middle")


def test_the_question_is_the_input_or_else_what_the_user_said_last(memory, chat):
    known(memory)
    chat.put_messages([user(QUESTION), model("I don't know.")])
    assert CAT in str(chat.get()[0])
    assert CAT in str(chat.get(ChatMessage(QUESTION))[0])
    assert CAT in str(chat.get(QueryBundle(QUESTION, custom_embedding_strs=["Eiffel tower"]))[0])
    assert chat.get("How tall is the Eiffel tower?")[0].content == QUESTION
    assert texts(chat.get("  ")) == [QUESTION, "I don't know."]
    assert chat.get(some_option=1, initial_token_count=10)


def test_no_words_no_question(memory, chat):
    known(memory)
    chat.put(ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png")]))
    assert [m.role.value for m in chat.get()] == ["user"]
    assert memory.audit.events(action="retrieve") == []


def test_a_question_of_any_length_and_kind_is_asked(memory, chat):
    known(memory)
    for asked in ("The weather was fine that day. " * 4_000 + QUESTION, f"\x00 \ud800 {QUESTION}"):
        assert CAT in str(chat.get(asked)[0].content)


def test_what_the_window_shows_is_not_recalled(memory, chat):
    chat.put_messages([user(f"Hi! {CAT}"), model("Nice.")])
    assert texts(chat.get(QUESTION)) == [f"Hi! {CAT}", "Nice."]
    small = MeVeMemory(memory, user_id="alice", session_id="s1", token_limit=150)
    small.put_messages([user("word " * 100), model("Yes."), user(QUESTION)])
    shown = small.get()
    assert CAT in shown[0].content
    assert texts(shown[1:]) == [QUESTION]


def test_what_is_over_is_neither_shown_nor_recalled(memory, chat, clock):
    known(memory, ttl=timedelta(hours=1))
    chat.put(user("I have a dog."))
    assert CAT in str(chat.get(QUESTION))
    clock.advance(timedelta(hours=1))
    assert texts(chat.get(QUESTION)) == ["I have a dog."]
    clock.advance(timedelta(days=7))
    assert chat.get(QUESTION) == chat.get_all() == []


def test_the_policy_says_how_long_a_conversation_lives(tmp_path, clock):
    policy = Policy.from_dict({"chat_ttl": "2h"})
    with GovernedMemory.open(tmp_path / "m.db", clock=clock, policy=policy) as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s")
        chat.put(user(CAT))
        clock.advance(timedelta(hours=2))
        assert chat.get_all() == memory.list(user_id="alice") == []


@pytest.mark.parametrize(
    ("answer", "moved"),
    [
        ("Your cat is called Tom.", 10),
        ("Many people keep an animal at home and are fond of it for a long time.", -5),
        ("Your cat is called Max.", -30),
    ],
)
def test_an_answer_is_held_against_what_was_recalled_for_it_once(memory, chat, answer, moved):
    before = known(memory).reflection
    chat.get(QUESTION)
    chat.put_messages([user(QUESTION), model(answer)])
    assert facts(memory)[CAT] == max(0, before + moved)
    chat.put(model(answer))
    chat.get()
    chat.put(user("Thanks!"))
    chat.put(model(answer))
    assert len(outcomes(memory)) == 1


@pytest.mark.parametrize(
    "between",
    [
        [
            ChatMessage(
                role="assistant", blocks=[TextBlock(text="I ask Tom."), ToolCallBlock(tool_call_id="1", tool_name="t")]
            )
        ],
        [ChatMessage("Tom", role="tool", additional_kwargs={"tool_call_id": "1"})],
        [ChatMessage("Empty Response", role="assistant")],
        [ChatMessage(" ", role="assistant")],
        [user("And what about my dog?"), model("Your cat is called Tom.")],
    ],
)
def test_only_the_answer_to_that_question_counts(memory, chat, between):
    known(memory)
    chat.get(QUESTION)
    chat.put(user(QUESTION))
    chat.put_messages(between)
    assert outcomes(memory) == []


def test_what_did_not_fit_is_not_outcomes(memory):
    known(memory)
    tight = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=20)
    assert tight.get(QUESTION) == []
    tight.put_messages([user(QUESTION), model("No idea.")])
    assert outcomes(memory) == memory.audit.events(action="retrieve") == []


def test_after_an_answer_the_same_is_told_again_and_nothing_is_recalled(memory, chat):
    known(memory)
    chat.put(user(QUESTION))
    told = chat.get()[0].content
    chat.put(model("Your cat is called Tom."))
    recalls = memory.audit.events(action="retrieve")
    assert chat.get()[0].content == told
    assert memory.audit.events(action="retrieve") == recalls
    memory.delete("cat", user_id="alice")
    assert texts(chat.get()) == [QUESTION, "Your cat is called Tom."]


def test_what_is_told_again_fits_too(memory):
    known(memory)
    small = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=150, tokens=WordCounter())
    small.put(user(QUESTION))
    assert CAT in small.get()[0].content
    small.put(model("word " * 120))
    shown = small.get()
    assert 120 < sum(map(MessageCounter(WordCounter()).message, shown)) <= 150


def test_the_last_recall_can_be_looked_at(memory, chat):
    known(memory)
    assert chat.recall is None
    chat.get(QUESTION)
    assert [record.id for record in chat.recall.records] == ["cat"]
    assert chat.recall.trace.candidates[0].fate == "kept"


def test_statements_are_remembered_and_questions_are_not(memory, chat):
    chat.put(user(f"Hello! {CAT} {QUESTION}"))
    chat.put(model("The cat of a friend of mine is called Felix."))
    assert set(facts(memory)) == {CAT}


def test_which_turns_are_remembered_can_be_chosen(memory):
    both = TurnRules(sources={"user": "chat_user", "assistant": "chat_assistant"})
    for rules, expected in ((None, set()), (both, {CAT, "I like cats."})):
        chat = MeVeMemory(memory, user_id="alice", session_id="s", remember=rules)
        chat.put_messages([user(CAT), model("I like cats.")])
        assert set(facts(memory)) == expected


def test_what_is_remembered_takes_what_the_policy_gives_it_unless_told(memory):
    known(memory)
    for search in ({"max_tokens": None}, {"max_tokens": 400}, {}):
        assert CAT in MeVeMemory(memory, user_id="alice", search=search).get(QUESTION)[0].content


def test_messages_may_come_one_by_one(memory, chat):
    chat.put_messages(user(text) for text in ("Hello!", CAT))
    assert texts(chat.get_all()) == ["Hello!", CAT]
    assert set(facts(memory)) == {CAT}


def test_halves_of_characters_keep_nothing_from_being_recalled(memory):
    """As streams leave them that were cut; a message of nothing else asks nothing."""
    known(memory)
    strict = MeVeMemory(memory, user_id="alice", session_id="s", on_error="raise")
    strict.put_messages([user("\ud83d The weather was \udc00 fine."), model("\ud83d")])
    assert CAT in strict.get(QUESTION)[0].content
    strict.put(user("\ud83d\x00"))
    assert len(strict.get()) == 3
