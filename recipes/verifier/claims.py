"""Makes claims from abstracts and sections: a sentence is the claim, and the rest of its passage supports it.

The sets of real claims are held out of training. A sentence shares the topic of its passage without the words.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from meve.components._sentence_splitter import split_sentences
from meve.training.mining import Miner
from recipes.verifier.examples import Example
from recipes.verifier.pairs import rows_of
from recipes.verifier.splits import part_of

CLAIMS = {"pubmedqa": 350, "covid_qa": 150, "scitldr": 300, "openstax_sections": 100}
"""The number of claims per set."""
NEGATIVES = 3
WORDS = range(9, 40)
"""The number of words of a claim."""
LEAST = 40
"""The minimum number of words left in the passage."""


def examples(folder: Path, seed: int) -> Iterator[Example]:
    """Yield the claims of every set."""
    for name, count in CLAIMS.items():
        rows = [r for r in rows_of(folder, name) if r["positive"]]
        groups = {r["positive"]: str(r["group"]) for r in rows if part_of(r["source"], str(r["group"])) == "train"}
        yield from _of_set(name, groups, count, random.Random(f"{seed}/claims/{name}"))


def _of_set(name: str, groups: dict[str, str], count: int, rng: random.Random) -> Iterator[Example]:
    """Yield claims from passages, given with the page or document of each."""
    texts = sorted(groups)
    long = [text for text in rng.sample(texts, len(texts)) if len(text.split()) > LEAST + WORDS.start]
    miner = Miner(texts, rng)
    for text in long[:count]:
        claims = [s for s in split_sentences(text) if len(s.split()) in WORDS]
        claim = rng.choice(claims) if claims else ""
        rest = text.replace(claim, " ").strip()
        if not claim or len(rest.split()) < LEAST:
            continue
        other_groups = {row for row, other in enumerate(texts) if groups[other] != groups[text]}
        yield _one(claim, rest, name, relevant=True)
        negatives = miner.draw(claim, NEGATIVES, other_groups.__contains__)
        yield from (_one(claim, texts[row], name, relevant=False) for row in negatives)


def _one(query: str, passage: str, name: str, *, relevant: bool) -> Example:
    return Example(query=query, passage=passage, relevant=relevant, set=name, kind="claim", part="train")
