"""Ranking of MeVePostprocessor over many numbers of nodes and top_n, threads and tasks."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode

from llama_index_meve import MeVePostprocessor, MeVeRetriever
from meve import Retriever
from meve._warn_once import _said

BLUE = "blue sky over green grass"
WORDS = BLUE.split()


def random_nodes(n, seed=0):
    """Return nodes with none to five words of the question, in random order."""
    rng = random.Random(seed)
    texts = [" ".join(rng.sample(WORDS, rng.randint(0, 5))) + f" number {i}" for i in range(n)]
    return [NodeWithScore(node=TextNode(id_=f"n{n - i:03d}", text=text), score=0.1) for i, text in enumerate(texts)]


def test_short_answer_among_other_topics_counts_by_the_cosine_of_its_sentence():
    """As in a `meve.Retriever`, whose passages are no nodes."""
    texts = ["Ann mends nets. Water tomatoes at dawn. Beans climb on poles. Ships sail at noon. Cats sleep.", "Bread."]
    node = TextNode(id_="p0000000", text=texts[0], metadata={"kind": "notes"})
    own = Retriever.from_texts([f"kind: notes\n\n{texts[0]}"], embedder="minilm")
    question = "When do tomatoes need water?"
    contexts = MeVeRetriever.from_nodes([node]).context(question), own.retrieve(question)
    of_node, of_text = (context.trace.candidates[0].scores for context in contexts)
    assert of_node["cosine"] > of_node["passage_cosine"] + 0.1
    assert of_node["passage_cosine"] == pytest.approx(of_text["passage_cosine"], abs=1e-3)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 31, 64, 65, 130])
@pytest.mark.parametrize("top_n", [None, 0, 1, 3, 7, 1_000])
def test_top_n_best_nodes_are_returned_once(n, top_n, parts):
    nodes = random_nodes(n)
    postprocessor = MeVePostprocessor.make(top_n=top_n, threshold=0.0, max_tokens=10_000, **parts)
    selected = postprocessor.postprocess_nodes(nodes, query_str=BLUE)
    scores = [each.score for each in selected]
    assert len(selected) == (n if top_n is None else min(n, top_n))
    assert all(type(score) is float for score in scores)
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len({each.node.node_id for each in selected}) == len(selected)
    if selected:
        everything = MeVePostprocessor.make(threshold=0.0, max_tokens=10_000, **parts)
        best = everything.postprocess_nodes(nodes, query_bundle=QueryBundle(BLUE))
        assert selected == best[: len(selected)]
    assert selected == asyncio.run(postprocessor.apostprocess_nodes(nodes, query_str=BLUE))


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_scores_keep_the_input_order(reverse, parts):
    """Also under top_n; fallback nodes rank behind."""
    nodes = [NodeWithScore(node=TextNode(id_=i, text="blue sky")) for i in sorted("dacbe", reverse=reverse)]
    wanted = [each.node.node_id for each in nodes]
    for top_n in (None, 3):
        postprocessor = MeVePostprocessor.make(top_n=top_n, **parts)
        assert [k.node.node_id for k in postprocessor.postprocess_nodes(nodes, query_str="blue sky")] == wanted[:top_n]
    others = [TextNode(id_=i, text="blue sky") for i in "0z"]
    behind = MeVePostprocessor.make(fallback=MeVeRetriever.from_nodes(others, **parts), **parts)
    selected = behind.postprocess_nodes(nodes[:2], query_str="blue sky")
    assert [k.node.node_id for k in selected] == [*wanted[:2], "0", "z"]


def test_single_irrelevant_node_is_rejected(parts):
    assert (
        MeVePostprocessor.make(when_insufficient="verified_only", **parts).postprocess_nodes(
            random_nodes(1, seed=3)[:1], query_str="zebra"
        )
        == []
    )


def test_a_verified_node_over_the_budget_is_shortened_not_lost(caplog):
    """LlamaIndex's own chunks have up to 1,024 tokens, twice the retriever's default budget."""
    _said.clear()
    other = " ".join(f"Tomatoes in bed {n} were tied up and watered at the root." for n in range(40))
    answer = "Tomatoes want six to eight hours of sun a day."
    nodes = [TextNode(id_="chunk", text=f"{other} {answer} {other}")]
    question = "How many hours of sun do tomatoes want?"
    with caplog.at_level("WARNING", "meve"):
        (short,) = MeVeRetriever.from_nodes(nodes).retrieve(question)
    assert short.node.metadata["meve_verified"] is True
    assert answer in short.node.text
    assert len(short.node.text) < len(nodes[0].text)
    assert "raise max_tokens" in caplog.text
    (whole,) = MeVePostprocessor().postprocess_nodes([NodeWithScore(node=nodes[0])], query_str=question)
    assert whole.node.text == nodes[0].text
    assert MeVePostprocessor.make().engine.config.max_tokens == 4_096


def test_shipped_models_select_the_relevant_text():
    texts = [
        "Bread is baked from flour.",
        "Tomatoes want six to eight hours of sun a day.",
        "The capital of France is Paris.",
    ]
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    selected = MeVePostprocessor(top_n=2).postprocess_nodes(nodes, query_str="How much sun do tomatoes want?")
    assert [each.node.text for each in selected] == [texts[1]]
    assert 0.5 <= selected[0].score <= 1


def test_similarity_cutoff_applies_to_probabilities(parts):
    selected = MeVePostprocessor.make(threshold=0.0, **parts).postprocess_nodes(random_nodes(9), query_str=BLUE)
    left = SimilarityPostprocessor(similarity_cutoff=0.5).postprocess_nodes(selected)
    assert left == [each for each in selected if each.score >= 0.5]
    assert 0 < len(left) < len(selected)


async def test_threads_and_tasks_get_equal_results(parts):
    postprocessor, nodes = MeVePostprocessor.make(**parts), random_nodes(20)
    alone = postprocessor.postprocess_nodes(nodes, query_str=BLUE)
    with ThreadPoolExecutor(20) as pool:
        in_threads = pool.map(lambda _: postprocessor.postprocess_nodes(nodes, query_str=BLUE), range(40))
        assert list(in_threads) == [alone] * 40
    in_tasks = [postprocessor.apostprocess_nodes(nodes, query_str=BLUE) for _ in range(50)]
    assert await asyncio.gather(*in_tasks) == [alone] * 50


def test_nodes_without_text_are_left_out_unless_they_hold_media(parts):
    bare = [ImageNode(id_="bare", image="aGk=", metadata={"note": "blue sky"}), TextNode(text=" \n")]
    with_text = ImageNode(id_="with-text", image="aGk=", text="blue sky over green grass")
    selected = MeVePostprocessor.make(**parts).postprocess_nodes(
        [NodeWithScore(node=node) for node in (*bare, with_text)], query_str=BLUE
    )
    assert [(each.node.node_id, each.node.image) for each in selected] == [("with-text", "aGk="), ("bare", "aGk=")]
    assert MeVeRetriever.from_nodes([*bare, with_text], **parts).retrieve(BLUE)[0].node.node_id == "with-text"


def test_lone_surrogates_in_nodes_are_kept(parts):
    """Some PDF readers make them."""
    broken = TextNode(id_="broken", text="blue sky \ud800 over grass", metadata={"from\udc00": "scan \ud800"})
    nodes = [NodeWithScore(node=broken)]
    assert MeVePostprocessor.make(**parts).postprocess_nodes(nodes, query_str=BLUE)[0].node.text == broken.text
    retrieved = MeVeRetriever.from_nodes([broken], **parts).retrieve(BLUE)[0].node
    assert (retrieved.text, retrieved.metadata) == (broken.text, {**broken.metadata, "meve_verified": True})
