"""LlamaIndex's nodes as passages, and back: judged by what embedders see of them, counted by what models are sent."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from meve.context import Context
from meve.skins import plain_metadata
from meve.types import Passage

NAMES = {"top_k": "limit", "top_n": "limit"}
"""Where LlamaIndex's words for a setting aren't ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePassage(Passage):
    """A passage that remembers the node that it was made of."""

    node: BaseNode
    sent: str | None
    """What a synthesizer sends to a model of it; None once its text was cut to some sentences."""

    @property
    def shown(self) -> str:
        """What a synthesizer sends to a model of it."""
        return self.content if self.sent is None else self.sent

    def with_text(self, text: str) -> Self:
        """The same node with other text."""
        return replace(self, text=text, sent=None)


def as_passage(node: BaseNode) -> NodePassage:
    """A node as a passage; its metadata as far as JSON can hold it, which is what filters go by."""
    return NodePassage(
        id=node.node_id,
        text=node.get_content(metadata_mode=MetadataMode.EMBED),
        metadata=plain_metadata(node.metadata),
        node=node,
        sent=node.get_content(metadata_mode=MetadataMode.LLM),
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
    """The passages of a context, best first: the nodes they were made of, with their probability as a plain float."""
    made = []
    for found in context.passages:
        passage = found.passage
        if not isinstance(passage, NodePassage):
            node: BaseNode = TextNode(id_=passage.id, text=passage.content, metadata=dict(passage.metadata))
        elif passage.sent is None and isinstance(passage.node, TextNode):
            node = passage.node.model_copy(update={"text": passage.text})
        else:
            node = passage.node
        made.append(NodeWithScore(node=node, score=None if found.score is None else float(found.score)))
    return made
