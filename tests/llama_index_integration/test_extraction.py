"""What extractors and classifiers see through the LlamaIndex wrappers, and a LlamaIndex LLM that extracts."""

import asyncio
import json

import pytest
from llama_index.core.memory import Memory

from llama_index_meve import MeVeChatStore, MeVeMemory, MeVeMemoryBlock
from llama_index_meve.llm_adapter import complete_with
from meve.memory import LlmExtractor, TurnRules
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chat_helpers import ScriptedLLM, model, user
from tests.memories import FixedExtractor, WordClassifier, open_memory

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MOVED, YES = "I moved to Oslo.", "Yes, I did."


def seen(rules):
    return [(context.turn.text, [turn.text for turn in context.before]) for context in rules.extractor.seen]


def chat_memory(memory, rules):
    return MeVeMemory(memory, user_id="alice", session_id="s", remember=rules)


def block_memory(memory, rules):
    block = MeVeMemoryBlock(memory=memory, user_id="alice", tokens=WordCounter(), remember=rules)
    store = MeVeChatStore(memory, user_id="alice")
    return Memory.from_defaults(session_id="s", chat_store=store, memory_blocks=[block])


def put(chat, *messages):
    """Put messages one after the other, each followed by a read, as engines do."""

    async def run():
        for message in messages:
            await chat.aput(message)
            await chat.aget()

    asyncio.run(run())


@pytest.mark.parametrize("make", [chat_memory, block_memory])
def test_extractor_sees_what_came_before(memory, make):
    rules = TurnRules(extractor=FixedExtractor())
    chat = make(memory, rules)
    put(chat, user(MOVED), model("Noted."), user(YES))
    assert seen(rules) == [(MOVED, []), (YES, [MOVED, "Noted."])]


@pytest.mark.parametrize("make", [chat_memory, block_memory])
def test_llm_extracts_in_the_background(memory, make):
    answer = [{"action": "supersede", "id": "home", "text": "I live in Oslo.", "reason": "moved"}]
    llm = ScriptedLLM(reply=lambda messages: f"Here you are: {json.dumps(answer)}")
    memory.add("I live in Bergen.", user_id="alice", id="home")
    chat = make(memory, TurnRules(background=LlmExtractor(complete_with(llm))))
    put(chat, user("I live in Oslo now, since I moved."))
    memory._extractions.close()
    assert memory.get("home", user_id="alice").is_closed
    assert "I live in Oslo." in [record.text for record in memory.list(user_id="alice")]


DOORS = {
    "chat memory": lambda memory, text: put(chat_memory(memory, TurnRules()), user(text)),
    "block": lambda memory, text: put(block_memory(memory, TurnRules()), user(text)),
    "chat store": lambda memory, text: asyncio.run(MeVeChatStore(memory, user_id="alice").add_message("s", user(text))),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(
    ("text", "parts"),
    [("I keep a diary on tea.", {"classifier": WordClassifier()}), ("My diary key is AKIAIOSFODNN7EXAMPLE.", {})],
    ids=["classifier", "detector"],
)
def test_own_classifier_and_the_detector_are_asked_at_every_door(file, door, text, parts):
    with open_memory(file, **parts) as memory:
        door(memory, text)
        records = memory.list(user_id="alice", include_messages=True)
        kept = [record.policy_class for record in records if "diary" in json.dumps(record.to_dict(), default=str)]
        assert kept
        assert set(kept) == {"private"}
