"""Makes pairs of an older and a newer statement from the records written for this project (`statements/`).

A record holds a statement (`old`), statements after which it no longer holds (`ends`), one that says the same
(`same`), and statements beside which it may hold (`keeps`): of another person or thing, of a plan, an exception, a
part, the past. What ends or keeps a statement does the same to its paraphrase. What may hold beside it may also be the
older one.

`together.jsonl` holds statements of one person each row, which all hold; `small_talk.txt` what ends nothing and can't
end.
"""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import TypeAlias

import numpy as np

from meve.ports import Embedder
from meve.types import LabelledPair

Record: TypeAlias = Mapping[str, str | list[str]]
HERE = Path(__file__).parent
FOLDER = HERE / "statements"
CHATS = 6
"""The number of other lines of small talk, of older statements and of newer ones with which each line is paired."""
UNRELATED = 3
"""The number of statements of other records with which each record's is paired."""
ALIKE = (0.35, 0.9)
"""The cosines of statements of one dialogue that are paired."""
FIRST, LAST = 40, 500
"""The ranks, by cosine, of the other records' statements that are drawn: the nearest may truly end the older one."""


def read_records(names: Sequence[str] = ()) -> list[Record]:
    """Return the records of the files with these names, without their suffix; of all files if none is given."""
    files = [FOLDER / f"{name}.jsonl" for name in names] or sorted(FOLDER.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def is_held_out(record: Record) -> bool:
    """Return whether a record is kept out of training: every tenth, by its hash."""
    return int(hashlib.sha256(str(record["old"]).encode()).hexdigest(), 16) % 10 == 0


def make_pairs(records: Sequence[Record]) -> Iterator[LabelledPair]:
    """Yield the pairs of each record: the older statement as query, relevant if the newer one ends it."""
    for record in records:
        told = [str(record["old"]), *record["same"]]
        for older in told:
            yield from (LabelledPair(query=older, passage=newer, relevant=True) for newer in record["ends"])
            yield from (LabelledPair(query=older, passage=same, relevant=False) for same in told if same != older)
        yield from (LabelledPair(query=told[0], passage=newer, relevant=False) for newer in record["keeps"])
        yield from (LabelledPair(query=older, passage=told[0], relevant=False) for older in record["keeps"])


def make_unrelated_pairs(records: Sequence[Record], embedder: Embedder, rng: random.Random) -> Iterator[LabelledPair]:
    """Yield pairs of each record's statement and similar statements of other records."""
    others = [(text, n) for n, record in enumerate(records) for text in (*record["ends"], *record["keeps"])]
    older = embedder.embed_passages([str(record["old"]) for record in records])
    cosines = older @ embedder.embed_passages([text for text, _ in others]).T
    for n, record in enumerate(records):
        near = [i for i in np.argsort(-cosines[n])[FIRST:LAST].tolist() if others[i][1] != n]
        for i in rng.sample(near, UNRELATED):
            yield LabelledPair(query=str(record["old"]), passage=others[i][0], relevant=False)


def make_random_pairs(records: Sequence[Record], count: int, rng: random.Random) -> Iterator[LabelledPair]:
    """Yield pairs of a record's statement and one that ends another record's."""
    for _ in range(count):
        one, other = rng.sample(records, 2)
        yield LabelledPair(query=str(one["old"]), passage=rng.choice(other["ends"]), relevant=False)


def make_talk_pairs(records: Sequence[Record], rng: random.Random) -> Iterator[LabelledPair]:
    """Yield pairs of what one person told of one thing, and pairs with small talk; all of them hold."""
    for row in map(json.loads, (HERE / "together.jsonl").read_text("utf-8").splitlines()):
        yield from (LabelledPair(query=a, passage=b, relevant=False) for a, b in permutations(row, 2))
    lines = (HERE / "small_talk.txt").read_text("utf-8").splitlines()
    told = [str(record["old"]) for record in records]
    newer = [text for record in records for text in (*record["ends"], *record["keeps"])]
    for line in lines:
        chats = rng.sample([other for other in lines if other != line], CHATS)
        yield from (LabelledPair(query=a, passage=line, relevant=False) for a in (*rng.sample(told, CHATS), *chats))
        yield from (LabelledPair(query=line, passage=b, relevant=False) for b in rng.sample(newer, CHATS))


def make_dialogue_pairs(file: Path, embedder: Embedder, count: int, rng: random.Random) -> Iterator[LabelledPair]:
    """Yield pairs of similar statements of one dialogue, which all hold: "I'm a teacher" and "I teach second grade".

    Args:
        file: `persona_chat_synthetic.jsonl.gz`.
        embedder: compares the statements.
        count: the number of pairs, at most.
        rng: chooses the pairs, and which statement is the older one.
    """
    told: dict[str, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            told.setdefault(row["group"], []).append(row["positive"])
    pairs: list[LabelledPair] = []
    for statements in (list(dict.fromkeys(group)) for group in told.values()):
        vectors = embedder.embed_passages(statements)
        cosines = vectors @ vectors.T
        for i, j in combinations(range(len(statements)), 2):
            if ALIKE[0] <= cosines[i, j] <= ALIKE[1]:
                older, newer = rng.sample((statements[i], statements[j]), 2)
                pairs.append(LabelledPair(query=older, passage=newer, relevant=False))
    yield from rng.sample(pairs, min(count, len(pairs)))
