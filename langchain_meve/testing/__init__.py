"""The rules of LangGraph stores, as tests: inherit them, give the fixture, and pytest runs them, sync and async.

```
class TestMine(GraphStoreContract):
    @pytest.fixture
    def store(self):
        return MyStore(index={"dims": 27, "embed": MeVeEmbeddings(WordEmbedder())})
```

Each test is one rule, and its docstring states it. What a store can't do it declares: by its own `supports_ttl`, by
`searches`, and by `fails`, which names each rule that it breaks with the reason; such a rule must then fail.
Needs pytest: pip install 'meve[langgraph,testing]'
"""

from meve._extras import needed

with needed("langchain_meve.testing", {"langgraph": "langgraph", "pytest": "testing"}):
    from langchain_meve.testing.face import Face
    from langchain_meve.testing.graph_store_contract import GraphStoreContract, rules

__all__ = ["Face", "GraphStoreContract", "rules"]
