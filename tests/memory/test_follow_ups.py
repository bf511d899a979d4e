"""A sentence that tells more of the same person is a fact of its own, which stays when the first one ends.

One that only comments on the first ends with it.
"""

from datetime import timedelta
from functools import partial

import pytest

from meve.memory import GovernedMemory, TrainedUpdateJudge, Turn, record_turns
from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._contradiction.comments import without_comments
from meve.testing.fakes import FakeClock


@pytest.mark.parametrize(
    ("first", "further", "named"),
    [
        ("My sister Tonya lives in Akron.", "She's a nurse.", "My sister Tonya is a nurse."),
        ("My husband Reggie cooks at a diner.", "He works nights.", "My husband Reggie works nights."),
        ("My grandson volunteers at the zoo.", "He'll start college in May.", "My grandson will start college in May."),
        ("My sister is a teacher.", "She's never liked dogs.", "My sister's never liked dogs."),
        ("My wife works at the library.", "Her mother is Greek.", "My wife's mother is Greek."),
        ("Our dentist is Dr. Hale.", "She speaks Dutch.", "Dr. Hale speaks Dutch."),
        ("Our dog Biscuit eats kibble.", "He's a beagle mix.", "Our dog Biscuit is a beagle mix."),
        ("My car is an Opel Astra.", "It's due for inspection in May.", "My car is due for inspection in May."),
        ("My aunt Vera smokes.", "She lives in Leeds.", "My aunt Vera lives in Leeds."),
        ("My friend Aisha drives a Mini.", "She lives in Leeds.", "My friend Aisha lives in Leeds."),
        ("My laptop has 8 GB of RAM.", "It belongs to my employer.", "My laptop belongs to my employer."),
        ("My colleague Priya sits next to me.", "She's on insulin.", "My colleague Priya is on insulin."),
    ],
)
def test_who_is_certainly_meant_is_named(first, further, named):
    assert extract_statements(f"{first} {further}") == [first, named]


@pytest.mark.parametrize(
    "text",
    [
        "My sister lives with our mother. She's ill.",
        "My sister is a nurse in my mother's ward. She's ill.",
        "My boss works with Anna. She's a cook.",
        "My sister lives with her husband Bo. She's ill.",
        "My dog chased a boy. He was crying.",
        "My wife visits her brother. He's ill.",
        "My brother Paul and I run a bar. He does the books.",
        "My house has a garden. It measures 40 square metres.",
        "I have a dog. He is called Rex.",
        "My goal is to get 40 people involved. It keeps my week of 2 May full.",
        "I drive to work. It's in Leith.",
        "My boss is strict. He and I meet on Mondays.",
        "My boss is Karin. She has twins.",
        "My wife plays tennis. Her partner is Al.",
        "My dad collects stamps. His oldest is from 1860.",
        "My boss is German. He's from Bonn.",
        "My Dutch boss hates me. He's 40.",
        "My dog likes the mailman. He's old.",
        "My brother works for a plumber. He drinks too much.",
        "My brother dates a Swede. He's a crook.",
        "My sister is a fan of an author. She wrote ten books.",
        "My mother claims that she's ill. She has cancer.",
        "My wife is a teacher. She had a student. She died.",
        "My wife is a teacher. Her mother is Greek. She's 80.",
        "My friend Robin is a drummer. She's a twin. He's a singer.",
        "My boss is at the dentist. He drinks.",
        "My twins go to school. She's in year 3.",
        "My husband works at Bosch. He's been there for 6 years.",
        "My sister used to smoke. She stopped in May.",
        "My sister eats meat. She never did.",
        "My brother is in Rome until Friday. He's at a congress.",
        "My project uses Python. It's at version 3.8.",
        "My car is a wreck. It cost me 200 euros.",
        "My laptop is a gift from a company. It has 90 staff.",
    ],
)
def test_who_may_be_somebody_else_is_not_named(text):
    assert extract_statements(text) == [text]


def test_nobody_is_named_after_a_sentence_that_may_speak_of_others():
    told = "My sister lives with our mother. She's ill. She likes tea."
    assert extract_statements(told) == [told]


@pytest.fixture
def remember(tmp_path):
    return partial(run, tmp_path / "memory.db")


def run(file, first, newer):
    """Return what holds after a turn, a week, another turn and maintenance."""
    clock = FakeClock()
    with GovernedMemory.open(file, clock=clock) as memory:
        for text in (first, newer):
            record_turns(memory, [Turn(speaker="user", text=text)], user_id="u", session_id=text[:9])
            clock.advance(timedelta(days=7))
        memory.maintain(user_id="u")
        return [record.text for record in memory.list(user_id="u")]


@pytest.mark.parametrize(
    ("first", "newer", "kept"),
    [
        ("My husband Karl works nights. He's coeliac.", "Karl works days now.", "My husband Karl is coeliac."),
        ("My dog Bruno weighs 30 kilos. He takes thyroid pills.", "Bruno is down to 26 kilos.",
         "My dog Bruno takes thyroid pills."),
        ("My laptop has 8 GB of RAM. It belongs to my employer.", "My laptop has 16 GB of RAM now.",
         "My laptop belongs to my employer."),
    ],
)  # fmt: skip
def test_second_fact_stays_when_the_first_ends(remember, first, newer, kept):
    assert remember(first, newer) == [kept, newer]


def test_sentences_told_again_confirm_both_memories(tmp_path):
    told = [Turn(speaker="user", text="My sister Tonya lives in Akron. She's a nurse.")]
    with GovernedMemory.open(tmp_path / "memory.db") as memory:
        first, again = (record_turns(memory, told, user_id="u", session_id=session) for session in ("a", "b"))
        assert again.added == ()
        assert again.confirmed == tuple(record.id for record in first.added)
        assert len(first.added) == 2
        memory.delete(first.added[0].id, user_id="u")
        assert [record.text for record in memory.list(user_id="u")] == ["My sister Tonya is a nurse."]


COMMENTED = [
    ("I go climbing on Thursdays with Felix. It's good for my head.", "I do yoga on Thursdays instead of climbing."),
    ("I drink two cups of coffee in the morning. That wakes me up.", "I've quit coffee."),
    ("I work from home on Wednesdays. It saves me two hours.", "I'm back in the office on Wednesdays."),
]


@pytest.mark.parametrize(("older", "newer"), COMMENTED)
def test_comment_ends_with_what_it_comments_on(remember, older, newer):
    assert remember(older, newer) == [newer]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I bike to campus. Except when it's icy, then I suffer.", "I bike to campus."),
        ("I rent a room. It's loud but cheap. It's near Paul.", "I rent a room. It's near Paul."),
        ("I take the train. It's hard since my wife is ill.", "I take the train. It's hard since my wife is ill."),
        ("I smoke. It's harder than I thought.", "I smoke."),
        ("I flat-share. It's great value, I know.", "I flat-share."),
        ("I do yoga. It really helps me relax.", "I do yoga."),
        ("I rent a cabin. It belongs to my uncle.", "I rent a cabin. It belongs to my uncle."),
        ("It's good for my head.", "It's good for my head."),
    ],
)
def test_comment_tells_no_fact_of_its_own(text, told):
    assert without_comments(text) == told


@pytest.mark.parametrize(
    "further",
    [
        "It gives me migraines.", "It keeps me sober.", "It costs me 900 a month.", "It gets my mother to dialysis.",
        "It's really hard since the stroke.", "It's dangerous because of the peanuts.", "It's bad for the kidneys.",
        "It's a big house with a garden.", "It's cheap, only 300 euros.", "It's a horrible disease.",
        "It's early, at 5.", "It was easier when dad was alive.", "They're tiny, only two weeks old.",
        "They were bad at maths.",
        "It calms my autistic son.", "It's lonely after the divorce.", "It's great, and there is a pool.",
        "Except for shellfish, which I can't eat.", "Except for my brother Al, who is a vet.",
        "Except on Fridays, then I swim.",
    ],
)  # fmt: skip
def test_comment_with_a_fact_is_none(further):
    assert without_comments(f"I do this. {further}") == f"I do this. {further}"


def test_comment_of_the_newer_statement_counts():
    judge = TrainedUpdateJudge()
    assert judge.judge("I drink coffee. It's good for my head.", "I drink coffee.").relation == "different"


@pytest.mark.parametrize(
    "text",
    [
        "She sits next to me. Paul is new.", "I study art. I live in Rome.", "My mom is ill. I visit her on Sundays.",
    ],
)  # fmt: skip
def test_sentence_ends_after_a_word_that_is_an_abbreviation_elsewhere(text):
    assert len(extract_statements(text)) == 2


def test_what_begins_with_a_contracted_pronoun_stands_with_the_sentence_before():
    assert len(extract_statements("I have to book flights home. They're cheaper on Tuesdays.")) == 1


NO_ENDS = [
    ("Our dog Biscuit is a beagle mix and he's eight.", "Biscuit got into the trash and barfed chicken everywhere."),
    ("My husband Reggie is a line cook at a diner downtown.",
     "Reggie switched to the breakfast shift, so he's home for dinner these days."),
    ("My neighbour Frank keeps our spare key.", "Frank retired."),
    ("We rehearse on Sunday evenings in a basement near the station.",
     "We had to cut rehearsal short because the basement flooded a bit."),
    ("First seedlings are up in the greenhouse.", "The seeds sit in the fridge in a mason jar these days."),
    ("We haven't had a real vacation in forever.",
     "Outer Banks fell through, we're doing a cabin in the Smokies instead."),
    ("My uncle Pat is a widower.", "Pat retired."),
    ("My uncle Pat is a native speaker of Danish.", "Pat retired."),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer"), NO_ENDS)
def test_news_that_only_names_the_same_ends_nothing(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "different"


ENDS = [
    ("My husband Reggie is a line cook.", "Reggie retired."),
    ("My daughter Ida is a student.", "Ida dropped out of college."),
    ("I take ballet classes.", "I had to skip ballet for good."),
]


@pytest.mark.parametrize(("older", "newer"), ENDS)
def test_news_that_ends_what_somebody_is_or_does_replaces(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "replaces"
