"""A model in the background adds to the facts of the rules, its answers are checked, and its failures lose nothing."""

import json
import threading

import pytest

from meve.conversation import Turn
from meve.errors import ConfigurationError
from meve.memory import LlmExtractor, Policy
from meve.memory.turns import TurnRules, add_turns
from tests.memories import open_memory

TURN = Turn(id="m1", speaker="user", text="I moved to Oslo. My sister Kim lives there, too.")
RULES = ["I moved to Oslo.", "My sister Kim lives there, too."]


def answering(*decisions):
    return TurnRules(background=LlmExtractor(lambda prompt: f"Sure:\n{json.dumps(decisions)}"))


def add(memory, rules, turn=TURN, user="ann"):
    result = add_turns(memory, [turn], user_id=user, session_id="s", rules=rules)
    return [each.result(timeout=60) for each in result.pending]


def texts(memory, user="ann"):
    return sorted(record.text for record in memory.list(user_id=user))


def test_model_adds_to_the_facts_of_the_rules(memory):
    [done] = add(memory, answering({"action": "add", "text": "Kim lives in Oslo.", "reason": "told"}))
    assert [record.text for record in done.added] == ["Kim lives in Oslo."]
    assert texts(memory) == sorted([*RULES, "Kim lives in Oslo."])


def test_model_sees_the_turn_and_near_memories_as_data(memory):
    prompts = []
    memory.add("I live in Bergen.", user_id="ann", id="home")
    memory.add("I live in Bonn.", user_id="bob")
    memory.add("The diary in Oslo lies under my bed.", user_id="ann", policy_class="private")
    add(memory, TurnRules(background=LlmExtractor(lambda prompt: prompts.append(prompt) or "[]")))
    assert '"I live in Bergen."' in prompts[0]
    assert TURN.text in prompts[0]
    assert "Bonn" not in prompts[0]
    assert "diary" not in prompts[0]


def test_model_supersedes_a_memory(memory):
    memory.add("I live in Bergen.", user_id="ann", id="home")
    add(memory, answering({"action": "supersede", "text": "I live in Oslo.", "id": "home", "reason": "moved"}))
    assert memory.get("home", user_id="ann").is_closed
    assert "I live in Oslo." in texts(memory)


@pytest.mark.parametrize(
    "answer",
    [
        "I can't.", "[1, 2]", '{"action": "add"}', "[" * 100_000, None, '[{"action": "add", "text": 3}]',
        '[{"action": "add", "text": "Kim has 3 cats."}]', '[{"action": "supersede", "text": "I am here.", "id": "b"}]',
        '[{"action": "add", "text": "I moved to Oslo.", "class": "canonical"}]', '[{"text": "I moved to Oslo."}]',
    ],
)  # fmt: skip
def test_wrong_answer_is_refused_logged_and_leaves_the_rules_facts(memory, caplog, answer):
    memory.add("I live in Bonn.", user_id="bob", id="b")
    [done] = add(memory, TurnRules(background=LlmExtractor(lambda prompt: answer)))
    assert done.added == ()
    assert done.skipped["m1"]
    assert (texts(memory), texts(memory, "bob")) == (RULES, ["I live in Bonn."])
    assert caplog.records


def test_failing_model_leaves_the_rules_facts(memory):
    def fail(prompt):
        raise TimeoutError("no answer")

    [done] = add(memory, TurnRules(background=LlmExtractor(fail)))
    assert "no answer" in done.skipped["m1"]
    assert texts(memory) == RULES


def test_log_of_a_failing_model_does_not_quote_what_was_said(memory, caplog):
    caplog.set_level("DEBUG")

    def fail(prompt):
        raise ValueError(f"bad request: {prompt}")

    [done] = add(memory, TurnRules(background=LlmExtractor(fail)))
    assert "Oslo" in done.skipped["m1"]
    assert "ValueError" in caplog.text
    assert "Oslo" not in caplog.text


def test_turn_is_read_once(memory):
    rules = answering({"action": "nothing", "reason": "known"})
    assert len(add(memory, rules)) == 1
    assert add(memory, rules) == []


@pytest.mark.parametrize("pseudonyms", [False, True])
@pytest.mark.parametrize("way", ["delete", "forget_user", "forget_session"])
@pytest.mark.parametrize("turn", [TURN, Turn(id="m1", speaker="user", text="Where does Kim live?")])
def test_turn_erased_meanwhile_is_not_written(file, way, turn, pseudonyms):
    with open_memory(file, policy=Policy.from_dict({"audit": {"pseudonyms": pseudonyms}})) as memory:
        check_erased_meanwhile(memory, way, turn)


def check_erased_meanwhile(memory, way, turn):
    asked, erased = threading.Event(), threading.Event()

    def complete(prompt):
        asked.set()
        assert erased.wait(60)
        return json.dumps([{"action": "add", "text": "Kim lives here.", "reason": "told"}])

    memory.add("I like tea.", user_id="ann", id="tea")
    rules = TurnRules(background=LlmExtractor(complete))
    result = add_turns(memory, [turn], user_id="ann", session_id="s", rules=rules)
    assert asked.wait(60)
    if way == "delete":
        memory.delete("tea", user_id="ann")
    elif way == "forget_session":
        memory.forget_session("s", user_id="ann")
    else:
        memory.forget_user(user_id="ann")
    erased.set()
    [done] = [each.result(timeout=60) for each in result.pending]
    assert done.added == ()
    assert "Kim lives here." not in texts(memory)


def test_turn_with_a_secret_is_not_sent_to_the_model(memory):
    prompts = []
    rules = TurnRules(background=LlmExtractor(lambda prompt: prompts.append(prompt) or "[]"))
    add(memory, rules, Turn(id="m", speaker="user", text="My PIN is 4711."))
    assert prompts == []


def test_turns_of_equal_ids_of_two_users_are_both_read(memory):
    both_wait = threading.Event()

    def complete(prompt):
        assert both_wait.wait(60)
        return json.dumps([{"action": "add", "text": "Kim lives in Oslo.", "reason": "told"}])

    rules = TurnRules(background=LlmExtractor(complete))
    results = [add_turns(memory, [TURN], user_id=user, session_id="s", rules=rules) for user in ("ann", "bob")]
    both_wait.set()
    for result in results:
        [done] = [each.result(timeout=60) for each in result.pending]
        assert [record.text for record in done.added] == ["Kim lives in Oslo."]
    assert memory.audit.verify().ok


def test_close_waits_for_the_model(file):
    with open_memory(file) as memory:
        rules = answering({"action": "add", "text": "Kim lives in Oslo.", "reason": "told"})
        add_turns(memory, [TURN], user_id="ann", session_id="s", rules=rules)
    with open_memory(file) as memory:
        assert "Kim lives in Oslo." in texts(memory)


def test_model_that_cannot_be_called_is_refused():
    with pytest.raises(ConfigurationError, match="llm must be a blocking function"):
        LlmExtractor(5)


def test_text_that_was_changed_meanwhile_is_not_written_again(memory):
    memory.add("Kim lives in Bergen.", user_id="ann", id="kim")
    changed = threading.Event()

    def complete(_):
        changed.wait(60)
        return '[{"action": "update", "id": "kim", "text": "Kim lives in Bergen.", "reason": "said"}]'

    rules = TurnRules(background=LlmExtractor(complete))
    turn = Turn(id="m1", speaker="user", text="My sister Kim lives in Bergen and called me.")
    result = add_turns(memory, [turn], user_id="ann", session_id="s", rules=rules)
    memory.update("kim", user_id="ann", text="Kim lives somewhere.")
    changed.set()
    assert result.pending[0].result(timeout=60).added == ()
    assert "Kim lives in Bergen." not in texts(memory)
