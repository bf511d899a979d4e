"""Contract tests for LlamaIndex chat stores: subclass `ChatStoreContract` and give it a `store` fixture."""

from asyncio import Runner

import pytest

from tests.llama_index_integration.chat_store_contract.archive_rules import ArchiveRules
from tests.llama_index_integration.chat_store_contract.content_rules import ContentRules
from tests.llama_index_integration.chat_store_contract.page_rules import PageRules
from tests.llama_index_integration.chat_store_contract.session_rules import SessionRules


class ChatStoreContract(ContentRules, SessionRules, PageRules, ArchiveRules):
    """Everything an `AsyncDBChatStore` must do. Each test gets a new, empty store."""

    archives = True
    """Whether messages have a status."""
    expected_failures = {}  # noqa: RUF012
    """Reason by test name without `test_`. These tests must fail, or the suite does."""

    @pytest.fixture
    def store(self):
        raise NotImplementedError("give a fixture 'store' that returns a new and empty store")

    @pytest.fixture
    def run(self):
        """Run a coroutine on the test's event loop."""
        with Runner() as runner:
            yield runner.run

    @pytest.fixture
    def archiving(self):
        if not self.archives:
            pytest.skip("its messages have no status")

    @pytest.fixture(autouse=True)
    def _mark_expected_failure(self, request):
        names = (name.removeprefix("test_") for name in (request.node.name, request.node.originalname))
        reason = next((self.expected_failures[name] for name in names if name in self.expected_failures), None)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
