"""Contract rules of batches and concurrent calls."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from tests.langchain_integration.graph_store_contract.store_client import StoreClient

WRITERS = 50


class BatchAndConcurrencyRules:
    """Batches are atomic and ordered, and concurrent calls lose nothing."""

    def test_batch_results_are_in_order(self, client: StoreClient) -> None:
        """A batch returns one result for each operation, in order."""
        client.put(client.ns("docs"), "a", {"n": 1})
        client.put(client.ns("docs"), "b", {"n": 2})
        conditions = (MatchCondition("prefix", client.ns("docs")),)
        results = client.batch(
            [
                GetOp(client.ns("docs"), "b"),
                PutOp(client.ns("docs"), "c", {"n": 3}),
                SearchOp(client.ns("docs"), {"n": 1}),
                ListNamespacesOp(conditions),
                GetOp(client.ns("docs"), "none"),
                GetOp(client.ns("docs"), "a"),
            ]
        )
        assert results[0].value == {"n": 2}
        assert results[1] is None
        assert [item.key for item in results[2]] == ["a"]
        assert [tuple(each) for each in results[3]] == [client.ns("docs")]
        assert results[4] is None
        assert results[5].value == {"n": 1}
        assert client.value(client.ns("docs"), "c") == {"n": 3}

    def test_empty_batch_returns_nothing(self, client: StoreClient) -> None:
        """An empty batch returns no results."""
        assert client.batch([]) == []

    def test_last_write_in_batch_wins(self, client: StoreClient) -> None:
        """Of two writes to one key in a batch, the last wins, also a deletion."""
        puts = [PutOp(client.ns("docs"), "k", {"n": n}) for n in range(3)]
        client.batch([*puts, PutOp(client.ns("docs"), "gone", {"n": 1}), PutOp(client.ns("docs"), "gone", None)])
        assert client.value(client.ns("docs"), "k") == {"n": 2}
        assert client.get(client.ns("docs"), "gone") is None

    def test_failed_batch_writes_nothing(self, client: StoreClient) -> None:
        """A batch with an invalid operation writes nothing."""
        try:
            client.batch([PutOp(client.ns("docs"), "k", {"n": 1}), PutOp(client.ns("docs"), "bad", {"n": object()})])
        except Exception:  # whatever the store raises for it
            assert client.get(client.ns("docs"), "k") is None
            return
        pytest.skip("the store accepts any value")

    def test_concurrent_writes_are_all_stored(self, client: StoreClient) -> None:
        """Fifty concurrent writers, threads or tasks, lose no write and block no reader."""
        expected = sorted(f"k{n}" for n in range(WRITERS))
        if client.runner is None:
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda n: client.put(client.ns("docs", f"s{n % 5}"), f"k{n}", {"n": n}), range(WRITERS)))
        else:
            client.runner.run(_write_concurrently(client))
        assert sorted(client.keys(client.ns("docs"), limit=WRITERS + 1)) == expected
        assert all(client.value(client.ns("docs", f"s{n % 5}"), f"k{n}") == {"n": n} for n in range(WRITERS))

    def test_cancelled_call_affects_no_other(self, client: StoreClient) -> None:
        """A cancelled call affects no other call."""
        if client.runner is None:
            pytest.skip("only tasks are cancelled")
        client.runner.run(_cancel_some(client))
        stored = [f"k{n}" for n in range(WRITERS) if n % 3]
        assert set(stored) <= set(client.keys(client.ns("docs"), limit=WRITERS + 1))
        client.put(client.ns("docs"), "after", {"n": 1})
        assert client.value(client.ns("docs"), "after") == {"n": 1}


async def _write_concurrently(client: StoreClient) -> None:
    async def one(n: int) -> None:
        await client.store.aput(client.ns("docs", f"s{n % 5}"), f"k{n}", {"n": n})
        await client.store.aget(client.ns("docs", f"s{n % 5}"), f"k{n}")

    await asyncio.gather(*map(one, range(WRITERS)))


async def _cancel_some(client: StoreClient) -> None:
    tasks = [asyncio.create_task(client.store.aput(client.ns("docs"), f"k{n}", {"n": n})) for n in range(WRITERS)]
    for n, task in enumerate(tasks):
        if n % 7 == 0:
            await asyncio.sleep(0)
        if n % 3 == 0:
            task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each for each in results if isinstance(each, Exception)] == []
