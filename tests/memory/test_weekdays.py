"""Weekdays without "next": the next such day in what is ahead, and a habit in what is told of every week."""

from datetime import date

import pytest

from meve.memory import Turn, record_turns
from meve.memory._write.relative_days import resolve_days

WEDNESDAY = date(2026, 5, 6)


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("I have a training in Vienna on Friday.", "I have a training in Vienna on 8 May 2026."),
        ("Remind me to call the dentist on Thursday, please.", "Remind me to call the dentist on 7 May 2026, please."),
        ("I'm in Munich until Thursday.", "I'm in Munich until 7 May 2026."),
        ("I'm in Munich for a conference until Thursday.", "I'm in Munich for a conference until 7 May 2026."),
        ("I've been a vegetarian since this week.", "I've been a vegetarian since the week of 4 May 2026."),
        ("Remind me to buy flowers for Hanna on Saturday.", "Remind me to buy flowers for Hanna on 9 May 2026."),
        ("My sister is coming on Sunday.", "My sister is coming on 10 May 2026."),
        ("On Monday I will start my new job.", "On 11 May 2026 I will start my new job."),
        ("We're flying to Rome on Tuesday morning.", "We're flying to Rome on the morning of 12 May 2026."),
        ("I'm going to see the doctor on Wednesday.", "I'm going to see the doctor on 13 May 2026."),
        ("The exam is on Friday.", "The exam is on 8 May 2026."),
        ("My appointment is on Monday at 9.", "My appointment is on 11 May 2026 at 9."),
        ("I'll be away from Friday.", "I'll be away from 8 May 2026."),
        ("I have to hand in the thesis by Monday.", "I have to hand in the thesis by 11 May 2026."),
        ("I need the car until Sunday.", "I need the car until 10 May 2026."),
        ("Don't forget that the plumber comes on Friday.", "Don't forget that the plumber comes on 8 May 2026."),
        ("Our wedding is on Saturday.", "Our wedding is on 9 May 2026."),
        ("I must pay the rent before Friday.", "I must pay the rent before 8 May 2026."),
        ("Hanna's parents will visit us on Sunday.", "Hanna's parents will visit us on 10 May 2026."),
        ("I want to go to the lake on Saturday.", "I want to go to the lake on 9 May 2026."),
        ("I've got my first organ lesson on Tuesday.", "I've got my first organ lesson on 12 May 2026."),
        ("I have a lesson on Tuesday.", "I have a lesson on 12 May 2026."),
        ("She's got a dentist appointment on Tuesday.", "She's got a dentist appointment on 12 May 2026."),
        ("We've got a viewing on Saturday at 3.", "We've got a viewing on 9 May 2026 at 3."),
        ("We got a dog on Tuesday.", "We got a dog on 5 May 2026."),
        ("I have a job interview this Friday.", "I have a job interview on 8 May 2026."),
        (
            "I have a dentist's appointment on Tuesday at 3 pm.",
            "I have a dentist's appointment on 12 May 2026 at 3 pm.",
        ),
        ("I've been eating vegan since Monday.", "I've been eating vegan since 4 May 2026."),
        ("I have a day off on Friday.", "I have a day off on 8 May 2026."),
        ("My mother-in-law is staying with us until Monday.", "My mother-in-law is staying with us until 11 May 2026."),
        ("I'll call the bank on Friday.", "I'll call the bank on 8 May 2026."),
        ("Don't let me forget to feed the cat on Sunday.", "Don't let me forget to feed the cat on 10 May 2026."),
        ("I need to be in Linz by Saturday evening.", "I need to be in Linz by the evening of 9 May 2026."),
        ("The wedding of my cousin is on Saturday.", "The wedding of my cousin is on 9 May 2026."),
        ("I hope to finish it before Sunday.", "I hope to finish it before 10 May 2026."),
        ("My flight to Oslo leaves on Monday at 7.", "My flight to Oslo leaves on 11 May 2026 at 7."),
        ("My son's birthday party is on Sunday.", "My son's birthday party is on 10 May 2026."),
        ("It's been raining since Sunday.", "It's been raining since 3 May 2026."),
        ("I'd like to go to the lake on Saturday.", "I'd like to go to the lake on 9 May 2026."),
        ("My brother is in Rome until Friday.", "My brother is in Rome until 8 May 2026."),
        ("I'm back at work on Monday.", "I'm back at work on 11 May 2026."),
        ("We're away on Saturday.", "We're away on 9 May 2026."),
        ("I met Ann on Friday.", "I met Ann on 1 May 2026."),
        ("I was in Linz on Monday.", "I was in Linz on 4 May 2026."),
        ("We saw a film on Tuesday.", "We saw a film on 5 May 2026."),
        ("I had my stitches out on Wednesday.", "I had my stitches out on 29 April 2026."),
        ("My sister came over on Sunday evening.", "My sister came over on the evening of 3 May 2026."),
        ("We had lunch at my sister's on Sunday.", "We had lunch at my sister's on 3 May 2026."),
        ("I met Carla last Saturday.", "I met Carla on 2 May 2026."),
        ("My exam is next Tuesday.", "My exam is on 12 May 2026."),
        ("Remember that I'm fasting until Friday.", "Remember that I'm fasting until 8 May 2026."),
    ],
)
def test_one_day_becomes_a_date(text, dated):
    assert resolve_days(text, WEDNESDAY) == dated


@pytest.mark.parametrize(
    "text",
    [
        "I go swimming on Fridays.",
        "I work on Friday evenings.",
        "I have a lesson every Tuesday.",
        "I have lessons on Tuesdays.",
        "I've got choir on Tuesday.",
        "I go running every Tuesday and Thursday.",
        "Remind me to water the lemon tree every Sunday.",
        "We rehearse on Thursdays now.",
        "I usually cook on Sunday.",
        "On Monday I always go to the gym.",
        "I never work on Friday.",
        "The shop is closed on Sunday.",
        "I go to the choir on Monday and I play chess on Tuesday.",
        "I was born on a Friday.",
        "Last summer we hiked in Norway, and on Monday we saw a moose.",
        "When I was at school we went to the pool on Friday.",
        "I booked a table on Friday.",
        "The bakery is closed on Monday and opened in 1990.",
        "I was supposed to see Ann on Friday.",
        "I'm tired on Monday.",
        "We got married on Friday, 4 May 2018.",
        "I have yoga on Monday.",
        "If it rains on Friday, I'll stay at home.",
        "Mia has swimming lessons on Monday.",
        "I'm flying to Rome on Friday 22 May.",
        "I'm flying to Rome on Friday, 22 May 2026.",
        "I'm flying to Rome next Friday, 22 May.",
        "My exam is on Friday the 22nd.",
        "My exam is on Friday, May 22.",
        "My favourite song is Friday on My Mind.",
        "I read on Sunday that the bank will close.",
        "I do the laundry on Saturday.",
        "I get my hair cut on Thursday.",
        "My kids are with their dad from Friday to Sunday.",
        "I'm off work since Monday.",
        "I'm usually at home on Monday.",
        "The bus doesn't run on Sunday.",
        "I teach on Monday and Wednesday.",
        "I'm learning to swim on Mondays.",
        "I hate Mondays, and on Friday I'm happy.",
        "My yoga training is on Monday evening.",
        "Choir training is on Thursday at six.",
        "My son has training on Monday.",
        "I don't like to work on Monday.",
        "The shop is open until Saturday.",
    ],
)
def test_habit_and_what_is_ambiguous_stay(text):
    assert resolve_days(text, WEDNESDAY) == text


def test_reminder_is_recorded_with_its_date(memory):
    turn = Turn(
        id="m", speaker="user", text="Remind me to call the dentist on Thursday, please.", time=date(2026, 4, 29)
    )
    [record] = record_turns(memory, [turn], user_id="ann", session_id="s").added
    assert record.text == "Remind me to call the dentist on 30 April 2026, please."


@pytest.mark.parametrize("dated", ["Sunday 13 December", "Sunday, 13th December", "Sunday the 13th"])
def test_weekday_that_the_turn_dates_elsewhere_is_not_the_next_one(dated):
    turn = f"The party is on {dated}. I'll pick him up on Sunday. I have a training on Friday."
    parts = "I'll pick him up on Sunday.", "I have a training on Friday."
    later = [resolve_days(text, WEDNESDAY, turn) for text in parts]
    assert later == ["I'll pick him up on Sunday.", "I have a training on 8 May 2026."]
    assert resolve_days("I'll pick him up on Sunday.", WEDNESDAY) == "I'll pick him up on 10 May 2026."


def test_recorded_turn_gives_no_other_date_than_it_names(memory):
    text = "We moved it to Sunday 13 December. The cake comes on Sunday."
    turn = Turn(id="t", speaker="user", text=text)
    report = record_turns(memory, [turn], user_id="dora", session_id="s")
    recorded = " ".join(record.text for record in memory.list(user_id="dora"))
    assert report.added
    assert "cake comes on Sunday" in recorded
    assert "May" not in recorded
