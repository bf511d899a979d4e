"""Makes examples from the sets of (query, passage) pairs: pages, abstracts, manuals, personal statements.

Negatives come with the source, or from BM25 over other groups. `sgd_memory` and `persona_chat_synthetic` use rows of
other queries instead, since another person's statement can answer the same question.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from meve.training.mining import Miner
from recipes.verifier.examples import Example
from recipes.verifier.splits import part_of

NEGATIVES = 3
NO_MINING = ("sgd_memory", "persona_chat_synthetic")
STATEMENTS = (*NO_MINING, "friendsqa")
SHORT = ("squad_sentences", "openstax_glossary")

QUERIES: Mapping[str, int] = {
    "squad2": 2000,
    "squad2_unanswerable": 1500,
    "xquad": 800,
    "squad_sentences": 2500,
    "qed": 400,
    "quotesum": 300,
    "pubmedqa": 1000,
    "medquad": 1500,
    "covid_qa": 500,
    "covid_faq_gov": 100,
    "scitldr": 1500,
    "mtrag_human": 30,
    "sgd_memory": 1500,
    "persona_chat_synthetic": 1200,
    "friendsqa": 700,
    "qmsum": 250,
    "docs_aws": 400,
    "docs_powershell": 400,
    "docs_web_cc": 400,
    "docs_permissive": 400,
    "docs_redis": 300,
    "docs_python_peps": 400,
    "gov_us": 500,
    "openstax_sections": 400,
    "openstax_glossary": 900,
}
"""The number of queries used per set."""


def examples(folder: Path, seed: int) -> Iterator[Example]:
    """Yield the examples of every set."""
    for name, rows in _sets(folder):
        yield from _of_set(name, rows, random.Random(f"{seed}/{name}"))


def answering(folder: Path) -> Iterator[Example]:
    """Yield every row's query with its relevant passage, without a limit per set."""
    for name, rows in _sets(folder):
        for row in rows:
            if row["positive"]:
                part = part_of(row["source"], str(row["group"]))
                yield Example(
                    query=row["query"], passage=row["positive"], relevant=True, set=name, kind="paragraph", part=part
                )


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return all rows of one set."""
    return next(rows for set_name, rows in _sets(folder, name) if set_name == name)


def _sets(folder: Path, only: str = "*") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for file in sorted([*folder.glob(f"{only}.jsonl.gz"), *folder.glob(f"negonly/{only}.jsonl.gz")]):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield file.name.removesuffix(".jsonl.gz"), [json.loads(line) for line in lines]


def _of_set(name: str, rows: list[dict[str, Any]], rng: random.Random) -> Iterator[Example]:
    kind = "statement" if name in STATEMENTS else "sentence" if name in SHORT else "paragraph"
    with_answer = [row for row in rows if row["positive"]]
    miner = Miner([row["positive"] for row in with_answer], rng) if with_answer else None
    for row in _sample_rows(rows, QUERIES[name], rng):
        result = _pairs(row, with_answer, miner, rng)
        for passage, relevant in result:
            yield Example(
                query=row["query"],
                passage=passage,
                relevant=relevant,
                set=name,
                kind="unanswerable" if not row["positive"] else kind,
                part=part_of(row["source"], str(row["group"])),
            )


def _pairs(
    row: dict[str, Any], rows: list[dict[str, Any]], miner: Miner | None, rng: random.Random
) -> Iterator[tuple[str, bool]]:
    if row["positive"]:
        yield row["positive"], True
    given = rng.sample(row["negatives"], min(2, len(row["negatives"])))
    yield from ((text, False) for text in given)
    if miner is None or not row["positive"]:
        return
    statement = row["source"] in NO_MINING

    def allowed(i: int) -> bool:
        other = rows[i]
        is_other = other["query"] != row["query"] if statement else other["group"] != row["group"]
        return is_other and other["positive"] != row["positive"]

    wanted = NEGATIVES - len(given)
    chosen = _sample_allowed(rows, wanted, allowed, rng) if statement else miner.draw(row["query"], wanted, allowed)
    yield from ((rows[i]["positive"], False) for i in chosen)
    if row["source"] == "squad_sentences":  # another sentence of the article: closer than any other article's
        near = [i for i in miner.search(row["query"], 20) if rows[i]["group"] == row["group"]]
        near = [i for i in near if rows[i]["positive"] != row["positive"] and rows[i]["query"] != row["query"]]
        yield from ((rows[i]["positive"], False) for i in near[:1])


def _sample_allowed(
    rows: list[dict[str, Any]], count: int, allowed: Callable[[int], bool], rng: random.Random
) -> list[int]:
    result: list[int] = []
    while len(result) < count:
        i = rng.randrange(len(rows))
        if allowed(i):
            result.append(i)
    return result


def _sample_rows(rows: list[dict[str, Any]], count: int, rng: random.Random) -> list[dict[str, Any]]:
    """Sample at most `count` rows, with few rows per query."""
    order = rng.sample(rows, len(rows))
    seen: dict[str, int] = {}
    most = max(1, 3 * count // max(1, len({row["query"] for row in rows})))
    sampled = []
    for row in order:
        key = row["query"].strip().lower()
        if seen.get(key, 0) < most:
            seen[key] = seen.get(key, 0) + 1
            sampled.append(row)
        if len(sampled) == count:
            break
    return sampled
