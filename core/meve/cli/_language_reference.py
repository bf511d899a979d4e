"""The main job on real text that every Python carries: the language reference, as `pydoc` shows it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meve.errors import ConfigurationError
from meve.ingest import Chunker, Chunking, cut
from meve.retrieval._snapshot import MANIFEST
from meve.retrieval.retriever import Retriever
from meve.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to show."""

    text: str
    answered: bool
    """Whether the language reference has an answer."""


QUESTIONS = (
    Question(text="What happens if no except clause matches the exception?", answered=True),
    Question(text="When does the else clause of a for loop run?", answered=True),
    Question(text="When are default argument values of a function evaluated?", answered=True),
    Question(text="How are chained comparisons evaluated?", answered=True),
    Question(text="At what temperature does water boil on top of a high mountain?", answered=False),
)

EDITION = f"python {sys.version_info.major}.{sys.version_info.minor}"
"""Whose language reference it is."""


def language_reference(count: Callable[[str], int]) -> list[Passage]:
    """The topics of the language reference, cut into passages under their own headings.

    Args:
        count: counts tokens.
    """
    from pydoc_data.topics import topics

    chunker = Chunker(Chunking(), count)
    return [passage for name in sorted(topics) for passage in cut(topics[name], f"{name}.rst", chunker).passages]


def demo_retriever(folder: Path, progress: Callable[[int, int], None] | None = None) -> Retriever:
    """An index of the language reference in a folder; the one that an earlier demo left there, if there is one.

    Args:
        folder: where it is saved.
        progress: told how many passages are embedded, and of how many.

    Raises:
        ConfigurationError: the folder holds another index.
        StorageError: the folder holds something else, or can't be written.
        ModelError: the models that ship can't be loaded.
    """
    if (folder / MANIFEST).exists():
        retriever = Retriever.load(folder)
        if retriever.extra.get("demo") != EDITION:
            raise ConfigurationError(f"{folder} holds another index than the demo's: name a new folder")
        return retriever
    retriever = Retriever.empty()
    passages = language_reference(retriever.tokens.count)
    if progress is not None:
        progress(0, len(passages))
    retriever.update(add=passages, progress=progress)
    retriever.save(folder, extra={"demo": EDITION})
    return retriever
