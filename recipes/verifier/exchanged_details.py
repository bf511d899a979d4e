"""Makes near misses of the questions of training sets, by exchanging a detail that the passage shares."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from recipes.verifier.examples import Example
from recipes.verifier.pairs import rows_of
from recipes.verifier.slot_values import WORDS
from recipes.verifier.splits import part_of

DAYS, MONTHS = WORDS["day"], WORDS["month"]
FROM_SETS: Mapping[str, int] = {"squad_sentences": 1500, "squad2": 500, "xquad": 300, "qed": 150}
"""The number of questions of each training set whose details are exchanged."""


_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
_DIGITS = re.compile(r"\b\d{1,3}\b(?![.,]\d)")
_DAY = re.compile(rf"\b({'|'.join(DAYS)})\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b({'|'.join(m for m in MONTHS if m != 'May')})\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,3}")


def exchanged(folder: Path, seed: int) -> Iterator[Example]:
    """Yield questions of the training sets with one detail exchanged, and the same questions unchanged."""
    for name, count in FROM_SETS.items():
        rng = random.Random(f"{seed}/exchanged/{name}")
        rows = [r for r in rows_of(folder, name) if r["positive"] and part_of(r["source"], str(r["group"])) == "train"]
        names = sorted({n for r in rows for n in _NAME.findall(r["query"])})
        made = 0
        for row in rng.sample(rows, len(rows)):
            changed = exchange_detail(row["query"], row["positive"], names, rng)
            if changed and made < count:
                made += 1
                passage = row["positive"]
                for query, relevant in ((row["query"], True), (changed, False)):
                    yield Example(
                        query=query, passage=passage, relevant=relevant, set=name, kind="exchanged", part="train"
                    )


def unanswerable(folder: Path, count: int, seed: int) -> Iterator[Example]:
    """Yield unanswerable questions of SQuAD 2.0, each with the sentence of its passage that is most like it."""
    rng = random.Random(f"{seed}/unanswerable")
    rows = rows_of(folder, "squad2_unanswerable")
    rows = [r for r in rows if part_of(r["source"], str(r["group"])) == "train"]
    for row in rng.sample(rows, min(count, len(rows))):
        words = set(re.findall(r"\w{4,}", row["query"].lower()))
        sentences = split_sentences(row["negatives"][0])
        nearest = max(sentences, key=lambda s: len(words & set(re.findall(r"\w{4,}", s.lower()))))
        yield Example(
            query=row["query"],
            passage=nearest.strip(),
            relevant=False,
            set="squad2_unanswerable",
            kind="exchanged",
            part="train",
        )


def exchange_detail(query: str, passage: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Exchange a detail that question and passage share for one that the passage doesn't hold."""
    lower = passage.lower()
    ways: list[tuple[str, Callable[[str], str]]] = []
    for pattern, other in (
        (_YEAR, lambda old: str(int(old) + rng.choice((-30, -10, -7, -3, -2, -1, 1, 2, 3, 7, 10, 30)))),
        (_DAY, lambda _: rng.choice(DAYS)),
        (_MONTH, lambda _: rng.choice(MONTHS)),
        (_NAME, lambda _: rng.choice(names)),
        (_DIGITS, lambda old: str(int(old) + rng.choice((-5, -2, -1, 1, 2, 5, 10)))),
    ):
        ways += [(m[0], other) for m in pattern.finditer(query) if m[0].lower() in lower]
    rng.shuffle(ways)
    for old, other in ways:
        for _ in range(10):
            new = other(old)
            if not any(word in lower for word in new.lower().split() if len(word) > 3) and new.lower() not in lower:
                return query.replace(old, new.lower() if query.islower() else new)
    return None
