"""Small instances of the public sets: their files, and the sets that are read from them."""

import gzip
import json

from meve.evaluation import GoldSentence, Question
from meve.types import Passage

MOON = {"id": "p-moon", "title": "Moon", "text": "It orbits the Earth. It is grey.", "sent_starts": [0, 21]}
MARS = {"id": "p-mars", "title": "Mars", "text": "It is red.", "sent_starts": [0]}
SUN = {"id": "p-sun", "title": "", "text": "It is a star."}

QA = {
    "id": "q1",
    "question": "What colour is the Moon?",
    "answer": "grey",
    "type": "bridge",
    "gold_passage_ids": ["p-moon"],
    "gold_sentences": [{"passage_id": "p-moon", "sent_idx": 1, "text": "It is grey."}],
    "context_passage_ids": ["p-mars", "p-moon"],
    "source": "nowhere",
}
"""With fields that nothing reads: they do no harm."""

FILES = {
    "hotpotqa": {"hotpotqa/passages.jsonl.gz": [MOON, MARS], "hotpotqa/questions.jsonl": [QA]},
    "2wiki": {
        "2wiki/passages.jsonl.gz": [MOON],
        "2wiki/extra_passages.jsonl.gz": [SUN],
        "2wiki/questions.jsonl": [QA],
    },
    "musique": {
        "musique/passages.jsonl.gz": [MOON, SUN],
        "musique/questions.jsonl": [
            {**QA, "answer_aliases": ["gray", "grey", "gray"], "answerable": True},
            {**QA, "id": "q2", "answer_aliases": [], "answerable": False, "gold_passage_ids": []},
        ],
    },
    "nq_open": {
        "nq_open/passages.jsonl.gz": [MOON, SUN],
        "nq_open/questions.jsonl": [{**QA, "answers": ["grey", "ashen"], "gold_passage_ids": ["p-sun", "p-moon"]}],
    },
    "hotpotqa_fullwiki": {
        "hotpotqa_fullwiki/passages.jsonl.gz": [MOON, MARS, SUN],
        "hotpotqa_fullwiki/questions.jsonl": [
            {**QA, "gold_complete": True},
            {
                **QA,
                "id": "q2",
                "gold_complete": False,
                "gold_titles_missing": ["Venus"],
                "context_passage_ids": ["p-moon", "p-sun"],
            },
            {**QA, "id": "q3", "gold_complete": False, "gold_passage_ids": [], "gold_sentences": []},
        ],
    },
    "rgb": {
        "rgb_counterfactual/questions.jsonl": [
            {
                "id": "r-1",
                "question": "Who won?",
                "answer": "Ada",
                "fake_answer": "Bob",
                "positive": ["Ada won.", "She won, Ada."],
                "positive_wrong": ["Bob won.", "She won, Ada."],
                "negative": ["It rained.", "Bob won.", "It rained."],
            },
            {
                "id": "r-2",
                "question": "When?",
                "answer": [["May 2", "2 May", "May 2"]],
                "fake_answer": "June",
                "positive": ["Ada won."],
                "positive_wrong": [],
                "negative": [],
            },
        ]
    },
    "scifact": {
        "scifact/corpus.jsonl.gz": [MOON, MARS, {**SUN, "sent_starts": []}],
        "scifact/claims.jsonl": [
            {
                "id": "1",
                "claim": "The Moon is green.",
                "cited_doc_ids": ["p-moon", "p-mars"],
                "evidence": [
                    {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [1]},
                    {"doc_id": "p-moon", "label": "CONTRADICT", "sentences": [0, 1]},
                ],
            },
            {
                "id": "2",
                "claim": "Mars is red.",
                "cited_doc_ids": ["p-mars"],
                "evidence": [{"doc_id": "p-mars", "label": "SUPPORT", "sentences": [0]}],
            },
            {"id": "3", "claim": "Venus is hot.", "cited_doc_ids": ["p-mars"], "evidence": []},
        ],
    },
    "nfcorpus": {
        "nfcorpus/corpus.jsonl.gz": [MOON, SUN],
        "nfcorpus/queries.jsonl": [
            {"id": "n1", "text": "moons"},
            {"id": "n2", "text": "cheese"},
            {"id": "n3", "text": "stars"},
        ],
        "nfcorpus/qrels.jsonl": [
            {"query_id": "n3", "doc_id": "p-sun", "relevance": 2},
            {"query_id": "n1", "doc_id": "p-moon", "relevance": 2},
            {"query_id": "n1", "doc_id": "p-sun", "relevance": 1},
        ],
    },
}
"""A small instance of each format, one that shows all of its rules."""

moon = Passage(id="p-moon", title="Moon", text="It orbits the Earth. It is grey.")
mars = Passage(id="p-mars", title="Mars", text="It is red.")
sun = Passage(id="p-sun", text="It is a star.")
grey = GoldSentence(passage_id="p-moon", text="It is grey.")
question = Question(
    id="q1",
    text="What colour is the Moon?",
    gold={"p-moon": 1},
    sentences=(grey,),
    answers=("grey",),
    kind="bridge",
)


def changed(question, **changes):
    """The question with other values."""
    values = {name: getattr(question, name) for name in Question.__slots__}
    return Question(**{**values, **changes})


EXPECTED = {
    "hotpotqa": ((moon, mars), (question,)),
    "2wiki": ((moon, sun), (question,)),
    "musique": (
        (moon, sun),
        (
            changed(question, sentences=(), answers=("grey", "gray")),
            changed(question, id="q2", sentences=(), gold={}, answerable=False),
        ),
    ),
    "nq_open": (
        (moon, sun),
        (changed(question, sentences=(), answers=("grey", "ashen"), gold={"p-sun": 1, "p-moon": 1}),),
    ),
    "hotpotqa_fullwiki": (
        (moon, mars, sun),
        (
            changed(question, pool=("p-mars", "p-moon")),
            changed(question, id="q2", pool=("p-moon", "p-sun"), answerable=False),
            changed(question, id="q3", pool=("p-mars", "p-moon"), answerable=False, gold={}, sentences=()),
        ),
    ),
    "rgb": (
        (
            Passage(id="r-1/positive/0", text="Ada won."),
            Passage(id="r-1/positive/1", text="She won, Ada."),
            Passage(id="r-1/wrong/0", text="Bob won."),
            Passage(id="r-1/negative/0", text="It rained."),
            Passage(id="r-2/positive/0", text="Ada won."),
        ),
        (
            Question(
                id="r-1",
                text="Who won?",
                gold={"r-1/positive/0": 1, "r-1/positive/1": 1},
                answers=("Ada",),
                misleading=("Bob",),
                pool=("r-1/positive/0", "r-1/positive/1", "r-1/wrong/0", "r-1/negative/0"),
            ),
            Question(
                id="r-2",
                text="When?",
                gold={"r-2/positive/0": 1},
                answers=("May 2", "2 May"),
                misleading=("June",),
                pool=("r-2/positive/0",),
            ),
        ),
    ),
    "scifact": (
        (moon, mars, sun),
        (
            Question(
                id="1",
                text="The Moon is green.",
                gold={"p-moon": 1},
                sentences=(grey, GoldSentence(passage_id="p-moon", text="It orbits the Earth.")),
                kind="CONTRADICT",
            ),
            Question(
                id="2",
                text="Mars is red.",
                gold={"p-mars": 1},
                sentences=(GoldSentence(passage_id="p-mars", text="It is red."),),
                kind="SUPPORT",
            ),
            Question(id="3", text="Venus is hot.", answerable=False, kind="NOT_ENOUGH_INFO"),
        ),
    ),
    "nfcorpus": (
        (moon, sun),
        (
            Question(id="n1", text="moons", gold={"p-moon": 2, "p-sun": 1}),
            Question(id="n3", text="stars", gold={"p-sun": 2}),
        ),
    ),
}


def write_rows(file, rows):
    """Rows, or lines of text, as JSONL; packed where the name says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    data = text.encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return file


def write_set(root, name, changed=None):
    """The small instance of a set; of the files in `changed`, with other rows."""
    for path, rows in {**FILES[name], **(changed or {})}.items():
        write_rows(root / path, rows)
    return root
