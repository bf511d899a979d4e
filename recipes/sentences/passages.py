"""Makes passages whose sentences are labelled as evidence or not.

For training: questions of SQuAD and of half of the held-out pages, which the verifier wasn't trained on, since its
hidden states show the labels of those that it knows. For calibration: the questions that its training left out, of
SQuAD, HotpotQA, 2WikiMultihopQA and the other half of the pages.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from meve.evaluation.datasets import read_set
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.pages import read_pages
from recipes.verifier.pairs import rows_of
from recipes.verifier.questions import read_contexts
from recipes.verifier.splits import SEED, asked_in_fullwiki, part_of, split_questions

WINDOWS = {"train": 3000, "dev": 200}
"""Passages made of neighbouring sentences, per part."""
NEAR = 8
"""Rows before and after a question's own from which its passage is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPassage:
    """A question and a passage, with the label of each sentence."""

    query: str
    passage: Passage
    sentences: tuple[str, ...]
    labels: tuple[bool, ...]
    set: str
    part: str
    """`train` or `dev`."""


def passages(data: Path, mixture: Path) -> list[LabelledPassage]:
    """Return all labelled passages.

    Args:
        data: the evaluation sets, with the training sets in `train`.
        mixture: the folder that `recipes.verifier.mixture` wrote.
    """
    parts = ("train", "dev", "test")
    known = {_plain(e.query) for part in parts for e in Example.read(mixture / f"{part}.jsonl")}
    return [*_squad(data / "train", known), *_multi_hop("hotpotqa", data), *_multi_hop("2wiki", data), *_pages()]


def _squad(data: Path, known: set[str]) -> Iterator[LabelledPassage]:
    """Yield SQuAD's paragraphs where the data hold them, else neighbouring sentences of the same article."""
    rng = random.Random(SEED)
    rows = rows_of(data, "squad_sentences")
    texts = {row["positive"] for name in ("squad2", "xquad") for row in rows_of(data, name)}
    paragraphs = {_plain(s): text for text in sorted(texts) for s in split_sentences(text)}
    windows: dict[str, list[LabelledPassage]] = {"train": [], "dev": []}
    for n, row in enumerate(rows):
        part = "train" if part_of(row["source"], row["group"]) == "train" else "dev"
        if _plain(row["query"]) in known:
            continue
        right = _plain(row["positive"])
        if right in paragraphs:
            text = paragraphs[right]
            sentences = split_sentences(text)
        else:
            near = [r["positive"].strip() for r in rows[max(0, n - NEAR) : n + NEAR + 1] if r["group"] == row["group"]]
            distinct = list(dict.fromkeys(near))
            start = max(0, distinct.index(row["positive"].strip()) - rng.randrange(5))
            sentences = distinct[start : start + rng.randrange(5, 8)]
            text = " ".join(sentences)
        labels = tuple(_plain(sentence) == right for sentence in sentences)
        if len(labels) < 2 or sum(labels) != 1:
            continue
        made = LabelledPassage(
            query=row["query"], passage=Passage(id=str(n), text=text), sentences=tuple(sentences), labels=labels,
            set="squad", part=part,
        )  # fmt: skip
        if right in paragraphs:
            yield made
        else:
            windows[part].append(made)
    for part, count in WINDOWS.items():
        yield from rng.sample(windows[part], min(count, len(windows[part])))


def _multi_hop(name: str, data: Path) -> Iterator[LabelledPassage]:
    """Yield the gold passages and distractors of a set's questions held out of training and of its tests."""
    chosen = read_set(name, data)
    by_id = {p.id: p for p in chosen.passages}
    contexts = read_contexts(data / name)
    elsewhere = asked_in_fullwiki(data) if name == "hotpotqa" else set()
    for question in split_questions(chosen)[0]:
        if part_of(name, question.id) == "train" or question.text in elsewhere:
            continue
        for passage_id in dict.fromkeys([*sorted(question.gold), *contexts[question.id]]):
            passage = by_id[passage_id]
            sentences = tuple(split_sentences(passage.text))
            gold = [s.text.strip() for s in question.sentences if s.passage_id == passage_id]
            labels = tuple(any(_overlap(passage.text, s, g) for g in gold) for s in sentences)
            yield LabelledPassage(
                query=question.text, passage=passage, sentences=sentences, labels=labels, set=name, part="dev"
            )


def _pages() -> Iterator[LabelledPassage]:
    """Yield held-out pages as passages, for the questions that a section of at most two sentences answers."""
    for n, (_, page) in enumerate(read_pages()):
        if part_of("pages", page["title"]) != "dev":
            continue
        parts = [split_sentences(section["text"]) for section in page["sections"]]
        passage = Passage(id=f"page-{n}", title=page["title"], text="\n".join(s["text"] for s in page["sections"]))
        for at, section in enumerate(page["sections"]):
            labels = tuple(k == at for k, sentences in enumerate(parts) for _ in sentences)
            for query in section["yes"] if len(parts[at]) < 3 else ():
                yield LabelledPassage(
                    query=query, passage=passage, sentences=tuple(chain(*parts)), labels=labels, set="pages",
                    part="train" if n % 2 else "dev",
                )  # fmt: skip


def _overlap(text: str, one: str, other: str) -> bool:
    """Return whether two parts of a text share half of the shorter one; sets and MeVe split differently."""
    a, b = text.index(one), text.index(other)
    shared = min(a + len(one), b + len(other)) - max(a, b)
    return shared >= 0.5 * min(len(one), len(other))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
