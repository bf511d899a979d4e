"""Test which similar passages count as duplicates."""

from collections import Counter

import pytest

from meve import Passage, Retriever
from meve.components._repeated_text import RepeatedText
from meve.memory._contradiction.claims import have_equal_words, parse_claim
from tests.components.copies import copied, differing
from tests.fake_components import make_components

GUIDE = (
    "Set the timeout when you open the connection, since the driver reads it only once. A value that is too small "
    "makes slow queries fail, and the log then shows a warning with the name of the table that was being read."
)


def relate(one, other):
    return RepeatedText()(Passage(id="one", text=one), Passage(id="other", text=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Revenue in 2022 was 5 million euros.", "Revenue in 2021 was 5 million euros."),
        ("Floor 2 seats eight.", "Floor 1 seats eight."),
        ("The switch may not be turned on.", "The switch may be turned on."),
        ("The heating is switched off.", "The heating is switched on."),
        ("Bob manages Alice.", "Alice manages Bob."),
        ("The bag weighs 5 lb.", "The bag weighs 5 kg."),
        ("Anna runs the shop in Turin.", "Marco runs the shop in Turin."),
        ("Don't close the valve.", "Close the valve."),
        ("We open on Thursday at nine.", "We open on Tuesday at nine."),
        ("Parking here is illegal.", "Parking here is legal."),
        ("Johnston signed the contract.", "Johnson signed the contract."),
        ("Admins may delete projects.", "Only admins may delete projects."),
        ("You can't export the data. You can't import it.", "You can export the data. You can't import it."),
        ("It requires Redis <= 7.2.", "It requires Redis >= 7.2."),
        ("The fee is $5.", "The fee is €5."),
        ("It falls to -5 degrees.", "It falls to 5 degrees."),
        ("Man darf hier nicht rauchen.", "Man darf hier rauchen."),
        ("这里不可以停车", "这里可以停车"),
        ("👍", "Agreed."),
        ("Deploy on Friday 👍", "Deploy on Friday 👎"),
        ("Flights to Oslo leave hourly.", "Flights from Oslo leave hourly."),
        ("The letter was sent by Anna to Bob.", "The letter was sent to Anna by Bob."),
        ("He pays her rent.", "She pays his rent."),
        ("He should sign.", "He would sign."),
        ("The pump on level 3 works while it rains.", "The pump on level 3 works because it rains."),
        ("Is the pump on?", "The pump is on."),
        ("x = a + b", "x = a - b"),
        ("Take 1/2 cup.", "Take 1-2 cups."),
        ("Hepatitis A is spread by water.", "Hepatitis is spread by water."),
        ("Read the docs (PDF).", "Read the docs."),
        ("The patient has blood type O+.", "The patient has blood type O-."),
        ("Essays of grade A- pass.", "Essays of grade A pass."),
        ("The toy is for ages 3+ only.", "The toy is for ages 3 only."),
        ("A. Smith won the race.", "B. Smith won the race."),
        ("Add .5 litres of oil.", "Add 5 litres of oil."),
        ("if (!ready) stop", "if (ready) stop"),
        ("stop if a && b", "stop if a || b"),
        ("y = x ** 2", "y = x * 2"),
        ("The walk is ~5 km.", "The walk is 5 km."),
        ("~~The offer ends on Monday.~~", "The offer ends on Monday."),
        ("The gap is 5 ± 2 mm.", "The gap is 5 2 mm."),
        ("Press \u2318 and C.", "Press \u2303 and C."),
        (GUIDE.replace("slow queries", "slow remote queries"), GUIDE),
        ("Members get a discount of ten per cent.", "Former members get a discount of ten per cent."),
        (GUIDE.replace("too small", "too large"), GUIDE),
    ],
)
def test_text_with_another_fact_is_no_duplicate_for_passages_nor_for_memories(one, other):
    assert relate(one, other) == relate(other, one) == ""
    assert not have_equal_words(parse_claim(one), parse_claim(other))


@pytest.mark.parametrize("added", ["This is deprecated.", "Forbidden:", "Applies to Windows.", "Restart the clients."])
def test_passage_that_says_more_is_no_duplicate(added):
    assert relate(f"{GUIDE} {added}", GUIDE) == ""
    assert relate(f"{added} {GUIDE}", GUIDE) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GUIDE, GUIDE),
        (GUIDE.upper(), GUIDE),
        (GUIDE.replace(", ", " \u2014 "), GUIDE),
        (GUIDE.split(". ")[0], GUIDE),
        (GUIDE, f"Print this page. {GUIDE}"),
        ("Skip to main content\n\nHome > Docs\n\n" + GUIDE + "\n\nWas this page helpful?", GUIDE),
        (" ".join(GUIDE.split()[:30]) + " ...", GUIDE),
        (GUIDE[GUIDE.index("since") :], GUIDE),
    ],
)
def test_passage_that_only_repeats_is_a_duplicate(one, other):
    assert relate(one, other) == "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A tomato wants the sun.", "Tomato wants a sun."),
        ("We don't ship on Sundays", "we do not ship on Sundays."),
        ("Anna\u2019s e-mail is private.", "Anna's email is private."),
        ("The rent is 1,200 euros.", "The rent is 1200 euros!"),
    ],
)
def test_texts_of_equal_words_are_duplicates_for_passages_and_for_memories(one, other):
    assert relate(one, other) == relate(other, one) == "same"
    assert have_equal_words(parse_claim(one), parse_claim(other))


def test_address_of_a_link_is_not_lost():
    linked = GUIDE.replace("a warning", "[a warning](https://example.org/w)")
    assert relate(linked, GUIDE) == ""
    assert relate(linked.replace("(https://example.org/w)", ""), linked) == "same"


def test_texts_of_page_furniture_only_are_different():
    assert relate("Menu", "Search") == ""
    assert not have_equal_words(parse_claim("..."), parse_claim("!!"))


def test_words_strewn_over_a_text_are_no_duplicate():
    text = "Reset your phone. Keep the cable away. A router is part of every flat, the meter hangs near the hall."
    assert relate("Reset the router near the hall.", text) == ""


def test_title_counts_for_short_texts_only():
    def titled(title, text):
        return Passage(id=title, title=title, text=text)

    judge = RepeatedText()
    assert judge(titled("fetch.depth", "Default: 3"), titled("clone.jobs", "Default: 3")) == ""
    assert judge(titled("Manual, page 7", GUIDE), titled("Handbook", GUIDE)) == "same"


@pytest.mark.parametrize("exact", [True, False])
def test_retrieval_drops_repeated_text_and_keeps_another_fact(exact):
    texts = ["room 1 seats eight people", "room 1 seats eight people", "room 2 seats eight people"]
    retriever = Retriever.from_texts(texts, ids=["a", "copy", "other"], **make_components())
    options = {"exact": exact, "redundancy": 0.5, "threshold": 0.3}
    context = retriever.retrieve("how many people fit into room", **options)
    assert {p.passage.id for p in context.passages} == {"a", "other"}
    similar = retriever.retrieve("how many people fit into room", duplicates="similar", **options)
    assert {p.passage.id for p in similar.passages} == {"a"}


@pytest.mark.parametrize("kind", ["number", "name", "negation", "unit", "role"])
def test_of_200_pairs_that_differ_in_a_fact_hardly_any_is_a_copy(kind):
    pairs = [(Passage(id=f"{n}a", text=one), Passage(id=f"{n}b", text=other))
             for n, (one, other) in enumerate(differing(kind, 200))]  # fmt: skip
    assert all(one.text != other.text for one, other in pairs)
    wrong = [(one.text, other.text) for one, other in pairs if RepeatedText()(one, other)]
    assert len(wrong) <= 1, wrong[:3]


def test_of_400_copies_of_documentation_nearly_all_are_recognised():
    pairs = list(copied(400))
    missed = [
        (kind, copy)
        for n, (kind, copy, text) in enumerate(pairs)
        if not RepeatedText()(Passage(id=f"{n}a", text=copy), Passage(id=f"{n}b", text=text))
    ]
    assert len(missed) <= 0.05 * len(pairs), (Counter(kind for kind, _ in missed), missed[:2])
