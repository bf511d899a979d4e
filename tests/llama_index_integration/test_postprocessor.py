"""MeVePostprocessor: selection, budgets, fallbacks, serialization and events."""

import asyncio
import copy
import json
import pickle
from dataclasses import replace

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    Document,
    ImageNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from pydantic import ValidationError

from llama_index_meve import MeVePostprocessor
from llama_index_meve import _instrumentation as events
from llama_index_meve._instrumentation import MeVePhaseEvent, MeVeTraceEvent
from meve.errors import ModelError
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.trace import Trace
from tests.llama_index_integration.conftest import (
    Listener,
    RecordingRetriever,
    ids,
    listening,
    recording_span_names,
    uid,
)

BLUE = "blue sky"


@pytest.fixture
def retrieved(nodes):
    return [NodeWithScore(node=n, score=0.5) for n in nodes]


def run_both(postprocessor, given, query=BLUE):
    """Return the result of a sync call, which equals the async one."""
    selected = postprocessor.postprocess_nodes(given, query_str=query)
    later = asyncio.run(postprocessor.apostprocess_nodes(given, query_bundle=QueryBundle(query)))
    assert ids(selected) == ids(later)
    assert [k.score for k in selected] == [k.score for k in later]
    return selected


def test_postprocessor_is_a_base_node_postprocessor(parts):
    postprocessor = MeVePostprocessor.make(**parts)
    assert isinstance(postprocessor, BaseNodePostprocessor)
    postprocessor.callback_manager = CallbackManager([])  # as engines do
    assert json.dumps(postprocessor.to_dict())


def test_nodes_are_verified_and_ordered(parts, retrieved):
    selected = run_both(MeVePostprocessor.make(**parts), retrieved)
    assert ids(selected)[0] == uid("sky")
    assert uid("zebra") not in ids(selected)
    assert [k.score for k in selected] == sorted((k.score for k in selected), reverse=True)
    assert all(type(k.score) is float for k in selected)
    assert json.loads(selected[0].to_json())["score"] == 1.0


@pytest.mark.parametrize(
    "wrong", [{"top_n": -1}, {"threshold": 2}, {"max_tokens": 0}, {"top_k": 3}, {"when_insufficient": "x"}]
)
def test_invalid_or_unknown_field_is_rejected(parts, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MeVePostprocessor.make(**wrong, **parts)


def test_no_nodes_or_a_blank_question_return_nothing_and_no_question_raises(parts, retrieved):
    postprocessor = MeVePostprocessor.make(**parts)
    assert run_both(postprocessor, []) == run_both(postprocessor, retrieved, "  ") == []
    with pytest.raises(ValueError, match="query"):
        postprocessor.postprocess_nodes(retrieved)
    with pytest.raises(ValueError, match="query"):
        asyncio.run(postprocessor.apostprocess_nodes(retrieved))


def test_given_nodes_and_question_are_unchanged(parts, retrieved):
    before, bundle = copy.deepcopy(retrieved), QueryBundle(BLUE)
    selected = MeVePostprocessor.make(**parts).postprocess_nodes(retrieved, query_bundle=bundle)
    assert retrieved == before
    assert bundle == QueryBundle(BLUE)
    assert bundle.embedding is None
    assert not {id(k) for k in selected} & {id(f) for f in retrieved}
    assert selected[0].node.relationships == before[0].node.relationships
    assert selected[0].node.metadata == {**before[0].node.metadata, "meve_verified": True}
    selected[0].node.text = "changed"
    selected[0].node.metadata["lang"] = "changed"
    assert retrieved == before


def test_embedded_text_is_judged_and_llm_text_is_counted(parts):
    colour_node = TextNode(text="sky", metadata={"colour": "blue"}, excluded_llm_metadata_keys=["colour"])
    selected = MeVePostprocessor.make(max_tokens=1, **parts).postprocess_nodes(
        [NodeWithScore(node=colour_node)], query_str=BLUE
    )
    assert len(selected) == 1
    long = TextNode(text="blue sky", metadata={"note": "many words " * 20}, excluded_embed_metadata_keys=["note"])
    tight = MeVePostprocessor.make(max_tokens=10, **parts)
    assert tight.postprocess_nodes([NodeWithScore(node=long)], query_str=BLUE) == []


def test_duplicate_ids_are_returned_once(parts, nodes):
    twice = [NodeWithScore(node=nodes[0], score=0.9), NodeWithScore(node=nodes[0], score=0.1)]
    assert len(run_both(MeVePostprocessor.make(**parts), twice)) == 1


def test_different_texts_of_one_id_are_kept(parts):
    found = [NodeWithScore(node=TextNode(id_="1", text=text)) for text in ("A blue sky.", "The blue sky falls.")]
    selected = run_both(MeVePostprocessor.make(**parts), found)
    assert [(each.node.node_id, each.node.text) for each in selected] == [
        ("1", "A blue sky."), ("1", "The blue sky falls."),
    ]  # fmt: skip


def test_fallback_is_queried_only_if_too_few_nodes_are_verified(parts, nodes, retrieved):
    other = RecordingRetriever(nodes[:1])
    postprocessor = MeVePostprocessor.make(fallback=other, **parts)
    assert ids(postprocessor.postprocess_nodes(retrieved[2:3], query_str=BLUE)) == [uid("sky")]
    assert other.queries == [BLUE]
    enough = [NodeWithScore(node=TextNode(text=f"blue sky {n}")) for n in range(3)]
    postprocessor.postprocess_nodes(enough, query_str=BLUE)
    assert other.queries == [BLUE]
    assert ids(run_both(postprocessor, [])) == [uid("sky")]


def test_nodes_with_media_count_for_every_spelling_of_the_limit(parts, retrieved):
    images = [NodeWithScore(node=ImageNode(id_=f"i{n}", image_url="http://x/y.png")) for n in range(3)]
    config = {"config": replace(parts["config"], limit=2)}
    for options in ({"top_n": 2}, {"limit": 2}, {"options": {"limit": 2}}, config):
        found = MeVePostprocessor.make(**{**parts, **options}).postprocess_nodes([*retrieved, *images], query_str=BLUE)
        assert len(found) == 2, options


def test_nodes_with_media_and_no_text_follow_the_others(parts, retrieved):
    image = NodeWithScore(node=ImageNode(id_="i", image_url="http://x/y.png"), score=0.9)
    sound = NodeWithScore(node=Node(id_="s", audio_resource=MediaResource(url="http://x/y.mp3")))
    blank = NodeWithScore(node=TextNode(text=" "))
    given, question = [image, blank, sound, image, *retrieved], {"query_str": "blue sky"}
    read = MeVePostprocessor.make(**parts).postprocess_nodes(retrieved, **question)
    shown = MeVePostprocessor.make(**parts).postprocess_nodes(given, **question)
    assert [each.node_id for each in shown] == [*(each.node_id for each in read), "i", "s"]
    assert [(each.score, each.metadata["meve_verified"]) for each in shown[-2:]] == [(None, False)] * 2
    assert "meve_verified" not in image.node.metadata
    assert (
        len(MeVePostprocessor.make(top_n=len(read) + 1, **parts).postprocess_nodes(given, **question)) == len(read) + 1
    )
    strict = MeVePostprocessor.make(when_insufficient="verified_only", **parts)
    assert strict.postprocess_nodes([image], **question) == []


@pytest.mark.parametrize("way", ["verified_only", "abstain"])
def test_when_insufficient_decides_what_is_returned(parts, retrieved, way):
    far = "zebra facts among nothing else"
    shown = run_both(MeVePostprocessor.make(**parts), retrieved, far)
    assert ids(shown)[0] == uid("zebra")
    assert 0 < shown[0].score < 0.5
    assert shown[0].node.metadata["meve_verified"] is False
    assert run_both(MeVePostprocessor.make(when_insufficient=way, **parts), retrieved, far) == []


def test_default_postprocessor_uses_shipped_models_and_survives_serialization():
    postprocessor = MeVePostprocessor(top_n=1)
    assert postprocessor.engine.verifier.name == "meve-verifier-1"
    again = MeVePostprocessor.from_dict(postprocessor.to_dict())
    assert (again.top_n, again.engine.verifier.name) == (1, "meve-verifier-1")
    assert pickle.loads(pickle.dumps(postprocessor)).engine.verifier.name == "meve-verifier-1"
    assert copy.deepcopy(postprocessor).engine is postprocessor.engine
    for wrong in ({"engine": "x"}, {"fallback": "bm25"}):
        with pytest.raises(ValidationError, match=r"must be a (meve|LlamaIndex)"):
            MeVePostprocessor(**wrong)


def test_settings_of_the_engine_survive_serialization():
    config = RetrieverConfig(when_insufficient="verified_only", max_tokens=99, limit=5, citations=True)
    given = MeVePostprocessor.make(config=config, top_n=2, max_tokens=50, options={"citations": False})
    reads = (
        MeVePostprocessor.from_dict(given.to_dict()),
        MeVePostprocessor.from_json(given.to_json()),
        pickle.loads(pickle.dumps(given)),
    )
    for again in reads:
        settings = again.engine.resolve_config(None, again._engine_options())
        assert settings == config.override(limit=2, max_tokens=50, citations=False)
        assert again.to_dict() == given.to_dict()
    assert MeVePostprocessor(top_n=1).to_dict()["options"] == {}


def test_llm_text_never_exceeds_the_budget(parts, retrieved):
    selected = run_both(MeVePostprocessor.make(max_tokens=9, threshold=0.0, **parts), retrieved)
    assert 0 < sum(len(k.node.get_content(metadata_mode=MetadataMode.LLM).split()) for k in selected) <= 9
    note = "many words " * 20
    text = "A blue sky. Quite something else. Nothing of the kind."
    long = TextNode(text=text, metadata={"note": note}, excluded_embed_metadata_keys=["note"])
    secret = TextNode(text=text, metadata={"patient": "blue sky"}, excluded_llm_metadata_keys=["patient"])
    whole = Document(text=text)
    for packing in ("passages", "sentences"):
        config = parts["config"].override(packing=packing)
        for budget in (3, 10, 40, 400):
            postprocessor = MeVePostprocessor.make(max_tokens=budget, **{**parts, "config": config})
            for each in (long, secret, whole):
                selected = postprocessor.postprocess_nodes([NodeWithScore(node=each)], query_str=BLUE)
                sent = "\n\n".join(k.node.get_content(metadata_mode=MetadataMode.LLM) for k in selected)
                assert len(sent.split()) <= budget
                assert "patient" not in sent


def test_events_are_paired_and_hold_no_text(parts, retrieved):
    with listening(Listener(received=[])) as listener:
        postprocessor = MeVePostprocessor.make(**parts)
        run_both(postprocessor, [])
        assert listener.received == []
        run_both(postprocessor, retrieved)
    kinds = [type(event) for event in listener.received]
    assert kinds.count(ReRankStartEvent) == kinds.count(ReRankEndEvent) == kinds.count(MeVeTraceEvent) == 2
    phases = [event.phase["name"] for event in listener.received if isinstance(event, MeVePhaseEvent)]
    assert phases[:5] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
    meve_events = [event for event in listener.received if isinstance(event, MeVePhaseEvent | MeVeTraceEvent)]
    assert "sky today" not in json.dumps([event.model_dump(mode="json") for event in meve_events])


def test_events_are_paired_if_the_verifier_fails(parts, retrieved, monkeypatch):
    postprocessor = MeVePostprocessor.make(**parts)
    monkeypatch.setattr(postprocessor.engine.verifier, "score", lambda query, passages: 1 / 0)
    with listening(Listener(received=[])) as listener, pytest.raises(ModelError):
        postprocessor.postprocess_nodes(retrieved, query_str=BLUE)
    kinds = [type(event) for event in listener.received]
    assert kinds.count(ReRankStartEvent) == kinds.count(ReRankEndEvent) == 1
    assert [e.phase["skipped"] for e in listener.received if isinstance(e, MeVePhaseEvent)] == [
        "",
        "failed: ModelError",
    ]


def test_no_event_is_created_without_listeners(parts, retrieved, monkeypatch):
    for kind in ("ReRankStartEvent", "ReRankEndEvent"):
        monkeypatch.setattr(f"llama_index_meve.postprocessor.{kind}", None)
    monkeypatch.setattr(events, "MeVePhaseEvent", None)
    monkeypatch.setattr(events, "MeVeTraceEvent", None)
    monkeypatch.setattr(Trace, "to_dict", None)
    assert run_both(MeVePostprocessor.make(**parts), retrieved)


def test_callback_manager_receives_paired_events(parts, retrieved):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    postprocessor = MeVePostprocessor.make(**parts)
    postprocessor.callback_manager = CallbackManager([debug])
    run_both(postprocessor, retrieved)
    pairs = debug.get_event_pairs(CBEventType.RERANKING)
    assert len(pairs) == 2
    assert all(len(pair) == 2 for pair in pairs)


def test_sync_and_async_calls_are_spans(parts, retrieved):
    with recording_span_names() as names:
        run_both(MeVePostprocessor.make(**parts), retrieved)
    assert {"MeVePostprocessor._postprocess_nodes", "MeVePostprocessor._apostprocess_nodes"} <= names
