"""LlamaIndex's nodes as passages, and back: judged by what embedders see of them, counted by what models are sent."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from meve.integrations._options import copied
from meve.pipeline.context import Context
from meve.types import Passage

NAMES = {"top_k": "limit", "top_n": "limit"}
"""Where LlamaIndex's words for a setting aren't ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePassage(Passage):
    """A passage over a copy of the node that it was made of."""

    node: BaseNode
    embedded: str

    @property
    def content(self) -> str:
        """What an embedder sees of it, and a verifier judges."""
        return self.embedded

    @property
    def shown(self) -> str:
        """What a synthesizer sends to a model of it."""
        return _clean(self.node.get_content(metadata_mode=MetadataMode.LLM))

    def with_text(self, text: str) -> Self:
        """Another copy of the node, with other text."""
        cut = self.node.model_copy()
        cut.set_content(text)
        return replace(self, text=text, node=cut, embedded=_embedded(cut))


def as_passage(node: BaseNode) -> NodePassage:
    """A node as a passage; the node may change afterwards. Metadata that JSON can't hold is text to filters."""
    own = copy_of(node)
    return NodePassage(
        id=own.node_id,
        title=_clean(own.get_metadata_str(mode=MetadataMode.EMBED)),
        text=_clean(own.get_content(metadata_mode=MetadataMode.NONE)),
        metadata=plain(own.metadata),
        node=own,
        embedded=_embedded(own),
    )


def as_passages(nodes: Iterable[BaseNode]) -> list[NodePassage]:
    """Nodes that have text, one for each id: the first."""
    made: dict[str, NodePassage] = {}
    for node in nodes:
        passage = as_passage(node)
        if passage.text.strip():
            made.setdefault(passage.id, passage)
    return list(made.values())


def as_nodes(context: Context) -> list[NodeWithScore]:
    """The passages of a context, best first, as copies of their nodes, with their probability as a plain float."""
    made = []
    for found in context.passages:
        passage = found.passage
        if isinstance(passage, NodePassage):
            node: BaseNode = copy_of(passage.node)
        else:
            node = TextNode(id_=passage.id, text=passage.content, metadata=dict(passage.metadata))
            node.excluded_llm_metadata_keys = list(passage.metadata)  # it was counted without
        made.append(NodeWithScore(node=node, score=None if found.score is None else float(found.score)))
    return made


def copy_of(node: BaseNode) -> BaseNode:
    """A copy with metadata of its own."""
    return node.model_copy(update={"metadata": copied(node.metadata)})


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON holds it, in UTF-8; what it can't hold is its text."""
    return {_clean(str(name)): _plain(value) for name, value in metadata.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if value is None or type(value) in (bool, int):
        return value
    try:
        return json.loads(_clean(json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except (TypeError, ValueError):
        return _clean(str(value))


def _embedded(node: BaseNode) -> str:
    return _clean(node.get_content(metadata_mode=MetadataMode.EMBED))


def _clean(text: str) -> str:
    """Without surrogates that stand for no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
