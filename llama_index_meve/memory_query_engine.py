"""A query engine that answers from a user's memory, with routing and checks."""

from collections.abc import Mapping
from typing import Any

from llama_index.core import Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import QueryBundle

from llama_index_meve._async_bridge import run_in_thread
from llama_index_meve._instrumentation import emit_trace
from llama_index_meve._nodes import context_to_nodes
from meve.components.llms import LanguageModelLike
from meve.memory import GovernedMemory
from meve.memory.records import UserId
from meve.routing import MemoryRouter, RoutedAnswer, RouterConfig


class MeVeMemoryQueryEngine(BaseQueryEngine):
    """Answers one user's questions from the user's memory; `meve.routing.MemoryRouter` describes how.

    The response's nodes are the memories that the model read. Its metadata hold the tier, the verdicts, and whether the
    router abstained.

    Args:
        memory: the governed memory; the caller closes it.
        user_id: whose memory.
        llm: the LLM that answers, or another language model as for `MemoryRouter`; None for LlamaIndex's own setting.
        routing: the settings of the router.
        search: filters of each search, as for `GovernedMemory.search`.

    Raises:
        ConfigurationError: no memory, no language model, or an invalid option.
        ValidationError: an invalid user.
    """

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        user_id: UserId,
        llm: LanguageModelLike | None = None,
        routing: RouterConfig | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(callback_manager=None)
        chosen = Settings.llm if llm is None else llm
        self.router = MemoryRouter(memory, user_id=user_id, llm=chosen, config=routing, search=search)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return _to_response(self.router.answer(query_bundle.query_str))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await run_in_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _to_response(answer: RoutedAnswer) -> Response:
    emit_trace(answer.evidence)
    return Response(response=answer.text, source_nodes=context_to_nodes(answer.evidence), metadata=answer.summary())
