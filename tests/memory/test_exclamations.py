"""Exclamations, sayings, wishes for luck and moods are no facts; a fact in the same words is one."""

import pytest

from meve.memory._classify.fact_extraction import extract_statements

SAID = """
Never a dull moment. | wish me luck | Fingers crossed! | Fingers crossed it's cheaper. | Story of my life. | Bastards.
God help us. | All good in the end though. | Getting old sucks. | Best 80 bucks I ever spent. | Feels bad tbh
Bummed about it. | I'm worried. | So relieved. | The kids are thrilled. | Insurance is such a headache.
I don't really want to talk about it. | Sorry, it's late and I'm rambling. | Hey there, first time using this thing.
Been needing one. | Ugh, story of my life, haha. | Knock on wood. | Worst week ever. | Rookie mistake. | Absolute chaos.
I couldn't agree more. | Looking forward to it. | I need a nap. | One of those days. | Long overdue. | Rude.
Drück mir die Daumen! | Gott sei Dank. | So ist das Leben. | So ein Mist!
"""
TOLD = """
Fingers crossed for my viva on Friday. | Best man at the wedding is my cousin Ravi. | I'm excited about moving to Bonn.
I'm worried about my dad's heart. | Thank God, the biopsy was clean. | Just my luck, the Corolla broke down.
I'm dying. | The kids are vegan. | Worst allergy I have is to cats. | Left-handed. | Pregnant! | Recovering alcoholic.
I need a wheelchair. | My heart is weak. | My feet are bleeding. | I can't stop crying. | I'm depressed. | Brain tumour.
Never eaten meat. | No regrets about leaving Siemens. | Life is good here in Bergen. | I'm done with dairy.
The deal with Bosch is done. | The party is on Saturday. | I really don't want to talk about my divorce.
Problem with my kidneys. | Men's choir on Mondays. | We win most of our league games. | Back in therapy.
I can hear again with the implant. | Fingers crossed it's benign. | Fingers crossed she's pregnant. | Ow, my back.
Fingers crossed they hire me. | I'm heartbroken. | We're worried about her. | He's nervous. | Losing Dad sucks.
Fighting cancer sucks. | Working nights sucks. | Chemo is such a nightmare. | My mother is such a pain. | My heart.
Best boss I ever had. | Worst migraine in ages. | Most important person of my life. | I'm dying inside.
The struggles of dyslexia. | The perks of retirement. | Talk about premature birth. | Back to normal.
"""


def read(texts):
    return [text.strip() for line in texts.strip().splitlines() for text in line.split(" | ")]


@pytest.mark.parametrize("text", read(SAID))
def test_exclamation_is_no_fact(text):
    assert extract_statements(text) == []
    assert extract_statements(f"We bought a house. {text}") == ["We bought a house."]


@pytest.mark.parametrize("text", read(TOLD))
def test_fact_in_words_of_exclamations_is_kept(text):
    assert extract_statements(text) == [text]


def test_fact_behind_an_exclamation_is_kept():
    assert extract_statements("Never a dull moment! We're having twins.") == ["We're having twins."]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My son broke his arm. Poor thing! He's in hospital.", ["My son broke his arm. He's in hospital."]),
        ("I got the job! I'm over the moon. It starts in May.", ["I got the job! It starts in May."]),
        ("Fingers crossed! It starts in May.", ["It starts in May."]),
        ("I got the job! Do you like it? It starts in May.", ["I got the job!", "It starts in May."]),
    ],
)
def test_what_an_exclamation_interrupts_stays_together(text, facts):
    assert extract_statements(text) == facts
