"""The rules of LlamaIndex chat stores, as tests: inherit them, give the fixture, and pytest runs them.

```
class TestMine(ChatStoreContract):
    @pytest.fixture
    def store(self):
        return MyChatStore()
```

Each test is one rule, and its docstring states it. What a store can't do it declares: by `archives`, and by `fails`,
which names each rule that it breaks with the reason; such a rule must then fail.
Needs pytest: pip install 'meve[llama-index,testing]'
"""

from meve._extras import needed

with needed("llama_index_meve.testing", {"llama_index.core": "llama-index", "pytest": "testing"}):
    from llama_index_meve.testing.chat_store_contract import ChatStoreContract, rules

__all__ = ["ChatStoreContract", "rules"]
