"""MeVeRetriever over nodes, and over indexes of real vector stores."""

import asyncio
import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.schema import IndexNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_meve import MeVeRetriever, create_meve_tool
from llama_index_meve._instrumentation import MeVeTraceEvent
from llama_index_meve._nodes import node_to_passage
from llama_index_meve._vector_stores import IndexStore, make_store
from meve import Retriever
from meve.errors import ConfigurationError, EmptyCorpusError, InsufficientContextError, PassageError, StaleWarning
from meve.pipeline.phases.condense import find_spans
from tests.llama_index_integration.conftest import Listener, ids, listening, node, recording_span_names, uid
from tests.llama_index_integration.vector_stores import DELETABLE, STORES, build_index

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

BLUE = "blue sky"
ENGLISH = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
EITHER = MetadataFilters(
    filters=[
        MetadataFilter(key="lang", value="fr"),
        MetadataFilter(key="year", operator=FilterOperator.LT, value=2005),
    ],
    condition=FilterCondition.OR,
)


def candidates(context):
    return {c.id for c in context.trace.candidates}


@pytest.fixture(params=STORES)
def kind(request):
    return request.param


@pytest.fixture
def index(kind, nodes):
    return build_index(kind, nodes)


@pytest.fixture
def over_index(index, parts):
    return MeVeRetriever.from_index(index, **parts)


class TestOverNodes:
    @pytest.fixture
    def retriever(self, nodes, parts):
        return MeVeRetriever.from_nodes(nodes, **parts)

    def test_sync_and_async_agree(self, retriever):
        result = retriever.retrieve(BLUE)
        assert ids(result)[0] == uid("sky")
        assert uid("zebra") not in ids(result)
        assert all(type(each.score) is float for each in result)
        assert ids(asyncio.run(retriever.aretrieve(BLUE))) == ids(result)

    def test_callbacks_and_tracers_receive_paired_events(self, nodes, parts):
        debug = LlamaDebugHandler(print_trace_on_end=False)
        retriever = MeVeRetriever.from_nodes(nodes, callback_manager=CallbackManager([debug]), **parts)
        with recording_span_names() as names, listening(Listener(received=[])) as listener:
            retriever.retrieve(BLUE)
            asyncio.run(retriever.aretrieve(BLUE))
        pairs = debug.get_event_pairs(CBEventType.RETRIEVE)
        assert [len(pair) for pair in pairs] == [2, 2]
        kinds = [event.class_name() for event in listener.received]
        once = ["RetrievalStartEvent", *["MeVePhaseEvent"] * 5, "MeVeTraceEvent", "RetrievalEndEvent"]
        assert kinds == once * 2
        assert {"MeVeRetriever._retrieve", "MeVeRetriever._aretrieve"} <= names
        inner = next(event for event in listener.received if isinstance(event, MeVeTraceEvent)).span_id
        assert inner.startswith("MeVeRetriever._retrieve")

    def test_nodes_keep_relationships_and_metadata(self, retriever, nodes):
        result = retriever.retrieve(BLUE)[0].node
        assert result.metadata.pop("meve_verified") is True
        assert (result.metadata, result.relationships) == (nodes[0].metadata, nodes[0].relationships)

    def test_blank_question_returns_nothing(self, retriever):
        assert retriever.retrieve("  ") == asyncio.run(retriever.aretrieve(" ")) == []

    def test_invalid_option_is_rejected_on_creation(self, retriever):
        assert len(MeVeRetriever(retriever.retriever, top_k=1).retrieve(BLUE)) == 1
        with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
            MeVeRetriever(retriever.retriever, thresold=0.5)
        with pytest.raises(ConfigurationError, match="limit must be an integer of at least 1, got 0"):
            MeVeRetriever(retriever.retriever, top_k=0)

    def test_none_lifts_a_limit_of_the_retriever(self, retriever):
        own = retriever.retriever
        own.engine = replace(own.engine, config=own.config.override(limit=1, threshold=0.0))
        assert len(MeVeRetriever(own, threshold=None).retrieve(BLUE)) == 1
        assert len(MeVeRetriever(own, limit=None).retrieve(BLUE)) > 1

    def test_filters_apply_in_every_phase(self, retriever):
        for filters, excluded in ((ENGLISH, {"zebra"}), (EITHER, {"zebra", "grass"})):
            filtered = MeVeRetriever(retriever.retriever, filters=filters, threshold=0.0, fallback_floor=0.0)
            remaining = candidates(filtered.context("zebra grass sky"))
            assert remaining == {uid(i) for i in ("sky", "sea", "zebra", "grass")} - {uid(i) for i in excluded}

    def test_sentence_packing_cuts_a_copy_of_the_node(self, nodes, parts):
        long = node("long", "A blue sky. Quite something else entirely. Nothing of the kind.")
        result = MeVeRetriever.from_nodes([long], packing="sentences", **parts).retrieve(BLUE)
        assert result[0].node.text == "A blue sky. …"
        assert long.text.endswith("kind.")
        assert result[0].node.node_id == long.node_id
        cut = node_to_passage(long).with_text("A blue sky.")
        assert cut.text == cut.content == cut.prompt_text == cut.node.text == "A blue sky."

    @pytest.mark.parametrize("template", ["{metadata_str}\n\n{content}", "{content}\n\n{metadata_str}"])
    def test_sentences_are_found_wherever_the_template_puts_the_text(self, template):
        sentences = ["A blue sky.", "A green sea.", "Zebra facts."]
        text = " ".join(sentences) + "\n" * 30
        passage = node_to_passage(TextNode(text=text, metadata={"file": "notes.md"}, text_template=template))
        assert [passage.content[start:end] for start, end in find_spans(passage, sentences)] == sentences

    def test_aretrieve_runs_off_the_event_loop(self, retriever, monkeypatch):
        where, whole = [], type(retriever.retriever).retrieve

        def watched(self, *args, **kwargs):
            where.append(threading.get_ident())
            return whole(self, *args, **kwargs)

        monkeypatch.setattr(type(retriever.retriever), "retrieve", watched)
        asyncio.run(retriever.aretrieve(BLUE))
        assert len(where) == 1
        assert where != [threading.get_ident()]

    def test_changing_nodes_does_not_change_the_corpus(self, nodes, parts):
        retriever = MeVeRetriever.from_nodes(nodes, filters=ENGLISH, **parts)
        retriever.retrieve(BLUE)[0].node.text = "changed"
        nodes[0].metadata["lang"] = "de"
        assert retriever.retrieve(BLUE)[0].node.text == "A blue sky today."
        assert retriever.retrieve(BLUE)[0].node.metadata["lang"] == "en"

    def test_date_metadata_is_not_empty_for_filters(self, parts):
        dated = node("dated", "blue sky", deleted=datetime(2020, 1, 1))
        empty = MetadataFilters(filters=[MetadataFilter(key="deleted", operator=FilterOperator.IS_EMPTY, value=None)])
        assert MeVeRetriever.from_nodes([dated], filters=empty, **parts).retrieve(BLUE) == []

    def test_resolved_index_node_is_verified_and_budgeted(self, parts):
        stands = IndexNode(text="blue sky table", index_id="t", obj=TextNode(text="blue sky " + "word " * 300))
        retriever = MeVeRetriever.from_nodes([stands], max_tokens=10, objects=[stands], **parts)
        assert sum(len(each.node.get_content().split()) for each in retriever.retrieve(BLUE)) <= 10

    def test_tool_and_context_hold_what_an_index_node_stands_for(self, parts):
        stands = IndexNode(text="blue sky table", index_id="t", obj=TextNode(text="The blue sky of Oslo."))
        nodes = [stands, node("sea", "The sea is blue.")]
        retriever = MeVeRetriever.from_nodes(nodes, objects=[stands], **parts)
        retrieved = [each.node.get_content() for each in retriever.retrieve(BLUE)]
        assert retrieved == ["The blue sky of Oslo.", "The sea is blue."]
        assert [each.passage.text for each in retriever.context(BLUE).passages] == retrieved
        assert [each.passage.text for each in retriever.context(BLUE, top_k=1).passages] == ["The blue sky of Oslo."]
        tool = create_meve_tool(retriever)
        for shown in (tool.call(query=BLUE), asyncio.run(tool.acall(query=BLUE))):
            assert "The blue sky of Oslo." in shown.content
            assert "table" not in shown.content

    def test_verbose_prints_the_entered_object(self, parts, capsys):
        stands = IndexNode(text="blue sky table", index_id="t", obj=TextNode(text="blue sky"))
        MeVeRetriever.from_nodes([stands], verbose=True, objects=[stands], **parts).retrieve(BLUE)
        assert "entering t" in capsys.readouterr().out

    def test_uncounted_metadata_is_excluded_from_the_llm_text(self, parts):
        over_texts = Retriever.from_texts(["blue sky"], metadatas=[{"note": "many words " * 50}], **parts)
        result = MeVeRetriever(over_texts, max_tokens=2).retrieve(BLUE)
        assert result[0].node.get_content(metadata_mode=MetadataMode.LLM) == "blue sky"
        assert result[0].node.metadata["note"].startswith("many words")

    def test_metadata_that_models_must_not_see_is_not_saved_as_text(self, parts, tmp_path):
        noted = TextNode(id_="n", text="A blue sky.", metadata={"patient": "Ann"})
        MeVeRetriever.from_nodes([noted], **parts).retriever.save(tmp_path / "index")
        loaded = MeVeRetriever(Retriever.load(tmp_path / "index", **{**parts, "config": None}))
        assert "patient: Ann" in loaded.context(BLUE).text
        secret = noted.model_copy(update={"excluded_llm_metadata_keys": ["patient"]})
        with pytest.raises(PassageError, match="passage 'n' can't be saved: models are sent another text"):
            MeVeRetriever.from_nodes([secret], **parts).retriever.save(tmp_path / "index")
        assert len(Retriever.load(tmp_path / "index", **parts)) == 1

    def test_when_insufficient_decides_what_is_returned(self, retriever):
        far = "zebra facts among nothing else"
        assert uid("zebra") in ids(MeVeRetriever(retriever.retriever).retrieve(far))
        for way in ("verified_only", "abstain"):
            assert MeVeRetriever(retriever.retriever, when_insufficient=way).retrieve(far) == []
        with pytest.raises(InsufficientContextError):
            MeVeRetriever(retriever.retriever, when_insufficient="raise").retrieve(far)

    def test_invalid_engine_filter_or_index_is_rejected(self, retriever):
        with pytest.raises(ConfigurationError, match="from_nodes"):
            MeVeRetriever("x")
        with pytest.raises(ConfigurationError, match="MetadataFilters"):
            MeVeRetriever(retriever.retriever, filters={"lang": "en"})
        with pytest.raises(ConfigurationError, match="VectorStoreIndex"):
            MeVeRetriever.from_index("an index")

    def test_removed_nodes_are_not_retrieved(self, nodes, parts):
        retriever = MeVeRetriever.from_nodes(nodes[:2], **parts)
        retriever.retriever.remove([uid("sky")])
        assert uid("sky") not in candidates(retriever.context("blue sky today", threshold=0.0))
        retriever.retriever.remove([uid("sea")])
        assert retriever.retrieve(BLUE) == asyncio.run(retriever.aretrieve(BLUE)) == []
        with pytest.raises(EmptyCorpusError, match="must not be empty"):
            MeVeRetriever.from_nodes([], **parts)

    def test_keyword_search_without_matches_returns_nothing(self, nodes, parts):
        """LlamaIndex returns k nodes with score 0, and splits no Chinese words."""
        chinese = [TextNode(id_="sky", text="今天天气很好,天空是蓝色的。"), TextNode(text="面包是用面粉做的。")]
        retriever = MeVeRetriever.from_nodes([*nodes, *chinese], sources="lexical", threshold=0.0, **parts)
        assert retriever.retrieve("quantum chromodynamics") == []
        scores = {c.id: c.scores["lexical"] for c in retriever.context("天空是什么颜色").trace.candidates}
        assert max(scores, key=scores.get) == "sky"

    def test_nodes_without_text_are_left_out(self, parts):
        retriever = MeVeRetriever.from_nodes([TextNode(text=" "), TextNode(text="blue sky")], **parts)
        assert len(retriever.retriever) == 1


class TestOverAnIndex:
    def test_vector_store_has_its_own_adapter(self, kind, index):
        store = make_store(index)
        assert type(store) is not IndexStore
        assert store.name == kind
        assert store.size() == 4
        assert {p.id for p in store.list_passages()} == {uid(i) for i in ("sky", "sea", "zebra", "grass")}

    def test_nodes_are_returned_unchanged(self, over_index, nodes):
        result = over_index.retrieve(BLUE)[0].node
        assert (result.node_id, result.text) == (nodes[0].node_id, nodes[0].text)
        assert result.metadata == {**nodes[0].metadata, "meve_verified": True}
        assert result.relationships == nodes[0].relationships
        assert asyncio.run(over_index.aretrieve(BLUE))[0].node == result

    def test_keyword_search_finds_what_vectors_miss(self, over_index):
        context = over_index.context("blue zebra", candidates=1, fallback_k=0)
        assert {c.origin for c in context.trace.candidates} == {"dense", "lexical"}
        assert uid("zebra") in candidates(context)

    def test_filters_apply_to_vectors_and_keywords(self, kind, over_index):
        """Also with all thresholds at 0, and if the store does not support them."""
        nested = MetadataFilters(filters=[EITHER, ENGLISH])
        bare = MetadataFilters(filters=ENGLISH.filters, condition=None)
        padded = MetadataFilters(filters=[MetadataFilters(filters=[]), *ENGLISH.filters], condition=FilterCondition.OR)
        cases = (ENGLISH, {"zebra"}), (EITHER, {"zebra", "grass"}), (nested, {"zebra", "grass"}), (bare, {"zebra"})
        for filters, excluded in (*cases, (padded, {"zebra"})):
            for sources in ("hybrid", "lexical", "dense"):
                filtered = MeVeRetriever(
                    over_index.retriever, filters=filters, threshold=0.0, fallback_floor=0.0, sources=sources
                )
                remaining = candidates(filtered.context("zebra grass sky"))
                assert not remaining & {uid(i) for i in excluded}, (filters, sources)
                assert remaining

    @pytest.mark.parametrize("kind", DELETABLE, indirect=True)
    def test_deleted_document_is_gone_from_every_phase(self, index, over_index):
        """It stays in the document store, and in the keyword index until a refresh."""
        index.delete_ref_doc("doc-zebra")
        with pytest.warns(StaleWarning):
            context = over_index.context("zebra facts", threshold=0.0, fallback_floor=0.0)
        assert uid("zebra") not in candidates(context)
        assert over_index.retriever.refresh() == 3

    @pytest.mark.parametrize("kind", DELETABLE, indirect=True)
    @pytest.mark.parametrize("how", ["through the index", "from the vector store"])
    def test_deleted_node_is_gone_from_every_phase(self, how, kind, index, over_index):
        if how == "through the index":
            index.delete_nodes([uid("zebra")])
        else:
            index.vector_store.delete_nodes([uid("zebra")])
        with pytest.warns(StaleWarning):
            context = over_index.context("zebra facts", threshold=0.0, fallback_floor=0.0)
        assert uid("zebra") not in candidates(context)
        assert over_index.retriever.refresh() == 3

    def test_context_is_json_serializable(self, over_index):
        assert json.dumps(over_index.context(BLUE).to_dict())

    def test_empty_index_returns_nothing(self, kind, parts):
        retriever = MeVeRetriever.from_index(build_index(kind, []), **parts)
        assert retriever.retrieve(BLUE) == []

    @pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
    def test_blank_and_index_nodes_do_not_make_the_index_stale(self, kind, nodes, parts):
        odd = [IndexNode(id_=uid("odd"), text="zoo table", index_id="t"), TextNode(id_=uid("blank"), text=" ")]
        retriever = MeVeRetriever.from_index(build_index(kind, [*nodes, *odd]), **parts)
        result = candidates(retriever.context(BLUE, sources="dense", candidates=9))
        assert {uid("sky"), uid("sea")} <= result
        assert not retriever.retriever.is_stale

    def test_copies_share_the_engine(self, over_index):
        assert copy.deepcopy(over_index).retriever is over_index.retriever

    def test_threads_get_equal_results(self, over_index):
        alone = ids(over_index.retrieve(BLUE))
        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(lambda _: ids(over_index.retrieve(BLUE)), range(40))) == [alone] * 40

    def test_inserted_node_is_found_and_marks_the_index_stale(self, index, over_index):
        index.insert_nodes([node("yak", "Yaks yawn.", lang="en")])
        with pytest.warns(StaleWarning):
            assert uid("yak") in candidates(over_index.context("yaks yawn"))
        over_index.retriever.refresh()
        assert uid("yak") in candidates(over_index.context("yawn", sources="lexical"))


def test_unknown_key_of_a_filter_is_explained(parts):
    retriever = MeVeRetriever.from_nodes([node("sky", "A blue sky.", lang="en")], **parts)
    inner = MetadataFilters(filters=[MetadataFilter(key="lnag", value="en")])
    empty = MetadataFilter(key="owner", value=None, operator=FilterOperator.IS_EMPTY)
    retriever.filters = MetadataFilters(filters=[inner, empty], condition=FilterCondition.AND)
    reason = retriever.context("blue sky").trace.sufficiency["reason"]
    assert reason.endswith("no passage has 'lnag' in its metadata, which the filter names; did you mean 'lang'?")
    assert "owner" not in reason


def test_text_in_place_of_a_node_raises():
    with pytest.raises(PassageError, match="nodes must be nodes of LlamaIndex, got 'blue sky'"):
        MeVeRetriever.from_nodes(["blue sky"])
    with pytest.raises(ConfigurationError, match="unknown option 'foo'") as raised:
        MeVeRetriever.from_nodes([node("sky", "blue sky")], foo=1)
    assert "self" not in str(raised.value).split()
    with pytest.raises(ConfigurationError, match="unknown option 'foo' of MeVeRetriever: known: retriever,"):
        MeVeRetriever(MeVeRetriever.from_nodes([node("sky", "blue sky")]).retriever, foo=1)
