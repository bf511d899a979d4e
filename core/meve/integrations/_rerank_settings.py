"""Define the default settings of components that shorten what another retriever chose."""

from meve.pipeline.config import RetrieverConfig

RERANK_TOKENS = 4_096
"""The default budget of what another retriever chose: often whole sections or documents, all of which the model was
going to read."""


def resolve_rerank_config(config: RetrieverConfig | None) -> RetrieverConfig:
    """Return the given settings, or the defaults with a budget of 4,096 tokens."""
    return RetrieverConfig(max_tokens=RERANK_TOKENS) if config is None else config
