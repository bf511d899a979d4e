"""Test corpora that a server keeps: PostgreSQL and Qdrant."""

import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meve import LabelledPair, Passage, Retriever
from meve._formulas import normalize
from meve.errors import ConfigurationError, IndexMismatchError, ModelError, PassageError, StorageError
from meve.retrieval._server_corpus import postgres
from meve.retrieval._server_corpus.records import About
from meve.testing.corpus_contract import LOW, CorpusContract
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.testing.tiny_models import save_tiny_model
from tests.fake_components import make_components

CHILD = Path(__file__).with_name("adding_child.py")
EARLIER = {"format": 1, "embedder": WordEmbedder().name, "similarity": WordEmbedder().similarity, "tokens": "words"}
SKY = Passage(id="sky", text="The sky is blue.", metadata={"lang": "en"})


@pytest.fixture
def make_over():
    """Return a function that opens a new collection, or a given one; they are closed afterwards."""
    opened = []

    def make(url, collection=None, **components):
        opened.append(Retriever.over(url, collection=collection or f"test {uuid.uuid4()}", **components))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture(params=["postgresql", "qdrant"])
def url(request, tmp_path):
    """Return the URL of an empty server whose collections outlive a retriever."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
    return f"qdrant://{tmp_path}/qdrant"


class TestEmbedded(CorpusContract):
    @pytest.fixture
    def make_empty(self):
        return Retriever.empty


class TestPostgres(CorpusContract):
    calls_filters = False

    @pytest.fixture
    def make_empty(self, postgres_url, make_over):
        return lambda **components: make_over(postgres_url, **components)


class TestQdrant(CorpusContract):
    calls_filters = counts_mean_length = False

    @pytest.fixture
    def make_empty(self, make_over):
        pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
        return lambda **components: make_over("qdrant://:memory:", **components)


@pytest.mark.skipif("MEVE_QDRANT_URL" not in os.environ, reason="NOT TESTED: a Qdrant server, set MEVE_QDRANT_URL")
class TestQdrantServer(TestQdrant):
    @pytest.fixture
    def make_empty(self, make_over):
        return lambda **components: make_over(os.environ["MEVE_QDRANT_URL"], **components)


def lexical_ids(retriever, question, **options):
    context = retriever.retrieve(question, sources="lexical", fallback_k=0, fill=False, **LOW, **options)
    return [candidate.id for candidate in context.trace.candidates]


def test_reopened_collection_brings_its_models_and_passages(url, make_over):
    made = make_over(url, "docs", embedder="static", tokens=WordCounter())
    made.add([SKY])
    made.close()
    again = make_over(url, "docs", tokens=WordCounter())
    assert again.embedder.name == made.embedder.name
    assert again.retrieve("How is the sky?").passages[0].passage == SKY
    again.close()
    for options, message in (
        ({"embedder": WordEmbedder(), "tokens": WordCounter()}, "made with embedder 'meve-static-1' of 256"),
        ({"tokens": len}, "counted its tokens with 'words', not"),
        ({}, "no tokenizer found for model 'words'"),
    ):
        with pytest.raises((IndexMismatchError, ModelError), match=message):
            make_over(url, "docs", **options)
    other = make_over(url, "other", **make_components())
    assert len(other) == 0, "collections are apart"


def test_reopened_collection_brings_the_prompts_of_its_embedder(url, make_over, tmp_path):
    pytest.importorskip("sentence_transformers")
    from meve.components.embedders.sentence_transformer import SentenceTransformerEmbedder

    folder = save_tiny_model(tmp_path / "model", kind="encoder")
    embedder = SentenceTransformerEmbedder.from_name(str(folder), query_prompt="what ")
    make_over(url, "docs", **make_components(embedder=embedder)).close()
    parts = make_components()
    del parts["embedder"]
    again = make_over(url, "docs", **parts)
    assert again.embedder.prompts == {"query_prompt": "what "}


def test_collection_of_an_earlier_version_keeps_its_analyzer(url, make_over, monkeypatch):
    """Its words have accents, so those of passages and queries must too."""
    passage = Passage(id="malmo", text="The Malmö office.")
    with monkeypatch.context() as earlier:
        earlier.setattr(About, "to_dict", lambda about: {**EARLIER, "dimension": about.dimension})
        made = make_over(url, "docs", **make_components())
    made.add([passage])
    assert (lexical_ids(made, "Malmö"), lexical_ids(made, "Malmo")) == (["malmo"], [])
    made.close()
    new = make_over(url, "new", **make_components())
    new.add([passage])
    assert (lexical_ids(new, "Malmö"), lexical_ids(new, "Malmo")) == (["malmo"], ["malmo"])


def test_changed_weights_of_the_embedder_are_noticed(url, make_over):
    class Changed(WordEmbedder):
        def embed_passages(self, texts):
            return super().embed_passages(texts)[:, ::-1].copy()

    made = make_over(url, "docs", **make_components())
    made.add([SKY])
    made.close()
    with pytest.raises(IndexMismatchError, match="other weights"):
        make_over(url, "docs", **make_components(embedder=Changed()))


def test_change_of_another_process_is_found_at_once(postgres_url, make_over):
    """Also by words: this process keeps none of them."""
    mine, theirs = (make_over(postgres_url, "docs", **make_components()) for _ in range(2))
    theirs.add([SKY, "Zebra facts."])
    assert lexical_ids(mine, "blue sky") == ["sky"]
    theirs.update(add=[Passage(id="sky", text="Clouds.")], remove=["sky"])
    assert lexical_ids(mine, "blue sky") == []
    assert lexical_ids(mine, "clouds") == ["sky"]
    assert len(mine) == 2


def test_settings_calibration_and_info_work_and_saving_is_refused(url, make_over, tmp_path):
    retriever = make_over(url, "docs", **make_components(), limit=1)
    retriever.add([SKY, Passage(id="grass", text="Grass is green.")])
    assert retriever.config.limit == 1
    pairs = [LabelledPair(query="blue sky", passage=text, relevant=text == SKY.text) for text in (SKY.text, "Grass is")]
    retriever.calibrate(pairs * 30)
    assert retriever.retrieve("blue sky").sufficient
    assert "sk\ud800y" not in retriever
    assert (retriever.info()["dense"], retriever.info()["passages"]) == (url.partition(":")[0], 2)
    with pytest.raises(ConfigurationError, match=r"'docs'.* keeps its passages itself"):
        retriever.save(tmp_path / "index")
    with pytest.raises(ConfigurationError, match="lexical must be 'bm25' or None"):
        retriever.retrieve("blue", lexical="rank_bm25")
    retriever.close()
    with pytest.raises(StorageError, match="is closed: open it again"):
        retriever.retrieve("blue")


@pytest.mark.parametrize(
    ("url", "collection", "message"),
    [
        ("redis://host", "c", "must begin with qdrant:// or postgresql://, got 'redis'"),
        (7, "c", "must begin with"),
        ("qdrant://host", "", "collection must be a name"),
        ("qdrant://host", "x" * 201, "collection must be a name"),
        ("qdrant://", "c", "must be like qdrant://host:6333"),
        ("qdrant://host/folder", "c", "must be like"),
        ("qdrant://key@host", "c", "read from QDRANT_API_KEY"),
        ("qdrant://host:none", "c", "must be like"),
        ("qdrant://host?tls=1", "c", "must be like"),
        ("postgresql://host?nothing=1", "c", "must be like postgresql://user@host"),
    ],
)
def test_invalid_url_or_name_is_explained(url, collection, message):
    with pytest.raises((ConfigurationError, StorageError), match=message):
        Retriever.over(url, collection=collection, **make_components())


@pytest.mark.parametrize("url", ["qdrant://127.0.0.1:1", "postgresql://meve@127.0.0.1:1/meve"])
def test_unreachable_server_is_named(url):
    with pytest.raises(StorageError, match=r"127\.0\.0\.1"):
        Retriever.over(url, collection="docs", **make_components())


class TestPostgresAlone:
    def test_writers_that_are_killed_or_meet_leave_exact_statistics(self, postgres_url, make_over):
        retriever = make_over(postgres_url, "docs", **make_components())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(CHILD), postgres_url, "docs"]
        children = [
            subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, env=environment, text=True) for n in range(2)
        ]
        for child in children:
            while child.stdout.readline().strip() != "3":
                assert child.poll() is None
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()
        retriever.add(["shared words of mine"])  # waits until the server has noticed
        self.check_statistics(retriever)
        retriever.remove([p.id for p in retriever.passages()])
        self.check_statistics(retriever)

    def check_statistics(self, retriever):
        server = retriever._corpus.server
        words = dict(server._database.query(f"SELECT word, texts FROM {server._words}"))
        counted = server._database.query(f"SELECT lexeme, count(*) FROM {server._table}, unnest(words) GROUP BY lexeme")
        assert words == dict(counted)
        ((passages, length),) = server._database.query("SELECT passages, words FROM meve_corpora")
        stored = server._database.query(f"SELECT count(*), coalesce(sum(length), 0) FROM {server._table}")
        assert [(passages, length)] == stored
        assert len(retriever) == passages

    def test_filter_over_a_graph_loses_no_passage(self, postgres_url, make_over, monkeypatch):
        """The rare passages are far from the question: pgvector's own search ends before it meets them."""
        monkeypatch.setattr(postgres, "EXACT_UP_TO", 100)
        random = np.random.default_rng(0)
        vectors = normalize(random.standard_normal((3_000, 8)) + 4 * np.eye(8)[0])
        vectors[:30] = normalize(random.standard_normal((30, 8)) - 4 * np.eye(8)[0])

        class Given(WordEmbedder):
            dimension = 8

            def embed_passages(self, texts):
                return vectors[[int(text) for text in texts]]

            def embed_query(self, text):
                return np.eye(8, dtype=np.float32)[0]

        retriever = make_over(postgres_url, "docs", **make_components(embedder=Given()))
        passages = [Passage(id=str(n), text=str(n), metadata={"rare": n < 30}) for n in range(3_000)]
        retriever.update(add=passages)
        server = retriever._corpus.server
        assert server._has_graph()
        own = (
            f"SELECT id FROM {server._table} WHERE metadata @> '{{\"rare\": true}}' "
            f"ORDER BY vector OPERATOR({server._schema}.<#>) '[1,0,0,0,0,0,0,0]' LIMIT 20"
        )
        with server._database.reading("; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off") as rows:
            assert len(rows.execute(own).fetchall()) < 20
        hits = server.nearest(Given().embed_query(""), 20, None)
        best = sorted(range(30), key=lambda n: -vectors[n, 0])[:20]
        context = retriever.retrieve("7", where={"rare": True}, sources="dense", candidates=20, fallback_k=0, **LOW)
        assert {c.id for c in context.trace.candidates} == {str(n) for n in best}
        every = np.argsort(-vectors[:, 0])[:20]
        assert len({int(hit.passage.id) for hit in hits} & set(every.tolist())) >= 18, "the graph itself finds the best"

    @pytest.mark.parametrize(
        ("passage", "message"),
        [
            (Passage(id="a", text="nul \0"), "null character"),
            (Passage(id="a", text="x", metadata={"n": ["\0"]}), "null character"),
            (Passage(id="i" * 2_001, text="x"), "at most 2,000 bytes"),
            (Passage(id="a", text=" ".join(map(str, range(100_000)))), "more distinct words"),
        ],
    )
    def test_passage_that_it_cannot_hold_is_refused(self, postgres_url, make_over, passage, message):
        retriever = make_over(postgres_url, "docs", **make_components())
        with pytest.raises(PassageError, match=message):
            retriever.add([SKY, passage])
        assert len(retriever) == 0
        assert "nul \0" not in retriever

    def test_backslash_before_u0000_is_no_null_character(self, postgres_url, make_over):
        retriever = make_over(postgres_url, "docs", **make_components())
        retriever.add([Passage(id="a", text="x", metadata={"file": r"C:\u0000"})])
        assert retriever.get("a").metadata["file"] == r"C:\u0000"

    def test_collection_is_created_once_by_many(self, postgres_url, make_over):
        with ThreadPoolExecutor(4) as pool:
            opened = list(pool.map(lambda _: make_over(postgres_url, "docs", **make_components()), range(4)))
        opened[0].add([SKY])
        assert [len(each) for each in opened] == [1] * 4


class TestQdrantAlone:
    @pytest.fixture
    def server(self, make_over):
        pytest.importorskip("qdrant_client", reason="Qdrant needs the extra qdrant")
        retriever = make_over("qdrant://:memory:", "docs", **make_components())
        return retriever, retriever._corpus.server

    def test_collection_of_another_program_is_refused(self, make_over, tmp_path):
        client = pytest.importorskip("qdrant_client").QdrantClient(path=str(tmp_path))
        from qdrant_client import models

        client.create_collection("theirs", vectors_config=models.VectorParams(size=3, distance=models.Distance.DOT))
        client.close()
        with pytest.raises(ConfigurationError, match=r"'theirs' in Qdrant wasn't made by MeVe.*from_vectorstore"):
            make_over(f"qdrant://{tmp_path}", "theirs", **make_components())

    def test_failure_in_the_middle_takes_back_what_was_added(self, server, monkeypatch):
        retriever, kept = server
        retriever.add([SKY])
        upsert, calls = kept._kept.upsert, []

        def failing(*given, **options):
            calls.append(given)
            if len(calls) == 2:
                raise ConnectionError("gone")
            return upsert(*given, **options)

        monkeypatch.setattr(kept._kept, "upsert", failing)
        many = [Passage(id=str(n), text=f"text {n}") for n in range(300)]
        with pytest.raises(StorageError, match="writing to collection 'docs' in Qdrant failed: ConnectionError: gone"):
            retriever.update(add=many)
        assert [p.id for p in retriever.passages()] == ["sky"]
        monkeypatch.undo()
        retriever.update(add=many)
        assert len(retriever) == 301

    @pytest.mark.filterwarnings("ignore:.*Payload indexes have no effect", "ignore:Local mode performs exact")
    def test_server_indexes_the_fields_that_filters_use(self, server):
        """Without these indexes, Qdrant's graph isn't built for filters, and loses what they admit."""
        retriever, kept = server
        kept.is_local = False  # what a server gets, sent to the local mode
        created = []
        create = kept._kept.create_payload_index
        kept._kept.create_payload_index = lambda *given, **more: (created.append(given[1:]), create(*given, **more))
        retriever.update(
            add=[
                Passage(id="a", text="text", metadata={"year": 2020, "lang": "en", "on": ["2024-05-01"], "b": True}),
                Passage(id="b", text="text", metadata={"year": 2021}),
            ]
        )
        assert [kind.value for _, kind in created] == ["keyword", "keyword", "float", "float"]
        fields = {field for field, _ in created}
        assert fields > {"names", "values"}
        for where in ({"year": {"$gt": 2020}}, {"on": {"$lt": "2024-06"}}, {"lang": "en"}):
            asked = qdrant_fields(where)
            assert asked <= fields
            assert len(retriever.retrieve("text", where=where).passages) == 1


def qdrant_fields(where):
    from meve.filters import Filter
    from meve.retrieval._server_corpus.qdrant_filters import make_filter

    def read(condition):
        if hasattr(condition, "key"):
            yield condition.key
        for part in ("must", "must_not", "should"):
            for each in getattr(condition, part, None) or ():
                yield from read(each)

    return set(read(make_filter(Filter(where))))


@given(st.lists(st.one_of(st.text("0129-:T zé\0~", max_size=14), st.dates().map(str)), min_size=2, max_size=2))
def test_number_of_a_text_keeps_its_order(texts):
    pytest.importorskip("qdrant_client")
    from meve.retrieval._server_corpus.qdrant_filters import to_number

    low, high = sorted(texts)
    assert to_number(low) <= to_number(high) < 2**53
