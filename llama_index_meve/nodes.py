"""LlamaIndex's nodes as passages, and back: judged by what embedders see of them, counted by what models are sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from meve.context import Context
from meve.types import Passage


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
        metadata={str(name): value for name, value in node.metadata.items() if plain(value)},
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


def plain(value: object) -> bool:
    """Whether JSON can hold it."""
    if isinstance(value, list | tuple):
        return all(plain(each) for each in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and plain(each) for name, each in value.items())
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return value is None or isinstance(value, str | int)


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    """Their ids."""
    return [each.node.node_id for each in nodes]


def overrides(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by MeVe's names, of those that are set; the later given wins."""
    made: dict[str, Any] = {}
    for options in given:
        made |= {("limit" if name == "top_k" else name): value for name, value in options.items() if value is not None}
    return made
