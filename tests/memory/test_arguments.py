"""Invalid arguments raise our errors and change nothing."""

import copy
import enum
import pickle
from datetime import timedelta

import numpy as np
import pytest

from meve.errors import ConfigurationError, PolicyError, QueryError, ValidationError
from meve.memory import GovernedMemory, Policy, PromptBudget, TurnRules, format_recall, record_turns
from tests.memories import KEY, open_memory

WRONG = [5, 5.0, True, b"5", "\ud800", ["5"], {"a": 1}, object()]
CALLS = {
    "get": lambda m, x: m.get(x, user_id="alice"),
    "update": lambda m, x: m.update(x, user_id="alice", tags=[]),
    "delete": lambda m, x: m.delete(x, user_id="alice"),
    "hold": lambda m, x: m.hold(x, user_id="alice"),
    "release": lambda m, x: m.release(x, user_id="alice"),
    "an id": lambda m, x: m.add("text", user_id="alice", id=x),
    "a text": lambda m, x: m.add(x, user_id="alice"),
    "a session": lambda m, x: m.add("text", user_id="alice", session_id=x),
    "a query": lambda m, x: m.search(x, user_id="alice"),
    "an explain query": lambda m, x: m.explain(x, user_id="alice"),
    "a session to search": lambda m, x: m.search("sun", user_id="alice", session_id=x),
    "within": lambda m, x: m.search("sun", user_id="alice", within=x),
    "classes": lambda m, x: m.search("sun", user_id="alice", classes=x),
    "sources": lambda m, x: m.search("sun", user_id="alice", sources=x),
    "without": lambda m, x: m.search("sun", user_id="alice", without=x if x != ["5"] and x != {"a": 1} else 5),
    "a record's events": lambda m, x: m.audit.events(record_id=x),
    "actions": lambda m, x: m.audit.events(action=x),
    "since": lambda m, x: m.audit.events(since=x),
    "until": lambda m, x: m.audit.events(until=x),
    "a head": lambda m, x: m.audit.verify(x),
    "a reason to add": lambda m, x: m.add("text", user_id="alice", reason=x),
    "a reason to update": lambda m, x: m.update("s", user_id="alice", tags=[], reason=x),
    "a reason to delete": lambda m, x: m.delete("s", user_id="alice", reason=x),
    "a reason to forget": lambda m, x: m.forget_user(user_id="alice", reason=x),
    "a reason to hold": lambda m, x: m.hold("s", user_id="alice", reason=x),
    "the time to live of an item": lambda m, x: m.items.put(("a",), "k", {"n": 1}, user_id="alice", ttl=x),
    "a recall to show": lambda m, x: format_recall(m, x),
    "a recall to reflect": lambda m, x: record_turns(m, [], user_id="alice", recall=x, answer="Sun."),
    "the rules of turns": lambda m, x: record_turns(m, [], user_id="alice", rules=x),
    "turns": lambda m, x: record_turns(m, x, user_id="alice"),
    "turns before": lambda m, x: record_turns(m, [], user_id="alice", before=x),
    "progress of reembedding": lambda m, x: m.reembed(progress=x),
    "a version": lambda m, x: m.update("s", user_id="alice", tags=[], if_version="1" if x == 5 else x),
    "which messages": lambda m, x: m.messages.page("s", user_id="alice", archived="no" if x is True else x),
    "ids of messages": lambda m, x: m.messages.pop("s", user_id="alice", ids=x if x not in (["5"], {"a": 1}) else 5),
    "ids of new messages": lambda m, x: m.messages.add(
        "s", [{"a": 1}], user_id="alice", ids=x if x not in (["5"], {"a": 1}) else 5
    ),
    "changes of items": lambda m, x: m.items.prepare(x),
    "drafts of items": lambda m, x: m.items.write(x),
    "a condition on items": lambda m, x: m.items.search(user_id="alice", where=x),
    "ids to certify": lambda m, x: m.audit.certificate(user_id="alice", record_ids=x),
    "a time zone": lambda m, x: m.search("sun", user_id="alice", time_zone=(x,)),
    "a class": lambda m, x: m.add("text", user_id="alice", policy_class=np.array([x, x], dtype=object)),
}
FLAGS = {
    "maintain": lambda m, x: m.maintain(dry_run=x),
    "delete": lambda m, x: m.delete("s", user_id="alice", dry_run=x),
    "forget_user": lambda m, x: m.forget_user(user_id="alice", dry_run=x),
    "forget_session": lambda m, x: m.forget_session("s", user_id="alice", all_or_none=x),
    "archived": lambda m, x: m.list(user_id="alice", include_archived=x),
    "superseded": lambda m, x: m.list(user_id="alice", include_superseded=x),
    "messages": lambda m, x: m.list(user_id="alice", include_messages=x),
    "explain archived": lambda m, x: m.explain("sun", user_id="alice", include_archived=x),
    "archived messages": lambda m, x: m.messages.add("s", [{"a": "b"}], user_id="alice", archived=x),
    "archived messages in place": lambda m, x: m.messages.replace("s", [{"a": "b"}], user_id="alice", archived=x),
    "replace all": lambda m, x: m.messages.sync("s", [{"a": "b"}], user_id="alice", replace_all=x),
    "the newest": lambda m, x: m.messages.page("s", user_id="alice", newest=x),
    "archive": lambda m, x: m.messages.pop("s", user_id="alice", archive=x),
    "refresh an item": lambda m, x: m.items.get(("a",), "k", user_id="alice", refresh=x),
    "refresh items": lambda m, x: m.items.search(("a",), user_id="alice", refresh=x),
    "delete_namespace": lambda m, x: m.items.delete_namespace(("a",), user_id="alice", dry_run=x),
    "ids": lambda m, x: format_recall(m, m.search("sun", user_id="bob"), ids=x),
    "standing": lambda m, x: format_recall(m, m.search("sun", user_id="bob"), standing=x),
}


@pytest.fixture
def filled(file, clock):
    with open_memory(file, clock=clock) as opened:
        opened.add("Tomatoes need sun.", user_id="alice", id="s")
        opened.add("Bread is baked.", user_id="alice", id="5")
        yield opened


@pytest.mark.parametrize("call", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("wrong", [1, 0, "no", None])
def test_flag_is_true_or_false(filled, call, wrong):
    before = filled.list(user_id="alice")
    with pytest.raises(ValidationError, match="must be True or False"):
        call(filled, wrong)
    assert filled.list(user_id="alice") == before


def test_wrong_parts_of_a_prompt_messages_and_rules_raise_our_errors(filled, file):
    for call in (
        lambda: filled.prompt(5, user_id="alice"),
        lambda: filled.prompt("sun", user_id="alice", system=5),
        lambda: filled.prompt("sun", user_id="alice", history=5),
        lambda: filled.messages.add("s", 5, user_id="alice"),
        lambda: record_turns(filled, [], user_id="alice", answer=5),
        lambda: TurnRules(max_facts="x"),
        lambda: TurnRules(max_facts=True),
        lambda: TurnRules(sources=5),
        lambda: TurnRules(sources={1: "chat_user"}),
        lambda: TurnRules(classes={1: "factual"}),
        lambda: GovernedMemory.open("a\x00b"),
        lambda: filled.reembed("x" * 100_000),
        lambda: GovernedMemory.open(5),
        lambda: GovernedMemory.open(file, accept_older="x"),
    ):
        with pytest.raises((ConfigurationError, QueryError, ValidationError), match="must"):
            call()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_invalid_argument_raises_and_changes_nothing(filled, call):
    before, head = filled.list(user_id="alice"), filled.audit.head()
    for wrong in WRONG:
        with pytest.raises(ValidationError):
            call(filled, wrong)
    assert filled.list(user_id="alice") == before
    assert filled.audit.head() == head
    assert filled.audit.verify().ok


@pytest.mark.parametrize("option", ["include_private", "verify"])
def test_option_that_is_no_bool_raises(filled, option):
    """A non-empty string is truthy and would include private memories."""
    with pytest.raises(ValidationError, match=f"{option} must be True or False, got 'no'"):
        filled.search("tomatoes need sun", user_id="alice", **{option: "no"})


def test_reason_keeps_quotes_and_unicode(filled):
    filled.delete("s", user_id="alice", reason='Ünal\'s wish; "now" 😀')
    assert filled.audit.events(action="delete")[0].reason == 'Ünal\'s wish; "now" 😀'
    assert filled.audit.verify().ok


def test_unknown_action_raises(filled):
    with pytest.raises(ValidationError, match=r"action must be one of add, retrieve, .*, got 'deleted'"):
        filled.audit.events(action="deleted")


def test_maximum_timedelta_sets_no_limit(filled):
    assert filled.search("tomatoes need sun", user_id="alice", within=timedelta.max).records
    assert len(filled.audit.events(action="add", since=timedelta.max)) == 2


class Team(str, enum.Enum):  # noqa: UP042 - its str() differs from its value
    RED = "red"


class Seat(int):
    def __repr__(self):
        return "seat"


def test_subclass_of_str_or_int_is_the_user_of_its_value(filled):
    filled.add("Mine.", user_id=Team.RED, id="x")
    filled.add("Ours.", user_id=Seat(7), id="x")
    assert [r.text for r in filled.list(user_id="red")] == ["Mine."]
    assert filled.list(user_id="Team.RED") == []
    assert [r.text for r in filled.list(user_id=7)] == ["Ours."]


def test_user_id_over_1000_digits_raises(filled):
    with pytest.raises(ValidationError, match="at most 1,000 digits"):
        filled.list(user_id=10**5_000)


@pytest.mark.parametrize("ttl", ["999999999999999d", True, 1e300, float("inf"), float("nan")])
def test_invalid_chat_ttl_raises(ttl):
    with pytest.raises(PolicyError, match="chat_ttl"):
        Policy.from_dict({"chat_ttl": ttl})


def test_tags_are_casefolded(file, clock):
    tagging = {"tagging": {"tags": {"Straße": "roads, traffic"}}}
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict(tagging)) as memory:
        record = memory.add("The traffic was slow.", user_id="alice", id="t")
        assert memory.update("t", user_id="alice", tags=["STRASSE"]).tags == record.tags
        assert memory.add("Traffic again.", user_id="alice", tags=["Straße"]).tags == record.tags


COMPONENTS = {
    "updates": "judge()", "usage": "judge()", "contradiction": "find_difference()", "classifier": "classify()",
    "secrets": "find_secret()",
    "tagger": "tag()", "summariser": "summarise()", "clock": "now() and elapsed()", "policy": "a Policy",
    "verify_threshold": "between 0 and 1", "embedder": "embedder", "verifier": "verifier", "tokens": "tokens",
}  # fmt: skip


@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize("wrong", [5, 0, object(), dict])
def test_component_of_a_wrong_type_is_rejected_when_opening(file, name, wrong):
    if name == "verify_threshold" and wrong == 0:
        wrong = 1.5
    if name == "tokens" and wrong is dict:
        wrong = 5.0
    with pytest.raises(ConfigurationError, match=name) as raised:
        GovernedMemory.open(file, audit_key=KEY, **{name: wrong})
    assert COMPONENTS[name] in str(raised.value)
    GovernedMemory.open(file, embedder="static").close()  # nothing was settled before the check


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("standing_tokens", wrong) for wrong in (-1, 2.5, True, "9", None)),
        *(("max_tokens", wrong) for wrong in (0, "9")),
        *((name, -1) for name in ("headroom", "verbatim_turns", "facts_share", "summary_share")),
        *(("facts_share", wrong) for wrong in (1.1, "all", float("nan"))),
    ],
)
def test_prompt_budget_out_of_range_is_rejected(filled, name, wrong):
    with pytest.raises(ConfigurationError, match=f"{name} must be"):
        PromptBudget(**{name: wrong})
    if name == "max_tokens":
        with pytest.raises(ConfigurationError, match="max_tokens must be"):
            filled.prompt("sun?", user_id="alice", max_tokens=wrong)


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_memory_is_neither_pickled_nor_copied(memory, make):
    with pytest.raises(ConfigurationError, match=r"a GovernedMemory can't be pickled or copied.*GovernedMemory\.open"):
        make(memory)


def test_record_to_replace_is_named_as_the_argument(filled):
    with pytest.raises(ValidationError, match="record_id must be text, got 5"):
        filled.supersede(5, "Tomatoes need shade.", user_id="alice")


@pytest.mark.parametrize("option", ["classes", "sources", "limit", "max_tokens"])
def test_error_shows_the_beginning_of_a_long_value(filled, option):
    with pytest.raises((ConfigurationError, ValidationError), match=f"{option} must be") as caught:
        filled.search("tomatoes", user_id="alice", **{option: "x" * 100_000})
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("call", ["a text", "a session", "a class", "a version", "a query", "ids to certify"])
def test_value_that_cannot_be_shown_raises_our_error(filled, call):
    deep = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(ValidationError, match="must"):
        CALLS[call](filled, [deep] if call == "ids to certify" else deep)


def test_number_too_large_for_a_float_raises_our_error(filled):
    with pytest.raises(ValidationError, match="outcome must be a number between 0 and 1"):
        filled.record_outcome("s", 10**400, user_id="alice")
    with pytest.raises(ConfigurationError, match="max_tokens must be a whole number from 1 to 1,000,000,000"):
        filled.prompt("sun", user_id="alice", max_tokens=10**400)


def test_wrong_flag_of_messages_leaves_the_log_intact(file, clock):
    """1 is stored like True, but the log's hash of the record would differ."""
    with open_memory(file, clock=clock, audit_key=KEY) as memory:
        with pytest.raises(ValidationError, match="archived must be True or False, got 1"):
            memory.messages.add("s", [{"a": "b"}], user_id="alice", archived=1)
        assert memory.audit.verify().ok
