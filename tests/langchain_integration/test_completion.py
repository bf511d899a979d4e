"""Chat models as functions of a prompt."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_meve.model_adapters import complete_with
from meve.errors import ConfigurationError


def test_chat_model_completes_a_prompt():
    assert complete_with(FakeListChatModel(responses=["[]"]))("What?") == "[]"


def test_other_object_is_refused():
    with pytest.raises(ConfigurationError, match="must be a LangChain chat model, got 'gpt'"):
        complete_with("gpt")
