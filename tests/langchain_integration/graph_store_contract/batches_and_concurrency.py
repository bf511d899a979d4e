"""Rules of batches, and of many callers at once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

WRITERS = 50


class BatchAndConcurrencyRules:
    """A batch answers in order; nothing is lost between callers."""

    def test_results_are_in_the_order_of_operations(self, client: StoreClient) -> None:
        """A batch has one result for each operation, in their order."""
        client.put(client.at("docs"), "a", {"n": 1})
        client.put(client.at("docs"), "b", {"n": 2})
        beginning = (MatchCondition("prefix", client.at("docs")),)
        found = client.batch(
            [
                GetOp(client.at("docs"), "b"),
                PutOp(client.at("docs"), "c", {"n": 3}),
                SearchOp(client.at("docs"), {"n": 1}),
                ListNamespacesOp(beginning),
                GetOp(client.at("docs"), "none"),
                GetOp(client.at("docs"), "a"),
            ]
        )
        assert found[0].value == {"n": 2}
        assert found[1] is None
        assert [item.key for item in found[2]] == ["a"]
        assert [tuple(each) for each in found[3]] == [client.at("docs")]
        assert found[4] is None
        assert found[5].value == {"n": 1}
        assert client.value(client.at("docs"), "c") == {"n": 3}

    def test_an_empty_batch_has_no_results(self, client: StoreClient) -> None:
        """A batch of nothing has no results."""
        assert client.batch([]) == []

    def test_of_two_values_the_last_stays(self, client: StoreClient) -> None:
        """Of two values for one key in a batch the last stays; a deletion counts as one."""
        put = [PutOp(client.at("docs"), "k", {"n": n}) for n in range(3)]
        client.batch([*put, PutOp(client.at("docs"), "gone", {"n": 1}), PutOp(client.at("docs"), "gone", None)])
        assert client.value(client.at("docs"), "k") == {"n": 2}
        assert client.get(client.at("docs"), "gone") is None

    def test_a_batch_is_written_as_a_whole(self, client: StoreClient) -> None:
        """A batch with an operation that can't be done writes nothing."""
        try:
            client.batch([PutOp(client.at("docs"), "k", {"n": 1}), PutOp(client.at("docs"), "bad", {"n": object()})])
        except Exception:  # whatever the store raises for it
            assert client.get(client.at("docs"), "k") is None
            return
        pytest.skip("it takes any value")

    def test_many_writers_lose_nothing(self, client: StoreClient) -> None:
        """Fifty callers at once, threads or tasks, lose nothing, and hinder no reader."""
        expected = sorted(f"k{n}" for n in range(WRITERS))
        if client.runner is None:
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda n: client.put(client.at("docs", f"s{n % 5}"), f"k{n}", {"n": n}), range(WRITERS)))
        else:
            client.runner.run(_written(client))
        assert sorted(client.keys(client.at("docs"), limit=WRITERS + 1)) == expected
        assert all(client.value(client.at("docs", f"s{n % 5}"), f"k{n}") == {"n": n} for n in range(WRITERS))

    def test_a_cancelled_call_harms_no_other(self, client: StoreClient) -> None:
        """A call that is cancelled, whenever, takes no other with it, and the store goes on."""
        if client.runner is None:
            pytest.skip("only tasks are cancelled")
        client.runner.run(_cancelled(client))
        kept = [f"k{n}" for n in range(WRITERS) if n % 3]
        assert set(kept) <= set(client.keys(client.at("docs"), limit=WRITERS + 1))
        client.put(client.at("docs"), "after", {"n": 1})
        assert client.value(client.at("docs"), "after") == {"n": 1}


async def _written(client: StoreClient) -> None:
    async def one(n: int) -> None:
        await client.store.aput(client.at("docs", f"s{n % 5}"), f"k{n}", {"n": n})
        await client.store.aget(client.at("docs", f"s{n % 5}"), f"k{n}")

    await asyncio.gather(*map(one, range(WRITERS)))


async def _cancelled(client: StoreClient) -> None:
    tasks = [asyncio.create_task(client.store.aput(client.at("docs"), f"k{n}", {"n": n})) for n in range(WRITERS)]
    for n, task in enumerate(tasks):
        if n % 7 == 0:
            await asyncio.sleep(0)
        if n % 3 == 0:
            task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [result for result in done if isinstance(result, Exception)]
    assert failed == []
