"""Updates: which pairs of statements say the same, which newer one replaces an older one, and which both stay."""

from datetime import timedelta

import pytest

from meve.errors import ConfigurationError
from meve.memory import GovernedMemory, RuleUpdateJudge, TrainedUpdateJudge
from meve.memory._contradiction.statements import parse_statement
from tests.memories import LASTING, add_old_and_new

REPLACED = [
    ("I am allergic to nuts.", "I am no longer allergic to nuts."),
    ("I live in Berlin.", "I live in Hamburg."),
    ("My boss is Markus.", "Julia is my new boss."),
    ("I smoke.", "I quit smoking."),
    ("I drive a Golf.", "I sold the Golf, I take the tram now."),
    ("I hate musicals.", "I love musicals."),
    ("Our standup is at 9:30.", "The standup was pushed to ten."),
    ("My favourite band is Muse.", "My favourite band is Radiohead."),
    ("I have Netflix.", "I cancelled Netflix."),
    ("I don't drink alcohol.", "I drink wine again."),
    ("My sister lives in Rome.", "My sister moved to Milan."),
    ("We rent a flat in Cardiff.", "We moved to Swansea."),
    ("The wifi password is tulip.", "We changed the wifi password to rose."),
    ("Answer in English.", "From now on answer in German."),
    ("I weigh 80 kg.", "I weigh 75 kg."),
    ("I live in Canada.", "I live in New Zealand."),
    ("I live in Oslo.", "I live in Cape Town."),
    ("I live in Kreuzberg.", "I live in Altona now."),
    ("My boss at Siemens is Tom.", "My boss at Siemens is Ben."),
    ("My dentist is Dr. Weber.", "My dentist is Dr. Kaya."),
    ("My boss is Tom.", "My new boss is Ben."),
]
BOTH = [
    ("My son is allergic to milk.", "My daughter is allergic to milk."),
    ("My son is allergic to milk.", "My son has moved to Berlin."),
    ("I'm allergic to peanuts.", "Our shop no longer sells peanuts."),
    ("Alice manages Bob.", "Bob manages Alice."),
    ("My left knee hurts.", "My right knee hurts."),
    ("I fly to Oslo on the 3rd.", "I fly from Oslo on the 17th."),
    ("I like tea.", "I now also drink coffee."),
    ("I drink my coffee black.", "I bought a new coffee machine."),
    ("I need reading glasses.", "I found my glasses again."),
    ("I wear contact lenses.", "I lost my contact lenses again."),
    ("I have a dog.", "My dog now sleeps in my bed."),
    ("I live in Berlin.", "My sister now lives in Hamburg."),
    ("I live in Berlin.", "The rent in Berlin has increased."),
    ("I work from home on Friday.", "I'm in the office on Tuesday."),
    ("I had surgery in 2019.", "I had surgery in 2021."),
    ("I have a meeting on Monday.", "I have a meeting on Tuesday."),
    ("I usually spend summer in Brittany.", "This summer I'm going to Norway."),
    ("Room 3.12 has a projector.", "Room 3.21 has a projector."),
    ("I smoked in my twenties.", "I don't smoke now."),
    ("The shop is open from 9 to 12.", "The shop is open from 14 to 17."),
    ("My boss is Markus.", "My boss has moved to a new office."),
    ("My son is called Max.", "My son is called Ben."),
    ("My aunt lives in Vigo.", "My aunt lives in Lugo."),
    ("I do yoga on Monday.", "I do yoga on Thursday."),
    ("The twins eat fish but Otto eats meat.", "The twins eat fish but Nell eats meat."),
    ("I like tea.", "I don't like iced tea."),
    ("The review of the bridge project is on Monday.", "They moved the review of the harbour project to Friday."),
    (
        "I play the cello in an amateur orchestra in Ghent and rehearse with them on most Monday evenings.",
        "I don't play the cello on Mondays now.",
    ),
    ("The kitchen tap was replaced in May.", "The bathroom tap was replaced in May."),
    ("I am allergic to nuts.", "I am not allergic to pine nuts."),
    ("I can't eat eggs.", "I can eat eggs in cakes."),
    ("I have diabetes.", "I don't have diabetes type 1."),
    ("I take warfarin.", "I don't take warfarin with food."),
    ("Max is allergic to peanuts.", "Max is not allergic to peanuts?"),
    ("We have a dog.", "Mia isn't allergic to dogs."),
    ("I drink coffee.", "I don't drink coffee after 5 pm."),
    ("I like tea.", "I don't like tea at night."),
    ("I eat fruit.", "I don't eat fruit for breakfast."),
    ("I smoke.", "I don't smoke at home."),
    ("I drink no alcohol.", "I drink alcohol-free beer."),
    ("I live in Freiburg.", "I lived in Hamburg."),
    ("I lived in Hamburg.", "I live in Tuscany in summer."),
    ("I live in Berlin.", "I will live in Hamburg next year."),
    ("My dog is called Rex.", "My dog is called Luna."),
    ("My meeting is at 10.", "My meeting with Paul is at 11."),
    ("I have a dog.", "I no longer have a cat."),
    ("I live in Germany.", "I live in Berlin."),
    ("I live in Berlin.", "I live in Germany."),
    ("I live in Germany now.", "I live in Berlin."),
    ("I live in Bavaria.", "I live in Munich."),
    ("I live in Berlin.", "I live in Kreuzberg."),
    ("I was born in France.", "I was born in Lyon."),
    ("I am based in Europe.", "I am based in Madrid."),
    ("My favourite place is France.", "My favourite place is Paris."),
    ("My home is Berlin.", "My home is Kreuzberg."),
    ("I work in IT.", "I work at SAP."),
    ("We have a pet.", "We have a cat."),
    ("My boss is Markus.", "My boss is Mr Weber."),
    ("My doctor is Dr. Weber.", "My doctor is Anna Weber."),
    ("The break is 30m.", "The break is 30 minutes."),
    ("The board is 1m.", "The board is 1 m."),
]
SAME = [
    ("Call me at 7:15.", "Call me at 07:15."),
    ("Call me at quarter to eight.", "Call me at 7:45!"),
    ("The rent is 1.5k.", "The rent is 1500."),
    ("The rent is €1,500.", "The rent is 1500 euros."),
    ("It weighs 1.5 kg.", "It weighs 1,500 grams."),
    ("The exam is on 3rd of May.", "The exam is on May 3."),
    ("I don't eat meat.", "I do not eat the meat."),
]


READ = [
    ("My wife Eva is a nurse.", "Eva became a doctor."),
    ("The cat is called Tiger.", "Tiger is called Leo now."),
    ("I sing in the church choir.", "The choir had to go, my voice isn't what it was."),
    ("Mum's at the bakery until two.", "Mum's retired."),
    ("My wife works part time, three days a week.", "My wife's gone back to full time."),
    ("Savings goal: 5000 by summer.", "I've set my savings target at 8,000 by summer."),
    ("Our lawyer is Ms. Costa.", "We've fired our lawyer and hired Mr. Brandt."),
]
"""Changes that no rule finds."""
HOLDS = [
    ("We open Tuesday to Saturday, 7:30 to 14:00.", "We now close at 15:00 on Saturdays."),
    ("The library is open on weekdays, 9 to 17.", "On Fridays the library now closes at 15."),
    ("I work on Mondays and Thursdays, 8 to 16.", "I now finish at 13 on Thursdays."),
    ("I live in Leuven and I teach maths.", "I quit teaching, I'm a gardener."),
    ("I keep three cats, and my sister lives next door.", "My sister moved away."),
    ("I had an operation on my knee.", "My knee has healed, I walk without a stick."),
    ("Little acts of kindness can brighten a day.", "You are doing a great thing."),
    ("My friends mean the world to me.", "A lot has happened since we last spoke."),
    ("Mia is six and goes to the Waldorf kindergarten.", "Mia has started swimming lessons at the lido on Mondays."),
    ("I'm Alice, I work as a physiotherapist in Graz.", "I work at the clinic in Klagenfurt now."),
    ("My brother Paul studies medicine in Kiel.", "Paul passed his exam and is a doctor now."),
    ("My husband Erik works as a nurse.", "Erik has changed his job: he is a teacher now."),
    ("I go running every Tuesday and Thursday.", "I no longer run on Tuesdays, my knee hurts."),
    ("I speak French and a bit of Spanish.", "I've stopped taking Spanish lessons, they were too expensive."),
    ("I like my steak medium rare.", "I gave up on vegan food, I'm eating meat again."),
    ("Mum would rather go to Venice than to Trieste.", "I've stopped Slovenian, I do Italian for Venice instead."),
    ("Jonas wants a second cat.", "The cat is now called Moritz, since he turned out to be a boy."),
    ("My girlfriend Hanna lives in Bremen.", "Hanna is moving in with me in June."),
    ("Nora and I are together since 2021.", "Nora and I are getting married in August!"),
    ("Hanna is moving in with me in June.", "Hanna and I got engaged on 17 May 2026!"),
    ("I bake bread every weekend.", "I've switched to a new oven, it's much better."),
    ("My grandmother is 99.", "My grandfather turned 100."),
    ("I can't stand coriander.", "I tried coriander again on 13 March 2026."),
    ("I love oysters.", "Yesterday I was sick after I ate an oyster."),
    ("I swim on Mondays and Fridays before work.", "From April 2026 I work days, 7:30 to 15:00."),
    ("I work at a bakery.", "My boss is Anna."),
    ("My boss is Anna.", "I work at a bakery."),
    ("I work at a bakery.", "I work from home on Fridays."),
    ("I work from home on Fridays.", "I work at a bakery."),
    ("I work at a bakery.", "I started there in 2019."),
    ("Dog is called Kluska, a greyhound mix, nine years old.", "Kluska goes nuts at fireworks, vet gave us a gel."),
    ("I swim on Mondays and Fridays before work.", "I don't drive to work any more, I cycle."),
    ("From April 2026 I work days, 7:30 to 15:00.", "I don't drive to work any more, I cycle."),
    ("I'm learning Sami on Wednesday evenings with a tutor called Ánne.", "I've moved the Sami lessons to Thursdays."),
]
"""Part of what the older statement tells holds, the newer one tells of something else or of the future, or the older
one tells of an event or a feeling, which nothing ends."""


@pytest.fixture(scope="module", params=[RuleUpdateJudge, TrainedUpdateJudge])
def judge(request):
    return request.param()


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_newer_statement_replaces_the_older(judge, older, newer):
    assert judge.judge(older, newer).relation == "replaces"


@pytest.mark.parametrize(("older", "newer"), BOTH)
def test_statements_that_may_both_hold_are_different(judge, older, newer):
    assert judge.judge(older, newer).relation == "different"


@pytest.mark.parametrize(("older", "newer"), SAME)
def test_equal_values_in_another_form_are_the_same(judge, older, newer):
    assert judge.judge(older, newer).relation == "same"


@pytest.mark.parametrize(("older", "newer"), READ)
def test_the_model_finds_changes_that_rules_miss(older, newer):
    assert RuleUpdateJudge().judge(older, newer).relation == "different"
    verdict = TrainedUpdateJudge().judge(older, newer)
    assert verdict.relation == "replaces"
    assert verdict.probability > 0.5


@pytest.mark.parametrize(("older", "newer"), HOLDS)
def test_the_model_leaves_what_holds_in_part_and_what_cannot_end(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "different"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I drink no alcohol.", "I ordered a non-alcoholic beer."),
        ("I don't eat nuts.", "The nut-free cake is good."),
        ("I have no sugar.", "I drink sugar-free cola."),
        ("I avoid sugar.", "I chew sugar-free gum."),
        ("I don't smoke.", "The hotel is smoke-free."),
        ("I'm on a diet.", "My diet is low-carb, on my doctor's advice."),
        ("My boss is Markus.", "My boss goes to work by tram."),
        ("We eat no gluten.", "Everything here is free of gluten."),
        ("I have MS.", "I'm healthy and strong."),
        ("I manage a team of five.", "Two of my team are on parental leave now."),
        ("We keep six hens.", "Most of the hens have stopped laying for the winter."),
        ("I have a tattoo of a heron.", "I decided against a second tattoo."),
        ("My best friend is Amira.", "Amira quit her job at the bank."),
        ("I like my coffee with cardamom.", "The café stopped serving cardamom coffee."),
        ("My husband Erik works as a nurse.", "Jonas has changed his mind: he stays."),
        ("My sister Ingrid lives in Tromsø.", "Mette is expecting her first baby."),
        ("The workshop is open from 9 to 16 on weekdays.", "The workshop will be painted dark blue, not green."),
        ("The workshop opens at 10.", "I've decided: the workshop will be painted blue instead of green."),
        ("I take the tram to work.", "The tram was cancelled today so I took a taxi."),
        ("I usually get up at 6.", "I got up at 9 today, felt great."),
        ("I work with Ben.", "Ben got promoted."),
        ("I play chess with Ben.", "Ben became a father."),
        ("I usually get up at 6.", "On 13 March 2026 I got up at 9."),
        ("We pay 900 euros of rent.", "The rent stays the same, but the heating is now included."),
        ("My hours are 9 to 5.", "I have a new boss, but my hours haven't changed."),
        ("I always have tea for breakfast.", "I had a smoothie this morning."),
        ("We meet for cards every Friday.", "We played charades last Friday instead of cards."),
        ("Tom eats raw fish.", "Tom eats fried eggs."),
        ("Here's a picture of me at the food bank.", "The pic takes me back."),
        ("I take my kids to school at 8.", "I pick my kids up at 3."),
        ("We have a dog called Rufus.", "We've started taking Rufus to puppy school."),
    ],
)
def test_the_model_is_not_asked_about_what_rules_know_to_hold(older, newer):
    assert TrainedUpdateJudge(alone=0.0, agreed=0.0).judge(older, newer).relation == "different"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We keep six hens.", "I sold all our hens."),
        ("My best friend is Amira.", "Amira and I fell out, we don't talk any more."),
        ("I like my coffee with cardamom.", "I don't like cardamom in my coffee any more."),
        ("My husband works as a nurse.", "My husband has changed his job: he is a teacher now."),
        ("I'm learning Slovenian with an app, twenty minutes a day.", "I've stopped learning Slovenian."),
        ("I drive to work by scooter, a white Vespa.", "I sold my Vespa, I ride a cargo bike now."),
        ("We're getting married in June.", "We are getting married in August, not in June."),
        ("I speak French and Spanish.", "I've forgotten all my French and Spanish, I no longer speak either."),
        ("Jonas wants a second cat.", "Jonas doesn't want a second cat any more, he'd rather have a dog now."),
        ("The workshop will be painted green.", "The workshop will be painted dark blue, not green."),
        ("The workshop opens at 9.", "The workshop opens at 10 instead of 9 now."),
        ("I drink coffee in the morning.", "I drink tea instead of coffee now."),
        ("We drive a Skoda.", "We sold the Skoda and bought a Volvo."),
        ("There'll be twelve of us at dinner.", "It'll be fifteen rather than twelve at dinner."),
        ("I hate running.", "I've come to love running."),
        ("I can't stand coriander.", "I love coriander now."),
        ("I usually drink coffee at breakfast.", "I switched from coffee to tea on 13 March 2026."),
        ("I drive to work.", "I cycle to work now."),
        ("I work with Ben.", "Ben left the company, I work with Ada now."),
        ("Ben is single.", "Ben got married."),
        ("I work nights at the hospital.", "I work days at the hospital now."),
        ("I have a dog called Rex.", "Rex died, I have no dog any more."),
        ("I'm married.", "I got divorced."),
        ("I'm learning the violin.", "I gave up the violin."),
        ("I take the tram to work.", "I gave up on the tram today and bought a bike, I cycle to work now."),
    ],
)
def test_news_of_the_whole_or_of_the_user_ends_what_was_told(older, newer):
    assert TrainedUpdateJudge().judge(older, newer).relation == "replaces"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I'm learning Spanish.", "I have a new Spanish teacher, she's from Bogota."),
        ("I keep bees.", "I've moved the hives behind the barn."),
        ("I'm a freelance illustrator.", "I picked up a new client, a children's publisher."),
    ],
)
def test_a_new_thing_of_another_kind_announces_no_change(older, newer):
    assert RuleUpdateJudge().judge(older, newer).relation == "different"
    assert TrainedUpdateJudge().judge(older, newer).relation == "different"


def test_a_move_ends_a_home_whatever_the_model_finds():
    judge = TrainedUpdateJudge(alone=1.0, agreed=1.0)
    assert judge.judge("My brother lives in Oslo.", "My brother moved to Bergen.").relation == "replaces"
    assert judge.judge("My brother lives in Oslo.", "My sister moved to Bergen.").relation == "different"


@pytest.mark.parametrize(
    "newer",
    ["I moved to Google last month.", "I moved to Marketing at work.", "I moved to Team Blue in January.",
     "In 2015 I moved to Paris for a year."],
)  # fmt: skip
def test_a_move_in_quite_other_words_ends_no_home(newer):
    home, move = map(parse_statement, ("I live in Kiel.", newer))
    assert TrainedUpdateJudge().compare_statements(home, move, similarity=0.3).relation == "different"


def test_a_move_within_a_place_ends_no_home():
    assert TrainedUpdateJudge().judge("I live in Kiel.", "I moved to the front row.").relation == "different"


@pytest.mark.parametrize(
    "newer",
    ["In 2015 my brother moved to Bergen for a year.", "My brother moved to Bergen when he was six.",
     "My brother moved to Bergen until March."],
)  # fmt: skip
def test_a_move_that_may_be_over_ends_a_home_only_if_the_model_agrees(newer):
    assert RuleUpdateJudge().judge("My brother lives in Oslo.", newer).relation == "replaces"
    assert TrainedUpdateJudge(alone=1.0, agreed=1.0).judge("My brother lives in Oslo.", newer).relation == "different"


def test_the_model_must_be_surer_of_statements_that_share_nothing():
    pair = "I can't have kids.", "I'm pregnant!"
    sure = TrainedUpdateJudge(alone=0.75).judge(*pair)
    assert sure.relation == "replaces"
    assert 0.85 < sure.probability < 0.925
    assert TrainedUpdateJudge(alone=0.85).judge(*pair).relation == "different"


def test_small_letters_and_missing_full_stops_change_no_verdict():
    judge = TrainedUpdateJudge()
    (older, newer), *_ = READ
    careless = judge.judge(older[0].lower() + older[1:-1], newer[0].lower() + newer[1:-1])
    assert careless == judge.judge(older, newer)


def test_the_model_must_be_surer_of_statements_in_quite_other_words():
    older, newer = map(parse_statement, ("I sing in the church choir.", "I had to stop, my voice is gone."))
    judge = TrainedUpdateJudge(alone=0.0, agreed=0.0)
    assert judge.compare_statements(older, newer, similarity=0.5).relation == "replaces"
    assert judge.compare_statements(older, newer, similarity=0.1).relation == "different"


def test_a_change_that_the_model_finds_is_logged_with_its_probability_and_can_be_undone(memory):
    add_old_and_new(memory, *READ[0])
    assert memory.maintain().superseded == {"alice": ["old"]}
    entry = next(e for e in memory.audit.events(user_id="alice") if e.action == "supersede")
    assert entry.detail["evidence"]["by"] == "new"
    assert 0.5 < entry.detail["evidence"]["probability"] <= 1
    memory.restore("old", user_id="alice")
    assert memory.maintain().counts()["superseded"] == 0


def test_probabilities_are_checked():
    with pytest.raises(ConfigurationError, match="agreed and alone must be in"):
        TrainedUpdateJudge(alone=0.2, agreed=0.3)


def test_a_statement_longer_than_the_model_reads_is_different():
    assert TrainedUpdateJudge().judge("I live in Berlin. " * 100, "I live in Hamburg now.").relation == "different"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sofia can't eat gluten.", "Sofie can't eat gluten."),
        ("I like it.", "I don't like it."),
        ("The balance is -5.", "The balance is 5."),
        ("Take 5 mg.", "Take 5 g."),
        ("You like tea?", "You like tea."),
        ("I write C.", "I write C++."),
        ("I very much like tea.", "I like tea."),
        ("The fee is 1m.", "The fee is 1 m."),
        ("The race is 5 m.", "The race is 5 minutes."),
        ("I lost 5 pounds.", "I lost £5."),
        ("The router has 5G.", "The router has 5 g."),
    ],
)
def test_a_difference_of_one_word_or_sign_is_not_the_same(one, other):
    assert RuleUpdateJudge().judge(one, other).relation != "same"


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_maintenance_supersedes_what_a_newer_record_replaces(memory, older, newer):
    add_old_and_new(memory, older, newer)
    assert memory.maintain().superseded == {"alice": ["old"]}
    recall = memory.search(f"{older} {newer}", user_id="alice", include_private=True)  # a password is private
    assert [r.id for r in recall.records] == ["new"]


@pytest.mark.parametrize("embedder", [None, "static"])
def test_maintenance_merges_equal_values_in_another_form_whatever_their_cosine(file, clock, embedder):
    with GovernedMemory.open(file, clock=clock, embedder=embedder) as memory:
        for user, pair in enumerate(SAME):
            for text in pair:
                memory.add(text, user_id=user)
                clock.advance(timedelta(hours=1))
        assert {user: len(ids) for user, ids in memory.maintain().merged.items()} == dict.fromkeys(range(len(SAME)), 1)


@pytest.mark.parametrize(("older", "newer"), BOTH)
def test_maintenance_keeps_both_of_different_records(memory, older, newer):
    add_old_and_new(memory, older, newer)
    report = memory.maintain()
    assert (report.counts()["superseded"], report.counts()["merged"]) == (0, 0)
    found = {r.id for text in (older, newer) for r in memory.search(text, user_id="alice").records}
    assert found == {"old", "new"}


OTHER_READERS = [
    ({"metadata": {"project": "oak"}}, {"metadata": {"project": "elm"}}),
    ({"agent_id": "a"}, {"agent_id": "b"}),
    ({"policy_class": "factual"}, {"policy_class": "private"}),
]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"source": "chat_user"}, {"source": "chat_assistant"}),
        ({"source": "chat_user"}, {"source": "doc"}),
        *OTHER_READERS,
    ],
)
def test_a_record_of_less_trust_or_for_other_searches_replaces_nothing(memory, older, newer):
    """What a user said yields only to his own words, and nothing is hidden from a search that finds only the older."""
    memory.add("I live in Berlin.", id="old", **{**LASTING, **older})
    memory.clock.inner.advance(timedelta(hours=1))
    memory.add("I live in Hamburg.", id="new", **{**LASTING, **newer})
    assert "old" in [r.id for r in memory.search("Where do I live?", user_id="alice").records]
    assert memory.maintain().superseded == {}


@pytest.mark.parametrize(("one", "other"), OTHER_READERS)
def test_equal_records_for_other_searches_stay_apart(memory, one, other):
    memory.add("I live in Berlin.", id="one", **{**LASTING, **one})
    memory.add("I live in Berlin.", id="other", **{**LASTING, **other})
    assert memory.maintain().merged == {}


def test_what_the_user_says_replaces_what_an_assistant_said(memory):
    memory.add("You live in Berlin.", id="old", **{**LASTING, "source": "chat_assistant"})
    memory.clock.inner.advance(timedelta(hours=1))
    memory.add("You live in Hamburg.", id="new", **{**LASTING, "source": "chat_user"})
    assert memory.maintain().superseded == {"alice": ["old"]}


def test_search_returns_only_the_newer_value_before_maintenance(memory):
    add_old_and_new(memory, "I live in Berlin.", "I live in Hamburg.")
    assert [r.id for r in memory.search("Where do I live?", user_id="alice").records] == ["new"]


def test_latest_of_many_changes_remains(memory, clock):
    for n, city in enumerate(["Berlin", "Hamburg", "Kiel", "Bonn"]):
        memory.add(f"I live in {city}.", id=city, **LASTING)
        memory.add(f"Fact {n}: my colleague {city}son likes tea number {n}.", id=f"f{n}", **LASTING)
        clock.advance(timedelta(days=1))
    memory.maintain()
    assert {r.id for r in memory.list(user_id="alice") if r.superseded_by is None and r.id[0] != "f"} == {"Bonn"}


@pytest.mark.parametrize(("agreed", "hidden"), [(1.0, False), (0.0, True)])
def test_search_hides_nothing_that_maintenance_keeps(file, clock, agreed, hidden):
    """The rules find a change here; the model must agree, in a search as in maintenance."""
    old, new = "My home is in Kyoto.", "I gave up my Kyoto home."
    with GovernedMemory.open(file, clock=clock, updates=TrainedUpdateJudge(alone=1.0, agreed=agreed)) as memory:
        add_old_and_new(memory, old, new, source="chat_user")
        assert RuleUpdateJudge().judge(old, new).relation == "replaces"
        found = {r.id for r in memory.search("Where is my Kyoto home?", user_id="alice").records}
        superseded = memory.maintain().superseded
        assert (found, superseded) == (({"new"}, {"alice": ["old"]}) if hidden else ({"new", "old"}, {}))


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("My dentist is Dr Huber in Graz.", "I have a new appointment with my dentist.", "Who is my dentist?"),
        ("My doctor is Dr Lang.", "My doctor has a new receptionist.", "Who is my doctor?"),
        ("My dog is called Balu.", "Balu now gets 250 g of dry food a day.", "What is my dog called?"),
    ],
)
def test_news_takes_no_place_of_an_older_memory_that_answers(memory, older, newer, question):
    add_old_and_new(memory, older, newer)
    assert [r.id for r in memory.search(question, user_id="alice", limit=1).records] == ["old"]
