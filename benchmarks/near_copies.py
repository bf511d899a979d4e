"""Measure how the judge of duplicates tells copies of a text from texts that differ in one fact.

python -m benchmarks.near_copies FOLDER [FOLDER ...] [--seed 1] [--show KIND]

Reads the paragraphs of all .md, .rst, .txt and .html files below the folders, and the field `positive` or `text` of
.jsonl.gz files. Each kind of difference or edit is applied to 200 paragraphs drawn at random. A pair that differs
counts as dropped if the judge takes either text for a repetition of the other.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from meve import Passage
from meve.components._repeated_text import RepeatedText

PAIRS = 200
WORDS = (25, 180)
"""The fewest and most words of a paragraph."""
FILES = 600
"""The most files read below a folder, and the most rows read of a file."""
_UNITS = """
ms seconds minutes hours days weeks months years bytes KB MB GB TB pixels px percent % mg g kg miles km metres
meters feet inches USD dollars euros times people users
"""
UNITS = _UNITS.split()
MORE = (
    "This page was reviewed by the editors.",
    "See the appendix for a worked example.",
    "Older releases behave in the same way.",
    "The figure below shows the steps.",
)
BEFORE = ("Skip to main content", "Home > Docs > Guide", "Print this page", "Share this article", "Menu | Search")
AFTER = ("Was this page helpful?", "Back to top", "Edit this page", "All rights reserved.", "About us | Contact us")
KINDS = (".md", ".rst", ".txt", ".html", ".jsonl.gz")
Edit = Callable[[str, random.Random, Sequence[str]], str | None]
"""Returns a changed text, or None where it can't be changed; the last argument holds names to choose from."""


def _swap(pattern: str, change: Callable[[re.Match[str], random.Random, Sequence[str]], str], flags: int = 0) -> Edit:
    """Return the edit that changes one match of a pattern."""
    compiled = re.compile(pattern, flags)

    def edit(text: str, rng: random.Random, names: Sequence[str]) -> str | None:
        matches = list(compiled.finditer(text))
        if not matches:
            return None
        match = rng.choice(matches)
        changed = text[: match.start()] + change(match, rng, names) + text[match.end() :]
        return None if changed == text else changed

    return edit


def _other(*groups: str) -> Edit:
    """Return the edit that exchanges a word for another one of its group."""
    others = {word: [w for w in group.split("|") if w != word] for group in groups for word in group.split("|")}
    pattern = rf"(?<=[a-z] )(?:{'|'.join(map(re.escape, others))})(?= [a-z])"
    return _swap(pattern, lambda match, rng, _: rng.choice(others[match[0]]))


def _number(match: re.Match[str], rng: random.Random, _: Sequence[str]) -> str:
    return str(int(match[0]) + rng.choice([1, 2, 10, -1 if int(match[0]) > 1 else 3]))


DIFFERENCES: dict[str, Edit] = {
    "number": _swap(r"(?<![\w.])\d{1,6}(?![\w.])", _number),
    "name": _swap(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b", lambda _, rng, names: rng.choice(names)),
    "negation": _swap(
        r"\b(?:is|are|was|were|can|will|should|must|may|does|do|did|could|would)(?: not)?(?= [a-z])",
        lambda match, *_: match[0].removesuffix(" not") if match[0].endswith(" not") else f"{match[0]} not",
    ),
    "unit": _swap(
        rf"(?<=\d)( ?)({'|'.join(UNITS)})(?!\w)",
        lambda match, rng, _: match[1] + rng.choice([unit for unit in UNITS if unit != match[2]]),
    ),
    "role": _swap(
        r"\b(\w+) (from|to|by|over|than|for|of|into|before|after) (?:the |a |an )?(\w+)\b",
        lambda match, *_: f"{match[3]} {match[2]} {match[1]}",
    ),
    "direction": _other("from|to|into|by|for", "before|after", "with|without", "over|under", "on|off", "in|out"),
    "person": _other("he|she|they|you|we|I", "his|her|their|your|our|my", "him|them|us|me"),
    "modality": _other("must|may|should|can|will|could", "always|never|sometimes|often", "all|some|most|no|any"),
    "condition": _other("if|unless|because|while|although|until|once", "and|or", "more|less", "first|last"),
    "qualifier": _swap(
        r"\b(?:the|a|all|of) (?=[a-z]{4,})",
        lambda match, rng, _: match[0] + rng.choice(["former ", "remote ", "other ", "second ", "internal "]),
    ),
}


def _cut(text: str, rng: random.Random, _: Sequence[str]) -> str | None:
    said = text.split()
    kept = " ".join(said[: rng.randint(max(22, int(0.4 * len(said))), len(said) - 1)]) if len(said) > 26 else None
    return f"{kept}{rng.choice(['', ' ...', '…'])}" if kept else None


def _without_first(text: str, *_: object) -> str | None:
    rest = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text, maxsplit=1)[1:]
    return rest[0] if rest and len(rest[0].split()) >= 8 else None


def _wrap(text: str, rng: random.Random, _: Sequence[str]) -> str:
    width, line, lines = rng.randint(50, 90), "", []
    for word in text.split():
        if len(line) + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def _reworded(text: str, *_: object) -> str | None:
    """Return a text with articles left out, contractions, "&", and words that are written in two ways."""
    edits = ((r"\b(?:do|does|is|are|was|were) not\b", lambda m: m[0].replace(" not", "n't")), (r"\bcannot\b", "can't"),
             (r"\be-?mail\b", lambda m: "email" if "-" in m[0] else "e-mail"), (r"\bweb ?site\b", "web site"),
             (r"\b[Tt]he (?=[a-z])", ""), (r"\bit is\b", "it's"))  # fmt: skip
    changed = text
    for pattern, new in edits:
        changed = re.sub(pattern, new, changed)  # type: ignore[arg-type]
    return None if changed == text else changed


def _typographic(text: str, *_: object) -> str | None:
    changed = re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text.replace("'", "\u2019")).replace(" - ", " \u2013 ")
    changed = changed.replace("...", "\u2026")
    return None if changed == text else changed


COPIES: dict[str, Edit] = {
    "as it is": lambda text, *_: text,
    "wrapped": _wrap,
    "white space": lambda text, *_: re.sub(r"\s+", "  ", text),
    "lower case": lambda text, *_: text.lower(),
    "upper case": lambda text, *_: text.upper(),
    "typographic": _typographic,
    "markup": lambda text, *_: re.sub(r"`|\*\*|(?<=\])\([^()\s]*\)|[\[\]]", "", text),
    "emphasis": _swap(r"(?<= )[a-z]{4,}(?= )", lambda match, *_: f"**{match[0]}**"),
    "punctuation": lambda text, *_: re.sub(r"[,;]|(?<=[a-z])[.!](?=\s|$)", "", text),
    "exclamation": lambda text, *_: re.sub(r"\.(?=\s|$)", "!", text),
    "reworded": _reworded,
    "boilerplate": lambda text, rng, _: f"{rng.choice(BEFORE)}\n\n{text}\n\n{rng.choice(AFTER)}",
    "cut": _cut,
    "first sentence missing": _without_first,
}
"""Kinds of copies: each function makes a copy of a text, or None if the text has nothing to change."""


def read_paragraphs(folders: Sequence[Path], seed: int) -> list[str]:
    """Return the paragraphs of the files below the folders, in random order."""
    rng = random.Random(seed)
    texts: list[str] = []
    for folder in folders:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name.endswith(KINDS))
        for file in rng.sample(files, min(FILES, len(files))):
            texts += _read(file, rng)
    fewest, most = WORDS
    paragraphs = [text for text in dict.fromkeys(texts) if fewest <= len(text.split()) <= most]
    prose = [text for text in paragraphs if sum(c.isalpha() or c in " \n" for c in text) > 0.85 * len(text)]
    rng.shuffle(prose)
    return prose


def _read(file: Path, rng: random.Random) -> Iterator[str]:
    if file.suffix == ".gz":
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = list(lines)
        for row in rng.sample(rows, min(FILES, len(rows))):
            value = json.loads(row)
            yield str(value.get("positive") or value.get("text") or "").strip()
        return
    text = file.read_text("utf-8", errors="replace")
    if file.suffix == ".html":
        text = "\n\n".join(re.sub(r"<[^>]*>", "", p) for p in re.findall(r"<p\b[^>]*>(.*?)</p>", text, re.S))
    yield from (block.strip() for block in re.split(r"\n\s*\n", text))


def make_pairs(edit: Edit, paragraphs: Sequence[str], rng: random.Random) -> list[tuple[str, str]]:
    """Return up to 200 pairs of a changed paragraph and the paragraph."""
    names = sorted({name for text in paragraphs[:2000] for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b", text)})
    pairs: list[tuple[str, str]] = []
    for text in rng.sample(paragraphs, len(paragraphs)):
        changed = edit(text, rng, names)
        if changed is not None and _differs(changed, text, edit):
            pairs.append((changed, text))
        if len(pairs) == PAIRS:
            break
    return pairs


def _differs(changed: str, text: str, edit: Edit) -> bool:
    return edit in COPIES.values() or re.findall(r"\w+", changed.lower()) != re.findall(r"\w+", text.lower())


def is_dropped(one: str, other: str) -> bool:
    """Return whether the first text is taken for a repetition of the other."""
    return bool(RepeatedText()(Passage(id="one", text=one), Passage(id="other", text=other)))


def main() -> None:
    """Print a table of the pairs of each kind that were dropped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", help="print the pairs of this kind that are judged wrongly")
    given = parser.parse_args()
    paragraphs = read_paragraphs(given.folders, given.seed)
    print(f"{len(paragraphs)} paragraphs")
    totals: dict[str, list[int]] = {"different facts": [0, 0], "copies": [0, 0]}

    def report(group: str, kind: str, pairs: Sequence[tuple[str, str]], dropped: Sequence[bool]) -> None:
        totals[group][0] += sum(dropped)
        totals[group][1] += len(dropped)
        print(f"{group:16} {kind:24} {sum(dropped):4} of {len(dropped)} dropped")
        if kind == given.show:
            wrong = [pair for pair, is_out in zip(pairs, dropped, strict=True) if is_out == (group != "copies")]
            print(*(f"\n- {one}\n+ {other}" for one, other in wrong[:12]), sep="\n")

    for kind, edit in DIFFERENCES.items():
        pairs = make_pairs(edit, paragraphs, random.Random(f"{kind} {given.seed}"))
        report("different facts", kind, pairs, [is_dropped(a, b) or is_dropped(b, a) for a, b in pairs])
    for kind, edit in COPIES.items():
        pairs = make_pairs(edit, paragraphs, random.Random(f"{kind} {given.seed}"))
        report("copies", kind, pairs, [is_dropped(copy, text) for copy, text in pairs])
    rng = random.Random(given.seed)
    more = [(text, f"{text} {rng.choice(MORE)}") for text in paragraphs[:PAIRS]]
    report("copies", "a sentence more", more, [is_dropped(a, b) for a, b in more])
    for group, (dropped, count) in totals.items():
        print(f"{group:16} {'all':24} {dropped:4} of {count} dropped, {dropped / max(count, 1):.2%}")


if __name__ == "__main__":
    main()
