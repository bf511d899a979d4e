"""Measures how many answers are found for misspelt questions, with and without their correction.

    python -m benchmarks.misspelt [--manuals FOLDER] [--seed N]

The questions are those of `benchmarks/documentation` on the handbooks, and with a folder those on the manuals. In up to
two words of five or more letters of each, one error is made: two letters exchanged, one left out, one doubled, or one
replaced by another, as likely as each other, and anywhere but at the first letter. Prints how often the gold passage
stands in the context, is verified, and comes first, and how many contexts are called sufficient.
"""

import argparse
import random
import re
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase

from benchmarks.documentation.measure import HERE, is_gold, read_manuals, read_rows
from meve import Passage, Retriever
from meve.ingest import ingest

WORD = re.compile(r"(?<![\w\-/.])[a-z]{5,}(?![\w\-/])")
Case = tuple[Retriever, str, Callable[[Passage], bool]]


def main() -> None:
    """Ask every question three times and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manuals", type=Path, help="the folder of the manuals")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    measure("handbooks", handbooks(), given.seed)
    if given.manuals:
        measure("manuals", manuals(given.manuals), given.seed)


def handbooks() -> list[Case]:
    """Return each handbook's answerable questions, with what tells a gold passage."""
    retrievers = {}
    for half in ("dev", "test", "plain"):
        retrievers[half] = Retriever.empty()
        ingest(HERE / "handbooks" / half, retrievers[half])
    rows = [row for row in read_rows("handbooks.jsonl") if row["quote"]]
    return [(retrievers[r["half"]], r["question"], lambda p, quote=r["quote"]: quote in p.content) for r in rows]


def manuals(folder: Path) -> list[Case]:
    """Return the answerable questions on the manuals, with what tells a gold passage."""
    retriever = read_manuals(folder, None, None)
    rows = [row for row in read_rows("questions.jsonl") if row["answerable"] and "definition" not in row]
    return [(retriever, row["question"], lambda p, row=row: is_gold(p, row)) for row in rows]


def measure(name: str, cases: list[Case], seed: int) -> None:
    """Print the counts for questions as they are, and misspelt with and without correction."""
    rng = random.Random(seed)
    asked = [(retriever, question, misspell(question, rng), gold) for retriever, question, gold in cases]
    changed = sum(question != wrong for _, question, wrong, _ in asked)
    print(f"{name}: {len(asked)} questions, {changed} of them misspelt")
    for label, is_wrong, spelling in (
        ("as they are", False, True),
        ("misspelt, as they are read", True, False),
        ("misspelt, corrected", True, True),
    ):
        counts = {"in context": 0, "verified": 0, "first": 0, "sufficient": 0, "corrected": 0}
        for retriever, question, wrong, is_answer in asked:
            context = retriever.retrieve(wrong if is_wrong else question, spelling=spelling)
            gold = [is_answer(p.passage) for p in context.passages]
            counts["in context"] += any(gold)
            counts["verified"] += any(g and p.verified for g, p in zip(gold, context.passages, strict=True))
            counts["first"] += gold[:1] == [True]
            counts["sufficient"] += context.sufficient
            counts["corrected"] += bool(context.corrections)
        print(f"  {label}: {', '.join(f'{count} {of}' for of, count in counts.items())}", flush=True)


def misspell(question: str, rng: random.Random) -> str:
    """Return a question with one error in each of up to two words."""
    matches = list(WORD.finditer(question))
    for match in sorted(rng.sample(matches, min(2, len(matches))), key=lambda m: -m.start()):
        word = list(match[0])
        at = rng.randrange(1, len(word) - 1)
        kind = rng.choice(("exchanged", "left out", "doubled", "replaced"))
        if kind == "exchanged":
            word[at], word[at + 1] = word[at + 1], word[at]
        elif kind == "left out":
            del word[at]
        else:
            word[at : at + (kind == "replaced")] = [word[at] if kind == "doubled" else rng.choice(ascii_lowercase)]
        question = f"{question[: match.start()]}{''.join(word)}{question[match.end() :]}"
    return question


if __name__ == "__main__":
    main()
