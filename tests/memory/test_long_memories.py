"""A long memory is found by any of its passages, and its passages share its isolation, expiry and erasure."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import numpy as np
import pytest

from meve._formulas import normalize
from meve.conversation import Turn
from meve.errors import StaleWarning, StoreCorruptError
from meve.memory import GovernedMemory, Policy
from meve.memory._passages import MAX_PASSAGES, PASSAGE, split_passages
from meve.memory._recall.relevance import limit_relevance
from meve.memory._write.extraction import FactDecision
from meve.memory.policy import Relevance
from meve.memory.records import SHARED, user_key
from meve.memory.stores._sql.rows import pack_values, unpack_values
from meve.memory.stores.protocol import RecordQuery
from meve.memory.stores.sqlite.store import SqliteStore
from meve.memory.turns import TurnRules, add_turns
from tests.memories import (
    KEY,
    LASTING,
    FixedExtractor,
    LastLetters,
    archive,
    as_plain,
    change_sealed,
    open_memory,
    open_store,
)

FILLER = [
    "The roof tiles are from 1974 and should last for another ten years, unless a storm lifts the ridge.",
    "Blown-in insulation fills the gap between the two shells of brick, and takes two days with a small crew.",
    "A drain along the east wall has to come first, because the cellar stays damp until the gutter works again.",
    "The meter cupboard is replaced in summer, and the cloth-covered wires on the ground floor go with it.",
    "New radiators are wanted in six rooms; the pipes may stay where they are, says the heating engineer.",
]
FILLER = [f"Note {n}. {text}" for n in range(4) for text in FILLER]
LAST = "Granny lets her sourdough ferment overnight next to the oven."
QUESTION = "How was the bread leavened?"
LONG = "\n\n".join([*FILLER, LAST])


def add_distractors(memory, count=30):
    for n in range(count):
        memory.add(f"Bread and cake number {n} from the bakery.", id=f"d{n}", **LASTING)


def read_passages(file, table="memories"):
    store = open_store(file)
    with store.reading() as snapshot:
        found = [
            stored
            for user in snapshot.users()
            for stored in snapshot.records(RecordQuery(user=user, archived=table == "archive"))
        ]
    store.close()
    return {stored.record.id: stored.passages.tobytes() for stored in found if stored.passages.size}


def passage_vectors(memory, user="s:alice"):
    """Return the passage vectors of a user's index, without removed ones, shape (m, d)."""
    units = memory._searcher.indexes.of(user)._passages._units.values
    return units[np.abs(units).sum(axis=1) > 0]


def find(memory, question):
    """Return the hits of alice's index."""
    index = memory._searcher.indexes.of("s:alice")
    vector = memory._runtime.embed_query(question, index.model)
    return index.find_relevant(question, vector, 50, np.ones(len(index._stored), dtype=bool), Relevance())


def cosine_of(memory, record_id, question=QUESTION):
    return next(hit.cosine for hit in find(memory, question) if hit.passage.id == record_id)


def test_long_memory_is_found_by_its_last_paragraph(memory):
    memory.add("\n\n".join(FILLER), id="without", **LASTING)
    memory.add(LONG, id="with", **LASTING)
    stored = memory._runtime.store.find("s:alice", "with")
    whole = memory._runtime.embed_query(QUESTION, stored.model) @ stored.vector
    assert cosine_of(memory, "with") > max(cosine_of(memory, "without"), whole + 0.05)
    first, *_ = memory.search(QUESTION, user_id="alice", max_tokens=2_000).records
    assert (first.id, first.text) == ("with", LONG)


def test_passages_cover_the_text_and_are_limited():
    assert split_passages("x" * PASSAGE) == []
    assert "".join("".join(split_passages(LONG)).split()) == "".join(LONG.split())
    assert all(len(passage) <= PASSAGE for passage in split_passages(LONG))
    assert 1 < len(split_passages("word " * 20_000)) <= MAX_PASSAGES


@pytest.mark.parametrize("way", ["delete", "forget", "expire", "update", "delete archived"])
def test_erased_memory_leaves_no_passage(memory, file, clock, way):
    add_distractors(memory, 3)
    memory.add(LONG, id="long", user_id="alice", source="doc", policy_class="factual", ttl=timedelta(days=1))
    stored = memory._runtime.store.find("s:alice", "long")
    vectors = [each.tobytes()[:32] for each in stored.passages]
    memory.search(QUESTION, user_id="alice")
    assert len(vectors) > 1
    assert len(passage_vectors(memory)) == len(vectors)
    if way == "delete archived":
        archive(memory, "s:alice", "long")
    if way.startswith("delete"):
        memory.delete("long", user_id="alice")
    elif way == "forget":
        memory.forget_user(user_id="alice")
    elif way == "expire":
        clock.advance(timedelta(days=1))
        assert "long" not in [r.id for r in memory.search(QUESTION, user_id="alice").records]
        memory.maintain()
    else:
        memory.update("long", user_id="alice", text="Nothing.")
    assert len(passage_vectors(memory)) == 0
    assert read_passages(file) == {}
    assert memory._searcher.indexes.of("s:alice").words.shares("sourdough", 1).tolist() == [0]
    assert not any(vector in each.read_bytes() for each in file.parent.iterdir() for vector in vectors)
    assert memory.audit.verify().ok


def test_passages_are_isolated(memory):
    memory.add(LONG, id="long", **LASTING)
    memory.add("\n\n".join(FILLER), id="mine", **{**LASTING, "user_id": "bob"})
    memory.add(LONG, id="private", **{**LASTING, "policy_class": "private"})
    assert [r.id for r in memory.search(QUESTION, user_id="bob", max_tokens=9_000).records] == ["mine"]
    assert "private" not in [r.id for r in memory.search(QUESTION, user_id="alice", max_tokens=9_000).records]
    assert len(passage_vectors(memory, SHARED)) == 0


def test_changed_memory_is_found_by_its_new_passages_only(memory):
    add_distractors(memory, 3)
    memory.add(LONG, id="long", **LASTING)
    before = cosine_of(memory, "long")
    memory.update("long", user_id="alice", text="\n\n".join(FILLER))
    memory.add("\n\n".join(FILLER), id="fresh", **LASTING)
    assert cosine_of(memory, "long") == pytest.approx(cosine_of(memory, "fresh"), abs=1e-6)
    assert cosine_of(memory, "long") < 0.9 * before
    memory.update("long", user_id="alice", text=LONG)
    assert cosine_of(memory, "long") == pytest.approx(before, abs=1e-3)


def test_passages_survive_reopening_archive_and_restore(memory, file, clock):
    memory.add(LONG, id="long", **LASTING)
    passages = memory._runtime.store.find("s:alice", "long").passages
    archive(memory, "s:alice", "long")
    memory.close()
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as again:
        archived = again._runtime.store.find("s:alice", "long")
        assert archived.record.archived
        np.testing.assert_array_equal(archived.passages, passages)
        again.restore("long", user_id="alice", reason="needed")
        np.testing.assert_array_equal(again._runtime.store.find("s:alice", "long").passages, passages)
        assert cosine_of(again, "long") > 0.3


def test_search_compares_no_long_memories(memory):
    for where in ("Lyon", "Paris"):
        memory.add(f"{LONG}\n\nI live in {where}.", id=where, **LASTING)
    found = memory.search("Where do I live?", user_id="alice", max_tokens=9_000).records
    assert {record.id for record in found} == {"Lyon", "Paris"}
    assert memory._searcher.indexes.of("s:alice").compared._statements == {}


def test_messages_have_no_passages(memory, file):
    memory.messages.add("talk", [{"text": LONG}], user_id="alice")
    assert read_passages(file) == {}


def test_file_of_version_5_is_migrated_and_maintenance_adds_passages(file, clock, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)  # as before there were keys
        memory = GovernedMemory.open(file, clock=clock, audit_key=KEY)
    memory.add(LONG, id="long", **LASTING)
    memory.add(LONG, id="old", **{**LASTING, "user_id": "bob"})
    archive(memory, "s:bob", "old")
    whole = {name: memory.get(name, user_id=user) for name, user in (("long", "alice"), ("old", "bob"))}
    best, verified = cosine_of(memory, "long"), memory.audit.verify()
    memory.close()
    as_version_5(file)
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as migrated:
        assert {name: migrated.get(name, user_id=r.user_id) for name, r in whole.items()} == whole
        assert cosine_of(migrated, "long") < 0.9 * best
        migrated.maintain()
        assert cosine_of(migrated, "long") == pytest.approx(best, abs=1e-3)
        assert migrated.get("long", user_id="alice") == whole["long"]
        assert migrated.audit.verify() == verified
        assert migrated.delete("old", user_id="bob").erased == ("old",)


def as_version_5(file):
    """Turn a file into one of version 5 of the schema, which had no passages and no models."""

    def without_passages(body):
        (*values, _model, _outcomes, _outline, size), halves = unpack_values(body)
        return pack_values(values, halves[:size])

    as_plain(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.create_function("without_passages", 1, without_passages)
        connection.execute("UPDATE archive SET body = without_passages(body)")
        for column in ("model", "passages"):
            connection.execute(f"ALTER TABLE memories DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 5")


def test_damaged_passages_are_reported(memory, file):
    memory.add(LONG, id="long", **LASTING)
    change_sealed(file, "alice", "long", passages=b"\0\1")
    with pytest.raises(StoreCorruptError, match="damaged"):
        memory.search(QUESTION, user_id="alice")
    change_sealed(file, "alice", "long", passages=b"\0\x7c" * memory._runtime.embedder.dimension)
    with pytest.raises(StoreCorruptError, match="vector of a memory is damaged"):
        memory.search(QUESTION, user_id="alice")


def test_neighbours_add_words_and_no_cosine(memory):
    """A turn is raised by a neighbour that contains the question's words, not by one that is only similar."""
    for n, text in enumerate(["Caroline went away.", "She painted a sunset.", "Fine."]):
        memory.add(text, id=f"a{n}", session_id="a", **LASTING)
    hits = {hit.passage.id: hit for hit in find(memory, "What sunset did Caroline paint?")}
    assert hits["a2"].words == 0
    assert hits["a2"].relevance > hits["a2"].cosine / 2 + 0.1
    for hit in find(memory, "artworks of dusk"):
        assert hit.relevance == pytest.approx(hit.cosine / 2, abs=1e-6)


def test_relevance_above_1_keeps_its_order():
    sums = np.array([0.0, 0.5, 0.8, 0.81, 1.0, 2.0, 9.0])
    limited = limit_relevance(sums)
    assert limited[:3].tolist() == sums[:3].tolist()
    assert (np.diff(limited) > 0).all()
    assert limited[-1] < 1


def test_vectors_of_passages_count_for_the_limit_of_ram(file, clock):
    policy = Policy.from_dict({"limits": {"vectors": 10}})
    with GovernedMemory.open(file, clock=clock, audit_key=KEY, policy=policy) as memory:
        for user in ("alice", "bob"):
            memory.add(LONG, **{**LASTING, "user_id": user})
            memory._searcher.indexes.of(user_key(user))
        assert list(memory._searcher.indexes._indexes) == [user_key("bob")]


def parts_of(memory):
    """Return the models and passages of alice's records, by id."""
    return {s.record.id: (s.model, s.passages) for s in memory._runtime.store.all_records("s:alice")}


def test_reembedding_renews_passages(file):
    expected = normalize(LastLetters().embed_passages(split_passages(LONG)))
    with open_memory(file) as memory:
        memory.add(LONG, id="long", **LASTING)
        memory.add(LONG, id="old", **LASTING)
        memory.add("Nothing much.", id="short", **LASTING)
        memory.messages.add("talk", [{"text": LONG}], user_id="alice")
        archive(memory, "s:alice", "old")
        assert parts_of(memory)["long"][1].shape == (len(expected), 27)
        memory.reembed(LastLetters())
        assert {model for model, _ in parts_of(memory).values()} == {"words-by-last-letter 30"}
        parts = {name: passages for name, (_, passages) in parts_of(memory).items() if len(passages)}
        assert sorted(parts) == ["long", "old"]
        for passages in parts.values():
            np.testing.assert_allclose(passages, expected, atol=1e-3)
        best = max(float((expected @ LastLetters().embed_query(QUESTION)).max()), whole_cosine(memory, "long"))
        assert cosine_of(memory, "long") == pytest.approx(best, abs=1e-3)


def whole_cosine(memory, record_id):
    stored = memory._runtime.store.find("s:alice", record_id)
    return float(normalize(stored.vector) @ memory._runtime.embed_query(QUESTION, stored.model))


def test_passages_of_another_model_have_no_part_in_the_ranking(file):
    with open_memory(file) as memory:
        memory.add(LONG, id="long", **LASTING)
        model, passages = parts_of(memory)["long"]
    with open_memory(file, embedder=LastLetters(), reembed=True) as memory:
        memory.add("Bread.", id="late", **LASTING)
        memory.add(LONG, id="later", **LASTING)
        with pytest.warns(StaleWarning, match="by words alone"):
            assert cosine_of(memory, "long") == 0.0
        assert cosine_of(memory, "later") > 0
        assert len(passage_vectors(memory)) == len(passages)
        memory.maintain()
        assert parts_of(memory)["long"][0] == model
        np.testing.assert_array_equal(parts_of(memory)["long"][1], passages)
        memory.reembed()
        assert cosine_of(memory, "long") == pytest.approx(cosine_of(memory, "later"), abs=1e-6)


@pytest.mark.parametrize("way", ["import", "supersede", "turn"])
def test_every_way_of_writing_embeds_passages(file, way):
    with open_memory(file) as memory:
        if way == "import":
            memory.import_({"results": [{"id": "new", "memory": LONG, "user_id": "alice"}]})
        elif way == "supersede":
            memory.add("Old.", id="old", **LASTING)
            memory.supersede("old", LONG, user_id="alice", id="new")
        else:
            add = FactDecision(action="add", text=LONG, reason="told")
            turn = Turn(id="t", speaker="user", text=LONG)
            add_turns(memory, [turn], user_id="alice", session_id="s", rules=TurnRules(extractor=FixedExtractor(add)))
        long = [parts for name, (_, parts) in parts_of(memory).items() if name != "old"]
        assert {len(parts) for parts in long} == {len(split_passages(LONG))}
