"""What a user told last of an allergy or an illness ranks above what was told of it before; both are shown."""

from datetime import timedelta

import pytest

from tests.memories import open_memory


@pytest.mark.parametrize(
    ("told", "question"),
    [
        (["I'm allergic to nuts.", "I did a test and I'm not allergic to nuts."], "Am I allergic to nuts?"),
        (["I have a severe nut allergy.", "My nut allergy is gone."], "Am I allergic to nuts?"),
        (["I'm allergic to nuts.", "I outgrew my nut allergy."], "Am I allergic to nuts?"),
        (["I outgrew my nut allergy.", "I did a test and I'm allergic to nuts."], "Am I allergic to nuts?"),
        (["I have asthma.", "The doctor says that my asthma is cured."], "Do I have asthma?"),
    ],
)
def test_latest_statement_of_an_illness_is_first_and_the_others_are_shown(file, clock, told, question):
    assert search(file, clock, told, question) == told[::-1]


@pytest.mark.parametrize(
    "later",
    ["My sister has a nut allergy, it's hereditary.", "I have an allergy to pollen in spring.", "I outgrew my asthma."],
)
def test_illness_of_another_kind_or_person_is_not_put_first(file, clock, later):
    first, *_ = search(file, clock, ["I'm allergic to nuts.", later], "Am I allergic to nuts?")
    assert first == "I'm allergic to nuts."


@pytest.mark.parametrize("change", ["I'm no longer allergic to nuts.", "Turns out I'm not allergic to nuts after all."])
def test_announced_end_of_an_allergy_is_first(file, clock, change):
    first, *_ = search(file, clock, ["I'm allergic to nuts.", change], "Am I allergic to nuts?")
    assert first == change


def search(file, clock, told, question):
    """Return what a search finds of statements told a day apart."""
    with open_memory(file, clock=clock, embedder="static") as memory:
        for text in told:
            memory.add(text, user_id="alice")
            clock.advance(timedelta(days=1))
        memory.maintain()
        return [record.text for record in memory.search(question, user_id="alice").records]
