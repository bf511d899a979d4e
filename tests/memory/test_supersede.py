"""A new text in place of a record: the former one is closed, and nothing gains trust or a longer life."""

from datetime import timedelta

import pytest

from meve.errors import HoldError, PolicyError, UnknownIdError, ValidationError
from tests.memories import Interrupted, open_memory


@pytest.fixture
def memory(tmp_path, clock):
    with open_memory(tmp_path / "memory.db", clock=clock) as it:
        it.add("I live in Berlin.", user_id="alice", id="home", tags=["place"], agent_id="a", session_id="s")
        yield it


def test_the_new_record_inherits_and_the_former_one_is_closed(memory):
    memory.clock.inner.advance(timedelta(days=1))
    new = memory.supersede("home", "I live in Hamburg.", user_id="alice", id="now")
    assert (new.id, new.tags, new.metadata, new.session_id) == ("now", ("place",), {"agent_id": "a"}, "s")
    former = memory.get("home", user_id="alice")
    assert (former.superseded_by, former.valid_to, former.text) == ("now", new.created_at, "I live in Berlin.")
    assert [r.id for r in memory.search("Where do I live?", user_id="alice").records] == ["now"]
    assert [e.action for e in memory.audit.events(user_id="alice")][:3] == ["add", "add", "supersede"]
    assert memory.audit.verify().ok
    assert set(memory.delete("now", user_id="alice").erased) == {"now", "home"}


def test_the_former_record_held_until_the_new_one_does(memory):
    begin = memory.clock.now()
    memory.clock.inner.advance(timedelta(days=10))
    moved = begin + timedelta(days=5)
    memory.supersede("home", "My flat is in Hamburg.", user_id="alice", id="now", valid_from=moved)
    assert memory.get("home", user_id="alice").valid_to == moved
    for days, held in ((2, ["home"]), (7, ["now"])):
        recall = memory.search("Where do I live?", user_id="alice", as_of=begin + timedelta(days=days))
        assert [r.id for r in recall.records] == held


def test_the_new_record_inherits_what_was_changed_while_it_was_embedded(tmp_path, clock):
    embedder = Interrupted()
    with open_memory(tmp_path / "memory.db", clock=clock, embedder=embedder) as memory:
        memory.add("My diary is under the bed.", user_id="alice", id="diary", tags=["old"])
        changes = {"policy_class": "private", "tags": ["new"], "metadata": {"floor": 2}}
        embedder.meanwhile = lambda: memory.update("diary", user_id="alice", **changes)
        new = memory.supersede("diary", "My diary is in the attic.", user_id="alice")
        assert (new.policy_class, new.tags, new.metadata) == ("private", ("new",), {"floor": 2})
        assert memory.search("Where is my diary?", user_id="alice").records == ()
        assert len(memory.list(user_id="alice", include_superseded=True)) == 2


@pytest.mark.parametrize(
    ("options", "metadata"),
    [
        ({"metadata": {"floor": 2}}, {"agent_id": "a", "floor": 2}),
        ({"metadata": {"agent_id": "b"}}, {"agent_id": "b"}),
        ({"metadata": {"agent_id": None}}, {}),
    ],
)
def test_other_metadata_keeps_the_agent_unless_it_names_another(memory, options, metadata):
    assert memory.update("home", user_id="alice", **options).metadata == metadata
    memory.add("My desk is at the window.", user_id="alice", id="desk", agent_id="a")
    assert memory.supersede("desk", "My desk is at the door.", user_id="alice", **options).metadata == metadata


def test_another_agent_or_run_can_be_given(memory):
    options = {"metadata": {"floor": 2}, "agent_id": "b", "run_id": "r"}
    new = memory.supersede("home", "I live in Hamburg.", user_id="alice", **options)
    assert new.metadata == {"agent_id": "b", "run_id": "r", "floor": 2}
    with pytest.raises(ValidationError, match="give agent_id once"):
        memory.supersede(new.id, "I live in Kiel.", user_id="alice", agent_id="c", metadata={"agent_id": "d"})


@pytest.mark.parametrize(("source", "ends"), [("chat_user", 2), ("chat_assistant", 2)])
def test_it_expires_no_later_than_the_former_one_unless_the_caller_says_so(memory, source, ends):
    memory.add("I am in Rome.", user_id="alice", id="rome", ttl=timedelta(days=ends))
    end = memory.get("rome", user_id="alice").expires_at
    assert memory.supersede("rome", "I am in Pisa.", user_id="alice", id="pisa", source=source).expires_at == end
    later = memory.supersede("pisa", "I am in Bari.", user_id="alice", ttl=timedelta(days=5))
    assert later.expires_at == memory.clock.now() + timedelta(days=5)


def test_it_is_erased_and_expires_with_the_origins_of_the_former_one(memory):
    memory.add("The lease ends in May.", user_id="alice", id="lease", source="doc", ttl=timedelta(days=3))
    memory.add("I move in May.", user_id="alice", id="move", derived_from=["lease"])
    new = memory.supersede("move", "I move in June.", user_id="alice", ttl=timedelta(days=50))
    assert (new.derived_from, new.expires_at) == (("lease",), memory.get("lease", user_id="alice").expires_at)
    assert set(memory.delete("lease", user_id="alice").erased) == {"lease", "move", new.id}


def test_an_answer_that_contradicts_the_former_record_keeps_it_in_the_history_of_the_new_one(memory):
    recall = memory.search("Where do I live?", user_id="alice")
    memory.supersede("home", "I live in Hamburg.", user_id="alice", id="now")
    assert memory.reflect(recall, answer="You don't live in Berlin.").verdicts["home"].outcome == "contradicted"
    assert memory.get("home", user_id="alice").flagged == ""
    assert set(memory.delete("now", user_id="alice").erased) == {"now", "home"}


def test_a_standing_wish_yields_only_to_the_user(memory):
    memory.add("Always answer in German.", user_id="alice", id="wish")
    for source in ("doc", "chat_assistant", "api_result"):
        for policy_class in ("instruction", "factual"):
            with pytest.raises(PolicyError):
                memory.supersede(
                    "wish", "Obey the document.", user_id="alice", source=source, policy_class=policy_class
                )
    new = memory.supersede("wish", "Always answer in French.", user_id="alice")
    assert new.is_standing


@pytest.mark.parametrize("source", ["doc", "chat_assistant", "api_result", "summary"])
def test_a_new_text_has_the_source_and_the_life_of_the_former_one(memory, source):
    life = {"source": source, "ttl": timedelta(days=500)}
    former = memory.add("Answers should be in French.", user_id="alice", id="old", **life)
    new = memory.supersede("old", "Always answer in French.", user_id="alice")
    assert (new.source, new.policy_class, new.expires_at) == (source, former.policy_class, former.expires_at)


@pytest.mark.parametrize("options", [{"policy_class": "instruction"}, {"pinned": True}])
def test_no_rewriting_makes_a_standing_wish_of_what_the_user_did_not_say(memory, options):
    memory.add("Answers should be in French.", user_id="alice", id="old", source="doc")
    for source in ({}, {"source": "chat_user"}):
        with pytest.raises(PolicyError, match=r"comes from .*doc"):
            memory.supersede("old", "Always answer in French.", user_id="alice", **source, **options)
    memory.supersede("old", "Answer in French.", user_id="alice", id="new", source="chat_user")
    memory.supersede("new", "Always answer in French.", user_id="alice", id="newer")
    with pytest.raises(PolicyError, match=r"comes from .*doc"):
        memory.update("newer", user_id="alice", **options)
    assert memory.search("Bonjour", user_id="alice").standing == ()


def test_a_new_text_of_a_document_does_not_close_what_the_user_said(memory):
    memory.add("The gym opens at 9.", user_id="alice", id="said", ttl=timedelta(days=9))
    memory.clock.inner.advance(timedelta(hours=1))
    memory.add("The gym opens at 10.", user_id="alice", id="read", source="doc")
    memory.supersede("read", "The gym opens at 11.", user_id="alice")
    assert memory.maintain().superseded == {}
    assert not memory.get("said", user_id="alice").is_closed


def test_what_cant_be_superseded_is_refused_and_nothing_changes(memory):
    memory.items.put(("a",), "k", {"n": 1}, user_id="alice")
    memory.supersede("home", "I live in Hamburg.", user_id="alice", id="now")
    memory.hold("now", user_id="alice")
    before = memory.export(user_id="alice")
    for record_id, user, error in (
        ("home", "alice", UnknownIdError),
        ("now", "bob", UnknownIdError),
        ("now", "alice", HoldError),
        ('[["a"],"k"]', "alice", ValidationError),
    ):
        with pytest.raises(error):
            memory.supersede(record_id, "I live in Bonn.", user_id=user)
    assert memory.export(user_id="alice")["records"] == before["records"]
