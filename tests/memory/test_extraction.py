"""Extraction: each fact once across sessions, days as dates, and decisions checked before they are written."""

from datetime import date, timedelta

import pytest

from meve.conversation import Turn
from meve.errors import ConfigurationError
from meve.memory import Policy
from meve.memory._write.extraction import FactDecision
from meve.memory._write.relative_days import resolve_days
from meve.memory.turns import TurnRules, add_turns, make_fact_id
from tests.memories import FixedExtractor, open_memory

LYON = "I live in Lyon."
SPOKEN = date(2026, 5, 20)


def say(memory, text, *, session="s1", user="ann", rules=None, before=(), **turn):
    turns = [Turn(**{"id": f"{session}-{text}", "speaker": "user", "text": text, **turn})]
    return add_turns(memory, turns, user_id=user, session_id=session, rules=rules, before=before)


def decide(action, text="", **values):
    return decide_all(FactDecision(action=action, text=text, reason="told", **values))


def decide_all(*decisions, **rules):
    return TurnRules(extractor=FixedExtractor(*decisions), **rules)


def texts(memory, user="ann"):
    return sorted(record.text for record in memory.list(user_id=user))


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("I met Ann yesterday.", "I met Ann on 19 May 2026."),
        ("Tomorrow I fly to Rome.", "On 21 May 2026 I fly to Rome."),
        ("I fly to Rome next Friday.", "I fly to Rome on 22 May 2026."),
        ("I moved here two weeks ago.", "I moved here in the week of 4 May 2026."),
        ("I was in Rome last month, and last year, too.", "I was in Rome in April 2026, and in 2025, too."),
        ("I have been ill since yesterday.", "I have been ill since 19 May 2026."),
        ("The exam is in 3 days.", "The exam is on 23 May 2026."),
        ("I lost yesterday's paper.", "I lost yesterday's paper."),
        ("I run every day.", "I run every day."),
        ("I decided that I move in two weeks.", "I decided that I move in the week of 1 June 2026."),
        ("I sanded it. It will be painted in 2 days.", "I sanded it. It will be painted on 22 May 2026."),
    ],
)  # fmt: skip
def test_relative_day_becomes_a_date(text, dated):
    assert resolve_days(text, SPOKEN) == dated


@pytest.mark.parametrize(
    "text",
    ["I read Walden in two days.", "I wrote the report in a week, and it was hard.", "In two days I finished it.",
     "I lost 4 kilos in a month.", "She hasn't smoked in 3 years.", "I can knit a sock in two days.",
     "I usually read a novel in a week.", "I swam for the first time in two years.", "I ran twice in a week."],
)  # fmt: skip
def test_span_in_which_something_happened_stays(text):
    assert resolve_days(text, SPOKEN) == text


def test_days_count_from_the_clock_or_from_the_turn_s_day(memory, clock):
    say(memory, "I met Ann yesterday.")
    say(memory, "I met Bob yesterday.", time=date(2026, 4, 20))
    assert texts(memory) == ["I met Ann on 30 April 2026.", "I met Bob on 19 April 2026."]


def test_fact_said_again_in_another_session_confirms_the_first(memory):
    [first] = say(memory, LYON).added
    again = say(memory, "Hi! I live in Lyon!", session="s2")
    assert (again.added, again.confirmed) == ((), (first.id,))
    assert texts(memory) == [LYON]
    event = memory.audit.events(record_id=first.id)[-1]
    assert (event.action, event.reason) == ("update", "said again")


def test_fact_said_again_confirms_one_that_a_copy_was_merged_into(memory):
    memory.add(LYON, user_id="ann", id="copy", source="doc", policy_class="factual")
    memory.add(LYON, user_id="ann", id="own")
    assert memory.maintain().merged == {"ann": ["copy"]}
    again = say(memory, LYON)
    assert (again.added, again.confirmed) == ((), ("own",))


def test_fact_of_another_user_or_source_confirms_nothing(memory):
    memory.add(LYON, user_id="bob")
    memory.add(LYON, user_id="ann", source="doc")
    assert len(say(memory, LYON).added) == 1


@pytest.mark.parametrize(
    ("first", "other"),
    [("It is -5 degrees in Oslo.", "It is 5 degrees in Oslo."), ("My car cost $900.", "My car cost €900.")],
)
def test_fact_with_another_sign_or_unit_confirms_nothing(memory, first, other):
    say(memory, first)
    assert [record.text for record in say(memory, other, session="s2").added] == [other]


def test_erased_fact_does_not_return_by_a_turn_that_confirmed_it(memory):
    [first] = say(memory, LYON).added
    say(memory, LYON, session="s2")
    memory.delete(first.id, user_id="ann")
    assert say(memory, LYON, session="s2").known == (make_fact_id("s2", f"s2-{LYON}", 0),)
    assert texts(memory) == []


def test_fact_said_again_after_a_contradiction_is_the_newer_one(memory, clock):
    say(memory, "The library opens at 9 on weekdays.")
    clock.advance(timedelta(hours=1))
    say(memory, "The library opens at 10 on weekdays.")
    clock.advance(timedelta(hours=1))
    assert say(memory, "The library opens at 9 on weekdays.", session="s2").added
    [top, *_] = memory.search("When does the library open?", user_id="ann").records
    assert top.text == "The library opens at 9 on weekdays."


def test_fact_said_again_lives_as_long_as_a_new_one(file, clock):
    with open_memory(file, clock=clock, policy=Policy.from_dict({"user_ttl": "10d"})) as memory:
        [first] = say(memory, LYON).added
        clock.advance(timedelta(days=9))
        say(memory, LYON, session="s2")
        assert memory.get(first.id, user_id="ann").expires_at == clock.now() + timedelta(days=10)


def test_extractor_sees_the_turn_what_came_before_and_memories_near_it(memory):
    memory.add(LYON, user_id="ann", id="lyon")
    memory.add("I live in Rome.", user_id="bob")
    memory.add("My diary lies in Lyon, where I live.", user_id="ann", policy_class="private")
    rules = TurnRules(extractor=FixedExtractor())
    before = [
        Turn(id="t", speaker="tool", text="You live in Bonn."),
        Turn(id="q", speaker="assistant", text="Where do you live?"),
    ]
    say(memory, "I live in Oslo now.", rules=rules, before=before)
    [context] = rules.extractor.seen
    assert context.turn.text == "I live in Oslo now."
    assert [turn.id for turn in context.before] == ["q"]
    assert [record.id for record in context.near] == ["lyon"]


@pytest.mark.parametrize(("action", "logged"), [("update", "merge"), ("supersede", "supersede")])
def test_update_and_supersede_close_the_memory_and_can_be_taken_back(memory, clock, action, logged):
    memory.add(LYON, user_id="ann", id="lyon")
    begin = clock.now()
    clock.advance(timedelta(days=1))
    [new] = say(memory, "I live in Oslo now.", rules=decide(action, "I live in Oslo.", id="lyon")).added
    old = memory.get("lyon", user_id="ann")
    assert (old.superseded_by, texts(memory)) == (new.id, ["I live in Oslo."])
    assert new.valid_from == (begin if action == "update" else clock.now())
    assert memory.audit.events(record_id="lyon")[-1].action == logged
    assert [r.id for r in memory.list(user_id="ann", include_superseded=True) if r.is_closed] == ["lyon"]
    explained = memory.explain("Where do I live in Lyon?", user_id="ann", include_superseded=True)
    assert "lyon" in [each.record.id for each in explained]
    memory.restore("lyon", user_id="ann")
    assert LYON in texts(memory)
    memory.maintain(user_id="ann")
    assert LYON in texts(memory)


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_what_ends_soon_closes_no_lasting_memory(memory, clock, action):
    memory.add(LYON, user_id="ann", id="lyon")
    clock.advance(timedelta(days=1))
    rules = decide(action, "I live in Oslo.", id="lyon", policy_class="ephemeral")
    assert len(say(memory, "I live in Oslo.", rules=rules).added) == 1
    assert texts(memory) == [LYON, "I live in Oslo."]
    clock.advance(timedelta(days=1))
    memory.maintain()
    assert texts(memory) == [LYON]


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_deleting_what_an_extractor_wrote_leaves_what_it_closed(memory, clock, action):
    """A model's link must not widen an erasure: the earlier fact stays, closed and named, and can be taken back."""
    memory.add(LYON, user_id="ann", id="lyon")
    clock.advance(timedelta(days=1))
    [new] = say(memory, "I live in Oslo now.", rules=decide(action, "I live in Oslo.", id="lyon")).added
    for dry_run in (True, False):
        report = memory.delete(new.id, user_id="ann", dry_run=dry_run)
        assert (report.erased, report.left_closed) == ((new.id,), ("lyon",))
    assert texts(memory) == []
    memory.maintain()
    assert texts(memory) == []
    memory.restore("lyon", user_id="ann")
    assert texts(memory) == [LYON]


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_what_takes_the_place_of_a_memory_keeps_its_tags(memory, clock, action):
    memory.add("I am allergic to nuts.", user_id="ann", id="nuts", tags=["health"])
    clock.advance(timedelta(days=1))
    text = "I am allergic to nuts and to milk."
    [record] = say(memory, text, rules=decide(action, text, id="nuts")).added
    assert record.tags == ("health",)


def test_deleting_what_an_update_is_made_of_erases_the_update(memory, clock):
    memory.add(LYON, user_id="ann", id="lyon")
    clock.advance(timedelta(days=1))
    rules = decide("update", LYON + " I work there.", id="lyon")
    [new] = say(memory, "I live in Lyon and work there.", rules=rules).added
    assert memory.delete("lyon", user_id="ann").erased == tuple(sorted(["lyon", new.id]))


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (decide("supersede", "I live in Oslo.", id="unknown"), "isn't near the turn"),
        (decide("supersede", "I live in Oslo.", id="bob-1"), "isn't near the turn"),
        (decide("update", "I live in Oslo.", id="held"), "on hold"),
        (decide("supersede", "I live in Oslo.", id="law"), "never replaced"),
        (decide("supersede", "I live in Oslo.", id="pinned"), "pinned"),
        (decide("supersede", "I live in Oslo.", id="tagged"), "other metadata"),
        (decide("supersede", "I live in Oslo in Street 12.", id="paper"), "tells a number"),
        (decide("add", "I live in Oslo.", policy_class="instruction"), "policy_class must be"),
        (decide("add", "I have lived in Oslo since 2019."), "tells a number"),
        (decide("add", "I moved to Oslo with Markus."), "tells a name"),
        (decide("add", "I moved to Oslo on Monday."), "tells a day"),
        (decide("add", "I don't live in Oslo."), "tells a denial"),
        (decide("add", "I live in Oslo.", policy_class="canonical"), "policy_class must be"),
        (decide("add", " "), "needs a text"),
        (decide("erase", "I live in Oslo."), "got another action"),
        (TurnRules(extractor=FixedExtractor("I live in Oslo.")), "must be a FactDecision"),
    ],
)  # fmt: skip
def test_invalid_decision_is_refused_logged_and_changes_nothing(memory, caplog, rules, problem):
    memory.add(LYON, user_id="ann", id="held")
    memory.hold("held", user_id="ann")
    memory.add("We live in Lyon by law.", user_id="ann", id="law", policy_class="canonical")
    memory.add("I live in Lyon, pinned.", user_id="ann", id="pinned", pinned=True)
    memory.add("I live in Lyon, tagged.", user_id="ann", id="tagged", metadata={"desk": "a"})
    memory.add("They live in Lyon in Street 12.", user_id="ann", id="paper", source="doc")
    memory.add(LYON, user_id="bob", id="bob-1")
    before = texts(memory)
    result = say(memory, "We live in Oslo now.", rules=rules)
    assert result.added == ()
    [why] = result.skipped.values()
    assert problem in why
    assert why in caplog.text
    assert memory.audit.verify().ok
    assert (texts(memory), texts(memory, "bob")) == (before, [LYON])


def test_value_of_an_earlier_turn_or_of_a_resolved_day_is_accepted(memory):
    before = [Turn(id="q", speaker="assistant", text="Is your boss Julia?")]
    rules = decide("add", "My boss has been Julia since 30 April 2026.")
    assert say(memory, "Yes, since yesterday.", rules=rules, before=before).added


def test_nothing_needs_no_text_and_gives_its_reason(memory):
    result = say(memory, LYON, rules=decide("nothing"))
    assert list(result.skipped.values()) == ["told"]


def test_secret_that_the_policy_refuses_is_skipped_and_the_rest_of_the_turn_kept(file):
    with open_memory(file, policy=Policy.from_dict({"secrets": "refuse"})) as memory:
        result = say(memory, "My PIN is 4711. I live in Lyon.")
        assert texts(memory) == [LYON]
        assert "holds a secret" in "".join(result.skipped.values())


def test_assistant_never_replaces_what_a_user_said(memory):
    memory.add(LYON, user_id="ann", id="lyon")
    sources = {"user": "chat_user", "assistant": "chat_assistant"}
    rules = decide_all(
        FactDecision(action="supersede", text="You live in Oslo.", id="lyon", reason="told"), sources=sources
    )
    result = say(memory, "You live in Oslo.", rules=rules, speaker="assistant")
    assert "weighs more" in "".join(result.skipped.values())
    assert texts(memory) == [LYON]


@pytest.mark.parametrize(
    ("role", "chosen", "is_refused"),
    [
        ("ephemeral", "factual", True), ("private", "factual", True), ("intent_bound", "factual", True),
        ("factual", "ephemeral", False), ("ephemeral", "private", False), ("factual", "factual", False),
    ],
)  # fmt: skip
def test_extractor_chooses_no_class_that_lives_longer_or_is_shown_more_than_the_role_s(
    memory, role, chosen, is_refused
):
    decision = FactDecision(action="add", text="I live in Oslo.", reason="told", policy_class=chosen)
    result = say(memory, "I live in Oslo now.", rules=decide_all(decision, classes={"user": role}))
    if is_refused and role != "private":
        assert repr(chosen) in "".join(result.skipped.values())
        assert texts(memory) == []
    else:
        [record] = memory.list(user_id="ann")
        assert record.policy_class == ("private" if role == "private" else chosen)


def test_wish_that_an_extractor_words_is_no_instruction(memory):
    before = [Turn(id="q", speaker="assistant", text="Always answer in German?")]
    wish = "Always answer in German."
    say(memory, "Yes.", rules=decide("add", wish), before=before)
    say(memory, f"{wish} I live in Bonn.", rules=decide("add", wish), session="s2")
    assert sorted(r.policy_class for r in memory.list(user_id="ann") if r.text == wish) == ["factual", "instruction"]


def test_confirmations_and_closed_memories_agree_with_the_log(memory):
    [first] = say(memory, LYON).added
    say(memory, LYON, session="s2")
    say(memory, "I live in Oslo now.", rules=decide("supersede", "I live in Oslo.", id=first.id))
    assert memory.audit.verify().ok
    memory.restore(first.id, user_id="ann")
    memory.delete(first.id, user_id="ann")
    assert memory.audit.verify().ok
    certificate = memory.audit.certificate(user_id="ann")
    assert memory.audit.check_certificate(certificate).ok
    assert [entry.record_id for entry in certificate.entries] == [first.id]


def test_turns_before_are_shown_and_not_stored(memory):
    rules = TurnRules(extractor=FixedExtractor())
    say(memory, "Yes.", rules=rules, before=[Turn(id="q", speaker="user", text=LYON)])
    assert [turn.text for turn in rules.extractor.seen[0].before] == [LYON]
    assert texts(memory) == []


def test_only_the_rules_read_a_turn_with_a_secret(memory):
    rules = TurnRules(extractor=FixedExtractor())
    secret = "My PIN is 4711."
    say(memory, secret, rules=rules)
    say(memory, "I live in Oslo now.", rules=rules, before=[Turn(id="q", speaker="user", text=secret)])
    [context] = rules.extractor.seen
    assert context.before == ()
    assert [(r.text, r.policy_class) for r in memory.list(user_id="ann")] == [(secret, "private")]


@pytest.mark.parametrize("name", ["extractor", "background"])
def test_extractor_without_its_method_is_refused(name):
    with pytest.raises(ConfigurationError, match=rf"{name} must have the method extract\(context\), got <function"):
        TurnRules(**{name: lambda text: [text]})
