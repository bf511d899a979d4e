"""Maintenance compares each pair of memories once, and goes on where a limit stopped it."""

import random
import shutil

import pytest

from meve.errors import ModelError
from meve.memory import GovernedMemory, Policy, UpdateVerdict
from tests.memories import open_memory
from tests.memory.maintaining_child import maintain_all
from tests.warm_process import warm_process

THINGS = ("oak", "elm", "ash", "fir", "yew", "box", "bay")
EVERY_PAIR = len(THINGS) * (len(THINGS) - 1) // 2


class NotingJudge:
    """Finds every pair different, and notes it."""

    def __init__(self):
        self.pairs = []

    def judge(self, older, newer):
        self.pairs.append(frozenset((older, newer)))
        return UpdateVerdict(relation="different")


@pytest.fixture
def judge():
    return NotingJudge()


def fill(memory, things=THINGS):
    for thing in things:
        memory.add(f"The {thing} stands in the garden.", user_id="alice", id=thing)


def with_limit(most):
    return Policy.from_dict({"merging": {"nominate": 0.0, "max_pairs": most}})


def test_second_maintenance_compares_only_what_changed(file, clock, judge):
    with open_memory(file, clock=clock, policy=with_limit(1_000), updates=judge) as memory:
        fill(memory)
        memory.maintain()
        assert len(judge.pairs) == len(set(judge.pairs)) == EVERY_PAIR
        memory.maintain()
        assert len(judge.pairs) == EVERY_PAIR
        memory.update("oak", user_id="alice", text="The oak fell in the storm.")
        memory.maintain()
        assert len(judge.pairs) == EVERY_PAIR + len(THINGS) - 1
        assert all("The oak fell in the storm." in pair for pair in judge.pairs[EVERY_PAIR:])


def test_limit_leaves_pairs_for_the_next_maintenance_of_any_process(file, clock, judge):
    left = []
    for _ in range(10):
        with open_memory(file, clock=clock, policy=with_limit(6), updates=judge) as memory:
            if not left:
                fill(memory)
            before = len(judge.pairs)
            left.append(memory.maintain().left_pairs.get("alice", 0))
            assert len(judge.pairs) - before <= 6
            assert left[-1] == EVERY_PAIR - len(judge.pairs)
        if not left[-1]:
            break
    assert left[-1] == 0
    assert len(judge.pairs) == len(set(judge.pairs)) == EVERY_PAIR


@pytest.mark.parametrize("seed", range(3))
def test_no_pair_is_skipped_when_memories_change_meanwhile(file, clock, judge, seed):
    rng = random.Random(seed)
    texts = {}
    with open_memory(file, clock=clock, policy=with_limit(3), updates=judge) as memory:
        for n in range(40):
            thing = rng.choice(THINGS)
            text = f"The {thing} has grown {n} leaves."
            if thing not in texts:
                memory.add(text, user_id="alice", id=thing)
            elif rng.random() < 0.2:
                memory.delete(thing, user_id="alice")
            else:
                memory.update(thing, user_id="alice", text=text)
            texts = {r.id: r.text for r in memory.list(user_id="alice")}
            memory.maintain()
        while memory.maintain().left_pairs:
            pass
    held = sorted(texts.values())
    wanted = {frozenset((a, b)) for a in held for b in held if a != b}
    assert wanted <= set(judge.pairs)


def test_dry_run_and_failed_maintenance_leave_the_pairs_open(file, clock, judge):
    class FailingJudge(NotingJudge):
        def judge(self, older, newer):
            raise OSError("no model")

    with open_memory(file, clock=clock, policy=with_limit(1_000), updates=judge) as memory:
        fill(memory)
        memory.maintain(dry_run=True)
        memory.maintain()
        assert len(judge.pairs) == 2 * EVERY_PAIR
        memory.update("oak", user_id="alice", text="The oak fell.")
        judge.judge = FailingJudge().judge
        with pytest.raises(ModelError):
            memory.maintain()
        del judge.judge
        memory.maintain()
        assert len(judge.pairs) == 2 * EVERY_PAIR + len(THINGS) - 1


def test_another_threshold_or_judge_compares_all_pairs_again(file, clock, judge):
    class OtherJudge(NotingJudge):
        pass

    other = OtherJudge()
    with open_memory(file, clock=clock, policy=with_limit(1_000), updates=judge) as memory:
        fill(memory)
        memory.maintain()
    with open_memory(file, clock=clock, policy=with_limit(1_000), updates=other) as memory:
        memory.maintain()
    assert len(other.pairs) == EVERY_PAIR


def test_progress_holds_neither_users_nor_ids_nor_texts_and_goes_with_the_user(file, clock, judge):
    def progress(memory):
        with memory._runtime.store.backend.reading() as snapshot:
            return snapshot._connection.execute(
                "SELECT name, value FROM meta WHERE tenant = :tenant AND substr(name, 1, 8) = 'compared'"
            ).fetchall()

    with open_memory(file, clock=clock, policy=with_limit(6), updates=judge) as memory:
        fill(memory)
        memory.maintain()
        ((name, value),) = progress(memory)
        assert not any(word in name + value for word in ("alice", "garden", *THINGS))
        memory.forget_user(user_id="alice")
        assert progress(memory) == [(name, "")]
        fill(memory)
        judge.pairs.clear()
        while memory.maintain().left_pairs:
            pass
    assert len(set(judge.pairs)) == EVERY_PAIR


def test_invalid_limit_is_refused():
    with pytest.raises(ValueError, match="max_pairs"):
        with_limit(0)


def test_memory_of_dicts_keeps_its_progress(clock, judge):
    from meve.testing.dict_memory_store import DictMemoryStore

    with GovernedMemory.open(store=DictMemoryStore(), clock=clock, policy=with_limit(1_000), updates=judge) as memory:
        fill(memory)
        memory.maintain()
        memory.maintain()
    assert len(judge.pairs) == EVERY_PAIR


def test_killed_maintenance_goes_on_without_loss(tmp_path, capsys):
    """Only the pairs of a round that was killed are compared again, and what comes out is as if it hadn't been."""
    file, other = tmp_path / "killed" / "memory.db", tmp_path / "undisturbed" / "memory.db"
    file.parent.mkdir()
    with open_memory(file) as memory:
        for n in range(3):
            fill(memory, [f"{thing} has {n} leaves now and" for thing in THINGS])
        records = {record.id for record in memory.list(user_id="alice")}
    shutil.copytree(file.parent, other.parent)
    rounds = maintain_all(other)
    expected = sorted(capsys.readouterr().out.splitlines())
    judged = []
    for lines in (5, 30):
        with warm_process(maintain_all, file) as (process, output):
            judged += [output.readline().strip() for _ in range(lines)]
            process.kill()
    assert maintain_all(file) < rounds, "the rounds before the kill aren't repeated"
    judged += capsys.readouterr().out.splitlines()
    assert rounds > 4
    assert set(judged) == set(expected)
    assert len(judged) <= len(expected) + 2 * 20, (len(judged), len(expected))
    closed = []
    for each in (file, other):
        with open_memory(each) as memory:
            history = memory.list(user_id="alice", include_superseded=True)
            closed.append({(r.id, r.superseded_by, r.text) for r in history})
            assert memory.audit.verify().ok
    assert closed[0] == closed[1]
    assert {record_id for record_id, *_ in closed[0]} == records
    assert sum(by is not None for _, by, _ in closed[0]) == 2 * len(THINGS)
