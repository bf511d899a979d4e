"""Adapter that uses a LlamaIndex LLM where MeVe takes a function of a prompt."""

from collections.abc import Callable

from llama_index.core.llms import LLM

from meve.errors import ConfigurationError


def complete_with(model: LLM) -> Callable[[str], str]:
    """Return a function that sends a prompt to an LLM and returns its text, as `LlmExtractor` takes it.

    Raises:
        ConfigurationError: it is no LLM.
    """
    if not isinstance(model, LLM):
        raise ConfigurationError(f"model must be a LlamaIndex LLM, got {model!r:.60}")
    return lambda prompt: str(model.complete(prompt).text)
