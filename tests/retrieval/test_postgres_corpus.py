"""Collections in PostgreSQL: the graph of the vectors, and changes that the server rolls back."""

import uuid
from collections import Counter
from functools import partial
from urllib.parse import quote, urlsplit, urlunsplit

import numpy as np
import pytest

from meve import Passage, Retriever
from meve._formulas import normalize
from meve.components.lexical.bm25 import Bm25Index
from meve.errors import StorageError
from meve.filters import Filter
from meve.retrieval._server_corpus import postgres, postgres_scores
from meve.retrieval._server_corpus.postgres_scores import match_reaching
from meve.testing.corpus_contract import LOW
from meve.testing.fakes import WordEmbedder
from tests.fake_components import make_components

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")
SKY = Passage(id="sky", text="The sky is blue.", metadata={"lang": "en"})


@pytest.fixture
def make_over():
    """Return a function that opens a collection; they are closed afterwards."""
    opened = []

    def make(url, collection, **components):
        opened.append(Retriever.over(url, collection=collection, **components))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_graph_is_searched_on_until_a_filter_is_satisfied(postgres_url, make_over, monkeypatch):
    """The server uses the graph, whose first hits don't match; nothing compares all vectors."""
    monkeypatch.setattr(postgres, "EXACT_UP_TO", 100)
    vectors = normalize(np.random.default_rng(0).standard_normal((2_000, 8)) + 2 * np.eye(8)[0])
    far = np.argsort(vectors[:, 0])[:200]
    with_graph = f"{postgres_url}{quote(' -cenable_seqscan=off -cenable_bitmapscan=off')}"

    class Given(WordEmbedder):
        dimension = 8

        def embed_passages(self, texts):
            return vectors[[int(text) for text in texts]]

    retriever = make_over(with_graph, "docs", **make_components(embedder=Given()))
    retriever.update(
        add=[Passage(id=str(n), text=str(n), metadata={"far": bool(n in far)}) for n in range(len(vectors))]
    )
    server = retriever._corpus.server
    assert server._has_graph()
    monkeypatch.setattr(server, "_has_graph", lambda: pytest.fail("all vectors are compared"))
    hits = server.nearest(np.eye(8, dtype=np.float32)[0], 20, Filter({"far": True}))
    best = far[np.argsort(-vectors[far, 0])[:20]]
    assert len({int(hit.passage.id) for hit in hits} & set(best.tolist())) >= 18


def test_graph_that_cannot_be_built_leaves_the_passages_stored_and_searched(
    postgres_url, make_over, monkeypatch, caplog
):
    """The role may write the tables, and isn't their owner."""
    monkeypatch.setattr(postgres, "EXACT_UP_TO", 3)
    role = f"writer_{uuid.uuid4().hex}"
    owner = make_over(postgres_url, "docs", **make_components())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        ((schema,),) = connection.execute("SELECT current_schema()").fetchall()
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {role}')
        connection.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA "{schema}" TO {role}')
    try:
        url = postgres_url.replace("meve@", f"{role}@")
        writer = make_over(url, "docs", **make_components())
        writer.add([SKY, *(f"Fact {n}." for n in range(4))])
        writer.add(["Another fact."])
        [warning] = [record.getMessage() for record in caplog.records]
        assert "the passages are stored, but the graph of the vectors can't be built" in warning
        assert "must be owner of table" in warning
        assert not writer._corpus.server._has_graph()
        assert writer.retrieve("How is the sky?").passages[0].passage == SKY
        assert len(writer) == 6
        owner.add(["One more."])
        assert owner._corpus.server._has_graph()
        writer.close()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_graph_is_built_without_the_limit_of_other_statements(postgres_url, make_over, monkeypatch):
    monkeypatch.setattr(postgres, "EXACT_UP_TO", 3)
    limited = f"{postgres_url}{quote(' -cstatement_timeout=300s')}"
    name = f"no_limit_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE FUNCTION {name}() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF current_query() LIKE '%hnsw%' AND current_setting('statement_timeout') = '5min' "
            "THEN RAISE 'limited'; END IF; END $$"
        )
        connection.execute(
            f"CREATE EVENT TRIGGER {name} ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION {name}()"
        )
    try:
        retriever = make_over(limited, "docs", **make_components())
        retriever.add(f"Fact {n}." for n in range(5))
        assert retriever._corpus.server._has_graph()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP EVENT TRIGGER {name}")


def test_change_that_is_rolled_back_is_repeated(postgres_url, make_over):
    retriever = make_over(postgres_url, "docs", **make_components())
    table = retriever._corpus.server._table
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE refused")
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('refused') <= 2 "
            "THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$"
        )
        connection.execute(f"CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()")
    retriever.add([SKY])
    assert len(retriever) == 1
    context = retriever.retrieve("blue sky", sources="lexical", **LOW)
    assert [candidate.id for candidate in context.trace.candidates] == ["sky"]


def test_role_that_cannot_create_pgvector_is_told_who_can(postgres_url, make_over):
    """In a database of its own, in which nobody has created it."""
    name = f"plain_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        connection.execute(f"CREATE ROLE {name} LOGIN")
    there = urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}", query=server_of(postgres_url)))
    plain = there.replace("meve@", f"{name}@")
    try:
        with psycopg.connect(there, autocommit=True) as connection:
            connection.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
            with pytest.raises(StorageError, match=r"permission denied .*superuser run CREATE EXTENSION vector"):
                make_over(plain, "docs", **make_components())
            connection.execute("CREATE EXTENSION vector")
        retriever = make_over(plain, "docs", **make_components())
        retriever.add([SKY])
        retriever.close()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            connection.execute(f"DROP ROLE {name}")


def server_of(url):
    """Return the parameters of a URL without the schema of the test."""
    return "&".join(each for each in urlsplit(url).query.split("&") if not each.startswith("options="))


def test_best_by_words_are_those_of_all_that_the_index_leaves_out(postgres_url, make_over, monkeypatch):
    """The scores are those of the embedded index, also where most passages with a word are never scored."""
    monkeypatch.setattr(postgres_scores, "FIRST_READ", 50)
    random = np.random.default_rng(3)
    words, chances = [f"word{n}" for n in range(60)], 1 / np.arange(1, 61)
    draw = partial(random.choice, words, p=chances / chances.sum())
    texts = [" ".join(draw(random.integers(3, 30))) for _ in range(1_500)]
    retriever = make_over(postgres_url, "docs", **make_components())
    retriever.add(texts)
    embedded = Bm25Index()
    embedded.add(np.arange(len(texts)), texts)
    server = retriever._corpus.server
    scored, inner = [], server._score
    monkeypatch.setattr(server, "_score", lambda *given: (scored.append(given[1]), inner(*given))[1])
    for length in (1, 2, 3, 4, 6, 8, 12, 20, 40):
        for _ in range(8):
            question = " ".join(draw(length))
            hits = server.by_words(Counter(question.split()), 10, None)
            _, scores = embedded.search(question, 10)
            assert [hit.score for hit in hits] == pytest.approx(scores.tolist(), rel=1e-5)
    assert sum("&" in "".join(matching) for matching in scored) > 20


@pytest.mark.parametrize("count", [1, 2, 5, 8, 30])
def test_query_matches_every_text_whose_words_reach_a_sum(postgres_url, count):
    """And no other, of few words."""
    random = np.random.default_rng(count)
    factors = {f"w'{n}": float(factor) for n, factor in enumerate(-np.sort(-random.exponential(size=count)))}
    whole = sum(factors.values())
    texts = [[word for word in factors if random.random() < 0.5] for _ in range(200)]
    with psycopg.connect(postgres_url) as connection:
        for least in np.linspace(0.05, 1, 12) * whole:
            query = match_reaching(least, factors)
            if query is None:
                assert count > 8
                continue
            matched = [
                connection.execute("SELECT array_to_tsvector(%s::text[]) @@ %s::tsquery", (text, query)).fetchone()[0]
                for text in texts
            ]
            reaching = [sum(factors[word] for word in text) >= least for text in texts]
            assert all(match or not reach for match, reach in zip(matched, reaching, strict=True))
            assert matched == reaching or count > 5
        assert sum(matched) < len(texts)
