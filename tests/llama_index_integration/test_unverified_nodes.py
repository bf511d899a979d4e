"""Test that each node says whether it was verified, and that models don't see the mark."""

from llama_index.core.schema import MetadataMode, TextNode

from llama_index_meve import MeVeRetriever
from tests.fake_components import make_components

TEXTS = ["blue sky over hills", "blue sea", "green grass"]


def retrieve():
    nodes = [TextNode(text=text, metadata={"page": "1"}) for text in TEXTS]
    results = MeVeRetriever.from_nodes(nodes, **make_components()).retrieve("blue sky zebra today")
    return {result.node.text: result.node for result in results}


def test_every_node_says_whether_it_was_verified():
    marks = {text: node.metadata.get("meve_verified") for text, node in retrieve().items()}
    assert marks == {"blue sky over hills": True, "blue sea": False}


def test_mark_of_an_earlier_retrieval_is_replaced():
    node = TextNode(text="blue sky over hills", metadata={"meve_verified": False})
    (result,) = MeVeRetriever.from_nodes([node], **make_components()).retrieve("blue sky")
    assert result.node.metadata["meve_verified"] is True
    assert result.score == 1.0


def test_a_mark_is_in_no_text_for_models():
    for node in retrieve().values():
        assert "meve_verified" not in node.get_content(MetadataMode.LLM)
        assert "meve_verified" not in node.get_content(MetadataMode.EMBED)
