"""Rules of every graph, in an SQLite file or in PostgreSQL, used by one kernel or by several at once."""

import json
import random
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meve.conversation import PlacedTurn, SlicePolicy
from meve.errors import (
    DuplicateIdError,
    StorageError,
    StoreCorruptError,
    StoreVersionError,
    UnknownIdError,
    ValidationError,
)  # fmt: skip
from meve.service.kernel import TurnEntry
from meve.service.kernel._store import Grant
from tests.service.kernels import TALK, entries, open_kernel

POLICY = SlicePolicy.paper()


def test_slices_are_cached_by_anchor_policy_and_version(place):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries())
        assert not kernel.cut("acme", "c", "7", POLICY).is_cached
        assert kernel.cut("acme", "c", "7", POLICY).is_cached
        assert not kernel.cut("acme", "c", "6", POLICY).is_cached
        assert not kernel.cut("acme", "c", "7", SlicePolicy()).is_cached
        kernel.add("acme", "c", entries([PlacedTurn(id="8", text="", parents=("7",))]))
        again = kernel.cut("acme", "c", "7", POLICY)
        assert not again.is_cached
        assert "8" in {turn for turn, _, _ in again.turns}


def test_version_tells_all_turns_whatever_the_batches(place):
    with closing(open_kernel(place)) as kernel:
        first = kernel.add("acme", "c", entries())[2]
        kernel.forget("acme", "c")
        for each in entries():
            last = kernel.add("acme", "c", [each])[2]
        assert last == first
        assert kernel.add("other", "c", entries())[2] != first


def test_forgotten_conversation_is_gone_from_memory_and_graph(place, tmp_path):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries([PlacedTurn(id="sentinel-turn", text="x")]))
        kernel.cut("acme", "c", "sentinel-turn", POLICY)
        assert kernel.forget("acme", "c") == 1
        with pytest.raises(UnknownIdError):
            kernel.cut("acme", "c", "sentinel-turn", POLICY)
        assert not any(b"sentinel-turn" in path.read_bytes() for path in tmp_path.iterdir())


def test_conversation_that_is_forgotten_while_it_is_read_leaves_no_copy_in_memory(place):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries())
        has_read, has_erased, read = threading.Event(), threading.Event(), kernel.store.read

        def read_slowly(*given):
            found = read(*given)
            has_read.set()
            assert has_erased.wait(20)
            return found

        def erase(*given, erase=kernel.store.forget):
            erased = erase(*given)
            has_erased.set()
            return erased

        kernel.store.read, kernel.store.forget = read_slowly, erase
        reader = threading.Thread(target=kernel.cut, args=("acme", "c", "7", POLICY))
        reader.start()
        assert has_read.wait(20)
        assert kernel.forget("acme", "c") == 7
        reader.join()
        assert not [*kernel._graphs, *kernel._cuts]


def test_slices_of_long_ids_take_more_of_the_memory(place):
    """Their JSON is kept, and may be twenty times as long as usual."""
    talk = [PlacedTurn(id="\U0001f511" * 255 + each.id, text="", parents=()) for each in TALK]
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries())
        kernel.add("acme", "long", entries(talk, conversation="long"))
        kernel.cut("acme", "c", "1", POLICY)
        usual = kernel._cuts.currsize
        kernel.cut("acme", "long", talk[0].id, POLICY)
        assert usual < 25
        assert kernel._cuts.currsize - usual > 25


def test_weights_of_numpy_are_signed_as_numbers(place):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries())
        policy = SlicePolicy(child=np.float64(0.9), sibling=np.float64(0.5))
        assert json.loads(kernel.cut("acme", "c", "7", policy).turns_json)["priority"][2] == "0.5"


def test_refused_batch_adds_nothing(place):
    with closing(open_kernel(place, conversation_turns=8, batch_turns=9)) as kernel:
        kernel.add("acme", "c", entries())
        for turns, error in [
            ([PlacedTurn(id="8", text=""), PlacedTurn(id="9", text="", parents=("none",))], UnknownIdError),
            ([PlacedTurn(id="8", text=""), PlacedTurn(id="1", text="other")], DuplicateIdError),
            ([PlacedTurn(id=str(n), text="") for n in (8, 9)], ValidationError),
            ([PlacedTurn(id=str(n), text="") for n in range(10)], ValidationError),
        ]:
            with pytest.raises(error):
                kernel.add("acme", "c", entries(turns))
        assert kernel.add("acme", "c", [])[1] == 7


def test_slice_beyond_the_limit_is_refused_not_cut_short(place):
    with closing(open_kernel(place, slice_turns=5)) as kernel:
        kernel.add("acme", "c", entries())
        with pytest.raises(ValidationError, match="more than 5 turns: set max_turns"):
            kernel.cut("acme", "c", "7", POLICY)
        assert len(kernel.cut("acme", "c", "7", SlicePolicy(max_turns=5)).turns) == 5


def test_tokens_are_stored_hashed_listed_in_order_and_revoked(place):
    with closing(open_kernel(place)) as kernel:
        store = kernel.store
        names = ["b", "a", "Z", "\u00e9", "\U0001f511", "_"]
        tokens = {name: store.grant(name, "acme", may_add=name == "a") for name in names}
        assert [each.name for each in store.grants()] == sorted(names)
        assert store.authenticate(tokens["a"]) == Grant(name="a", tenant="acme", may_add=True)
        with pytest.raises(DuplicateIdError, match="token 'a' already"):
            store.grant("a", "other")
        store.revoke("a")
        assert store.authenticate(tokens["a"]) is None
        for guess in ("", "mvk_", tokens["b"][:-1], tokens["b"] + " ", tokens["b"].swapcase(), "\0", "\ud800", "%"):
            assert store.authenticate(guess) is None
        with pytest.raises(UnknownIdError, match="no token 'a'"):
            store.revoke("a")
        with store.database.reading() as rows:
            assert tokens["b"] not in str(rows.execute("SELECT * FROM kernel_tokens").fetchall())


LONG = "\U0001f511" * 255
"""Incompressible ids of the greatest length, in bytes."""


def test_longest_ids_are_stored_and_told_apart(place):
    rng = random.Random(1)
    tenant, conversation, *ids = ["".join(chr(rng.randrange(0x10000, 0x1FFFF)) for _ in range(256)) for _ in range(4)]
    talk = [PlacedTurn(id=ids[0], text="x"), PlacedTurn(id=ids[1], text="y", parents=(ids[0],), phase=LONG)]
    with closing(open_kernel(place)) as kernel:
        assert kernel.add(tenant, conversation, entries(talk, tenant, conversation))[:2] == (2, 2)
        assert [turn for turn, _, _ in kernel.cut(tenant, conversation, ids[1], POLICY).turns] == ids
        with pytest.raises(UnknownIdError):
            kernel.cut(tenant, conversation[:-1], ids[1], POLICY)


def test_same_names_of_two_tenants_are_two_conversations(place):
    with closing(open_kernel(place)) as kernel:
        kernel.add("a", "c", entries(tenant="a"))
        kernel.add("b", "c", entries([PlacedTurn(id="1", text="other")], tenant="b"))
        assert kernel.forget("b", "none") == 0
        assert kernel.forget("b", "c") == 1
        assert kernel.cut("a", "c", "7", POLICY)
        with pytest.raises(UnknownIdError):
            kernel.cut("b", "c", "1", POLICY)


@pytest.mark.parametrize("time", [0, -0.0, 0.1, -1.5e9, 10**300, 2**53 + 1, 5e-324, 1.7976931348623157e308])
def test_every_time_comes_back_as_it_was_signed(place, time):
    """A time that the database altered would make the whole conversation count as altered."""
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", [TurnEntry(id="1", content="0" * 64, time=time)])
        assert kernel.cut("acme", "c", "1", POLICY)
        assert kernel.add("acme", "c", [TurnEntry(id="1", content="0" * 64, time=time)])[0] == 0


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20).filter(
    str.strip
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS, st.none() | st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_any_turns_come_back_as_they_were_added(place, rows):
    with closing(open_kernel(place)) as kernel:
        kernel.forget("t", "c")
        turns = {turn: TurnEntry(id=turn, phase=phase, time=time, content="0" * 64) for turn, phase, time in rows}
        version = kernel.add("t", "c", list(turns.values()))[2]
        assert kernel.store.read("t", "c") == (version, list(turns.values()))


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE kernel_turns SET parents = '["1"]' WHERE turn = '4'""",
        "UPDATE kernel_turns SET parents = 'null' WHERE turn = '4'",
        "UPDATE kernel_turns SET parents = '[[' WHERE turn = '4'",
        "UPDATE kernel_turns SET turn = ' ' WHERE turn = '7'",
        "DELETE FROM kernel_turns WHERE turn = '7'",
        "UPDATE kernel_turns SET position = 7 - position",
    ],
)
def test_altered_graph_is_refused(place, change):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries())
        with kernel.store.database.writing() as rows:
            rows.execute("UPDATE kernel_turns SET position = position + 100")
            rows.execute(change)
        with pytest.raises(StoreCorruptError, match=r"'c' in .* was altered"):
            kernel.cut("acme", "c", "6", POLICY)


def test_graph_of_another_version_is_refused(place):
    with closing(open_kernel(place)) as kernel, kernel.store.database.writing() as rows:
        rows.execute(
            "PRAGMA user_version = 99" if isinstance(place, Path) else "UPDATE kernel_version SET version = 99"
        )
    with pytest.raises(StoreVersionError, match="has version 99"):
        open_kernel(place)


def test_closed_graph_says_so(place):
    kernel = open_kernel(place)
    kernel.close()
    with pytest.raises(StorageError, match="is closed"):
        kernel.cut("acme", "c", "7", POLICY)


def test_two_kernels_on_one_graph_see_each_others_turns(place):
    with closing(open_kernel(place)) as one, closing(open_kernel(place)) as other:
        one.add("acme", "c", entries())
        first = other.cut("acme", "c", "7", POLICY)
        other.add("acme", "c", entries([PlacedTurn(id="8", text="", parents=("7",))]))
        assert one.cut("acme", "c", "7", POLICY).version != first.version
        one.forget("acme", "c")
        with pytest.raises(UnknownIdError):
            other.cut("acme", "c", "7", POLICY)
        one.add("acme", "c", entries(TALK[:2]))
        assert len(other.cut("acme", "c", "2", POLICY).turns) == 2
        with pytest.raises(UnknownIdError):
            other.cut("acme", "c", "7", POLICY)


def test_writers_of_one_conversation_lose_nothing(place):
    """Kernels that add, forget and add again at once leave a graph whose turns yield its version."""
    kernels = [open_kernel(place) for _ in range(3)]
    problems = []

    def write(kernel, who):
        try:
            for n in range(12):
                kernel.add("t", "c", [TurnEntry(id=f"{who}-{n}", content="0" * 64)])
                if who == 0 and n == 5:
                    kernel.forget("t", "c")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(kernel, who)) for who, kernel in enumerate(kernels)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    _, stored = kernels[0].store.read("t", "c")
    assert [each.id for each in stored if each.id.startswith("0-")] == [f"0-{n}" for n in range(6, 12)]
    for kernel in kernels:
        kernel.close()


KILLED = """
import sys
from pathlib import Path
from meve.service.kernel import TurnEntry
from tests.service.kernels import open_kernel
place = sys.argv[1]
kernel = open_kernel(place if "://" in place else Path(place))
print("ready", flush=True)
for n in range(100_000):
    batch = [TurnEntry(id=f"{n}-{part}", content="0" * 64) for part in range(50)]
    kernel.add("t", "c", batch)
    print(n, flush=True)
"""


def test_killed_writer_leaves_whole_batches_and_all_that_it_reported(place):
    for delay in (0.02, 0.11):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(place)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.kill()
        reported = process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        with closing(open_kernel(place)) as kernel:
            stored = (kernel.store.read("t", "c") or ("", []))[1]
            assert len(stored) % 50 == 0
            assert len(stored) >= 50 * len(reported)
            if stored:
                kernel.cut("t", "c", "0-0", POLICY)
            kernel.forget("t", "c")


def test_after_new_turns_only_those_are_read(place):
    with closing(open_kernel(place)) as kernel:
        reads, read = [], kernel.store.read
        kernel.store.read = lambda *given: reads.append(read(*given)) or reads[-1]
        for first in range(0, 7, 2):
            kernel.add("acme", "c", entries(TALK[first : first + 2]))
            kernel.cut("acme", "c", "1", POLICY)
        assert [[each.id for each in new] for _, new in reads] == [["1", "2"], ["3", "4"], ["5", "6"], ["7"]]


def random_policy(rng):
    return SlicePolicy(
        parent=rng.choice([1, 0.9]), child=rng.choice([0, 0.9]), sibling=rng.choice([0, 0.5, 1]),
        phases=rng.choice([{}, {"draft": 0.4}]), min_priority=rng.choice([0.5, 0.1]),
        max_turns=rng.choice([None, 3, 9]),
    )  # fmt: skip


def answer_of(kernel, anchor, policy):
    try:
        cut = kernel.cut("t", "c", anchor, policy)
    except UnknownIdError as refusal:
        return str(refusal)
    return cut.version, cut.turns, cut.closed


@pytest.mark.parametrize("seed", range(3))
def test_graph_that_grows_is_cut_as_one_read_anew(place, seed):
    """A random story: branches, turns with several parents, and conversations that are forgotten and added anew."""
    rng, known = random.Random(seed), []
    with (
        closing(open_kernel(place)) as writer,
        closing(open_kernel(place)) as growing,
        closing(open_kernel(place, turns_in_memory=1)) as forgetful,
    ):
        for step in range(25):
            if known and rng.random() < 0.1:
                writer.forget("t", "c")
                known = rng.choice([known[: len(known) // 2], []])
                writer.add("t", "c", known)
            for n in range(rng.randrange(4)):
                above = rng.sample([each.id for each in known[-6:]], k=min(len(known), rng.choice([0, 1, 1, 1, 2])))
                phase, turn = rng.choice(["", "draft"]), f"{rng.choice('xy')}{step}-{n}"
                known = [*known, TurnEntry(id=turn, parents=tuple(above), phase=phase, content="0" * 64)]
            writer.add("t", "c", known)
            for anchor in [*(each.id for each in rng.sample(known, k=min(len(known), 3))), "none"]:
                policy = random_policy(rng)
                assert answer_of(growing, anchor, policy) == answer_of(forgetful, anchor, policy)


def test_new_turns_that_were_altered_are_refused_though_the_others_are_known(place):
    with closing(open_kernel(place)) as kernel:
        kernel.add("acme", "c", entries(TALK[:5]))
        kernel.cut("acme", "c", "5", POLICY)
        kernel.add("acme", "c", entries(TALK[5:]))
        with kernel.store.database.writing() as rows:
            rows.execute("""UPDATE kernel_turns SET parents = '["4"]' WHERE turn = '6'""")
        with pytest.raises(StoreCorruptError, match=r"'c' in .* was altered"):
            kernel.cut("acme", "c", "7", POLICY)
