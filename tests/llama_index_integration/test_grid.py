"""What rerankers are tested for, over a grid of how many come and how many are wanted."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode

from llama_index_meve import MeVePostprocessor, MeVeRetriever

BLUE = "blue sky over green grass"
WORDS = BLUE.split()


def brought(n, seed=0):
    """Nodes with nought to five of the words of the question, in no order."""
    rng = random.Random(seed)
    texts = [" ".join(rng.sample(WORDS, rng.randint(0, 5))) + f" number {i}" for i in range(n)]
    return [NodeWithScore(node=TextNode(id_=f"n{n - i:03d}", text=text), score=0.1) for i, text in enumerate(texts)]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 31, 64, 65, 130])
@pytest.mark.parametrize("top_n", [None, 0, 1, 3, 7, 1_000])
def test_as_many_as_wanted_the_best_first_each_once(n, top_n, parts):
    given = brought(n)
    made = MeVePostprocessor.make(top_n=top_n, threshold=0.0, max_tokens=10_000, **parts)
    kept = made.postprocess_nodes(given, query_str=BLUE)
    scores = [each.score for each in kept]
    assert len(kept) == (n if top_n is None else min(n, top_n))
    assert all(type(score) is float for score in scores)
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len({each.node.node_id for each in kept}) == len(kept)
    if kept:
        everything = MeVePostprocessor.make(threshold=0.0, max_tokens=10_000, **parts)
        best = everything.postprocess_nodes(given, query_bundle=QueryBundle(BLUE))
        assert kept == best[: len(kept)]
    assert kept == asyncio.run(made.apostprocess_nodes(given, query_str=BLUE))


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_scores_keep_the_order_in_which_they_came(reverse, parts):
    """Not that of their ids, and also where there is room for some alone; what a fallback adds stands behind."""
    given = [NodeWithScore(node=TextNode(id_=i, text="blue sky")) for i in sorted("dacbe", reverse=reverse)]
    wanted = [each.node.node_id for each in given]
    for top_n in (None, 3):
        made = MeVePostprocessor.make(top_n=top_n, **parts)
        assert [k.node.node_id for k in made.postprocess_nodes(given, query_str="blue sky")] == wanted[:top_n]
    others = [TextNode(id_=i, text="blue sky") for i in "0z"]
    behind = MeVePostprocessor.make(fallback=MeVeRetriever.from_nodes(others, **parts), **parts)
    kept = behind.postprocess_nodes(given[:2], query_str="blue sky")
    assert [k.node.node_id for k in kept] == [*wanted[:2], "0", "z"]


def test_a_single_node_may_be_turned_down(parts):
    assert MeVePostprocessor.make(**parts).postprocess_nodes(brought(1, seed=3)[:1], query_str="zebra") == []


def test_the_models_that_ship_order_a_handful():
    texts = [
        "Bread is baked from flour.",
        "Tomatoes want six to eight hours of sun a day.",
        "The capital of France is Paris.",
    ]
    given = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    kept = MeVePostprocessor(top_n=2).postprocess_nodes(given, query_str="How much sun do tomatoes want?")
    assert [each.node.text for each in kept] == [texts[1]]
    assert 0.5 <= kept[0].score <= 1


def test_a_cutoff_behind_it_sees_probabilities(parts):
    kept = MeVePostprocessor.make(threshold=0.0, **parts).postprocess_nodes(brought(9), query_str=BLUE)
    left = SimilarityPostprocessor(similarity_cutoff=0.5).postprocess_nodes(kept)
    assert left == [each for each in kept if each.score >= 0.5]
    assert 0 < len(left) < len(kept)


def test_twenty_threads_get_what_one_gets(parts):
    made, given = MeVePostprocessor.make(**parts), brought(20)
    alone = made.postprocess_nodes(given, query_str=BLUE)
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda _: made.postprocess_nodes(given, query_str=BLUE), range(40))) == [alone] * 40


async def test_fifty_tasks_get_what_one_gets(parts):
    made, given = MeVePostprocessor.make(**parts), brought(20)
    alone = made.postprocess_nodes(given, query_str=BLUE)
    assert await asyncio.gather(*[made.apostprocess_nodes(given, query_str=BLUE) for _ in range(50)]) == [alone] * 50


def test_what_has_no_text_cannot_be_verified_and_is_left_out(parts):
    """Images, and nodes of white space; an image with a text is judged by that."""
    bare = [ImageNode(image="aGk=", metadata={"note": "blue sky"}), TextNode(text=" \n")]
    told = ImageNode(id_="told", image="aGk=", text="blue sky over green grass")
    kept = MeVePostprocessor.make(**parts).postprocess_nodes(
        [NodeWithScore(node=node) for node in (*bare, told)], query_str=BLUE
    )
    assert [(each.node.node_id, each.node.image) for each in kept] == [("told", "aGk=")]
    assert MeVeRetriever.from_nodes([*bare, told], **parts).retrieve(BLUE)[0].node.node_id == "told"


def test_characters_that_are_none_break_nothing(parts):
    """Halves of surrogate pairs, as some PDF readers make them; the node keeps them."""
    broken = TextNode(id_="broken", text="blue sky \ud800 over grass", metadata={"from\udc00": "scan \ud800"})
    given = [NodeWithScore(node=broken)]
    assert MeVePostprocessor.make(**parts).postprocess_nodes(given, query_str=BLUE)[0].node.text == broken.text
    found = MeVeRetriever.from_nodes([broken], **parts).retrieve(BLUE)[0].node
    assert (found.text, found.metadata) == (broken.text, broken.metadata)
