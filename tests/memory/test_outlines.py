"""Outlines, by which recalls tell most statements apart without parsing them."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import product

import pytest

from meve.memory._contradiction.outline import read_outline, write_outline
from meve.memory._contradiction.rules import RuleContradiction
from meve.memory._contradiction.statements import Statement
from meve.memory._contradiction.updates import RuleUpdateJudge
from meve.memory.stores._sql import rows
from tests.memories import archive, open_memory, read_stored

STATEMENTS = [
    "I live in Berlin.", "I live in Hamburg.", "I no longer live in Berlin.", "I moved to Hamburg last week.",
    "The shop opens at 9.", "The shop opens at 10.", "The shop opens at nine o'clock.", "Alice eats meat.",
    "Alice doesn't eat meat.", "My boss is Markus.", "Julia is my new boss.", "I love jazz.", "I hate jazz.",
    "I never liked jazz, and I don't think that I will ever like it, whatever my friends tell me about it.",
    "The long meeting with the people from the office in Oslo, of which I told you before, is at 9 now (12)",
    "The long meeting with the people from the office in Oslo, of which I told you before, is at 9 now (13)",
    "In the old house by the lake, my uncle Tom and my aunt Ann eat bread, cheese and meat every day.",
    "In the old house by the lake, my uncle Tom and my aunt Ann don't eat bread, cheese and meat every day.",
    "I live with my two cats and the old dog of my parents in a small flat near the station in Berlin",
    "I live with my two cats and the old dog of my parents in a small flat near the station in Hamburg",
    "My café in Köln isn’t open on Mondays.", "My café in Köln is open on Mondays.", "", "?!",
]  # fmt: skip
RULES = "2 58e9e847409f5665"


def outlined(text):
    return Statement(text, read_outline(write_outline(text), text))


def test_outlines_change_no_verdict_and_spare_the_parsing_of_many():
    judge, unparsed = RuleUpdateJudge(), 0
    for older, newer in product(STATEMENTS, STATEMENTS):
        known = outlined(older), outlined(newer)
        assert judge.compare_in_search(*known) == judge.compare_in_search(Statement(older), Statement(newer))
        unparsed += not any("claim" in vars(statement) for statement in known)
    assert unparsed > len(STATEMENTS)


def test_outlines_tell_which_texts_have_no_values_to_rewrite():
    is_plain = {text: read_outline(write_outline(text), text).is_plain for text in STATEMENTS}
    assert is_plain["I live in Berlin."]
    assert not is_plain["The shop opens at nine o'clock."]
    assert all(outlined(text).plain == Statement(text).plain for text in STATEMENTS)


def test_outline_of_a_version_that_does_not_tell_this_is_read():
    text = "I live in Berlin."
    rules, hashed, letters, flags, count = write_outline(text).split()
    older = read_outline(f"{rules} {hashed} {letters} {int(flags) & 7} {count}", text)
    assert older == read_outline(write_outline(text), text)._replace(is_plain=False)


def test_contradiction_of_ones_own_is_asked_about_every_pair():
    class Own(RuleContradiction):
        def compare_statements(self, one, other):
            return "number: 1 / 2"

    texts = "The long meeting with the people of the office in Oslo is over.", "The tall trees behind our house bloom."
    assert RuleUpdateJudge(Own()).compare_in_search(*map(outlined, texts)).relation == "replaces"
    assert RuleUpdateJudge().compare_in_search(*map(outlined, texts)).relation == "different"


def test_outline_of_another_text_or_of_other_rules_is_ignored():
    outline = write_outline("The shop opens at 9.")
    assert read_outline(outline, "The shop opens at 9.") is not None
    assert read_outline(outline, "The shop opens at 10.") is None
    assert read_outline(f"0{outline}", "The shop opens at 9.") is None
    assert read_outline("", "The shop opens at 9.") is None


def test_rules_that_find_anything_else_get_a_new_number():
    """If this fails, the rules find something else in a text: raise `_RULES` in outline.py, and change the text here.

    Outlines are stored with the records, and those of other rules would be trusted otherwise.
    """
    from hashlib import blake2b

    outlines = "\n".join(map(write_outline, STATEMENTS))
    assert f"{outlines[:1]} {blake2b(outlines.encode(), digest_size=8).hexdigest()}" == RULES


@pytest.mark.parametrize("text", ["The shop opens at 9.", "I live in Lyon."])
def test_outline_is_stored_and_follows_the_text(memory, text):
    store = memory._runtime.store
    memory.add("I moved to Hamburg.", user_id="alice", id="a")
    memory.update("a", user_id="alice", text=text)
    assert store.find("s:alice", "a").outline == write_outline(text)
    archive(memory, "s:alice", "a")
    assert store.find("s:alice", "a").outline == write_outline(text)
    memory.add(f"{text} " * 40, user_id="alice", id="long")
    assert store.find("s:alice", "long").outline == ""


def test_file_of_version_8_is_opened_and_its_records_are_compared_too(file, clock, monkeypatch):
    with monkeypatch.context() as older:
        seal = rows._encode
        older.setattr(rows, "_encode", lambda values: seal([*values[:-2], values[-1]]))
        with open_memory(file, clock=clock) as memory:
            memory.add("I live in Berlin.", user_id="alice", id="old")
            memory.add("I lived in Rome.", user_id="alice", id="older")
            archive(memory, "s:alice", "older")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA user_version = 8")
    clock.advance(timedelta(days=1))
    for _ in range(2):
        with open_memory(file, clock=clock) as memory:
            assert read_stored(file, "alice", "old").outline == read_stored(file, "alice", "older").outline == ""
            assert memory.get("older", user_id="alice").text == "I lived in Rome."
            memory.add("I live in Hamburg.", user_id="alice")
            assert memory.search("Where do I live?", user_id="alice").records[0].text == "I live in Hamburg."
            assert len(memory.search("Where do I live?", user_id="alice").records) == 1
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (9,)
