"""Makes questions that need two pages, or compare two, from 2Wiki's passages by patterns.

2Wiki has few training questions, and their second page is seldom named in the question. A page that says "directed by
B" and B's own page make such a question. Pages of held-out questions and of their contexts are not used.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.follow import extend_query
from meve.training.mining import Miner
from meve.types import Passage
from recipes.verifier.examples import Example

_T = TypeVar("_T")

HARD, SECOND = 8, 3
"""Irrelevant passages per question, and per second hop."""
OF_EACH = 2
"""Questions per link between two pages."""
PAIRED, COMPARED = 140, 220
"""Questions that compare the targets of two links, and that compare two pages."""

_RELATIONS = {
    "director": re.compile(r"\b[Dd]irected(?:,? (?:and|written|produced|co-written)\w*)* by ?$"),
    "composer": re.compile(r"\b(?:[Cc]omposed|[Mm]usic) by ?$"),
    "performer": re.compile(r"\b(?:[Ss]ung|[Rr]ecorded|[Pp]erformed|[Ss]ong|[Aa]lbum|[Ss]ingle) by ?$"),
    "writer": re.compile(r"\b(?:[Ww]ritten|[Nn]ovel) by ?$"),
    "parent": re.compile(r"\b(?:son|daughter|child) of(?: \w+){0,2} ?$"),
    "spouse": re.compile(r"\b(?:wife|husband|widow) of(?: \w+){0,2} ?$|\bmarried(?: to)? ?$"),
    "sibling": re.compile(r"\b(?:brother|sister) of(?: \w+){0,2} ?$"),
}
_NAME = re.compile(r"[A-Z][\w.'’\-]*(?: (?:[A-Z][\w.'’\-]*|de|of|von|van|the|II|III|IV)){0,6}")
_ASKED_OF_A_MAKER = (
    "Where was the {role} of {kind} {first} born?",
    "What is the place of birth of the {role} of {kind} {first}?",
    "What is the date of birth of the {role} of {kind} {first}?",
    "When did the {role} of {kind} {first} die?",
    "Where did the {role} of {kind} {first} die?",
    "Which country is the {role} of {kind} {first} from?",
    "What nationality is the {role} of {kind} {first}?",
    "Where did the {role} of {kind} {first} study?",
    "Which award did the {role} of {kind} {first} receive?",
    "Who is the spouse of the {role} of {kind} {first}?",
    "Who is the father of the {role} of {kind} {first}?",
    "What is the cause of death of the {role} of {kind} {first}?",
)
_ASKED_OF_KIN = (
    "What is the date of death of {first}'s {role}?",
    "When was {first}'s {role} born?",
    "Where was the place of death of {first}'s {role}?",
    "What is the place of birth of {first}'s {role}?",
    "Where is {first}'s {role} buried?",
)
_ASKED_OF_KIN_TWICE = {
    "father": ("Who is {first}'s paternal grandfather?", "Who is the paternal grandmother of {first}?"),
    "mother": ("Who is the maternal grandfather of {first}?", "Who is {first}'s maternal grandmother?"),
    "husband": ("Who is the father-in-law of {first}?", "Who is {first}'s mother-in-law?"),
    "wife": ("Who is {first}'s father-in-law?", "Who is the mother-in-law of {first}?"),
}
_OF_TWO_DIRECTORS = (
    "Which film has the director who was born first, {first} or {second}?",
    "Which film has the director who died later, {first} or {second}?",
    "Which film whose director is younger, {first} or {second}?",
    "Do both directors of films {first} and {second} share the same nationality?",
    "Are the directors of both films {first} and {second} from the same country?",
    "Do both films {first} and {second} have directors who share the same nationality?",
)
_OF_TWO = {
    "film": (
        "Which film was released first, {first} or {second}?",
        "Which film came out earlier, {first} or {second}?",
        "Are both movies, {first} and {second}, from the same country?",
    ),
    "person": (
        "Who was born first, {first} or {second}?",
        "Who was born later, {first} or {second}?",
        "Who is older, {first} or {second}?",
        "Who died first, {first} or {second}?",
        "Who lived longer, {first} or {second}?",
        "Are {first} and {second} of the same nationality?",
    ),
    "place": (
        "Are {first} and {second} located in the same country?",
        "Are both places, {first} and {second}, in the same country?",
    ),
}
_KINDS = {
    "film": re.compile(r"\bis an? [^.]*\bfilm\b"),
    "person": re.compile(r"\(\s*(?:born|c\.|\d{1,2} \w+ \d{4}|\w+ \d{1,2}, \d{4}|\d{4}\s*[–-])|\bwas born\b"),
    "place": re.compile(r"\bis a (?:village|town|city|river|lake|mountain|commune|municipality|hamlet|university)\b"),
}


@dataclass(frozen=True, slots=True)
class _Link:
    first: Passage
    second: Passage
    relation: str
    before: str


def examples(passages: Sequence[Passage], seed: int) -> Iterator[Example]:
    """Yield paragraphs and second hops of the generated questions."""
    rng = random.Random(f"{seed}/chains")
    miner = Miner([p.content for p in passages], rng)
    for text, gold in questions(passages, rng):
        rows = [passages[row] for row in miner.search(text, HARD + len(gold))]
        others = [p for p in rows if p not in gold][:HARD]
        yield from (_one(text, p, p in gold, "paragraph") for p in (*gold, *others))
        for first in gold:
            query = extend_query(text, [first.content], RetrieverConfig().evidence_words)
            yield from (_one(query, p, True, "second hop") for p in gold if p is not first)
            drawn = rng.sample(others, min(SECOND, len(others)))
            yield from (_one(query, p, False, "second hop") for p in drawn)


def questions(passages: Sequence[Passage], rng: random.Random) -> list[tuple[str, tuple[Passage, ...]]]:
    """Return distinct questions, each with the passages it needs."""
    links = list(_links(passages))
    result: list[tuple[str, tuple[Passage, ...]]] = []
    for link in links:
        forms = list(_forms(link))
        for form in rng.sample(forms, min(OF_EACH, len(forms))):
            result.append((form.format(first=_named(link.first, rng)), (link.first, link.second)))
    directed = [link for link in links if link.relation == "director"]
    for a, b in _couples(directed, PAIRED, rng):
        if len({a.first.id, b.first.id, a.second.id, b.second.id}) == 4:
            text = rng.choice(_OF_TWO_DIRECTORS).format(first=_named(a.first, rng), second=_named(b.first, rng))
            result.append((text, (a.first, a.second, b.first, b.second)))
    for kind, pattern in _KINDS.items():
        pages = [p for p in passages if p.title and pattern.search(p.text[:300])]
        for one, other in _couples(pages, COMPARED // len(_KINDS), rng):
            text = rng.choice(_OF_TWO[kind]).format(first=_named(one, rng), second=_named(other, rng))
            result.append((text, (one, other)))
    return list(dict(result).items())


def _links(passages: Iterable[Passage]) -> Iterator[_Link]:
    """Yield the links from a page to another whose relation is stated; each pair of pages once."""
    by_title = {_bare(p.title): p for p in passages if p.title}
    seen: set[tuple[str, str]] = set()
    for first in by_title.values():
        for match in _NAME.finditer(first.text):
            second = by_title.get(match.group().rstrip(".,"))
            if second is None or second is first or (first.id, second.id) in seen:
                continue
            before = first.text[max(0, match.start() - 40) : match.start()]
            relation = next((name for name, pattern in _RELATIONS.items() if pattern.search(before)), None)
            if relation and _KINDS["person"].search(second.text[:300]):
                seen.add((first.id, second.id))
                yield _Link(first, second, relation, before)


def _forms(link: _Link) -> Iterator[str]:
    if link.relation in ("director", "composer", "performer", "writer"):
        if link.relation == "director" or "film" in link.first.text[:200]:
            kind = "film"
        else:
            kind = "song" if link.relation in ("composer", "performer") else "the book"
        yield from (form.replace("{role}", link.relation).replace("{kind}", kind) for form in _ASKED_OF_A_MAKER)
        return
    role = {"parent": _parent(link.second), "spouse": _spouse(link), "sibling": "sibling"}[link.relation]
    yield from (form.replace("{role}", role) for form in _ASKED_OF_KIN)
    yield from _ASKED_OF_KIN_TWICE.get(role, ())


def _parent(page: Passage) -> str:
    return "mother" if re.search(r"\b(?:She|she|her|Queen|Princess|Duchess)\b", page.text) else "father"


def _spouse(link: _Link) -> str:
    if re.search(r"\b(?:wife|widow) of", link.before):
        return "husband"
    return "wife" if re.search(r"\b(?:he|his|He|His)\b", link.first.text) else "husband"


def _couples(links: Sequence[_T], count: int, rng: random.Random) -> Iterator[tuple[_T, _T]]:
    if len(links) > 1:
        for _ in range(count):
            one, other = rng.sample(links, 2)
            yield one, other


def _named(page: Passage, rng: random.Random) -> str:
    """Return the title as the set writes names: mostly in title case."""
    return page.title.title() if rng.random() < 0.7 else page.title


def _bare(title: str) -> str:
    return re.sub(r"\s*\(.*\)$", "", title)


def _one(query: str, passage: Passage, relevant: bool, kind: str) -> Example:
    return Example(query=query, passage=passage.content, relevant=relevant, set="2wiki_made", kind=kind, part="train")
