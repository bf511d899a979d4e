"""Makes examples from whole small documents that were written for the verifier's training (`whole_documents/*.jsonl`).

A document has a title, 12 to 25 short passages, and about 20 questions, each in two wordings (`q`). `answers` lists the
passages that answer a question, each with the words that do; `near` lists passages that differ in a detail, such as the
day, person or version. `unanswered` holds questions that no passage answers, with the passages that seem to (`near`).
Fields: `staff`, `house`, `shop`, `software`, `ops`, `travel`, `school` and `care`; and manuals of invented programs and
products, whose answers are clauses amid others in the words of the manual: `options`, `settings`, `admin`, `api`,
`guides` and `products`. All were written for this project. `recipes.verifier.further --round references` trains a round
with them.

Contrasts alone taught the verifier to distrust shared words. So each wording is paired with every passage that answers
it, and with about as many others of the same document.
"""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from meve.training.mining import Miner
from recipes.verifier.examples import Example
from recipes.verifier.pages import draw_passage
from recipes.verifier.splits import part_of

FOLDER = Path(__file__).parent / "whole_documents"
BESIDE = 0.5
"""The share of wordings that are also paired with a similar passage of their document."""

Document = Mapping[str, Any]


def read_documents(folder: Path = FOLDER) -> Iterator[tuple[str, Document]]:
    """Yield the field and the content of every document."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield file.stem, json.loads(line)


def examples(seed: int, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield the examples of all documents; their `part` is `train`, `dev` or `test`, by the document's title.

    Passages of other documents are not drawn: many of these questions, such as when a shop opens, have answers there.
    """
    rng = random.Random(f"{seed}/whole_documents")
    for field, document in read_documents(folder):
        title, passages = document["title"], document["passages"]
        part, miner = part_of("whole_documents", title), Miner(passages, rng)
        for question in (*document["questions"], *document["unanswered"]):
            gold = frozenset(answer["passage"] for answer in question.get("answers", ()))
            known = gold.union(question["near"])
            pairs = [(query, at) for query in question["q"] for at in sorted(gold)]
            misled = [rng.choice(question["q"])] if gold else question["q"]
            pairs += [(query, at) for query in misled for at in question["near"]]
            for query in question["q"]:
                if rng.random() < BESIDE:
                    rows = miner.draw(query, 1, lambda i, known=known: i not in known, depth=len(passages) // 2)
                    pairs += [(query, at) for at in rows]
            for query, at in pairs:
                without: frozenset[int] = frozenset() if at in gold else gold
                yield Example(
                    query=query,
                    passage=draw_passage(title, passages, at, rng, amid=True, without=without),
                    relevant=at in gold,
                    set=f"whole_documents_{field}",
                    kind="paragraph",
                    part=part,
                )
