"""Examples from the question answering sets: paragraphs, the second hop, sentences. None of a question kept out."""

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from meve.evaluation._answer_matching import contains_answer, normalize_answer
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.types import EvaluationSet, Question
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.follow import with_evidence
from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.splits import SEED, asked_in_fullwiki, part_of, parted

HARD = 8
"""Passages that don't answer, for each question: its own distractors first, as the test takes them."""
MOST_QUESTIONS = 200
MOST_GOLD = 8
"""Passages that answer, for each question of a set kept out as a whole; NFCorpus has dozens."""
SECOND = 4
"""Passages that don't complete the evidence, for each that does."""


def examples(root: Path, seed: int) -> Iterator[Example]:
    """Of HotpotQA, 2Wiki and NQ: the training questions, a few of them set aside as `dev`, and those for testing."""
    for name in ("hotpotqa", "2wiki", "nq_open"):
        chosen = read_set(name, root)
        maker = _Maker(chosen, *_raw(root / name), random.Random(f"{seed}/{name}"))
        training, testing = parted(chosen)
        fullwiki = asked_in_fullwiki(root) if name == "hotpotqa" else set()
        for part, questions in (("train", training), ("test", testing)):
            for question in questions:
                if part == "train" and question.text in fullwiki:
                    continue
                mine = part if part == "test" or part_of(name, question.id) == "train" else "dev"
                yield from (replace(e, part=mine) for e in maker.of(question, lenient=part == "train"))


def kept_out(root: Path, seed: int) -> Iterator[Example]:
    """Of whole sets that nothing is learned from, for testing."""
    for name in ("musique", "scifact", "nfcorpus"):
        chosen = read_set(name, root)
        rng = random.Random(f"{seed}/{name}")
        contexts = _raw(root / name)[0] if name == "musique" else {}
        maker = _Maker(chosen, contexts, {}, rng)
        answerable = [q for q in sample_questions(chosen.questions, None, SEED) if q.gold and q.answerable]
        for question in answerable[:MOST_QUESTIONS]:
            yield from (replace(e, part="test") for e in maker.paragraphs(question, MOST_GOLD))


def untested(root: Path, name: str = "2wiki") -> list[Passage]:
    """The passages of a set that belong to no question kept out of training, neither as gold nor as distractor."""
    chosen = read_set(name, root)
    contexts, _ = _raw(root / name)
    training, testing = parted(chosen)
    held = [*testing, *(q for q in training if part_of(name, q.id) != "train")]
    theirs = {i for q in held for i in (*q.gold, *contexts.get(q.id, ()))}
    return [p for p in chosen.passages if p.id not in theirs]


def _raw(folder: Path) -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """What the evaluation doesn't read: the passages that came with a question, and where sentences start."""
    with (folder / "questions.jsonl").open(encoding="utf-8") as lines:
        contexts = {row["id"]: row.get("context_passage_ids") or [] for row in map(json.loads, lines)}
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

    def of(self, question: Question, *, lenient: bool) -> Iterator[Example]:
        """Its paragraphs, second hops and sentences; what holds the answer and isn't gold is left out if `lenient`."""
        gold = [self._by_id[i] for i in question.gold]
        others = self._others(question, lenient)
        yield from self.paragraphs(question, len(gold), lenient=lenient)
        if self._hops:
            yield from self._second_hops(question, gold, others)
        if question.sentences:
            yield from self._sentences(question, gold, others)

    def paragraphs(self, question: Question, most: int, *, lenient: bool = False) -> Iterator[Example]:
        """Passages that answer, at most so many, and the hardest ones that don't."""
        gold = self._rng.sample(sorted(question.gold), min(most, len(question.gold)))
        yield from (self._one(question.text, self._by_id[i], True) for i in gold)
        yield from (self._one(question.text, p, False) for p in self._others(question, lenient))

    def _others(self, question: Question, lenient: bool) -> list[Passage]:
        """Its own distractors, then what BM25 brings: to learn from, without what holds a single-hop answer."""
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
            query = with_evidence(question.text, [first.content], RetrieverConfig().evidence_words)
            for second in gold:
                if second is not first:
                    yield self._one(query, second, True, "second hop")
            for wrong in self._rng.sample(list(others), min(SECOND, len(others))):
                yield self._one(query, wrong, False, "second hop")

    def _sentences(self, question: Question, gold: Sequence[Passage], others: Sequence[Passage]) -> Iterator[Example]:
        """Each with its passage's title, as a pack of sentences shows it."""
        right = {(s.passage_id, s.text.strip()) for s in question.sentences}
        for passage_id, text in sorted(right):
            yield self._sentence(question, self._by_id[passage_id], text, True)
        for passage in gold:
            rest = [t for t in self._split(passage) if (passage.id, t) not in right]
            for text in self._rng.sample(rest, min(2, len(rest))):
                yield self._sentence(question, passage, text, False)
        for passage in self._rng.sample(list(others), min(2, len(others))):
            found = self._split(passage)
            if found:
                yield self._sentence(question, passage, self._rng.choice(found), False)

    def _split(self, passage: Passage) -> list[str]:
        starts = self._starts.get(passage.id, [0])
        ends = [*starts[1:], len(passage.text)]
        return [text for a, b in zip(starts, ends, strict=True) if len(text := passage.text[a:b].strip()) > 20]

    def _one(self, query: str, passage: Passage, relevant: bool, kind: str = "paragraph") -> Example:
        return Example(query=query, passage=passage.content, relevant=relevant, set=self._set.name, kind=kind, part="")

    def _sentence(self, question: Question, passage: Passage, text: str, relevant: bool) -> Example:
        whole = Passage(id=passage.id, text=text, title=passage.title)
        return self._one(question.text, whole, relevant, "sentence")
