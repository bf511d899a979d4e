"""What users paste is never their own word: letters, mails, chats, and texts that they want worked on.

In the two files each line is a turn, `|` a line break, and what stands in ⟦ ⟧ is pasted.
"""

import re
from pathlib import Path

import pytest

from meve.memory import Turn, record_turns
from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._classify.pasted_text import remove_pasted_text

HERE = Path(__file__).parent
NURSE = "I work as a nurse."


def read_messages(name):
    return [line.replace("|", "\n") for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def test_a_pasted_letter_closes_nothing_that_the_user_said(memory):
    own = ["My name is Alice.", "I live in Graz.", "I work as a physiotherapist."]
    for text in own:
        memory.add(text, user_id="a")
    pasted = [
        "Is this cover letter ok?\n\nDear Ms Smith,\nmy name is Ben Carter and I live in Leeds. I now work as a "
        "welder.\nYours, Ben Carter",
        "Can you translate this?\n\nHi Tom, I moved to Berlin last month. I quit my job as a baker. Love, Sarah",
    ]
    turns = [Turn(id=f"p{n}", speaker="user", text=text) for n, text in enumerate(pasted)]
    assert record_turns(memory, turns, user_id="a", session_id="s").added == ()
    memory.maintain()
    assert sorted(record.text for record in memory.list(user_id="a")) == sorted(own)


def test_ordinary_messages_lose_nothing():
    messages = read_messages("ordinary_messages.txt")
    assert len(messages) >= 110
    assert [text for text in messages if remove_pasted_text(text) != text] == []


def test_pasted_messages_leave_only_what_stands_outside():
    """Fourteen of 110 are known to be read wrongly, most of them since the text may be the user's own."""
    messages = read_messages("pasted_messages.txt")
    assert len(messages) >= 110
    wrong = []
    for message in messages:
        outside = [each for part in re.split("⟦.*?⟧", message, flags=re.DOTALL) for each in extract_statements(part)]
        found = extract_statements(message.replace("⟦", "").replace("⟧", ""))
        if found != [each for each in outside if not each.endswith((":", "this."))]:
            wrong.append(found)
    assert len(wrong) <= 14, wrong


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("My sister wrote:\nI moved to Berlin.\n\nI live in Graz.", "I live in Graz."),
        ("Translate this: I live in Rome.\n\nI live in Graz.", "I live in Graz."),
        (
            "Can you translate this?\nIch wohne in Rom.\n\nBy the way, I'm allergic to nuts.",
            "By the way, I'm allergic to nuts.",
        ),
        (
            "Can you translate this?\n\nI moved to Rome.\n\nI have a dog.\n\nBTW I'm allergic to nuts.",
            "BTW I'm allergic to nuts.",
        ),
        (
            "Can you translate this?\n\nI moved to Rome.\n\nCan you hurry? I have a meeting at noon.",
            "I have a meeting at noon.",
        ),
    ],
)
def test_what_follows_an_unsigned_block_is_kept(text, own):
    assert extract_statements(text) == [own]


LETTER = "Hi Tom, I moved to Berlin. I am ill. Love, Sarah"


@pytest.mark.parametrize(
    "text",
    [
        f"{NURSE} Can you translate this?\n\n{LETTER}", f"My sister wrote:\n\n{LETTER}\n\n{NURSE}",
        f"Does this sound right?\n\n{LETTER}\n\n{NURSE}", f"{LETTER}\n\n{NURSE} How should I reply?",
        f"{NURSE} Summarise this: I live in Rome.\nI have a dog.",
        f"{NURSE}\n\n[10:02] Tom: I am ill\n[10:03] Eva: I am too",
        f"What does this mean?\n```\nx = 1\n```\n{NURSE}", f"Here is what I get:\nERROR my pump failed\n\n{NURSE}",
    ],
)  # fmt: skip
def test_facts_outside_the_block_are_kept(text):
    assert extract_statements(text) == [NURSE]


@pytest.mark.parametrize(
    "text", ["Hi Claude,\n\nI work as a nurse.\n\nBest, Ann", "Hi!\nI work as a nurse.\n\nThanks,\nAnn"]
)
def test_a_signed_message_to_the_assistant_is_kept(text):
    assert NURSE in extract_statements(text)
