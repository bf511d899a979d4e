"""Claims against abstracts and sections: a sentence of a passage asks, and the rest of the passage supports it.

No set of claims may be trained on here. A sentence taken out of a passage is the nearest thing: it shares the subject
with what it came from, and not the words.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from meve.parts.sentences import sentences
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
        rng = random.Random(f"{seed}/claims/{name}")
        rows = [r for r in rows_of(folder, name) if r["positive"]]
        texts = {r["positive"]: str(r["group"]) for r in rows if part_of(r["source"], str(r["group"])) == "train"}
        drawn = [t for t in rng.sample(sorted(texts), len(texts)) if len(t.split()) > LEAST + WORDS.start]
        passages = sorted(texts)
        miner = Miner(passages, rng)
        for text in drawn[:count]:
            claims = [s for s in sentences(text) if len(s.split()) in WORDS]
            if not claims:
                continue
            claim = rng.choice(claims)
            rest = text.replace(claim, " ").strip()
            if len(rest.split()) < LEAST:
                continue

            def allowed(row: int, group: str = texts[text]) -> bool:
                return texts[passages[row]] != group

            yield _one(claim.strip(), rest, name, relevant=True)
            for row in miner.drawn(claim, NEGATIVES, allowed):
                yield _one(claim.strip(), passages[row], name, relevant=False)


def _one(query: str, passage: str, name: str, *, relevant: bool) -> Example:
    return Example(query=query, passage=passage, relevant=relevant, set=name, kind="claim", part="train")
