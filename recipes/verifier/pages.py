"""Makes examples from pages that were written for the verifier's training (`pages/*.jsonl`).

A page has a title, sections, the questions that each section answers (`yes`), and near misses (`no`): questions that no
section answers, each with the section that seems to answer it (`near`). A question is paired with the section that
answers it, alone or amid its neighbours, with other sections of its page, and with a similar section of another page.
Pages are of eight fields: `cli`, `api` and `trouble` (software), `policy`, `home`, `town`, `talk` (conversations) and
`facts`. All were written for this project.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example
from recipes.verifier.splits import part_of

FOLDER = Path(__file__).parent / "pages"
TITLED = 0.5
"""The share of passages that begin with the page's title."""
AMID = 0.5
"""The share of passages that hold the section amid its neighbours, where they are short enough."""
BESIDE, ELSEWHERE = 0.5, 0.25
"""The shares of questions that are also paired with another section of their page, and with one of another page."""
LONGEST = 1_100
"""The most characters of a passage of several sections."""

Page = Mapping[str, Any]


def read_pages(folder: Path = FOLDER) -> Iterator[tuple[str, Page]]:
    """Yield the field and the content of every page."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            yield file.stem, json.loads(line)


def examples(seed: int, folder: Path = FOLDER) -> Iterator[Example]:
    """Yield the examples of all pages; their `part` is `train`, `dev` or `test`, by the page's title."""
    rng = random.Random(f"{seed}/pages")
    pages = list(read_pages(folder))
    texts = [section["text"] for _, page in pages for section in page["sections"]]
    page_of = [n for n, (_, page) in enumerate(pages) for _ in page["sections"]]
    parts = [part_of("pages", page["title"]) for _, page in pages]
    miner = Miner(texts, rng)
    for n, (field, page) in enumerate(pages):
        part = part_of("pages", page["title"])

        def example(query: str, passage: str, relevant: bool, field: str = field, part: str = part) -> Example:
            kind = "statement" if field == "talk" else "paragraph"
            return Example(query=query, passage=passage, relevant=relevant, set=f"pages_{field}", kind=kind, part=part)

        sections = page["sections"]
        title, own = page["title"], [section["text"] for section in sections]
        for at, section in enumerate(sections):
            others = [i for i in range(len(sections)) if i != at]
            for query in section["yes"]:
                yield example(query, draw_passage(title, own, at, rng, amid=True), True)
                if rng.random() < BESIDE:
                    yield example(query, draw_passage(title, own, rng.choice(others), rng), False)
                if rng.random() < ELSEWHERE:
                    row = miner.draw(query, 1, lambda i, n=n, part=part: page_of[i] != n and parts[page_of[i]] == part)
                    yield from (example(query, texts[i], False) for i in row)
        for miss in page["no"]:
            yield example(miss["q"], draw_passage(title, own, miss["near"], rng, amid=True), False)


def read_corpus(part: str = "dev", folder: Path = FOLDER) -> tuple[list[Passage], list[tuple[str, set[str]]]]:
    """Return the sections of all pages as passages, and the questions of the pages of a part with their passages' ids.

    Near misses have no passage.
    """
    passages, asked = [], []
    for n, (_, page) in enumerate(read_pages(folder)):
        for at, section in enumerate(page["sections"]):
            passages.append(Passage(id=f"{n}-{at}", title=page["title"], text=section["text"]))
            if part_of("pages", page["title"]) == part:
                asked += [(query, {f"{n}-{at}"}) for query in section["yes"]]
        if part_of("pages", page["title"]) == part:
            asked += [(miss["q"], set[str]()) for miss in page["no"]]
    return passages, asked


def draw_passage(
    title: str,
    texts: Sequence[str],
    at: int,
    rng: random.Random,
    *,
    amid: bool = False,
    without: Set[int] = frozenset(),
) -> str:
    """Return a section as a passage, perhaps under the title, or if `amid` between neighbours that aren't `without`."""
    first = last = at
    if amid and rng.random() < AMID:
        first, last = rng.randint(max(0, at - 2), at), rng.randint(at, min(len(texts) - 1, at + 2))
    first = max((i + 1 for i in without if first <= i < at), default=first)
    last = min((i - 1 for i in without if at < i <= last), default=last)
    text = rng.choice(("\n\n", "\n", " ")).join(texts[first : last + 1])
    if len(text) > LONGEST:
        text = texts[at]
    return f"{title}\n{text}" if rng.random() < TITLED else text
