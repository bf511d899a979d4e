"""Claims against abstracts and sections: a sentence of a passage asks, and the rest of the passage supports it.

No set of claims may be trained on here. A sentence taken out of a passage is the nearest thing: it shares the subject
with what it came from, and not the words.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from meve.components._sentence_splitter import sentences
from meve.training.mining import Miner
from recipes.verifier.examples import Example
from recipes.verifier.pairs import rows_of
from recipes.verifier.splits import part_of

CLAIMS = {"pubmedqa": 350, "covid_qa": 150, "scitldr": 300, "openstax_sections": 100}
"""How many of each set."""
NEGATIVES = 3
WORDS = range(9, 40)
"""Of a sentence that can stand as a claim."""
LEAST = 40
"""Words that must be left of a passage."""


def examples(folder: Path, seed: int) -> Iterator[Example]:
    """Those of every set."""
    for name, count in CLAIMS.items():
        rows = [r for r in rows_of(folder, name) if r["positive"]]
        groups = {r["positive"]: str(r["group"]) for r in rows if part_of(r["source"], str(r["group"])) == "train"}
        yield from _of_set(name, groups, count, random.Random(f"{seed}/claims/{name}"))


def _of_set(name: str, groups: dict[str, str], count: int, rng: random.Random) -> Iterator[Example]:
    """Claims of passages, which are given with the page or document that each stands in."""
    texts = sorted(groups)
    long = [text for text in rng.sample(texts, len(texts)) if len(text.split()) > LEAST + WORDS.start]
    miner = Miner(texts, rng)
    for text in long[:count]:
        claims = [s for s in sentences(text) if len(s.split()) in WORDS]
        claim = rng.choice(claims) if claims else ""
        rest = text.replace(claim, " ").strip()
        if not claim or len(rest.split()) < LEAST:
            continue
        away = {row for row, other in enumerate(texts) if groups[other] != groups[text]}
        yield _one(claim, rest, name, relevant=True)
        drawn = miner.draw(claim, NEGATIVES, away.__contains__)
        yield from (_one(claim, texts[row], name, relevant=False) for row in drawn)


def _one(query: str, passage: str, name: str, *, relevant: bool) -> Example:
    return Example(query=query, passage=passage, relevant=relevant, set=name, kind="claim", part="train")
