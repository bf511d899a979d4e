"""Puts passages amid other text: metadata lines, headings, lists, code fences, HTML remains, unrelated sentences.

Relevant and irrelevant passages are wrapped alike, so that the wrapping predicts nothing.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from meve.components._sentence_splitter import split_sentences
from recipes.verifier.examples import Example

SHARE = 0.3
"""The share of passages that are wrapped."""
WORDS = range(5, 40)
"""The number of words of an unrelated sentence."""
LONGEST = 600
"""Characters; longer passages are not wrapped, since training would cut them off."""

_FOLDERS = ("docs", "src", "guide", "wiki", "content", "pages", "manual", "notes", "data", "exports", "kb", "articles")
_NAMES = ("index", "overview", "setup", "usage", "faq", "readme", "notes", "policy", "team", "intro", "report", "draft")
_EXTENSIONS = ("md", "rst", "txt", "html", "pdf", "docx", "adoc", "csv")
_REMAINS = (
    "<p>", "<br/>", "</div>", '<div class="content">', "&nbsp;", "[edit]", "Skip to main content", "<li>",
    "| --- | --- |", "Share this page", "Was this page helpful? Yes No", "Table of contents", "<!-- begin -->",
    "Back to top", "::", ".. note::", "Last updated by the web team", "***", "---", "Page 4 of 17",
    "Copyright. All rights reserved.",
)  # fmt: skip


def wrapped(examples: Iterable[Example], sentences: Sequence[str], seed: int) -> Iterator[Example]:
    """Yield every example, a share of them with text around the passage."""
    rng = random.Random(f"{seed}/context")
    for example in examples:
        if rng.random() < SHARE and len(example.passage) < LONGEST:
            yield replace(example, passage=wrap(example.passage, sentences, rng))
        else:
            yield example


def filler(passages: Iterable[str]) -> list[str]:
    """Return the sentences of passages that can stand around others."""
    found = dict.fromkeys(s.strip() for text in passages for s in split_sentences(text))
    return [s for s in found if len(s.split()) in WORDS and s[-1] in ".!?"]


def wrap(text: str, sentences: Sequence[str], rng: random.Random) -> str:
    """Put text around a passage, in one or two of several ways."""
    for way in rng.sample((_metadata, _amid, _amid, _heading, _list, _remains, _fence), rng.choice((1, 1, 2))):
        text = way(text, sentences, rng)
    return text


def _metadata(text: str, sentences: Sequence[str], rng: random.Random) -> str:
    path = f"{rng.choice(_FOLDERS)}/{rng.choice(_NAMES)}.{rng.choice(_EXTENSIONS)}"
    lines = [
        f"file_path: {rng.choice(('', '/home/user/', './'))}{path}",
        f"source: {path}",
        f"title: {_title(sentences, rng)}",
        f"page_label: {rng.randint(1, 300)}",
        f"last_modified: {rng.randint(2015, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        f"file_name: {path.rpartition('/')[2]}",
        f"author: {rng.choice(('admin', 'editor', 'webteam', 'jdoe'))}",
        f"chunk: {rng.randint(0, 40)}",
    ]
    return "\n".join(rng.sample(lines, rng.choice((1, 1, 1, 2, 3)))) + rng.choice(("\n", "\n\n")) + text


def _amid(text: str, sentences: Sequence[str], rng: random.Random) -> str:
    before, after = rng.choice(((1, 0), (2, 0), (4, 0), (1, 1), (2, 1), (1, 2), (0, 2), (3, 0)))
    parts = [*rng.sample(sentences, before), text, *rng.sample(sentences, after)]
    return rng.choice((" ", " ", "\n", "\n\n")).join(parts)


def _heading(text: str, sentences: Sequence[str], rng: random.Random) -> str:
    title = _title(sentences, rng)
    line = rng.choice(("# {}", "## {}", "{}", "=== {} ===", "<h2>{}</h2>", "**{}**", "3.2 {}")).format(title)
    under = rng.choice(("", "", "\n" + rng.choice("=-~") * len(title)))
    return f"{line}{under}\n\n{text}"


def _list(text: str, sentences: Sequence[str], rng: random.Random) -> str:
    items = [*rng.sample(sentences, rng.choice((0, 1, 2))), text]
    rng.shuffle(items)
    mark = rng.choice(("- ", "* ", "+ ", "• ", "<li>"))
    return "\n".join(f"{mark}{item}" for item in items)


def _remains(text: str, _: Sequence[str], rng: random.Random) -> str:
    before, after = rng.choice(_REMAINS), rng.choice(("", "", rng.choice(_REMAINS)))
    return f"{before}{rng.choice((' ', chr(10)))}{text} {after}".rstrip()


def _fence(text: str, _: Sequence[str], rng: random.Random) -> str:
    if len(text.split()) > 60 or rng.random() < 0.5:
        return f"{text}\n```\n$ {rng.choice(_NAMES)} --help\n```"
    return f"```\n{text}\n```"


def _title(sentences: Sequence[str], rng: random.Random) -> str:
    return " ".join(rng.choice(sentences).split()[: rng.randint(2, 5)]).rstrip(".,;:!?")
