"""Make pairs of sentences that differ in one fact, and copies of documentation that differ in none."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ["Agnes", "Bertil", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hamid", "Ingrid", "Jonas", "Keiko", "Lars"]
PLACES = ["harbour", "library", "museum", "bakery", "orchard", "station", "clinic", "workshop", "nursery", "theatre"]
THINGS = ["boiler", "ferry", "archive", "greenhouse", "lathe", "signal", "printer", "pump", "kiln", "loom"]
DEEDS = ["inspected", "painted", "repaired", "sold", "insured", "photographed", "closed", "opened"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"]
UNITS = [
    ("metres", "feet"),
    ("kilograms", "pounds"),
    ("litres", "gallons"),
    ("hours", "days"),
    ("MB", "GB"),
    ("€", "$"),
]


def _frame(rng: random.Random) -> str:
    return rng.choice([
        "{a} {deed} the {thing} of the {place} in {month}; it {be} checked {when} the season, {bound} {n} {unit} deep, "
        "{by} a lamp, in {every} rooms.",
        "In {month} the {thing} at the {place} {be} ready {when} noon: {a} {deed} {bound} {n} {unit} of it {by} help "
        "from {b}, and {every} doors stood open.",
        "The {place} keeps a {thing} of {bound} {n} {unit}. It {be} moved {when} {month}, {by} the crane, and {a} "
        "{deed} {every} parts for {b}.",
    ])  # fmt: skip


def differing(kind: str, count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yield pairs of equal sentences but for one number, name, negation, unit or exchange of roles."""
    rng = random.Random(f"{kind} {seed}")
    for _ in range(count):
        a, b, c = rng.sample(NAMES, 3)
        unit, other = rng.choice(UNITS)
        n = rng.randint(2, 990)
        parts = {"a": a, "b": b, "n": n, "unit": unit, "thing": rng.choice(THINGS), "place": rng.choice(PLACES)}
        parts |= {"deed": rng.choice(DEEDS), "month": rng.choice(MONTHS), "be": "was", "when": "before"}
        parts |= {"by": "with", "bound": "at least", "every": "all"}
        frame = _frame(rng) if kind != "role" else f"{_frame(rng)} {{a}} {{deed}} it for {{b}}, whom {{a}} knew."
        changed = dict(parts)
        if kind == "number":
            changed["n"] = rng.choice([n + 1, n * 10, n + 7])
        elif kind == "name":
            changed["a"] = c
        elif kind == "unit":
            changed["unit"] = other
        elif kind == "role":
            changed |= {"a": b, "b": a}
        else:
            slot = rng.choice(["be", "by", "when", "bound", "every"])
            new = {"be": ["was not", "wasn't", "was never"], "by": ["without"], "when": ["after"],
                   "bound": ["at most"], "every": ["no"]}[slot]  # fmt: skip
            changed[slot] = rng.choice(new)
        pair = [frame.format(**parts), frame.format(**changed)]
        rng.shuffle(pair)
        yield pair[0], pair[1]


EDITS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "white space": lambda text: re.sub(r"\s+", "\n  ", text),
    "typographic marks": lambda text: text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").replace(" - ", " \u2013 "),
    "without marks": lambda text: re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", text),
    "other case": lambda text: text.lower(),
    "last sentence cut off": lambda text: text.rsplit(". ", 1)[0] + ".",
    "exclamation": lambda text: text.replace(". ", "! "),
    "articles": lambda text: re.sub(r"\b[Tt]he ", "", text),
}
"""What copying between pages does to a text."""


def copied(count: int, seed: int = 1) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of edit, a copy of a paragraph of this documentation, and the paragraph."""
    rng = random.Random(seed)
    pages = "\n\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    blocks = re.sub(r"```.*?```", "", pages, flags=re.S).split("\n\n")
    paragraphs = [block for block in blocks if 25 <= len(block.split()) <= 150 and not block.startswith(("|", "#"))]
    for n in range(count):
        name = list(EDITS)[n % len(EDITS)]
        text = rng.choice(paragraphs)
        yield name, EDITS[name](text), text
