"""A standing wish ends by what takes it back, and each wish of a turn is a record of its own."""

from datetime import timedelta

import pytest

from meve.memory import GovernedMemory, Turn, record_turns
from meve.memory._classify.wish_endings import read_ending
from meve.memory._contradiction.statements import parse_statement
from meve.memory._maintenance.nomination import find_related_pairs
from tests.memory.test_everyday_talk import read_lines, split

SHORT, FRENCH, DOI = (
    "Always keep your answers short.",
    "Always answer me in French.",
    "Always give me the DOI of a paper.",
)
BULLETS, DEGREES = "Always use bullet points.", "Please give me temperatures in Fahrenheit, never Celsius."
REASONED = "Please always answer me in French, I get enough English all day."


def tell(memory, clock, *turns):
    """Record turns on different days, maintain, and return the texts of the standing wishes."""
    for text in turns:
        day = clock.now().isoformat()
        record_turns(memory, [Turn(id="t", speaker="user", text=text)], user_id="ann", session_id=day)
        clock.advance(timedelta(days=1))
    memory.maintain()
    return [record.text for record in memory.search("tea", user_id="ann").standing]


ENDS = f"""
{SHORT} > You can give me longer answers now. | {SHORT} > You can write long answers again.
{SHORT} > Forget about the short answers. | {SHORT} > Stop keeping your answers short.
{SHORT} > You know what, you can give me longer answers now, Karen got me proper glasses.
{DEGREES} > You can quit with the Fahrenheit business. | {DEGREES} > You can use Celsius again.
{FRENCH} > You can drop the French. | {FRENCH} > English is fine again. | {REASONED} > You can answer in English again.
{DOI} > I don't need DOIs any more. | {DOI} > You don't need to give me DOIs any more.
{DOI} > No need to give me DOIs any more, I've got Zotero for that.
{BULLETS} > You can stop with the bullet points. | Never use tables. > Tables are fine again.
{SHORT} > hey there :) you can give me longer answers now | {FRENCH} > Hi all, you can drop the French.
Antworte immer kurz. > Du kannst wieder länger antworten.
"""


@pytest.mark.parametrize("case", split(ENDS))
def test_what_takes_a_wish_back_ends_it(memory, clock, case):
    wish, end = case.split(" > ")
    standing = tell(memory, clock, wish, end)
    closed = [r.text for r in memory.list(user_id="ann", include_superseded=True) if r.is_closed]
    assert (closed, wish in standing) == ([wish], False)


OTHERS = f"""
{DOI} > I don't need the car any more. | {FRENCH} > English is my second language again.
{SHORT} > You can drop by any time. | {SHORT} > Forget about the trip. | {FRENCH} > My French is fine again.
{DOI} > I don't need papers any more. | {SHORT} > I don't mind longer drives any more.
Always call me Ben. > No need to call me back. | {FRENCH} > The French restaurant is fine again.
"""


@pytest.mark.parametrize("case", split(OTHERS))
def test_fact_in_like_words_ends_no_wish_and_becomes_none(memory, clock, case):
    wish, fact = case.split(" > ")
    assert tell(memory, clock, wish, fact) == [wish]
    assert [r.policy_class for r in memory.list(user_id="ann") if r.text != wish] in ([], ["factual"])


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("You don't have to keep it short any more.", "Always give me long answers."),
        ("Longer answers are fine.", "Always answer in German."),
        ("You can answer in English again.", "Always answer in German and warn me about nuts."),
        ("You can answer in English again.", "Always answer in German with short sentences."),
        ("You can answer in English again.", "Always answer in German with links."),
        ("You can stop using emojis.", "Never use emojis."),
        ("Can you give me longer answers?", SHORT),
        ("You can make it longer.", SHORT),
        ("Forget the French, said Dad.", FRENCH),
        ("Stop using bullet points, my boss says.", BULLETS),
    ],
)
def test_wish_for_something_else_or_for_more_is_not_taken_back(text, wish):
    assert read_ending(text, wish) == ""


def test_reason_of_a_wish_is_no_part_of_it():
    assert read_ending("You can answer in English again.", REASONED) == "instead"
    assert read_ending("You can answer in English again.", "Please always answer me in French and English.") == ""


def test_each_wish_is_compared_with_the_ones_before_it(memory, clock):
    """They may share no word, and a memory has many that are nearer."""
    tell(memory, clock, FRENCH, "English is fine again.", "I live in Lyon.")
    records = memory.list(user_id="ann", include_superseded=True)
    [pair] = find_related_pairs(records, lambda record: parse_statement(record.text))
    assert set(pair) == {record.id for record in records if "Lyon" not in record.text}


@pytest.mark.parametrize(("half", "missed"), [(0, 0), (1, 1)])
def test_everyday_ends_of_wishes(half, missed):
    ends, others = (
        [line.split(" | ") for line in read_lines("everyday_wish_ends.txt", m)[half::2]] for m in ("+ ", "- ")
    )
    assert len([text for wish, text in ends if not read_ending(text, wish)]) <= missed
    assert [text for wish, text in others if read_ending(text, wish)] == []


@pytest.mark.parametrize("joined", ["And give", "Please give", "Give", "And please give"])
def test_second_wish_of_a_turn_is_a_record_of_its_own(memory, clock, joined):
    second = f"{joined} me temperatures in Fahrenheit."
    standing = tell(memory, clock, f"{SHORT} {second}")
    assert standing == [SHORT, second.removeprefix("And ").capitalize().replace("fahrenheit", "Fahrenheit")]
    assert tell(memory, clock, "No need to keep your answers short any more.") == standing[1:]


@pytest.mark.parametrize(
    "wish",
    ["For interview prep, please always use bullet points.", "When I ask for recipes, always leave out the nuts."],
)
def test_wish_with_a_condition_stands(memory, clock, wish):
    assert tell(memory, clock, wish) == [wish]


RELEASE = "No need to keep your answers short any more, I've got new glasses."


def test_end_that_says_no_more_stands_until_the_wish_is_closed_and_is_a_fact_then(memory, clock):
    record_turns(memory, [Turn(id="a", speaker="user", text=SHORT)], user_id="ann", session_id="s")
    clock.advance(timedelta(days=1))
    [end] = record_turns(memory, [Turn(id="b", speaker="user", text=RELEASE)], user_id="ann", session_id="s").added
    assert [r.text for r in memory.search("tea", user_id="ann").standing] == [SHORT, RELEASE]
    assert memory.maintain(dry_run=True).released == {"ann": [end.id]}
    assert memory.maintain().released == {"ann": [end.id]}
    assert memory.search("tea", user_id="ann").standing == ()
    assert [(r.text, r.policy_class, r.expires_at) for r in memory.list(user_id="ann")] == [
        (RELEASE, "factual", end.expires_at)
    ]
    [event] = [e for e in memory.audit.events(user_id="ann", record_id=end.id) if e.action == "update"]
    assert event.detail["rule"] == "release"
    memory.update(end.id, user_id="ann", policy_class="instruction")
    assert [r.text for r in memory.search("tea", user_id="ann").standing] == [RELEASE]
    assert memory.maintain().counts()["released"] == 0


def test_wish_that_is_restored_stands_again_without_what_ended_it(memory, clock):
    tell(memory, clock, SHORT, RELEASE)
    [wish] = [r for r in memory.list(user_id="ann", include_superseded=True) if r.is_closed]
    memory.restore(wish.id, user_id="ann")
    assert tell(memory, clock) == [SHORT]


@pytest.mark.parametrize("end", ["You can use Celsius again.", "You don't have to keep it short, prose is fine."])
def test_end_that_also_says_how_to_answer_keeps_standing(memory, clock, end):
    wish = "Always give me temperatures in Fahrenheit." if "Celsius" in end else "Always keep it short."
    assert tell(memory, clock, wish, end) == [end]


@pytest.mark.parametrize(
    ("end", "again"),
    [
        ("You can answer in English again.", "Please always answer me in French."),
        ("English is fine again.", "Please always answer me in French."),
        ("You can use Celsius again.", "Give me temperatures in Fahrenheit."),
        ("Longer answers are fine now.", "Please keep your answers short again."),
    ],
)
def test_what_was_allowed_ends_by_a_wish_for_its_opposite(memory, clock, end, again):
    others = ["You can use imperial units again.", "Always call me Ben."]
    assert tell(memory, clock, FRENCH, "Always give me temperatures in Fahrenheit.", SHORT) != []
    assert tell(memory, clock, end, *others, again)[-3:] == [*others, again]
    assert end not in tell(memory, clock)


def test_wish_ends_by_hand(memory, clock):
    tell(memory, clock, SHORT, FRENCH)
    short, french = memory.list(user_id="ann")
    memory.update(short.id, user_id="ann", policy_class="factual")
    memory.delete(french.id, user_id="ann")
    assert tell(memory, clock) == []
    assert [r.text for r in memory.list(user_id="ann")] == [SHORT]


def test_end_in_a_pasted_text_or_of_another_speaker_ends_nothing(file, clock):
    with GovernedMemory.open(file, clock=clock) as memory:
        tell(memory, clock, SHORT, f"What do you make of this page?\nOur garden is in Lyon.\n{RELEASE}")
        record_turns(memory, [Turn(id="x", speaker="assistant", text=RELEASE)], user_id="ann", session_id="s")
        assert tell(memory, clock) == [SHORT]


def test_user_ends_no_wish_of_another_user(memory, clock):
    memory.add(SHORT, user_id="bob")
    assert tell(memory, clock, "I don't need DOIs any more.") == []
    assert [r.text for r in memory.search("tea", user_id="bob").standing] == [SHORT]
