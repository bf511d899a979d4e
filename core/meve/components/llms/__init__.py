"""Language models: a function of a prompt, a framework's model, a server, or a local one. Importing loads no model."""

import inspect
from importlib import import_module
from typing import Any, TypeAlias

from meve.components.llms._thoughts import WithoutThoughts
from meve.errors import ConfigurationError
from meve.ports import LanguageModel

LanguageModelLike: TypeAlias = LanguageModel | str | Any
"""A language model in one of the forms that `resolve_llm` describes."""

_WRAPPERS = {
    "invoke": ("langchain_meve.model_adapters", "complete_with"),
    "complete": ("llama_index_meve.llm_adapter", "complete_with"),
}
"""The adapter for each framework's models, by a method that only they have. It is imported by name, since the core
imports no wrapper."""


def resolve_llm(llm: LanguageModelLike) -> LanguageModel:
    """Return a function of a prompt for what can be used as a language model.

    Thoughts that a model writes before its answer, `<think>…</think>`, are removed.

    Args:
        llm: a function that takes a prompt and returns the model's answer; a LangChain chat model or another runnable;
            a LlamaIndex LLM; a `text-generation` pipeline of transformers; the address of a server with the API of
            OpenAI, such as llama.cpp's `http://localhost:8080/v1`; or the name or folder of a model for transformers.
            `meve.components.llms.http.HttpLanguageModel` takes a key and further options of a server.

    Raises:
        ConfigurationError: anything else, such as a coroutine function.
        MissingExtraError: transformers or torch isn't installed.
        ModelNotFoundError: no such model on this machine or on the hub.
    """
    return llm if isinstance(llm, WithoutThoughts) else WithoutThoughts(_resolve(llm))


def _resolve(llm: LanguageModelLike) -> LanguageModel:
    if isinstance(llm, str):
        return _from_name(llm)
    if not isinstance(llm, type):
        for method, (module, adapter) in _WRAPPERS.items():
            if callable(getattr(llm, method, None)):
                adapted: LanguageModel = getattr(import_module(module), adapter)(llm)
                return adapted
        if callable(llm) and hasattr(llm, "tokenizer") and hasattr(llm, "model"):
            from meve.components.llms.local import TransformersLanguageModel

            return TransformersLanguageModel(llm.model, llm.tokenizer)
        if callable(llm) and not _is_coroutine(llm):
            function: LanguageModel = llm
            return function
    raise ConfigurationError(
        f"llm must be a blocking function of a prompt, a chat model of LangChain, an LLM of LlamaIndex, a server's "
        f"address or a model's name, got {llm!r:.80}"
    )


def _from_name(name: str) -> LanguageModel:
    if name.startswith(("http://", "https://")):
        from meve.components.llms.http import HttpLanguageModel

        return HttpLanguageModel(name)
    if not name.strip():
        raise ConfigurationError("llm must not be blank: give a server's address, or a model's name or folder")
    from meve.components.llms.local import TransformersLanguageModel

    return TransformersLanguageModel.from_name(name)


def _is_coroutine(function: Any) -> bool:  # noqa: ANN401 - anything that can be called
    call = getattr(function, "__call__", function)  # noqa: B004 - of an object with the method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
