"""Rules of batches, and of many callers at once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from tests.langchain_integration.graph_store_contract.store_client import Face

WRITERS = 50


class TogetherRules:
    """A batch answers in order; nothing is lost between callers."""

    def test_results_are_in_the_order_of_operations(self, face: Face) -> None:
        """A batch has one result for each operation, in their order."""
        face.put(face.at("docs"), "a", {"n": 1})
        face.put(face.at("docs"), "b", {"n": 2})
        beginning = (MatchCondition("prefix", face.at("docs")),)
        found = face.batch(
            [
                GetOp(face.at("docs"), "b"),
                PutOp(face.at("docs"), "c", {"n": 3}),
                SearchOp(face.at("docs"), {"n": 1}),
                ListNamespacesOp(beginning),
                GetOp(face.at("docs"), "none"),
                GetOp(face.at("docs"), "a"),
            ]
        )
        assert found[0].value == {"n": 2}
        assert found[1] is None
        assert [item.key for item in found[2]] == ["a"]
        assert [tuple(each) for each in found[3]] == [face.at("docs")]
        assert found[4] is None
        assert found[5].value == {"n": 1}
        assert face.value(face.at("docs"), "c") == {"n": 3}

    def test_an_empty_batch_has_no_results(self, face: Face) -> None:
        """A batch of nothing has no results."""
        assert face.batch([]) == []

    def test_of_two_values_the_last_stays(self, face: Face) -> None:
        """Of two values for one key in a batch the last stays; a deletion counts as one."""
        put = [PutOp(face.at("docs"), "k", {"n": n}) for n in range(3)]
        face.batch([*put, PutOp(face.at("docs"), "gone", {"n": 1}), PutOp(face.at("docs"), "gone", None)])
        assert face.value(face.at("docs"), "k") == {"n": 2}
        assert face.get(face.at("docs"), "gone") is None

    def test_a_batch_is_written_as_a_whole(self, face: Face) -> None:
        """A batch with an operation that can't be done writes nothing."""
        try:
            face.batch([PutOp(face.at("docs"), "k", {"n": 1}), PutOp(face.at("docs"), "bad", {"n": object()})])
        except Exception:  # whatever the store raises for it
            assert face.get(face.at("docs"), "k") is None
            return
        pytest.skip("it takes any value")

    def test_many_writers_lose_nothing(self, face: Face) -> None:
        """Fifty callers at once, threads or tasks, lose nothing, and hinder no reader."""
        expected = sorted(f"k{n}" for n in range(WRITERS))
        if face.runner is None:
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda n: face.put(face.at("docs", f"s{n % 5}"), f"k{n}", {"n": n}), range(WRITERS)))
        else:
            face.runner.run(_written(face))
        assert sorted(face.keys(face.at("docs"), limit=WRITERS + 1)) == expected
        assert all(face.value(face.at("docs", f"s{n % 5}"), f"k{n}") == {"n": n} for n in range(WRITERS))

    def test_a_cancelled_call_harms_no_other(self, face: Face) -> None:
        """A call that is cancelled, whenever, takes no other with it, and the store goes on."""
        if face.runner is None:
            pytest.skip("only tasks are cancelled")
        face.runner.run(_cancelled(face))
        kept = [f"k{n}" for n in range(WRITERS) if n % 3]
        assert set(kept) <= set(face.keys(face.at("docs"), limit=WRITERS + 1))
        face.put(face.at("docs"), "after", {"n": 1})
        assert face.value(face.at("docs"), "after") == {"n": 1}


async def _written(face: Face) -> None:
    async def one(n: int) -> None:
        await face.store.aput(face.at("docs", f"s{n % 5}"), f"k{n}", {"n": n})
        await face.store.aget(face.at("docs", f"s{n % 5}"), f"k{n}")

    await asyncio.gather(*map(one, range(WRITERS)))


async def _cancelled(face: Face) -> None:
    tasks = [asyncio.create_task(face.store.aput(face.at("docs"), f"k{n}", {"n": n})) for n in range(WRITERS)]
    for n, task in enumerate(tasks):
        if n % 7 == 0:
            await asyncio.sleep(0)
        if n % 3 == 0:
            task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [result for result in done if isinstance(result, Exception)]
    assert failed == []
