"""The postprocessor: what rerankers are tested for, and what they get wrong."""

import asyncio
import copy
import json
import pickle

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import ValidationError

from llama_index_meve import MeVePostprocessor
from llama_index_meve import _instrumentation as events
from llama_index_meve._instrumentation import MeVePhaseEvent, MeVeTraceEvent
from meve.errors import ModelError
from meve.pipeline.trace import Trace
from tests.llama_index_integration.conftest import Listener, listening, uid

BLUE = "blue sky"


@pytest.fixture
def found(nodes):
    return [NodeWithScore(node=n, score=0.5) for n in nodes]


def ids(kept):
    return [each.node.node_id for each in kept]


def both(postprocessor, given, query=BLUE):
    """What sync and async calls return, which is the same."""
    kept = postprocessor.postprocess_nodes(given, query_str=query)
    later = asyncio.run(postprocessor.apostprocess_nodes(given, query_bundle=QueryBundle(query)))
    assert ids(kept) == ids(later)
    assert [k.score for k in kept] == [k.score for k in later]
    return kept


def test_it_is_what_llamaindex_takes_it_for(parts):
    made = MeVePostprocessor.make(**parts)
    assert isinstance(made, BaseNodePostprocessor)
    assert "BaseNodePostprocessor" in [base.__name__ for base in MeVePostprocessor.__mro__]
    made.callback_manager = CallbackManager([])  # as engines do
    assert json.dumps(made.to_dict())


def test_it_verifies_and_orders(parts, found):
    kept = both(MeVePostprocessor.make(**parts), found)
    assert ids(kept)[0] == uid("sky")
    assert uid("zebra") not in ids(kept)
    assert [k.score for k in kept] == sorted((k.score for k in kept), reverse=True)
    assert all(type(k.score) is float for k in kept)
    assert json.loads(kept[0].to_json())["score"] == 1.0


@pytest.mark.parametrize("top_n", [0, 1, 2, 3, 4, 9])
def test_top_n_bounds_what_comes_back(parts, found, top_n):
    """Zero, one, as many as there are, and more."""
    kept = both(MeVePostprocessor.make(top_n=top_n, threshold=0.0, **parts), found)
    assert len(kept) == min(top_n, 4)


@pytest.mark.parametrize(
    "wrong", [{"top_n": -1}, {"threshold": 2}, {"max_tokens": 0}, {"top_k": 3}, {"when_empty": "x"}]
)
def test_impossible_or_unknown_fields_are_refused(parts, wrong):
    with pytest.raises(ValidationError):
        MeVePostprocessor.make(**wrong, **parts)


def test_no_nodes_no_question(parts, found):
    made = MeVePostprocessor.make(**parts)
    assert both(made, []) == []
    with pytest.raises(ValueError, match="query"):
        made.postprocess_nodes(found)
    with pytest.raises(ValueError, match="query"):
        asyncio.run(made.apostprocess_nodes(found))


def test_what_it_is_given_stays_as_it_was(parts, found):
    """Nodes, scores and the question; what it returns are new objects around the same nodes."""
    before, bundle = copy.deepcopy(found), QueryBundle(BLUE)
    kept = MeVePostprocessor.make(**parts).postprocess_nodes(found, query_bundle=bundle)
    assert found == before
    assert bundle == QueryBundle(BLUE)
    assert bundle.embedding is None
    assert not {id(k) for k in kept} & {id(f) for f in found}
    assert kept[0].node.relationships == before[0].node.relationships
    assert kept[0].node.metadata == before[0].node.metadata


def test_it_judges_what_embedders_see_and_counts_what_models_are_sent(parts):
    """Metadata that only the one or the other sees."""
    told = TextNode(text="sky", metadata={"colour": "blue"}, excluded_llm_metadata_keys=["colour"])
    kept = MeVePostprocessor.make(max_tokens=1, **parts).postprocess_nodes([NodeWithScore(node=told)], query_str=BLUE)
    assert len(kept) == 1
    long = TextNode(text="blue sky", metadata={"note": "many words " * 20}, excluded_embed_metadata_keys=["note"])
    tight = MeVePostprocessor.make(max_tokens=10, **parts)
    assert tight.postprocess_nodes([NodeWithScore(node=long)], query_str=BLUE) == []


def test_the_budget_is_kept(parts, found):
    kept = both(MeVePostprocessor.make(max_tokens=9, threshold=0.0, **parts), found)
    assert sum(len(k.node.get_content(metadata_mode=MetadataMode.LLM).split()) for k in kept) <= 9
    assert kept


def test_of_equal_ids_the_first_comes_once(parts, nodes):
    twice = [NodeWithScore(node=nodes[0], score=0.9), NodeWithScore(node=nodes[0], score=0.1)]
    assert len(both(MeVePostprocessor.make(**parts), twice)) == 1


class Other(BaseRetriever):
    def __init__(self, nodes):
        self.nodes, self.asked = nodes, []
        super().__init__()

    def _retrieve(self, query_bundle):
        self.asked.append(query_bundle.query_str)
        return [NodeWithScore(node=n, score=1.0) for n in self.nodes]


def test_a_fallback_is_asked_only_where_too_little_is_verified(parts, nodes, found):
    other = Other(nodes[:1])
    made = MeVePostprocessor.make(fallback=other, **parts)
    assert ids(made.postprocess_nodes(found[2:3], query_str=BLUE)) == [uid("sky")]
    assert other.asked == [BLUE]
    enough = [NodeWithScore(node=TextNode(text=f"blue sky {n}")) for n in range(3)]
    made.postprocess_nodes(enough, query_str=BLUE)
    assert other.asked == [BLUE]


def test_where_nothing_qualifies_it_can_give_the_best(parts, nodes):
    """Of all that was judged, however late it stood and whatever the fallback may bring; if it fits."""
    strict = {**parts, "config": parts["config"].override(fallback_floor=1.0, fallback_k=0)}
    many = [NodeWithScore(node=TextNode(text=f"grass {n}")) for n in range(8)]
    many.append(NodeWithScore(node=nodes[2]))
    far = "zebra and nothing of the kind"
    assert both(MeVePostprocessor.make(**strict), many, far) == []
    best = both(MeVePostprocessor.make(when_empty="best", **strict), many, far)
    assert ids(best) == [uid("zebra")]
    assert 0 < best[0].score < 0.5
    tight = both(MeVePostprocessor.make(when_empty="best", max_tokens=2, **strict), many, far)
    assert tight[0].node.text.startswith("grass")


def test_it_needs_nothing_but_its_name():
    """The models that ship, then; and it survives being written, pickled and copied."""
    made = MeVePostprocessor(top_n=1)
    assert made.engine.verifier.name == "meve-verifier-1"
    again = MeVePostprocessor.from_dict(made.to_dict())
    assert (again.top_n, again.engine.verifier.name) == (1, "meve-verifier-1")
    assert pickle.loads(pickle.dumps(made)).engine.verifier.name == "meve-verifier-1"
    assert copy.deepcopy(made).engine is made.engine
    for wrong in ({"engine": "x"}, {"fallback": "bm25"}):
        with pytest.raises(ValidationError, match="give a"):
            MeVePostprocessor(**wrong)


def test_a_fallback_is_asked_where_nothing_was_brought(parts, nodes):
    other = Other(nodes[:1])
    assert ids(both(MeVePostprocessor.make(fallback=other, **parts), [])) == [uid("sky")]


def test_what_is_sent_never_exceeds_the_budget(parts):
    """Also where sentences are packed, and models are sent other metadata than embedders see."""
    note = "many words " * 20
    long = TextNode(
        text="A blue sky. Quite something else. Nothing of the kind.",
        metadata={"note": note},
        excluded_embed_metadata_keys=["note"],
    )
    secret = TextNode(
        text="A blue sky. Quite something else. Nothing of the kind.",
        metadata={"patient": "blue sky"},
        excluded_llm_metadata_keys=["patient"],
    )
    whole = Document(text="A blue sky. Quite something else. Nothing of the kind.")
    for packing in ("passages", "sentences"):
        config = parts["config"].override(packing=packing)
        for budget in (3, 10, 40, 400):
            made = MeVePostprocessor.make(max_tokens=budget, **{**parts, "config": config})
            for each in (long, secret, whole):
                kept = made.postprocess_nodes([NodeWithScore(node=each)], query_str=BLUE)
                sent = "\n\n".join(k.node.get_content(metadata_mode=MetadataMode.LLM) for k in kept)
                assert len(sent.split()) <= budget
                assert "patient" not in sent


def test_what_is_done_to_what_it_returns_reaches_nothing_else(parts, nodes):
    kept = MeVePostprocessor.make(**parts).postprocess_nodes([NodeWithScore(node=nodes[0])], query_str=BLUE)
    kept[0].node.text = "changed"
    kept[0].node.metadata["lang"] = "changed"
    assert (nodes[0].text, nodes[0].metadata["lang"]) == ("A blue sky today.", "en")


def test_a_blank_question_selects_nothing(parts, found):
    assert both(MeVePostprocessor.make(**parts), found, "  ") == []


def test_events_come_in_pairs_with_phases_between_and_no_text(parts, found):
    """And none for a call that has nothing to do."""
    with listening(Listener(heard=[])) as listener:
        made = MeVePostprocessor.make(**parts)
        both(made, [])
        assert listener.heard == []
        both(made, found)
    kinds = [type(event) for event in listener.heard]
    assert kinds.count(ReRankStartEvent) == kinds.count(ReRankEndEvent) == kinds.count(MeVeTraceEvent) == 2
    phases = [event.phase["name"] for event in listener.heard if isinstance(event, MeVePhaseEvent)]
    assert phases[:5] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
    told = [event for event in listener.heard if isinstance(event, MeVePhaseEvent | MeVeTraceEvent)]
    assert "sky today" not in json.dumps([event.model_dump(mode="json") for event in told])


def test_events_come_in_pairs_also_where_it_fails(parts, found, monkeypatch):
    made = MeVePostprocessor.make(**parts)
    monkeypatch.setattr(made.engine.verifier, "score", lambda query, passages: 1 / 0)
    with listening(Listener(heard=[])) as listener, pytest.raises(ModelError):
        made.postprocess_nodes(found, query_str=BLUE)
    kinds = [type(event) for event in listener.heard]
    assert kinds.count(ReRankStartEvent) == kinds.count(ReRankEndEvent) == 1
    assert [e.phase["skipped"] for e in listener.heard if isinstance(e, MeVePhaseEvent)] == ["", "failed: ModelError"]


def test_where_nobody_listens_no_event_is_made(parts, found, monkeypatch):
    for kind in ("ReRankStartEvent", "ReRankEndEvent"):
        monkeypatch.setattr(f"llama_index_meve.postprocessor.{kind}", None)
    monkeypatch.setattr(events, "MeVePhaseEvent", None)
    monkeypatch.setattr(events, "MeVeTraceEvent", None)
    monkeypatch.setattr(Trace, "to_dict", None)
    assert both(MeVePostprocessor.make(**parts), found)


def test_old_callbacks_hear_of_it_too(parts, found):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    made = MeVePostprocessor.make(**parts)
    made.callback_manager = CallbackManager([debug])
    both(made, found)
    pairs = debug.get_event_pairs(CBEventType.RERANKING)
    assert len(pairs) == 2
    assert all(len(pair) == 2 for pair in pairs)


def test_sync_and_async_calls_are_spans(parts, found):
    root, spans = get_dispatcher(), SimpleSpanHandler()
    root.add_span_handler(spans)
    try:
        both(MeVePostprocessor.make(**parts), found)
    finally:
        root.span_handlers.remove(spans)
    names = {span.id_.partition("-")[0] for span in spans.completed_spans}
    assert {"MeVePostprocessor._postprocess_nodes", "MeVePostprocessor._apostprocess_nodes"} <= names
