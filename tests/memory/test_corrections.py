"""A value that the user corrects ends, so does one that he tells anew, and a task that is done on whatever day."""

import pytest

from meve.memory import RuleUpdateJudge, TrainedUpdateJudge

CORRECTED = [
    ("My aunt turned 60.", "My aunt turned 61, not 60."),
    ("My aunt turned 60.", "Oh wait, she turned 61, not 60."),
    ("The iron test came back at 5.9.", "I was wrong about that iron test, it was 6.2."),
    ("The iron test on the north field came back at 5.9.", "I was wrong about that iron test, it was 6.2."),
    ("The blood test came back at 240.", "Scratch that, the blood test came back at 204."),
    ("My mother is 71.", "Correction: my mother is 72."),
]
CORRECTED_IN_OTHER_WORDS = [
    ("Nora is expecting in August.", "Nora is due in July, not August."),
    ("Jan's wife Nora is expecting in August.", "Turns out Nora's due in July, not August."),
]
OTHER_AMOUNTS = [
    ("I take two sugars in my tea.", "I take one sugar in my tea."),
    ("We keep eleven geese and two hens.", "We keep eleven geese and three hens."),
    ("Lars pays 140 an acre.", "Lars pays 155 an acre."),
    ("The tenants pay 12 dollars a bag.", "The tenants pay 15 dollars a bag."),
    ("Our cleaner charges 20 euros an hour.", "Our cleaner charges 25 euros an hour."),
]
DONE = [
    (
        "Remind me to call the co-op on 16 March 2026 about the heating oil.",
        "I called the co-op, the heating oil is coming on 20 March 2026.",
    ),
    ("I have to pick up the suit by 9 June 2026.", "I picked up the suit on 8 June 2026."),
    ("Remind me to pay the rent on Friday.", "I paid the rent this morning."),
    ("Remind me to submit the report by 4 May.", "Report submitted, phew."),
    ("I have to finish the report.", "I finally finished my report."),
]
NOT_CORRECTED = [
    ("Jan is due in August.", "Nora is due in July, not August."),
    ("Nora and Jan marry in August.", "Nora is due in July, not August."),
    ("Nora is expecting in August and Jan got a new job.", "Nora is due in July, not August."),
    ("My aunt turned 60 and I missed the party.", "My aunt turned 61, not 60."),
    ("My brother's exam is in March.", "My brother is due in May, not March."),
    ("I have yoga on Monday.", "I work on Tuesday, not Monday."),
    ("Ann turned 29.", "The shop turned 30, not 29."),
    ("I turned 29.", "She turned 30, not 29."),
    ("The blood test came back at 5.4.", "I was wrong about the urine test, it was 6.1."),
    ("The bus to Cork leaves at 7.", "I was wrong about the bus to Kerry, it leaves at 8."),
    ("My flight to Oslo leaves at 7.", "My flight to Bergen leaves at 8, not 7."),
    ("The piano lesson is on Tuesday.", "The cello lesson is on Wednesday, not Tuesday."),
]
TWO_THINGS = [
    ("I ran 5 km.", "I ran 7 km."),
    ("I bought two chairs.", "I bought four chairs."),
    ("I've bought two chairs.", "I've bought four chairs."),
    ("I put two eggs in the cake.", "I put three eggs in the cake."),
    ("I also take two pills.", "I also take three pills."),
    ("I teach class 5.", "I teach class 6."),
    ("I take bus 4 to work.", "I take bus 6 to work."),
    ("She pays 20 euros a week.", "She pays 30 euros a week."),
    ("The flat on floor 2 has two rooms.", "The flat on floor 3 has two rooms."),
    ("Ella has two rabbits.", "Bruno has three rabbits."),
]
NOT_DONE = [
    ("I have to call the bank about the loan.", "I called the bank about my card."),
    ("I have to finish the report for Jo.", "I finished the report for Kim."),
    ("Remind me to call Jan on Monday.", "Jan called me on Monday."),
    ("Remind me to call Jan.", "Jan called."),
    ("Remind me to call Mum about Easter.", "I called Mum, she has a cold."),
    ("I have to pay the rent by Friday.", "I haven't paid the rent."),
    ("I need to take two tablets on Friday.", "I took two tablets on Friday."),
    ("I have to call the dentist.", "The dentist called about the bill."),
    ("I have to call the dentist.", "Dentist called."),
    ("I have to call the plumber.", "The plumber is called Bob."),
    ("I need to pay the landlord.", "The landlord paid the plumber."),
    ("I need to book the hotel.", "The hotel booked us a taxi."),
    ("I have to finish the report.", "I finished the book."),
]
ONLY_NAMED = [
    ("My advisor is Rosa Vidal, she's kind but busy.", "Good news for once, Rosa extended my contract until July."),
    ("My advisor is Rosa Vidal.", "Rosa moved our meeting to Tuesday."),
]
RENAMED = [
    ("I play bass in a band called Wet Paint.", "We renamed the band, it's Loam now."),
    ("I work at a start-up called Zed.", "They renamed the company, it's Yod now."),
    ("I play bass in a band.", "We renamed the band Loam."),
]
SCRAPS = [
    ("The bottom land I still hay myself.", "Over my dead body."),
    ("The old barn I still paint myself.", "When pigs fly."),
]


@pytest.mark.parametrize(("older", "newer"), CORRECTED + OTHER_AMOUNTS + DONE)
@pytest.mark.parametrize("judge", [RuleUpdateJudge(), TrainedUpdateJudge()], ids=["rules", "trained"])
def test_what_is_corrected_told_anew_or_done_ends(judge, older, newer):
    assert judge.judge(older, newer).relation == "replaces"


@pytest.mark.parametrize(("older", "newer"), CORRECTED_IN_OTHER_WORDS)
def test_a_value_corrected_in_other_words_ends_if_the_model_agrees(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "replaces"


def test_name_ends_when_the_thing_is_renamed():
    assert TrainedUpdateJudge().judge("The band's name is Wet Paint.", "We renamed the band to Loam.").reason == "change"


@pytest.mark.parametrize(("older", "newer"), NOT_CORRECTED + TWO_THINGS + NOT_DONE + ONLY_NAMED + RENAMED + SCRAPS)
@pytest.mark.parametrize("judge", [RuleUpdateJudge(), TrainedUpdateJudge()], ids=["rules", "trained"])
def test_what_is_said_of_another_thing_ends_nothing(judge, older, newer):
    assert judge.judge(older, newer).relation == "different"
