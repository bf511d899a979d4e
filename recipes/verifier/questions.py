"""Makes examples from the question answering sets: paragraphs, second hops and sentences."""

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.measures.answers import contains_answer, normalize_answer
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.follow import extend_query
from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.splits import SEED, asked_in_fullwiki, part_of, split_questions

HARD = 8
"""Irrelevant passages per question, its own distractors first."""
MOST_QUESTIONS = 200
MOST_GOLD = 8
"""Relevant passages per question of a held-out set; NFCorpus has dozens."""
SECOND = 4
"""Irrelevant passages per second hop."""


def examples(root: Path, seed: int) -> Iterator[Example]:
    """Yield examples of HotpotQA, 2Wiki and NQ for `train`, `dev` and `test`."""
    for name in ("hotpotqa", "2wiki", "nq_open"):
        chosen = read_set(name, root)
        maker = _Maker(chosen, *_raw(root / name), random.Random(f"{seed}/{name}"))
        training, testing = split_questions(chosen)
        fullwiki = asked_in_fullwiki(root) if name == "hotpotqa" else set()
        for part, questions in (("train", training), ("test", testing)):
            for question in questions:
                if part == "train" and question.text in fullwiki:
                    continue
                assigned = part if part == "test" or part_of(name, question.id) == "train" else "dev"
                yield from (replace(e, part=assigned) for e in maker.make_all(question, lenient=part == "train"))


def kept_out(root: Path, seed: int) -> Iterator[Example]:
    """Yield test examples of the sets held out entirely."""
    for name in ("musique", "scifact", "nfcorpus"):
        chosen = read_set(name, root)
        rng = random.Random(f"{seed}/{name}")
        contexts = _raw(root / name)[0] if name == "musique" else {}
        maker = _Maker(chosen, contexts, {}, rng)
        answerable = [q for q in sample_questions(chosen.questions, None, SEED) if q.gold and q.answerable]
        for question in answerable[:MOST_QUESTIONS]:
            yield from (replace(e, part="test") for e in maker.paragraphs(question, MOST_GOLD))


def untested(root: Path, name: str = "2wiki") -> list[Passage]:
    """Return the passages that are neither gold nor distractor of a held-out question."""
    chosen = read_set(name, root)
    contexts, _ = _raw(root / name)
    training, testing = split_questions(chosen)
    held_out = [*testing, *(q for q in training if part_of(name, q.id) != "train")]
    used = {i for q in held_out for i in (*q.gold, *contexts.get(q.id, ()))}
    return [p for p in chosen.passages if p.id not in used]


def read_contexts(folder: Path) -> dict[str, list[str]]:
    """Return the ids of the passages that came with each question of a set."""
    with (folder / "questions.jsonl").open(encoding="utf-8") as lines:
        return {row["id"]: row.get("context_passage_ids") or [] for row in map(json.loads, lines)}


def _raw(folder: Path) -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """Return the passages that came with each question, and where sentences start in each passage."""
    contexts = read_contexts(folder)
    with gzip.open(folder / "passages.jsonl.gz", "rt", encoding="utf-8") as lines:
        starts = {row["id"]: row.get("sent_starts") or [0] for row in map(json.loads, lines)}
    return contexts, starts


class _Maker:
    def __init__(
        self,
        chosen: EvaluationSet,
        contexts: Mapping[str, list[str]],
        starts: Mapping[str, list[int]],
        rng: random.Random,
    ) -> None:
        self._set = chosen
        self._contexts = contexts
        self._starts = starts
        self._rng = rng
        self._by_id = {p.id: p for p in chosen.passages}
        self._miner = Miner([p.content for p in chosen.passages], rng)
        self._hops = chosen.name in ("hotpotqa", "2wiki", "musique")

    def make_all(self, question: Question, *, lenient: bool) -> Iterator[Example]:
        """Yield paragraphs, second hops and sentences; `lenient` drops other passages with the answer."""
        gold = [self._by_id[i] for i in question.gold]
        others = self._others(question, lenient)
        yield from self.paragraphs(question, len(gold), lenient=lenient)
        if self._hops:
            yield from self._second_hops(question, gold, others)
        if question.sentences:
            yield from self._sentences(question, gold, others)

    def paragraphs(self, question: Question, most: int, *, lenient: bool = False) -> Iterator[Example]:
        """Yield at most `most` relevant passages, and the hardest irrelevant ones."""
        gold = self._rng.sample(sorted(question.gold), min(most, len(question.gold)))
        yield from (self._one(question.text, self._by_id[i], True) for i in gold)
        yield from (self._one(question.text, p, False) for p in self._others(question, lenient))

    def _others(self, question: Question, lenient: bool) -> list[Passage]:
        """Return distractors, then BM25 results; `lenient` drops those that hold a single-hop answer."""
        wrong = [self._by_id[i] for i in self._distractors(question)]
        for row in self._miner.search(question.text, 60):
            passage = self._set.passages[row]
            if len(wrong) >= HARD:
                break
            if (
                passage.id not in question.gold
                and passage not in wrong
                and not (lenient and self._answers(question, passage))
            ):
                wrong.append(passage)
        return wrong[:HARD]

    def _distractors(self, question: Question) -> list[str]:
        return [i for i in self._contexts.get(question.id, ()) if i not in question.gold and i in self._by_id]

    def _answers(self, question: Question, passage: Passage) -> bool:
        if self._hops or not question.answers:
            return False
        text = normalize_answer(passage.content)
        return any(contains_answer(text, answer) for answer in question.answers)

    def _second_hops(self, question: Question, gold: Sequence[Passage], others: Sequence[Passage]) -> Iterator[Example]:
        for first in gold:
            query = extend_query(question.text, [first.content], RetrieverConfig().evidence_words)
            for second in gold:
                if second is not first:
                    yield self._one(query, second, True, "second hop")
            for wrong in self._rng.sample(list(others), min(SECOND, len(others))):
                yield self._one(query, wrong, False, "second hop")

    def _sentences(self, question: Question, gold: Sequence[Passage], others: Sequence[Passage]) -> Iterator[Example]:
        """Yield sentences with their passage's title, as sentence packing shows them."""
        right = {(s.passage_id, s.text.strip()) for s in question.sentences}
        for passage_id, text in sorted(right):
            yield self._sentence(question, self._by_id[passage_id], text, True)
        for passage in gold:
            rest = [t for t in self._split(passage) if (passage.id, t) not in right]
            for text in self._rng.sample(rest, min(2, len(rest))):
                yield self._sentence(question, passage, text, False)
        for passage in self._rng.sample(list(others), min(2, len(others))):
            sentences = self._split(passage)
            if sentences:
                yield self._sentence(question, passage, self._rng.choice(sentences), False)

    def _split(self, passage: Passage) -> list[str]:
        starts = self._starts.get(passage.id, [0])
        ends = [*starts[1:], len(passage.text)]
        return [text for a, b in zip(starts, ends, strict=True) if len(text := passage.text[a:b].strip()) > 20]

    def _one(self, query: str, passage: Passage, relevant: bool, kind: str = "paragraph") -> Example:
        return Example(query=query, passage=passage.content, relevant=relevant, set=self._set.name, kind=kind, part="")

    def _sentence(self, question: Question, passage: Passage, text: str, relevant: bool) -> Example:
        whole = Passage(id=passage.id, text=text, title=passage.title)
        return self._one(question.text, whole, relevant, "sentence")
