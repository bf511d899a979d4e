"""Test filters of metadata: accepted values, excluded values and bounds."""

import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError
from meve.filters import Filter
from tests.fake_components import make_components

BOOK = {"year": 2001, "date": "2001-05-04", "tags": ["red", "blue"], "open": True, "price": 2.5, "none": None}


@pytest.mark.parametrize(
    ("where", "is_admitted"),
    [
        ({"year": {"$gt": 2000}}, True),
        ({"year": {"$gt": 2001}}, False),
        ({"year": {"$gte": 2001, "$lt": 2002}}, True),
        ({"year": {"$gte": 2001, "$lt": 2001}}, False),
        ({"year": {"$lte": 2001.0}}, True),
        ({"price": {"$lt": 3}}, True),
        ({"date": {"$gte": "2001-05-04", "$lte": "2001-05-31"}}, True),
        ({"date": {"$gt": "2001-06"}}, False),
        ({"year": {"$gt": "1999"}}, False),  # a text doesn't bound a number
        ({"date": {"$gt": 1999}}, False),
        ({"open": {"$gte": 0}}, False),  # True is no number
        ({"none": {"$lt": 1}}, False),
        ({"tags": {"$gt": "pink"}}, True),  # any of its values
        ({"year": {"$in": [2000, 2001]}}, True),
        ({"year": {"$in": []}}, False),
        ({"year": {"$eq": 2001}}, True),
        ({"year": {"$ne": 2001}}, False),
        ({"year": {"$ne": 2002}}, True),
        ({"tags": {"$nin": ["blue", "green"]}}, False),
        ({"tags": {"$nin": ["green"]}}, True),
        ({"missing": {"$ne": 1}}, False),  # a filter never admits what it can't judge
        ({"missing": {"$nin": []}}, False),
        ({"year": {}}, True),
        ({"year": {"$gt": 2000}, "tags": "green"}, False),
        ({"tags": {"$in": ["red"], "$nin": ["blue"]}}, False),
    ],
)
def test_operators_admit_or_exclude(where, is_admitted):
    assert Filter(where).matches(BOOK) is is_admitted


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": {"gt": 3}}, "must use [$]eq, [$]ne, [$]in, [$]nin, [$]gt, [$]gte, [$]lt, [$]lte, got 'gt'"),
        ({"year": {"$gt": True}}, "[$]gt of 'year' must be a number or text, got True"),
        ({"year": {"$gt": None}}, "must be a number or text, got None"),
        ({"year": {"$lt": float("nan")}}, "must be a number or text, got nan"),
        ({"year": {"$gt": [1]}}, "must be a number or text"),
        ({"year": {"$in": 3}}, "[$]in of 'year' must be a list of values, got 3"),
        ({"year": {"$eq": [3]}}, "the filter must map names"),
        ({"year": [{"$gt": 3}]}, "the filter must map names"),
    ],
)
def test_invalid_operator_or_value_is_explained(where, message):
    with pytest.raises(ConfigurationError, match=message):
        Filter(where)


def test_keys_differ_where_answers_do():
    """Results of filters are cached by key."""
    filters = [
        {"a": 1},
        {"a": "1"},
        {"a": {"$ne": 1}},
        {"a": {"$gt": 1}},
        {"a": {"$gt": "1"}},
        {"a": {"$gte": 1}},
        {"a": {"$gt": 1, "$lt": 2}},
    ]
    assert len({Filter(where).key for where in filters}) == len(filters)
    assert Filter({"a": 1}).key == Filter({"a": [1.0]}).key


def test_range_holds_in_every_phase():
    passages = [Passage(id=str(year), text=f"Blue sky {year}.", metadata={"year": year}) for year in range(1990, 2010)]
    retriever = Retriever.from_passages(passages, **make_components())
    context = retriever.retrieve("blue sky", where={"year": {"$gte": 2005, "$ne": 2007}}, fallback_floor=0.0)
    assert {c.id for c in context.trace.candidates} == {"2005", "2006", "2008", "2009"}


def test_name_that_no_passage_has_is_warned_of_once_and_stands_in_the_trace(caplog):
    passages = [Passage(id=str(year), text=f"Blue sky {year}.", metadata={"year": year}) for year in (1990, 2010)]
    retriever = Retriever.from_passages(passages, **make_components())

    def warnings(where):
        phase = retriever.retrieve("blue sky", where=where).trace.phases[0]
        return phase.settings.get("warnings", [])

    [sentence] = warnings({"yaer": {"$gte": 2000}})
    assert sentence == "no passage has 'yaer' in its metadata, which the filter names; did you mean 'year'?"
    assert warnings({"yaer": {"$gte": 2000}}) == [sentence]
    assert [record.getMessage() for record in caplog.records] == [sentence]
    assert warnings({"author": "x", "year": 1990}) == [
        "no passage has 'author' in its metadata, which the filter names; known: year"
    ]
    assert warnings({"year": 1800}) == warnings(lambda metadata: "yaer" in metadata) == []
    retriever.add([Passage(id="new", text="A blue one.", metadata={"author": "x"})])
    assert warnings({"author": "x"}) == []
