"""Memories told by the one whom a question is about come first."""

from datetime import UTC, datetime

import pytest

from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory.records import MemoryRecord
from meve.routing._tellers import prefer_teller
from meve.types import Candidate

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def make_candidate(text, source="chat_user"):
    record = MemoryRecord(
        id=text, user_id="ann", text=text, source=source, policy_class="factual", created_at=NOW, expires_at=None
    )
    return Candidate(passage=MemoryPassage(id=record.id, text=text, record=record), origin="memory", score=0.5)


def preferred(question, *candidates):
    return [c.passage.text for c in prefer_teller(question, candidates) if c.score > 0.5]


MARIA, JOHN = "Maria: I adopted a puppy.", "John: You adopted a puppy, great!"


def test_a_named_speaker_is_preferred():
    assert preferred("What did Maria adopt?", make_candidate(MARIA), make_candidate(JOHN)) == [MARIA]


@pytest.mark.parametrize("question", ["What did Maria and John adopt?", "Which pet was adopted?"])
def test_two_named_speakers_or_none_change_nothing(question):
    assert preferred(question, make_candidate(MARIA), make_candidate(JOHN)) == []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which puppy did I adopt?", ["I adopted a poodle."]),
        ("Which breed did you recommend to me?", ["A poodle suits you."]),
        ("What did we say in our previous chat?", ["A poodle suits you."]),
        ("Can you recommend a breed to me?", ["I adopted a poodle."]),
        ("Which breed is best?", []),
    ],
)
def test_the_user_or_the_assistant_is_preferred(question, expected):
    user = make_candidate("I adopted a poodle.")
    assistant = make_candidate("A poodle suits you.", "chat_assistant")
    assert preferred(question, user, assistant) == expected
