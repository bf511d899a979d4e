"""Test what `pip install 'meve[llama-index]'` provides, in an environment with nothing else (see try_wheel.py)."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from install_checks import assert_extra_is_named, assert_not_installed
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import Memory

import llama_index_meve
from llama_index_meve import (
    MeVeEmbedding,
    MeVeMemory,
    MeVeMemoryBlock,
    MeVePostprocessor,
    MeVeRetriever,
    create_meve_query_engine,
    create_meve_tool,
)
from meve.memory import GovernedMemory

assert "site-packages" in llama_index_meve.__file__, llama_index_meve.__file__
assert_not_installed("torch", "langchain_core", "sentence_transformers")
SUN, BREAD = "Tomatoes want six to eight hours of sun a day.", "Bread is baked from flour and water."
QUESTION = "How much sun do tomatoes want?"

index = VectorStoreIndex.from_documents([Document(text=SUN), Document(text=BREAD)], embed_model=MeVeEmbedding())
retriever = MeVeRetriever.from_index(index, top_k=1)
assert [each.node.text for each in retriever.retrieve(QUESTION)] == [SUN]
assert create_meve_tool(retriever)(query=QUESTION).content == SUN
engine = index.as_query_engine(llm=MockLLM(), node_postprocessors=[MeVePostprocessor.make(top_n=1)])
assert [each.node.text for each in engine.query(QUESTION).source_nodes] == [SUN]
assert SUN in str(create_meve_query_engine(retriever, llm=MockLLM()).query(QUESTION))

with TemporaryDirectory() as folder, GovernedMemory.open(Path(folder, "memory.db")) as memory:
    chat = MeVeMemory(memory, user_id="alice", session_id="1")
    SimpleChatEngine.from_defaults(llm=MockLLM(), memory=chat).chat("I grow tomatoes on a balcony.")
    later = MeVeMemory.from_dict(MeVeMemory(memory, user_id="alice", session_id="2").to_dict())
    assert "tomatoes on a balcony" in later.get("What do I grow on my balcony?")[0].content
    block = MeVeMemoryBlock(memory, user_id="alice")
    assert "tomatoes on a balcony" in asyncio.run(block.aget([ChatMessage("What do I grow on my balcony?")]))
    assert Memory(token_limit=1_000, memory_blocks=[block]).memory_blocks == [block]
assert "torch" not in sys.modules
assert_extra_is_named("llama_index", "llama_index_meve", "MeVeRetriever", "llama-index")
sys.stdout.write("an install with the llama-index extra works\n")
