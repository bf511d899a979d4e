"""What each tier reads, and how the evidence explains itself."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from meve.errors import QueryError, ValidationError
from meve.memory import format_recall
from meve.memory._recall.searcher import Searcher
from meve.routing import MemoryRouter, RouterConfig, Tier
from tests.routing.conftest import Script


def ids(recall):
    return [passage.passage.id for passage in recall.passages]


def test_profile_holds_the_fact_within_a_small_budget(router):
    recall = router.recall("What is my name?")
    assert ids(recall)[0] == "name"
    assert recall.tokens <= router.config.profile_tokens


def test_profile_of_one_fact_leaves_out_what_is_weak(router):
    recall = router.recall("What is my name?")
    assert recall.plan.tier is Tier.PROFILE
    assert len(recall.records) <= 3
    assert [c.reason for c in recall.trace.candidates if c.fate == "dropped"] == ["unlikely"] * 7


def test_profile_of_several_facts_holds_all(static_memory):
    allergies = {f"I'm allergic to {food}." for food in ("penicillin", "walnuts", "pollen", "wool", "nickel")}
    for text in (*allergies, "I bought a red bike.", "I went hiking."):
        static_memory.add(text, user_id="alice", source="chat_user")
    router = MemoryRouter(static_memory, user_id="alice")
    recall = router.recall(replace(router.plan("What are my allergies?", tier="profile"), intent="identity"))
    assert allergies <= {record.text for record in recall.records}


def test_overview_holds_lasting_facts(router):
    assert {"name", "prague", "diet", "sister"} <= set(ids(router.recall("What do you know about me?")))


def test_targeted_recall_holds_the_episode_first(router):
    recall = router.recall("How much did I get for the red bike?", tier="targeted")
    assert ids(recall)[0] == "sold"
    assert recall.passages[0].verified


def test_count_reads_all_that_matches_in_order_of_time(router):
    recall = router.recall("How many times did I go hiking?")
    assert [i for i in ids(recall) if i.startswith("hike")] == ["hike1", "hike2", "hike3"]
    assert recall.read == 10
    assert recall.matching >= 3
    assert recall.shown == recall.matching
    times = [record.created_at for record in recall.records]
    assert times == sorted(times)


RUN = "I went for a run."


def test_count_of_events_counts_what_was_told_on_several_days(memory, clock):
    for _ in range(4):
        memory.add(RUN, user_id="alice", source="chat_user")
        memory.add(RUN, user_id="alice", source="chat_user")  # told twice on one day
        clock.advance(timedelta(days=3))
    router = MemoryRouter(memory, user_id="alice")
    before = [r.created_at for r in router.recall("How many times did I go for a run?").records if r.text == RUN]
    memory.maintain()
    after = [r.created_at for r in router.recall("How many times did I go for a run?").records if r.text == RUN]
    assert len(before) == len(after) == 4
    assert before == sorted(before)


def test_count_of_what_is_leaves_out_repetitions_and_former_values(memory, clock):
    for text in ("I own two bikes.", "I own two bikes.", "I own three bikes."):
        memory.add(text, user_id="alice", source="chat_user")
        clock.advance(timedelta(days=3))
    memory.maintain()
    recall = MemoryRouter(memory, user_id="alice").recall("How many bikes do I own?")
    assert len([r for r in recall.records if r.text == "I own two bikes."]) <= 1


def test_count_leaves_out_what_was_added_before_the_time_of_the_question(router):
    found = ids(router.recall("How many times did I go hiking since June?"))
    assert {"hike2", "hike3"} <= set(found)
    assert "hike1" not in found


@pytest.mark.parametrize(
    ("words", "matching", "later"),
    [
        ("in June", {"hike2", "hike3"}, "; 1 of those that match was told after that time."),
        ("in May", {"hike1", "hike2", "hike3"}, "; 2 of those that match were told after that time."),
        ("before July", {"hike1", "hike2", "hike3"}, "; 1 of those that match was told after that time."),
        ("since June", {"hike2", "hike3"}, "are shown, and 4 others."),
    ],
)
def test_note_of_a_count_tells_how_many_memories_are_of_later_times(router, words, matching, later):
    """One may tell later what happened then, so the count holds them."""
    recall = router.recall(f"How many times did I go hiking {words}?")
    assert recall.matching_ids == matching
    assert recall.note.endswith(later)


def test_time_without_any_memory_reads_all_and_says_so(router):
    recall = router.recall("How many times did I go hiking in the last two days?")
    assert "hike3" in ids(recall)
    assert "all memories were read" in recall.trace.phases[0].settings["period"]


def test_count_that_exceeds_the_budget_says_how_many_are_left_out(memory, clock):
    for n in range(60):
        memory.add(f"I ran lap {n} around the park.", user_id="alice", source="chat_user")
        clock.advance(timedelta(hours=1))
    config = RouterConfig(deep_tokens=200, complete_tokens=400)
    recall = MemoryRouter(memory, user_id="alice", config=config).recall("How many laps did I run around the park?")
    assert (recall.read, recall.matching) == (60, 60)
    assert 0 < recall.shown < 60
    assert 200 < recall.tokens <= 400
    assert sum(c.reason == "over_budget" for c in recall.trace.candidates) == 60 - recall.shown


@pytest.fixture
def diary(static_memory, clock):
    static_memory.add("You could run a marathon.", user_id="alice", source="chat_assistant", ttl=None)
    for n in range(30):
        text = f"I ran {n % 9 + 4} km with Sam." if 6 < n < 20 else f"I ran {n % 9 + 4} km this morning."
        static_memory.add(text, user_id="alice", source="chat_user", id=f"run{n:02}")
        clock.advance(timedelta(days=3))
    static_memory.maintain()
    return static_memory


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When was the first time I ran?", "run00"), ("When did I start running?", "run00"),
        ("When did I last go running?", "run29"), ("When was my most recent run?", "run29"),
        ("When did I last go running with Sam?", "run19"), ("When did I first run with Sam?", "run07"),
        ("When did I first run in June?", "run11"), ("When did I last run in June?", "run20"),
    ],
)  # fmt: skip
def test_first_and_last_of_many_is_in_the_evidence(diary, question, expected):
    recall = MemoryRouter(diary, user_id="alice", config=RouterConfig(deep_tokens=260)).recall(question)
    assert expected in ids(recall)
    times = [record.created_at for record in recall.records]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("question", "expected"),
    [("What was the last book I read?", "Yarrow"), ("Which novel did I read first?", "Amber"),
     ("What was the last novel I read?", "Willow"), ("Which film did I watch last?", "Willow")],
)  # fmt: skip
def test_first_or_last_of_its_kind_comes_first(static_memory, clock, question, expected):
    for title in (
        "Amber",
        "Birch",
        "Cobalt",
        "Dune",
        "Ember",
        "Fjord",
        "Grove",
        "Harbor",
        "Indigo",
        "Jasper",
        "Willow",
    ):
        static_memory.add(f"I read the novel {title} and liked it.", user_id="alice", source="chat_user")
        static_memory.add(f"I watched the film {title}.", user_id="alice", source="chat_user")
        clock.advance(timedelta(days=9))
    static_memory.add("I read Yarrow in two evenings.", user_id="alice", source="chat_user")
    recall = MemoryRouter(static_memory, user_id="alice").recall(question, tier="targeted", max_tokens=60)
    assert recall.plan.intent == "fact"
    assert expected in recall.records[0].text


def test_comparison_finds_both_things(router):
    recall = router.recall("Which came first, my pottery course or selling the red bike?")
    assert {"pottery", "sold"} <= set(ids(recall))


def test_small_talk_reads_nothing_but_standing_wishes(memory):
    memory.add("Always answer in German.", user_id="alice", source="chat_user", policy_class="instruction")
    memory.add("I live in Prague.", user_id="alice", source="chat_user")
    recall = MemoryRouter(memory, user_id="alice").recall("Hi there!")
    assert (recall.text, [r.text for r in recall.standing]) == ("", ["Always answer in German."])


def test_former_value_is_read_only_if_asked_for(memory):
    old = memory.add("I work at the bakery.", user_id="alice", id="old", source="chat_user")
    memory.supersede(old.id, "I work at the library.", user_id="alice", id="new")
    router = MemoryRouter(memory, user_id="alice")
    assert "old" not in ids(router.recall("What is my job?"))
    for question in ("What was my previous job, where did I work?", "Where did I work before?",
                     "Where did I work before the new job?"):  # fmt: skip
        assert "old" in ids(router.recall(question))


HOMES = ("I live in Oslo.", "I live in Rome.", "I live in Prague.", "I live in Lisbon.")


@pytest.fixture
def moved_memory(static_memory, clock):
    for text in HOMES:
        static_memory.add(text, user_id="alice", source="chat_user")
        static_memory.add(text, user_id="alice", source="chat_user")
        clock.advance(timedelta(days=60))
    static_memory.maintain()
    assert {r.text for r in static_memory.list(user_id="alice")} == {HOMES[-1]}
    return static_memory


@pytest.mark.parametrize(
    "question",
    ["How many cities have I lived in?", "Which cities have I lived in?", "Where have I lived?",
     "List all places where I lived.", "Which cities did I live in?", "Who have been my neighbours where I lived?"],
)  # fmt: skip
def test_count_or_list_of_what_has_been_holds_each_former_value_once(moved_memory, question):
    recall = MemoryRouter(moved_memory, user_id="alice").recall(question)
    assert [record.text for record in recall.records] == list(HOMES)
    assert (recall.matching, recall.shown) == (4, 4)
    assert recall.note == f"{recall.read} memories were searched; all that match fit and are shown."


@pytest.mark.parametrize("question", ["List the cities where I live.", "How many cities do I live in?",
                                      "How many homes have I got?"])  # fmt: skip
def test_count_or_list_of_what_is_holds_no_former_value(moved_memory, question):
    recall = MemoryRouter(moved_memory, user_id="alice").recall(question)
    assert [record.text for record in recall.records] == [HOMES[-1]]


def test_note_says_that_what_is_shown_shares_no_word_with_the_question(static_memory):
    static_memory.add("I work at Siemens.", user_id="alice", source="chat_user")
    recall = MemoryRouter(static_memory, user_id="alice").recall("How many employers have I had?")
    assert (recall.matching, len(recall.records)) == (0, 1)
    assert recall.note.endswith("none shares a word with the question, so the nearest are shown.")


def test_trace_names_tier_decision_and_fate_of_each_memory(router):
    recall = router.recall("How many times did I go hiking?", max_tokens=40)
    assert recall.trace.mode == Tier.DEEP
    assert [recall.trace.phases[n].name for n in (0, -1)] == ["route", "pack"]
    assert recall.trace.phases[0].settings["intent"] == "count"
    assert recall.tokens <= 40
    fates = {c.id: c.fate for c in recall.trace.candidates}
    assert [i for i, fate in fates.items() if fate == "kept"] == ids(recall)
    assert len(fates) == 10
    json.dumps(recall.to_dict())


@pytest.mark.parametrize("tier", ["profile", "targeted", "deep"])
def test_corrections_of_misspelt_words_are_told(router, tier):
    recall = router.recall("Did I start a potery course or a hikng course?", tier=tier)
    assert recall.corrections == {"potery": "pottery", "hikng": "hiking"}


def test_trace_holds_no_text_of_memories(router):
    text = json.dumps(router.recall("How many times did I go hiking?").trace.to_dict())
    assert "Tatra" not in text


def test_evidence_fits_the_window_of_the_model(routed_memory):
    config = RouterConfig(window=400, answer_tokens=100)
    recall = MemoryRouter(routed_memory, user_id="alice", config=config).recall("How many times did I go hiking?")
    assert recall.tokens <= 400 - 100 - 192


@pytest.mark.parametrize("window", [512, 700, 1_024])
@pytest.mark.parametrize("wishes", [1, 30])
def test_prompt_with_standing_wishes_fits_the_window_of_the_model(static_memory, window, wishes):
    for n in range(wishes):
        text = f"Always answer rule {n}: write in a friendly tone about topic {n}, with an example of lakes."
        static_memory.add(text, user_id="alice", source="chat_user", policy_class="instruction")
    for n in range(40):
        static_memory.add(f"I went hiking on trail {n} with Bob{n}.", user_id="alice", source="chat_user")
    script = Script("40")
    config = RouterConfig(window=window, answer_tokens=100)
    answer = MemoryRouter(static_memory, user_id="alice", llm=script, config=config).answer("How often did I hike?")
    count = static_memory._runtime.tokens.count
    assert all(count(prompt) + 100 <= window for prompt in script.prompts)
    assert f"rule {wishes - 1}:" in script.prompts[0]  # the newest
    assert all(record.text in script.prompts[0] for record in answer.evidence.standing)
    assert answer.evidence.records


def test_question_that_fills_the_window_is_refused(routed_memory):
    router = MemoryRouter(routed_memory, user_id="alice", config=RouterConfig(window=400, answer_tokens=100))
    with pytest.raises(QueryError, match="question must leave 32 of the model's 400 tokens"):
        router.recall("hiking " * 200)


def test_recall_is_logged_with_what_was_handed_out(memory):
    memory.add("I live in Prague.", user_id="alice", id="prague", source="chat_user")
    memory.add("I bought a red bike.", user_id="alice", id="bike", source="chat_user")
    recall = MemoryRouter(memory, user_id="alice").recall("Where do I live?", max_tokens=15)
    events = memory.audit.events(user_id="alice", action="retrieve")
    assert [(e.record_id, e.reason) for e in events] == [("prague", f"recall {recall.id}")]


def test_plan_reads_and_logs_nothing(memory):
    memory.add("I live in Prague.", user_id="alice", source="chat_user")
    before = memory.stats().events
    MemoryRouter(memory, user_id="alice").plan("Where do I live?")
    assert memory.stats().events == before


def test_recall_of_a_plan_follows_the_plan(router):
    plan = router.plan("What is my name?", tier=Tier.DEEP, max_tokens=60)
    recall = router.recall(plan)
    assert (recall.plan.tier, recall.max_tokens) == (Tier.DEEP, 60)
    with pytest.raises(ValidationError, match="must be left out with a plan"):
        router.recall(plan, tier="profile")


def test_empty_memory_gives_empty_evidence(memory):
    recall = MemoryRouter(memory, user_id="alice").recall("How many times did I go hiking?")
    assert (recall.text, recall.read, recall.matching, recall.is_empty) == ("", 0, 0, True)
    assert not recall.sufficient


def test_recall_can_be_formatted_and_reflected(memory):
    memory.add("I live in Prague.", user_id="alice", source="chat_user")
    recall = MemoryRouter(memory, user_id="alice").recall("Where do I live?")
    assert "I live in Prague." in format_recall(memory, recall)
    assert memory.reflect(recall, answer="You live in Prague.").verdicts


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How many times did I run?", "Ran 8 km with Johanna."),
        ("How often did I sing?", "I sang at a funeral."),
        ("How many films have I seen?", "I saw 'Jaws' again."),
        ("Which birds did I see?", "We have seen a heron."),
        ("How many children do I have?", "My youngest child is called Ada."),
    ],
)
def test_irregular_forms_of_a_word_match(static_memory, question, told):
    record = static_memory.add(told, user_id="alice", source="chat_user")
    static_memory.add("The washing machine leaks.", user_id="alice", source="chat_user")
    recall = MemoryRouter(static_memory, user_id="alice").recall(question, tier="deep")
    assert (recall.matching, ids(recall)[0]) == (1, record.id)


def test_read_counts_only_what_the_search_may_read(static_memory, clock):
    static_memory.add("I went hiking.", user_id="alice", source="chat_user", session_id="one")
    static_memory.add("I went hiking twice.", user_id="alice", source="chat_user", session_id="two")
    static_memory.add("I hide pills.", user_id="alice", source="chat_user", policy_class="private")
    static_memory.add("I went hiking alone.", user_id="alice", source="chat_user", ttl=timedelta(days=1))
    clock.advance(timedelta(days=2))
    question = "How many times did I go hiking?"
    assert MemoryRouter(static_memory, user_id="alice").recall(question).read == 2
    filtered = MemoryRouter(static_memory, user_id="alice", search={"session_id": "one"}).recall(question)
    assert (filtered.read, filtered.matching) == (1, 1)


TOPICS = (
    ("name", "My name is Nora Lindqvist."), ("home", "I live in a flat in Teg."), ("job", "I work as a radiographer."),
    ("family", "My husband is called Petter."), ("likes", "I like rooibos tea."),
)  # fmt: skip
"""One memory of each of the topics that an overview searches for."""


def test_overview_holds_each_topic_though_one_fills_the_budget(static_memory):
    for record_id, text in TOPICS:
        static_memory.add(text, user_id="nora", id=record_id, source="chat_user")
    for n, food in enumerate(("penicillin", "walnuts", "pollen", "wool", "latex", "cats", "nickel", "mites")):
        static_memory.add(f"I dislike, avoid and am allergic to {food}.", user_id="nora", id=f"a{n}")
    recall = MemoryRouter(static_memory, user_id="nora").recall("What do you know about me?")
    assert {record_id for record_id, _ in TOPICS} <= set(ids(recall))


@pytest.mark.parametrize("question", ["What are my hobbies?", "Tell me about Priya."])
def test_overview_of_a_topic_begins_with_it(static_memory, question):
    for _, text in TOPICS:
        static_memory.add(text, user_id="nora", source="chat_user")
    static_memory.add("My hobbies are rowing and chess.", user_id="nora", source="chat_user")
    static_memory.add("Priya plays the oboe.", user_id="nora", source="chat_user")
    plan = replace(MemoryRouter(static_memory, user_id="nora").plan(question, tier="profile"), intent="overview")
    first = MemoryRouter(static_memory, user_id="nora").recall(plan).records[0]
    assert set(first.text.split()) & {"hobbies", "Priya"}


def test_memory_that_expires_while_the_recall_is_logged_is_not_returned(static_memory, clock, monkeypatch):
    static_memory.add("I live in Prague.", user_id="alice", source="chat_user", ttl=timedelta(minutes=1))
    log = Searcher.log
    monkeypatch.setattr(Searcher, "log", lambda *given: (clock.advance(timedelta(minutes=2)), log(*given))[1])
    assert MemoryRouter(static_memory, user_id="alice").recall("Where do I live?").records == ()


@pytest.mark.parametrize(("hops", "searches"), [(1, 1), (2, 3)])
def test_deep_reasoning_also_searches_with_the_best_evidence(routed_memory, hops, searches):
    router = MemoryRouter(routed_memory, user_id="alice", config=RouterConfig(hops=hops))
    question = "Why might I enjoy the lake?"
    found = router.recall(question, tier="deep").searches
    assert (found[0], len(found)) == (question, searches)
    assert all(text.startswith(question) and len(text) > len(question) for text in found[1:])


@pytest.mark.parametrize(
    "question",
    ["Why might I enjoy the lake?", "Did I sell the bike after the pottery course?", "What might Sam and I have seen?",
     "Was the bike cheaper than the course?"],
)  # fmt: skip
def test_deep_reasoning_keeps_what_targeted_retrieval_finds(router, question):
    direct, deep = (router.recall(question, tier=tier, max_tokens=640) for tier in ("targeted", "deep"))
    assert set(ids(direct)) <= set(ids(deep))
    assert max(p.score for p in deep.passages) <= max(p.score for p in direct.passages) + 1e-6


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("What did I do last month?", ["hike3", "sold", "prague"]),
        ("What happened in June?", ["bike", "hike2", "pottery"]),
        ("What have I been up to lately?", ["hike3", "sold", "prague"]),
    ],
)
def test_all_that_was_told_at_a_time_is_evidence_though_no_word_matches(router, question, ids):
    recall = router.recall(question)
    shown = [record.id for record in recall.records]
    assert shown[: len(ids)] == ids
    assert (recall.matching, recall.shown) == (3, 3)
    others = len(shown) - 3
    assert ("all 3 that match" in recall.note, f"and {others} others." in recall.note) == (others > 0, others > 0)
    assert recall.sufficiency is None  # such a question is never refused


def test_recall_says_that_nothing_was_told_at_a_time(router):
    recall = router.recall("What did I do yesterday?")
    assert recall.matching == 0
    assert recall.note.endswith("none was told at that time, so the nearest are shown.")


def test_time_of_a_list_prefers_what_the_user_told(static_memory, clock):
    static_memory.add("You could visit the castle.", user_id="alice", source="chat_assistant", ttl=None)
    told = static_memory.add("I mended the gate.", user_id="alice", source="chat_user")
    clock.advance(timedelta(days=7))
    recall = MemoryRouter(static_memory, user_id="alice").recall("What did I do last week?")
    assert recall.matching_ids == {told.id}
