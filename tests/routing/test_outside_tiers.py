"""Messages outside the tiers get no memories but those that answer them; those that only look alike get memories."""

import pytest

from meve.routing import MemoryRouter
from meve.routing._tiers import needs_nearest

UNREAD = ("chat", "task", "general")


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("Morning!", "chat"),
        ("That made me laugh, thanks.", "chat"),
        ("thanks, that helped a lot!", "chat"),
        ("ok, cool", "chat"),
        ("good night", "chat"),
        ("Thank you so much for your help \U0001f64f", "chat"),
        ("cool, I'll try that", "chat"),
        ("ok bye, have a nice evening", "chat"),
        ("What's your name, by the way?", "chat"),
        ("Do you ever sleep?", "chat"),
        ("Come up with a slogan for a bakery.", "task"),
        ("Give me a synonym for happy.", "task"),
        ("What is 17 percent of 240?", "task"),
        ("Put these words in alphabetical order: pear, apple, plum.", "task"),
        ("What time is it?", "task"),
        ("Turn off the lights in the kitchen.", "task"),
        ("Remind me in five minutes to check the oven.", "task"),
        ("What's the weather like tomorrow?", "task"),
        ("How do vaccines work?", "general"),
        ("Why do cats purr?", "general"),
        ("What does GDP stand for?", "general"),
    ],
)
def test_message_outside_the_tiers_gets_no_memories_that_do_not_answer_it(router, message, intent):
    assert router.plan(message).intent == intent


@pytest.mark.parametrize(
    "message",
    [
        "What was your last suggestion for the garden?",
        "Thanks! And when is my dentist's appointment?",
        "ok, what's my name",
        "Great, list my hobbies",
        "Cool places that I visited",
        "Sounds like my boss, what was her name",
        "Draft a birthday card for my mother that mentions her hobby.",
        "Translate my address into German.",
        "Play the song that I said I loved.",
        "What's the weather like where my parents live?",
        "How do I take my coffee?",
        "Explain why I left the band.",
        "Remind me what the plumber's name was.",
        "How does Andrew feel about his current work?",
        "What makes me nervous?",
        "Why does my cat scratch the sofa?",
    ],
)
def test_message_that_needs_the_memory_gets_memories(router, message):
    plan = router.plan(message)
    assert plan.intent not in UNREAD or needs_nearest(plan)


def test_task_about_the_user_gets_memories_and_other_tasks_none(static_memory):
    static_memory.add("My landlord is called Zbigniew.", user_id="alice")
    router = MemoryRouter(static_memory, user_id="alice")
    about, other = map(router.recall, ("Write an email to my landlord about the leak.", "Write a haiku about fog."))
    assert [record.text for record in about.records] == ["My landlord is called Zbigniew."]
    assert other.records == ()
    assert not about.plan.needs_memory


def test_small_talk_is_answered_by_the_model_without_memories(static_memory):
    static_memory.add("I helped my landlord a lot.", user_id="alice", source="chat_user")
    prompts = []
    router = MemoryRouter(static_memory, user_id="alice", llm=lambda prompt: prompts.append(prompt) or "Any time!")
    answer = router.answer("thanks, that helped a lot!")
    assert (answer.text, answer.abstained, answer.evidence.records) == ("Any time!", False, ())
    assert "landlord" not in prompts[0]
