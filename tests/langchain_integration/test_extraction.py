"""What extractors and classifiers see through the LangChain wrappers, and a LangChain model that extracts."""

import json

import pytest

pytest.importorskip("langchain")
pytest.importorskip("langchain_classic")
pytest.importorskip("langgraph")

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from langchain_meve import MeVeStore, create_memory_tools
from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from langchain_meve.model_adapters import complete_with
from meve.memory import LlmExtractor, TurnRules
from tests.langchain_integration.chat_models import ScriptedChatModel
from tests.langchain_integration.test_memory_middleware import call_agent, config, make_agent
from tests.memories import FixedExtractor, WordClassifier, open_memory

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
MOVED, YES = "I moved to Oslo.", "Yes, I did."


def seen(rules):
    return [(context.turn.text, [turn.text for turn in context.before]) for context in rules.extractor.seen]


def test_agent_shows_the_extractor_what_came_before(memory):
    rules = TurnRules(extractor=FixedExtractor())
    agent = make_agent(memory, remember=rules)
    for text in (MOVED, YES):
        call_agent("invoke", agent, text, "monday", "ann")
    assert seen(rules) == [(MOVED, []), (YES, [MOVED, "Noted."])]


def test_agent_shows_the_extractor_nothing_of_another_user_in_the_thread(memory):
    rules = TurnRules(extractor=FixedExtractor())
    agent = make_agent(memory, remember=rules)
    for text, user in ((MOVED, "ann"), (YES, "bob"), (YES, "ann")):
        call_agent("invoke", agent, text, "monday", user)
    assert seen(rules) == [(MOVED, []), (YES, []), (YES, [])]


def test_agent_shows_the_extractor_nothing_of_which_the_writer_is_unknown(memory):
    rules = TurnRules(extractor=FixedExtractor())
    agent = make_agent(memory, remember=rules, user_id="ann")
    agent.update_state(config("monday"), {"messages": [("user", MOVED), AIMessage("Noted.")]})
    call_agent("invoke", agent, YES, "monday", "ann")
    assert seen(rules) == [(YES, [])]


def test_chain_shows_the_extractor_what_came_before(memory):
    rules = TurnRules(extractor=FixedExtractor())
    chain_memory = MeVeMemory(memory=memory, user_id="ann", session_id="s", remember=rules)
    for text in (MOVED, YES):
        chain_memory.save_context({"input": text}, {"output": "Noted."})
    assert seen(rules) == [(MOVED, []), (YES, [MOVED, "Noted."])]


def test_chat_model_extracts_in_the_background(memory):
    answer = [{"action": "supersede", "id": "home", "text": "I live in Oslo.", "reason": "moved"}]
    model = FakeListChatModel(responses=[f"Here you are: {json.dumps(answer)}"])
    memory.add("I live in Bergen.", user_id="ann", id="home")
    agent = make_agent(memory, remember=TurnRules(background=LlmExtractor(complete_with(model))))
    call_agent("invoke", agent, "I live in Oslo now, since I moved.", "monday", "ann")
    memory._extractions.close()
    assert memory.get("home", user_id="ann").is_closed
    assert "I live in Oslo." in [record.text for record in memory.list(user_id="ann")]


DIARY = "I keep a diary on tea."


def put_item(memory):
    MeVeStore(memory, namespaces="memories/{user_id}").put(("memories", "ann"), "k", {"note": DIARY})


DOORS = {
    "agent": lambda memory: call_agent("invoke", make_agent(memory, ScriptedChatModel()), DIARY, "monday", "ann"),
    "chain": lambda memory: MeVeMemory(memory=memory, user_id="ann").save_context({"input": DIARY}, {"output": "Ok."}),
    "history": lambda memory: MeVeChatMessageHistory(memory, "ann", "s").add_user_message(DIARY),
    "tool": lambda memory: create_memory_tools(memory, "ann")[0].invoke({"text": DIARY}),
    "store": put_item,
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("way", ["classifier", "detector"])
def test_own_classifier_and_the_detector_are_asked_at_every_door(file, door, way, monkeypatch):
    if way == "detector":
        monkeypatch.setitem(globals(), "DIARY", "My diary key is AKIAIOSFODNN7EXAMPLE.")
    with open_memory(file, **({"classifier": WordClassifier()} if way == "classifier" else {})) as memory:
        door(memory)
        records = memory.list(user_id="ann", include_messages=True)
        kept = [record.policy_class for record in records if "diary" in json.dumps(record.to_dict(), default=str)]
        assert kept
        assert set(kept) == {"private"}
