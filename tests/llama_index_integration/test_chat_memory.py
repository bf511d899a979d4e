"""MeVeMemory: isolation, recalls, judged answers and what is remembered."""

import re
from datetime import timedelta

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import QueryBundle

from llama_index_meve import MeVeChatStore, MeVeMemory, MeVeMemoryBlock
from llama_index_meve._message_counter import MessageCounter
from meve.errors import ConfigurationError, QueryError, ValidationError
from meve.memory import GovernedMemory, Policy
from meve.memory._recall.formatting import HEADER
from meve.memory.turns import TurnRules
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chat_helpers import (
    CAT,
    QUESTION,
    facts,
    model,
    outcomes,
    remember_cat,
    system,
    texts,
    tool_call,
    user,
)

BLOCK = rf"{re.escape(HEADER)}\n<memory \w+>\n[^\n]+:\n\[1\] {re.escape(CAT)}"


def contents(messages):
    """Return the messages' contents without the numbers of recalls."""
    return [re.sub(r"memory \w{8}>", "memory>", message.content or "") for message in messages]


def test_empty_memory_is_truthy(chat):
    """Agents replace a falsy memory by another."""
    assert isinstance(chat, BaseMemory)
    assert chat.get_all() == []
    assert bool(chat)
    assert not hasattr(chat, "__len__")


@pytest.mark.parametrize("component", [MeVeMemory, MeVeMemoryBlock, MeVeChatStore])
def test_missing_memory_and_missing_or_invalid_user_are_rejected(memory, component):
    with pytest.raises(ConfigurationError, match=r"GovernedMemory\.open"):
        component("memory.db", user_id="alice")
    with pytest.raises(TypeError, match="user_id"):
        component(memory)
    for nobody in (None, "", " ", True, 1.5, ["alice"]):
        with pytest.raises(ValidationError, match="user_id"):
            component(memory, user_id=nobody)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"session_id": " "}, "session_id"),
        ({"search": {"limt": 3}}, "unknown option 'limt' of search: did you mean 'limit'"),
        ({"search": {"limit": "5"}}, "limit must be an integer of at least 1, got '5'"),
        ({"search": {"max_tokens": "300"}}, "max_tokens must be an integer of at least 1, got '300'"),
        ({"search": {"verify": "no"}}, "verify must be True or False"),
        ({"search": {"include_private": "no"}}, "include_private must be True or False"),
        ({"search": {"user_id": "bob"}}, "is set by the integration: remove it from search"),
        ({"search": {"without": []}}, "is set by the integration: remove it from search"),
        ({"search": {"classes": ["secret"]}}, "must be one of"),
        ({"remember": "all"}, "TurnRules"),
        ({"on_error": "hide"}, "on_error must be one of warn, raise, got 'hide'"),
        ({"token_limit": 0}, "^token_limit must be greater than or equal to 1, got 0$"),
        ({"token_limit": "300"}, "^token_limit must be a valid integer, got '300'$"),
        ({"insert_method": "assistant"}, "^insert_method must be 'system' or 'user', got 'assistant'$"),
        ({"media_tokens": {"image": -1}}, "^media_tokens.image must be greater than or equal to 0, got -1$"),
        ({"media_tokens": {"imgae": 765}}, "'imgae' of media_tokens: did you mean 'image'"),
        ({"remember": TurnRules(sources={"usr": "chat_user"}, classes={})}, "'usr' of remember: did you mean 'user'"),
    ],
)
def test_invalid_option_is_rejected(memory, options, message):
    with pytest.raises((ConfigurationError, ValidationError), match=message):
        MeVeMemory(memory, user_id="alice", **options)


@pytest.mark.parametrize("question", [5, ["Where?"], b"Where?"])
def test_question_of_another_type_is_rejected(chat, question):
    with pytest.raises(
        QueryError, match=re.escape(f"the question must be text, a ChatMessage or a QueryBundle, got {question!r}")
    ):
        chat.get(question)


def test_from_defaults_requires_a_user_and_stores_the_history(memory):
    with pytest.raises(ConfigurationError, match="memory=MeVeMemory"):
        MeVeMemory.from_defaults(chat_history=[])
    chat = MeVeMemory.from_defaults(memory=memory, user_id="alice", chat_history=[user(CAT)], llm=None, token_limit=99)
    assert (chat.token_limit, texts(chat.get_all())) == (99, [CAT])
    again = MeVeMemory.from_defaults(memory=memory, user_id="alice", session_id=chat.session_id)
    assert texts(again.get_all()) == [CAT]
    assert MeVeMemory.from_defaults(memory=memory, user_id="alice").session_id != chat.session_id


def test_users_and_sessions_are_isolated(memory, chat):
    chat.put(user(CAT))
    for owner, session in (("bob", "s1"), ("alice", "s2"), (1, "s1"), ("1", "s1")):
        other = MeVeMemory(memory, user_id=owner, session_id=session)
        assert other.get_all() == []
        assert (CAT in str(other.get(QUESTION))) is (owner == "alice")
        other.put(user(f"I am {owner!r}."))
    assert texts(chat.get_all()) == [CAT]


def test_recall_follows_the_instructions_in_the_system_message(memory, chat):
    remember_cat(memory)
    assert re.match(BLOCK, chat.get(QUESTION)[0].content)
    chat.put(system("Be brief."))
    [first] = chat.get(QUESTION)
    assert first.role.value == "system"
    assert [block.text.partition("\n")[0] for block in first.blocks] == ["Be brief.", HEADER]


def test_recall_can_stand_before_the_last_user_message(memory):
    remember_cat(memory)
    chat = MeVeMemory(memory, user_id="alice", session_id="s", insert_method="user")
    [only] = chat.get(QUESTION)
    assert (only.role.value, bool(re.match(BLOCK, only.content))) == ("user", True)
    messages = [system("Be brief."), user("Hello!"), model("Hi."), user(QUESTION), tool_call("look")]
    chat.put_messages(messages)
    *before, question, call = chat.get()
    assert [*before, call] == [messages[n] for n in (0, 1, 2, 4)]
    assert [block.text.partition("\n")[0] for block in question.blocks] == [HEADER, QUESTION]
    assert chat.get_all() == messages
    again = MeVeMemory.from_json(chat.to_json())
    assert contents(again.get()) == contents(chat.get())


def test_question_is_the_input_or_the_last_user_message(memory, chat):
    remember_cat(memory)
    chat.put_messages([user(QUESTION), model("I don't know.")])
    assert CAT in str(chat.get()[0])
    assert CAT in str(chat.get(ChatMessage(QUESTION))[0])
    assert CAT in str(chat.get(QueryBundle(QUESTION, custom_embedding_strs=["Eiffel tower"]))[0])
    assert texts(chat.get("  ")) == [QUESTION, "I don't know."]
    assert chat.get(some_option=1, initial_token_count=10)


def test_message_without_text_recalls_nothing(memory, chat):
    remember_cat(memory)
    chat.put(ChatMessage(role="user", blocks=[ImageBlock(url="http://x/y.png")]))
    assert [m.role.value for m in chat.get()] == ["user"]
    assert memory.audit.events(action="retrieve") == []


def test_very_long_or_malformed_question_is_searched(memory, chat):
    remember_cat(memory)
    for question in ("The weather was fine that day. " * 4_000 + QUESTION, f"\x00 \ud800 {QUESTION}"):
        assert CAT in str(chat.get(question)[0].content)


def test_visible_messages_are_not_recalled(memory, chat):
    chat.put_messages([user(f"Hi! {CAT}"), model("Nice.")])
    assert texts(chat.get(QUESTION)) == [f"Hi! {CAT}", "Nice."]
    small = MeVeMemory(memory, user_id="alice", session_id="s1", token_limit=150)
    small.put_messages([user("word " * 100), model("Yes."), user(QUESTION)])
    shown = small.get()
    assert CAT in shown[0].content
    assert texts(shown[1:]) == [QUESTION]


def test_expired_messages_and_facts_are_not_returned(memory, chat, clock):
    remember_cat(memory, ttl=timedelta(hours=1))
    chat.put(user("I have a dog."))
    assert CAT in str(chat.get(QUESTION))
    clock.advance(timedelta(hours=1))
    assert texts(chat.get(QUESTION)) == ["I have a dog."]
    clock.advance(timedelta(days=7))
    assert chat.get(QUESTION) == chat.get_all() == []


def test_conversation_expires_by_the_policy(file, clock):
    policy = Policy.from_dict({"chat_ttl": "2h", "user_ttl": "2h"})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        chat = MeVeMemory(memory, user_id="alice", session_id="s")
        chat.put(user(CAT))
        clock.advance(timedelta(hours=2))
        assert chat.get_all() == memory.list(user_id="alice", include_messages=True) == []


@pytest.mark.parametrize(
    ("answer", "moved"),
    [
        ("Your cat is called Tom.", 10),
        ("Many people keep an animal at home and are fond of it for a long time.", 0),
        ("Your cat is called Max.", -30),
    ],
)
def test_answer_moves_the_score_of_its_recall_once(memory, chat, answer, moved):
    before = remember_cat(memory).reflection
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
        [model("Empty Response")],
        [model(" ")],
        [user("And what about my dog?"), model("Your cat is called Tom.")],
    ],
)
def test_other_messages_do_not_judge_the_recall(memory, chat, between):
    remember_cat(memory)
    chat.get(QUESTION)
    chat.put(user(QUESTION))
    chat.put_messages(between)
    assert outcomes(memory) == []


def test_recall_that_did_not_fit_is_not_judged(memory):
    remember_cat(memory)
    tight = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=20)
    assert tight.get(QUESTION) == []
    tight.put_messages([user(QUESTION), model("No idea.")])
    assert outcomes(memory) == memory.audit.events(action="retrieve") == []


def test_answered_question_repeats_its_recall_without_a_search(memory, chat):
    remember_cat(memory)
    chat.put(user(QUESTION))
    message = chat.get()[0].content
    chat.put(model("Your cat is called Tom."))
    recalls = memory.audit.events(action="retrieve")
    assert chat.get()[0].content == message
    assert memory.audit.events(action="retrieve") == recalls
    memory.delete("cat", user_id="alice")
    assert texts(chat.get()) == [QUESTION, "Your cat is called Tom."]


def test_repeated_recall_fits_the_token_limit(memory):
    remember_cat(memory)
    small = MeVeMemory(memory, user_id="alice", session_id="s", token_limit=150, tokens=WordCounter())
    small.put(user(QUESTION))
    assert CAT in small.get()[0].content
    small.put(model("word " * 120))
    shown = small.get()
    assert 120 < sum(map(MessageCounter(WordCounter()).count_message, shown)) <= 150


def test_last_recall_is_exposed(memory, chat):
    remember_cat(memory)
    assert chat.recall is None
    chat.get(QUESTION)
    assert [record.id for record in chat.recall.records] == ["cat"]
    assert chat.recall.trace.candidates[0].fate == "kept"


def test_statements_are_remembered_and_questions_are_not(memory, chat):
    chat.put(user(f"Hello! {CAT} {QUESTION}"))
    chat.put(model("The cat of a friend of mine is called Felix."))
    assert set(facts(memory)) == {CAT}


def test_turn_rules_select_the_remembered_turns(memory):
    both = TurnRules(sources={"user": "chat_user", "assistant": "chat_assistant"})
    for rules, expected in ((None, set()), (both, {CAT, "I like cats."})):
        chat = MeVeMemory(memory, user_id="alice", session_id="s", remember=rules)
        chat.put_messages([user(CAT), model("I like cats.")])
        assert set(facts(memory)) == expected


def test_recall_size_defaults_to_the_policy(memory):
    remember_cat(memory)
    for search in ({"max_tokens": None}, {"max_tokens": 400}, {}):
        assert CAT in MeVeMemory(memory, user_id="alice", search=search).get(QUESTION)[0].content


def test_messages_can_be_put_from_a_generator(memory, chat):
    chat.put_messages(user(text) for text in ("Hello!", CAT))
    assert texts(chat.get_all()) == ["Hello!", CAT]
    assert set(facts(memory)) == {CAT}


def test_lone_surrogates_do_not_prevent_recall(memory):
    """Streams that were cut leave them."""
    remember_cat(memory)
    strict = MeVeMemory(memory, user_id="alice", session_id="s", on_error="raise")
    strict.put_messages([user("\ud83d The weather was \udc00 fine."), model("\ud83d")])
    assert CAT in strict.get(QUESTION)[0].content
    strict.put(user("\ud83d\x00"))
    assert len(strict.get()) == 3
