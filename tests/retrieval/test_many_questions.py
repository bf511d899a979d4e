"""Test retrievals of several questions at once, and what can't be copied."""

import asyncio
import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError, ModelError, QueryError, RetrievalError, ValidationError
from meve.retrieval._shared_batches import _Meeting
from meve.testing.fakes import OverlapVerifier
from tests.fake_components import make_components

COLOURS = ["red", "green", "blue", "black", "white", "brown", "grey", "pink"]
QUESTIONS = [f"Which fruit is {colour}?" for colour in COLOURS]


class PairReader(OverlapVerifier):
    """Reads pairs of several questions; records its calls."""

    def __init__(self, calibration=None):
        super().__init__(*([calibration] if calibration else []))
        self.calls = []

    def score_pairs(self, pairs):
        self.calls.append(list(pairs))
        if any(text.startswith("broken") for query, text in pairs if "pink" in query):
            raise ModelError("pink breaks it")
        return np.concatenate([super(PairReader, self).raw_scores(query, [text]) for query, text in pairs])

    def raw_scores(self, query, passages):
        return self.score_pairs([(query, text) for text in passages])


def make_retriever(verifier=None, texts=()):
    own = [f"The {colour} fruit number {n} is ripe." for colour in COLOURS for n in range(3)]
    return Retriever.from_texts([*own, *texts], **make_components(verifier=verifier or PairReader()))


@pytest.mark.parametrize("options", [{}, {"hops": 2}, {"exact": False}, {"packing": "sentences"}, {"mode": "no_rag"}])
@pytest.mark.parametrize("verifier", [PairReader, OverlapVerifier])
def test_many_questions_get_the_contexts_of_single_ones(options, verifier):
    retriever = make_retriever(verifier())
    together = retriever.retrieve_many(QUESTIONS * 3, **options)
    assert [c.query for c in together] == QUESTIONS * 3
    for context in together[:8]:
        alone = retriever.retrieve(context.query, **options)
        assert (context.text, context.passages) == (alone.text, alone.passages)


def test_questions_share_the_calls_of_the_verifier():
    reader = PairReader()
    make_retriever(reader).retrieve_many(QUESTIONS)
    assert len(reader.calls) == 1
    assert {query for query, _ in reader.calls[0]} == set(QUESTIONS)


def test_windows_left_unread_are_counted_as_for_single_questions():
    class LeavesSome(PairReader):
        most_readings = 7

        def count_unread(self, query, passages):
            return [int("number 2" in text) for text in passages]

    retriever = make_retriever(LeavesSome())
    for context in retriever.retrieve_many(QUESTIONS):
        alone = retriever.retrieve(context.query)
        counts, expected = (
            {c.id: c.scores.get("unread_windows") for c in x.trace.candidates} for x in (context, alone)
        )
        assert counts == expected
        assert set(counts.values()) == {1.0, None}


def test_no_question_and_a_single_text():
    retriever = make_retriever()
    assert retriever.retrieve_many([]) == []
    with pytest.raises(ValidationError, match="queries must be a list"):
        retriever.retrieve_many(QUESTIONS[0])
    with pytest.raises(QueryError, match="must not be blank"):
        retriever.retrieve_many([QUESTIONS[0], " "])
    with pytest.raises(ConfigurationError, match=r"'topk' of Retriever\.retrieve_many: did you mean 'limit'"):
        retriever.retrieve_many(QUESTIONS, topk=3)


def test_failing_question_raises_and_the_others_end():
    retriever = make_retriever(texts=["broken pink fruit"])
    with pytest.raises(ModelError, match="pink breaks it"):
        retriever.retrieve_many(QUESTIONS)
    assert len(retriever.retrieve_many(QUESTIONS[:-1])) == 7


def test_write_waits_for_all_questions_and_none_from_inside_is_a_deadlock():
    inside = threading.Event()

    class Slow(PairReader):
        def score_pairs(self, pairs):
            inside.set()
            time.sleep(0.2)
            return super().score_pairs(pairs)

    retriever = make_retriever(Slow())
    contexts = []
    thread = threading.Thread(target=lambda: contexts.extend(retriever.retrieve_many(QUESTIONS)))
    thread.start()
    assert inside.wait(5)
    retriever.add([Passage(id="new", text="Which fruit is red and new?")])
    thread.join(5)
    assert len(contexts) == 8
    assert not any(c.id == "new" for context in contexts for c in context.trace.candidates)

    def where(metadata):
        retriever.remove(["new"])

    with pytest.raises((RetrievalError, ConfigurationError), match="changed from inside"):
        retriever.retrieve_many(QUESTIONS[:2], where=where)


def test_async_questions_run_at_the_same_time():
    together = threading.Barrier(2, timeout=5)

    class Meets(OverlapVerifier):
        def raw_scores(self, query, passages):
            together.wait()
            return super().raw_scores(query, passages)

    retriever = make_retriever(Meets())

    async def both():
        return await asyncio.gather(*(retriever.aretrieve(question, limit=1) for question in QUESTIONS[:2]))

    contexts = asyncio.run(both())
    assert [c.query for c in contexts] == QUESTIONS[:2]
    assert [len(c.passages) for c in contexts] == [1, 1]


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_copies_are_refused_with_the_way_out(make):
    with pytest.raises(ConfigurationError, match=r"can't be pickled or copied.*save\(folder\).*Retriever\.load"):
        make(make_retriever())


def test_question_whose_call_is_being_read_takes_no_others_call():
    """Many questions are read, one waits, and another ends: only the one that waits may start its call."""
    begun, go_on = threading.Event(), threading.Event()

    def score(pairs):
        if pairs[0][1] == "1":
            begun.set()
            assert go_on.wait(5)
        return np.array([float(text) for _, text in pairs], dtype=np.float32)

    meeting = _Meeting(score, running=12)
    with ThreadPoolExecutor(13) as pool:
        slow = [pool.submit(meeting.wait, [("q", "1")]) for _ in range(12)]
        assert begun.wait(5)
        with meeting.changed:
            meeting.running += 2
        last = pool.submit(meeting.wait, [("q", "2")])
        while not meeting.waiting:
            time.sleep(0.001)
        meeting.leave()
        assert last.result(5).tolist() == [2.0]
        time.sleep(0.05)
        go_on.set()
        assert [each.result(5).tolist() for each in slow] == [[1.0]] * 12
