"""Test retrieval with the models that ship, on parts of the Python language reference."""

import pytest

from meve import Retriever, RetrieverConfig
from meve.cli.language_reference import DEMO_QUESTIONS, read_language_reference
from meve.components.tokenizers import resolve_tokens
from meve.errors import QueryError
from meve.types import LabelledPair

TOPICS = ("try", "for", "function", "comparisons", "del", "global")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save an index of six topics."""
    passages = [
        p
        for p in read_language_reference(resolve_tokens(None).count)
        if str(p.metadata["source"]).removesuffix(".rst") in TOPICS
    ]
    assert len(passages) > 30
    folder = tmp_path_factory.mktemp("real") / "index"
    Retriever.from_passages(passages).save(folder)
    return folder


@pytest.fixture(scope="module")
def retriever(saved):
    """Load the index without passing its models."""
    return Retriever.load(saved)


@pytest.mark.parametrize("question", [pytest.param(q, id=q.text) for q in DEMO_QUESTIONS])
def test_context_is_sufficient_only_for_answered_questions(retriever, question):
    context = retriever.retrieve(question.text)
    assert context.sufficient is question.answerable
    assert context.tokens <= 512
    assert context.tokens == resolve_tokens(None).count(context.text)
    if not question.answerable:
        assert not any(p.verified for p in context.passages)


@pytest.mark.parametrize("max_tokens", [1, 50, 130, 200, 333])
def test_budget_holds_with_citations(retriever, max_tokens):
    for citations in (False, True):
        context = retriever.retrieve(
            "When are default argument values evaluated?",
            max_tokens=max_tokens,
            citations=citations,
            fallback_floor=0.0,
            min_verified=20,
        )
        assert resolve_tokens(None).count(context.text) == context.tokens <= max_tokens


def test_budget_holds_with_other_tokenizers(retriever, shared, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "data" / "tokenizers" / "tiktoken_cache"))
    for name in ("gpt2", "cl100k_base", "o200k_base"):
        counter = resolve_tokens(name)
        for max_tokens in (60, 150, 300, 512):
            context = retriever.retrieve(
                "How are chained comparisons evaluated?", tokens=name, max_tokens=max_tokens, min_verified=20
            )
            assert context.trace.tokens == counter.name
            assert counter.count(context.text) == context.tokens <= max_tokens


def test_paper_config_runs_as_published(retriever, shared, monkeypatch):
    pytest.importorskip("rank_bm25")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared / "data" / "tokenizers" / "tiktoken_cache"))
    context = retriever.retrieve(DEMO_QUESTIONS[-1].text, config=RetrieverConfig.paper())
    assert context.trace.tokens == "gpt2"
    assert len(context.passages) > 0
    assert not context.sufficient


def test_calibrating_leaves_the_sufficiency_estimate_on(saved):
    mine = Retriever.load(saved)
    asked = [q.text for q in DEMO_QUESTIONS]
    before = {q: mine.retrieve(q) for q in asked}
    pairs = [
        LabelledPair(query=q, passage=p.passage.text, relevant=p.verified != (n % 7 == 3))
        for q, context in before.items()
        for n, p in enumerate(context.passages)
    ] + [LabelledPair(query=asked[0], passage=mine.passages()[n].text, relevant=n % 5 == 0) for n in range(20)]
    mine.calibrate(pairs)
    for question in asked:
        after = mine.retrieve(question)
        assert after.trace.sufficiency["estimator"] == "meve-sufficiency-2"
        ids, known = ([(p.passage.id, p.verified) for p in c.passages] for c in (before[question], after))
        if ids == known:
            assert after.sufficiency == pytest.approx(before[question].sufficiency, abs=0.02)
    assert any(not mine.retrieve(q.text).sufficient for q in DEMO_QUESTIONS if not q.answerable)


def test_a_question_within_a_stack_trace_is_answered(retriever):
    trace = "\n".join(f'  File "/srv/app/module_{n}.py", line {n * 7}, in call_{n}' for n in range(16))
    context = retriever.retrieve(f"{trace}\nValueError: bad value\nHow are chained comparisons evaluated?")
    asked = retriever.retrieve("How are chained comparisons evaluated?")
    assert asked.passages[0].passage.id in [p.passage.id for p in context.passages if p.verified]
    with pytest.raises(QueryError, match="at most 4096"):
        retriever.retrieve("why " * 5_000)


STACK_TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 41, in <module>
    main()
  File "/srv/app/main.py", line 33, in main
    run(load("settings.toml"))
  File "/srv/app/worker.py", line 118, in run
    with pool.connection() as connection:
  File "/usr/lib/python3.12/contextlib.py", line 137, in __enter__
    return next(self.gen)
  File "/srv/app/pool.py", line 77, in connection
    raise PoolTimeout(f"no connection after {self.timeout} s")
pool.PoolTimeout: no connection after 30 s
"""
ANSWERS = {
    "How can I stop pip from using its cache?": "You can disable pip's cache with the --no-cache-dir option.",
    "How often should I water tomatoes?": "Water tomatoes two or three times a week, at the root.",
    "Which port does the server listen on?": "The server listens on port 8080 unless --port says otherwise.",
    "How do I renew my library card?": "A library card is renewed at the desk or online; bring a proof of address.",
}


@pytest.fixture(scope="module")
def answers():
    """Return a retriever over four answers."""
    return Retriever.from_texts(ANSWERS.values())


@pytest.mark.parametrize("pasted", ["\n".join(STACK_TRACE.splitlines()[:4]), STACK_TRACE, STACK_TRACE * 3])
@pytest.mark.parametrize("question", ANSWERS)
def test_question_after_a_pasted_stack_trace_is_verified_as_without_it(answers, question, pasted):
    context = answers.retrieve(f"{pasted}\n\n{question}")
    assert context.passages[0].passage.text == ANSWERS[question]
    assert context.passages[0].verified
    assert [p.passage.text for p in context.passages if p.verified] == [ANSWERS[question]]
