"""A scripted language model, and factories for LlamaIndex chat engines and agents."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.multi_modal_condense_plus_context import MultiModalCondensePlusContextChatEngine
from llama_index.core.chat_engine.multi_modal_context import MultiModalContextChatEngine
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from llama_index.core.storage.chat_store.base_db import MessageStatus
from pydantic import Field

from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.conftest import RecordingRetriever


class ScriptedLLM(FunctionCallingLLM):
    """Answers with what a function returns for the messages, and records every prompt."""

    reply: Callable[[Sequence[ChatMessage]], ChatMessage | str]
    prompts: list[list[ChatMessage]] = Field(default_factory=list)

    def prompt_text(self, call=-1):
        return "\n".join(str(message.content) for message in self.prompts[call])

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, context_window=100_000)

    def chat(self, messages, **kwargs: Any):
        self.prompts.append([message.model_copy(deep=True) for message in messages])
        answer = self.reply(messages)
        return ChatResponse(message=answer if isinstance(answer, ChatMessage) else model(answer))

    def stream_chat(self, messages, **kwargs: Any):
        whole = self.chat(messages)
        words = (whole.message.content or "").split(" ")

        def pieces():
            for n in range(len(words)):
                text = " ".join(words[: n + 1])
                blocks = [b for b in whole.message.blocks if isinstance(b, ToolCallBlock)]
                message = model(text)
                message.blocks += blocks
                yield ChatResponse(message=message, delta=words[n] if not n else f" {words[n]}")

        return pieces()

    async def achat(self, messages, **kwargs: Any):
        return self.chat(messages)

    async def astream_chat(self, messages, **kwargs: Any):
        async def pieces() -> AsyncGenerator[ChatResponse, None]:
            for piece in self.stream_chat(messages):
                yield piece

        return pieces()

    def complete(self, prompt, formatted=False, **kwargs: Any):
        return CompletionResponse(text=str(self.chat([ChatMessage(prompt)]).message.content))

    async def acomplete(self, prompt, formatted=False, **kwargs: Any):
        return self.complete(prompt)

    def stream_complete(self, prompt, formatted=False, **kwargs: Any):
        raise NotImplementedError

    async def astream_complete(self, prompt, formatted=False, **kwargs: Any):
        raise NotImplementedError

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs: Any):
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs: Any):
        return [
            ToolSelection(tool_id=b.tool_call_id, tool_name=b.tool_name, tool_kwargs=b.tool_kwargs)
            for b in response.message.blocks
            if isinstance(b, ToolCallBlock)
        ]


class Unplugged(WordEmbedder):
    """An embedder that fails while it is unplugged, and for texts with 'always fails'."""

    unplugged = False

    def embed_query(self, text):
        if self.unplugged:
            raise OSError("unplugged")
        return super().embed_query(text)

    def embed_passages(self, texts):
        if self.unplugged or any("always fails" in text for text in texts):
            raise OSError("unplugged")
        return super().embed_passages(texts)


PLANTS = RecordingRetriever([TextNode(id_="1", text="Plants grow towards the light.")])
"""Returns one passage for any query."""


def simple_engine(llm, memory):
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory)


def context_engine(llm, memory):
    return ContextChatEngine.from_defaults(retriever=PLANTS, llm=llm, memory=memory)


def condense_plus_context_engine(llm, memory):
    return CondensePlusContextChatEngine.from_defaults(retriever=PLANTS, llm=llm, memory=memory)


def condense_question_engine(llm, memory):
    engine = RetrieverQueryEngine.from_args(PLANTS, llm=llm)
    return CondenseQuestionChatEngine.from_defaults(query_engine=engine, llm=llm, memory=memory)


def multi_modal_context_engine(llm, memory):
    return MultiModalContextChatEngine.from_defaults(retriever=PLANTS, multi_modal_llm=llm, memory=memory)


def multi_modal_condense_plus_context_engine(llm, memory):
    return MultiModalCondensePlusContextChatEngine.from_defaults(
        retriever=PLANTS, llm=llm, multi_modal_llm=llm, memory=memory
    )


ENGINE_FACTORIES = [
    simple_engine,
    context_engine,
    condense_plus_context_engine,
    condense_question_engine,
    multi_modal_context_engine,
    multi_modal_condense_plus_context_engine,
]


def chat_sync(engine, text):
    return str(engine.chat(text))


def chat_streaming(engine, text):
    answer = engine.stream_chat(text)
    answer_text = "".join(answer.response_gen)
    if answer.write_response_to_history_thread is not None:
        answer.write_response_to_history_thread.join()
    return answer_text


def chat_async(engine, text):
    async def run():
        return str(await engine.achat(text))

    return asyncio.run(run())


def chat_async_streaming(engine, text):
    async def run():
        answer = await engine.astream_chat(text)
        answer_text = "".join([piece async for piece in answer.async_response_gen()])
        if answer.awrite_response_to_history_task is not None:
            await answer.awrite_response_to_history_task
        return answer_text

    return asyncio.run(run())


def chat_in_running_loop(engine, text):
    """Make sync calls inside a running loop, as in a notebook."""

    async def run():
        return str(engine.chat(text))

    return asyncio.run(run())


CHAT_CALLS = [chat_sync, chat_streaming, chat_async, chat_async_streaming, chat_in_running_loop]


def function_agent(llm, tools=()):
    return FunctionAgent(tools=list(tools), llm=llm, system_prompt="You are a gardener.", name="gardener")


def agent_workflow(llm, tools=()):
    return AgentWorkflow(agents=[function_agent(llm, tools)], root_agent="gardener")


AGENT_FACTORIES = [function_agent, agent_workflow]


async def run_agent(agent, memory, text, **options):
    return str(await agent.run(text, memory=memory, **options))


def tool_call(name, call_id="1", **arguments):
    return ChatMessage(
        role=MessageRole.ASSISTANT, blocks=[ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=arguments)]
    )


CAT, QUESTION = "My cat is called Tom.", "What is my cat called?"


def user(text):
    return ChatMessage(text)


def model(text):
    return ChatMessage(text, role="assistant")


def user_messages(*contents):
    return [user(str(content)) for content in contents]


def system(text):
    return ChatMessage(text, role="system")


def texts(messages):
    return [message.content for message in messages]


async def stored_texts(store, key, status=MessageStatus.ACTIVE):
    return texts(await store.get_messages(key, status=status))


def facts(memory, user="alice"):
    """Return a user's facts with their reflection scores."""
    return {r.text: r.reflection for r in memory.list(user_id=user) if r.text}


def fact_texts(memory):
    return [r.text for r in memory.list(user_id="alice") if r.text]


def outcomes(memory):
    """Return the outcomes of all judged recalls, in order."""
    return [e.detail["outcome"] for e in memory.audit.events(user_id="alice") if "outcome" in e.detail]


def remember_cat(memory, *, ttl=None):
    return memory.add(CAT, user_id="alice", source="chat_user", policy_class="factual", id="cat", ttl=ttl)


def run_in_threads(*calls):
    """Run each call in its own thread, starting together."""
    ready = threading.Barrier(len(calls))

    def run(call):
        ready.wait()
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(run, calls))
