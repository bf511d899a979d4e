"""Test that nodes which weren't verified are marked, and that models don't see the mark."""

from llama_index.core.schema import MetadataMode, TextNode

from llama_index_meve import MeVeRetriever
from tests.fake_components import make_components

TEXTS = ["blue sky over hills", "blue sea", "green grass"]


def retrieve():
    nodes = [TextNode(text=text, metadata={"page": "1"}) for text in TEXTS]
    results = MeVeRetriever.from_nodes(nodes, **make_components()).retrieve("blue sky zebra today")
    return {result.node.text: result.node for result in results}


def test_only_unverified_nodes_are_marked():
    marks = {text: node.metadata.get("meve_verified") for text, node in retrieve().items()}
    assert marks == {"blue sky over hills": None, "blue sea": False}


def test_mark_of_an_earlier_retrieval_is_removed():
    node = TextNode(text="blue sky over hills", metadata={"meve_verified": False})
    (result,) = MeVeRetriever.from_nodes([node], **make_components()).retrieve("blue sky")
    assert "meve_verified" not in result.node.metadata


def test_a_mark_is_in_no_text_for_models():
    sea = retrieve()["blue sea"]
    assert "meve_verified" not in sea.get_content(MetadataMode.LLM)
    assert "meve_verified" not in sea.get_content(MetadataMode.EMBED)
