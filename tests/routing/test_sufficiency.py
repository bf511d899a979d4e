"""Questions that the memories don't answer are refused before the language model is asked, and the trace says why."""

from dataclasses import replace

import pytest

from meve.routing import MemoryRouter, RouterConfig, Tier
from meve.routing._attribution import split_by_person
from meve.routing._sufficiency import READ, WEIGHTS, EvidenceFeatures, estimate_sufficiency, measure_evidence
from meve.types import Candidate, Passage
from tests.routing.conftest import Script

TALK = (
    "Ana: I adopted a cat called Pim.", "Bo: How sweet! What did you call your cat? I broke my wrist on Monday.",
    "Ana: Your poor wrist! I hope that you feel better.", "Bo: I climbed Triglav in the summer.",
    "Ana: That sounds great. Who did you climb Triglav with?",
)  # fmt: skip


@pytest.fixture
def talk(memory):
    for text in TALK:
        memory.add(text, user_id="alice", source="chat_user")
    return memory


def ask(memory, question, **config):
    script = Script("Yes")
    router = MemoryRouter(memory, user_id="alice", llm=script, config=RouterConfig(**config))
    return router.answer(question), script


@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ("What is Ana's cat called?", False), ("What is Bo's cat called?", True), ("Who broke a wrist?", False),
        ("When did Bo climb Triglav?", False), ("When did Ana climb Triglav?", True),
        ("When did Ana break a wrist?", True),
    ],
)  # fmt: skip
def test_question_about_the_wrong_person_is_refused_unasked(talk, question, refused):
    result, script = ask(talk, question)
    assert (result.abstained, bool(script.prompts)) == (refused, not refused)
    if refused:
        assert {(step.verdict.check, step.verdict.passed) for step in result.steps} == {("no_evidence", False)}
        assert result.steps[-1].plan.tier is Tier.DEEP
        assert result.verdicts[-1].reason == "the memories that fit the question are about somebody else"


@pytest.mark.parametrize(
    ("question", "refused"),
    [("Where do I live?", False), ("What does my sister do?", False), ("When did I travel to Iceland?", True),
     ("What did Marco say about Berlin?", True)],
)  # fmt: skip
def test_question_about_what_nobody_told_is_refused(routed_memory, question, refused):
    assert ask(routed_memory, question)[0].abstained is refused


@pytest.mark.parametrize(
    ("question", "refused"),
    [("Who are my friends?", False), ("Who is in my family?", False), ("Do I have siblings?", False),
     ("How many children do I have?", False), ("What are my pets called?", True), ("What sports do I do?", False),
     ("How many trips did I take outside Portugal?", False), ("When did I travel to Portugal?", True)],
)  # fmt: skip
def test_members_of_a_group_need_not_be_told_by_its_name(memory, question, refused):
    for text in ("Our daughter Liv is six.", "I met Tomas, whom I know from university.", "My brother is in Oslo.",
                 "I ran 8 km.", "I bought a lamp."):  # fmt: skip
        memory.add(text, user_id="alice", source="chat_user")
    assert ask(memory, question)[0].abstained is refused


def test_threshold_decides_and_zero_asks_in_any_case(talk):
    question = "What is Bo's cat called?"
    assert not ask(talk, question, evidence_threshold=0.0)[0].abstained
    assert ask(talk, "What is Ana's cat called?", evidence_threshold=1.0)[0].abstained


def test_recall_and_trace_explain_the_estimate(talk):
    recall = MemoryRouter(talk, user_id="alice").recall("What is Bo's cat called?")
    account = recall.trace.sufficiency
    assert (recall.sufficient, account["threshold"]) == (False, 0.5)
    assert account["estimate"] == pytest.approx(recall.sufficiency, abs=1e-4)
    assert account["reason"] == "the memories that fit the question are about somebody else"
    assert account["features"]["told_more"] < 0
    assert account["features"]["named"] == 1


def test_conclusions_and_summaries_are_never_refused_by_words(talk):
    for question in ("Would Bo enjoy skiing?", "Summarise what we talked about"):
        recall = MemoryRouter(talk, user_id="alice").recall(question)
        assert (recall.sufficient, recall.sufficiency) == (True, None)


@pytest.mark.parametrize(
    ("question", "asked"),
    [("What do you call me?", True), ("What is my dog called?", True), ("How tall am I?", False),
     ("What colour is my car?", False), ("Which gym do I go to?", False)],
)  # fmt: skip
def test_only_wishes_that_fit_the_question_are_evidence(memory, question, asked):
    memory.add("Always call me Captain.", user_id="alice", source="chat_user", policy_class="instruction")
    memory.add("Never use emojis in your answers.", user_id="alice", source="chat_user", policy_class="instruction")
    memory.add("My dog is called Balu.", user_id="alice", source="chat_user")
    assert bool(ask(memory, question)[1].prompts) is asked


def test_pinned_memory_may_answer_in_other_words(memory):
    memory.add("Never use emojis in your answers.", user_id="alice", source="chat_user", policy_class="instruction")
    memory.add("I'm allergic to nuts.", user_id="alice", source="chat_user", pinned=True)
    assert ask(memory, "Which food makes me ill?")[1].prompts


NONE = EvidenceFeatures(verified=0.3, told=0.3, told_more=0.0, verified_more=0.1, known=0.3, names=0.5, named=True)


@pytest.mark.parametrize("named", [True, False])
def test_estimate_never_falls_with_a_better_fit(named):
    assert all(weight >= 0 for name, weight in WEIGHTS[named].items() if name)
    for name in ("verified", "told", "told_more", "verified_more", "known", "names"):
        lower = replace(NONE, named=named)
        assert estimate_sufficiency(lower) <= estimate_sufficiency(replace(lower, **{name: getattr(NONE, name) + 0.2}))


@pytest.mark.parametrize(
    ("text", "about_ana", "about_others"),
    [
        ("Ana: I moved. You look tired! Did you sleep?", "I moved.", "You look tired! Did you sleep?"),
        ("Bo: You moved! I stayed. Ana sings well. It rained.", "You moved! Ana sings well.", "I stayed. It rained."),
        ("Ana: Should I move? My cat sleeps.", "My cat sleeps.", ""),
        ("Bo: Where do you live?", "", ""),
        ("I like Ana's cat.", "", "I like Ana's cat."),
    ],
)  # fmt: skip
def test_sentences_are_attributed_by_teller_and_pronoun(text, about_ana, about_others):
    candidate = Candidate(passage=Passage(id="1", text=text), origin="given")
    assert split_by_person(candidate, "Ana") == (about_ana, about_others)
    assert split_by_person(candidate, "") == (text, "")


def test_only_the_best_memories_are_compared():
    texts = ["I own a boat.", *["It rained."] * READ, "I own a zeppelin."]
    found = [Candidate(passage=Passage(id=str(n), text=text), origin="given") for n, text in enumerate(texts)]
    boat, zeppelin = (
        measure_evidence(f"Do I own a {what}?", None, found, support="verifier") for what in ("boat", "zeppelin")
    )
    assert boat.known == 1.0
    assert zeppelin.known < 1.0
