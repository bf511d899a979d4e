"""The retriever over nodes, and over the indexes that users run. The real stores."""

import asyncio
import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import IndexNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_meve import MeVeRetriever
from llama_index_meve._instrumentation import MeVeTraceEvent
from llama_index_meve._nodes import node_to_passage
from llama_index_meve._vector_stores import IndexStore, make_store
from meve import Retriever
from meve.errors import ConfigurationError, EmptyCorpusError, StaleWarning
from tests.llama_index_integration.conftest import Listener, listening, node, uid
from tests.llama_index_integration.stores import DELETING, STORES, indexed

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


def ids(found):
    return [each.node.node_id for each in found]


def candidates(context):
    return {c.id for c in context.trace.candidates}


@pytest.fixture(params=STORES)
def kind(request):
    return request.param


@pytest.fixture
def index(kind, nodes):
    return indexed(kind, nodes)


@pytest.fixture
def over_index(index, parts):
    return MeVeRetriever.from_index(index, **parts)


class TestOverNodes:
    @pytest.fixture
    def retriever(self, nodes, parts):
        return MeVeRetriever.from_nodes(nodes, **parts)

    def test_sync_and_async_agree(self, retriever):
        found = retriever.retrieve(BLUE)
        assert ids(found)[0] == uid("sky")
        assert uid("zebra") not in ids(found)
        assert all(type(each.score) is float for each in found)
        assert ids(asyncio.run(retriever.aretrieve(BLUE))) == ids(found)

    def test_old_callbacks_and_new_tracers_hear_of_each_retrieval_in_pairs(self, nodes, parts):
        debug, spans, root = LlamaDebugHandler(print_trace_on_end=False), SimpleSpanHandler(), get_dispatcher()
        made = MeVeRetriever.from_nodes(nodes, callback_manager=CallbackManager([debug]), **parts)
        root.add_span_handler(spans)
        try:
            with listening(Listener(heard=[])) as listener:
                made.retrieve(BLUE)
                asyncio.run(made.aretrieve(BLUE))
        finally:
            root.span_handlers.remove(spans)
        pairs = debug.get_event_pairs(CBEventType.RETRIEVE)
        assert [len(pair) for pair in pairs] == [2, 2]
        kinds = [event.class_name() for event in listener.heard]
        once = ["RetrievalStartEvent", *["MeVePhaseEvent"] * 5, "MeVeTraceEvent", "RetrievalEndEvent"]
        assert kinds == once * 2
        names = {span.id_.partition("-")[0] for span in spans.completed_spans}
        assert {"MeVeRetriever._retrieve", "MeVeRetriever._aretrieve"} <= names
        inner = next(event for event in listener.heard if isinstance(event, MeVeTraceEvent)).span_id
        assert inner.startswith("MeVeRetriever._retrieve")

    def test_the_question_is_not_written_to(self, retriever):
        bundle = QueryBundle(BLUE)
        retriever.retrieve(bundle)
        assert bundle.embedding is None

    def test_nodes_come_back_with_relationships_and_metadata(self, retriever, nodes):
        assert retriever.retrieve(BLUE)[0].node == nodes[0]

    def test_blank_questions_find_nothing(self, retriever):
        assert retriever.retrieve("  ") == asyncio.run(retriever.aretrieve(" ")) == []

    def test_options_are_checked_when_it_is_made(self, retriever):
        assert len(MeVeRetriever(retriever.engine, top_k=1).retrieve(BLUE)) == 1
        with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
            MeVeRetriever(retriever.engine, thresold=0.5)
        with pytest.raises(ConfigurationError, match="limit is 0"):
            MeVeRetriever(retriever.engine, top_k=0)

    def test_filters_hold_in_every_phase(self, retriever):
        for filters, out in ((ENGLISH, {"zebra"}), (EITHER, {"zebra", "grass"})):
            mine = MeVeRetriever(retriever.engine, filters=filters, threshold=0.0, fallback_floor=0.0)
            left = candidates(mine.context("zebra grass sky"))
            assert left == {uid(i) for i in ("sky", "sea", "zebra", "grass")} - {uid(i) for i in out}

    def test_sentences_can_be_packed(self, nodes, parts):
        """A node whose text was cut is a copy; the one that was given keeps its text."""
        long = node("long", "A blue sky. Quite something else entirely. Nothing of the kind.")
        found = MeVeRetriever.from_nodes([long], packing="sentences", **parts).retrieve(BLUE)
        assert found[0].node.text == "A blue sky. …"
        assert long.text.endswith("kind.")
        assert found[0].node.node_id == long.node_id
        cut = node_to_passage(long).with_text("A blue sky.")
        assert cut.text == cut.content == cut.prompt_text == cut.node.text == "A blue sky."

    def test_the_event_loop_is_not_blocked(self, retriever, monkeypatch):
        where, whole = [], type(retriever.engine).retrieve

        def watched(self, *args, **kwargs):
            where.append(threading.get_ident())
            return whole(self, *args, **kwargs)

        monkeypatch.setattr(type(retriever.engine), "retrieve", watched)
        asyncio.run(retriever.aretrieve(BLUE))
        assert len(where) == 1
        assert where != [threading.get_ident()]

    def test_what_is_done_to_nodes_reaches_nothing_else(self, nodes, parts):
        """Neither to the user's after they were given, nor to those that were returned."""
        made = MeVeRetriever.from_nodes(nodes, filters=ENGLISH, **parts)
        made.retrieve(BLUE)[0].node.text = "changed"
        nodes[0].metadata["lang"] = "de"
        assert made.retrieve(BLUE)[0].node.text == "A blue sky today."
        assert made.retrieve(BLUE)[0].node.metadata["lang"] == "en"

    def test_metadata_that_json_cannot_hold_is_there_for_filters(self, parts):
        """A date isn't empty."""
        dated = node("dated", "blue sky", deleted=datetime(2020, 1, 1))
        empty = MetadataFilters(filters=[MetadataFilter(key="deleted", operator=FilterOperator.IS_EMPTY, value=None)])
        assert MeVeRetriever.from_nodes([dated], filters=empty, **parts).retrieve(BLUE) == []

    def test_what_a_node_stands_for_is_verified_and_counted(self, parts):
        """It comes in its place, and not past the budget."""
        stands = IndexNode(text="blue sky table", index_id="t", obj=TextNode(text="blue sky " + "word " * 300))
        made = MeVeRetriever.from_nodes([stands], max_tokens=10, objects=[stands], **parts)
        assert sum(len(each.node.get_content().split()) for each in made.retrieve(BLUE)) <= 10

    def test_what_it_enters_is_printed_if_one_likes(self, parts, capsys):
        stands = IndexNode(text="blue sky table", index_id="t", obj=TextNode(text="blue sky"))
        MeVeRetriever.from_nodes([stands], verbose=True, objects=[stands], **parts).retrieve(BLUE)
        assert "entering t" in capsys.readouterr().out

    def test_metadata_that_was_not_counted_is_not_sent(self, parts):
        """Over a corpus whose passages are no nodes."""
        engine = Retriever.from_texts(["blue sky"], metadatas=[{"note": "many words " * 50}], **parts)
        found = MeVeRetriever(engine, max_tokens=2).retrieve(BLUE)
        assert found[0].node.get_content(metadata_mode=MetadataMode.LLM) == "blue sky"
        assert found[0].node.metadata["note"].startswith("many words")

    def test_where_nothing_qualifies_the_best_can_be_given(self, retriever):
        strict = MeVeRetriever(retriever.engine, fallback_floor=1.0, when_empty="best", threshold=1.0)
        assert ids(strict.retrieve("zebra facts among nothing")) == [uid("zebra")]

    def test_what_is_no_engine_or_filter_is_refused(self, retriever):
        with pytest.raises(ConfigurationError, match="from_nodes"):
            MeVeRetriever("x")
        with pytest.raises(ConfigurationError, match="MetadataFilters"):
            MeVeRetriever(retriever.engine, filters={"lang": "en"})
        with pytest.raises(ConfigurationError, match="VectorStoreIndex"):
            MeVeRetriever.from_index("an index")

    def test_what_is_removed_is_gone_from_the_next_question_on_also_the_last(self, nodes, parts):
        made = MeVeRetriever.from_nodes(nodes[:2], when_empty="best", **parts)
        made.engine.remove([uid("sky")])
        assert uid("sky") not in candidates(made.context("blue sky today", threshold=0.0))
        made.engine.remove([uid("sea")])
        assert made.retrieve(BLUE) == asyncio.run(made.aretrieve(BLUE)) == []
        with pytest.raises(EmptyCorpusError, match="must not be empty"):
            MeVeRetriever.from_nodes([], **parts)

    def test_words_that_nobody_has_bring_nobody(self, nodes, parts):
        """The stock keyword search brings k nodes all the same, with 0; and of Chinese it sees no words."""
        chinese = [TextNode(id_="sky", text="今天天气很好,天空是蓝色的。"), TextNode(text="面包是用面粉做的。")]
        made = MeVeRetriever.from_nodes([*nodes, *chinese], sources="lexical", threshold=0.0, **parts)
        assert made.retrieve("quantum chromodynamics") == []
        scores = {c.id: c.scores["lexical"] for c in made.context("天空是什么颜色").trace.candidates}
        assert max(scores, key=scores.get) == "sky"

    def test_nodes_without_text_are_left_out(self, parts):
        made = MeVeRetriever.from_nodes([TextNode(text=" "), TextNode(text="blue sky")], **parts)
        assert len(made.engine) == 1


class TestOverAnIndex:
    def test_it_is_known_here(self, kind, index):
        store = make_store(index)
        assert type(store) is not IndexStore
        assert store.name == kind
        assert store.size() == 4
        assert {p.id for p in store.list_passages()} == {uid(i) for i in ("sky", "sea", "zebra", "grass")}

    def test_nodes_survive(self, over_index, nodes):
        """Ids, text, relationships, metadata."""
        found = over_index.retrieve(BLUE)[0].node
        assert (found.node_id, found.text, found.metadata) == (nodes[0].node_id, nodes[0].text, nodes[0].metadata)
        assert found.relationships == nodes[0].relationships
        assert asyncio.run(over_index.aretrieve(BLUE))[0].node == found

    def test_words_find_what_vectors_miss(self, over_index):
        context = over_index.context("blue zebra", candidates=1, fallback_k=0)
        assert {c.origin for c in context.trace.candidates} == {"dense", "lexical"}
        assert uid("zebra") in candidates(context)

    def test_filters_reach_index_and_words_alike(self, kind, over_index):
        """What they exclude never comes back, not even with every bar lowered; nor where the store can't ask them."""
        nested = MetadataFilters(filters=[EITHER, ENGLISH])
        bare = MetadataFilters(filters=ENGLISH.filters, condition=None)
        padded = MetadataFilters(filters=[MetadataFilters(filters=[]), *ENGLISH.filters], condition=FilterCondition.OR)
        cases = (ENGLISH, {"zebra"}), (EITHER, {"zebra", "grass"}), (nested, {"zebra", "grass"}), (bare, {"zebra"})
        for filters, out in (*cases, (padded, {"zebra"})):
            for sources in ("hybrid", "lexical", "dense"):
                mine = MeVeRetriever(
                    over_index.engine, filters=filters, threshold=0.0, fallback_floor=0.0, sources=sources
                )
                left = candidates(mine.context("zebra grass sky"))
                assert not left & {uid(i) for i in out}, (filters, sources)
                assert left

    @pytest.mark.parametrize("kind", DELETING, indirect=True)
    def test_what_is_deleted_is_gone_from_every_phase(self, index, over_index):
        """By its document, which leaves the node in the document store; the words lag, and say so."""
        index.delete_ref_doc("doc-zebra")
        with pytest.warns(StaleWarning):
            context = over_index.context("zebra facts", threshold=0.0, fallback_floor=0.0)
        assert uid("zebra") not in candidates(context)
        assert over_index.engine.refresh() == 3

    @pytest.mark.parametrize("kind", DELETING, indirect=True)
    @pytest.mark.parametrize("how", ["through the index", "from the vector store"])
    def test_what_is_deleted_by_node_is_gone_too(self, how, kind, index, over_index):
        """Whichever side let it go."""
        if how == "through the index":
            index.delete_nodes([uid("zebra")])
        else:
            index.vector_store.delete_nodes([uid("zebra")])
        with pytest.warns(StaleWarning):
            context = over_index.context("zebra facts", threshold=0.0, fallback_floor=0.0)
        assert uid("zebra") not in candidates(context)
        assert over_index.engine.refresh() == 3

    def test_what_is_told_is_plain_data(self, over_index):
        """No number of a library's own."""
        assert json.dumps(over_index.context(BLUE).to_dict())

    def test_an_index_that_holds_nothing_finds_nothing(self, kind, parts):
        made = MeVeRetriever.from_index(indexed(kind, []), **parts)
        assert made.retrieve(BLUE) == []

    @pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
    def test_nodes_without_text_and_nodes_for_others_hide_nothing(self, kind, nodes, parts):
        """An index node among text nodes; a blank one is no reason to be stale."""
        odd = [IndexNode(id_=uid("odd"), text="zoo table", index_id="t"), TextNode(id_=uid("blank"), text=" ")]
        made = MeVeRetriever.from_index(indexed(kind, [*nodes, *odd]), **parts)
        found = candidates(made.context(BLUE, sources="dense", candidates=9))
        assert {uid("sky"), uid("sea")} <= found
        assert not made.engine.is_stale

    def test_copies_share_the_engine(self, over_index):
        assert copy.deepcopy(over_index).engine is over_index.engine

    def test_twenty_threads_get_what_one_gets(self, over_index):
        alone = ids(over_index.retrieve(BLUE))
        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(lambda _: ids(over_index.retrieve(BLUE)), range(40))) == [alone] * 40

    def test_what_is_inserted_is_found_and_told(self, index, over_index):
        index.insert_nodes([node("yak", "Yaks yawn.", lang="en")])
        with pytest.warns(StaleWarning):
            assert uid("yak") in candidates(over_index.context("yaks yawn"))
        over_index.engine.refresh()
        assert uid("yak") in candidates(over_index.context("yawn", sources="lexical"))
