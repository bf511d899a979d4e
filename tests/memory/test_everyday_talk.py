"""What people say in passing: each fact is kept, and a reaction is dropped only where nothing of substance is in it.

In the files each line is a statement: `+` for what should be recorded (or is a standing wish), `-` for what shouldn't.
They were written before the rules were widened; the lines at even places served for widening them, those at odd places
for measuring them, once.
"""

from datetime import date, timedelta
from pathlib import Path

import pytest

from meve.memory import Turn, record_turns
from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._write.relative_days import resolve_days

HERE = Path(__file__).parent
THURSDAY = date(2026, 2, 12)


def read_lines(name, mark=""):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


FACTS = """
We got a second-hand cargo bike from the Hendersons for 900 euros. | We got a dog from the shelter, Balu.
We will move to Utrecht in August. | We will have a baby in May! | We can't eat pork at home.
We can only meet on Tuesdays. | We got married in 2014. | We've got three kids. | We got divorced last year.
We should be done with the renovation by June. | We got a new boss called Ingrid. | I got this job in 2020.
We could only afford the small flat on Hill Street. | We got two cats, Mimi and Tiger.
I got it in writing that my rent stays at 900. | I'll stay at my mother's until Friday.
I'll keep the old car as a spare. | I'll try a low-carb diet from Monday. | I'm excited to start at Bosch on Monday.
Sorry for the late reply, I was in hospital with pneumonia. | Thanks to my new job I earn 4000 a month now.
Glad I quit smoking last year. | Sorry I'm late, my daughter Lily broke her arm.
I'm proud of my son Emil, he got into medical school. | I'm so glad I sold the house in Kiel.
I'm lucky, my landlord lowered the rent to 700. | I agree with my wife that we need a bigger car.
I believe you should know that I'm diabetic. | I think it's my gallbladder, the doctor wants to operate on 4 May.
I feel so tired since I started the new blood pressure tablets. | I can't wait for my trip to Japan in October.
I hope it's ok that I write late, I work until 10 pm. | I love this city, I've been in Porto for ten years.
I don't know if I told you that I have a twin brother. | I have to fetch Mia at 4 every day, talk to you later.
Do you know that I have a sister in Perth? | Did I mention that I'm colour-blind?
Let me tell you about my dog Bruno, he's a beagle. | Tell me something about Norway, I'm going there in May.
Write a cover letter for me; I'm a plumber with 12 years of experience. | Don't have a car any more.
Get my braces off on 3 May! | Open my shop at 8 every day. | Change my tyres every October.
I wish my sister lived closer, she's in Perth. | On Sundays the shop is closed. | On Mondays Mia has ballet.
Sorry, the baby was ill. | I'm happy to say that the adoption went through.
"""
NO_FACTS = """
thx | Danke! | https://example.org/a/b | git push origin main | Here's what my boss wrote: | ty! | k | np | brb
cheers | Guten Morgen! | Alles klar. | continue | talk later | have a nice weekend | bye for now | Here is the log:
Now do the same for table B. | Rename x to count. | here is my config: | [storage] | tests fail with:
thread 'wal::replay' panicked at src/wal.rs:131 | one more please | still the same error | nope, same result
the second one is better | I like the second version more. | I meant the other file. | Sounds good to me. | I'm back
I tried that already, no luck. | I'm so glad! | I can't wait! | Sorry about that. | We can do that later. | So cute!
My friend asks: can dogs eat grapes? | I'm lucky to have a friend like you. | It's tough, but we'll keep doing our best.
"""


def split(text):
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" | ")]


@pytest.mark.parametrize("text", split(FACTS))
def test_fact_behind_a_reaction_or_a_request_is_kept(text):
    assert extract_statements(text) == [text]


@pytest.mark.parametrize("text", split(NO_FACTS))
def test_reaction_or_announcement_without_substance_states_nothing(text):
    assert extract_statements(text) == []


@pytest.mark.parametrize(("half", "lost", "kept"), [(0, 0, 2), (1, 2, 3)])
def test_everyday_statements(half, lost, kept):
    facts, others = (read_lines("everyday_talk.txt", mark)[half::2] for mark in "+-")
    assert len([text for text in facts if not extract_statements(text)]) <= lost
    assert len([text for text in others if extract_statements(text)]) <= kept


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("here is my config:\n[storage]\nmemtable_mb = 16", []),
        ("tests fail with:\nrunning 42 tests\ntest wal::replay ... FAILED", []),
        ("I take these every day:\n- metformin\n- aspirin",
         ["I take these every day: metformin", "I take these every day: aspirin"]),
        ("My address is:\nHauptplatz 3\n\nMia is ill.", ["My address is: Hauptplatz 3", "Mia is ill."]),
        ("Back to badminton, the elbow is better. But on Saturdays now.",
         ["Back to badminton, the elbow is better. But on Saturdays now."]),
        ("Finished the Ferrante. On to a crime novel by Tana French.",
         ["Finished the Ferrante. On to a crime novel by Tana French."]),
        ("Ich habe am 12. März einen Termin beim Hautarzt.", ["Ich habe am 12. März einen Termin beim Hautarzt."]),
        ("I want dates as DD.MM.YYYY.", ["I want dates as DD.MM.YYYY."]),
        ("My appointment is on the 3. of May.", ["My appointment is on the 3. of May."]),
    ],
)  # fmt: skip
def test_what_belongs_together_is_one_statement(text, facts):
    assert extract_statements(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "worst month in a year", "No alcohol in two years.", "First holiday in two years.",
        "Coldest winter in ten years.", "No rain in a month.", "Not a day off in three weeks.",
        "I take two tablets in a day.", "Sales are down 20% in a month.", "Third flat tyre in a week.",
        "I'm the first woman in ten years to lead the team.", "So tired today.", "We fly to Malta a week on Friday.",
        "My favourite day is Friday.", "I play tennis on Sunday.", "The cleaner comes on Monday.",
    ],
)  # fmt: skip
def test_span_habit_and_exclamation_get_no_date(text):
    assert resolve_days(text, THURSDAY) == text


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("The exam is tomorrow week.", "The exam is on 20 February 2026."),
        ("We fly to Malta Friday week.", "We fly to Malta on 20 February 2026."),
        ("My mother comes on Sunday.", "My mother comes on 15 February 2026."),
        ("I fly on Sunday.", "I fly on 15 February 2026."),
        ("Dentist on Monday.", "Dentist on 16 February 2026."),
        ("I'm on holiday from Monday.", "I'm on holiday from 16 February 2026."),
        ("I have a dentist appointment Monday at 9.", "I have a dentist appointment on 16 February 2026 at 9."),
        ("The technician comes Thursday at 7.", "The technician comes on 19 February 2026 at 7."),
        ("I'm on call this weekend.", "I'm on call on the weekend of 14 February 2026."),
        ("My parents visit next weekend.", "My parents visit on the weekend of 21 February 2026."),
        ("We moved last weekend.", "We moved on the weekend of 7 February 2026."),
        ("The kitchen arrives in a fortnight.", "The kitchen arrives in the week of 23 February 2026."),
        ("My lease ends in half a year.", "My lease ends in August 2026."),
        ("I've got a migraine since this morning.", "I've got a migraine since the morning of 12 February 2026."),
    ],
)
def test_what_lies_ahead_or_behind_gets_its_date(text, dated):
    assert resolve_days(text, THURSDAY) == dated


@pytest.mark.parametrize(
    ("spoken", "saturday"), [(date(2026, 2, 13), 14), (date(2026, 2, 14), 14), (date(2026, 2, 15), 14)]
)
def test_this_weekend_is_the_one_that_comes_or_lasts(spoken, saturday):
    dated = f"I'm away on the weekend of {saturday} February 2026."
    assert resolve_days("I'm away this weekend.", spoken) == dated


@pytest.mark.parametrize(("half", "wrong"), [(0, 1), (1, 1)])
def test_everyday_days(half, wrong):
    rows = [line.split(" | ") for line in read_lines("everyday_days.txt")[half::2]]
    assert (
        len([text for text, want in rows if resolve_days(text, THURSDAY) != (text if want == "=" else want)]) <= wrong
    )


WISHES = """
Please write emails to suppliers in German and formal. | Please use British spelling. | Address me formally.
Explain things as if I were twelve. | Explain technical terms to me, I'm a beginner. | For code, use 4 spaces.
I'm not a morning person, please don't suggest meetings before ten. | When I send code, only send back the diff.
I'd prefer bullet points. | My answers should come without markdown. | Ask me before you order anything.
Remember: I want dates as DD.MM.YYYY.
"""


@pytest.mark.parametrize("text", split(WISHES))
def test_wish_of_everyday_talk_becomes_an_instruction(memory, text):
    turn = Turn(id="m1", speaker="user", text=text)
    [record] = record_turns(memory, [turn], user_id="ann", session_id="s").added
    assert record.policy_class == "instruction"


@pytest.mark.parametrize(("half", "missed"), [(0, 1), (1, 2)])
def test_everyday_wishes(half, missed):
    wishes, others = (read_lines("everyday_wishes.txt", mark)[half::2] for mark in "+-")
    assert len([text for text in wishes if not is_standing_wish(text)]) <= missed
    assert [text for text in others if is_standing_wish(text)] == []


def tell(memory, clock, *texts, source="chat_user"):
    for text in texts:
        memory.add(text, user_id="ann", id=text, source=source)
        clock.advance(timedelta(days=1))
    memory.maintain(user_id="ann")
    return [each.id for each in memory.list(user_id="ann", include_superseded=True) if each.is_closed]


CHANGES = [line.split(" => ") for line in read_lines("everyday_wishes.txt") if "=>" in line]


@pytest.mark.parametrize(
    ("wish", "end"),
    [
        ("Always answer in German.", "You don't have to answer in German any more."),
        ("Don't use emojis.", "Emojis are fine now."),
        ("Give me tables whenever I ask for numbers.", "No tables any more please."),
        ("Keep your answers short.", "Longer answers are fine again."),
        *CHANGES[:12],
    ],
)
def test_user_ends_a_wish_and_can_have_it_back(memory, clock, wish, end):
    assert tell(memory, clock, wish, end) == [wish]
    memory.restore(wish, user_id="ann")
    assert wish in [each.id for each in memory.list(user_id="ann")]


@pytest.mark.parametrize(
    ("wish", "other"),
    [
        ("Always answer in German.", "Please keep your answers short from now on."),
        ("Call me Han.", "From now on answer in English."),
        ("My boss is Ingrid.", "Write formally from now on, Ingrid reads along."),
        *CHANGES[12:],
    ],
)
def test_wish_about_something_else_ends_nothing(memory, clock, wish, other):
    assert tell(memory, clock, wish, other) == []


@pytest.mark.parametrize("source", ["doc", "api_result", "chat_assistant"])
def test_document_or_tool_neither_creates_nor_ends_a_wish(memory, clock, source):
    wish, end = "Always answer in German.", "You don't have to answer in German any more."
    tell(memory, clock, wish)
    assert tell(memory, clock, end, "Emojis are fine now.", source=source) == []
    assert [each.id for each in memory.list(user_id="ann") if each.policy_class == "instruction"] == [wish]
