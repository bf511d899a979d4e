"""Questions about the user prefer what the user told, those about what the assistant said the assistant's turns."""

from datetime import UTC, datetime

import pytest

from meve.memory import Policy
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.scoring import PolicyScorer
from meve.memory._recall.tellers import find_teller
from meve.memory.records import MemoryRecord
from meve.types import Candidate, Query

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which puppy did I adopt?", "chat_user"),
        ("Which breed did you recommend to me?", "chat_assistant"),
        ("What did we say in our previous chat?", "chat_assistant"),
        ("Can you recommend a breed to me?", "chat_user"),
        ("Which breed is best?", ""),
        ("What was your advice on my CV?", "chat_assistant"),
        ("Remind me of the hotel you found for me.", "chat_assistant"),
        ("Which book was recommended to me?", "chat_assistant"),
        ("What did the bot tell me?", "chat_assistant"),
        ("Have you got my address?", "chat_user"),
    ],
)
def test_teller_is_who_the_question_is_about(question, expected):
    assert find_teller(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where do I keep the key?", {"chat_user": 0, "doc": 0, "chat_assistant": -0.105}),
        ("Where did you say the key is?", {"chat_user": 0, "doc": 0, "chat_assistant": 0.105}),
        ("Where is the key?", {"chat_user": 0, "doc": 0, "chat_assistant": 0}),
    ],
)
def test_only_what_the_assistant_said_changes_its_score_by_whom_the_question_is_about(question, expected):
    candidates = [make_candidate(source) for source in expected]
    off = Policy.from_dict({"relevance": {"teller": 0}})
    with_teller, without = (
        PolicyScorer(policy=policy, now=NOW).score(Query(text=question), candidates) for policy in (Policy(), off)
    )
    assert (with_teller - without).tolist() == pytest.approx(list(expected.values()))


def make_candidate(source):
    record = MemoryRecord(
        id=source, user_id="ann", text="The key is here.", source=source, policy_class="factual", created_at=NOW,
        expires_at=None,
    )  # fmt: skip
    passage = MemoryPassage(id=source, text=record.text, record=record)
    return Candidate(passage=passage, origin="memory", scores={"relevance": 0.5})
