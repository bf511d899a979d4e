"""Makes examples from sets of passages that differ in a detail, written for the verifier's training (`contrasts/`).

A record holds wordings of a question (`q`), passages that answer it (`yes`), and passages that look alike but don't
(`no`): another day, number, person, role, option or direction, another aspect, or no statement at all. Every passage
that answers is paired with every wording, every other passage with one. Since these share more words with the question
than those that answer, questions are also paired with similar passages of other records, or the model would learn that
shared words speak against a passage. All were written for this project.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.splits import part_of

FOLDER = Path(__file__).parent / "contrasts"
EVERYDAY = ("short", "talk")
"""Fields whose questions, such as where my sister lives or whether dogs are allowed, have answers in other records."""
ELSEWHERE = 3
"""The number of passages of other records per question."""


def read_records(folder: Path = FOLDER) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Yield the field and the content of every record."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield file.stem, json.loads(line)


def read_corpus(part: str = "dev", folder: Path = FOLDER) -> tuple[list[Passage], list[tuple[str, set[str]]]]:
    """Return the passages of a part's records, and their questions with the ids of the passages that answer them.

    The fields of everyday talk are left out: their questions have answers in other records too.
    """
    passages, asked = [], []
    for n, (field, record) in enumerate(read_records(folder)):
        if field in EVERYDAY or part_of("contrasts", record["q"][0]) != part:
            continue
        texts = {f"{n}-{at}": text for at, text in enumerate((*record["yes"], *record["no"]))}
        passages += [Passage(id=i, text=text) for i, text in texts.items()]
        gold = set(list(texts)[: len(record["yes"])])
        asked.append((record["q"][n % len(record["q"])], gold))
    return passages, asked


def examples(seed: int, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield the examples of all records; their `part` is `train`, `dev` or `test`, by the first wording."""
    rng = random.Random(f"{seed}/contrasts")
    records = list(read_records(folder))
    parts = [part_of("contrasts", record["q"][0]) for _, record in records]
    texts = [(n, text) for n, (_, record) in enumerate(records) for text in (*record["yes"], *record["no"])]
    miner = Miner([text for _, text in texts], rng)
    for n, (field, record) in enumerate(records):
        part = parts[n]
        kind = "statement" if field == "talk" else "paragraph"
        pairs = [(query, passage, True) for passage in record["yes"] for query in record["q"]]
        pairs += [(rng.choice(record["q"]), passage, False) for passage in record["no"]]
        if field not in EVERYDAY:
            query = rng.choice(record["q"])
            elsewhere = miner.draw(query, ELSEWHERE, lambda i, n=n: texts[i][0] != n and parts[texts[i][0]] == parts[n])
            pairs += [(query, texts[i][1], False) for i in elsewhere]
        for query, passage, relevant in pairs:
            yield Example(
                query=query, passage=passage, relevant=relevant, set=f"contrasts_{field}", kind=kind, part=part
            )
