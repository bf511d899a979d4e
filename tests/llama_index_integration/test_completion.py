"""LLMs as functions of a prompt."""

import pytest
from llama_index.core.llms import MockLLM

from llama_index_meve.llm_adapter import complete_with
from meve.errors import ConfigurationError


def test_llm_completes_a_prompt():
    assert complete_with(MockLLM())("What?") == "What?"


def test_other_object_is_refused():
    with pytest.raises(ConfigurationError, match="must be a LlamaIndex LLM, got 'gpt'"):
        complete_with("gpt")
