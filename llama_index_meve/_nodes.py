"""Convert LlamaIndex nodes to passages and back."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from llama_index.core.schema import BaseNode, ImageNode, MetadataMode, NodeWithScore, TextNode

from meve.errors import PassageError
from meve.integrations._metadata import copy_metadata
from meve.integrations._passage_ids import tell_apart
from meve.pipeline.context import Context
from meve.types import Passage

OPTION_MAP = {"top_k": "limit", "top_n": "limit"}
"""LlamaIndex's option names, and MeVe's names for the same options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePassage(Passage):
    """A passage made from a copy of a node."""

    node: BaseNode
    embedded: str

    @property
    def content(self) -> str:
        """The text that embedders see and the verifier judges."""
        return self.embedded

    @property
    def prompt_text(self) -> str:
        """The text that a response synthesizer sends to the model."""
        return _replace_surrogates(self.node.get_content(metadata_mode=MetadataMode.LLM))

    def with_text(self, text: str) -> Self:
        """Return a passage of another copy of the node, with this text."""
        node = self.node.model_copy()
        node.set_content(text)
        return replace(self, text=text, node=node, embedded=_embedded_text(node))


_MEDIA = ("image_resource", "audio_resource", "video_resource")
VERIFIED = "meve_verified"
"""The metadata key that says whether a retrieved node was verified."""


def node_to_passage(node: BaseNode) -> NodePassage:
    """Return a copy of a node as a passage. Metadata values that JSON can't represent become strings."""
    node = copy_node(node)
    return NodePassage(
        id=node.node_id,
        title=_replace_surrogates(node.get_metadata_str(mode=MetadataMode.EMBED)),
        text=_replace_surrogates(node.get_content(metadata_mode=MetadataMode.NONE)),
        metadata={_replace_surrogates(str(name)): _json_value(value) for name, value in node.metadata.items()},
        node=node,
        embedded=_embedded_text(node),
    )


def nodes_to_passages(nodes: Iterable[BaseNode]) -> list[NodePassage]:
    """Return the nodes that have text as passages; of equal ids, the first."""
    passages: dict[str, NodePassage] = {}
    for passage in _read_passages(nodes):
        passages.setdefault(passage.id, passage)
    return list(passages.values())


def found_passages(nodes: Iterable[BaseNode]) -> list[NodePassage]:
    """Return the nodes that have text as passages, as retrievers found them; equal ids may stand for other texts."""
    return tell_apart(_read_passages(nodes))


def _read_passages(nodes: Iterable[BaseNode]) -> Iterator[NodePassage]:
    for node in nodes:
        if not isinstance(node, BaseNode):
            raise PassageError(f"nodes must be nodes of LlamaIndex, got {node!r:.60}: make a TextNode of each text")
        passage = node_to_passage(node)
        if passage.text.strip():
            yield passage


def context_to_nodes(context: Context) -> list[NodeWithScore]:
    """Return the passages of a context as copies of their nodes, best first, scored by their probability.

    Each node's metadata says in `meve_verified` whether it was verified; models don't see that.
    """
    nodes = []
    for selected in context.passages:
        passage = selected.passage
        if isinstance(passage, NodePassage):
            node: BaseNode = copy_node(passage.node)
        else:
            node = TextNode(id_=passage.id, text=passage.content, metadata=dict(passage.metadata))
            node.excluded_llm_metadata_keys = list(passage.metadata)  # tokens were counted without metadata
        mark_verified(node, selected.verified)
        nodes.append(NodeWithScore(node=node, score=None if selected.score is None else float(selected.score)))
    return nodes


def list_unread(nodes: Iterable[BaseNode]) -> list[NodeWithScore]:
    """Return copies of the nodes with media and no text, which no verifier reads; of equal ids, the first."""
    unread: dict[str, BaseNode] = {}
    for node in nodes:
        has_media = isinstance(node, ImageNode) or any(getattr(node, name, None) for name in _MEDIA)
        if has_media and not node.get_content(metadata_mode=MetadataMode.NONE).strip():
            unread.setdefault(node.node_id, copy_node(node))
    for node in unread.values():
        mark_verified(node, False)
    return [NodeWithScore(node=node) for node in unread.values()]


def mark_verified(node: BaseNode, verified: bool) -> None:
    """Set `meve_verified` in the node's metadata, where neither models nor embedders see it."""
    node.metadata[VERIFIED] = verified
    node.excluded_llm_metadata_keys = list(dict.fromkeys([*node.excluded_llm_metadata_keys, VERIFIED]))
    node.excluded_embed_metadata_keys = list(dict.fromkeys([*node.excluded_embed_metadata_keys, VERIFIED]))


def copy_node(node: BaseNode) -> BaseNode:
    return node.model_copy(update={"metadata": copy_metadata(node.metadata)})


def _json_value(value: Any) -> Any:
    if isinstance(value, str):
        return _replace_surrogates(value)
    if value is None or type(value) in (bool, int):
        return value
    try:
        return json.loads(_replace_surrogates(json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except (TypeError, ValueError):
        return _replace_surrogates(str(value))


def _embedded_text(node: BaseNode) -> str:
    return _replace_surrogates(node.get_content(metadata_mode=MetadataMode.EMBED))


def _replace_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
