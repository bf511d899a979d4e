"""Another embedder: new vectors of all records, without a time in which the memory can't be searched."""

import warnings

import pytest

from meve.errors import IndexMismatchError, ModelError, StaleWarning
from meve.memory._recall.query import make_query
from meve.memory.records import SHARED, user_key
from meve.types import Query
from tests.memories import LastLetters, archive, open_memory
from tests.memory.reembed_child import reembed_slowly
from tests.warm_process import warm_process

QUESTION = "Where does the cat sleep?"
USERS = [f"user {n}" for n in range(6)]


def fill(memory, users=("alice", "bob")):
    for user in users:
        memory.add("The cat sleeps in the kitchen.", user_id=user, source="doc", id="cat")
        memory.add("Dinner is at eight.", user_id=user, source="doc", id="dinner")


def models_of(memory, user="alice"):
    key = user if user == SHARED else user_key(user)
    return {s.record.id: s.model for s in memory._runtime.store.all_records(key)}


def cosines_of(memory, user="alice"):
    """Search, and return the cosines by which the search ranked, by id."""
    memory.search(QUESTION, user_id=user)
    query = make_query(QUESTION, user, policy=memory.policy, now=memory.clock.now())
    indexes = [memory._searcher.indexes.of(key) for key in (query.user, SHARED)]
    model = indexes[0].model
    source = memory._searcher._source(query, indexes, model)
    asked = Query(text=QUESTION, vector=memory._runtime.embed_query(QUESTION, model))
    return {c.id: c.scores["dense"] for c in source.search(asked, 10)}


@pytest.fixture
def file(tmp_path):
    with open_memory(tmp_path / "memory.db") as memory:
        fill(memory)
    return tmp_path / "memory.db"


def test_another_embedder_is_refused_and_the_error_names_the_remedy(file):
    with pytest.raises(IndexMismatchError, match=r"meve memory reembed --embedder NAME.*reembed=True\)\.reembed\(\)"):
        open_memory(file, embedder=LastLetters())


def test_reembed_replaces_every_vector_and_logs_it_once_for_each_user(file):
    with open_memory(file) as memory:
        memory.add_shared("The office opens at nine.", id="office")
        memory.items.put(("pets",), "cat", {"name": "Mia"}, user_id="alice")
        memory.messages.add("s", [{"text": "Hello"}], user_id="alice")
        archive(memory, user_key("alice"), "dinner")
        differences = memory.audit.verify().differences  # of the record that was archived without an entry
        report = memory.reembed(LastLetters(), reason="a better model")
        new = "words-by-last-letter 30"
        assert (report.embedder, report.users, report.records) == ("words-by-last-letter", 3, 7)
        assert {*models_of(memory).values(), *models_of(memory, "bob").values()} == {new}
        assert models_of(memory, SHARED) == {"office": new}
        events = memory.audit.events(action="reembed")
        assert sorted((str(e.user_id), e.detail["records"], e.reason) for e in events) == [
            ("None", 1, "a better model"), ("alice", 4, "a better model"), ("bob", 2, "a better model"),
        ]  # fmt: skip
        assert memory.audit.verify().differences == differences
        assert cosines_of(memory)["cat"] == pytest.approx(
            float(LastLetters().embed_query(QUESTION) @ LastLetters().embed_query("The cat sleeps in the kitchen."))
        )
        assert memory.restore("dinner", user_id="alice").text == "Dinner is at eight."
    with pytest.raises(IndexMismatchError, match="words-by-initial"):
        open_memory(file)
    with open_memory(file, embedder=LastLetters()) as memory:
        assert memory.reembed().records == 0
        assert memory.search(QUESTION, user_id="bob").records[0].id == "cat"


def test_before_reembedding_a_memory_of_another_embedder_is_found_by_words_alone(file):
    with open_memory(file, embedder=LastLetters(), reembed=True) as memory:
        with pytest.warns(StaleWarning, match="by words alone"):
            assert cosines_of(memory) == {"cat": 0.0, "dinner": 0.0}
        assert memory.search(QUESTION, user_id="alice").records[0].id == "cat"
        memory.reembed()
        assert cosines_of(memory)["cat"] > 0


def test_a_process_with_the_old_embedder_goes_on_by_words_and_warns(file):
    with open_memory(file) as old, open_memory(file, embedder=LastLetters(), reembed=True) as new:
        assert cosines_of(old)["cat"] > 0
        new.reembed()
        with pytest.warns(StaleWarning, match="words-by-last-letter 30"):
            assert cosines_of(old) == {"cat": 0.0, "dinner": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StaleWarning)
            late = old.add("The cat hides under the bed.", user_id="alice", source="doc", id="late")
            assert late.id in {r.id for r in old.search(QUESTION, user_id="alice").records}
            assert cosines_of(new)["late"] == 0.0
        assert new.reembed().records == 1
        assert cosines_of(new)["late"] > 0


def test_while_users_wait_they_are_found_by_their_old_vectors(file):
    """A user's ranking has vectors of one model: the old one's, then the new one's."""
    seen = []

    def look(done, _):
        key = [user_key("alice"), user_key("bob")]
        models = [memory._searcher.indexes.of(each).model for each in key]
        cosines = [cosines_of(memory, user)["cat"] > 0 for user in ("alice", "bob")]
        seen.append((done, models, cosines))

    with open_memory(file) as memory:
        memory.reembed(LastLetters(), progress=look)
    assert seen[0] == (1, ["words-by-last-letter 30", "words-by-initial 27"], [True, True])
    assert seen[-1][1] == ["words-by-last-letter 30"] * 2


def test_a_text_that_is_written_meanwhile_gets_a_vector_too(file):
    class Interrupted(LastLetters):
        def embed_passages(self, texts):
            if not done:
                done.append(1)
                other.update("cat", user_id="alice", text="The cat sleeps on the roof.")
                other.add("The cat is black.", user_id="alice", source="doc", id="black")
            return super().embed_passages(texts)

    done = []
    with open_memory(file) as other, open_memory(file) as memory:
        memory.reembed(Interrupted())
        assert set(models_of(memory).values()) == {"words-by-last-letter 30"}
        stored = memory._runtime.store.find(user_key("alice"), "cat")
        assert stored.vector == pytest.approx(LastLetters().embed_query("The cat sleeps on the roof."))


def test_of_two_changes_at_once_the_later_one_wins(file):
    with open_memory(file) as memory, open_memory(file) as other:
        with pytest.raises(IndexMismatchError, match="is being embedded with 'words-by-initial 27'"):
            memory.reembed(LastLetters(), progress=lambda done, _: other.reembed() if done == 1 else None)
        assert other.reembed().records == 0
        assert {*models_of(other).values(), *models_of(other, "bob").values()} == {"words-by-initial 27"}


def test_a_failing_embedder_leaves_each_user_with_vectors_of_one_model(file):
    class Failing(LastLetters):
        calls = 0

        def embed_passages(self, texts):
            Failing.calls += 1
            if Failing.calls > 1:
                raise RuntimeError("no memory left on the device")
            return super().embed_passages(texts)

    with open_memory(file) as memory, pytest.raises(ModelError):
        memory.reembed(Failing())
    with open_memory(file) as memory:  # both are accepted until it is done
        assert [len(set(models_of(memory, user).values())) for user in ("alice", "bob")] == [1, 1]
        assert models_of(memory, "bob")["cat"] == "words-by-initial 27"
        assert memory.search(QUESTION, user_id="bob").records[0].id == "cat"


def test_expired_texts_arent_given_to_the_embedder(file, clock):
    texts = []

    class Noting(LastLetters):
        def embed_passages(self, batch):
            texts.extend(batch)
            return super().embed_passages(batch)

    with open_memory(file, clock=clock) as memory:
        memory.clock.inner.advance(memory.policy.rule("factual").ttl * 20)
        memory.reembed(Noting())
    assert texts == []


def test_reembedding_goes_on_after_a_killed_process(tmp_path):
    file = tmp_path / "memory.db"
    with open_memory(file) as memory:
        fill(memory, USERS)
    with warm_process(reembed_slowly, file) as (_, output):
        assert output.readline().split() == ["1", "6"]
        assert output.readline().split() == ["2", "6"]
    with open_memory(file) as old, warnings.catch_warnings():
        warnings.simplefilter("ignore", StaleWarning)
        found = [old.search(QUESTION, user_id=user).records[0].id for user in USERS]
        assert found == ["cat"] * 6
        by_model = [set(models_of(old, user).values()) for user in USERS]
    assert by_model[:2] == [{"words-by-last-letter 30"}] * 2
    assert all(len(each) == 1 for each in by_model)
    assert by_model[-1] == {"words-by-initial 27"}
    with open_memory(file, embedder=LastLetters()) as memory:
        report = memory.reembed()
        assert 2 <= report.records <= 8
        assert [set(models_of(memory, user).values()) for user in USERS] == [{"words-by-last-letter 30"}] * 6
        assert memory.audit.verify().ok
    with pytest.raises(IndexMismatchError):
        open_memory(file)
