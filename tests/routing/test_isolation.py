"""A router reads one user's memories only, and none that the policy or the search options exclude."""

from datetime import timedelta

import pytest

from meve.errors import UnknownIdError
from meve.memory.records import user_key
from meve.routing import MemoryRouter, RouterConfig, Tier
from tests.memories import Interrupted, open_memory
from tests.routing.conftest import Script

QUESTIONS = ("What is my name?", "Where is Bob's secret lake?", "How many times did I go hiking to a secret lake?",
             "What do you know about me?", "Which came first, the secret lake or the bike?")  # fmt: skip


@pytest.mark.parametrize("tier", [None, *Tier])
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_tier_reads_another_users_memory(router, question, tier):
    recall = router.recall(question, tier=tier)
    assert {record.user_id for record in recall.records} == {"alice"}
    assert "secret" not in recall.text
    assert {c.id for c in recall.trace.candidates} <= {r.id for r in router.memory.list(user_id="alice")}


def test_no_prompt_holds_another_users_memory(routed_memory):
    script = Script("ESCALATE_REQUIRED")
    MemoryRouter(routed_memory, user_id="alice", llm=script).answer("How often did I go to Bob's secret lake?")
    assert not any("a secret lake of Bob's" in prompt for prompt in script.prompts)


def test_plan_of_another_users_router_reads_the_own_memory(routed_memory):
    plan = MemoryRouter(routed_memory, user_id="bob").plan("Where did I go hiking?")
    recall = MemoryRouter(routed_memory, user_id="alice").recall(plan)
    assert {record.user_id for record in recall.records} == {"alice"}


QUESTIONS_FOR_FORMER = ("Which phone numbers have I had?", "How many phone numbers have I had?",
                        "What was my previous phone number?", "When did I first have a phone number?")  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS_FOR_FORMER)
def test_former_versions_of_a_hidden_memory_are_not_read(static_memory, question):
    old = static_memory.add("My phone number is 111.", user_id="alice", source="chat_user")
    new = static_memory.supersede(old.id, "My phone number is 222.", user_id="alice", source="chat_user")
    router = MemoryRouter(static_memory, user_id="alice")
    assert "111" in router.recall(question).text
    static_memory._writer.hide(user_key("alice"), new.id, "a model asked to forget it")
    assert router.recall(question).text == ""


def test_former_value_that_is_hidden_itself_is_not_read(static_memory):
    old = static_memory.add("My phone number is 111.", user_id="alice", source="chat_user")
    static_memory.supersede(old.id, "My phone number is 222.", user_id="alice", source="chat_user")
    static_memory._writer.hide(user_key("alice"), old.id, "a model asked to forget it")
    text = MemoryRouter(static_memory, user_id="alice").recall(QUESTIONS_FOR_FORMER[0]).text
    assert "222" in text
    assert "111" not in text


def test_expired_and_erased_memories_are_not_read(memory, clock):
    memory.add("I went hiking to the lake.", user_id="alice", source="chat_user", ttl=timedelta(days=1))
    erased = memory.add("I went hiking to the castle.", user_id="alice", source="chat_user")
    memory.add("I went hiking to the cave.", user_id="alice", source="chat_user")
    router = MemoryRouter(memory, user_id="alice")
    assert len(router.recall("How many times did I go hiking?").records) == 3
    clock.advance(timedelta(days=2))
    memory.delete(erased.id, user_id="alice")
    with pytest.raises(UnknownIdError):
        memory.get(erased.id, user_id="alice")
    for tier in Tier:
        assert [r.text for r in router.recall("How many times did I go hiking?", tier=tier).records] == [
            "I went hiking to the cave."
        ]


def test_memory_that_is_erased_during_the_searches_is_not_handed_out(file, clock):
    embedder = Interrupted()
    with open_memory(file, clock=clock, embedder=embedder) as memory:
        memory.add("I went hiking to the castle.", user_id="alice", id="castle", source="chat_user")
        router = MemoryRouter(memory, user_id="alice")
        embedder.meanwhile = lambda: memory.delete("castle", user_id="alice")
        recall = router.recall("Where did I go hiking?")
        assert embedder.meanwhile is None, "the search embedded its query"
        assert "castle" not in recall.text
        assert not memory.audit.events(record_id="castle", action="retrieve")


def test_private_memories_are_read_only_if_the_search_includes_them(memory):
    memory.add("I take pills for my heart.", user_id="alice", source="chat_user", policy_class="private")
    question = "How many pills do I take for my heart?"
    assert not MemoryRouter(memory, user_id="alice").recall(question).records
    assert MemoryRouter(memory, user_id="alice", search={"include_private": True}).recall(question).records


def test_filters_of_the_search_hold_in_every_tier(memory):
    memory.add("I went hiking to the lake.", user_id="alice", source="chat_user", session_id="one")
    memory.add("I went hiking to the cave.", user_id="alice", source="chat_user", session_id="two")
    router = MemoryRouter(memory, user_id="alice", search={"session_id": "one"}, config=RouterConfig(hops=3))
    for tier in Tier:
        assert {r.session_id for r in router.recall("How often did I go hiking?", tier=tier).records} == {"one"}


@pytest.mark.parametrize("question", ["How many times did I go hiking?", "Where did I go hiking before?"])
def test_history_reads_neither_erased_private_nor_expired_memories(static_memory, clock, question):
    for user in ("alice", "bob"):
        for n in range(2):
            old = static_memory.add(f"I went hiking to lake {n}.", user_id=user, id=f"{user} {n}")
            static_memory.supersede(old.id, f"I went hiking to castle {n}.", user_id=user, id=f"{user} {n + 2}")
            clock.advance(timedelta(days=1))
    static_memory.add("I went hiking to a clinic.", user_id="alice", id="private", policy_class="private")
    static_memory.add("I went hiking to a fair.", user_id="alice", id="expired", ttl=timedelta(hours=1))
    clock.advance(timedelta(hours=2))
    static_memory.delete("alice 0", user_id="alice")
    static_memory.maintain()
    for tier in Tier:
        recall = MemoryRouter(static_memory, user_id="alice").recall(question, tier=tier)
        read = {c.id for c in recall.trace.candidates} | {r.id for r in recall.records}
        assert read <= {"alice 1", "alice 2", "alice 3"}
        assert recall.read <= 3
